"""Figures as data: what a page draws in the browser, and `still` as a picture. Recorded numbers go along in binary.

    figures = Figures()
    run = figures.block(t, tick_s)              samples at common times; more than POINTS are thinned
    engine = run.add("engine.w", w, "rad/s")    a column
    figures.add(Figure("speeds", [Panel("1/min", [Line("engine", engine, factor=RPM)])]))
    figures.json(), figures.binary()            what the page holds

The page shows a figure where its template says `{{ parts.figure(name) }}`; page/plots.js draws it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass

Array = NDArray[np.float64]
#: samples of a column that a page holds; of more, minimum and maximum of each group
POINTS = 30_000
#: steps that the span of a column is divided into; whole numbers are kept as they are
STEPS = 2**20
RPM = 30.0 / np.pi
BAR = 1e-5
#: colours of lines of one panel, in this order
ROLES = ("blue", "orange", "green", "purple", "teal", "red", "gold", "pink", "muted")


def role(k: int) -> str:
    """Colour of the k-th line."""
    return ROLES[k % len(ROLES)]


@dataclass(frozen=True)
class Column:
    """Place of a column: number of the block, number in the block."""

    block: int
    number: int


@dataclass(frozen=True)
class Line:
    """Values over time or over `x`."""

    label: str
    #: a column, whose times are those of its block; or values over `x`
    y: Column | Sequence[float | None]
    #: name of a colour in style.COLOURS
    role: str = "blue"
    #: line, dash, dots, rings, step (a value holds up to its x), bars (from x to `right`)
    style: str = "line"
    #: shown is factor * y
    factor: float = 1.0
    x: Sequence[float] = ()
    #: right ends of bars
    right: Sequence[float] = ()


@dataclass(frozen=True)
class Span:
    """A stretch of a row, from begin to end along x."""

    begin: float
    end: float
    role: str
    #: written in it if it fits, and shown under the cursor
    text: str = ""


@dataclass(frozen=True)
class Mark:
    """A line across the panels."""

    x: float
    text: str
    role: str = "red"


@dataclass(frozen=True)
class Panel:
    """Lines over one axis, or rows of spans."""

    #: of the y axis
    unit: str = ""
    lines: Sequence[Line] = ()
    #: (name, its spans), from above
    rows: Sequence[tuple[str, Sequence[Span]]] = ()
    title: str = ""
    #: pixels, without the legend
    height: int = 170
    #: limits of the y axis; None: those of the values
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Figure:
    """Panels one below the other with one x axis."""

    name: str
    panels: Sequence[Panel]
    #: what x is: "s" is the time of the run, which all figures of a page move along together
    x: str = "s"
    #: shown at first; None: all
    begin: float | None = None
    end: float | None = None
    #: shade stretches with an engaged gear
    gears: bool = True
    #: logarithmic axes
    log: bool = False
    marks: Sequence[Mark] = ()
    #: colour -> what it says, where no line does
    colours: Mapping[str, str] = field(default_factory=dict)


class Block:
    """Columns of samples at the same times."""

    def __init__(self, number: int, t: Array, tick_s: float) -> None:
        self.number = number
        #: samples in a group of which the smallest and the largest are kept; 1: all are kept
        self.group = max(1, -(-len(t) // (POINTS // 2)) if len(t) > POINTS else 1)
        self.names: list[str] = ["t"]
        self.units: list[str] = ["s"]
        self.columns: list[Array] = [t if self.group == 1 else self._times(t)]
        #: smallest difference of a column that is kept
        self.steps: list[float] = [tick_s]
        self._known: dict[str, Column] = {}

    def _times(self, t: Array) -> Array:
        # the two values of a group stand at its begin and its middle
        whole = self._groups(t)
        return np.concatenate([whole[:, (0, self.group // 2)].ravel(), t[-1:]])

    def _groups(self, y: Array) -> Array:
        """A row for each group; the last one is filled up with the last sample."""
        return np.pad(y, (0, -len(y) % self.group), mode="edge").reshape(-1, self.group)

    def add(self, name: str, values: Array, unit: str = "") -> Column:
        """A column of a value for each time that the block was made with; the same name again is the same column."""
        if name in self._known:
            return self._known[name]
        y = np.asarray(values, dtype=np.float64)
        if self.group > 1:
            # a sample without a number does not hide its neighbours
            whole = self._groups(y)
            none = np.isnan(whole)
            ends = np.stack([np.fmin.reduce(whole, 1), np.fmax.reduce(whole, 1)], 1)
            falls = np.where(none, np.inf, whole).argmin(1) > np.where(none, -np.inf, whole).argmax(1)
            ends[falls] = ends[falls][:, ::-1]
            y = np.concatenate([ends.ravel(), y[-1:]])
        return self.put(name, y, unit)

    def put(self, name: str, y: Array, unit: str = "") -> Column:
        """A column of a value for each time that the block has kept."""
        found = y[np.isfinite(y)]
        span = float(found.max() - found.min()) if len(found) else 0.0
        exact = span < STEPS and bool((found == np.rint(found)).all())
        self._known[name] = Column(self.number, len(self.columns))
        self.names.append(name)
        self.units.append(unit)
        self.columns.append(y)
        self.steps.append(1.0 if exact else span / STEPS)
        return self._known[name]


class Figures:
    """What one page draws."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.figures: dict[str, Figure] = {}
        #: (begin, end, gear): stretches with an engaged gear
        self.gears: list[tuple[float, float, str]] = []

    def block(self, t: Array, tick_s: float) -> Block:
        """A new block. tick_s: times are multiples of it."""
        self.blocks.append(Block(len(self.blocks), np.asarray(t, dtype=np.float64), tick_s))
        return self.blocks[-1]

    def add(self, figure: Figure | None) -> str | None:
        """Draw a figure; its name, None where there is none."""
        if figure is None:
            return None
        self.figures[figure.name] = figure
        return figure.name

    def values(self, line: Line) -> tuple[Array, Array]:
        """What a line shows: x and factor * y, before it is packed."""
        if isinstance(line.y, Column):
            columns = self.blocks[line.y.block].columns
            return columns[0], line.factor * columns[line.y.number]
        return np.asarray(line.x, dtype=np.float64), line.factor * np.array(line.y, dtype=np.float64)

    def packed(self) -> tuple[str, str]:
        """(JSON, base64 of the numbers): figures and the meaning of the columns; all columns, deflated.

        A column is least + step * (q - 1); q = 0: not a number. Written are second differences of q modulo 2^32, sign
        in the lowest bit, byte by byte of all samples: lowest bytes first, as many as the column needs (0: all equal).
        """
        blocks, data = [], bytearray()
        for block in self.blocks:
            columns = []
            for name, unit, y, step in zip(block.names, block.units, block.columns, block.steps, strict=True):
                finite = np.isfinite(y)
                least = float(y[finite].min()) if finite.any() else 0.0
                step = step or 1.0
                q = np.zeros(len(y), np.int64)
                q[finite] = np.rint((y[finite] - least) / step).astype(np.int64) + 1
                bytes_ = 0
                if len(q) and (q != q[0]).any():
                    d = np.diff(q, n=2, prepend=[0, 0]).astype(np.int32)
                    z = ((d << 1) ^ (d >> 31)).view(np.uint32)
                    bytes_ = (int(z.max()).bit_length() + 7) // 8
                    data += z.astype("<u4").view(np.uint8).reshape(-1, 4).T[:bytes_].tobytes()
                elif not finite.all():
                    least, bytes_ = 0.0, -1
                columns.append([name, unit, least, step, bytes_])
            blocks.append({"n": len(block.columns[0]), "group": block.group, "columns": columns})
        found = {"blocks": blocks, "figures": {n: asdict(f) for n, f in self.figures.items()}, "gears": self.gears}
        # no `<`: the text stands in a script element
        text = json.dumps(found, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return text, base64.b64encode(zlib.compress(bytes(data), 6)).decode()
