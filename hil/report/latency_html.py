"""What the section of a page about the loop's time shows (templates/real_time.html)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.report import latency, latency_plots
from torqueloop.hil.report.pages import tick_at
from torqueloop.hil.results.clock import ClockStats, WorstTick
from torqueloop.hil.results.run import Measure, RunStats
from torqueloop.hil.views.figure import Figures

PERCENTILES = ("p50", "p90", "p99", "p999", "p9999", "max")


@dataclass(frozen=True)
class RealTime:
    """Figures, percentiles, counters, phases, worst ticks and what took effect of the real-time set-up."""

    degraded: str | None
    figures: list[str]
    percentiles: list[tuple[Any, ...]]
    margin: list[tuple[Any, ...]]
    phases: list[tuple[Any, ...]]
    counts: dict[str, Any]
    grace: dict[str, Any]
    worst: list[dict[str, Any]]
    measures: list[Measure]
    #: measures that did not take effect
    missing: int


def real_time(stats: RunStats, tick_s: float | None, measures: Sequence[Measure], figures: Figures) -> RealTime:
    """Of a run, or of several together; what is drawn goes to `figures`."""
    clock = stats.clock
    return RealTime(
        latency.degraded(stats),
        _figures(clock, tick_s, figures),
        [(name, *(getattr(t, k) for k in PERCENTILES)) for _, name, t in latency.timings(clock)],
        _margin(clock),
        [
            (name, *(getattr(row, k) for k in ("mean", "p50", "p99", "p999", "max")), f"{100 * share:.1f} %")
            for name, row, share in latency.phases(clock)
        ],
        {**latency.counts(clock), **latency.clock_settings(clock)},
        latency.grace(clock),
        [
            _worst(entries, title, tick_s)
            for entries, title in ((clock.worst.by_lateness, "latest"), (clock.worst.by_compute, "longest"))
            if entries
        ],
        list(measures),
        sum(not m.ok for m in measures),
    )


def _figures(clock: ClockStats, tick_s: float | None, figures: Figures) -> list[str]:
    period_us = 1e6 * tick_s if tick_s else None
    measured = list(latency.timings(clock))
    drawn = [latency_plots.timing(f"{name} of a tick", timing, period_us, key) for key, name, timing in measured]
    drawn.append(latency_plots.exceedance({name: timing.hist for _, name, timing in measured}, period_us))
    drawn.append(latency_plots.worst_ticks(clock.worst.by_compute))
    return [name for figure in drawn if (name := figures.add(figure))]


def _margin(clock: ClockStats) -> list[tuple[Any, ...]]:
    margin = clock.margin_us
    if margin is None or not margin.count:
        return []
    return [("margin to the next grid point", margin.p50, margin.p1, margin.p0_1, margin.min)]


def _worst(entries: Sequence[WorstTick], title: str, tick_s: float | None) -> dict[str, Any]:
    head = ("step number", "lateness µs", "compute µs", "margin µs", *latency.PHASES, *latency.USAGE.values())
    rows = [
        (
            tick_at(e.name, e.tick, tick_s) if e.run is None else e.name,
            *(e.lateness_us, e.compute_us, e.margin_us),
            *(e.phase_us.get(name) for name in latency.PHASES),
            *(getattr(e, k) for k in latency.USAGE),
        )
        for e in entries
    ]
    return {"title": title, "head": head, "rows": rows}
