"""Monitors of a whole drive, on drives whose numbers are known by hand: what is seen, when first, the worst of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report.analysis import Band, Shift
from torqueloop.hil.report.drive import Drive, Seen, drive_of
from torqueloop.hil.report.drive_monitors import JUDGES
from torqueloop.hil.report.jerk import jerk
from torqueloop.hil.report.shift_quality import ShiftQuality
from torqueloop.hil.results.monitors import MonitorSpec, ShiftSchedule
from torqueloop.hil.results.run import RunStats, SolverStats

#: 20 s in samples of 10 ms
T = np.arange(2001) * 0.01
#: a gear is engaged all the time
HELD = [Band(0.0, 20.0, "1")]
RATIOS = {"1": 3.0, "2": 2.0, "3": 1.0}
#: 1-2 and 2-3 at pedal 0 and 1, down lines below
SCHEDULE = ShiftSchedule(
    up={"1-2": [(0.0, 60.0), (1.0, 160.0)], "2-3": [(0.0, 120.0), (1.0, 320.0)]},
    down={"2-1": [(0.0, 20.0), (1.0, 60.0)], "3-2": [(0.0, 50.0), (1.0, 100.0)]},
    kick_down={"3-2": 150.0}, kick_down_on=0.9, kick_down_off=0.7, upshift_brake=0.05, turbine_max_radps=500.0,
    turbine_force_up_radps=400.0, gear_time_s=0.5, shifts=["1-2", "2-3", "3-2", "2-1"],
)  # fmt: skip


def drive(**given: Any) -> Drive:
    """Everything at rest but for what is given; no column equals another."""
    D = float(LEVERS.index("D"))
    values: dict[str, Any] = {
        "t": T, "w_in": None, "w_out": np.full(len(T), 50.0), "v": None, "a": None, "pedal": np.full(len(T), 0.5),
        "brake": np.full(len(T), 0.0), "lever": np.full(len(T), D), "bands": [], "shifts": [], "quality": [],
        "ratios": RATIOS, "stats": RunStats(), "column": lambda name: None, "cut_short": False,
    }  # fmt: skip
    if {"a", "column"} & set(given):
        values["bands"] = HELD
    return Drive(**(values | given))


def seen(name: str, d: Drive, limit: float = 0.0, **spec: Any) -> Seen | None:
    return JUDGES[name](MonitorSpec(**spec), d, limit)


def between(begin: float, end: float) -> Any:
    return (begin - 1e-6 < T) & (end + 1e-6 > T)


def quality(begin: float, end: float, old: str = "1", new: str = "2") -> ShiftQuality:
    return ShiftQuality(old, new, begin, end, end - begin, *[None] * 8)  # type: ignore[arg-type]


# --- columns ----------------------------------------------------------------------------------------------------------


def recorded(cause: Any = None, n: int = 500) -> Signals:
    """5 s in ticks of 10 ms; no column equals another."""
    names = ["engine.w", "turbine.w", "out.w", "car.v", "car.a", "d.pedal", "d.brake", "d.lever", "BUS.x", "rig.cause"]
    records = np.zeros(n, signal_dtype(len(names)))
    records["tick"] = np.arange(n)
    records["out"][:] = np.arange(n)[:, None] + 1000.0 * np.arange(len(names))
    records["out"][:, -1] = 0.0 if cause is None else np.where(np.arange(n) < cause, 0.0, 3.0)
    return Signals.of(names, dict.fromkeys(names, "1"), 0.01, records)


FACTS = {"pedal": "d.pedal", "brake": "d.brake", "lever": "d.lever", "cause": "rig.cause"}


@pytest.mark.parametrize(("cause", "kept"), [(None, 500), (250, 250), (1, 2), (0, 2)])
def test_a_drive_is_looked_at_until_the_rig_goes_to_its_safe_state(cause: int | None, kept: int) -> None:
    bands = [Band(0.5, 2.0, "1"), Band(2.2, 4.9, "2"), Band(4.95, 5.0, "3")]
    gears = [Shift("1", "2", 2.0, 2.2), Shift("2", "3", 2.45, 4.95)]
    q = [quality(2.0, 2.2), quality(2.45, 4.95)]
    d = drive_of(MonitorSpec(signals=FACTS, duration_s=5.0), recorded(cause), RunStats(), bands, gears, q, RATIOS)
    found = (d.t, d.w_in, d.w_out, d.v, d.a, d.pedal, d.brake, d.lever, d.column("BUS.x"), d.column("OTHER.car.v"))
    for x, column in zip(found, (None, 1, 2, 3, 4, 5, 6, 7, 8, 3), strict=True):
        wanted = (np.arange(kept) + 1) * 0.01 if column is None else np.arange(kept) + 1000.0 * column
        np.testing.assert_allclose(x, wanted)
    end = kept * 0.01
    assert [(b.begin_s, b.end_s) for b in d.bands] == [
        (b.begin_s, pytest.approx(min(b.end_s, end))) for b in bands if b.begin_s <= end]  # fmt: skip
    complete = {500: 2, 250: 1, 2: 0}[kept]
    assert (list(d.shifts), list(d.quality), d.cut_short) == (gears[:complete], q[:complete], kept < 500)


@pytest.mark.parametrize(("longer_s", "cut_short"), [(-1.0, False), (0.0, False), (0.012, False), (0.02, True)])
def test_a_drive_is_cut_short_if_more_than_a_tick_and_a_half_of_it_is_missing(longer_s: float, cut_short: bool) -> None:
    d = drive_of(MonitorSpec(duration_s=5.0 + longer_s), recorded(), RunStats(), [], [], [], RATIOS)
    assert d.cut_short == cut_short and (d.pedal, d.brake, d.lever) == (None, None, None)


# --- motion -----------------------------------------------------------------------------------------------------------


def moved_lever(*times: float) -> Any:
    """The lever goes between D and M at these times."""
    turns = sum((times_at - 1e-6 < T).astype(int) for times_at in times)
    return np.where(turns % 2 == 0, float(LEVERS.index("D")), float(LEVERS.index("M")))


def test_a_lever_is_at_rest_when_a_gear_has_been_engaged_for_so_long_since_it_was_moved() -> None:
    d = drive(lever=moved_lever(2.0, 5.0), bands=HELD)
    np.testing.assert_array_equal(~d.lever_at_rest(1.0), between(0.0, 1.0) | between(2.0, 3.0) | between(5.0, 6.0))
    assert drive(lever=None, bands=HELD).lever_at_rest(1.0)[101:].all()
    # the next gear is engaged at 3.5 s; from 5 s on none any more
    d.bands = [Band(0.0, 2.1, "1"), Band(3.5, 5.2, "2")]
    np.testing.assert_array_equal(~d.lever_at_rest(1.0), between(0.0, 1.0) | between(2.0, 4.5) | between(5.0, 20.0))


def test_the_gear_that_counts_is_one_that_the_lever_asks_for() -> None:
    """N from 2 s on, in which the speeds keep the ratio of 1st, R from 5 s on, engaged at 9 s."""
    D, N, R = (float(LEVERS.index(name)) for name in "DNR")
    d = drive(lever=np.select([between(0.0, 1.99), between(2.0, 4.99)], [D, N], R))
    d.bands = [Band(0.0, 8.0, "1"), Band(9.0, 20.0, "R")]
    np.testing.assert_array_equal(~d.lever_at_rest(1.0), between(0.0, 1.0) | between(2.0, 10.0))


@pytest.mark.parametrize(("peaks", "at", "text"), [
    ({4.0: -13.0, 12.0: 9.0}, 4.0, "-13.00"), ({4.0: -8.0, 12.0: 9.0}, 12.0, "+9.00"),
    ({4.0: 1.0}, 4.0, "+1.00"), ({9.5: 30.0, 4.0: 2.0}, 4.0, "+2.00"),
])  # fmt: skip
def test_the_peak_of_the_acceleration_is_the_largest_amount_where_the_lever_rests(
    peaks: dict[float, float], at: float, text: str
) -> None:
    a = np.zeros(len(T))
    for time, value in peaks.items():
        a[between(time, time)] = value
    # 9.5 s is within 3 s behind a move of the lever
    s = seen("acceleration", drive(a=a, lever=moved_lever(8.0, 8.5)), 12.0)
    assert s is not None and s.failed == (abs(peaks[at]) > 12.0) and text in s.text
    assert (s.first_s, s.worst) == (pytest.approx(at), abs(peaks[at]))
    assert not s.failed or f"at {at:.3f} s" in s.text


#: levels before and behind, peak up, peak down, both in the shift from 5 to 6 s; how much is beyond
BUMPS = [(2.0, 1.0, 2.7, 1.0, 0.7), (1.0, 2.0, 2.3, 0.4, 0.6), (2.0, 1.0, 2.1, -0.5, 1.5), (1.5, 1.5, 1.6, 1.3, 0.2),
         (2.0, 1.0, 1.9, 1.1, 0.0)]  # fmt: skip


def bumpy(before: float, behind: float, high: float, low: float, at: float = 5.0) -> Any:
    a = np.where(at + 0.15 > T, before, behind)
    a[between(at + 0.3, at + 0.4)], a[between(at + 0.5, at + 0.6)] = high, low
    return a


@pytest.mark.parametrize(("before", "behind", "high", "low", "beyond"), BUMPS)
def test_a_hard_shift_goes_beyond_both_levels(
    before: float, behind: float, high: float, low: float, beyond: float
) -> None:
    d = drive(a=bumpy(before, behind, high, low), quality=[quality(5.0, 6.0)])
    s = seen("shift_hard", d, 0.1)
    assert s is not None and s.worst == pytest.approx(beyond) and s.failed == (beyond > 0.1)
    assert f"{beyond:.2f} m/s²" in s.text and s.first_s == (6.0 if s.failed else None)
    assert not s.failed or s.text.startswith("1→2 at 5.00 s is hard: ")
    assert seen("shift_hard", replace(d, a=None), 0.1) is None


def test_levels_around_a_shift_are_means_of_a_tenth_of_a_second_of_which_the_nearest_counts() -> None:
    """From 4.7 s on the level falls from 2 to 1 m/s2; what comes 0.6 s behind the shift is of another time."""
    a = np.where(T < 4.7, 2.0, np.where(T < 5.15, 1.0, 1.5))
    a[between(5.3, 5.4)], a[between(5.7, 5.8)], a[between(6.65, 7.9)] = 2.7, 0.2, 9.0
    for extra, beyond in ((0.0, 0.8), (-4.0, 0.7)):  # one sample of -4 m/s2 is 0.4 of a mean of ten
        a[between(4.85, 4.85)] = 1.0 + extra
        s = seen("shift_hard", drive(a=a, quality=[quality(5.0, 6.0)]), 0.1)
        assert s is not None and s.worst == pytest.approx(beyond), extra
    shift = replace(quality(5.0, 6.0), jerk=100.0)
    a[between(4.85, 4.85)] = 1.0
    # the step from the level that is furthest off
    for given, step in (({"a": a}, 0.5), ({"a": a + np.where(T < 5.15, 0.0, 3.0)}, 3.5), ({"bands": HELD}, 0.0)):
        s = seen("shift_jerk", drive(quality=[shift], **given), 1.0)
        assert s is not None and s.worst == pytest.approx(100.0 - 0.75 / 0.029 * step)


@pytest.mark.parametrize(("at", "judged"), [(4.4, True), (4.7, False), (6.4, False), (6.7, True)])
def test_a_shift_near_which_the_driver_moves_the_pedal_is_his(at: float, judged: bool) -> None:
    pedal = np.where(between(at, at + 0.05), 0.06, 0.0)
    s = seen("shift_hard", drive(a=bumpy(1.0, 1.0, 3.0, 1.0), quality=[quality(5.0, 6.0)], pedal=pedal), 1.5)
    assert (s is not None and s.failed) == judged


def test_the_worst_of_all_shifts_is_told_and_none_in_which_the_driver_acts() -> None:
    a = bumpy(1.0, 1.0, 1.8, 1.0)
    for at, high in ((9.0, 4.0), (13.0, 2.5)):
        a[between(at + 0.3, at + 0.4)] = high
    shifts = [quality(5.0, 6.0), quality(9.0, 10.0, "2", "3"), quality(13.0, 14.0, "3", "2")]
    s = seen("shift_hard", drive(a=a, quality=shifts), 1.0)
    assert s is not None and s.failed and s.worst == pytest.approx(3.0) and s.first_s == 10.0 and "2→3" in s.text
    for name in ("brake", "pedal"):
        moved = np.where(between(9.5, 9.6), 0.5, 0.3)
        s = seen("shift_hard", drive(a=a, quality=shifts, **{name: moved}), 1.0)
        assert s is not None and s.worst == pytest.approx(1.5) and "3→2" in s.text and s.first_s == 14.0


@pytest.mark.parametrize(("pedal", "lever", "share"), [
    (0.0, "D", 0.4), (0.1, "D", 0.7), (0.2, "D", 1.0), (0.9, "D", 1.0), (0.0, "2", 1.0),
])  # fmt: skip
def test_the_limit_of_a_hard_shift_is_a_line_over_the_pedal(pedal: float, lever: str, share: float) -> None:
    """2 m/s2 beyond both levels; a gear that the driver asks for has the whole limit."""
    d = drive(a=bumpy(1.0, 1.0, 3.0, 1.0), quality=[quality(5.0, 6.0)], pedal=np.full_like(T, pedal),
              lever=np.full_like(T, LEVERS.index(lever)))  # fmt: skip
    for limit, failed in ((2.0 / share + 0.01, False), (2.0 / share - 0.01, True)):
        s = seen("shift_hard", d, limit)
        assert s is not None and s.failed is failed and s.worst == pytest.approx(2.0 / share)


def test_of_two_shifts_the_one_that_is_harder_for_its_pedal_is_told() -> None:
    a = bumpy(1.0, 1.0, 1.8, 1.0)
    a[between(9.3, 9.4)] = 2.5
    shifts = [quality(5.0, 6.0), quality(9.0, 10.0, "2", "1")]
    s = seen("shift_hard", drive(a=a, quality=shifts, pedal=np.where(T < 7.5, 0.0, 0.4)), 1.9)
    assert s is not None and s.failed and s.worst == pytest.approx(2.0) and "1→2" in s.text
    assert "0.80 m/s² beyond" in s.text and "the limit at this pedal is 0.8 m/s²" in s.text


def test_an_abrupt_shift_is_the_fastest_change_of_the_turbine_speed() -> None:
    w = np.interp(T, [5.0, 5.5, 9.0, 9.04, 12.0, 12.02], [300.0, 200.0, 200.0, 140.0, 140.0, 128.0])
    shifts = [Shift("1", "2", 5.0, 5.5), Shift("2", "3", 9.0, 9.04), Shift("3", "2", 12.0, 12.02)]
    # 100/0.5, 60/0.04; 12 rad/s are not felt
    s = seen("shift_abrupt", drive(w_in=w, bands=HELD, shifts=shifts), 1000.0)
    assert s is not None and s.failed and s.worst == pytest.approx(1500.0) and s.first_s == 9.0
    assert "2→3 at 9.00 s takes 40 ms" in s.text and "1500 rad/s²" in s.text
    s = seen("shift_abrupt", drive(w_in=w, bands=HELD, shifts=[shifts[0], shifts[2]]), 1000.0)
    assert s is not None and not s.failed and s.worst == pytest.approx(200.0) and s.text == "1→2: 200 rad/s²"
    # the torque path has come back with the lever
    moved = np.where(between(8.0, 8.9), LEVERS.index("N"), LEVERS.index("D"))
    s = seen("shift_abrupt", drive(w_in=w, bands=HELD, shifts=shifts, lever=moved), 1000.0)
    assert s is not None and not s.failed and s.text == "1→2: 200 rad/s²"


def test_a_late_shift_is_longer_than_its_phases_while_the_pedal_is_pressed() -> None:
    shifts = [Shift("1", "2", 2.0, 4.0), Shift("2", "3", 6.0, 9.0), Shift("3", "2", 12.0, 16.0)]
    each = {"1-2": 1.5, "2-3": 1.0, "3-2": 5.0}
    s = seen("shift_length", drive(shifts=shifts), 0.1, shift_each_s=each)
    assert s is not None and s.failed and s.worst == pytest.approx(2.0) and s.first_s == 2.0
    assert "1→2 at 2.00 s lasts 2.00 s, its phases 1.50 s; 2→3 at 6.00 s lasts 3.00 s, its phases 1.00 s" == s.text
    s = seen("shift_length", drive(shifts=shifts), 2.5, shift_each_s=each)
    assert s is not None and not s.failed and s.text == "longest 3→2: 4.00 s" and s.worst == 0.0
    # without the pedal for a part of it: the longer of the two stretches counts; and standing
    let = drive(shifts=shifts, pedal=np.where(between(6.5, 7.0), 0.0, 0.5))
    s = seen("shift_length", let, 0.1, shift_each_s={"2-3": 0.5})
    assert s is not None and s.worst == pytest.approx(1.49, abs=0.011)
    still = drive(shifts=shifts, w_out=np.zeros(len(T)))
    s = seen("shift_length", still, 0.1, shift_each_s=each)
    assert s is not None and not s.failed


# --- gears ------------------------------------------------------------------------------------------------------------


def changed(old: str, new: str, w_out: float, pedal: float, **given: Any) -> Drive:
    """A shift from 5 to 5.5 s at an output speed and a pedal."""
    w = np.full(len(T), w_out)
    return drive(
        w_out=w, w_in=w * RATIOS[old], pedal=np.full(len(T), pedal), shifts=[Shift(old, new, 5.0, 5.5)], **given
    )


#: change, output speed, pedal; asked for? Lines: 1-2 at 110 for half a pedal, 3-2 at 75, with kick-down 150
CHANGES = [("1", "2", 115.0, 0.5, True), ("1", "2", 100.0, 0.5, False), ("1", "2", 130.0, 1.0, False),
           ("2", "3", 230.0, 0.5, True), ("2", "3", 190.0, 0.5, False), ("3", "2", 70.0, 0.5, True),
           ("3", "2", 90.0, 0.5, False), ("3", "2", 140.0, 0.8, True), ("3", "2", 140.0, 0.6, False),
           ("2", "1", 35.0, 0.5, True), ("2", "1", 60.0, 0.5, False), ("1", "2", 140.0, 1.0, True),
           ("1", "3", 230.0, 0.5, None), ("2", "3", 205.0, 1.0, True)]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "w", "pedal", "asked"), CHANGES)
def test_a_change_of_gear_is_asked_for_by_its_line(old: str, new: str, w: float, pedal: float, asked: bool) -> None:
    s = seen("schedule", changed(old, new, w, pedal), schedule=SCHEDULE)
    assert s is not None and s.failed == (asked is not True)
    if s.failed:
        what = "is not a shift of the control unit" if asked is None else "is not required by the schedule"
        assert s.text == f"{old}→{new} at 5.00 s {what}" and (s.first_s, s.worst) == (5.0, 1.0)
    # sensors tell no direction
    d = changed(old, new, w, pedal)
    assert d.w_in is not None and d.w_out is not None
    d.w_in, d.w_out = -d.w_in, -d.w_out
    assert seen("schedule", d, schedule=SCHEDULE) == s
    # where the car stands at any time of the shift, every ratio fits
    for at, judged in ((4.9, True), (5.05, False), (5.25, False), (5.45, False), (5.6, True)):
        d = changed(old, new, w, pedal)
        assert d.w_out is not None
        d.w_out = np.where(between(at, at + 0.02), 1.0, d.w_out)
        s = seen("schedule", d, schedule=SCHEDULE)
        assert s is not None and (judged or not s.failed), at
        assert not judged or asked is None or at < 5.0 or s.failed == (not asked), at
    # the driver's lever has a say in it
    s = seen("schedule", changed(old, new, w, pedal, lever=moved_lever(4.0)), schedule=SCHEDULE)
    assert s is not None and not s.failed


#: when the monitors of the tick see gear 1 and gear 2 engaged; the shift is looked at. It goes from 5 to 5.5 s
SIGHTS = [((4.85, 4.95), (5.55, 5.65), True), ((3.0, 4.7), (5.55, 5.65), False), ((5.1, 5.4), (5.55, 5.65), False),
          ((4.85, 4.95), (5.1, 5.4), False), ((4.85, 4.95), (5.8, 9.0), False)]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "judged"), SIGHTS)
def test_a_ratio_that_the_speeds_only_cross_is_no_gear(first: Any, second: Any, judged: bool) -> None:
    """The gear before must be engaged in the last 0.2 s of its ratio, the other one in the first 0.2 s of its own."""
    gears = {"monitor.gear": np.where(between(*first), 1.0, np.where(between(*second), 2.0, 0.0))}
    s = seen("schedule", changed("1", "2", 100.0, 0.5, column=gears.get, bands=[]), schedule=SCHEDULE)
    assert s is not None and s.failed == judged


@pytest.mark.parametrize(("old", "new", "between_them", "wrong"), [
    ("1", "3", (4.0, 12.0), ""), ("3", "1", (5.2, 12.0), ""), ("1", "3", (2.5, 12.0), "not a shift"),
    ("1", "3", (5.2, 13.0), "not a shift"), ("3", "1", (5.6, 12.0), "not a shift"), ("1", "2", (4.0, 13.0), ""),
    ("2", "1", (4.0, 13.0), "not a shift"),
])  # fmt: skip
def test_a_gear_between_that_was_asked_for_is_part_of_the_way(
    old: str, new: str, between_them: tuple[float, float], wrong: str
) -> None:
    """The control unit asks for gear 2 (12) or 3 (13) for 0.25 s, from 2 s before the shift to its end."""
    at, word = between_them
    asked = np.where(between(at, at + 0.25), word, np.where(T < at, 10.0 + float(old), 10.0 + float(new)))
    one_way = replace(SCHEDULE, shifts=["1-2", "2-3"] if old < new else ["3-2", *(["2-1"] if old == "3" else [])])
    d = changed(old, new, 230.0 if old < new else 30.0, 0.5, column={"TCU.asked": asked}.get, bands=[])
    s = seen("schedule", d, schedule=one_way, signals={"asked": "TCU.asked"},
             asked=[(10.0 + k, float(k)) for k in range(1, 4)])  # fmt: skip
    assert s is not None and s.failed == bool(wrong) and wrong in s.text


@pytest.mark.parametrize(("begin", "end", "asked"), [(3.1, 3.4, True), (4.0, 4.3, True), (5.1, 5.4, True),
                                                     (2.5, 2.9, False), (5.6, 9.0, False)])  # fmt: skip
def test_a_shift_may_be_asked_for_up_to_two_seconds_before_it(begin: float, end: float, asked: bool) -> None:
    d = changed("1", "2", 100.0, 0.5)
    d.w_out = np.where(between(begin, end), 115.0, d.w_out)
    s = seen("schedule", d, schedule=SCHEDULE)
    assert s is not None and s.failed != asked


def test_what_was_not_recorded_is_left_out_and_the_rest_judged() -> None:
    kept = {"w_out": np.full(len(T), 230.0), "w_in": np.full(len(T), 460.0), "bands": [Band(1.0, 15.0, "2")]}
    late = {"shifts": [Shift("1", "2", 2.0, 4.0)]}
    for name, given, spec in (("schedule", kept, {"schedule": SCHEDULE}),
                              ("schedule", late | {"w_in": T, "w_out": 100.0 + 0.0 * T}, {"schedule": SCHEDULE}),
                              ("shift_length", late, {"shift_each_s": {"1-2": 1.0}})):  # fmt: skip
        whole, without_brake = (seen(name, drive(**given, **more), **spec) for more in ({}, {"brake": None}))
        assert whole is not None and whole.failed and without_brake == whole
        without_pedal = seen(name, drive(**given, pedal=None), **spec)
        assert without_pedal is not None and without_pedal.failed == (name == "shift_length")


def test_the_first_three_wrong_shifts_are_told_and_how_many_more_there_are() -> None:
    times = [12.0, 3.0, 6.0, 15.0, 9.0]
    d = changed("1", "2", 100.0, 0.5)
    d.shifts = [Shift("1", "2", at, at + 0.5) for at in times]
    s = seen("schedule", d, schedule=SCHEDULE)
    wanted = [f"1→2 at {at:.2f} s is not required by the schedule" for at in (3.0, 6.0, 9.0)]
    assert s is not None and s.text == "; ".join([*wanted, "2 more"]) and (s.first_s, s.worst) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("old", "new", "fine"), [("1", "2", True), ("2", "3", True), ("3", "1", True), ("1", "3", False)]
)
def test_without_a_schedule_no_gear_is_left_out_upwards(old: str, new: str, fine: bool) -> None:
    s = seen("schedule", changed(old, new, 115.0, 0.5))
    assert s is not None and s.failed != fine
    assert fine or s.text == "1→3 at 5.00 s leaves out a gear"


#: gear, output speed, pedal; what is due: a line must be passed by 2 % and 1.5 rad/s
KEPT = [("1", 115.0, 0.5, "1→2"), ("1", 111.0, 0.5, ""), ("2", 230.0, 0.5, "2→3"), ("2", 222.0, 0.5, ""),
        ("3", 70.0, 0.5, "3→2"), ("3", 74.0, 0.5, ""), ("3", 140.0, 0.95, "3→2"), ("3", 140.0, 0.8, ""),
        ("2", 36.0, 0.5, "2→1"), ("2", 39.0, 0.5, ""), ("2", 70.0, 0.5, "")]  # fmt: skip


@pytest.mark.parametrize(("gear", "w_out", "pedal", "due"), KEPT)
def test_a_gear_that_is_kept_although_another_is_due(gear: str, w_out: float, pedal: float, due: str) -> None:
    # from 6 to 9 s at this speed, before and behind between all lines of the gear
    quiet = {"1": 50.0, "2": 80.0, "3": 180.0}[gear]
    w = np.where(between(6.0, 9.0), w_out, quiet)
    d = drive(
        w_out=w, w_in=w * RATIOS[gear], pedal=np.where(between(6.0, 9.0), pedal, 0.5), bands=[Band(1.0, 15.0, gear)]
    )
    s = seen("schedule", d, schedule=SCHEDULE)
    assert s is not None and s.failed == bool(due)
    if due:
        assert s.text == f"{due} is due from 6.00 s on, gear {gear} stays to 9.00 s" and s.first_s == pytest.approx(6.0)
    # sensors tell no direction: a car that rolls back in its gear is judged by the same lines
    d.w_in, d.w_out = -d.w_in, -d.w_out
    back = seen("schedule", d, schedule=SCHEDULE)
    assert back == s
    # while the driver brakes more than `upshift_brake`, the unit shifts down, but not up
    d.brake = np.full(len(d.t), 0.06)
    s = seen("schedule", d, schedule=SCHEDULE)
    assert s is not None and s.failed == (due in ("3→2", "2→1"))
    d.brake = np.full(len(d.t), 0.04)
    assert seen("schedule", d, schedule=SCHEDULE) == back
    # half a second and 2 s are allowed
    d.w_out = np.where(between(6.0, 8.4), w_out, quiet)
    d.w_in = d.w_out * RATIOS[gear]
    s = seen("schedule", d, schedule=SCHEDULE)
    assert s is not None and not s.failed


def test_no_shift_down_is_due_that_turns_the_turbine_too_fast() -> None:
    w = np.full(len(T), 70.0)
    d = drive(w_out=w, w_in=w, bands=[Band(1.0, 15.0, "3")])
    slow = ShiftSchedule(**{**vars(SCHEDULE), "turbine_max_radps": 140.0})
    for schedule, failed in ((SCHEDULE, True), (slow, False)):
        s = seen("schedule", d, schedule=schedule)
        assert s is not None and s.failed == failed


def test_the_highest_gear_is_reached_in_the_whole_drive_only() -> None:
    bands = [Band(1.0, 3.0, "1"), Band(4.0, 8.0, "3"), Band(9.0, 15.0, "2")]
    d = drive(w_in=T, bands=bands)
    s = seen("reaches", d, reaches=3)
    assert s is not None and not s.failed and s.text == "gear 3"
    s = seen("reaches", d, 1.0, reaches=5)
    assert s is not None and s.failed and s.worst == 2.0 and "the highest is 3" in s.text and s.first_s == 20.0
    assert seen("reaches", drive(w_in=T, bands=bands, cut_short=True), reaches=5) is None


# --- actuators and steps -------------------------------------------------------------------------------------------


def test_the_jerk_of_a_shift_counts_beyond_that_of_a_step_between_its_levels() -> None:
    """A step of 2 m/s2 from 4.2 s on; the jerk of hil/report/jerk.py of such a step is 0.75 / 0.029 s times as much."""
    shaken, soft = replace(quality(4.0, 5.0), jerk=250.0), replace(quality(9.0, 10.0), jerk=80.0)
    a = np.where(T > 4.2, 3.0, 1.0)
    s = seen("shift_jerk", drive(quality=[shaken, soft], bands=HELD, a=a), 130.0)
    assert s is not None and s.failed and s.worst == pytest.approx(250.0 - 51.7, abs=0.05) and s.first_s == 5.0
    assert s.text == ("1→2 at 4.00 s shakes the car: the jerk reaches 250 m/s³, 198 m/s³ more than a step from the "
                      "old acceleration to the new one gives.")  # fmt: skip
    step = jerk(np.where(np.arange(2001) > 1000, 3.0, 1.0), 1e-3)
    assert step.max() == pytest.approx(51.7, rel=0.04)
    s = seen("shift_jerk", drive(quality=[shaken], bands=HELD, a=np.where(T > 4.2, 6.0, 1.0)), 130.0)
    assert s is not None and not s.failed
    s = seen("shift_jerk", drive(quality=[shaken], bands=HELD, pedal=np.where(T > 4.5, 0.9, 0.5)), 130.0)
    assert s is None
    s = seen("shift_jerk", drive(quality=[shaken], bands=HELD, w_out=np.maximum(0.0, 50.0 - 10.0 * T)), 130.0)
    assert s is None, "the car is braked to a stop at 5 s"


def test_an_actuator_that_never_moves_is_named() -> None:
    columns = {"u1": np.full(len(T), 3.0), "u2": T, "u3": np.zeros(len(T))}
    s = seen("actuator_still", drive(column=columns.get), actuators=["u1", "u2", "u3", "u4"])
    assert s is not None and s.failed and s.text == "u1, u3 never moved in the run."
    assert (s.first_s, s.worst) == (20.0, 2.0)
    s = seen("actuator_still", drive(column=columns.get), actuators=["u2"])
    assert s is not None and not s.failed and s.text == "each actuator moved: u2"
    assert seen("actuator_still", drive(column=columns.get, w_out=T * 0.0), actuators=["u1"]) is None
    # a car that never came to more than 2 rad/s at its output shaft was not driven; one that rolled back was
    for w_out, driven in ((1.9, False), (2.1, True), (-2.1, True)):
        s = seen("actuator_still", drive(column=columns.get, w_out=np.where(T > 9.0, w_out, 0.0)), actuators=["u1"])
        assert (s is not None) == driven, w_out
    assert seen("actuator_still", drive(column=columns.get, cut_short=True), actuators=["u1"]) is None


def test_a_step_that_only_an_impulse_could_finish_fails() -> None:
    clean, one = (drive(stats=RunStats(solver=SolverStats(fallbacks=k))) for k in (0, 1))
    s = seen("fallbacks", clean)
    assert s is not None and not s.failed
    s = seen("fallbacks", one)
    assert s is not None and s.failed and s.worst == pytest.approx(1 / 20)
    # the time of the recording counts, whenever it begins
    late = replace(one, t=T[::2] + 300.0, brake=np.full(len(T), 0.7))
    s = seen("fallbacks", late)
    assert s is not None and s.worst == pytest.approx(1 / 20)
    s = seen("fallbacks", one, 0.1)
    assert s is not None and not s.failed, "the rate counts"


@pytest.mark.parametrize(("course", "failed", "first_s"), [
    (lambda pedal: pedal, False, None),
    (lambda pedal: 1.0 - pedal, True, 0.0),
    # 2 s old: contradicts while the pedal moves, at 4 s and 12 s
    (lambda pedal: np.concatenate([pedal[:200], pedal[:-200]]), True, 4.0),
    (lambda pedal: np.concatenate([pedal[:20], pedal[:-20]]), False, None),
    (lambda pedal: np.where(between(8.0, 20.0), 0.0, pedal), True, 8.0),
])  # fmt: skip
def test_the_pedal_that_is_sent_is_the_driver_s(course: Any, failed: bool, first_s: float | None) -> None:
    pedal = np.where(between(4.0, 11.99), 0.4, 0.0)
    s = seen("reported_pedal", drive(column={"BUS.pedal": course(pedal), "driver.pedal": pedal}.get), 0.1,
             pedals=[("BUS.pedal", "driver.pedal")])  # fmt: skip
    assert s is not None and (s.failed, s.first_s) == (failed, first_s)
    assert seen("reported_pedal", drive(), 0.1) is None


def test_the_pedal_that_is_wrong_first_is_told_with_its_worst_sample() -> None:
    pedal = np.full(len(T), 0.4)
    off = np.where(between(5.0, 7.0), 0.2, 0.0) + np.where(between(6.0, 6.1), 0.2, 0.0)
    columns = {"driver.pedal": pedal, "BUS.pedal": np.where(between(9.0, 11.0), 0.9, pedal), "input.pedal": pedal + off}
    for pairs in ([("BUS.pedal", "driver.pedal"), ("input.pedal", "driver.pedal")],
                  [("input.pedal", "driver.pedal"), ("BUS.pedal", "driver.pedal")]):  # fmt: skip
        s = seen("reported_pedal", drive(column=columns.get), 0.1, pedals=pairs)
        assert s is not None and s.failed and (s.first_s, s.worst) == (pytest.approx(5.0), pytest.approx(0.5))
        assert s.text == ("From 5.00 s on, the rig sends the engine another pedal than the driver's: "
                          "input.pedal 80%, driver.pedal 40%.")  # fmt: skip
