"""The section of report.html about the loop's time."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from torqueloop.hil.report import latency, latency_plots
from torqueloop.hil.report.html_parts import number, pairs, table
from torqueloop.hil.report.style import available

PERCENTILES = ("p50", "p90", "p99", "p999", "p9999", "max")


def real_time(stats: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    """Figures, percentiles, counters, phases, worst ticks and what took effect of the real-time set-up. info: tick_s
    and realtime (the measures) of run.json."""
    reasons = latency.degraded(stats)
    parts = [
        f"<p><span class='warn'>degraded:</span> {escape(reasons)}</p>" if reasons else "",
        _figures(stats, info.get("tick_s")),
        _side_by_side(_percentiles(stats), _phases(stats)),
        pairs({**latency.counts(stats), **latency.clock_settings(stats)}),
        _grace(stats),
        _worst(stats),
        _measures(info.get("realtime")),
    ]
    return "".join(parts)


def _side_by_side(left: str, right: str) -> str:
    return f"<div class='pair'><div>{left}</div><div>{right}</div></div>" if left and right else left + right


def _figures(stats: Mapping[str, Any], tick_s: float | None) -> str:
    if not available():
        return ""
    period_us = 1e6 * tick_s if tick_s else None
    measured = list(latency.timings(stats))
    drawn = [latency_plots.timing(f"{name} of a tick", timing, period_us, key) for key, name, timing in measured]
    series = {name: timing.get("hist") or [] for _, name, timing in measured}
    drawn.append(latency_plots.exceedance(series, period_us))
    drawn.append(latency_plots.worst_ticks(latency.worst(stats, "by_compute")))
    figures = "".join(f"<figure>{svg}</figure>" for svg in drawn if svg)
    return f"<div class='pair'>{figures}</div>" if figures else ""


def _percentiles(stats: Mapping[str, Any]) -> str:
    rows = [(name, *(number(t.get(k)) for k in PERCENTILES)) for _, name, t in latency.timings(stats)]
    found = table(("µs", "p50", "p90", "p99", "p99.9", "p99.99", "max"), rows, numbers=True) if rows else ""
    margin = stats.get("margin_us")
    if isinstance(margin, Mapping) and margin.get("count"):
        cells = [number(margin.get(k)) for k in ("p50", "p1", "p0_1", "min")]
        found += table(("µs", "p50", "p1", "p0.1", "min"), [("margin to the next grid point", *cells)], numbers=True)
    return found


def _grace(stats: Mapping[str, Any]) -> str:
    book = latency.grace(stats)
    return f"<details><summary>start-up grace, counted apart</summary>{pairs(book)}</details>" if book else ""


def _phases(stats: Mapping[str, Any]) -> str:
    rows = [
        (name, *(number(row.get(k)) for k in ("mean", "p50", "p99", "p999", "max")), f"{100 * share:.1f} %")
        for name, row, share in latency.phases(stats)
    ]
    head = ("phase µs", "mean", "p50", "p99", "p99.9", "max", "of the mean tick")
    return table(head, rows, numbers=True) if rows else ""


def _worst(stats: Mapping[str, Any]) -> str:
    found = ""
    for key, title in (("by_lateness", "latest"), ("by_compute", "longest")):
        entries = latency.worst(stats, key)
        if not entries:
            continue
        head = ("step number", "lateness µs", "compute µs", "margin µs", *latency.PHASES, *latency.USAGE.values())
        rows = [
            (
                escape(latency.tick_name(e)),
                *(number(e.get(k)) for k in ("lateness_us", "compute_us", "margin_us")),
                *(number((e.get("phase_us") or {}).get(name)) for name in latency.PHASES),
                *(number(e.get(k)) for k in latency.USAGE),
            )
            for e in entries
        ]
        found += f"<details><summary>the {len(rows)} {title} ticks</summary>{table(head, rows, numbers=True)}</details>"
    return found


def _measures(measures: Any) -> str:
    """Real-time set-up: what was wanted of whom, and what is in force."""
    if not isinstance(measures, list) or not measures:
        return ""
    rows, missing = [], 0
    for m in measures:
        missing += not m.get("ok")
        mark = "<span class='ok'>yes</span>" if m.get("ok") else "<span class='warn'>no</span>"
        words = (escape(str(m.get(k) or "")) for k in ("of", "name", "wanted"))
        rows.append((*words, mark, escape(str(m.get("in_force") or "")), escape(str(m.get("remedy") or ""))))
    took = f"{len(rows) - missing} of {len(rows)} measures took effect"
    head = ("of", "measure", "wanted", "took effect", "in force", "remedy")
    state = " open" if missing else ""
    return f"<details{state}><summary>real-time set-up: {took}</summary>{table(head, rows)}</details>"
