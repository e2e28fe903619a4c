"""What a page draws, read from the page alone: figures, and the numbers of their lines unpacked byte by byte.

Written from the description of the form (docs/report_page.md), without the code that packs.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnLine:
    """A line as the reader of the page sees it."""

    figure: str
    panel: int
    #: of the y axis, and the panel's title
    unit: str
    title: str
    label: str
    style: str
    x: Array
    y: Array
    #: largest error of y that packing may make
    exact: float


class PageFigures:
    """Figures of a page."""

    def __init__(self, html: str) -> None:
        def inside(name: str) -> str:
            found = re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', html, re.S)
            assert found is not None, f"the page has no {name}"
            return found.group(1)

        content = json.loads(inside("figures"))
        self.figures: dict[str, Any] = content["figures"]
        #: (begin, end, gear) of what is shaded
        self.gears: list[tuple[float, float, str]] = [tuple(g) for g in content["gears"]]
        self.blocks: list[Any] = content["blocks"]
        self.packed_bytes: int = len(inside("numbers"))
        self._data = zlib.decompress(base64.b64decode(inside("numbers")))
        self._begins, at = [], 0
        for block in self.blocks:
            self._begins.append([])
            for *_, wide in block["columns"]:
                self._begins[-1].append(at)
                at += block["n"] * max(0, wide)
        assert at == len(self._data)

    @classmethod
    def of(cls, path: Path) -> PageFigures:
        """Of the file of a page."""
        return cls(path.read_text(encoding="utf-8"))

    def column(self, block: int, number: int) -> tuple[Array, float]:
        """Values of a column, NaN where there is none, and their largest error."""
        n, (_, _, least, step, wide) = self.blocks[block]["n"], self.blocks[block]["columns"][number]
        if wide <= 0:
            return np.full(n, np.nan if wide else least), 0.0
        begin, q = self._begins[block][number], []
        planes = [self._data[begin + k * n : begin + (k + 1) * n] for k in range(wide)]
        slope = value = 0
        for digits in zip(*planes, strict=True):
            z = sum(d << (8 * k) for k, d in enumerate(digits))
            slope = (slope + (-(z + 1) // 2 if z & 1 else z // 2)) & 0xFFFFFFFF
            value = (value + slope) & 0xFFFFFFFF
            q.append(value)
        whole = np.array(q, dtype=np.float64)
        return np.where(whole == 0, np.nan, least + step * (whole - 1)), 0.5001 * step

    def by_name(self, name: str, block: int = 0) -> tuple[Array, float]:
        """The column of a signal."""
        return self.column(block, [c[0] for c in self.blocks[block]["columns"]].index(name))

    def lines(self, figure: str) -> Iterator[DrawnLine]:
        """All lines of a figure."""
        for k, panel in enumerate(self.figures[figure]["panels"]):
            for line in panel["lines"]:
                if isinstance(line["y"], dict):
                    x, _ = self.column(line["y"]["block"], 0)
                    y, exact = self.column(line["y"]["block"], line["y"]["number"])
                else:
                    x, y, exact = np.array(line["x"]), np.array(line["y"], dtype=float), 0.0
                factor = line["factor"]
                shown = (line["label"], line["style"], x, y * factor, exact * abs(factor))
                yield DrawnLine(figure, k, panel["unit"], panel["title"], *shown)

    def rows(self, figure: str) -> list[tuple[str, list[tuple[float, float, str, str]]]]:
        """(name, [(begin, end, colour, text)]) of the rows of a figure."""
        return [
            (name, [(s["begin"], s["end"], s["role"], s["text"]) for s in row])
            for panel in self.figures[figure]["panels"]
            for name, row in panel["rows"]
        ]
