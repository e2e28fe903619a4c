"""Statistics and metrics of a run that are rebuilt from its recording, against counts made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report.analysis import Shift
from torqueloop.hil.report.collect import Run
from torqueloop.hil.report.metrics import build_metrics, complete_stats, histogram_us, rebinned, timing_of
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.run import RunInfo, RunStats, StreamStats

TICK_S = 0.01


def test_classes_of_a_histogram_are_twentieths_of_a_decade_that_begin_at_a_tenth_of_a_microsecond() -> None:
    values = np.concatenate([[-5.0, 0.02, 0.1, 1.0, 10.0, 100.0], 10.0 ** np.random.default_rng(1).uniform(-1, 2, 500)])
    found = histogram_us(values)
    counts: dict[int, int] = {}
    for value in values:
        place = max(0, math.floor(20 * (math.log10(max(value, 0.1)) + 1) + 1e-9))
        counts[place] = counts.get(place, 0) + 1
    assert {k: count for k, (_, count) in enumerate(found) if count} == counts
    np.testing.assert_allclose([edge for edge, _ in found], [10 ** (k / 20 - 1) for k in range(len(found))])
    assert max(counts) == 60 and sum(count for _, count in found) == len(values) and histogram_us(values[:0]) == []


def test_classes_of_another_histogram_are_put_into_those_of_a_twentieth_of_a_decade() -> None:
    """0.01 and 0.1 us are in the class from 0.1 us on (-20 twentieths), 0.15 in the fourth behind, 0.3 in the tenth."""
    found = rebinned([[0.3, 4], [0.01, 1], [0.1, 2], [0.15, 3], [5.0, 0]])
    assert [count for _, count in found] == [3, 0, 0, 3, 0, 0, 0, 0, 0, 4] and rebinned([[1.0, 0]]) == []
    np.testing.assert_allclose([edge for edge, _ in found], [10 ** ((k - 20) / 20) for k in range(10)])


def test_percentiles_of_the_numbers_from_one_to_ten_thousand() -> None:
    values = np.random.default_rng(2).permutation(np.arange(10001.0)) - 1.0
    t = timing_of(values)
    assert t is not None and (t.count, t.negative, t.min, t.max, t.mean) == (10001, 1, -1.0, 9999.0, 4999.0)
    assert (t.p50, t.p90, t.p99, t.p999, t.p9999) == pytest.approx((4999.0, 8999.0, 9899.0, 9989.0, 9998.0))
    assert timing_of(values[:0]) is None


def a_run(info: dict[str, Any] | None = None, **columns: Any) -> Run:
    """A recording of three ticks less than it should have, from tick 5 on; compute time 1, 2 ... us."""
    names = [name.replace("__", ".") for name in columns]
    n = len(next(iter(columns.values())))
    records = np.zeros(n, signal_dtype(len(names)))
    records["tick"] = 5 + np.arange(n)
    records["compute_ns"] = 1000 * (1 + np.arange(n))
    records["wake_lateness_ns"] = 500
    records["out"] = np.array(list(columns.values())).T
    signals = Signals.of(names, dict.fromkeys(names, "1"), TICK_S, records)
    signals.gaps = [(2, 1), (9, 2)]
    stats = RunStats(ClockStats(ticks=7))
    told = RunInfo("rig", **{"state": "ended", "ended": "today", "clock": "real", "stats": stats, **(info or {})})
    return Run(Path("run"), told, signals, [ModeChange(1, 0.1, "A", 0)] * 4, "modes.csv", ["something is missing"])


def test_what_a_run_did_not_leave_is_rebuilt_from_its_ticks() -> None:
    """Ticks 5 to 14 were recorded. A run that ended knows its ticks; one that was killed has at least the recorded."""
    v = np.linspace(0.0, 9.0, 10)
    cases = (("ended", 7, 7), ("running", 7, 15), ("running", 20, 20))
    for state, known, ticks in cases:
        run = a_run({"state": state, "stats": RunStats(ClockStats(ticks=known))}, car__v=v)
        stats, rebuilt = complete_stats(run)
        assert stats.clock.ticks == ticks and rebuilt == ["compute_us", "wake_lateness_us"], (state, known)
        compute, late = stats.clock.compute_us, stats.clock.wake_lateness_us
        assert compute is not None and (compute.count, compute.min, compute.max) == (10, 1.0, 10.0)
        assert late is not None and (late.min, late.max) == (0.5, 0.5)
    stats, rebuilt = complete_stats(a_run({"stats": None, "clock": "virtual"}, car__v=v))
    assert rebuilt == ["ticks", "compute_us"] and stats.clock.wake_lateness_us is None


def test_metrics_of_a_drive_are_those_of_its_columns_and_shifts() -> None:
    v, sent = np.array([1.0, 5.0, np.nan, 3.0, 2.0]), np.array([9.0, 9.0, 9.0, 9.0, 9.0])
    run = a_run(car__v=v, vehicle__speed=sent)
    shifts = [Shift("1", "2", 1.0, 1.4), Shift("2", "3", 5.0, 5.9), Shift("3", "4", 8.0, 8.3)]
    lost = {"signals": StreamStats(lost_records=3), "bus": StreamStats(lost_records=2, cause="disk full")}
    flat = build_metrics(run, replace(run.stats, recording=lost), shifts)
    wanted = {
        "v_max_mps": 5.0, "v_end_mps": 2.0, "finite": 0, "shifts": 3, "shift_s_max": pytest.approx(0.9),
        "duration_s": pytest.approx(0.1), "ticks_recorded": 5, "recording_gap_ticks": 3, "recording_damage": 0,
        "mode_changes": 4, "incomplete": 1, "complete": 1, "clock": "real", "recording_lost": 6, "t_0_100_kmh_s": None,
    }  # fmt: skip
    assert {name: flat[name] for name in wanted} == wanted
    flat = build_metrics(a_run({"state": "running"}, out__w=v), RunStats(), [])
    assert (flat["v_max_mps"], flat["complete"], flat["shift_s_max"], flat["recording_lost"]) == (None, 0, 0.0, None)
