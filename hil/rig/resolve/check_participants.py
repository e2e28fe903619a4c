"""What is checked of a rig beyond its own file before anything is started: its participants, and who sends what."""

from __future__ import annotations

from dataclasses import replace

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase, check_owners
from torqueloop.hil.ecu.control_unit import ControlUnit, make_unit
from torqueloop.hil.rig.devices.device import BusPlan, RigPlan, UnitPlan
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.resolve.setups import ecu_setup, vehicle_setup
from torqueloop.hil.vehicle.vehicle import make_vehicle


def check_participants(plan: RigPlan) -> None:
    """Let the kinds check the files of all participants, and check that no two nodes of a bus send the same
    identifier."""
    vehicle = plan.config.vehicle
    if vehicle is not None and vehicle.started:
        make_vehicle(vehicle.kind, vehicle_setup(plan))
    cards = plan.device(IoCards)
    for name in cards.given.io:
        cards.library(name)
    on: dict[str, list[CanDatabase]] = {bus.name: [bus.database] for bus in plan.buses}
    for unit in plan.started_units():
        made = make_unit(unit.config.kind, ecu_setup(plan, unit))
        for name in unit.buses:
            database = _database(plan, unit, made, plan.bus(name))
            if database is not None:
                on[name].append(database)
    for databases in on.values():
        check_owners(databases)


def check_real_clock(plan: RigPlan) -> None:
    """ConfigError where the kind of a control unit runs on the virtual clock only."""
    for unit in plan.started_units():
        make_unit(unit.config.kind, replace(ecu_setup(plan, unit), own_clock=True))


def _database(plan: RigPlan, unit: UnitPlan, made: ControlUnit, bus: BusPlan) -> CanDatabase | None:
    """A bus as the control unit's node sees it; None where that is the unit's own business."""
    node = unit.config.node
    if node in (bus.config.node, *bus.config.nodes):
        raise ConfigError(
            "{key} = {value} is the rig's own node",
            file=str(plan.path),
            table=f"ecu.{unit.name}",
            key="node",
            value=node,
        )
    own = getattr(made, "database", None)
    if isinstance(own, CanDatabase) and own.path == bus.database.path:
        return own
    try:
        return CanDatabase.load(bus.database.path, node, timeouts_s={"*": 0.0})
    except ConfigError as error:
        raise error.located(file=str(plan.path), table=f"ecu.{unit.name}", key="node") from None
