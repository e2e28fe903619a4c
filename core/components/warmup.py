"""Warm-up of an engine: block, coolant in the block, coolant in the radiator, oil, surroundings.

    heatPort -> block --G_block_coolant-- coolant --G_flow*thermostat-- radiator --G_radiator*air-- ambient
                  |                                                                                  |
                  +--G_block_oil-- oil --G_oil_ambient-----------------------------------------------+
                  +--G_block_ambient-----------------------------------------------------------------+

Each mass: C*dT/dt = sum of G*(T_neighbour - T) + heat from outside; the thermostat opens with T_coolant. G_flow is
mass flow * specific heat of the coolant: what the pump exchanges between the two volumes.
Otter, Dempsey, Schlegel 2000 (WarmUpModel). Valid without boiling; lumped: no delay in the hoses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.params import curve, param
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.signals import Constant, Signal

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: opening of the thermostat over the temperature of the coolant in the block, K: about 96 degC +- 5 K (ADVISOR
#: fc_tstat = 96 degC, "typically 95 +- 5"); closed it still lets 1 % pass (assumed)
THERMOSTAT = Table1D((364.15, 374.15), (0.01, 1.0), ("temperature", "1"))


@dataclass(frozen=True, kw_only=True)
class WarmUpModel(Component):
    """Four lumped masses (block, coolant in the block, coolant in the radiator, oil) between engine and surroundings.

    Inputs: `air` (factor of G_radiator: speed of the car and fan, default 1), `T_ambient` (K, default: the parameter).
    All temperatures are outputs, in K.

    Defaults: 500 J/kgK and 10 W/K (block to surroundings) are those of ADVISOR's engine files (FC_*.m: fc_cp,
    fc_h2x_th_cond), with 100 kg of metal; all others are assumed for an engine of about 2 l: 2000 W/K from the block to
    the coolant (0.25 m2 of water jacket at 8 kW/m2K; ADVISOR's fc_c2i_th_cond of 500 W/K is another one, from cylinder
    walls to the block), 300 W/K from the block to the oil, 3 kg coolant in the block, 4 kg in radiator and hoses
    (3.5 kJ/kgK), 4 kg oil (2 kJ/kgK), 0.43 kg/s coolant flow.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"heatPort": HEAT_PORT, "oil": HEAT_PORT, "coolant": HEAT_PORT}

    C_block: float = param("heat capacity of the metal", "heat_capacity", 50.0e3, low=0.0, above=True)
    C_coolant: float = param("heat capacity of the coolant in the block", "heat_capacity", 10.5e3, low=0.0, above=True)
    C_radiator: float = param("heat capacity of radiator and its coolant", "heat_capacity", 14.0e3, low=0.0, above=True)
    C_oil: float = param("heat capacity of oil and pan", "heat_capacity", 8.0e3, low=0.0, above=True)
    G_block_coolant: float = param("block to coolant", "thermal_conductance", 2000.0, low=0.0)
    G_block_oil: float = param("block to oil", "thermal_conductance", 300.0, low=0.0)
    G_flow: float = param("coolant flow, thermostat open", "thermal_conductance", 1500.0, low=0.0)
    G_radiator: float = param("radiator to ambient at air = 1", "thermal_conductance", 700.0, low=0.0)
    G_block_ambient: float = param("block to ambient", "thermal_conductance", 10.0, low=0.0)
    G_oil_ambient: float = param("oil pan to ambient", "thermal_conductance", 20.0, low=0.0)
    thermostat: Any = curve("opening 0..1 over the coolant's temperature", "temperature", "1", THERMOSTAT,
                            low=0.0, high=1.0)  # fmt: skip
    T_ambient: float = param("temperature of the surroundings", "temperature", 293.15, low=200.0, high=400.0)
    T0: float = param("start temperature of all masses", "temperature", 293.15, low=200.0, high=500.0)

    def default_inputs(self) -> dict[str, Signal]:
        return {"air": Constant(1.0), "T_ambient": Constant(self.T_ambient)}

    def contribute(self, b: Builder) -> None:
        for node in ("radiator", "ambient"):
            b.thermal_node(node)
        for node, C in (("heatPort", self.C_block), ("coolant", self.C_coolant), ("radiator", self.C_radiator),
                        ("oil", self.C_oil)):  # fmt: skip
            b.heat_capacity(node, C, self.T0)
        air = b.input("air", "1")
        b.fixed_temperature("ambient", self.T_ambient, b.input("T_ambient", "temperature"))
        b.conductance("heatPort", "coolant", self.G_block_coolant)
        b.conductance("heatPort", "oil", self.G_block_oil)
        b.conductance("coolant", "radiator", self.G_flow, curve=b.table1("thermostat"), curve_port="coolant")
        b.conductance("radiator", "ambient", self.G_radiator, input=air)
        b.conductance("heatPort", "ambient", self.G_block_ambient)
        b.conductance("oil", "ambient", self.G_oil_ambient)
        for short, node in (("T_block", "heatPort"), ("T_coolant", "coolant"), ("T_radiator", "radiator"),
                            ("T_oil", "oil")):  # fmt: skip
            b.temperature_output(short, node)
