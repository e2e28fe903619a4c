"""What the kinds of control units and vehicles receive from a rig."""

from __future__ import annotations

from pathlib import Path

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.control_unit import Bus, EcuSetup, Pin
from torqueloop.hil.rig.devices.device import RigPlan, UnitPlan
from torqueloop.hil.rig.schema.participants import relative
from torqueloop.hil.vehicle.vehicle import VehicleSetup


def ecu_setup(plan: RigPlan, unit: UnitPlan, folder: Path | None = None) -> EcuSetup:
    """What a control unit receives before it is made. folder: of the run, for a log of its own."""
    ecu = unit.config
    buses = []
    for name in unit.buses:
        bus = plan.bus(name)
        place = bus.config.bus(bus.database.has_fd)
        buses.append(Bus(name, bus.database.path, ecu.node, place, bus.database.node))
    return EcuSetup(
        name=unit.name,
        tick_s=plan.config.clock.tick_s,
        file=None if ecu.start is None else _file(plan, f"ecu.{unit.name}", ecu.start, "tcu"),
        buses=tuple(buses),
        sensors=tuple(Pin(name, symbol) for name, _, symbol in unit.sensors),
        actuators=tuple(Pin(name, symbol) for name, symbol in unit.actuators),
        options=dict(ecu.options),
        rig_file=str(plan.path),
        table=f"ecu.{unit.name}",
        folder=folder,
    )


def vehicle_setup(plan: RigPlan) -> VehicleSetup:
    """What the vehicle model receives before it is made."""
    v = plan.config.vehicle
    assert v is not None and plan.vehicle is not None
    file = None if v.start is None else _file(plan, "vehicle", v.start, "vehicles")
    carriers = tuple(v.carriers)
    return VehicleSetup(file, plan.vehicle.mass_kg, v.car, dict(v.options), str(plan.path), carriers=carriers)


def _file(plan: RigPlan, table: str, name: str, folder: str) -> Path:
    try:
        return relative(plan.path, name, folder)
    except ConfigError as error:
        raise error.located(file=str(plan.path), table=table, key="start") from None
