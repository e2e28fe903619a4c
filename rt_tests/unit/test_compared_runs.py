"""Two runs side by side, against numbers computed from the same samples by another way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.runs.compare import _signals


def run(name: str, tick_s: float, first: int, columns: dict[str, Any], units: dict[str, str]) -> Any:
    """What is compared of a run: these signals from a tick on."""
    n = len(next(iter(columns.values())))
    records = np.zeros(n, signal_dtype(len(columns)))
    records["tick"] = first + np.arange(n)
    records["out"] = np.array(list(columns.values())).T
    signals = Signals.of(list(columns), units, tick_s, records)
    return SimpleNamespace(path=name, report=SimpleNamespace(run=SimpleNamespace(signals=signals)))


UNITS = {"w": "rad/s", "v": "rad/s", "p": "Pa", "still": "Pa", "stuck": "rad/s"}


def waves(t: Any, error: float) -> dict[str, Any]:
    return {"w": 3.0 + 2.0 * t + error * (t > 0.5), "v": 5.0 * t, "p": 1e5 + 0.0 * t, "still": 7.0 + error + 0.0 * t,
            "stuck": 1e-12 * np.sign(t - 0.6)}  # fmt: skip


def test_a_difference_is_the_largest_one_over_the_range_of_both_runs() -> None:
    """A has ticks of 1 ms from 0.1 s to 0.8 s, B of 5 ms from 0.2 s to 1 s: B is interpolated at the samples of A."""
    ta, tb = np.arange(100, 801) * 1e-3, np.arange(40, 201) * 5e-3
    a, b = run("a", 1e-3, 100, waves(ta, 0.0), UNITS), run("b", 5e-3, 40, waves(tb, 0.25), UNITS)
    found, remarks = _signals(a, b, 1e-3)
    found_by = {s.name: s for s in found}
    first, second = (r.report.run.signals.t for r in (a, b))
    inside = (first > second[0] - 1e-6) & (first < second[-1] + 1e-6)
    for name in UNITS:
        x = a.report.run.signals[name][inside]
        y = np.interp(first[inside], second, b.report.run.signals[name])
        apart = np.abs(x - y)
        of_unit = max(np.abs(r.report.run.signals[n]).max() for r in (a, b) for n in UNITS if UNITS[n] == UNITS[name])
        both = np.concatenate([x, y])
        scale = max(np.ptp(both) or np.abs(both).max(), 1e-9 * of_unit)
        s = found_by[name]
        assert (s.unit, s.largest, s.rms) == (
            UNITS[name],
            pytest.approx(apart.max()),
            pytest.approx(np.sqrt(np.mean(apart**2))),
        )
        assert s.at_s == pytest.approx(first[inside][apart.argmax()]), name
        assert s.relative == pytest.approx(apart.max() / scale, rel=1e-9, abs=1e-15), name
        assert s.within == (s.relative <= 1e-3)
    ranked = [(s.within, -s.relative) for s in found]
    assert ranked == sorted(ranked) and not found[0].within and found_by["stuck"].within
    assert remarks == [f"A ends at {first[-1]:g} s, B at {second[-1]:g} s: compared where both are"]


def test_what_only_one_run_has_and_runs_apart_are_said() -> None:
    t = np.arange(100) * 1e-3
    many = {f"x{k}": t for k in range(11)}
    a, b = run("a", 1e-3, 0, {"w": t, **many}, {}), run("b", 1e-3, 0, {"w": t, "y": t}, {})
    found, remarks = _signals(a, b, 1e-3)
    assert [s.name for s in found] == ["w"] and found[0].largest == 0.0 and found[0].within
    assert remarks == ["recorded in A only: x0, x1, x2, x3, x4, x5, x6, x7 and 3 more", "recorded in B only: y"]
    found, remarks = _signals(a, run("late", 1e-3, 500, {"w": t}, {}), 1e-3)
    assert not found and remarks[-1] == "the runs have no time in common"


def test_a_sample_that_is_no_number_in_one_run_only_is_infinitely_apart() -> None:
    x = np.array([1.0, np.nan, np.inf, 3.0])
    for y, apart in (
        (x, 0.0),
        (np.array([1.0, 2.0, np.inf, 3.0]), np.inf),
        (np.array([1.0, np.nan, 5.0, 3.0]), np.inf),
    ):
        ((s,), _) = _signals(run("a", 1e-3, 0, {"w": x}, {}), run("b", 1e-3, 0, {"w": y}, {}), 1e-3)
        assert s.largest == apart and s.within == (apart == 0.0)
