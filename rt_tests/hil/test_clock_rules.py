"""The rules of docs/clock.md, each in exact time: the loop plays a script of late wake-ups and long ticks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from clock_script import BEGIN, GRACE, MISSED, OVERRUN, SLIPPED, T, longest_row, play, stall

from torqueloop.cython_kernels.clock.account import PHASES
from torqueloop.cython_kernels.clock.loop_clock import ClockScript
from torqueloop.cython_kernels.tick.rig import Rig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clock.md"


def test_every_rule_of_the_page_is_named_by_a_test():
    rules = re.findall(r"^\| (C\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    tests = "".join(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_clock_*.py"))
    named = {f"C{n}" for n in re.findall(r"^def test_c(\d+)_", tests, re.MULTILINE)}
    assert rules == [f"C{k + 1}" for k in range(len(rules))] and len(rules) >= 16
    assert named == set(rules)


def test_c1_a_late_wake_up_moves_no_later_grid_point():
    run = play([(0.0, 0.1), (0.7, 0.1), (0.2, 0.5), (0.0, 0.1), (0.4, 0.1)])
    assert run.starts == [0.0, 1.7, 2.2, 3.0, 4.4]
    assert run.lateness == [0.0, 0.7, 0.2, 0.0, 0.4]
    assert run.counters["overruns"] == run.counters["missed"] == 0


@pytest.mark.parametrize("delay", [0.0, 0.3, 4.7])
def test_c2_the_wake_up_that_finds_the_arm_command_runs_tick_0(delay):
    run = play([(0.9, 0.0), (0.0, 0.0), (delay, 0.1), (0.0, 0.1)], arm_wake=2)
    # idle wake-ups at 1.9 (late by 0.9) and 2.0; the third is due at 3.0
    assert run.counters["arm_ns"] == BEGIN + round((3 + delay) * T) == run.ticks["t_wall_ns"][0]
    assert run.starts == [0.0, 1.0] and run.lateness == [0.0, 0.0]
    assert run.counters["missed"] == 0, "what was late before arming is no part of the run"
    assert run.rig.heartbeat == 5, "idle wake-ups, the ticks, the wake-up that finds the stop command"


def test_c2_nothing_is_run_or_recorded_before_arming():
    run = play([(0.0, 0.5)] * 5, arm_wake=-1)
    assert run.rig.tick == 0 and not run.rig.armed and len(run.ticks) == 0 and run.rig.lateness.count == 0
    assert run.script.now_ns == BEGIN + 6 * T, "idle wake-ups take nothing and keep the grid"


def test_c2_armed_again_the_grid_begins_anew():
    rows = [(0.0, 0.1)] * 3 + [(0.4, 0.1)] + [(0.0, 0.0)] * 3 + [(2.6, 0.1), (0.3, 0.1), (0.0, 0.1)]
    run = play(rows, again=(2, 7))
    # disarmed by the wake-up of tick 2, idle at 3.4, 4, 5, 6; the next one, due at 7, comes at 9.6
    assert run.starts == [0.0, 1.0, 2.0, 9.6, 10.9, 11.6]
    assert run.lateness == [0.0, 0.0, 0.0, 0.0, 0.3, 0.0]
    c = run.counters
    assert (c["ticks"], c["grid_points"], c["missed"]) == (6, 6, 0), "time spent disarmed is no slip"


def test_c3_lateness_is_measured_before_points_are_dropped():
    run = play([(0.0, 0.1), (3.4, 0.1), (0.25, 0.1)], policy="skip")
    assert run.lateness == [0.0, 3.4, 0.25]
    assert run.rig.lateness.count == 3 and run.rig.lateness.max_ns == round(3.4 * T)
    assert run.rig.lateness.negative == 0


def test_c4_phases_add_up_to_the_compute_time():
    rows = [(0.0, 0.01 * k, 0.02, 0.3, 0.04, 0.05, 0.06) for k in range(5)]
    run = play(rows)
    sums = [round(sum(row[1:]) * T) for row in rows]
    assert (run.rig.compute.min_ns, run.rig.compute.max_ns) == (min(sums), max(sums))
    assert sum(h.mean_ns for h in run.rig.account.phases) == pytest.approx(run.rig.compute.mean_ns)
    assert [h.count for h in run.rig.account.phases] == [5] * len(PHASES)
    for worst, row in zip(run.rig.account.worst()["by_compute"], reversed(rows), strict=True):
        assert list(worst["phase_us"].values()) == pytest.approx([x * T / 1e3 for x in row[1:]])
    # the sample record is written inside the publish phase
    assert run.ticks["compute_ns"].tolist() == [round(sum(row[1:-1]) * T) for row in rows]


def test_c5_margin_below_zero_is_an_overrun_whether_the_tick_was_long_or_late():
    run = play([(0.0, 0.4), (0.0, 1.2), (0.0, 0.1), (0.7, 0.4), (0.0, 1.0)])
    # ends at 0.4, 2.2 (due 2), 2.3, 4.1 (due 4), 5.1 (due 5; began late at 4.1)
    assert run.counters["overruns"] == 3 and run.counters["missed"] == 0
    assert run.rig.account.margin.min_ns == -round(0.2 * T) and run.rig.account.margin.negative == 3
    assert run.counters["overruns_in_row_max"] == 2
    assert run.flags == [0, 0, OVERRUN, 0, OVERRUN]


def test_c5_a_tick_that_ends_on_its_next_grid_point_is_no_overrun():
    assert play([(0.0, 1.0)] * 3).counters["overruns"] == 0


def test_c5_overruns_in_a_row_latch_the_safe_state_in_the_next_tick():
    run = play([(0.0, 0.1), *[(0.0, 1.01)] * 3, (0.0, 0.5), (0.0, 0.1)], overrun_limit=3)
    cause = run.rig.cause()
    assert (cause["cause"], cause["detail"], cause["tick"]) == ("overruns", 3, 4)
    assert not play([(0.0, 0.1), *[(0.0, 1.01), (0.0, 0.5)] * 3], overrun_limit=3).rig.safe_latched


@pytest.mark.parametrize(("delay", "late_started"), [(0.999999, 0), (1.0, 1), (1.000001, 1)])
def test_c6_missed_begins_at_one_whole_period(delay, late_started):
    run = play([(0.0, 0.0), (delay, 0.0), (0.0, 0.0), (0.0, 0.0)])
    c = run.counters
    assert (c["missed"], c["late_started"], c["dropped"]) == (late_started, late_started, 0)
    assert run.flags[1] == (MISSED if late_started else 0)


def test_c7_slip_is_the_time_of_the_dropped_points_and_simulated_time_has_no_holes():
    run = play([(0.0, 0.1), (3.4, 0.1), (0.0, 0.1), (2.5, 0.1), (0.0, 0.1)], policy="skip")
    c = run.counters
    assert c["dropped"] == 5 and c["lost_time_s"] == pytest.approx(5 * T * 1e-9)
    assert c["ticks"] + c["dropped"] == c["grid_points"] == 10
    assert run.ticks["tick"].tolist() == list(range(5))
    # simulated time + slip = wall time
    assert run.starts == [0.0, 4.4, 5.0, 8.5, 9.0]


#: policy -> starts of the ticks, lateness, (overruns, late started, dropped): the picture of the page
PICTURE = {
    ("catch_up", 5): ([0, 1, 2, 5.6, 5.7, 5.8, 6, 7], [0, 0, 0, 2.6, 1.7, 0.8, 0, 0], (3, 2, 0)),
    ("catch_up", 1): ([0, 1, 2, 5.6, 5.7, 6, 7, 8], [0, 0, 0, 2.6, 0.7, 0, 0, 0], (2, 1, 1)),
    ("skip", 5): ([0, 1, 2, 5.6, 6, 7, 8, 9], [0, 0, 0, 2.6, 0, 0, 0, 0], (1, 0, 2)),
    ("stop", 5): ([0, 1, 2, 5.6], [0, 0, 0, 2.6], (2, 1, 0)),
}


def _picture(policy: str, k: int):
    run = play(stall(), policy=policy, max_catch_up=k)
    starts, lateness, counts = PICTURE[policy, k]
    assert run.starts == starts and run.lateness == lateness
    assert tuple(run.counters[n] for n in ("overruns", "late_started", "dropped")) == counts
    return run


def test_c8_catch_up_runs_every_late_tick_at_once():
    run = _picture("catch_up", 5)
    assert run.flags == [0, 0, 0, OVERRUN | MISSED, OVERRUN | MISSED, OVERRUN, 0, 0]
    assert run.counters["lost_time_s"] == 0.0


def test_c8_what_is_further_behind_than_max_catch_up_is_dropped():
    run = _picture("catch_up", 1)
    assert run.flags == [0, 0, 0, OVERRUN | MISSED | SLIPPED, OVERRUN, 0, 0, 0]


def test_c8_permanent_overload_never_runs_more_than_max_catch_up_late_ticks_in_a_row():
    run = play([(0.0, 1.3)] * 400, max_catch_up=3)
    assert longest_row(run) == 3
    assert run.counters["dropped"] == pytest.approx(400 * 0.3, abs=5), "the slip says how much too slow the rig is"
    assert run.counters["ticks"] + run.counters["dropped"] == run.counters["grid_points"]


def test_c9_skip_serves_the_newest_point_that_has_passed():
    run = _picture("skip", 5)
    assert run.flags == [0, 0, 0, OVERRUN | MISSED | SLIPPED, 0, 0, 0, 0]
    assert run.counters["lost_time_s"] == pytest.approx(2e-9 * T)


def test_c10_stop_ends_with_one_tick_in_the_safe_state():
    run = _picture("stop", 5)
    cause = run.rig.cause()
    assert (cause["latched"], cause["cause"], cause["detail"], cause["tick"]) == (True, "missed", 2, 3)
    assert run.ticks["status"][-1] & 2 and not run.ticks["status"][-2] & 2
    assert run.rig.tick == 4 and not run.rig.running


def test_c11_grace_keeps_books_of_its_own():
    rows = [(0.0, 0.1), (0.4, 1.9), (0.0, 0.1), (0.0, 0.1), (0.0, 0.1), (0.2, 0.3), (0.0, 0.1)]
    run = play(rows, grace_ticks=5, overrun_limit=1)
    c, g = run.counters, run.counters["grace"]
    assert (c["missed"], c["overruns"], c["dropped"]) == (0, 0, 0) and not run.rig.safe_latched
    assert (g["ticks"], g["missed"], g["late_started"], g["overruns"]) == (5, 1, 1, 2)
    assert g["lateness_max_us"] == pytest.approx(1300) and g["compute_max_us"] == pytest.approx(1900)
    for h in (run.rig.lateness, run.rig.compute, run.rig.account.margin, *run.rig.account.phases):
        assert h.count == 2
    assert [w["tick"] for w in run.rig.account.worst()["by_compute"]] == [5, 6]
    assert [bool(f & GRACE) for f in run.flags] == [True] * 5 + [False] * 2


def test_c11_stop_acts_as_skip_in_the_grace_and_as_stop_after_it():
    rows = [(0.0, 0.1), (2.5, 0.1), (0.0, 0.1), (0.0, 0.1), (2.5, 0.1), (0.0, 0.1)]
    run = play(rows, policy="stop", grace_ticks=3)
    assert run.counters["grace"]["dropped"] == 2 and run.counters["grace"]["lost_time_s"] == pytest.approx(2e-9 * T)
    assert run.rig.tick == 5 and run.rig.cause()["tick"] == 4
    assert run.counters["ticks"] + 2 == run.counters["grid_points"]


def test_c12_final_spin_takes_up_lateness_below_its_length():
    rows = [(0.0, 0.1), (0.15, 0.1), (0.2, 0.1), (0.26, 0.1), (1.5, 0.1), (0.0, 0.1)]
    run = play(rows, spin_us=0.2 * T / 1e3)
    # the last wake-up has one period of lateness less its spin to make up for, and none left to sleep
    assert run.lateness == [0.0, 0.0, 0.0, 0.06, 1.3, 0.4]
    assert run.starts == [0.0, 1.0, 2.0, 3.06, 5.3, 5.4]


def test_c12_spin_longer_than_half_a_period_is_refused():
    with pytest.raises(ValueError, match="half a period"):
        Rig(4, 1e-3).set_clock(spin_us=501.0)


def test_c13_the_stop_command_runs_no_further_tick():
    run = play([(0.0, 0.1)] * 9, stop_wake=4)
    assert run.rig.tick == 4 and run.script.wakes == 5
    assert run.counters["end_ns"] == run.counters["arm_ns"] + 4 * T


def test_c14_flags_of_ticks_without_a_record_are_in_the_next_one():
    rows = stall(tick=2, length=1.4, n=12)
    every, third = play(rows), play(rows, every=3)
    assert every.flags[3] == OVERRUN and sum(every.flags) == OVERRUN
    assert third.ticks["tick"].tolist() == [0, 3, 6, 9]
    assert play(stall(tick=3, length=2.4, n=12), every=3).flags == [0, 0, OVERRUN | MISSED, 0]
    assert third.flags == [0, OVERRUN, 0, 0]


def test_c15_the_worst_32_ticks_are_those_with_the_largest_key():
    steps = [((7919 * k) % 101) / 200 for k in range(300)]
    delays = [((104729 * k) % 97) / 400 for k in range(300)]
    run = play([(d, s) for d, s in zip(delays, steps, strict=True)])
    worst = run.rig.account.worst()
    assert [len(worst[k]) for k in ("by_lateness", "by_compute")] == [32, 32]
    for key, figure, values in (
        ("by_compute", "compute_us", steps),
        ("by_lateness", "lateness_us", [0.0, *delays[1:]]),
    ):
        assert [w[figure] for w in worst[key]] == pytest.approx(
            sorted((v * T / 1e3 for v in values), reverse=True)[:32]
        )
        for w in worst[key]:
            assert w["compute_us"] == pytest.approx(steps[w["tick"]] * T / 1e3)
            assert w["phase_us"]["step"] == w["compute_us"]
            assert w["margin_us"] == pytest.approx(T / 1e3 - w["lateness_us"] - w["compute_us"])


def test_c16_the_clock_changes_no_state():
    hashes, begin = set(), BEGIN + T
    for rows in ([(0.0, 0.1)] * 20, [(0.3, 0.5)] * 20, stall(5, 3.7, 20)):
        rig = Rig(4, T * 1e-9)
        rig.set_rig_slots(2, 3, 1, 1)
        hashes.add(play(rows, rig=rig, n_ticks=20, max_catch_up=50).rig.state_hash)
    virtual = Rig(4, T * 1e-9)
    virtual.set_rig_slots(2, 3, 1, 1)
    virtual.begin(begin)
    virtual.ticks(20, begin)
    assert hashes == {virtual.state_hash}
    assert virtual.lateness.count == virtual.account.margin.count == 0 and virtual.compute.count == 20


def test_script_with_a_wrong_row_is_refused():
    for rows in ([[0, 1, 2]], [[0, -1]]):
        with pytest.raises(ValueError, match="row 0 of the script"):
            ClockScript(rows)
