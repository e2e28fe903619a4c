"""A comparison of two runs as a figure, as a page, on the terminal, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.record.mf4 import MissingExtraError
from torqueloop.hil.report import plots
from torqueloop.hil.report.analysis import thin
from torqueloop.hil.report.console_parts import number, table
from torqueloop.hil.report.pages import render
from torqueloop.hil.report.style import available, colour, stacked, themed
from torqueloop.hil.results.files import plain
from torqueloop.hil.runs.differences import Differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: what a drive is looked at by, drawn where nothing else is asked for; then those that differ most
USUAL = ("engine.w", "turbine.w", "out.w", "car.v", "car.a")
MOST = 8
SIGNAL_HEAD = ("signal", "unit", "largest", "at s", "rms", "of its range", "")
_SHOWN = {"rad/s": (plots.RPM, "1/min"), "Pa": (plots.BAR, "bar"), "m/s": (3.6, "km/h")}


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


def _axes(comparison: Differences, name: str, ax: Axes) -> None:
    unit = comparison.a.units.get(name, "")
    factor, shown = _SHOWN.get(unit, (1.0, unit))
    for run, role, style, label in ((comparison.a, "blue", "-", "A"), (comparison.b, "orange", "--", "B")):
        t, y = thin(run.t, run[name] * factor)
        ax.plot(t, y, color=colour(role), linestyle=style, label=label)
    ax.set_title(name)
    ax.set_ylabel(f"[{shown}]")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def _difference(comparison: Differences, name: str, ax: Axes) -> None:
    """B - A below: two lines over each other do not show what is smaller than their width."""
    import numpy as np

    a, b = comparison.a, comparison.b
    factor, shown = _SHOWN.get(a.units.get(name, ""), (1.0, a.units.get(name, "")))
    inside = (a.t >= b.t[0] - 1e-9) & (a.t <= b.t[-1] + 1e-9)
    t = a.t[inside]
    ax.plot(*thin(t, (np.interp(t, b.t, b[name]) - a[name][inside]) * factor), color=colour("purple"), label="B − A")
    ax.set_ylabel(f"B − A [{shown}]")


def draw(comparison: Differences, path: Path, names: list[str] | None) -> Path:
    """Signals over each other, and their difference below."""
    if not available():
        raise MissingExtraError("a picture needs matplotlib: pip install 'torqueloop[report]'")
    shown = drawn(comparison, names)
    if not shown:
        raise ConfigError("the runs have no signal in common: there is nothing to draw")
    with stacked(11.0, 0.6 + 2.0 * len(shown), [2.0, 1.0] * len(shown)) as (figure, axes):
        for k, name in enumerate(shown):
            _axes(comparison, name, axes[2 * k])
            _difference(comparison, name, axes[2 * k + 1])
        axes[-1].set_xlabel("time  [s]")
        figure.savefig(path, dpi=110, facecolor="white")
    return path


def _figures(comparison: Differences, names: list[str] | None) -> list[str]:
    if not available():
        return []
    found = []
    for k, name in enumerate(drawn(comparison, names)):
        with stacked(13.4, 2.7, [2.0, 1.0]) as (figure, axes):
            _axes(comparison, name, axes[0])
            _difference(comparison, name, axes[1])
            axes[1].set_xlabel("time  [s]")
            found.append(themed(figure, f"compare{k}"))
    return found


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
        verdict="equal" if comparison.equal else "different",
        what=f"A: {comparison.a.path} · B: {comparison.b.path} · {_words(comparison)}",
        remarks=comparison.remarks,
        figures=_figures(comparison, names),
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
