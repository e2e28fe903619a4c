"""Monitors of the tick, on drives of a gearbox that is known by hand: each of them fails by an error of its kind, and
none on a drive without one. A monitor that is added without an error here fails the first test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.monitors import CLOSED
from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.monitors.catalogue import MONITORS, ONLINE
from torqueloop.hil.monitors.reading import Finding, read_recording
from torqueloop.hil.results.monitors import ElementFacts, GearboxFacts, GearFacts, MonitorSpec, ReportedSpeed

Array = NDArray[np.float64]
#: 20 s in ticks of 5 ms
TICK_S = 0.005
T = np.arange(4000) * TICK_S
D, R, N = (float(LEVERS.index(name)) for name in "DRN")
#: elements of each gear; with two others the ratio is none of them, with three they work against each other
GEARS = {"1": ("AB", 3.0, 1), "2": ("AC", 2.0, 2), "3": ("AD", 1.0, 3), "R": ("BD", -3.0, -1)}
NAMES = "ABCD"


def _closed_as(mask: int) -> int:
    closed = "".join(name for k, name in enumerate(NAMES) if mask >> k & 1)
    gear = next((k for k, (elements, *_) in enumerate(GEARS.values()) if elements == closed), None)
    if gear is not None:
        return gear
    return CLOSED["neutral"] if len(closed) < 2 else CLOSED["other"] if len(closed) == 2 else CLOSED["blocked"]


BOX = GearboxFacts(
    "box", [ElementFacts(name, 20.0) for name in NAMES],
    [GearFacts(name, number, ratio, list(elements), {}) for name, (elements, ratio, number) in GEARS.items()],
    [_closed_as(mask) for mask in range(16)], [False] * 16, 1500.0, 80.0, 700.0, 730.0,
)  # fmt: skip
FACTS = ("w_in", "w_out", "v", "a", "tau_in", "lockup_mode", "engine", "pedal", "brake", "lever", "reported", "asked",
         "request", "answer", "cause")  # fmt: skip
NUMBERS = [(float(k), float(k)) for k in (-2, -1, 0, 1, 2, 3)]
SPEC = MonitorSpec(
    BOX, {fact: fact for fact in FACTS}, reported=NUMBERS, asked=NUMBERS, pairs=[ReportedSpeed("sent", "w_out")]
)


def course(*points: tuple[float, float]) -> Array:
    """Steps: (from this time on, value)."""
    times = [t for t, _ in points]
    return np.array([v for _, v in points])[np.searchsorted(times, T + 1e-9, "right") - 1]


def closed(elements: str) -> dict[str, Array]:
    """Capacities of all elements [Nm] with these closed all the time."""
    return {f"{name}.capacity": np.full(len(T), 200.0 * (name in elements)) for name in NAMES}


def geared(*points: tuple[float, str]) -> dict[str, Array]:
    """Gears from these times on ("": on the way to the next one): their elements, the speed of the turbine, what is
    reported and asked for."""
    made: dict[str, Array] = {
        f"{name}.capacity": course(*((t, 200.0 * (name in GEARS[g][0] if g else 0)) for t, g in points))
        for name in NAMES
    }
    way = [(t, [GEARS[points[j][1]] for j in ((k,) if g else (k - 1, k + 1))]) for k, (t, g) in enumerate(points)]
    made["w_in"] = course(*((t, 100.0 * sum(ratio for _, ratio, _ in gears) / len(gears)) for t, gears in way))
    made["asked"] = course(*((t, float(gears[-1][2])) for t, gears in way))
    made["reported"] = course(*((t, float(GEARS[g][2])) for t, g in points if g))
    return made


def read(spec: MonitorSpec = SPEC, **changes: Any) -> dict[str, Finding]:
    """A drive in 1 at a steady speed, but for the changes."""
    steady = {
        "w_out": 100.0, "sent": 100.0, "v": 30.0, "a": 0.5, "tau_in": 75.0, "lockup_mode": 0.0, "engine": 300.0,
        "pedal": 0.3, "brake": 0.0, "lever": D, "request": 0.0, "answer": 0.0, "cause": 0.0,
    }  # fmt: skip
    columns: dict[str, Array] = {k: np.full(len(T), v) for k, v in steady.items()} | geared((0.0, "1"))
    columns |= {k: np.full(len(T), v) if np.isscalar(v) else v for k, v in changes.items()}
    found = read_recording(spec, columns.get, np.arange(len(T), dtype=float), TICK_S)
    assert found is not None
    return found.findings


#: an error of each kind
ERRORS: dict[str, dict[str, Any]] = {
    "direction": {"lever": R},
    "neutral": {"lever": N},
    "no_gear": {"A.capacity": course((0.0, 200.0), (5.0, 0.0)), "C.capacity": course((0.0, 0.0), (5.0, 200.0))},
    # 75 Nm x 3 / 0.3 m / 1500 kg = 0.5 m/s2
    "tie_up": {"C.capacity": course((0.0, 0.0), (5.0, 200.0), (5.3, 0.0)),
               "a": course((0.0, 0.5), (5.0, -2.0), (5.3, 0.5))},
    "flare": geared((0.0, "1"), (5.0, ""), (5.3, "2")) | {"w_in": course((0.0, 300.0), (5.0, 380.0), (5.3, 200.0))},
    "hunting": geared(*((0.0, "1"), (5.0, "2"), (5.8, "1"), (6.6, "2"), (7.4, "1"))),
    "shift_time": geared((0.0, "1"), (5.0, ""), (7.0, "2")),
    "other_gear": {"reported": 2.0},
    "skipped": geared((0.0, "1"), (5.0, ""), (5.5, "3")) | {"asked": course((0.0, 1.0), (5.0, 2.0))},
    "slip": {"w_in": 310.0},
    "no_drive": {**closed("A"), "w_out": 0.0, "v": 0.0, "w_in": 90.0},
    "engine_speed": {"engine": 710.0},
    "stall": {"engine": course((0.0, 300.0), (5.0, 30.0))},
    "lock_up": {**geared((0.0, "3")), "lockup_mode": 1.0},
    "park": {"reported": -2.0},
    "unanswered": {"request": course((0.0, 0.0), (5.0, 1.0))},
    "late_answer": {"request": course((0.0, 0.0), (5.0, 1.0), (5.1, 0.0), (6.0, 1.0), (6.1, 0.0))},
    "reported_speed": {"sent": 50.0},
    "interrupted": geared((0.0, "1"), (5.0, ""), (5.6, "1")) | {
        "reported": 1.0, "asked": course((0.0, 1.0), (4.8, 2.0), (5.4, 1.0)),
        "w_in": course((0.0, 300.0), (5.0, 260.0), (5.6, 300.0))},
}  # fmt: skip


def failed(findings: dict[str, Finding]) -> set[str]:
    return {name for name, f in findings.items() if f.failed}


def test_every_monitor_has_an_error_that_it_is_seen_to_fail_by() -> None:
    """Those of the tick here; those of the recording in their own tests, or among the planted defects."""
    assert set(ERRORS) == {m.name for m in ONLINE}
    tests = Path(__file__).parents[1]
    own = ("unit/test_drive_monitors.py", "unit/test_element_monitors.py", "hil/planted.py")
    seen = "".join((tests / name).read_text() for name in own)
    assert [m.name for m in MONITORS if not m.online and f'"{m.name}"' not in seen] == []


def test_nothing_is_wrong_with_a_steady_drive_or_with_shifts_in_time() -> None:
    steady = read()
    assert failed(steady) == set() and sum(f.reached > 0 for f in steady.values()) > 12
    up = geared((0.0, "1"), (5.0, ""), (5.4, "2"), (9.0, ""), (9.4, "3"), (14.0, ""), (14.4, "2"))
    assert failed(read(**up)) == set()


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_its_kind_fails_the_monitor(name: str) -> None:
    assert name in failed(read(**ERRORS[name]))


@pytest.mark.parametrize("name", ERRORS)
def test_nothing_is_looked_at_in_the_safe_state(name: str) -> None:
    """The rig opens the elements itself there; what failed before stays."""
    assert failed(read(**ERRORS[name], cause=1.0)) == set()
    late = read(**ERRORS[name], cause=course((0.0, 0.0), (19.0, 1.0)))[name]
    assert late.failed and late.first == read(**ERRORS[name])[name].first


def test_the_engine_s_speed_counts_in_the_highest_gear_where_the_engine_drives() -> None:
    """Where the wheels drive it there, downhill, no gear is left that would end it; in lower gears there is one."""
    top = geared((0.0, "3"))
    assert failed(read(**top, engine=710.0)) == {"engine_speed"}
    assert failed(read(**top, engine=710.0, tau_in=-40.0)) == set()
    assert failed(read(engine=710.0, tau_in=-40.0)) == {"engine_speed"}
    back = geared((0.0, "R")) | {
        "lever": R,
        "v": -30.0,
        "w_out": -100.0,
        "sent": -100.0,
        "w_in": 300.0,
        "engine": 710.0,
    }
    assert failed(read(**back)) == {"engine_speed"}
    assert failed(read(**back, tau_in=-40.0)) == set()


def test_without_a_gear_the_engine_may_be_turned_up_to_where_its_governor_has_cut_the_fuel() -> None:
    """What slips on the way into a gear drives it against its governor; the gear at the end is judged by its limit."""
    between = geared((0.0, "1"), (5.0, ""), (5.4, "2"))
    assert failed(read(**between, engine=course((0.0, 500.0), (5.1, 730.0), (5.3, 500.0)))) == set()
    assert failed(read(**between, engine=course((0.0, 500.0), (5.1, 740.0), (5.3, 500.0)))) == {"engine_speed"}
    assert failed(read(**between, engine=course((0.0, 500.0), (5.1, 730.0), (5.6, 500.0)))) == {"engine_speed"}


def test_a_drive_whose_first_gear_is_never_engaged_has_no_gear_in_time() -> None:
    """An element of it slips from the start on; in reverse there is no such judgement."""
    slips = geared((0.0, "1")) | {"w_in": 340.0}
    assert "shift_time" in failed(read(**slips))
    assert "shift_time" not in failed(read(**slips, pedal=0.0))


def test_ways_back_before_and_behind_a_move_of_the_driver_are_not_counted_together() -> None:
    """Hunting is twice within 4 s while lever and pedals rest (hil/monitors/catalogue.py)."""
    gears = geared((0.0, "1"), (5.0, "2"), (5.6, "1"), (8.2, "2"), (8.8, "1"))
    assert failed(read(**gears)) == {"hunting"}
    assert failed(read(**gears, pedal=course((0.0, 0.3), (5.8, 0.4)))) == set()


def test_gears_that_change_at_standstill_hunt_as_well_but_one_way_back_is_none() -> None:
    stands = {"w_out": 0.0, "sent": 0.0, "v": 0.0, "w_in": 0.0, "pedal": 0.0, "brake": 0.3}
    assert failed(read(**ERRORS["hunting"] | stands)) == {"hunting"}
    once = geared((0.0, "2"), (5.0, "1"), (7.0, "2"))
    assert failed(read(**once | stands)) == set()


def test_a_unit_may_wait_for_an_engine_that_was_fast_before_the_lever_was_moved() -> None:
    """Full throttle in N, then D: nothing is asked for until the turbine, which turns with the engine in N, is slow."""
    n = closed("A") | {
        "w_out": 0.0,
        "v": 0.0,
        "sent": 0.0,
        "lever": course((0.0, N), (5.0, D)),
        "reported": 0.0,
        "asked": 0.0,
    }
    assert failed(read(**n, w_in=course((0.0, 650.0)))) == set()
    assert "no_drive" in failed(read(**n, w_in=course((0.0, 650.0), (8.0, 90.0))))
    # 0.3 of the limit of 700 rad/s, or the speed from which the control unit waits, if that is less
    for spec, from_on in ((SPEC, 210.0), (replace(SPEC, engine_above_radps=150.0), 150.0),
                          (replace(SPEC, engine_above_radps=600.0), 210.0)):  # fmt: skip
        assert failed(read(spec, **n, w_in=course((0.0, from_on + 1.0)))) == set()
        assert "no_drive" in failed(read(spec, **n, w_in=course((0.0, from_on - 1.0))))
    assert "no_drive" in failed(read(**n, w_in=course((0.0, 90.0), (5.5, 650.0)))), "it raced because no gear came"
    rolls = n | {"v": course((0.0, 0.0), (4.5, -1.2), (6.0, -0.4))}
    assert failed(read(**rolls, w_in=course((0.0, 90.0), (5.5, 650.0)))) == set(), "it rolled the other way then"


def test_a_stop_is_no_shift() -> None:
    """Braked to a stop in 2-1: the speeds have the ratio of 1st before the band of 2nd is open. It holds on at rest,
    where every ratio fits."""
    rolls = course((0.0, 20.0), (5.0, 4.0), (5.5, 0.0))
    ratio = course((0.0, 3.0), (3.0, 2.0), (5.0, 3.0))
    others = {"B.capacity": course((0.0, 200.0), (3.0, 0.0), (6.5, 200.0)),
              "C.capacity": course((0.0, 0.0), (3.0, 200.0), (6.5, 0.0))}  # fmt: skip
    stop = closed("A") | others | {"w_out": rolls, "w_in": rolls * ratio, "sent": rolls, "v": 0.3 * rolls,
                                   "pedal": 0.0, "brake": 0.3}  # fmt: skip
    assert failed(read(**stop)) == set()
