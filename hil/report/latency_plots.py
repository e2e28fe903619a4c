"""Figures of the loop's time: histograms, how often a time is exceeded, where the worst ticks spent theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from torqueloop.hil.report.latency import PHASES
from torqueloop.hil.report.metrics import rebinned
from torqueloop.hil.report.style import colour, logarithmic, stacked, themed
from torqueloop.hil.results.clock import Timing, WorstTick

PHASE_COLOURS = dict(zip(PHASES, ("purple", "teal", "blue", "green", "orange", "gold"), strict=True))


def timing(title: str, measured: Timing, period_us: float | None, name: str) -> str | None:
    """Histogram of a time with logarithmic axes and the percentiles marked."""
    # a logarithmic axis has no place for 0, the lateness of the first tick
    hist = rebinned([(edge, n) for edge, n in measured.hist if edge > 0])
    if not hist:
        return None
    edges = np.array([e for e, _ in hist])
    count = np.array([c for _, c in hist], dtype=float)
    right = edges * 10.0**0.05
    with stacked(6.6, 2.5, [1.0]) as (figure, (ax,)):
        used = count > 0
        width = (right - edges)[used]
        ax.bar(edges[used], count[used], width, 0.5, align="edge", color=colour("blue"), linewidth=0)
        logarithmic(ax)
        ax.set_ylim(0.5, count.max() * 12)
        # Labels are set one below the other, as percentiles often lie close together.
        marks = [("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max")]
        for k, (key, label) in enumerate(marks):
            value = getattr(measured, key)
            if not isinstance(value, (int, float)) or value <= 0:
                continue
            ax.axvline(value, color=colour("orange"), linewidth=1.0, linestyle=(0, (2, 2)))
            ax.annotate(
                f" {label} {value:,.0f} ".replace(",", "\u202f") if value >= 100 else f" {label} {value:.3g} ",
                (value, 0.98 - 0.11 * k),
                xycoords=("data", "axes fraction"),
                fontsize=8.5,
                color=colour("fg"),
                va="top",
                ha="left" if value < edges[used][-1] * 0.6 else "right",
            )
        if period_us and right[-1] > 0.05 * period_us:
            ax.axvline(period_us, color=colour("red"), linewidth=1.2)
            place = (period_us, 0.42)
            ax.annotate(" period", place, xycoords=("data", "axes fraction"), fontsize=8.5, color=colour("red"))
        ax.set_title(title)
        ax.set_xlabel("µs")
        ax.set_ylabel("ticks")
        return themed(figure, name)


def exceedance(series: Mapping[str, Sequence[Sequence[float]]], period_us: float | None) -> str | None:
    """For each time, the share of ticks that took longer: straight down is a hard bound, a long foot is a rare cause.

    series: name -> whole histogram [[lower edge in us, count] ...].
    """
    drawn = {name: [(edge, n) for edge, n in hist if n > 0] for name, hist in series.items()}
    drawn = {name: hist for name, hist in drawn.items() if hist}
    if not drawn:
        return None
    with stacked(6.6, 2.5, [1.0]) as (figure, (ax,)):
        smallest, right = 1.0, 0.0
        for role, (name, hist) in zip(("blue", "orange", "green"), drawn.items(), strict=False):
            edges = np.maximum(np.array([e for e, _ in hist], dtype=float), 0.1)
            count = np.array([n for _, n in hist], dtype=float)
            left = (count[::-1].cumsum()[::-1]) / count.sum()
            shown = np.array([e > 0 for e, _ in hist])
            ax.step(edges[shown], left[shown], where="pre", color=colour(role), label=name)
            ax.plot(edges[-1], left[-1], marker="o", markersize=3.5, color=colour(role))
            smallest, right = min(smallest, float(left[-1])), max(right, float(edges[-1]))
        logarithmic(ax)
        ax.set_ylim(smallest / 2, 1.6)
        if period_us and right > 0.05 * period_us:
            ax.axvline(period_us, color=colour("red"), linewidth=1.2)
            ax.annotate(
                " period", (period_us, 0.42), xycoords=("data", "axes fraction"), fontsize=8.5, color=colour("red")
            )
        ax.set_title("share of ticks at or above a time")
        ax.set_xlabel("µs")
        ax.set_ylabel("share")
        ax.legend(loc="lower left")
        return themed(figure, "exceedance")


def worst_ticks(entries: Sequence[WorstTick], how_many: int = 10) -> str | None:
    """Bars of the longest ticks, one colour for each phase."""
    shown = list(entries[:how_many])
    if not shown:
        return None
    with stacked(6.6, 0.95 + 0.19 * len(shown), [1.0]) as (figure, (ax,)):
        left = np.zeros(len(shown))
        for name in PHASES:
            width = np.array([entry.phase_us.get(name, 0.0) for entry in shown])
            ax.barh(range(len(shown)), width, 0.72, left=left, color=colour(PHASE_COLOURS[name]), label=name)
            left += width
        ax.set_yticks(range(len(shown)), [entry.name for entry in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.grid(axis="y", visible=False)
        ax.set_title("longest ticks, by phase")
        ax.set_ylabel("step number")
        ax.set_xlabel("µs")
        ax.legend(loc="lower right", ncols=2, columnspacing=1.0)
        return themed(figure, "worst")
