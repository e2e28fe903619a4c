"""Small pieces of report.html: the frame of the page, sections, tables, lists of pairs, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from torqueloop.hil.report.page import SCRIPT, STYLE
from torqueloop.hil.report.style import css_variables


def page(title: str, passed: bool, body: Iterable[str]) -> str:
    """A whole page that needs no network, readable in light and dark."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}: {'passed' if passed else 'failed'} – torqueloop</title>"
        f"<style>:root{{{css_variables(0)}color-scheme:light}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{css_variables(1)}color-scheme:dark}}}}"
        f":root[data-theme=dark]{{{css_variables(1)}color-scheme:dark}}{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main><script>{SCRIPT}</script></body></html>\n"
    )


def section(title: str, content: str, note: str = "") -> str:
    if not content:
        return ""
    below = f"<p class='sub'>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{below}{content}</section>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False) -> str:
    """Cells are HTML already."""
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    kind = " class='numbers'" if numbers else ""
    return f"<div class='scroll'><table{kind}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def pairs(values: Any) -> str:
    if not isinstance(values, Mapping):
        return ""
    simple = {k: v for k, v in values.items() if not isinstance(v, (Mapping, list, tuple))}
    items = "".join(f"<div><dt>{escape(str(k))}</dt><dd>{number(v)}</dd></div>" for k, v in simple.items())
    return f"<dl>{items}</dl>" if items else ""


def pairs_of_tables(values: Any) -> str:
    if not isinstance(values, Mapping):
        return ""
    tables = {k: v for k, v in values.items() if isinstance(v, Mapping)}
    if not tables:
        return pairs(values)
    keys = [k for k in dict.fromkeys(k for v in tables.values() for k in v) if k != "name"]
    rows = [(escape(str(n)), *(number(v.get(k)) for k in keys)) for n, v in tables.items()]
    return table(("stream", *keys), rows, numbers=True)


def number(value: Any) -> str:
    """A value for reading, escaped."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    if isinstance(value, float):
        if value != 0 and not 0.01 <= abs(value) < 1e6:
            return f"{value:.3g}"
        return f"{value:,.4g}".replace(",", "\u202f") if abs(value) < 1e4 else f"{value:,.0f}".replace(",", "\u202f")
    return escape(str(value))
