"""Heat elements as components contribute them; thermal.py makes nodes and arrays of them.

Ports are full names ("brake.heatPort"). Temperatures in K, heat flow in W.
"""

from __future__ import annotations

from dataclasses import field

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.tables import Table1D


@dataclass(frozen=True)
class HeatCapacity:
    """C*dT/dt = heat flow into the port; T0 at the start."""

    owner: str
    port: str
    C: float
    T0: float


@dataclass(frozen=True)
class FixedTemperature:
    """The port is at T, or at the temperature an input gives (-1: none)."""

    owner: str
    port: str
    T: float
    input: int


@dataclass(frozen=True)
class Conductance:
    """Heat flow from port a to port b: G*factor*(T_a - T_b), factor = input and curve(T of curve_port) where given."""

    owner: str
    port_a: str
    port_b: str
    G: float
    input: int
    curve: Table1D | None
    curve_port: str | None


@dataclass(frozen=True)
class HeatSource:
    """Heat flow gain*power into the port, from a force element or an input; an open port takes none."""

    owner: str
    port: str
    kind: int
    #: where `index` is that of a port of the mechanics: its group
    group: str | None
    index: int
    gain: float


@dataclass
class ThermalParts:
    """All heat elements, in the order of the sorted component names."""

    #: nodes inside components (they are no flanges)
    nodes: list[str] = field(default_factory=list)
    capacities: list[HeatCapacity] = field(default_factory=list)
    fixed: list[FixedTemperature] = field(default_factory=list)
    conductances: list[Conductance] = field(default_factory=list)
    sources: list[HeatSource] = field(default_factory=list)
