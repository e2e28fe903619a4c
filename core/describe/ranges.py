"""The range of every quantity, from physics: beyond it a number is a slip of the keyboard or of a unit, not a machine.

A range holds for a kind of quantity wherever it is read: parameters and curves of components, `[initial]`, tables of
rig, vehicle and hydraulics, signals of a CAN database, and values that the control channel sets. The range of a single
parameter (an efficiency, a share) is narrower and stands with it. Values in SI; docs/ranges.md is written from here.

    python -m torqueloop.core.describe.ranges > docs/ranges.md
"""

from __future__ import annotations

import math

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.units import DIMENSIONS, SYMBOLS, UNITS


@dataclass(frozen=True)
class Range:
    """From low to high; 0 may be in it, but nothing nearer to 0 than `least`."""

    low: float
    high: float
    least: float
    why: str
    unit: str

    def holds(self, value: float) -> bool:
        """Is the value in the range? No number that is not finite is."""
        return self.low <= value <= self.high and (value == 0.0 or abs(value) >= self.least)

    def __str__(self) -> str:
        unit = "" if self.unit == "1" else f" {self.unit}"
        near = f", 0 or a magnitude of at least {self.least:g}" if self.least and self.low <= 0.0 else ""
        low = self.least if self.low > 0.0 else self.low
        return f"{low:g} .. {self.high:g}{unit}{near}"


def _both(most: float, least: float, why: str) -> tuple[float, float, float, str]:
    return -most, most, least, why


#: dimension, or a quantity of its own -> low, high, least magnitude that is not 0, reason
_TABLE: dict[str, tuple[float, float, float, str]] = {
    "1": _both(1e12, 1e-15, "shares, coefficients, exponents; most have a narrower range of their own"),
    "ratio": _both(1e4, 1e-4, "a worm gear has up to 300, three of them in series are no gearbox"),
    "inertia": (0.0, 1e9, 1e-10, "from a steel disc of 6 mm, 0.1 mm thick, to a thousand rotors of a power station"),
    "product_of_inertia": _both(1e9, 0.0, "of either sign, by the axes chosen; its size is bounded by the moments"),
    "angular_velocity": _both(1e6, 0.0, "a dentist's drill turns at 5e4 rad/s"),
    "angular_acceleration": _both(1e9, 0.0, "a light shaft at the stop of a spline has 1e6"),
    "angle": _both(1e10, 0.0, "1.6e9 turns, 100 days at 11000 rpm; beyond it a spring feels the rounding of an angle"),
    "torque": _both(1e9, 1e-12, "the largest ship engine gives 8e6"),
    "rotational_stiffness": (0.0, 1e13, 1e-9, "a steel bar of 1 m diameter and 0.1 m length has 8e10"),
    "rotational_damping": (-1e10, 1e10, 1e-12, "a damper that takes 1e10 Nm at 1 rad/s is a lock"),
    "torque_per_speed_squared": (-1e6, 1e6, 1e-15, "a converter of a car has 1e-3 to 1e-2"),
    "length": _both(1e7, 1e-9, "from a surface's roughness to the way round the earth"),
    "area": (0.0, 1e4, 1e-12, "from an orifice of 1 um to the front of a ship"),
    "mass": (0.0, 1e9, 1e-9, "a loaded ship has 5e8"),
    "force": _both(1e12, 1e-12, "a rocket at its start has 1e8"),
    "stiffness": (0.0, 1e13, 1e-9, "1 m2 of steel, 1 cm thick, has 2e13"),
    "damping": (-1e12, 1e12, 1e-12, "a damper that takes 1e12 N at 1 m/s is a lock"),
    "inverse_velocity": _both(1e9, 1e-12, "over which a curve of friction falls"),
    "quadratic_damping": (-1e9, 1e9, 1e-12, "air on a car has 0.4, water on a ship 1e6"),
    "pressure": (-1e5, 1e9, 0.0, "from vacuum, 1 bar below the air, to four times an injector of diesel"),
    "time": (-1e6, 1e6, 0.0, "11 days before or after a start"),
    "reaction_time": (0.0, 60.0, 0.0,
        "a safe state that is reached later, or a silence borne longer, protects nothing"),
    "velocity": _both(1e6, 0.0, "beyond any vehicle"),
    "acceleration": _both(1e9, 0.0, "a stop of steel on steel has 1e6"),
    "temperature": (0.0, 1e4, 0.0, "absolute; a flame of petrol has 2500"),
    "power": _both(1e12, 0.0, "a power station has 1e9"),
    "energy": _both(1e15, 0.0, "a full tank of a car has 2e9"),
    "heat_capacity": (0.0, 1e12, 1e-15, "100 kg of iron have 4.5e4"),
    "thermal_conductance": (0.0, 1e9, 1e-12, "a radiator has 1e3"),
    "temperature_coefficient": _both(1e3, 0.0, "viscosity of oil falls by 0.03 to 0.1 per K"),
    "frequency": (0.0, 1e9, 0.0, "no shaft moves at 1e9 Hz"),
    "angle_per_length": _both(1e7, 0.0, "a screw of 1 um lead"),
    "mass_flow": _both(1e6, 0.0, "a pump of a car moves 1"),
    "specific_energy": _both(1e9, 0.0, "hydrogen has 1.2e8"),
    "volume_flow": _both(1e3, 0.0, "a pump of a gearbox moves 1e-3"),
    "viscosity": (0.0, 1e6, 1e-9, "oil at -30 degC has 10, air 2e-5"),
    "density": (0.0, 1e5, 1e-3, "hydrogen has 0.08, osmium 2.3e4"),
    "volume": (0.0, 1e6, 1e-15, "from a grain of dust to a lake"),
    "elasticity": (0.0, 1e-6, 0.0, "a gearbox gives 1e-12 m3/Pa to 1e-11; 100 l per bar are a tank"),
    "leakage": (0.0, 1e-6, 0.0, "100 l/s at 1 bar are no leak"),
}  # fmt: skip

#: units of quantities that no dimension of a component has
_UNITS = {
    "reaction_time": "s", "volume": "m3", "elasticity": "m3/Pa", "leakage": "m3/(s Pa)", "product_of_inertia": "kg.m2"
}  # fmt: skip
RANGES: dict[str, Range] = {
    name: Range(*row, unit=SYMBOLS.get(name, _UNITS.get(name, "1"))) for name, row in _TABLE.items()
}
#: unit as keys of rig, vehicle and hydraulics write it -> (quantity, factor to SI), beside those of units.py
SPELLED: dict[str, tuple[str, float]] = {
    "kgpm3": ("density", 1.0), "cm3": ("volume", 1e-6), "cm3pbar": ("elasticity", 1e-11),
    "cm3psbar": ("leakage", 1e-11),
}  # fmt: skip

#: keys whose numbers are not all of the quantity that their unit says: three moments and three products of inertia
_OF_KEY = {"I_kgm2": "product_of_inertia"}

#: quantities of either sign that are often computed: a place on an axis, a direction, a torque over time. cos(90 deg)
#: is 6e-17, so what is nearer to 0 than `least` is the rounding of 0 wherever a parameter may be negative
ROUNDED = frozenset({"1", "length", "torque", "force"})
#: rad/s: a spring and an inertia that oscillate faster are no shaft (sound passes 50 um of steel in 1e-8 s), and a step
#: of 1 ms loses the inertia beside (h/2)^2 c in 16 digits
FASTEST = 1e8
#: inertias of one driveline that are further apart: the lighter one is rounding of the heavier one
APART = 1e13


def range_of_key(key: str) -> tuple[Range, float] | None:
    """Range of a key by the unit that ends it ("ramp_s", "p_max_bar"), with the factor to SI; None: it has no unit."""
    unit = _unit_of(key)
    if unit is None:
        return None
    quantity, factor = (SPELLED | UNITS)[unit]
    return RANGES[_OF_KEY.get(key, quantity)], float(factor)


def _unit_of(key: str) -> str | None:
    """The longest unit that ends a key after an underscore."""
    parts = key.split("_")
    ends = ("_".join(parts[start:]) for start in range(1, len(parts)))
    return next((unit for unit in ends if unit in UNITS or unit in SPELLED), None)


def as_written(found: Range, factor: float, key: str) -> str:
    """The range in the unit of a key."""
    return str(found) if factor == 1.0 else f"{found.low / factor:g} .. {found.high / factor:g} {_unit_of(key)}"


def page() -> str:
    """The table for people."""
    lines = [
        "# Ranges of quantities", "",
        "Every number that is read is held against the range of its kind of quantity: parameters and curves of",
        "components, `[initial]`, tables of rig, vehicle and hydraulics, signals of a CAN database and values that the",
        "control channel sets. A message names file, table, key, value and the allowed range. Most parameters have a",
        "narrower range of their own ([components.md](components.md)). This page is written by",
        "`python -m torqueloop.core.describe.ranges`; the numbers are in `core/describe/ranges.py`.", "",
        "| quantity | from | to | not nearer to 0 than | unit | reason |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {name.replace('_', ' ') if name != '1' else 'number without a unit'} | {r.low:g} | {r.high:g} | "
        f"{f'{r.least:g}' if r.least else ''} | {r.unit} | {r.why} |"
        for name, r in RANGES.items()
    ]
    lines += [
        "", "Two ratios are held, too, because a double has 16 digits:", "",
        f"* A spring of stiffness c and the inertia J it moves oscillate with sqrt(c/J), at most {FASTEST:g} rad/s.",
        f"* The largest inertia of a driveline is at most {APART:g} times the smallest.", "",
        "Whether the steps of a run resolve an oscillation is another question: [accuracy.md](accuracy.md).",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


assert set(DIMENSIONS) <= set(RANGES) and all(math.isfinite(r.high) for r in RANGES.values())

if __name__ == "__main__":
    print(page(), end="")
