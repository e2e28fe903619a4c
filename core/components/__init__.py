"""All component kinds, by family; `KINDS` maps the word used in files to the class.

A module that brings kinds names them here: import, family, `__all__`. The word in files is the name of the class.
docs/components.md is made from the families.
"""

from __future__ import annotations

from torqueloop.core.components.adaptors import (
    AngleToTorqueAdaptor,
    GeneralAngleToTorqueAdaptor,
    GeneralTorqueToAngleAdaptor,
    TorqueToAngleAdaptor,
)
from torqueloop.core.components.backlash import ElastoBacklash, ElastoBacklash2
from torqueloop.core.components.bodies import (
    BodyMount,
    CardanMount,
    FixedMount,
    LeavingShaft,
    RevoluteMount,
    RigidBody,
    SphericalMount,
)
from torqueloop.core.components.breaking import BreakableShaft
from torqueloop.core.components.carriers import (
    AbsoluteSpeedSensor,
    BevelGear1D,
    MountedDriveline,
    Mounting1D,
    MovingCarrier,
    Rotor1D,
    World,
)
from torqueloop.core.components.compliances import Damper, Spring, SpringDamper
from torqueloop.core.components.converter import LockUpTC
from torqueloop.core.components.dogs import DogClutch
from torqueloop.core.components.eddy import EddyCurrentBrake, EddyCurrentForce, EddyCurrentTorque
from torqueloop.core.components.engine import Engine
from torqueloop.core.components.forces import (
    ConstantForce,
    Force,
    Force2,
    ForceStep,
    InverseSpeedDependentForce,
    LinearSpeedDependentForce,
    QuadraticSpeedDependentForce,
    SignForce,
)
from torqueloop.core.components.friction import BearingFriction, Brake, Clutch, FreeWheel, OneWayClutch
from torqueloop.core.components.gears import (
    Differential,
    FinalDrive,
    IdealGear,
    IdealGearR2T,
    IdealPlanetary,
    IdealRollingWheel,
    Wheel,
)
from torqueloop.core.components.initialize import (
    InitializeFlange,
    RelativeStates,
    TranslationalInitializeFlange,
    TranslationalRelativeStates,
)
from torqueloop.core.components.joint_shafts import ConstantVelocityJoint, JointShaft, ShaftBearing, UniversalJoint
from torqueloop.core.components.kinematic import (
    Accelerate,
    ConstantSpeed,
    Move,
    Position,
    Speed,
    TranslationalAccelerate,
    TranslationalConstantSpeed,
    TranslationalMove,
    TranslationalPosition,
    TranslationalSpeed,
)
from torqueloop.core.components.laminar import LaminarBrake, LaminarClutch, OneWayLaminarClutch
from torqueloop.core.components.losses import Gearbox, LossyGear
from torqueloop.core.components.mesh import DragTorque, GearMesh
from torqueloop.core.components.planets import Planetary, PlanetPlanet, PlanetRing, Ravigneaux
from torqueloop.core.components.powertrain_engine import Engine3
from torqueloop.core.components.powertrain_losses import GearEfficiency2, TorqueLoss
from torqueloop.core.components.road import CarResistance, RoadLoad
from torqueloop.core.components.sensors import (
    AccSensor,
    AngleSensor,
    ForceSensor,
    MultiSensor,
    PositionSensor,
    PowerSensor,
    RelAccSensor,
    RelAngleSensor,
    RelPositionSensor,
    RelSpeedSensor,
    SpeedSensor,
    TorqueSensor,
    TranslationalAccSensor,
    TranslationalMultiSensor,
    TranslationalPowerSensor,
    TranslationalRelAccSensor,
    TranslationalRelSpeedSensor,
    TranslationalSpeedSensor,
)
from torqueloop.core.components.shafts import Disc, Fixed, Inertia, Mass
from torqueloop.core.components.sources import (
    ConstantTorque,
    InverseSpeedDependentTorque,
    LinearSpeedDependentTorque,
    QuadraticSpeedDependentTorque,
    SignTorque,
    Torque,
    Torque2,
    TorqueStep,
)
from torqueloop.core.components.stops import HardStop, MassWithStopAndFriction, TranslationalHardStop
from torqueloop.core.components.thermal_parts import (
    Convection,
    FixedHeatFlow,
    FixedTemperature,
    HeatCapacitor,
    PrescribedHeatFlow,
    PrescribedTemperature,
    TemperatureSensor,
    ThermalConductor,
)
from torqueloop.core.components.translational import (
    ElastoGap,
    Rod,
    SupportFriction,
    TranslationalBrake,
    TranslationalDamper,
    TranslationalFixed,
    TranslationalSpring,
    TranslationalSpringDamper,
)
from torqueloop.core.components.tyre_grip import TyreGrip
from torqueloop.core.components.variable import VariableGear, Wheel2
from torqueloop.core.components.vehicle_parts import CarCoastDown, Vehicle
from torqueloop.core.components.warmup import WarmUpModel
from torqueloop.core.components.wet_drag import WetClutchDrag
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.params import Param, params_of

#: family -> its kinds, in the order of the catalogue
FAMILIES: dict[str, tuple[type[Component], ...]] = {
    "Bodies and rigid joints": (Fixed, Inertia, Disc, BreakableShaft),
    "Springs, dampers, clearance": (
        Spring, Damper, SpringDamper, ElastoBacklash, ElastoBacklash2, HardStop, DogClutch,
    ),
    "Gears": (IdealGear, LossyGear, Gearbox, IdealPlanetary, FinalDrive, Differential),
    "Planetary trains and meshes": (PlanetPlanet, PlanetRing, Planetary, Ravigneaux, GearMesh, DragTorque),
    "Changing ratio, loss by gear or input": (VariableGear, GearEfficiency2, TorqueLoss),
    "Drivelines on moving bodies": (
        World, MovingCarrier, Mounting1D, Rotor1D, BevelGear1D, AbsoluteSpeedSensor, MountedDriveline, RigidBody,
        SphericalMount, RevoluteMount, FixedMount, CardanMount, BodyMount, LeavingShaft,
    ),
    "Shafts with joints": (UniversalJoint, JointShaft, ConstantVelocityJoint, ShaftBearing),
    "Rotation to translation": (IdealGearR2T, IdealRollingWheel, Wheel, Wheel2),
    "Friction": (
        Clutch, Brake, BearingFriction, OneWayClutch, FreeWheel, LaminarClutch, LaminarBrake, OneWayLaminarClutch,
        WetClutchDrag, TyreGrip,
    ),
    "Engine and converter": (Engine, Engine3, WarmUpModel, LockUpTC),
    "Torque sources": (
        Torque, Torque2, TorqueStep, ConstantTorque, LinearSpeedDependentTorque, QuadraticSpeedDependentTorque,
        InverseSpeedDependentTorque, SignTorque, EddyCurrentTorque, EddyCurrentBrake,
    ),
    "Driven motions": (Move, Position, Speed, Accelerate, ConstantSpeed),
    "Ports to other simulators": (
        AngleToTorqueAdaptor, TorqueToAngleAdaptor, GeneralAngleToTorqueAdaptor, GeneralTorqueToAngleAdaptor,
    ),
    "Start values": (InitializeFlange, RelativeStates, TranslationalInitializeFlange, TranslationalRelativeStates),
    "Sensors": (
        AngleSensor, SpeedSensor, AccSensor, TorqueSensor, PowerSensor, RelAngleSensor, RelSpeedSensor, RelAccSensor,
        MultiSensor,
    ),
    "Sliding parts": (
        TranslationalFixed, Mass, Rod, TranslationalSpring, TranslationalDamper, TranslationalSpringDamper, ElastoGap,
        TranslationalHardStop, TranslationalBrake, SupportFriction, MassWithStopAndFriction,
    ),
    "Forces": (
        Force, Force2, ForceStep, ConstantForce, LinearSpeedDependentForce, QuadraticSpeedDependentForce,
        InverseSpeedDependentForce, SignForce, EddyCurrentForce,
    ),
    "Driven motions of sliding parts": (
        TranslationalMove, TranslationalPosition, TranslationalSpeed, TranslationalAccelerate,
        TranslationalConstantSpeed,
    ),
    "Sensors of sliding parts": (
        PositionSensor, TranslationalSpeedSensor, TranslationalAccSensor, ForceSensor, TranslationalPowerSensor,
        RelPositionSensor, TranslationalRelSpeedSensor, TranslationalRelAccSensor, TranslationalMultiSensor,
    ),
    "Road": (CarResistance, CarCoastDown, Vehicle, RoadLoad),
    "Heat": (
        HeatCapacitor, FixedTemperature, PrescribedTemperature, ThermalConductor, Convection, PrescribedHeatFlow,
        FixedHeatFlow, TemperatureSensor,
    ),
}  # fmt: skip

KINDS: dict[str, type[Component]] = {kind.__name__: kind for family in FAMILIES.values() for kind in family}

#: named one by one: type checkers evaluate no expression here
__all__ = [
    "FAMILIES", "KINDS", "AbsoluteSpeedSensor", "AccSensor", "Accelerate", "AngleSensor", "AngleToTorqueAdaptor",
    "BearingFriction", "BevelGear1D", "BodyMount", "Brake", "BreakableShaft", "CarCoastDown", "CarResistance",
    "CardanMount", "Clutch", "Component", "ConstantForce", "ConstantSpeed", "ConstantTorque", "ConstantVelocityJoint",
    "Convection", "Damper", "Differential", "Disc", "DogClutch",
    "DragTorque", "EddyCurrentBrake", "EddyCurrentForce", "EddyCurrentTorque", "ElastoBacklash", "ElastoBacklash2",
    "ElastoGap", "Engine", "Engine3", "FinalDrive", "Fixed", "FixedHeatFlow", "FixedMount", "FixedTemperature",
    "Flange", "Force",
    "Force2", "ForceSensor", "ForceStep", "FreeWheel", "GearEfficiency2", "GearMesh", "Gearbox",
    "GeneralAngleToTorqueAdaptor", "GeneralTorqueToAngleAdaptor", "HardStop", "HeatCapacitor", "IdealGear",
    "IdealGearR2T", "IdealPlanetary", "IdealRollingWheel", "Inertia", "InitializeFlange", "InverseSpeedDependentForce",
    "InverseSpeedDependentTorque", "JointShaft", "LaminarBrake", "LaminarClutch", "LeavingShaft",
    "LinearSpeedDependentForce",
    "LinearSpeedDependentTorque", "LockUpTC", "LossyGear", "Mass", "MassWithStopAndFriction", "MountedDriveline",
    "Mounting1D", "Move", "MovingCarrier", "MultiSensor", "OneWayClutch", "OneWayLaminarClutch", "Param",
    "PlanetPlanet", "PlanetRing", "Planetary", "Position", "PositionSensor", "PowerSensor", "PrescribedHeatFlow",
    "PrescribedTemperature", "QuadraticSpeedDependentForce", "QuadraticSpeedDependentTorque", "Ravigneaux",
    "RelAccSensor", "RelAngleSensor", "RelPositionSensor", "RelSpeedSensor", "RelativeStates", "RevoluteMount",
    "RigidBody", "RoadLoad", "Rod", "Rotor1D", "ShaftBearing",
    "SignForce", "SignTorque", "Speed", "SpeedSensor", "SphericalMount",
    "Spring", "SpringDamper", "SupportFriction", "TemperatureSensor", "ThermalConductor", "Torque", "Torque2",
    "TorqueLoss", "TorqueSensor", "TorqueStep", "TorqueToAngleAdaptor", "TranslationalAccSensor",
    "TranslationalAccelerate", "TranslationalBrake", "TranslationalConstantSpeed", "TranslationalDamper",
    "TranslationalFixed", "TranslationalHardStop", "TranslationalInitializeFlange", "TranslationalMove",
    "TranslationalMultiSensor", "TranslationalPosition", "TranslationalPowerSensor", "TranslationalRelAccSensor",
    "TranslationalRelSpeedSensor", "TranslationalRelativeStates", "TranslationalSpeed", "TranslationalSpeedSensor",
    "TranslationalSpring", "TranslationalSpringDamper", "TyreGrip", "UniversalJoint", "VariableGear",
    "Vehicle", "WarmUpModel", "WetClutchDrag", "Wheel", "Wheel2", "World", "params_of",
]  # fmt: skip
