"""Conditions on signals, as steps, checks, faults and tests have them, in the language of expression.py.

    car.v > 60 km/h
    TCU_Status.gear_actual == 2 and engine.w < 3000 rpm
    driver.lever == R or abs(car.v) < 1 km/h

A number has the SI unit of the signal it is compared with, unless a unit is written behind it; a word is one of the
signal's value table (positions of the lever).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.conditions import EQUAL_WITHIN
from torqueloop.cython_kernels.tick.fault_rows import Code
from torqueloop.hil.common.config_file import BadValue
from torqueloop.hil.common.expression import UNITS_WRITTEN, Node, bound, code_of, parse, value_of


@dataclass(frozen=True)
class Condition:
    """A condition that can be read."""

    text: str
    root: Node

    @property
    def signals(self) -> list[str]:
        """Names it looks at."""
        return self.root.names

    def holds(self, signals: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
        """Where it holds, sample by sample; it must be `resolved`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            held = value_of(self.root, signals.__getitem__, EQUAL_WITHIN)
        return np.broadcast_to(np.asarray(held, dtype=np.bool_), signals[self.signals[0]].shape)

    def met(self, values: Mapping[str, float]) -> bool:
        """Whether it holds for one value of each signal; it must be `resolved`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return bool(value_of(self.root, values.__getitem__, EQUAL_WITHIN))

    def shown(self, signal: str, *values: float, unit: str) -> tuple[list[str], str]:
        """Values [SI `unit`] of a signal as texts, and the unit behind them, in which the condition names its limit."""
        beside = (node for node in self.root.walk() if any(a.kind == "name" and a.value == signal for a in node.args))
        written = next((number.unit for node in beside for number in node.walk() if number.unit), "")
        factor = UNITS_WRITTEN[written][1] if written else Fraction(1)
        behind = written or unit
        return [f"{x / float(factor):.6g}" for x in values], "" if behind == "1" else f" {behind}"

    def renamed(self, name_of: Callable[[str], str]) -> Condition:
        """With other names of its signals."""

        def renamed(node: Node) -> Node:
            value = name_of(str(node.value)) if node.kind == "name" else node.value
            return replace(node, value=value, args=tuple(map(renamed, node.args)))

        return replace(self, root=renamed(self.root))

    def resolved(self, find: Callable[[str], str], value_of: Callable[[str, str], float]) -> Condition:
        """With every signal known, every quantity in SI, every word a number. find(name): SI unit of the signal, or an
        error; value_of(name, word): the number of a word, or an error."""
        return replace(self, root=bound(self.text, self.root, lambda name: (find(name), Fraction(1)), value_of))

    def code(self, slot: Callable[[str], int]) -> Code:
        """As the tick evaluates it; it must be `resolved`."""
        return code_of(self.root, slot)

    def __str__(self) -> str:
        return self.text


def parse_condition(text: str) -> Condition:
    """Read a condition; ConfigError that shows where it cannot be read and what was expected there."""
    (root,) = parse(text.strip())
    condition = Condition(text.strip(), root)
    if not condition.signals:
        raise ConfigError("{key} = {value} names no signal", value=text, allowed="for instance 'car.v > 60 km/h'")
    return condition


def readable(text: str | None, key: str) -> str | None:
    """For validators of files: the text of a condition that can be read."""
    if text is not None:
        try:
            parse_condition(text)
        except ConfigError as error:
            raise BadValue(error.problem, key=key, value=text, allowed=error.allowed) from None
    return text
