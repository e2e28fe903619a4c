"""Look of the report's figures: drawn once, coloured by the page.

matplotlib writes the colours below into the SVG; `themed` replaces each by a CSS variable, so the same figure is right
in light and in dark, sharp at any size, and its text stays text.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: role -> (colour in the figure = light theme, dark theme)
COLOURS: dict[str, tuple[str, str]] = {
    "fg": ("#1d2430", "#e6e9ef"),
    "muted": ("#6b7483", "#98a2b3"),
    "grid": ("#dfe3ea", "#2c3340"),
    "panel": ("#fefefe", "#171b22"),
    "blue": ("#2563b8", "#6ea8fe"),
    "orange": ("#d9660f", "#ff9f4a"),
    "green": ("#1a8a54", "#4cc38a"),
    "red": ("#c9302c", "#ff6b66"),
    "purple": ("#7d4bc0", "#b692f6"),
    "teal": ("#0f8b95", "#4fd0d9"),
    "gold": ("#a87a06", "#e5b93c"),
    "pink": ("#c2408f", "#f58cc5"),
    "band_a": ("#eef2f8", "#1d232d"),
    "band_b": ("#e1e8f2", "#252d39"),
    "stuck": ("#2a66b9", "#5b96ec"),
    "slip": ("#e8891d", "#f5a143"),
    "slip_back": ("#b8479b", "#e07cc4"),
    "free": ("#e9ecf1", "#242a34"),
}

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def colour(role: str) -> str:
    """The colour to draw with."""
    return COLOURS[role][0]


def css_variables(theme: int) -> str:
    """`--fg:...;` declarations; theme 0 light, 1 dark."""
    return "".join(f"--{name}:{pair[theme]};" for name, pair in COLOURS.items())


def rc() -> Any:
    """matplotlib settings of all figures."""
    fg, muted, grid = colour("fg"), colour("muted"), colour("grid")
    return {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9.5,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 5,
        "axes.labelsize": 9,
        "axes.labelcolor": muted,
        "axes.edgecolor": grid,
        "axes.linewidth": 0.8,
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": grid,
        "grid.linewidth": 0.6,
        "text.color": fg,
        "xtick.color": muted,
        "ytick.color": muted,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "legend.borderaxespad": 0.2,
        "legend.handlelength": 1.4,
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "lines.linewidth": 1.4,
        "path.simplify_threshold": 0.25,
        "axes.axisbelow": True,
    }


def available() -> bool:
    """True when figures can be drawn here."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def stacked(width: float, height: float, rows: Sequence[float], **more: Any) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of stacked axes with relative heights `rows`, one time axis; no global state of pyplot is touched."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(rc()):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(len(rows), 1, height_ratios=rows, sharex=True, squeeze=False, **more)[:, 0]
        yield figure, list(axes)


def logarithmic(ax: Axes) -> None:
    """Both axes logarithmic, powers of ten written as text (as formulas they take longer than the whole figure)."""
    from matplotlib.ticker import NullFormatter

    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: power_of_ten(value))
        axis.set_minor_formatter(NullFormatter())


def power_of_ten(value: float) -> str:
    """10⁻³ for 0.001; other numbers as they are."""
    exponent = math.log10(value) if value > 0.0 else math.nan
    if not math.isfinite(exponent) or abs(exponent - round(exponent)) > 1e-9:
        return f"{value:g}"
    return "10" + str(round(exponent)).translate(SUPERSCRIPT)


def themed(figure: Figure, name: str) -> str:
    """The figure as inline SVG that takes its colours from the page. `name` keeps ids apart on one page."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text = io.StringIO()
    # the unit of SVG, in which texts are measured when the figure is laid out
    figure.dpi = 72
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    canvas: Any = FigureCanvasSVG(figure)
    with mpl.rc_context({"svg.hashsalt": name}):
        # savefig would draw all once more before, for an extent that nobody asks for
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    # Ids are only unique within one figure.
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    for role, (light, _) in COLOURS.items():
        svg = svg.replace(light, f"var(--{role})")
    # Width and height are the page's business; the drawing scales by its viewBox.
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    return svg.replace("font: 9.5px 'sans-serif'", "font: 9.5px sans-serif")
