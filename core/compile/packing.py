"""Rows, curves and maps packed into the flat arrays of the kernel, each one stored once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.tables import Table1D, Table2D

I4 = np.int32
F8 = np.float64


def ints(values: list[int]) -> NDArray[np.int32]:
    """C-contiguous int32 array, empty when there is nothing."""
    return np.ascontiguousarray(np.array(values, dtype=I4))


def floats(values: list[float]) -> NDArray[np.float64]:
    """C-contiguous float64 array, empty when there is nothing."""
    return np.ascontiguousarray(np.array(values, dtype=F8))


class RowStore:
    """Sparse rows over the independent coordinates: speed = sum(value*u), angle = sum(value*z) + offset."""

    def __init__(self, coordinates: list[str]) -> None:
        self._position = {name: k for k, name in enumerate(coordinates)}
        self._known: dict[tuple[tuple[tuple[int, Fraction], ...], Fraction], int] = {}
        self.rows: list[tuple[tuple[tuple[int, Fraction], ...], Fraction]] = []

    def add(self, row: dict[str, Fraction], offset: Fraction) -> int:
        """Index of the row, new or known. Of nothing but zeros the first is kept: rows of the kernel are not empty."""
        entries = tuple(sorted((self._position[k], v) for k, v in row.items() if v)) or tuple(
            (self._position[k], v) for k, v in [*row.items()][:1]
        )
        key = (entries, offset)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(key)
        return self._known[key]

    def arrays(self) -> dict[str, Any]:
        """row_ptr, row_idx, row_val, row_off."""
        pointer, index, value = [0], [], []
        for entries, _ in self.rows:
            index += [k for k, _ in entries]
            value += [float(v) for _, v in entries]
            pointer.append(len(index))
        return {
            "row_ptr": ints(pointer),
            "row_idx": ints(index),
            "row_val": floats(value),
            "row_off": floats([float(offset) for _, offset in self.rows]),
        }


class TableStore:
    """All curves and maps, concatenated."""

    def __init__(self) -> None:
        self._curves: dict[Table1D, int] = {}
        self._maps: dict[Table2D, int] = {}

    def curve(self, table: Table1D | None) -> int:
        """Index of a curve; -1 for none."""
        if table is None:
            return -1
        if len(table.x) == 1:
            # a constant becomes two equal points, so that the kernel has no special case
            table = Table1D((table.x[0], table.x[0] + 1.0), table.y * 2, table.dimensions, "hold")
        return self._curves.setdefault(table, len(self._curves))

    def map(self, table: Table2D | None) -> int:
        """Index of a map; -1 for none."""
        return -1 if table is None else self._maps.setdefault(table, len(self._maps))

    def arrays(self) -> dict[str, Any]:
        """tab1_* and tab2_*."""
        pointer = [0]
        x1: list[float] = []
        y1: list[float] = []
        for curve in self._curves:
            x1 += curve.x
            y1 += curve.y
            pointer.append(len(x1))
        x2: list[float] = []
        y2: list[float] = []
        z2: list[float] = []
        xptr, yptr, zptr = [], [], []
        for chart in self._maps:
            xptr.append(len(x2))
            yptr.append(len(y2))
            zptr.append(len(z2))
            x2 += chart.x
            y2 += chart.y
            z2 += [value for row in chart.z for value in row]
        return {
            "tab1_ptr": ints(pointer),
            "tab1_x": floats(x1),
            "tab1_y": floats(y1),
            "tab1_extrap": ints([int(c.extrapolation == "linear") for c in self._curves]),
            "tab2_nx": ints([len(c.x) for c in self._maps]),
            "tab2_ny": ints([len(c.y) for c in self._maps]),
            "tab2_xptr": ints(xptr),
            "tab2_yptr": ints(yptr),
            "tab2_zptr": ints(zptr),
            "tab2_x": floats(x2),
            "tab2_y": floats(y2),
            "tab2_z": floats(z2),
        }
