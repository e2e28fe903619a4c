"""Figures of the loop's time: histograms, how often a time is exceeded, where the worst ticks spent theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from torqueloop.hil.report.latency import PHASES
from torqueloop.hil.report.metrics import rebinned
from torqueloop.hil.results.clock import Timing, WorstTick
from torqueloop.hil.views.figure import Figure, Line, Mark, Panel, Span, role

PHASE_COLOURS = dict(zip(PHASES, ("purple", "teal", "blue", "green", "orange", "gold"), strict=True))
#: lower limit of the axes for counts: a count of 1 is a bar
LEAST = 0.5


def timing(title: str, measured: Timing, period_us: float | None, name: str) -> Figure | None:
    """Histogram of a time with logarithmic axes and the percentiles marked."""
    # a logarithmic axis has no place for 0, the lateness of the first tick
    hist = [(edge, n) for edge, n in rebinned([(edge, n) for edge, n in measured.hist if edge > 0]) if n > 0]
    if not hist:
        return None
    edges, counts = [float(e) for e, _ in hist], [float(n) for _, n in hist]
    right = [e * 10.0**0.05 for e in edges]
    bars = Line("ticks", counts, style="bars", x=edges, right=right)
    marks = []
    for key, label in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max")):
        value = getattr(measured, key)
        if isinstance(value, (int, float)) and value > 0:
            marks.append(
                Mark(value, f"{label} {value:,.0f} µs" if value >= 100 else f"{label} {value:.3g} µs", "orange")
            )
    panel = Panel("ticks", [bars], title=title, low=LEAST, high=max(counts) * 12)
    return Figure(name, [panel], x="µs", gears=False, log=True, marks=[*marks, *_period(period_us, right[-1])])


def _period(period_us: float | None, longest: float) -> list[Mark]:
    return [Mark(period_us, "period")] if period_us and longest > 0.05 * period_us else []


def exceedance(series: Mapping[str, Sequence[Sequence[float]]], period_us: float | None) -> Figure | None:
    """For each time, the share of ticks that took longer: straight down is a hard bound, a long foot is a rare cause.

    series: name -> whole histogram [[lower edge in us, count] ...].
    """
    lines, smallest, longest = [], 1.0, 0.0
    for k, (name, hist) in enumerate(series.items()):
        counted = [(edge, n) for edge, n in hist if n > 0]
        shown = [k for k, (edge, _) in enumerate(counted) if edge > 0]
        if not shown:
            continue
        count = np.array([n for _, n in counted], dtype=float)
        left = count[::-1].cumsum()[::-1] / count.sum()
        edges = [max(float(counted[k][0]), 0.1) for k in shown]
        lines.append(Line(name, [float(left[k]) for k in shown], role(k), "step", x=edges))
        smallest, longest = min(smallest, float(left[-1])), max(longest, edges[-1])
    if not lines:
        return None
    panel = Panel("share", lines, title="share of ticks at or above a time", low=smallest / 2, high=1.6)
    return Figure("exceedance", [panel], x="µs", gears=False, log=True, marks=_period(period_us, longest))


def worst_ticks(entries: Sequence[WorstTick], how_many: int = 10) -> Figure | None:
    """Bars of the longest ticks, one colour for each phase."""
    rows: list[tuple[str, list[Span]]] = []
    for entry in entries[:how_many]:
        left, made = 0.0, []
        for name in PHASES:
            right = left + entry.phase_us.get(name, 0.0)
            made.append(
                Span(left, right, PHASE_COLOURS[name], f"{name} {right - left:.{2 if right - left < 100 else 0}f} µs")
            )
            left = right
        rows.append((entry.name, made))
    if not rows:
        return None
    panel = Panel(rows=rows, title="longest ticks by step number, by phase", height=30 + 19 * len(rows))
    return Figure("worst", [panel], x="µs", gears=False, colours={PHASE_COLOURS[n]: n for n in PHASES})
