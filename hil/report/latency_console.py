"""The loop's time on the terminal: percentiles, counters, phases, the worst ticks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from torqueloop.hil.report import latency
from torqueloop.hil.report.console_parts import number, sparkline, table
from torqueloop.hil.results.clock import ClockStats

#: worst ticks shown of each kind; all of them are in report.html and report.json
SHOWN = 3


def timing(clock: ClockStats) -> RenderableType | None:
    """Nothing for a run whose time was not measured."""
    shown = table("real time", "µs", "p50", "p99", "p99.9", "max", "distribution (log, log)")
    shown.columns[-1].justify = "left"
    for _, name, measured in latency.timings(clock):
        cells = [number(getattr(measured, k)) for k in ("p50", "p99", "p999", "max")]
        shown.add_row(name, *cells, Text(sparkline(measured.hist), "cyan"))
    if not shown.rows:
        return None
    counts = {word: n for word, n in latency.counts(clock).items() if n or word not in latency.DETAILS}
    parts: list[RenderableType] = [shown, _line(counts)]
    parts += [_line(found, title) for title, found in _more(clock)]
    for part in (_phases(clock), _worst(clock)):
        if part is not None:
            parts += [Text(), part]
    return Group(*parts)


def timing_line(clock: ClockStats) -> RenderableType | None:
    """The same in one line: nothing of it failed."""
    counts = {word: n for word, n in latency.counts(clock).items() if n or word not in latency.DETAILS}
    shown = [f"{name} p99 {number(measured.p99)} max {number(measured.max)} µs"
             for _, name, measured in latency.timings(clock)]  # fmt: skip
    if not shown:
        return None
    return Text.assemble(("loop  ", "bold"), "  ".join([*shown, *(f"{k} {number(v)}" for k, v in counts.items())]))


def _more(clock: ClockStats) -> list[tuple[str, dict[str, Any]]]:
    return [(t, f) for t, f in (("clock: ", latency.clock_settings(clock)), ("grace: ", latency.grace(clock))) if f]


def _line(values: Mapping[str, Any], title: str = "") -> Text:
    return Text(title + "  ".join(f"{word} {number(value)}" for word, value in values.items()))


def _phases(clock: ClockStats) -> RenderableType | None:
    rows = latency.phases(clock)
    if not rows:
        return None
    shown = table("phases", "µs", "mean", "p50", "p99", "max", "of the mean tick")
    for name, row, share in rows:
        shown.add_row(name, *(number(getattr(row, k)) for k in ("mean", "p50", "p99", "max")), f"{100 * share:.0f} %")
    return shown


def _worst(clock: ClockStats) -> RenderableType | None:
    shown = table("worst ticks", "", "step", "lateness µs", "compute µs", "longest phase µs", "faults", "taken off")
    for entries, name in ((clock.worst.by_lateness, "latest"), (clock.worst.by_compute, "longest")):
        for entry in entries[:SHOWN]:
            phase = entry.longest_phase
            shown.add_row(
                name,
                entry.name,
                number(entry.lateness_us),
                number(entry.compute_us),
                f"{phase} {number(entry.phase_us.get(phase))}",
                number(entry.minor_faults + entry.major_faults),
                number(entry.involuntary_switches),
            )
    return shown if shown.rows else None
