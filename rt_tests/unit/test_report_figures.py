"""Figures of the loop's time: what is drawn where, against numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import first_fault, latency, latency_plots
from torqueloop.hil.results.clock import Timing, WorstTick
from torqueloop.hil.views.figure import Figure, Figures

#: lower edge [us], count; two times
COMPUTE = [[10.0, 60], [20.0, 30], [40.0, 9], [80.0, 1]]
LATENESS = [[1.0, 195], [2.0, 4], [4.0, 1]]


def periods(figure: Figure | None) -> list[float]:
    """Where the period is marked."""
    assert figure is not None
    return [m.x for m in figure.marks if m.text == "period"]


def test_a_time_is_exceeded_by_so_many_ticks() -> None:
    figure = latency_plots.exceedance({"compute": COMPUTE, "lateness": LATENESS}, 1000.0)
    assert figure is not None
    (panel,) = figure.panels
    drawn = {line.label: (list(line.x), pytest.approx(list(line.y))) for line in panel.lines}
    assert drawn == {
        "compute": ([10.0, 20.0, 40.0, 80.0], [1.0, 0.4, 0.1, 0.01]),
        "lateness": ([1.0, 2.0, 4.0], [1.0, 0.025, 0.005]),
    }
    # from half of the smallest share; the period where a time comes to a twentieth of it
    assert (panel.low, panel.high) == pytest.approx((0.0025, 1.6)) and periods(figure) == [1000.0]


@pytest.mark.parametrize(("longest", "marked"), [(49.0, 0), (51.0, 1)])
def test_the_period_is_marked_where_times_come_near_to_it(longest: float, marked: int) -> None:
    figure = latency_plots.exceedance({"compute": [[0.5, 9], [longest, 1]], "lateness": LATENESS}, 1000.0)
    assert len(periods(figure)) == marked
    # bins are a twentieth of a decade wide: the right edge of the last one counts, those to the left of it do not
    hist = [(1.0, 5), (longest / 10**0.05, 1)]
    figure = latency_plots.timing("t", Timing(count=6, p50=1.0, max=longest, hist=hist), 1000.0, "compute_us")
    assert len(periods(figure)) == marked


def test_the_tick_of_the_latching_is_marked_where_its_sample_lies() -> None:
    rows = np.zeros(50, signal_dtype(2))
    rows["tick"] = np.arange(100, 150)
    rows["out"] = np.column_stack([np.linspace(100.0, 200.0, 50), np.linspace(0.0, 5e5, 50)])
    signals = Signals.of(["engine.w", "C4.p"], {"engine.w": "rad/s", "C4.p": "Pa"}, 2e-3, rows)
    signals.header.update(latched=130, signal="engine.w")
    figure = first_fault.draw(signals, first_fault.latched(signals), Figures())
    assert figure is not None
    at = float(signals.t[signals.tick.tolist().index(130)])
    assert at == pytest.approx(131 * 2e-3) and [m.x for m in figure.marks] == [pytest.approx(at)]
    assert (figure.begin, figure.end) == pytest.approx((101 * 2e-3, 151 * 2e-3))


def test_the_longest_ticks_are_bars_of_their_phases_one_behind_the_other() -> None:
    phases = dict(zip(latency.PHASES, (5.25, 0.5, 120.0, 99.5, 1.0, 2.5), strict=True))
    ticks = [WorstTick(700 + k, 1.0, 228.75 + k, 0.0, {n: x + k for n, x in phases.items()}) for k in range(12)]
    figure = latency_plots.worst_ticks(ticks)
    assert figure is not None and figure.x == "µs"
    (panel,) = figure.panels
    assert [name for name, _ in panel.rows] == [str(700 + k) for k in range(10)]
    for k, (_, row) in enumerate(panel.rows):
        ends = np.cumsum([x + k for x in phases.values()])
        assert [s.end for s in row] == pytest.approx(ends) and [s.begin for s in row[1:]] == pytest.approx(ends[:-1])
        assert row[0].begin == 0.0 and [figure.colours[s.role] for s in row] == list(phases)
        # two decimals below 100 µs
        widths = [f"{n} {x + k:.2f} µs" if x + k < 100.0 else f"{n} {x + k:.0f} µs" for n, x in phases.items()]
        assert [s.text for s in row] == widths
