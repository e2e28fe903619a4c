"""Trends of a folder of runs, for a terminal and as a page: latency, overruns, shift quality over the last runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.report.console_parts import number as cell
from torqueloop.hil.report.console_parts import table
from torqueloop.hil.report.pages import number, render
from torqueloop.hil.report.shift_quality import METRICS
from torqueloop.hil.runs.history import Point, history, trend
from torqueloop.hil.views.figure import Figure, Figures, Line, Panel

#: what the page shows
SHOWN = ("lateness_p99_us", "compute_p99_us", "missed", "overruns", *METRICS.values())
_BARS = "▁▂▃▄▅▆▇█"


def bars(values: Sequence[float | None]) -> str:
    """One character a value, its height between the smallest and the largest; a space where there is none."""
    known = [x for x in values if x is not None]
    low, span = (min(known), max(known) - min(known)) if known else (0.0, 0.0)
    return "".join(" " if x is None else _BARS[round((x - low) / span * 7) if span else 0] for x in values)


def print_trend(metric: str, points: Sequence[Point], console: Console) -> None:
    """A run a line, and all of them as bars."""
    made = table(metric, "run", "started", "rig", "clock", "torqueloop", "verdict", metric)
    made.columns[-1].justify = "right"
    for p in points:
        verdict = Text("passed", "green") if p.passed else Text("failed", "bold red")
        value = "" if p.value is None else cell(p.value)
        made.add_row(p.path, p.started[:19].replace("T", " "), p.rig, p.clock, p.version, verdict, value)
    console.print(made)
    console.print(bars([p.value for p in points]), highlight=False)


def write_page(folder: Path, target: Path, last: int, rig: str | None) -> int:
    """The page of a folder; how many runs it shows."""
    shown, runs, figures = [], 0, Figures()
    for metric in SHOWN:
        try:
            points = trend(folder, metric, last, rig)
        except ConfigError:
            continue  # nobody has measured it
        runs = max(runs, len(points))
        known = [p.value for p in points if p.value is not None]
        if known:
            shown.append((metric, number(known[-1]), figures.add(plot(metric, points))))
    told = history(folder)
    if not shown:
        raise ConfigError("no run in {value} was judged", key="folder", value=folder)
    newest = trend(folder, shown[0][0], last, rig)
    text = render(
        "history.html", f"Runs in {folder}", newest[-1].passed, figures, verdict=f"{runs} runs", trends=shown,
        rows=[(p.path, p.started[:19].replace("T", " "), p.rig, p.clock, p.version, p.passed) for p in newest[::-1]],
        unread=sorted(told.unread.items()),
    )  # fmt: skip
    target.write_text(text, encoding="utf-8")
    return runs


def plot(metric: str, points: Sequence[Point]) -> Figure:
    """A dot for each run in its order, runs that failed in another colour."""
    lines = []
    for passed, label, role in ((True, "passed", "green"), (False, "failed", "red")):
        own = [(k, p.value) for k, p in enumerate(points) if p.passed == passed and p.value is not None]
        if own:
            lines.append(Line(label, [y for _, y in own], role, "dots", x=[float(k) for k, _ in own]))
    known = [(float(k), p.value) for k, p in enumerate(points) if p.value is not None]
    lines.insert(0, Line(metric, [y for _, y in known], "muted", x=[x for x, _ in known]))
    return Figure(metric, [Panel("", lines, height=130)], x="run", gears=False)
