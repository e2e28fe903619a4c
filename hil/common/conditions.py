"""Conditions on signals, as scenarios and checks write them; parsed here, never handed to Python's eval.

    car.v > 60 km/h
    TCU_Status.gear_actual == 2 and engine.w < 3000 rpm
    driver.lever == R or car.v < 1 km/h

Terms are joined by `and` or by `or`, not by both. A number has the signal's SI unit unless one is written behind it; a
word is one of the signal's value table (positions of the lever).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.units import SYMBOLS, UNITS, to_si

#: how units are written in running text -> how keys write them
SPELLINGS = {
    "km/h": "kmh", "m/s": "mps", "m/s2": "mps2", "1/min": "rpm", "rad/s": "radps", "rad/s2": "radps2", "%": "percent",
    "kg.m2": "kgm2",
}  # fmt: skip
OPERATORS: dict[str, Callable[[NDArray[np.float64], float, float], NDArray[np.bool_]]] = {
    "<": lambda x, v, _: x < v,
    "<=": lambda x, v, _: x <= v,
    ">": lambda x, v, _: x > v,
    ">=": lambda x, v, _: x >= v,
    "==": lambda x, v, tol: np.abs(x - v) <= tol,
    "!=": lambda x, v, tol: np.abs(x - v) > tol,
}
#: values are equal within this part of the larger of 1 and the value
EQUAL = 1e-9
_TERM = re.compile(
    r"\s*(?P<signal>[A-Za-z_][\w.\[\]]*)\s*(?P<op><=|>=|==|!=|<|>)\s*"
    r"(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>(?!(?:and|or)\b)[A-Za-z%1][\w/%.]*)?|(?P<word>[\w-]+))\s*"
)
_EXAMPLE = 'for instance "car.v > 60 km/h and TCU_Status.gear_actual == 2"'


@dataclass(frozen=True)
class Term:
    """One comparison. `value`: SI, or a word that the signal's value table explains."""

    signal: str
    operator: str
    value: float | str
    #: SI unit of the value as it was written; "": the signal's
    unit: str = ""
    #: the unit as it was written ("rpm"), and how many of the SI unit one of it is
    written: str = ""
    per_SI: float = 1.0

    @property
    def tol(self) -> float:
        """Half width of ==."""
        return EQUAL * max(1.0, abs(self.value)) if isinstance(self.value, float) else 0.0


@dataclass(frozen=True)
class Condition:
    """Terms of which all must hold, or (any_of) one."""

    text: str
    terms: tuple[Term, ...]
    any_of: bool = False

    @property
    def signals(self) -> list[str]:
        """Names it looks at."""
        return list(dict.fromkeys(term.signal for term in self.terms))

    def holds(self, signals: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
        """Where it holds, sample by sample; words must have become numbers (`resolved`)."""
        held = []
        for term in self.terms:
            assert isinstance(term.value, float)
            held.append(OPERATORS[term.operator](signals[term.signal], term.value, term.tol))
        together: NDArray[np.bool_] = np.any(held, axis=0) if self.any_of else np.all(held, axis=0)
        return together

    def met(self, values: Mapping[str, float]) -> bool:
        """Whether it holds for one value of each signal; words must have become numbers (`resolved`)."""
        joint = any if self.any_of else all
        return joint(bool(OPERATORS[t.operator](values[t.signal], t.value, t.tol)) for t in self.terms)  # type: ignore[arg-type]

    def shown(self, signal: str, *values: float, unit: str) -> tuple[list[str], str]:
        """Values [SI `unit`] of a signal as texts, and the unit behind them, in which the condition names its limit."""
        term = next((t for t in self.terms if t.signal == signal and t.written), None)
        texts = [f"{x / (term.per_SI if term else 1.0):.6g}" for x in values]
        behind = term.written if term else unit
        return texts, "" if behind == "1" else f" {behind}"

    def renamed(self, name_of: Callable[[str], str]) -> Condition:
        """With other names of its signals."""
        return replace(self, terms=tuple(replace(term, signal=name_of(term.signal)) for term in self.terms))

    def resolved(self, find: Callable[[str], str], value_of: Callable[[str, str], float]) -> Condition:
        """With every signal known and every word a number. find(name): SI unit of the signal, or an error; value_of(
        name, word): the number of a word, or an error."""
        terms = []
        for term in self.terms:
            unit = find(term.signal)
            value = value_of(term.signal, term.value) if isinstance(term.value, str) else term.value
            if term.unit and term.unit != unit:
                raise ConfigError(f"{{key}}: {term.signal} is in {unit}, not in {term.unit}", value=self.text,
                                  allowed=f"a unit of {unit}")  # fmt: skip
            if value != term.value and term.operator not in ("==", "!="):
                raise ConfigError(f"{{key}}: words have no order: {term.signal} {term.operator} {term.value}",
                                  value=self.text, allowed="== or !=")  # fmt: skip
            terms.append(replace(term, value=float(value)))
        return Condition(self.text, tuple(terms), self.any_of)

    def __str__(self) -> str:
        return self.text


def parse_condition(text: str) -> Condition:
    """Read a condition; ConfigError that shows where it cannot be read."""
    terms: list[Term] = []
    joint, at = "", 0
    while True:
        match = _TERM.match(text, at)
        if match is None:
            raise _unreadable(text, at, "a comparison: signal, operator, value")
        terms.append(_term(match, text))
        at = match.end()
        if at == len(text):
            return Condition(text.strip(), tuple(terms), joint == "or")
        word = re.compile(r"(and|or)\b").match(text, at)
        if word is None:
            raise _unreadable(text, at, "`and`, `or`, or the end")
        if joint and word[1] != joint:
            raise _unreadable(text, at, f"`{joint}`: `and` and `or` are not mixed")
        joint, at = word[1], word.end()


def _term(match: re.Match[str], text: str) -> Term:
    signal, operator, word = match["signal"], match["op"], match["word"]
    if word is not None:
        return Term(signal, operator, word)
    number, unit = float(match["number"]), match["unit"]
    if not math.isfinite(number):
        raise ConfigError("{key} = {value}: a number is not finite", value=text)
    if unit is None:
        return Term(signal, operator, number)
    key = SPELLINGS.get(unit, unit)
    if key not in UNITS:
        raise ConfigError(f"{{key}} = {{value}}: unit {unit!r} is not known", value=text,
                          allowed="such as km/h, rpm, bar, Nm, s, %")  # fmt: skip
    return Term(signal, operator, to_si(number, key), SYMBOLS[UNITS[key][0]], unit, to_si(1.0, key))


def _unreadable(text: str, at: int, wanted: str) -> ConfigError:
    shown = text[at:] or "the end"
    return ConfigError(f"{{key}} = {{value}} cannot be read at {shown!r} (column {at + 1}); wanted: {wanted}",
                       value=text, allowed=_EXAMPLE)  # fmt: skip
