"""How a number of a file is known: what its table says under `source`.

    source = "Land Rover Discovery workshop manual 1995, p. 426"        published: a citation
    source = "derived: two equal shafts; = 2*8e10*pi*d_m**4/(32*l_m)"   derived, with its formula
    source = "assumed: input shaft with its drums; range 0.003..0.02"   assumed, with its range

`source` stands for the whole table, or is a table of its own with a text for each key. Behind `range` stand two
numbers in the unit of the key. Behind the last `; =` stands an expression in the other numbers of the table, `pi` and
`sqrt`. The value is held against both. `statements` finds them all in a file.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.describe.reading import read_toml

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"\brange\s+({_NUMBER})\s*\.\.\s*({_NUMBER})")
_FORMULA = re.compile(r";\s*=\s*([^;]+)$")
#: a value differs this much, relatively, from what its expression gives: both are written with few digits
ROUNDING = 0.02
#: longest expression
LONGEST = 300
_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


class Known(StrEnum):
    """How a number is known."""

    PUBLISHED = "published"
    DERIVED = "derived"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Statement:
    """One number of a file and how it is known."""

    file: str
    table: str
    key: str
    value: float
    known: Known
    #: the text under `source`
    text: str
    #: range it may lie in, where the text says one
    low: float | None = None
    high: float | None = None
    #: what the expression in the text gives
    computed: float | None = None

    @property
    def problem(self) -> str:
        """What is wrong with it; "" where nothing is."""
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            return f"{self.value:g} is outside of its own range {self.low:g} .. {self.high:g}"
        if self.computed is not None and abs(self.value - self.computed) > ROUNDING * abs(self.computed):
            return f"{self.value:g} is not what its derivation gives, {self.computed:.5g}"
        return ""

    @property
    def reason(self) -> str:
        """The text without its first word, range and expression."""
        text = self.text if self.known is Known.PUBLISHED else self.text[len(self.known) :]
        return _FORMULA.sub("", _RANGE.sub("", text)).strip(" :;,")


def statements(path: Path) -> list[Statement]:
    """Every number in the tables of a TOML file with how it is known; tables without any `source` in them or above are
    settings (periods, gates, switches), not facts, and are left out."""
    return list(_walk(read_toml(path), str(path), (), None))


def _walk(body: Mapping[str, Any], file: str, path: tuple[str, ...], above: str | None) -> Iterator[Statement]:
    source = body.get("source")
    whole = source if isinstance(source, str) else above
    for key, value in body.items():
        text = str(source.get(key)) if isinstance(source, Mapping) and key in source else whole
        if key == "source":
            continue
        if isinstance(value, Mapping):
            yield from _walk(value, file, (*path, key), text)
        elif text is not None and _is_number(value):
            yield _statement(file, ".".join(path), key, float(value), text, body)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _statement(file: str, table: str, key: str, value: float, text: str, body: Mapping[str, Any]) -> Statement:
    word = text.split(":", 1)[0].split()[0].strip(",.;").lower() if text.strip() else ""
    known = Known(word) if word in ("assumed", "derived") else Known.PUBLISHED
    found, formula = _RANGE.search(text), _FORMULA.search(text)
    names = {k: float(v) for k, v in body.items() if _is_number(v)}
    try:
        computed = None if formula is None else evaluate(formula.group(1), names)
    except RangeError as error:
        raise error.located(file=file, table=table, key=key) from None
    low, high = (None, None) if found is None else (float(found.group(1)), float(found.group(2)))
    return Statement(file, table, key, value, known, " ".join(text.split()), low, high, computed)


def evaluate(expression: str, names: Mapping[str, float]) -> float:
    """Value of an arithmetic expression: numbers, names, + - * / **, pi and sqrt(x); nothing else is read."""
    try:
        tree = ast.parse(expression[:LONGEST].strip(), mode="eval")
        value = _value(tree.body, {**names, "pi": math.pi})
    except (SyntaxError, ZeroDivisionError, OverflowError, ValueError, RecursionError) as error:
        raise RangeError("{value} cannot be computed", value=expression, allowed=str(error)) from None
    return value


def _value(node: ast.AST, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner], keywords=[]):
            return math.sqrt(_value(inner, names))
    raise ValueError(f"{ast.unparse(node)!r} is no number, + - * / **, pi, sqrt or one of {', '.join(names)}")
