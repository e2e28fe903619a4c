"""Parameters of components: how one is declared, and how a value given for it is brought to its one form and checked.

Parameters are in SI; in TOML their unit is part of the key (see units.keys_of).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import field
from numbers import Rational
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import MissingValueError, RangeError, TableError, did_you_mean
from torqueloop.core.describe.motion import ROTATION, Motion
from torqueloop.core.describe.ranges import RANGES, ROUNDED
from torqueloop.core.describe.tables import Columns, Table1D, Table2D, table_from_config
from torqueloop.core.describe.units import DIMENSIONS, exact, is_number

#: stands for "no default"
REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


@dataclass(frozen=True)
class Param:
    """Declaration of one parameter: dimension, range, meaning."""

    doc: str
    dimension: str = "1"
    default: Any = REQUIRED
    #: lower and upper limit; `above` excludes the lower limit itself
    low: float | None = None
    high: float | None = None
    above: bool = False
    #: key of the table of ranges (ranges.py); default: the dimension
    quantity: str | None = None
    #: "number", "exact" (kept as a Fraction), "integer", "flag", "choice", "names" (of components, a text with * and ?
    #: and blanks between them), "curve", "map" or "columns"
    form: str = "number"
    choices: tuple[str, ...] = ()
    #: dimensions of the columns of a curve or map; a curve may allow more than one x
    columns: tuple[str, ...] = ()
    x_choices: tuple[str, ...] = ()
    #: written with the words and dimensions of rotation, for kinds of both domains that move
    shared: bool = False

    def of(self, motion: Motion) -> Param:
        """The declaration as the domain words it."""
        columns = tuple(motion.dimension(column) for column in self.columns)
        doc, dimension = motion.text(self.doc), motion.dimension(self.dimension)
        return dataclasses.replace(self, doc=doc, dimension=dimension, columns=columns, shared=False)

    def allowed(self) -> str | None:
        """The allowed range in words."""
        if self.choices:
            return " | ".join(self.choices)
        unit = next(iter(DIMENSIONS[self.dimension]))
        parts = []
        if self.low is not None:
            parts.append(f"{'>' if self.above else '>='} {self.low:g}")
        if self.high is not None:
            parts.append(f"<= {self.high:g}")
        return (" and ".join(parts) + (f" {unit}" if unit else "")) if parts else None


def param(doc: str, dimension: str = "1", default: Any = REQUIRED, **options: Any) -> Any:
    """A dataclass field with its declaration."""
    return field(default=default, metadata={"param": Param(doc, dimension, default, **options)})


def curve(doc: str, x: str, y: str, default: Any = REQUIRED, **options: Any) -> Any:
    """A field that takes a Table1D, the name of one, rows [[x, y], ...] in SI, or one number (a constant)."""
    return field(default=default, metadata={"param": Param(doc, y, default, form="curve", columns=(x, y), **options)})


def shared(doc: str, dimension: str = "1", default: Any = REQUIRED, **options: Any) -> Any:
    """As `param`, for a law of both domains that move: with words in braces and dimensions of rotation (motion.py)."""
    return field(default=default, metadata={"param": Param(doc, dimension, default, shared=True, **options)})


def columns(doc: str, dims: tuple[str, ...], default: Any = REQUIRED, **options: Any) -> Any:
    """A field that takes a Columns table, the name of one, or rows in SI; `dims`: dimension of each column."""
    return field(default=default, metadata={"param": Param(doc, "1", default, form="columns", columns=dims, **options)})


def params_of(kind: type[Any]) -> dict[str, Param]:
    """Parameter declarations of a kind, in order, with the words of its domain."""
    declared = {f.name: f.metadata["param"] for f in dataclasses.fields(kind) if "param" in f.metadata}
    motion = getattr(kind, "motion", ROTATION)
    return {name: p.of(motion) if p.shared else p for name, p in declared.items()}


def require(condition: bool, problem: str, **place: Any) -> None:
    """Raise RangeError unless the condition holds."""
    if not condition:
        raise RangeError(problem, **place)


def require_given(condition: bool, problem: str, key: str) -> None:
    """Raise MissingValueError unless the condition holds."""
    if not condition:
        raise MissingValueError(problem, key=key)


def normal(name: str, p: Param, value: Any) -> Any:
    """The value in its one form, range checked."""
    if value is REQUIRED:
        raise MissingValueError("{key} is missing", key=name)
    if value is None and p.default is None:
        return None
    if p.form == "flag":
        if not isinstance(value, bool):
            raise RangeError("{key} = {value} is not a truth value", key=name, value=value, allowed="true | false")
        return value
    if p.form == "choice":
        if value not in p.choices:
            raise RangeError("{key} = {value} is unknown", key=name, value=value, allowed=p.allowed(),
                             hint=did_you_mean(str(value), p.choices))  # fmt: skip
        return value
    if p.form == "names":
        if not isinstance(value, str) or not value.split():
            raise RangeError("{key} = {value} is no list of names", key=name, value=value,
                             allowed='names with * and ?, blanks between them: "in out C*"')  # fmt: skip
        return " ".join(value.split())
    if p.form == "curve":
        return _normal_curve(name, p, value)
    if p.form == "columns":
        return _normal_columns(name, p, value)
    if p.form == "map":
        if isinstance(value, Mapping):
            value = table_from_config(value, Path())
        if not isinstance(value, (str, Table2D)):
            raise RangeError("{key} = {value} is not a map", key=name, value=value, allowed="a Table2D or its name")
        return value if isinstance(value, str) else value.expecting(p.columns, name)  # type: ignore[arg-type]
    return _normal_number(name, p, value)


def _in_range(p: Param, what: str, value: float) -> bool:
    """Is a number in the range of its quantity? What rounding leaves of 0 counts as 0 where the sign is free."""
    found = RANGES[what]
    rounding = p.low is None and what in ROUNDED and abs(value) < found.least
    return rounding or found.holds(value)


def _normal_number(name: str, p: Param, value: Any) -> Any:
    if not is_number(value):
        raise RangeError("{key} = {value} is not a number", key=name, value=value, allowed=p.allowed())
    if not isinstance(value, Rational) and not math.isfinite(value):
        raise RangeError("{key} = {value} is not finite", key=name, value=value, allowed=p.allowed())
    try:
        number = exact(value)
    except RangeError as error:
        raise error.located(key=name) from None
    whole = RANGES[p.quantity or p.dimension]
    if not _in_range(p, p.quantity or p.dimension, float(number)):
        allowed = " and ".join(text for text in (p.allowed(), str(whole)) if text)
        raise RangeError("{key} = {value} is out of range", key=name, value=value, allowed=allowed)
    low_ok = p.low is None or (number > p.low if p.above else number >= p.low)
    if not low_ok or (p.high is not None and number > p.high):
        raise RangeError("{key} = {value} is out of range", key=name, value=value, allowed=p.allowed())
    if p.form == "integer":
        if number.denominator != 1:
            raise RangeError("{key} = {value} is not a whole number", key=name, value=value, allowed=p.allowed())
        return int(number)
    return number if p.form == "exact" else float(number)


def _normal_columns(name: str, p: Param, value: Any) -> Any:
    """A named table stays a name; everything else becomes a Columns table."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = table_from_config(value, Path())
    elif isinstance(value, (list, tuple)):
        value = Columns.of_rows(value, len(p.columns))
    if not isinstance(value, Columns):
        raise TableError("{key} = {value} is not a table with the columns wanted", key=name, value=value,
                         allowed=f"rows of {len(p.columns)} values, or the name of a table")  # fmt: skip
    return value.expecting(p.columns, name)


def _normal_curve(name: str, p: Param, value: Any) -> Any:
    """A named table stays a name (looked up when compiling); everything else becomes a Table1D."""
    if isinstance(value, str):
        return value
    if isinstance(value, Table1D):
        table = value
    elif is_number(value):
        table = Table1D.constant(float(value))
    elif isinstance(value, Mapping):
        made = table_from_config(value, Path())
        if not isinstance(made, Table1D):
            raise TableError("a curve needs two columns")
        table = made
    elif isinstance(value, (list, tuple)):
        for i, row in enumerate(value):
            if not isinstance(row, (list, tuple)) or len(row) != 2:
                raise TableError(f"row {i + 1} does not have 2 values: {row!r}")
        table = Table1D(tuple(r[0] for r in value), tuple(r[1] for r in value))
    else:
        raise TableError("{key} = {value} is not a curve", key=name, value=value,
                         allowed="a number, rows [[x, y], ...] or the name of a table")  # fmt: skip
    return checked_curve(name, p, table)


def checked_curve(name: str, p: Param, table: Table1D) -> Table1D:
    """Dimensions and range of a curve."""
    if table.dimensions is not None and table.dimensions[0] in p.x_choices and table.dimensions[1] == p.columns[1]:
        checked = table
    else:
        checked = table.expecting((p.columns[0], p.columns[1]), name)
    for what, values in zip(p.columns, (checked.x, checked.y), strict=True):
        for i, value in enumerate(values):
            if not _in_range(p, what, value):
                raise TableError(f"row {i + 1} of {name}: {value:g} is out of range", allowed=str(RANGES[what]))
    for i, y in enumerate(checked.y):
        low_ok = p.low is None or (y > p.low if p.above else y >= p.low)
        if not low_ok or (p.high is not None and y > p.high):
            raise TableError(f"row {i + 1} of {name}: {y:g} is out of range", allowed=p.allowed())
    return checked
