"""Units at the borders: inside everything is SI, outside the unit is part of the key (`J_kgm2`, `p_return_bar`).

A dimension is a word ("torque"); each has the units that may be written and the factor to SI. Factors are exact
(Fraction) wherever the definition is, so that `r_o_mm = 97.5` and `r_o=0.0975` are the same number.
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction

from torqueloop.core.describe.errors import RangeError

F = Fraction
#: rad/s per rpm and rad per degree are irrational: the nearest doubles
RPM = math.pi / 30.0
DEG = math.pi / 180.0

#: dimension -> {unit as written in keys: factor to SI}; the first unit is the SI one
DIMENSIONS: dict[str, dict[str, Fraction | float]] = {
    "1": {"": F(1), "percent": F(1, 100)},
    "inertia": {"kgm2": F(1), "gm2": F(1, 1000)},
    "angular_velocity": {"radps": F(1), "rpm": RPM},
    "angular_acceleration": {"radps2": F(1)},
    "angle": {"rad": F(1), "deg": DEG},
    "torque": {"Nm": F(1), "kNm": F(1000)},
    "rotational_stiffness": {"Nm_per_rad": F(1), "Nm_per_deg": 1.0 / DEG},
    "rotational_damping": {"Nms_per_rad": F(1)},
    "torque_per_speed_squared": {"Nms2_per_rad2": F(1), "Nm_per_radps2": F(1)},
    "length": {"m": F(1), "cm": F(1, 100), "mm": F(1, 1000)},
    "area": {"m2": F(1), "cm2": F(1, 10**4), "mm2": F(1, 10**6)},
    "mass": {"kg": F(1)},
    "force": {"N": F(1), "kN": F(1000)},
    "stiffness": {"N_per_m": F(1), "N_per_mm": F(1000)},
    "damping": {"Ns_per_m": F(1)},
    "inverse_velocity": {"s_per_m": F(1)},
    "quadratic_damping": {"Ns2_per_m2": F(1)},
    "pressure": {"Pa": F(1), "kPa": F(1000), "bar": F(10**5)},
    "time": {"s": F(1), "ms": F(1, 1000)},
    "velocity": {"mps": F(1), "kmh": F(10, 36)},
    "acceleration": {"mps2": F(1)},
    "temperature": {"K": F(1)},
    "power": {"W": F(1), "kW": F(1000)},
    "energy": {"J": F(1), "kJ": F(1000)},
    "heat_capacity": {"J_per_K": F(1), "kJ_per_K": F(1000)},
    "thermal_conductance": {"W_per_K": F(1)},
    "temperature_coefficient": {"per_K": F(1)},
    "frequency": {"Hz": F(1)},
    "angle_per_length": {"rad_per_m": F(1), "rad_per_mm": F(1000)},
    "mass_flow": {"kg_per_s": F(1), "g_per_s": F(1, 1000)},
    "specific_energy": {"J_per_kg": F(1), "MJ_per_kg": F(10**6)},
    "volume_flow": {"m3_per_s": F(1), "l_per_min": F(1, 60000)},
    "viscosity": {"Pas": F(1), "mPas": F(1, 1000)},
    "density": {"kg_per_m3": F(1)},
}

#: dimension -> SI unit as printed (reports, plots, output lists)
SYMBOLS: dict[str, str] = {
    "1": "1", "inertia": "kg.m2", "angular_velocity": "rad/s", "angular_acceleration": "rad/s2", "angle": "rad",
    "torque": "Nm", "rotational_stiffness": "Nm/rad", "rotational_damping": "Nms/rad",
    "torque_per_speed_squared": "Nms2/rad2", "length": "m", "area": "m2", "mass": "kg", "force": "N",
    "stiffness": "N/m", "damping": "Ns/m", "inverse_velocity": "s/m", "quadratic_damping": "Ns2/m2",
    "pressure": "Pa", "time": "s",
    "velocity": "m/s", "acceleration": "m/s2", "temperature": "K", "power": "W", "energy": "J",
    "heat_capacity": "J/K", "thermal_conductance": "W/K", "temperature_coefficient": "1/K", "frequency": "Hz",
    "angle_per_length": "rad/m",
    "mass_flow": "kg/s", "specific_energy": "J/kg", "volume_flow": "m3/s", "viscosity": "Pas", "density": "kg/m3",
}  # fmt: skip

#: unit suffix -> (dimension, factor); a suffix belongs to one dimension only
UNITS: dict[str, tuple[str, Fraction | float]] = {
    unit: (dimension, factor) for dimension, units in DIMENSIONS.items() for unit, factor in units.items() if unit
}


#: decimal exponents a number may have; beyond them it is no double (and its exact form would fill the memory)
EXPONENTS = (-300, 300)


def is_number(value: object) -> bool:
    """Is it a number, of Python or numpy? Truth values are none."""
    return isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool)


def exact(value: int | float | numbers.Real | Decimal | Fraction) -> Fraction:
    """The decimal number the user wrote, exactly (2.1 is 21/10, whether it came from TOML, Python or numpy)."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, numbers.Integral):
        number = Decimal(int(value))
    else:
        number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not number.is_finite():
        raise RangeError("{key} = {value} is not finite", value=value)
    if number and not EXPONENTS[0] <= number.adjusted() <= EXPONENTS[1]:
        raise RangeError("{key} = {value} is out of range", value=number, allowed="1e-300 to 1e300")
    return Fraction(number)


def scaled(value: int | float | numbers.Real | Decimal | Fraction, factor: Fraction | float) -> Fraction | float:
    """value * factor, exact when the factor is."""
    if isinstance(factor, Fraction):
        return exact(value) * factor
    return float(exact(value)) * factor


def keys_of(name: str, dimension: str) -> dict[str, Fraction | float]:
    """The keys under which parameter `name` may be written, with their factor to SI; the SI key first."""
    return {f"{name}_{unit}" if unit else name: factor for unit, factor in DIMENSIONS[dimension].items()}


def column_unit(label: str) -> tuple[str, Fraction | float]:
    """Dimension and factor of a table column from its label: "speed_rpm" -> angular_velocity, pi/30; "mu" -> 1, 1.

    The longest unit that ends the label after an underscore counts ("c_Nm_per_rad" is a stiffness, not an angle).
    """
    parts = label.split("_")
    for start in range(1, len(parts)):
        unit = "_".join(parts[start:])
        if unit in UNITS:
            return UNITS[unit]
    if label.endswith("_percent"):
        return "1", F(1, 100)
    return "1", F(1)


def to_si(value: float, unit: str) -> float:
    """Convert a number with a unit suffix of this module ("bar", "rpm") to SI."""
    if unit in ("", "1"):
        return float(value)
    if unit == "percent":
        return float(value) / 100.0
    return float(scaled(value, UNITS[unit][1]))
