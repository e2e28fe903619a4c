"""[ecu.NAME] of a rig file: what reaches a control unit, and what it gives, without a bus between."""

from __future__ import annotations

from collections.abc import Sequence

from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.ecu.pins import Pins
from torqueloop.hil.rig.devices.device import Device, UnitPlan
from torqueloop.hil.rig.schema.rig_file import RigConfig


class ControlUnits(Device[RigConfig]):
    """Signals NAME.PIN of the actuators of each control unit."""

    TABLES = RigConfig

    def signals(self) -> None:
        for name, ecu in self.given.ecu.items():
            self.table.add_all((f"{name}.{pin}", unit) for pin, unit in ecu.actuators.items())

    def plan(self) -> None:
        for name, ecu in self.given.ecu.items():
            slots = [(pin, self.read_slot(signal, f"ecu.{name}.sensors", pin)) for pin, signal in ecu.sensors.items()]
            sensors = tuple((pin, slot, self.table.units[slot]) for pin, slot in slots)
            first = self.table.slot(f"{name}.{next(iter(ecu.actuators))}") if ecu.actuators else 0
            buses = tuple(self.given.buses_of(name))
            self.rig.units.append(UnitPlan(name, ecu, buses, sensors, tuple(ecu.actuators.items()), first))

    def make(self, tick: Rig, received: Sequence[RxState]) -> dict[str, Pins]:
        """The pins of each unit that has some. The tick reads the actuators; who needs the sensors asks for them."""
        pins = {}
        for unit in self.rig.units:
            if unit.sensors or unit.actuators:
                made = pins[unit.name] = Pins(len(unit.sensors), len(unit.actuators))
                if made.actuators is not None:
                    tick.add_pins(made.actuators, unit.actuator_slot)
        return pins
