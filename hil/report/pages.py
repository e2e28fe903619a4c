"""HTML pages: templates of this room (templates/) through jinja2, every value escaped, no network, light and dark.

Figures are SVG of our own (`style.themed`), the only thing that is not escaped.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from torqueloop.hil.report.style import css_variables

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
    environment.filters |= {"number": number, "svg": Markup}
    return environment


def render(template: str, title: str, passed: bool, **values: Any) -> str:
    """A whole page."""
    frame = {"light": css_variables(0), "dark": css_variables(1), "verdict": None}
    return _environment().get_template(template).render(title=title, passed=passed, **{**frame, **values})


def number(value: Any) -> Any:
    """A value for reading; text and markup stay as they are."""
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
