"""A comparison of two runs as a figure, as a page, on the terminal, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.report.console_parts import number, table
from torqueloop.hil.report.pages import render
from torqueloop.hil.report.plots import UNITS
from torqueloop.hil.results.files import plain
from torqueloop.hil.runs.differences import Differences
from torqueloop.hil.views.figure import Figure, Figures, Line, Panel
from torqueloop.hil.views.still import draw as still

#: what a drive is looked at by, drawn where nothing else is asked for; then those that differ most
USUAL = ("engine.w", "turbine.w", "out.w", "car.v", "car.a")
MOST = 8
SIGNAL_HEAD = ("signal", "unit", "largest", "at s", "rms", "of its range", "")


def drawn(comparison: Differences, names: list[str] | None) -> list[str]:
    """The signals to draw."""
    known = {s.name for s in comparison.signals}
    if names is not None:
        for name in names:
            if name not in known:
                raise ConfigError("no signal {value} in both runs", value=name, hint=did_you_mean(name, known))
        return names
    off = [s.name for s in comparison.signals if not s.within]
    usual = [name for name in USUAL if name in known]
    return list(dict.fromkeys([*off[: MOST - min(3, len(usual))], *usual]))[:MOST]


class Compared:
    """Signals of both runs over each other, their difference below: it may be smaller than the width of a line."""

    def __init__(self, comparison: Differences) -> None:
        self.figures: Figures = Figures()
        self._a, self._b = comparison.a, comparison.b
        a, b = (self.figures.block(run.t, run.info.tick_s or 1e-6) for run in (comparison.a, comparison.b))
        self._inside = (a.columns[0] >= b.columns[0][0] - 1e-9) & (a.columns[0] <= b.columns[0][-1] + 1e-9)
        self._blocks = (a, b)

    def draw(self, names: Sequence[str]) -> list[str]:
        """A figure each; their names."""
        return [name for k, n in enumerate(names) if (name := self.figures.add(self._figure(f"compare{k}", n)))]

    def _figure(self, figure: str, name: str) -> Figure:
        unit = self._a.units.get(name, "")
        factor, shown = UNITS.get(unit, (1.0, "" if unit == "1" else unit))
        a, b = (blk.add(name, run[name], unit) for blk, run in zip(self._blocks, (self._a, self._b), strict=True))
        of_a, of_b = (blk.columns[col.number] for blk, col in zip(self._blocks, (a, b), strict=True))
        ta, tb = (block.columns[0] for block in self._blocks)
        off = np.where(self._inside, np.interp(ta, tb, of_b) - of_a, np.nan)
        block = self._blocks[0]
        difference = block.put(f"B − A: {name}", off, unit)
        lines = [Line("A", a, "blue", factor=factor), Line("B", b, "orange", "dash", factor)]
        below = Panel(shown, [Line("B − A", difference, "purple", factor=factor)], height=100)
        return Figure(figure, [Panel(shown, lines, title=name, height=180), below], gears=False)


def draw(comparison: Differences, path: Path, names: list[str] | None) -> Path:
    """A picture of signals over each other, and their difference below."""
    shown = drawn(comparison, names)
    if not shown:
        raise ConfigError("the runs have no signal in common: there is nothing to draw")
    made = Compared(comparison)
    figures = [made.figures.figures[name] for name in made.draw(shown)]
    return still(made.figures, Figure("compare", [panel for f in figures for panel in f.panels], gears=False), path)


def _words(comparison: Differences) -> str:
    off = sum(not s.within for s in comparison.signals)
    if comparison.equal:
        return f"equal within {comparison.tolerance:g}"
    metrics = sum(not m.within for m in comparison.metrics)
    return (
        f"{off} of {len(comparison.signals)} signals and {metrics} metrics differ by more than {comparison.tolerance:g}"
    )


def write_page(comparison: Differences, path: Path, names: list[str] | None) -> Path:
    """The page."""
    made = Compared(comparison)
    figures = made.draw(drawn(comparison, names))
    of = len(comparison.signals)
    signals = [
        (s.name, s.unit, s.largest, s.at_s, s.rms, f"{s.relative:.2e}", "" if s.within else "differs")
        for s in comparison.signals
        if s.largest > 0.0
    ]
    metrics = []
    for m in sorted(comparison.metrics, key=lambda m: (m.within, m.machine, m.name)):
        word, mark = (
            ("differs", "bad") if not m.within else ("machine", "warn") if m.machine and m.a != m.b else ("", "")
        )
        metrics.append({"name": m.name, "a": m.a, "b": m.b, "difference": m.difference, "mark": mark, "word": word})
    page = render(
        "compare.html",
        f"{comparison.a.info.rig}: two runs",
        comparison.equal,
        made.figures,
        verdict="equal" if comparison.equal else "different",
        what=f"A: {comparison.a.path} · B: {comparison.b.path} · {_words(comparison)}",
        remarks=comparison.remarks,
        figures=figures,
        figure_note="A and B over each other, and their difference.",
        signal_head=SIGNAL_HEAD,
        signals=signals,
        signal_note=f"{of - len(signals)} of {of} signals are equal to the bit.",
        metrics=metrics,
        metric_note="What only the machine decides is marked and is no difference of the runs.",
    )
    path.write_text(page, encoding="utf-8")
    return path


def print_comparison(comparison: Differences, console: Console, most: int = 20) -> None:
    """Verdict, signals and metrics that differ."""
    verdict = ("EQUAL", "green") if comparison.equal else ("DIFFERENT", "bold red")
    console.print(Text.assemble(verdict, "  ", _words(comparison)))
    console.print(f"A {comparison.a.path}\nB {comparison.b.path}", highlight=False, markup=False, soft_wrap=True)
    for line in comparison.remarks:
        console.print(Text(line, "yellow"))
    off = [s for s in comparison.signals if not s.within]
    if off:
        shown = table("signals", *SIGNAL_HEAD[:-1])
        for s in off[:most]:
            shown.add_row(s.name, s.unit, *(f"{x:.4g}" for x in (s.largest, s.at_s, s.rms)), f"{s.relative:.2e}")
        console.print(shown)
        if len(off) > most:
            console.print(f"... and {len(off) - most} more", style="dim")
    metrics = [m for m in comparison.metrics if not m.within]
    if metrics:
        shown = table("metrics", "metric", "A", "B", "B − A")
        for m in metrics[:most]:
            shown.add_row(m.name, number(m.a), number(m.b), number(m.difference))
        console.print(shown)
        if len(metrics) > most:
            console.print(f"... and {len(metrics) - most} more", style="dim")


def as_json(comparison: Differences) -> dict[str, Any]:
    """For machines."""
    return {
        "equal": comparison.equal,
        "tolerance": comparison.tolerance,
        "a": str(comparison.a.path),
        "b": str(comparison.b.path),
        "remarks": comparison.remarks,
        "different": comparison.different,
        "signals": plain(comparison.signals),
        "metrics": plain(comparison.metrics),
    }
