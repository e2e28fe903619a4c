"""What every page draws with: figures as data, one look, one folder of JavaScript (page/)."""

from pathlib import Path

PAGE: Path = Path(__file__).parent / "page"
UPLOT, UPLOT_STYLE, UPLOT_LICENCE = PAGE / "uPlot.iife.min.js", PAGE / "uPlot.min.css", PAGE / "LICENSE-uPlot.txt"
#: of a page that is one file, in their order
SCRIPTS: tuple[Path, ...] = (UPLOT, PAGE / "plots.js", PAGE / "recorded.js", PAGE / "figures.js")
STYLES: tuple[Path, ...] = (UPLOT_STYLE, PAGE / "plots.css", PAGE / "page.css")

__all__ = ["PAGE", "SCRIPTS", "STYLES", "UPLOT", "UPLOT_LICENCE", "UPLOT_STYLE"]
