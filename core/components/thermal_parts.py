"""Heat: what the losses of a driveline warm up. Temperatures in K, heat flow in W, + into the part it flows to.

Lumped: every port has one temperature. Connected ports have the same temperature, their heat flows sum to zero. A node
without heat capacity must be held at a temperature. After Modelica.Thermal.HeatTransfer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import THERMAL, Flange
from torqueloop.core.describe.kernel_numbers import HEAT_FROM_INPUT
from torqueloop.core.describe.params import param
from torqueloop.core.signals import Constant, Signal

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

PORT = {"port": Flange(domain=THERMAL)}
TWO_PORTS = {"port_a": Flange(domain=THERMAL), "port_b": Flange(domain=THERMAL)}


@dataclass(frozen=True, kw_only=True)
class HeatCapacitor(Component):
    """C*dT/dt = heat flow into the port; output T."""

    flanges: ClassVar[Mapping[str, Flange]] = PORT

    C: float = param("heat capacity", "heat_capacity", low=0.0, above=True)
    T0: float = param("start temperature", "temperature", 293.15, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        b.heat_capacity("port", self.C, self.T0)
        b.temperature_output("T", "port")


@dataclass(frozen=True, kw_only=True)
class FixedTemperature(Component):
    """The port is at T, whatever heat that takes (surroundings)."""

    flanges: ClassVar[Mapping[str, Flange]] = PORT

    T: float = param("temperature", "temperature", low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        b.fixed_temperature("port", self.T)
        b.temperature_output("T", "port")


@dataclass(frozen=True, kw_only=True)
class PrescribedTemperature(Component):
    """The port is at the temperature of the input T (K), whatever heat that takes."""

    flanges: ClassVar[Mapping[str, Flange]] = PORT

    T_start: float = param("temperature while the input is not set", "temperature", 293.15, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        b.fixed_temperature("port", self.T_start, b.input("T", "temperature"))
        b.temperature_output("T", "port")

    def default_inputs(self) -> dict[str, Signal]:
        return {"T": Constant(self.T_start)}


@dataclass(frozen=True, kw_only=True)
class ThermalConductor(Component):
    """Q_flow = G*(T_a - T_b) from port_a to port_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PORTS

    G: float = param("thermal conductance", "thermal_conductance", low=0.0)

    def contribute(self, b: Builder) -> None:
        b.conductance("port_a", "port_b", self.G)


@dataclass(frozen=True, kw_only=True)
class Convection(Component):
    """Q_flow = Gc*(T_solid - T_fluid) from solid to fluid; Gc is an input (W/K, >= 0)."""

    flanges: ClassVar[Mapping[str, Flange]] = {"solid": Flange(domain=THERMAL), "fluid": Flange(domain=THERMAL)}

    def contribute(self, b: Builder) -> None:
        b.conductance("solid", "fluid", 1.0, input=b.input("Gc", "thermal_conductance"))


@dataclass(frozen=True, kw_only=True)
class PrescribedHeatFlow(Component):
    """The input Q_flow (W) flows into the port."""

    flanges: ClassVar[Mapping[str, Flange]] = PORT

    def contribute(self, b: Builder) -> None:
        b.heat("port", HEAT_FROM_INPUT, b.input("Q_flow", "power"))


@dataclass(frozen=True, kw_only=True)
class FixedHeatFlow(Component):
    """A constant Q_flow flows into the port. Its input `Q_flow` carries it."""

    flanges: ClassVar[Mapping[str, Flange]] = PORT

    Q_flow: float = param("heat flow into the port", "power")

    def contribute(self, b: Builder) -> None:
        b.heat("port", HEAT_FROM_INPUT, b.input("Q_flow", "power"))

    def default_inputs(self) -> dict[str, Signal]:
        return {"Q_flow": Constant(self.Q_flow)}


@dataclass(frozen=True, kw_only=True)
class TemperatureSensor(Component):
    """Output T: temperature of the port."""

    flanges: ClassVar[Mapping[str, Flange]] = PORT

    def contribute(self, b: Builder) -> None:
        b.temperature_output("T", "port")
