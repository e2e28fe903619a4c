"""Curves and maps: immutable, in SI, checked once when they are made.

A column label carries its unit (`speed_rpm`, `torque_Nm`, `mu`); values are converted to SI on the way in.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import (
    ConfigError,
    RangeError,
    TableError,
    UnknownKeyError,
    did_you_mean,
    of_file,
    repr_short,
)
from torqueloop.core.describe.find_file import named_file
from torqueloop.core.describe.reading import read_csv
from torqueloop.core.describe.units import SYMBOLS, column_unit, exact, is_number, scaled

EXTRAPOLATION = ("hold", "linear")


@dataclass(frozen=True)
class Table1D:
    """y(x) by linear interpolation; x strictly increasing.

    Outside: "hold" the end value (default: measured curves), or continue "linear" (as Modelica tables do).
    `dimensions` are those of x and y (units.DIMENSIONS); None means: those the component expects.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    dimensions: tuple[str, str] | None = None
    extrapolation: str = "hold"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(float(v) for v in self.x))
        object.__setattr__(self, "y", tuple(float(v) for v in self.y))
        if len(self.x) != len(self.y):
            raise TableError(f"table has {len(self.x)} x values but {len(self.y)} y values")
        if not self.x:
            raise TableError("table has no rows")
        _finite("x", self.x)
        _finite("y", self.y)
        _increasing("first column", self.x)
        if self.extrapolation not in EXTRAPOLATION:
            raise TableError(
                "{key} = {value} is unknown",
                key="extrapolation", value=self.extrapolation, allowed=" | ".join(EXTRAPOLATION),
            )  # fmt: skip

    @staticmethod
    def of(columns: Sequence[str], rows: Sequence[Sequence[float]], extrapolation: str = "hold") -> Table1D:
        """From rows in the units of the column labels; equal to the same table in TOML."""
        data, dims = _columns(columns, rows, 2)
        return Table1D(tuple(data[0]), tuple(data[1]), (dims[0], dims[1]), extrapolation)

    @staticmethod
    def constant(value: float) -> Table1D:
        """The same value everywhere."""
        return Table1D((0.0,), (float(value),))

    def __call__(self, x: float) -> float:
        """y at x, by the rule of the kernel (used where a single value is needed before the run)."""
        xs, ys = self.x, self.y
        if len(xs) == 1:
            return ys[0]
        if self.extrapolation == "hold":
            x = min(max(x, xs[0]), xs[-1])
        k = 0
        while k < len(xs) - 2 and x >= xs[k + 1]:
            k += 1
        return ys[k] + (ys[k + 1] - ys[k]) * (x - xs[k]) / (xs[k + 1] - xs[k])

    def expecting(self, dims: tuple[str, str], name: str) -> Table1D:
        """The table with its dimensions checked against those the component needs."""
        if self.dimensions is None:
            return replace(self, dimensions=dims)
        _expect(self.dimensions, dims, name)
        return self


@dataclass(frozen=True)
class Table2D:
    """z(x, y) bilinear on a full grid, clipped at its edges; z[ix][iy]."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[tuple[float, ...], ...]
    dimensions: tuple[str, str, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(float(v) for v in self.x))
        object.__setattr__(self, "y", tuple(float(v) for v in self.y))
        object.__setattr__(self, "z", tuple(tuple(float(v) for v in row) for row in self.z))
        for label, axis in (("x", self.x), ("y", self.y)):
            if len(axis) < 2:
                raise TableError(f"map needs at least 2 {label} values")
            _finite(label, axis)
            _increasing(f"axis {label}", axis)
        if len(self.z) != len(self.x):
            raise TableError(f"map has {len(self.x)} x values but {len(self.z)} rows of z")
        for i, row in enumerate(self.z):
            if len(row) != len(self.y):
                raise TableError(f"row {i + 1} of z has {len(row)} values, but there are {len(self.y)} y values")
            _finite(f"row {i + 1} of z", row)

    @staticmethod
    def of(columns: Sequence[str], rows: Sequence[Sequence[float]]) -> Table2D:
        """From a list of (x, y, z) that covers every combination of x and y once, in any order."""
        data, dims = _columns(columns, rows, 3)
        xs, ys = sorted(set(data[0])), sorted(set(data[1]))
        cells: dict[tuple[float, float], float] = {}
        for i, (x, y, z) in enumerate(zip(*data, strict=True)):
            if (x, y) in cells:
                raise TableError(f"row {i + 1}: the point ({x:g}, {y:g}) was given before")
            cells[x, y] = z
        for x in xs:
            for y in ys:
                if (x, y) not in cells:
                    raise TableError(f"the point {columns[0]} = {x:g}, {columns[1]} = {y:g} (in SI) is missing")
        grid = tuple(tuple(cells[x, y] for y in ys) for x in xs)
        return Table2D(tuple(xs), tuple(ys), grid, (dims[0], dims[1], dims[2]))

    def expecting(self, dims: tuple[str, str, str], name: str) -> Table2D:
        """The map with its dimensions checked against those the component needs."""
        if self.dimensions is None:
            return replace(self, dimensions=dims)
        _expect(self.dimensions, dims, name)
        return self


@dataclass(frozen=True)
class Columns:
    """Several curves over one x: the first column is x (strictly increasing), every other one a y."""

    data: tuple[tuple[float, ...], ...]
    dimensions: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", tuple(tuple(float(v) for v in column) for column in self.data))
        if len(self.data) < 2 or not self.data[0]:
            raise TableError("table has no rows" if len(self.data) >= 2 else "table needs at least 2 columns")
        for k, column in enumerate(self.data):
            if len(column) != len(self.data[0]):
                raise TableError(f"column {k + 1} has {len(column)} values, the first has {len(self.data[0])}")
            _finite(f"column {k + 1}", column)
        _increasing("first column", self.data[0])

    @staticmethod
    def of(columns: Sequence[str], rows: Sequence[Sequence[float]]) -> Columns:
        """From rows in the units of the column labels; equal to the same table in TOML."""
        data, dims = _columns(columns, rows, len(columns))
        return Columns(tuple(tuple(c) for c in data), tuple(dims))

    @staticmethod
    def of_rows(rows: Sequence[Any], width: int) -> Columns:
        """From rows in SI."""
        if not rows:
            raise TableError("table has no rows")
        data = [[float(_number(v, i)) for v in row] for i, row in enumerate(_checked(rows, width))]
        return Columns(tuple(zip(*data, strict=True)))

    def curve(self, column: int, extrapolation: str = "linear") -> Table1D:
        """Column `column` (1: the first after x) over x."""
        dims = None if self.dimensions is None else (self.dimensions[0], self.dimensions[column])
        return Table1D(self.data[0], self.data[column], dims, extrapolation)

    def expecting(self, dims: tuple[str, ...], name: str) -> Columns:
        """The table with its dimensions checked against those the component needs."""
        if len(self.data) != len(dims):
            raise TableError(f"{name} has {len(self.data)} columns, but {len(dims)} are needed here")
        if self.dimensions is None:
            return replace(self, dimensions=dims)
        _expect(self.dimensions, dims, name)
        return self


Table = Table1D | Table2D | Columns

TABLE_KEYS = ("columns", "rows", "csv", "scales", "extrapolation", "source", "note")


def table_from_config(config: Mapping[str, Any], directory: Path) -> Table:
    """A table from TOML: `columns` with `rows` inline or a `csv` file (beside the TOML, or the bare name of an
    installed one); `scales` multiply columns.

    Two columns make a Table1D, three a Table2D, more a Columns table. A CSV file has one header line that names its
    columns; lines that start with # are comments.
    """
    for key in config:
        if key not in TABLE_KEYS:
            raise UnknownKeyError(f"unknown key {key!r}", hint=did_you_mean(key, TABLE_KEYS))
    columns = config.get("columns")
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns) or len(columns) < 2:
        raise TableError(
            "columns is missing or wrong",
            allowed='at least 2 labels with units, as columns = ["speed_rpm", "torque_Nm"]',
        )
    if ("rows" in config) == ("csv" in config):
        raise TableError("give either rows or csv")
    if "csv" in config:
        try:
            path = named_file(directory, str(config["csv"]), "engines", "converters", "cycles")
        except ConfigError:
            # reading it says why
            path = Path(os.path.normpath(directory / str(config["csv"])))
        try:
            return _from_rows(config, columns, _read_csv(path, columns))
        except TableError as error:
            error.problem = of_file(path, error.problem)
            raise
    return _from_rows(config, columns, config["rows"])


def _from_rows(config: Mapping[str, Any], columns: list[str], rows: Any) -> Table:
    """Curve or map from its rows, scaled."""
    if not isinstance(rows, list):
        raise TableError("rows is not a list of rows", value=rows)
    scales = config.get("scales")
    if scales is not None:
        if not isinstance(scales, list) or len(scales) != len(columns):
            raise TableError(f"scales needs {len(columns)} numbers, one per column")
        rows = [[_number(v, i) * _number(s, i) for v, s in zip(row, scales, strict=True)]
                for i, row in enumerate(_checked(rows, len(columns)))]  # fmt: skip
    if len(columns) == 2:
        return Table1D.of(columns, rows, config.get("extrapolation", "hold"))
    if "extrapolation" in config:
        raise TableError("extrapolation is for curves only: maps are clipped at their edges")
    return Table2D.of(columns, rows) if len(columns) == 3 else Columns.of(columns, rows)


def _read_csv(path: Path, columns: Sequence[str]) -> list[list[Decimal]]:
    """The named columns of a CSV file."""
    try:
        header, kept = read_csv(path)
    except ConfigError as error:
        raise TableError(error.problem, value=error.value, allowed=error.allowed) from None
    for label in columns:
        if label not in header:
            raise TableError(f"there is no column {label!r}", hint=did_you_mean(label, header))
    picks = [header.index(label) for label in columns]
    rows = []
    for number, cells in kept:
        try:
            rows.append([Decimal(cells[k]) for k in picks])
        except (IndexError, ArithmeticError) as error:
            shown = repr_short(",".join(cells))
            raise TableError(f"line {number} is not a row of numbers: {shown}") from error
    return rows


def _checked(rows: Sequence[Any], width: int) -> Sequence[Sequence[Any]]:
    """Rows of the right width."""
    for i, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) or len(row) != width:
            raise TableError(f"row {i + 1} does not have {width} values: {row!r}")
    return rows


def _number(value: Any, row: int) -> Fraction:
    """A finite number of a row, exactly."""
    if not is_number(value):
        raise TableError(f"row {row + 1}: {value!r} is not a number")
    try:
        return exact(value)
    except RangeError as error:
        error.key = f"row {row + 1}"
        raise TableError(str(error)) from None


def _columns(labels: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> tuple[list[list[float]], list[str]]:
    """Columns in SI and their dimensions."""
    if len(labels) != width:
        raise TableError(f"needs {width} columns, has {len(labels)}: {list(labels)}")
    units = [column_unit(label) for label in labels]
    data: list[list[float]] = [[] for _ in labels]
    for i, row in enumerate(_checked(rows, width)):
        for column, value, (_, factor) in zip(data, row, units, strict=True):
            column.append(float(scaled(_number(value, i), factor)))
    return data, [dimension for dimension, _ in units]


def _finite(label: str, values: Sequence[float]) -> None:
    for i, value in enumerate(values):
        if not math.isfinite(value):
            raise TableError(f"{label}: value {i + 1} is not finite ({value})")


def _increasing(label: str, values: Sequence[float]) -> None:
    """Strictly increasing, or an error that names the row."""
    for i in range(1, len(values)):
        if not values[i] > values[i - 1]:
            raise TableError(
                f"{label} is not strictly increasing at row {i + 1}: {values[i]:g} after {values[i - 1]:g} (in SI)"
            )


def _expect(given: tuple[str, ...], wanted: tuple[str, ...], name: str) -> None:
    if given != wanted:
        raise TableError(
            f"{name} has columns of {_symbols(given)}, but {_symbols(wanted)} are needed here",
        )


def _symbols(dims: tuple[str, ...]) -> str:
    return "(" + ", ".join(SYMBOLS[d] for d in dims) + ")"
