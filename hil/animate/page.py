"""One HTML file that needs nothing from anywhere: three.js, uPlot, our scripts and the content are inside.

What comes from files and runs is text to the page: escaped where it is markup, and in the content no `<` is left.
Scripts run by their digest only (Content-Security-Policy), so nothing that could get in would.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from torqueloop.hil import views


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(views.PAGE / "animation"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("animate.html")


def page(content: Mapping[str, Any]) -> str:
    """The file."""
    scripts = [script.replace("</script", "<\\/script") for script in views.scripts("animation")]
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:"
    return _template().render(
        title=content["title"],
        subtitle=content["subtitle"],
        csp=policy,
        styles=Markup("\n".join(views.styles("animation"))),
        scripts=[Markup(script) for script in scripts],
        licences={name: path.read_text(encoding="utf-8") for name, path in views.LICENCES.items()},
        content=Markup(as_json(content)),
    )


def as_json(content: Mapping[str, Any]) -> str:
    """JSON that no parser of HTML takes for anything else."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
