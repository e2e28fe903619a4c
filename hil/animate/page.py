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
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import torqueloop.hil.views

PAGE = Path(__file__).parent / "page"
SHARED = torqueloop.hil.views.PAGE
SCRIPTS = (
    PAGE / "three.min.js", SHARED / "uPlot.iife.min.js", PAGE / "data.js", PAGE / "forms.js", PAGE / "scene.js",
    PAGE / "charts.js", PAGE / "main.js",
)  # fmt: skip
STYLES = (SHARED / "uPlot.min.css", PAGE / "animate.css")
#: of the two libraries inside: whoever passes the page on passes copies of them on, which must carry these texts
LICENCES = {"three.js": PAGE / "LICENSE-three.txt", "uPlot": SHARED / "LICENSE-uPlot.txt"}


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template("animate.html")


def page(content: Mapping[str, Any]) -> str:
    """The file."""
    scripts = [path.read_text(encoding="utf-8").replace("</script", "<\\/script") for path in SCRIPTS]
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:"
    return _template().render(
        title=content["title"],
        subtitle=content["subtitle"],
        csp=policy,
        styles=Markup("\n".join(path.read_text(encoding="utf-8") for path in STYLES)),
        scripts=[Markup(script) for script in scripts],
        licences={name: path.read_text(encoding="utf-8") for name, path in LICENCES.items()},
        content=Markup(as_json(content)),
    )


def as_json(content: Mapping[str, Any]) -> str:
    """JSON that no parser of HTML takes for anything else."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
