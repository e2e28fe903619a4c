"""Gears, shifts and bands of recordings whose answers are written down sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import analysis
from torqueloop.hil.report.analysis import Band, Shift

#: a gear holds for 40 ms from four samples on
TICK_S = 0.015
RATIOS = {"R": -2.0, "1": 3.0, "2": 1.5}
#: samples, speeds of the input and output shaft, gear. A gear fits within 2 per mille of the input speed and 0.2 rad/s.
COURSE: list[tuple[int, float, float, str]] = [
    (50, 80.0, 0.0, ""),  # stands: with the first gear
    (20, 60.0, 1.2, ""),  # creeps: still
    (100, 150.45, 50.0, "1"),
    (10, 150.55, 50.0, ""),  # 0.55 rad/s off, beside 0.501
    (40, 150.0, 50.0, "1"),  # the same gear as before
    (30, 100.0, 50.0, ""),
    (3, 75.0, 50.0, ""),  # 30 ms: the speeds cross the ratio of gear 2
    (10, 70.0, 50.0, ""),
    (4, 75.0, 50.0, "2"),  # 45 ms
    (60, 30.0, 50.0, ""),
    (30, 40.0, -20.0, "R"),
    (10, 20.0, -20.0, ""),
    (25, 30.0, 20.0, "2"),
]


def recorded(**columns: Any) -> Signals:
    names = [name.replace("__", ".") for name in columns]
    records = np.zeros(len(next(iter(columns.values()))), signal_dtype(len(names)))
    records["tick"] = np.arange(len(records))
    records["out"] = np.array(list(columns.values())).T
    return Signals.of(names, dict.fromkeys(names, "1"), TICK_S, records)


def speeds(course: list[tuple[int, float, float, str]], **more: Any) -> Signals:
    w_in, w_out = (np.concatenate([np.full(row[0], row[k]) for row in course]) for k in (1, 2))
    return recorded(engine__w=w_in * 1.1 + 7.0, turbine__w=w_in, out__w=w_out, **more)


def stretches() -> list[tuple[int, int, str]]:
    """(first, last sample, gear) of COURSE."""
    ends = np.cumsum([n for n, *_ in COURSE]).tolist()
    return [(end - n, end - 1, gear) for end, (n, *_, gear) in zip(ends, COURSE, strict=True) if gear]


def time_s(sample: int) -> float:
    return (sample + 1) * TICK_S


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_a_gear_is_engaged_where_the_speeds_have_its_ratio(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "BLOCK", block)
    (first, again, *others) = stretches()
    wanted = [(0, again[1], "1"), *others]
    assert first[2] == again[2] == "1" and len(wanted) == 4
    found = analysis.gear_bands(speeds(COURSE), RATIOS)
    assert [b.value for b in found] == [gear for *_, gear in wanted]
    np.testing.assert_allclose([(b.begin_s, b.end_s) for b in found], [(time_s(a), time_s(b)) for a, b, _ in wanted])


def test_shafts_that_turn_backwards_are_in_the_same_gears() -> None:
    backwards = [(n, -w_in, -w_out, gear) for n, w_in, w_out, gear in COURSE]
    assert analysis.gear_bands(speeds(backwards), RATIOS) == analysis.gear_bands(speeds(COURSE), RATIOS)


def test_a_run_that_begins_in_neutral_has_its_first_gear_later() -> None:
    rolls = [(70, 60.0, 1.6, ""), *COURSE[2:3]]
    (band,) = analysis.gear_bands(speeds(rolls), RATIOS)
    assert (band.begin_s, band.end_s) == (pytest.approx(time_s(70)), pytest.approx(time_s(169)))
    assert analysis.gear_bands(recorded(out__w=np.ones(9)), RATIOS) == []


def test_a_shift_lasts_from_the_old_ratio_to_the_new_one_with_the_extremes_of_the_acceleration() -> None:
    """The acceleration is looked at from 0.2 s before to 0.2 s behind: 13 samples."""
    (_, (_, old_ends, _), (new_begins, *_), *_) = stretches()
    a = np.zeros(sum(n for n, *_ in COURSE))
    a[[old_ends - 14, old_ends - 13, new_begins + 13, new_begins + 14]] = -9.0, -4.0, 5.0, 9.0
    signals = speeds(COURSE, car__a=a)
    bands = analysis.gear_bands(signals, RATIOS)
    first, *_ = found = analysis.shifts(bands, signals)
    assert [s.name for s in found] == ["1→2", "2→R", "R→2"]
    assert (first.begin_s, first.end_s) == (pytest.approx(time_s(old_ends)), pytest.approx(time_s(new_begins)))
    assert first.duration_s == pytest.approx((new_begins - old_ends) * TICK_S)
    assert (first.a_min_mps2, first.a_max_mps2) == (-4.0, 5.0)
    assert analysis.shifts(bands)[0] == Shift("1", "2", first.begin_s, first.end_s)


def test_acceleration_is_what_was_recorded_else_the_change_of_the_car_s_speed() -> None:
    """Of v = t**2 it is 2 t; the speed that is sent to the vehicle, 3.6 times as much, is none of the car."""
    t = (np.arange(40) + 1) * TICK_S
    columns = {"vehicle__speed": 3.6 * t**2, "car__v": t**2}
    found = analysis.acceleration(recorded(**columns))
    assert found is not None
    np.testing.assert_allclose(found[1:-1], 2 * t[1:-1])
    given = analysis.acceleration(recorded(**columns, car__a=t))
    assert given is not None and (given == t).all()
    assert analysis.acceleration(recorded(vehicle__speed=t)) is None


def test_bands_of_a_mode_are_those_between_its_changes() -> None:
    log = [("A", 0.5, 1), ("B", 0.7, 0), ("A", 1.0, 0), ("A", 1.0, 2), ("A", 3.0, -1)]
    modes = [ModeChange(round(t / 1e-3), t, element, mode) for element, t, mode in log]
    assert analysis.mode_bands(modes, "A", 4.0) == [Band(0.5, 1.0, 1), Band(1.0, 3.0, 2), Band(3.0, 4.0, -1)]
    # a recording that begins later, and ends with the last change
    assert analysis.mode_bands(modes, "A", 3.0, 0.8) == [Band(0.8, 1.0, 1), Band(1.0, 3.0, 2), Band(3.0, 3.0, -1)]
    signals = recorded(A__mode=np.array([0.0, 0.0, 1.0, 1.0, -1.0]))
    found = analysis.mode_bands_recorded(signals, "A")
    assert [b.value for b in found] == [0, 1, -1] and analysis.mode_bands_recorded(signals, "B") == []
    np.testing.assert_allclose([(b.begin_s, b.end_s) for b in found],
                               [(time_s(a), time_s(b)) for a, b in ((0, 2), (2, 4), (4, 4))])  # fmt: skip


def test_thinned_samples_are_the_extremes_of_their_groups_in_order() -> None:
    rng = np.random.default_rng(5)
    t, y = np.arange(1003) * 0.5 + 3.0, rng.normal(size=1003)
    same = analysis.thin(t, y, 1003)
    assert (same[0] == t).all() and (same[1] == y).all()
    # 100 points are 50 groups of 21 samples; the last 16 samples are no whole group
    kept = {0, 1002, *range(47 * 21, 1003)}
    for first in range(0, 47 * 21, 21):
        group = range(first, first + 21)
        kept |= {min(group, key=lambda k: y[k]), max(group, key=lambda k: y[k])}
    thin_t, thin_y = analysis.thin(t, y, 100)
    np.testing.assert_array_equal(thin_t, t[sorted(kept)])
    np.testing.assert_array_equal(thin_y, y[sorted(kept)])
