"""The loop's time on the terminal: percentiles, counters, phases, the worst ticks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from torqueloop.hil.report import latency
from torqueloop.hil.report.console_parts import number, sparkline, table

#: worst ticks shown of each kind; all of them are in report.html and report.json
SHOWN = 3


def timing(stats: Mapping[str, Any]) -> RenderableType | None:
    """Nothing for a run whose time was not measured."""
    shown = table("real time", "µs", "p50", "p99", "p99.9", "max", "distribution (log, log)")
    shown.columns[-1].justify = "left"
    for _, name, measured in latency.timings(stats):
        cells = [number(measured.get(k)) for k in ("p50", "p99", "p999", "max")]
        shown.add_row(name, *cells, Text(sparkline(measured.get("hist") or []), "cyan"))
    if not shown.rows:
        return None
    counts = {word: n for word, n in latency.counts(stats).items() if n or word not in latency.DETAILS}
    parts: list[RenderableType] = [shown, _line(counts)]
    parts += [_line(found, title) for title, found in _more(stats)]
    for part in (_phases(stats), _worst(stats)):
        if part is not None:
            parts += [Text(), part]
    return Group(*parts)


def _more(stats: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(t, f) for t, f in (("clock: ", latency.clock_settings(stats)), ("grace: ", latency.grace(stats))) if f]


def _line(values: Mapping[str, Any], title: str = "") -> Text:
    return Text(title + "  ".join(f"{word} {number(value)}" for word, value in values.items()))


def _phases(stats: Mapping[str, Any]) -> RenderableType | None:
    rows = latency.phases(stats)
    if not rows:
        return None
    shown = table("phases", "µs", "mean", "p50", "p99", "max", "of the mean tick")
    for name, row, share in rows:
        shown.add_row(name, *(number(row.get(k)) for k in ("mean", "p50", "p99", "max")), f"{100 * share:.0f} %")
    return shown


def _worst(stats: Mapping[str, Any]) -> RenderableType | None:
    shown = table("worst ticks", "", "step", "lateness µs", "compute µs", "longest phase µs", "faults", "taken off")
    for key, name in (("by_lateness", "latest"), ("by_compute", "longest")):
        for entry in latency.worst(stats, key)[:SHOWN]:
            phase = latency.longest_phase(entry)
            faults = int(entry.get("minor_faults", 0)) + int(entry.get("major_faults", 0))
            shown.add_row(
                name,
                latency.tick_name(entry),
                *(number(entry.get(k)) for k in ("lateness_us", "compute_us")),
                f"{phase} {number((entry.get('phase_us') or {}).get(phase))}",
                number(faults),
                number(entry.get("involuntary_switches")),
            )
    return shown if shown.rows else None
