"""All component kinds; `KINDS` maps the word used in files to the class."""

from __future__ import annotations

from torqueloop.core.components.base import Component, Flange, Param, params_of
from torqueloop.core.components.compliances import Damper, Spring, SpringDamper
from torqueloop.core.components.converter import LockUpTC
from torqueloop.core.components.engine import Engine
from torqueloop.core.components.friction import BearingFriction, Brake, Clutch, FreeWheel, OneWayClutch
from torqueloop.core.components.gears import (
    Differential,
    FinalDrive,
    IdealGear,
    IdealPlanetary,
    IdealRollingWheel,
    Wheel,
)
from torqueloop.core.components.laminar import LaminarBrake, LaminarClutch
from torqueloop.core.components.road import CarResistance, RoadLoad
from torqueloop.core.components.shafts import Fixed, Inertia, Mass
from torqueloop.core.components.sources import (
    ConstantTorque,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    Torque,
    TorqueStep,
)

KINDS: dict[str, type[Component]] = {
    kind.__name__: kind
    for kind in (
        Fixed, Inertia, Mass,
        Spring, Damper, SpringDamper,
        IdealGear, IdealPlanetary, IdealRollingWheel, Wheel, FinalDrive, Differential,
        Clutch, Brake, BearingFriction, OneWayClutch, FreeWheel, LaminarClutch, LaminarBrake,
        LockUpTC, Engine,
        Torque, TorqueStep, ConstantTorque, QuadraticSpeedDependentTorque, QuadraticSpeedDependentForce,
        CarResistance, RoadLoad,
    )
}  # fmt: skip

__all__ = ["KINDS", "Component", "Flange", "Param", "params_of", *KINDS]
