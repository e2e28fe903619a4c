"""A page as a person reads it, from its HTML alone: sections by heading with their tables and pairs, tiles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Section:
    """What stands below a heading."""

    #: (head, rows)
    tables: list[tuple[list[str], list[list[str]]]] = field(default_factory=list)
    pairs: dict[str, str] = field(default_factory=dict)
    #: everything else
    text: str = ""


class Page(HTMLParser):
    """A page: sections by heading, tiles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sections: dict[str, Section] = {"": Section()}
        #: (name, value, unit, below)
        self.tiles: list[list[str]] = []
        self._now, self._path, self._key = self.sections[""], [""], ""
        self._heading, self._cell = "", ""
        #: depth of the tile that is read; 0: none is
        self._tile = 0
        self.feed(re.sub(r"<(script|style|nav|figure).*?</\1>", "", html, flags=re.S))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._path.append(tag)
        if tag == "h2":
            self._heading = ""
        if tag == "table":
            self._now.tables.append(([], []))
        if tag == "tr" and "tbody" in self._path:
            self._now.tables[-1][1].append([])
        if tag in ("td", "th", "dt", "dd"):
            self._cell = ""
        if tag == "div" and "tile" in str(dict(attrs).get("class", "")).split():
            self.tiles.append([""] * 4)
            self._tile = len(self._path)

    def handle_endtag(self, tag: str) -> None:
        if tag == "h2":
            self._now = self.sections.setdefault(self._heading, Section())
        if tag == "th":
            self._now.tables[-1][0].append(self._cell)
        if tag == "td":
            self._now.tables[-1][1][-1].append(self._cell)
        if tag == "dt":
            self._key = self._cell
        if tag == "dd":
            self._now.pairs[self._key] = self._cell
        while self._path and self._path.pop() != tag:
            pass
        if len(self._path) < self._tile:
            self._tile = 0

    def handle_data(self, data: str) -> None:
        inside = self._path
        if "h2" in inside:
            self._heading += data
        elif any(tag in inside for tag in ("td", "th", "dt", "dd")):
            self._cell += data
        else:
            self._now.text += data
            if self._tile:
                place = (
                    2 if "small" in inside else {"span": 0, "b": 1, "i": 3}.get(inside[-1], 1 if "b" in inside else -1)
                )
                if place >= 0:
                    self.tiles[-1][place] += data
