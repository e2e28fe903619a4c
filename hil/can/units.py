"""Unit strings as they stand in CAN databases -> SI: value_SI = value * factor + offset."""

from __future__ import annotations

import math
from fractions import Fraction

from torqueloop.core.describe.classes import dataclass

_F = Fraction
RPM = math.pi / 30.0
DEG = math.pi / 180.0


@dataclass(frozen=True)
class SiUnit:
    """SI unit and the linear conversion to it. The factor is exact (Fraction) where the definition is."""

    symbol: str
    factor: Fraction | float = Fraction(1)
    offset: Fraction = Fraction(0)


#: unit string, lower case and without blanks -> SI
_UNITS: dict[str, SiUnit] = {
    **dict.fromkeys(("", "-", "1", "none", "unitless", "count", "bit", "bool", "enum"), SiUnit("1")),
    **dict.fromkeys(("%", "percent", "prozent"), SiUnit("1", _F(1, 100))),
    "pa": SiUnit("Pa"),
    **dict.fromkeys(("hpa", "mbar"), SiUnit("Pa", _F(100))),
    "kpa": SiUnit("Pa", _F(1000)),
    "mpa": SiUnit("Pa", _F(10**6)),
    "bar": SiUnit("Pa", _F(10**5)),
    **dict.fromkeys(("rpm", "1/min", "min-1", "min^-1", "u/min", "upm", "r/min"), SiUnit("rad/s", RPM)),
    "rad/s": SiUnit("rad/s"),
    **dict.fromkeys(("deg/s", "°/s"), SiUnit("rad/s", DEG)),
    **dict.fromkeys(("rpm/s", "1/min/s"), SiUnit("rad/s2", RPM)),
    **dict.fromkeys(("deg", "°", "degree", "degrees"), SiUnit("rad", DEG)),
    "rad": SiUnit("rad"),
    **dict.fromkeys(("degc", "°c", "deg.c", "gradc", "celsius", "c"), SiUnit("K", _F(1), _F("273.15"))),
    "k": SiUnit("K"),
    **dict.fromkeys(("nm", "n.m", "n*m"), SiUnit("Nm")),
    "knm": SiUnit("Nm", _F(1000)),
    "nm/s": SiUnit("Nm/s"),
    "n": SiUnit("N"),
    "kn": SiUnit("N", _F(1000)),
    **dict.fromkeys(("km/h", "kmh", "kph", "kmph"), SiUnit("m/s", _F(10, 36))),
    **dict.fromkeys(("m/s", "mps"), SiUnit("m/s")),
    "mph": SiUnit("m/s", _F("0.44704")),
    **dict.fromkeys(("m/s2", "m/s^2", "m/s²", "m/s/s"), SiUnit("m/s2")),
    "s": SiUnit("s"),
    "ms": SiUnit("s", _F(1, 1000)),
    **dict.fromkeys(("us", "µs"), SiUnit("s", _F(1, 10**6))),
    "m": SiUnit("m"),
    "km": SiUnit("m", _F(1000)),
    "mm": SiUnit("m", _F(1, 1000)),
    "kg": SiUnit("kg"),
    "w": SiUnit("W"),
    "kw": SiUnit("W", _F(1000)),
    "a": SiUnit("A"),
    "ma": SiUnit("A", _F(1, 1000)),
    "v": SiUnit("V"),
    "mv": SiUnit("V", _F(1, 1000)),
    "hz": SiUnit("Hz"),
}


def si_unit(text: str | None) -> SiUnit | None:
    """SI unit of a database's unit string; None if it is not known."""
    return _UNITS.get("".join((text or "").split()).lower())


def known_units() -> str:
    """The accepted unit strings, for error messages."""
    return ", ".join(u for u in _UNITS if u)


def to_si(value: float | int, unit: SiUnit, *, with_offset: bool) -> float:
    """`value` of the database in SI, computed from the decimals the database shows (0.005 bar is exactly 500 Pa)."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    offset = unit.offset if with_offset else 0
    try:
        if isinstance(unit.factor, Fraction):
            return float(exact * unit.factor + offset)
        return float(value) * unit.factor + float(offset)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
