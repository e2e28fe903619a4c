"""Figures of the loop's time: what is drawn where, against numbers computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import first_fault, latency, latency_plots
from torqueloop.hil.report.moment import moment
from torqueloop.hil.report.scenario_checks import Verdict
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


def test_a_histogram_has_its_counts_and_its_percentiles_at_their_times() -> None:
    hist = [(0.0, 5), (10.0, 60), (20.0, 30), (400.0, 10)]
    measured = Timing(count=105, p50=12.5, p90=21.0, p99=345.6, p999=1235.4, p9999=2e4, max=45678.0, hist=hist)
    figure = latency_plots.timing("compute time of a tick", measured, None, "compute_us")
    assert figure is not None and (figure.name, figure.x, figure.log) == ("compute_us", "µs", True)
    marks = [(12.5, "p50 12.5 µs"), (345.6, "p99 346 µs"), (1235.4, "p99.9 1,235 µs"), (45678.0, "max 45,678 µs")]
    assert [(m.x, m.text) for m in figure.marks] == marks
    (panel,) = figure.panels
    (bars,) = panel.lines
    # 0 has no place on a logarithmic axis; the bars touch none of its ends
    assert list(bars.y) == [60.0, 30.0, 10.0] and panel.low is not None and panel.high is not None
    assert 0.0 < panel.low < 1.0 and 60.0 < panel.high
    for edge, left, right in zip((10.0, 20.0, 400.0), bars.x, bars.right, strict=True):
        assert left <= edge * 1.001 < right and right / left == pytest.approx(10.0 ** (1 / 20))


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


def moving(spans: dict[str, float], unit: str = "rad/s") -> Signals:
    """Columns that rise by so much, from tick 7 on."""
    records = np.zeros(20, signal_dtype(len(spans)))
    records["tick"] = np.arange(7, 27)
    records["out"] = np.linspace(0.0, 1.0, 20)[:, None] * np.array(list(spans.values()))
    units = {name: "Pa" if name.endswith(".p") else unit for name in spans}
    return Signals.of(list(spans), units, 1e-3, records)


def test_the_signals_that_move_most_tell_of_a_first_fault() -> None:
    spans = {"A.p": 3e5, "B.p": 0.0, "C.p": 9e5, "D.p": 2e5, "E.p": 4e5, "F.p": 5e5, "G.p": 1e5, "shaft.w": 7.0,
             "pump.w": 50.0, "BUS.pedal": 0.5, "BUS.speed": 4.0}  # fmt: skip
    signals = moving(spans)
    pressures = ["C.p", "F.p", "E.p", "A.p", "D.p"]
    assert first_fault.telling(signals) == {"pressure": pressures, "speed": ["pump.w", "shaft.w"]}
    signals.header["signal"] = "BUS"
    assert first_fault.telling(signals)["cause"] == ["BUS.speed", "BUS.pedal"]
    signals.header["signal"] = "BUS.pedal"
    assert first_fault.telling(signals)["cause"] == ["BUS.pedal"]
    shafts = moving({"out.w": 1.0, "turbine.w": 9.0, "engine.w": 2.0, "pump.w": 50.0, "B.p": 0.0})
    assert first_fault.telling(shafts) == {"pressure": ["B.p"], "speed": ["engine.w", "turbine.w", "out.w"]}
    assert first_fault.latched(shafts) == 26, "not told: the last tick that was kept"
    shafts.header["latched"] = 11
    assert first_fault.latched(shafts) == 11


def test_the_moment_of_a_verdict_is_shown_with_three_seconds_before_it() -> None:
    """Of 20 s those from 5.5 to 10 s, for a check that failed at 8.5 s."""
    records = np.zeros(2000, signal_dtype(2))
    records["tick"], records["out"][:, 0] = np.arange(2000), np.arange(2000)
    signals = Signals.of(["car.v", "TCU.gear_actual"], {"car.v": "m/s", "TCU.gear_actual": "1"}, 0.01, records)
    verdict = Verdict("fast", "check", False, 8.5, "", ("car.v", "car.a"))
    figure = moment(Figures(), signals, verdict, "moment")
    assert figure is not None
    assert (figure.begin, figure.end) == pytest.approx((5.5, 10.0), abs=0.011)
    assert [m.x for m in figure.marks] == [8.5] and len(figure.panels) == 2
    assert moment(Figures(), signals, replace(verdict, t_s=None), "moment") is None
