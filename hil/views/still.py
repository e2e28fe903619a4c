"""Figures as pictures (SVG, PNG, PDF). Needs matplotlib (extra [report])."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.views.figure import Figure, Figures, Line, Panel
from torqueloop.hil.views.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: inches of a pixel of a panel's height
INCHES = 1 / 90
LOOK: Any = {
    "svg.fonttype": "none", "font.size": 9.5, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.edgecolor": COLOURS["grid"][0], "axes.labelcolor": COLOURS["muted"][0],
    "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "grid.color": COLOURS["grid"][0], "grid.linewidth": 0.6, "xtick.color": COLOURS["muted"][0],
    "ytick.color": COLOURS["muted"][0], "xtick.major.size": 0, "ytick.major.size": 0, "legend.frameon": False,
    "legend.fontsize": 8.5, "lines.linewidth": 1.4,
}  # fmt: skip


class NoMatplotlib(TorqueloopError):
    """A picture is requested, and matplotlib is not installed."""


def _colour(role: str) -> str:
    return COLOURS[role][0]


def draw(figures: Figures, figure: Figure, path: Path) -> Path:
    """Write one figure; the ending of `path` says in which form."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Picture
    except ImportError:
        raise NoMatplotlib("a picture needs matplotlib: pip install 'torqueloop[report]'") from None
    heights = [panel.height for panel in figure.panels]
    with mpl.rc_context(LOOK):
        made = Picture(figsize=(11.0, 0.8 + INCHES * sum(heights)), layout="constrained")
        FigureCanvasAgg(made)
        axes = made.subplots(len(heights), 1, height_ratios=heights, sharex=True, squeeze=False)[:, 0]
        for panel, ax in zip(figure.panels, axes, strict=True):
            _panel(figures, figure, panel, ax)
        axes[-1].set_xlabel(f"time  [{figure.x}]" if figure.x == "s" else figure.x)
        if figure.begin is not None:
            axes[-1].set_xlim(figure.begin, figure.end)
        made.savefig(path, dpi=110, facecolor="white")
    return path


def _panel(figures: Figures, figure: Figure, panel: Panel, ax: Axes) -> None:
    for k, (begin, end, _) in enumerate(figures.gears if figure.gears and figure.x == "s" else []):
        ax.axvspan(begin, end, color=_colour("band_b" if k % 2 else "band_a"), linewidth=0, zorder=0)
    for line in panel.lines:
        _line(figures, line, ax)
    for y, (_, row) in enumerate(panel.rows):
        for s in row:
            ax.barh(y, s.end - s.begin, left=s.begin, height=0.76, color=_colour(s.role), linewidth=0)
    if panel.rows:
        ax.set_yticks(range(len(panel.rows)), [name for name, _ in panel.rows])
        ax.set_ylim(len(panel.rows) - 0.5, -0.5)
        ax.grid(False)
    for mark in figure.marks:
        ax.axvline(mark.x, color=_colour(mark.role), linewidth=1.0)
    if figure.log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    if panel.low is not None or panel.high is not None:
        ax.set_ylim(panel.low, panel.high)
    ax.set_ylabel(panel.unit)
    ax.set_title(panel.title)
    if any(line.label for line in panel.lines):
        ax.legend(loc="upper right", ncols=4)


def _line(figures: Figures, line: Line, ax: Axes) -> None:
    x, y = figures.values(line)
    colour = _colour(line.role)
    if line.style == "bars":
        widths = [right - left for left, right in zip(x, line.right, strict=True)]
        ax.bar(x, y, widths, align="edge", color=colour, label=line.label)
    elif line.style == "step":
        ax.step(x, y, where="pre", color=colour, label=line.label)
    else:
        form = {"dash": "--", "dots": ".", "rings": "o"}.get(line.style, "-")
        ax.plot(x, y, form, color=colour, label=line.label, markerfacecolor="none" if form == "o" else colour)


def draw_all(figures: Figures, folder: Path) -> list[Path]:
    """Every figure of a page as an SVG of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    return [draw(figures, figure, folder / f"{name}.svg") for name, figure in figures.figures.items()]
