"""What all pages draw with: figures as data, one set of colours, and one folder of JavaScript (page/).

page/ has what all pages share; page/report, page/watch and page/animation have what only one page needs, and
page/libraries has the libraries of others with their licences.
"""

from pathlib import Path

PAGE: Path = Path(__file__).parent / "page"
#: licences of the libraries: everyone who passes a page on passes copies of the libraries on
LICENCES: dict[str, Path] = {
    "three.js": PAGE / "libraries/LICENSE-three.txt", "uPlot": PAGE / "libraries/LICENSE-uPlot.txt",
}  # fmt: skip
_UPLOT = ("libraries/uPlot.iife.min.js", "elements.js")
#: scripts of each page, in the order in which they run
_SCRIPTS = {
    "report": (*_UPLOT, "plots.js", "report/recorded.js", "report/figures.js"),
    "watch": (*_UPLOT, "plots.js", *(f"watch/{name}.js" for name in (
        "link", "lines", "chosen", "gearbox", "clock", "control", "drive", "trace", "recordings", "signals", "main"))),
    "animation": ("libraries/three.min.js", *_UPLOT, *(f"animation/{name}.js" for name in (
        "data", "forms", "scene", "charts", "main"))),
}  # fmt: skip
_STYLES = {
    "report": ("libraries/uPlot.min.css", "plots.css", "report/page.css"),
    "watch": ("libraries/uPlot.min.css", "plots.css", "watch/watch.css"),
    "animation": ("libraries/uPlot.min.css", "animation/animate.css"),
}


def scripts(page: str) -> list[str]:
    """Scripts of a page ("report", "watch", "animation"), in the order in which they run."""
    return _texts(_SCRIPTS[page])


def styles(page: str) -> list[str]:
    """Style sheets of a page, in their order."""
    return _texts(_STYLES[page])


def _texts(names: tuple[str, ...]) -> list[str]:
    return [(PAGE / name).read_text(encoding="utf-8") for name in names]
