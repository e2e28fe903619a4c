"""Sensors an imported case needs: motion of components that have no such output, and shafts that stand alone."""

from __future__ import annotations

from torqueloop.core import components as parts
from torqueloop.core.components.eddy import EddyCurrentForce, EddyCurrentTorque
from torqueloop.core.components.shafts import Inertia, Mass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import TRANSLATIONAL
from torqueloop.core.reference.assembly import ImportedCase, Quantity

#: quantity of a source -> sensor between its support and its flange, output of the sensor
ROTATIONAL_PROBES = {"phi": ("RelAngleSensor", "phi_rel"), "w": ("RelSpeedSensor", "w_rel")}
TRANSLATIONAL_PROBES = {"s": ("RelPositionSensor", "s_rel"), "v": ("TranslationalRelSpeedSensor", "v_rel")}


def add_probes(imported: ImportedCase) -> None:
    """phi, w (s, v) of a torque or force, relative to its support, where columns ask for them."""
    for column in imported.case.columns:
        name = imported.names.get(column.component, "")
        path = f"{column.component}.{column.quantity}"
        component = imported.driveline.components.get(name)
        if component is None or path in imported.quantities or not _is_load(component):
            continue
        sliding = component.flanges["flange"].domain == TRANSLATIONAL
        probes = TRANSLATIONAL_PROBES if sliding else ROTATIONAL_PROBES
        if column.quantity not in probes:
            continue
        kind, output = probes[column.quantity]
        sensor = imported.add(f"{name}.{column.quantity}", parts.KINDS[kind]())
        imported.driveline.connect(f"{name}.flange", f"{sensor}.flange_b")
        support = f"{name}.support"
        if not any(support in flanges for flanges in imported.driveline.connections):
            housing = imported.add(f"{name}.{column.quantity}.support", parts.KINDS[_fixed(sliding)]())
            support = f"{housing}.flange"
        imported.driveline.connect(support, f"{sensor}.flange_a")
        imported.quantities[path] = Quantity((f"{sensor}.{output}",))


def _is_load(component: Component) -> bool:
    """A torque or force on one flange: it has no outputs of motion."""
    if isinstance(component, (EddyCurrentTorque, EddyCurrentForce)):
        return True
    return "flange" in component.flanges and component.kind.endswith(("Torque", "TorqueStep", "Force", "ForceStep"))


def _fixed(sliding: bool) -> str:
    return "TranslationalFixed" if sliding else "Fixed"


def join_lone_shafts(imported: ImportedCase) -> None:
    """A shaft or mass that is joined to nothing turns freely: it gets a sensor, as ours must be joined."""
    joined = {flange.rpartition(".")[0] for flanges in imported.driveline.connections for flange in flanges}
    for name, component in list(imported.driveline.components.items()):
        if name not in joined and isinstance(component, (Inertia, Mass)):
            kind = "PositionSensor" if isinstance(component, Mass) else "AngleSensor"
            sensor = imported.add(f"{name}.sensor", parts.KINDS[kind]())
            imported.driveline.connect(f"{name}.flange_a", f"{sensor}.flange")
