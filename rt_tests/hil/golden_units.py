"""Units of CAN databases: value in SI = value * factor + offset. From their definitions, a second time."""

from __future__ import annotations

import math
from typing import Any

UNITS: dict[str, tuple[float, float]] = {
    "": (1.0, 0.0), "%": (0.01, 0.0), "rpm": (2 * math.pi / 60, 0.0), "deg": (math.pi / 180, 0.0),
    "deg/s": (math.pi / 180, 0.0), "degC": (1.0, 273.15), "km/h": (1 / 3.6, 0.0), "m/s": (1.0, 0.0),
    "m/s2": (1.0, 0.0), "s": (1.0, 0.0), "ms": (1e-3, 0.0), "bar": (1e5, 0.0), "hPa": (1e2, 0.0), "mbar": (1e2, 0.0),
    "Nm": (1.0, 0.0), "Nm/s": (1.0, 0.0), "A": (1.0, 0.0), "mA": (1e-3, 0.0), "V": (1.0, 0.0),
}  # fmt: skip
#: units of fields that nobody fills: taken as they are
#: the last one is µl of a file in UTF-8 that is read as CP1252
KEPT = ("%/s", "Unit_PerCentPerSecon", "Min", "liter", "µl", "ul", "\u00c2µl")
UNITS |= dict.fromkeys(KEPT, (1.0, 0.0))


def si(value: float, unit: str | None) -> float:
    """A number of a database in SI."""
    factor, offset = UNITS[unit or ""]
    return value * factor + offset


def from_si(value: Any, unit: str | None) -> float:
    """Its inverse."""
    factor, offset = UNITS[unit or ""]
    return (value - offset) / factor
