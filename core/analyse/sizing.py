"""What the parts of a gearbox must bear, and what their geometry gives: stall, packs, pistons, shafts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

#: shear modulus of steel [Pa]
G_STEEL = 79.3e9


def converter_scale(diameter_mm: float, of_mm: float) -> float:
    """Factor on K = n/sqrt(T) of a converter of another diameter: T ~ D^5 n^2, so K ~ D^-2.5."""
    return float((of_mm / diameter_mm) ** 2.5)


def stall(engine: Sequence[tuple[float, float]], capacity: float) -> tuple[float, float]:
    """(speed [rad/s], torque [Nm]) where full load meets the pump torque capacity*w^2 from above."""
    speed, torque = np.array(engine).T
    w = np.linspace(60.0, speed[-1], 100001)
    surplus = np.interp(w, speed, torque) - capacity * w * w
    at = float(w[np.flatnonzero(surplus <= 0.0)[0]])
    return at, float(capacity * at * at)


def largest_turbine_torque(
    engine: Sequence[tuple[float, float]], converter: Sequence[tuple[float, float]]
) -> float:  # fmt: skip
    """Largest steady turbine torque at full load [Nm]; converter: (pump capacity, torque ratio) over speed ratios."""
    return max(ratio * stall(engine, capacity)[1] for capacity, ratio in converter if capacity > 0.0)


def turbine_torque(
    engine: Sequence[tuple[float, float]], converter: Sequence[tuple[float, float, float]], w_turbine: float
) -> float:  # fmt: skip
    """Steady turbine torque at full load and a turbine speed [Nm]; rows: speed ratio, pump capacity, torque ratio."""
    points = []
    for nu, capacity, ratio in converter:
        if capacity > 0.0:
            w, torque = stall(engine, capacity)
            points.append((nu * w, ratio * torque))
    speeds, torques = np.array(points).T
    return float(np.interp(w_turbine, speeds, torques))


def annulus_cm2(r_o_mm: float, r_i_mm: float) -> float:
    """Area between two circles: the largest piston that fits behind plates of these radii."""
    return math.pi * (r_o_mm**2 - r_i_mm**2) * 1e-2


def pack_torque_Nm(
    faces: int, r_o_mm: float, r_i_mm: float, area_cm2: float, mue: float, pressure_bar: float
) -> float:  # fmt: skip
    """T = z r_m mu A p with the pressure above the return spring and r_m = (r_o + r_i)/2."""
    return faces * 0.5e-3 * (r_o_mm + r_i_mm) * mue * 1e-4 * area_cm2 * 1e5 * pressure_bar


def fill_cm3(clearance_mm: float, area_cm2: float) -> float:
    """Oil that moves a piston through the clearance of its pack."""
    return 0.1 * clearance_mm * area_cm2


def shaft_stiffness(outer_mm: float, inner_mm: float, length_m: float) -> float:
    """c = G pi (D^4 - d^4)/(32 L) of a round steel shaft or tube [Nm/rad]."""
    return G_STEEL * math.pi * ((1e-3 * outer_mm) ** 4 - (1e-3 * inner_mm) ** 4) / (32.0 * length_m)
