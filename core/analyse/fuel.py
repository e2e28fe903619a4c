"""Fuel consumption of a run, computed from its signals afterwards (the simulation itself carries no fuel state).

    P_fuel = fuel(w, T)                    T = tau_indicated - friction(w, T_warm) - auxiliaries(w)

T is the torque the warm engine would put out with the same combustion: extra friction of a cold engine costs fuel
because it takes more indicated torque for the same torque at the flange. Below the first torque of the map the fuel
goes linearly to 0 at tau_indicated = 0 (Willans line; a motored engine burns nothing). Outside the map: its edge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.components.powertrain_engine import Engine3
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, MissingValueError
from torqueloop.core.describe.parts import Parts
from torqueloop.core.describe.tables import Table1D, Table2D
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]

#: petrol (ADVISOR FC_SI*: 0.749 kg/l, 42.6 MJ/kg)
PETROL_DENSITY = 0.749
PETROL_LHV = 42.6e6


@dataclass(frozen=True)
class FuelConsumption:
    """Fuel over the samples of a run."""

    #: s
    time: Array
    #: kg/s
    rate: Array
    #: burnt so far, kg
    mass: Array
    #: kg/l
    density: float

    @property
    def litres(self) -> float:
        """All fuel of the run, l."""
        return float(self.mass[-1]) / self.density

    def per_100km(self, distance_m: float) -> float:
        """l/100 km over a distance."""
        return self.litres / (distance_m / 1e5)


def fuel_consumption(
    result: Result, driveline: Driveline, engine: str, *, lhv: float = PETROL_LHV, density: float = PETROL_DENSITY
) -> FuelConsumption:
    """Fuel of an Engine3 with a `fuel` map. lhv in J/kg, density in kg/l."""
    component = driveline.components.get(engine)
    if not isinstance(component, Engine3):
        raise ConfigError("{value} is no Engine3", key="engine", value=engine)
    if component.fuel is None:
        raise MissingValueError("{key} is missing: no fuel consumption without a map", table=f"components.{engine}",
                                key="fuel")  # fmt: skip
    b = Builder(Parts(), engine, component, driveline.tables)
    losses, table = component.warm_losses(b), b.table2("fuel")
    rate = fuel_power(table, losses, result[f"{engine}.w"], result[f"{engine}.tau_indicated"]) / lhv
    # forces of the first sample are 0, no step has been made yet: take those of the second
    if len(rate) > 1:
        rate[0] = rate[1]
    steps = 0.5 * (rate[1:] + rate[:-1]) * np.diff(result.time)
    return FuelConsumption(result.time, rate, np.concatenate([[0.0], np.cumsum(steps)]), density)


def fuel_power(table: Table2D, losses: Table1D, w: Array, tau_indicated: Array) -> Array:
    """Chemical power of the fuel, W; see the text of this file."""
    loss = np.interp(w, losses.x, losses.y)
    torque = tau_indicated - loss
    lowest = np.full_like(torque, table.y[0])
    inside = bilinear(table, w, np.maximum(torque, lowest))
    span = lowest + loss
    share = np.clip(np.where(span > 0.0, tau_indicated / np.where(span > 0.0, span, 1.0), 1.0), 0.0, 1.0)
    return np.where(torque >= lowest, inside, share * inside)


def bilinear(table: Table2D, x: Array, y: Array) -> Array:
    """A map at many points, by the rule of the kernel: bilinear, clipped at its edges."""
    axes, grid = (np.asarray(table.x), np.asarray(table.y)), np.asarray(table.z)
    cell, part = [], []
    for axis, at in zip(axes, (x, y), strict=True):
        at = np.clip(at, axis[0], axis[-1])
        k = np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 2)
        cell.append(k)
        part.append((at - axis[k]) / (axis[k + 1] - axis[k]))
    (i, j), (p, q) = cell, part
    low = grid[i, j] * (1.0 - q) + grid[i, j + 1] * q
    high = grid[i + 1, j] * (1.0 - q) + grid[i + 1, j + 1] * q
    value: Array = low * (1.0 - p) + high * p
    return value
