"""Random stalls: the loop against an independent model of docs/clock.md, and the laws that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clock_script import BEGIN, GRACE, MISSED, OVERRUN, SLIPPED, T, longest_row, play
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = ("ticks", "missed", "late_started", "dropped", "overruns")


@dataclass
class Expected:
    """What the page says about one script."""

    #: per tick: (time of waking, lateness, compute time, margin, flags) in ns
    ticks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    run: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    grace: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    grid_points: int = 0
    in_row_max: int = 0
    #: cause of the safe state, tick that latched it, detail
    latched: tuple[str, int, int] | None = None
    end_ns: int = 0


def expected(
    rows: list[tuple[int, int]],
    policy: str,
    max_catch_up: int,
    grace_ticks: int,
    spin: int,
    overrun_limit: int,
    n_ticks: int,
    arm_wake: int,
    stop_wake: int,
) -> Expected:
    """The page as a program: one round per wake-up."""
    e = Expected()
    now, wake, grid, t_arm = BEGIN, 0, BEGIN + T, None
    overrun_before, in_row, late_row, asked = False, 0, 0, None
    while True:
        delay, work = rows[wake] if wake < len(rows) else (0, 0)
        # C12: sleep to the begin of the spin, spin to the grid point; no spin before arming
        now = max(max(now, grid - (spin if t_arm is not None else 0)) + delay, grid)
        stop, arm = wake == stop_wake, wake == arm_wake
        wake += 1
        if stop:  # C13
            break
        if t_arm is None:  # C2
            if not arm:
                grid = (grid if now < grid + T else now) + T
                continue
            t_arm = grid = now
        tick, lateness = len(e.ticks), now - grid  # C3
        book = e.grace if tick < grace_ticks else e.run  # C11
        behind = (now - grid) // T
        drop, last = 0, False
        if policy == "stop" and behind and book is e.run:  # C10
            asked, last = asked or ("missed", tick, behind), True
        elif policy != "catch_up":  # C9
            drop = behind
        elif behind > max_catch_up - late_row:  # C8
            drop = behind - (max_catch_up - late_row)
        late = behind > drop
        late_row = late_row + 1 if late else 0
        grid += (drop + 1) * T
        margin = grid - (now + work)  # C5
        flags = (OVERRUN if overrun_before else 0) | (MISSED if behind else 0) | (SLIPPED if drop else 0)
        e.ticks.append((now, lateness, work, margin, flags | (GRACE if book is e.grace else 0)))
        book["ticks"] += 1
        book["dropped"] += drop
        book["late_started"] += late
        book["missed"] += drop + late
        overrun_before = margin < 0
        book["overruns"] += overrun_before
        in_row = in_row + 1 if overrun_before and book is e.run else 0
        e.in_row_max = max(e.in_row_max, in_row)
        if asked and e.latched is None:
            e.latched = asked
        if overrun_limit and in_row >= overrun_limit and asked is None:
            asked = ("overruns", tick + 1, in_row)
        now += work
        if last or (n_ticks >= 0 and len(e.ticks) >= n_ticks):
            break
    e.grid_points = 0 if t_arm is None else (grid - t_arm) // T
    e.end_ns = now
    return e


#: mostly small, sometimes several periods, often exactly on a border
times = st.one_of(st.integers(0, T // 4), st.integers(0, 8 * T), st.integers(0, 6).map(lambda k: k * T), st.just(0))
scripts = st.lists(st.tuples(times, times), min_size=1, max_size=60)
clocks = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["catch_up", "skip", "stop"]),
        "max_catch_up": st.integers(1, 6),
        "grace_ticks": st.sampled_from([0, 0, 1, 5, 20]),
        "spin": st.sampled_from([0, 0, T // 10, T // 2]),
        "overrun_limit": st.sampled_from([0, 1, 3, 10]),
        "n_ticks": st.sampled_from([-1, 1, 7, 40]),
        "arm_wake": st.sampled_from([0, 0, 0, 1, 4]),
    }
)


def played(rows: list[tuple[int, int]], clock: dict[str, Any]) -> Any:
    more = {k: v for k, v in clock.items() if k != "spin"}
    return play([(d / T, w / T) for d, w in rows], spin_us=clock["spin"] / 1e3, **more)


@settings(max_examples=400, deadline=None)
@given(scripts, clocks)
def test_loop_and_page_count_the_same(rows, clock):
    run, e = played(rows, clock), expected(rows, stop_wake=len(rows), **clock)
    c = run.counters
    records = run.ticks
    assert [
        (int(r["t_wall_ns"]), int(r["wake_lateness_ns"]), int(r["compute_ns"]), int(r["flags"])) for r in records
    ] == [(t, late, work, flags) for t, late, work, _, flags in e.ticks]
    assert {n: c[n] for n in NAMES if n != "ticks"} == {n: e.run[n] for n in NAMES if n != "ticks"}
    assert {n: c["grace"][n] for n in NAMES} == e.grace
    assert c["ticks"] == len(e.ticks) and c["overruns_in_row_max"] == e.in_row_max
    assert run.script.now_ns == e.end_ns
    cause = run.rig.cause()
    assert (cause["latched"], cause["cause"], cause["tick"], cause["detail"]) == (
        (True, *e.latched) if e.latched else (False, "none", -1, 0)
    )
    # C3, C4, C5, C15: histograms and worst ticks hold every tick after the grace
    after = e.ticks[clock["grace_ticks"] :]
    for histogram, column in ((run.rig.lateness, 1), (run.rig.compute, 2), (run.rig.account.margin, 3)):
        values = [t[column] for t in after]
        assert (histogram.count, histogram.mean_ns) == (len(values), sum(values) / len(values) if values else 0.0)
        assert not values or (histogram.min_ns, histogram.max_ns) == (min(values), max(values))
    worst = run.rig.account.worst()
    assert [w["lateness_us"] for w in worst["by_lateness"]] == sorted((t[1] / 1e3 for t in after), reverse=True)[:32]
    assert [w["compute_us"] for w in worst["by_compute"]] == sorted((t[2] / 1e3 for t in after), reverse=True)[:32]


@settings(max_examples=200, deadline=None)
@given(scripts, clocks)
def test_books_close(rows, clock):
    run = played(rows, clock)
    c, g = run.counters, run.counters["grace"]
    # C7
    assert c["ticks"] + c["dropped"] + g["dropped"] == c["grid_points"]
    assert c["lost_time_s"] == c["dropped"] * run.rig.tick_s and g["lost_time_s"] == g["dropped"] * run.rig.tick_s
    # C6, C5
    for book in (c, g):
        assert book["missed"] == book["late_started"] + book["dropped"]
    assert run.rig.account.margin.negative == c["overruns"]
    assert run.rig.lateness.count == c["ticks"] - g["ticks"] and run.rig.lateness.negative == 0
    # C8, C9
    limit = {"catch_up": clock["max_catch_up"], "skip": 0, "stop": 1}[clock["policy"]]
    assert longest_row(run) <= limit
    # C7: no simulated time is left out, and wall time never runs ahead of the grid
    assert run.ticks["tick"].tolist() == list(range(c["ticks"]))
    if len(run.ticks):
        steps = (run.ticks["t_wall_ns"][1:] - run.ticks["t_wall_ns"][:-1]).tolist()
        assert all(step >= 0 for step in steps)
