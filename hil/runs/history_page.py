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

#: what the page shows
SHOWN = ("lateness_p99_us", "compute_p99_us", "missed", "overruns", *METRICS.values())
#: size of a plot
_WIDE, _HIGH, _LEFT, _BELOW = 560, 130, 60, 18
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
    shown, runs = [], 0
    for metric in SHOWN:
        try:
            points = trend(folder, metric, last, rig)
        except ConfigError:
            continue  # nobody has measured it
        runs = max(runs, len(points))
        known = [p.value for p in points if p.value is not None]
        if known:
            shown.append((metric, number(known[-1]), plot(points)))
    told = history(folder)
    if not shown:
        raise ConfigError("no run in {value} was judged", key="folder", value=folder)
    newest = trend(folder, shown[0][0], last, rig)
    text = render(
        "history.html", f"Runs in {folder}", newest[-1].passed, verdict=f"{runs} runs", trends=shown,
        rows=[(p.path, p.started[:19].replace("T", " "), p.rig, p.clock, p.version, p.passed) for p in newest[::-1]],
        unread=sorted(told.unread.items()),
    )  # fmt: skip
    target.write_text(text, encoding="utf-8")
    return runs


def plot(points: Sequence[Point]) -> str:
    """Inline SVG: a dot for each run, runs that failed in another colour; its title says which run it is."""
    known = [p.value for p in points if p.value is not None]
    low, high = min(0.0, *known), max(known)
    span = (high - low) or 1.0
    step = (_WIDE - _LEFT - 8) / max(1, len(points) - 1)
    dots, line = [], []
    for k, p in enumerate(points):
        if p.value is None:
            continue
        x, y = _LEFT + k * step, 6 + (1.0 - (p.value - low) / span) * (_HIGH - _BELOW - 6)
        line.append(f"{x:.1f},{y:.1f}")
        colour = "var(--green)" if p.passed else "var(--red)"
        words = _escaped(f"{p.path}: {number(p.value)}")
        dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{words}</title></circle>')
    first, last = _escaped(points[0].started[:10]), _escaped(points[-1].started[:10])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" role="img" font-size="11" '
        f'fill="currentColor"><polyline points="{" ".join(line)}" fill="none" stroke="currentColor" '
        f'stroke-opacity=".35"/>{"".join(dots)}<text x="{_LEFT - 8}" y="14" text-anchor="end">{number(high)}</text>'
        f'<text x="{_LEFT - 8}" y="{_HIGH - _BELOW}" text-anchor="end">{number(low)}</text>'
        f'<text x="{_LEFT}" y="{_HIGH - 3}">{first}</text>'
        f'<text x="{_WIDE - 8}" y="{_HIGH - 3}" text-anchor="end">{last}</text></svg>'
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
