"""HTML pages: the templates in templates/ through jinja2, every value escaped, no network, light and dark.

Figures are drawn in the browser (hil/views/page) from the numbers that the page holds: `Figures`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.views import LICENCES, scripts, styles
from torqueloop.hil.views.figure import Figures
from torqueloop.hil.views.style import css

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number}
    return environment


def render(template: str, title: str, passed: bool, drawn: Figures | None = None, **values: Any) -> str:
    """A whole page, with what it draws."""
    drawn = drawn or Figures()
    text, numbers = drawn.packed()
    frame = {
        "verdict": None,
        "drawn": drawn.figures,
        "figures_json": Markup(text),
        "numbers": numbers,
        "styles": Markup("\n".join([css(), *styles("report")])),
        "scripts": [Markup(script) for script in scripts("report")],
        "licence": Markup(LICENCES["uPlot"].read_text(encoding="utf-8")),
    }
    return _environment().get_template(template).render(title=title, passed=passed, **{**frame, **values})


@dataclass(frozen=True)
class At:
    """A cell of a table that leads to a stretch of time in the figures."""

    text: str
    begin_s: float
    end_s: float


def tick_at(text: str, tick: int, tick_s: float | None) -> At | str:
    """Leads to a tick, with what is around it."""
    return At(text, (tick - 50) * tick_s, (tick + 50) * tick_s) if tick_s else text


def number(value: Any) -> Any:
    """A value for reading; text and markup stay as they are."""
    if isinstance(value, At):
        link = '<a class="at" href="#" data-begin="{:g}" data-end="{:g}">{}</a>'
        return Markup(link).format(value.begin_s, value.end_s, value.text)
    if value is None or (isinstance(value, str) and not value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    if isinstance(value, float):
        if value != 0 and not 0.01 <= abs(value) < 1e6:
            return f"{value:.3g}"
        return f"{value:,.4g}".replace(",", "\u202f") if abs(value) < 1e4 else f"{value:,.0f}".replace(",", "\u202f")
    return value if isinstance(value, str) else str(value)
