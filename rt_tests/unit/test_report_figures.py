"""Figures of the loop's time and of the first fault: what is drawn where, against numbers computed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need Matplotlib (extra `plot`)")

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import first_fault, latency_plots
from torqueloop.hil.results.clock import Timing

#: lower edge [us], count; two times
COMPUTE = [[10.0, 60], [20.0, 30], [40.0, 9], [80.0, 1]]
LATENESS = [[1.0, 195], [2.0, 4], [4.0, 1]]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Figures on their way to SVG."""
    kept: list[Any] = []

    def keep(figure: Any, name: str) -> str:
        kept.append(figure)
        return name

    for module in (latency_plots, first_fault):
        monkeypatch.setattr(module, "themed", keep)
    yield kept


def lines_at(ax: Any, x: float) -> int:
    """Vertical lines at a place."""
    return sum(np.allclose(line.get_xdata(), x) and len(line.get_xdata()) == 2 for line in ax.get_lines())


def test_a_time_is_exceeded_by_so_many_ticks_and_its_curve_ends_in_a_mark(figures: list[Any]) -> None:
    latency_plots.exceedance({"compute": COMPUTE, "lateness": LATENESS}, 1000.0)
    ax = figures[0].axes[0]
    drawn = [(list(line.get_xdata()), pytest.approx(list(line.get_ydata()))) for line in ax.get_lines()]
    assert len(drawn) == 5 and drawn[:4] == [
        ([10.0, 20.0, 40.0, 80.0], [1.0, 0.4, 0.1, 0.01]), ([80.0], [0.01]),
        ([1.0, 2.0, 4.0], [1.0, 0.025, 0.005]), ([4.0], [0.005]),
    ]  # fmt: skip
    # from half of the smallest share; the period where a time comes to a twentieth of it
    assert ax.get_ylim() == pytest.approx((0.0025, 1.6)) and lines_at(ax, 1000.0) == 1


@pytest.mark.parametrize(("longest", "marked"), [(49.0, 0), (51.0, 1)])
def test_the_period_is_marked_where_times_come_near_to_it(figures: list[Any], longest: float, marked: int) -> None:
    latency_plots.exceedance({"compute": [[0.5, 9], [longest, 1]], "lateness": LATENESS}, 1000.0)
    assert lines_at(figures[0].axes[0], 1000.0) == marked
    # bins are a tenth of a decade wide: the right edge of the last one counts, those to the left of it do not
    hist = [[1.0, 5], [longest / 10**0.05, 1]]
    times = dict.fromkeys(Timing.__dataclass_fields__, 0.0) | {"hist": hist, "count": 6, "p50": 1.0, "max": longest}
    latency_plots.timing("compute", Timing(**times), 1000.0, "compute_us")  # type: ignore[arg-type]
    assert lines_at(figures[1].axes[0], 1000.0) == marked


def test_the_tick_of_the_latching_is_marked_where_its_sample_lies(figures: list[Any]) -> None:
    rows = np.zeros(50, signal_dtype(2))
    rows["tick"] = np.arange(100, 150)
    rows["out"] = np.column_stack([np.linspace(100.0, 200.0, 50), np.linspace(0.0, 5e5, 50)])
    signals = Signals.of(["engine.w", "C4.p"], {"engine.w": "rad/s", "C4.p": "Pa"}, 2e-3, rows)
    signals.header.update(latched=130, signal="engine.w")
    first_fault.draw(signals, first_fault.latched(signals))
    at = float(signals.t[signals.tick.tolist().index(130)])
    assert at == pytest.approx(131 * 2e-3)
    for ax in figures[0].axes:
        assert lines_at(ax, at) == 1
