"""docs/theory.md as tests read it: its equations by number, and a reader of formulas as they are printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "theory.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
BLOCKS = "\n".join(re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL))
#: equations of the page: number, line without it, whether a test evaluates it
LINES = [(int(m[2]), m[1].strip(), bool(m[3])) for m in re.finditer(r"^(.*?)\s*\((\d+)(\*?)\)$", BLOCKS, re.MULTILINE)]
EQUATIONS = {number: (line, marked) for number, line, marked in LINES}
Number = Any  # a number, or an array where the formula is one of matrices
FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": np.sqrt, "cos": np.cos, "sin": np.sin, "max": max, "Re": np.real, "cross": np.cross, "exp": np.exp,
    "diag": lambda *entries: np.diag(entries),
}  # fmt: skip


class Formula:
    """A formula as it is printed: juxtaposition multiplies (numbers and matrices), ^T, ^-1, ^+ and powers, |x|."""

    def __init__(self, text: str, names: Mapping[str, Number]) -> None:
        self.tokens = re.findall(r"\d+\.?\d*|[A-Za-z_]\w*'*|\^-1|\^T|\^\+|\S", text)
        self.names = names
        self.value = self._sum()
        assert not self.tokens, f"{text!r}: not understood from {self.tokens} on"

    def _next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _sum(self) -> Number:
        value = self._product()
        while self._next() in ("+", "-"):
            add = self.tokens.pop(0) == "+"
            other = self._product()
            value = value + other if add else value - other
        return value

    def _product(self) -> Number:
        value = self._factor()
        while self._next() == "/" or re.match(r"[\w(]", self._next()):
            if self._next() == "/":
                self.tokens.pop(0)
                value = value / self._factor()
            else:
                other = self._factor()
                value = value @ other if np.ndim(value) and np.ndim(other) else value * other
        return value

    def _factor(self) -> Number:
        if self._next() == "-":
            self.tokens.pop(0)
            return -self._factor()
        value = self._atom()
        while self._next().startswith("^"):
            power = self.tokens.pop(0)
            if power == "^T":
                value = np.transpose(value)
            elif power == "^-1":
                value = np.linalg.inv(value)
            elif power == "^+":
                value = np.linalg.pinv(value)
            else:
                value = value ** self._atom()
        return value

    def _atom(self) -> Number:
        token = self.tokens.pop(0)
        if token in ("(", "|"):
            value = self._sum()
            assert self.tokens.pop(0) == {"(": ")", "|": "|"}[token]
            return abs(value) if token == "|" else value
        if token[0].isdigit():
            return float(token)
        if token in FUNCTIONS and token not in self.names:
            assert self.tokens.pop(0) == "("
            arguments = [self._sum()]
            while self.tokens.pop(0) == ",":
                arguments.append(self._sum())
            return FUNCTIONS[token](*arguments)
        return self.names[token]


def page(number: int, left: str, **names: Number) -> Number:
    """The right-hand side of the equation `left` = ... in the line with this number."""
    line, marked = EQUATIONS[number]
    assert marked, f"({number}) is evaluated here, but not marked in the page"
    found = [part.split(" = ") for part in re.split(r",\s+(?![^(]*\))|\s{3,}", line) if " = " in part]
    sides = [right for start, *rest in found for right in rest if start.strip() == left]
    assert len(sides) == 1, f"({number}): {line!r} has no {left} = ..."
    return Formula(sides[0].split(" <= ")[0], names).value
