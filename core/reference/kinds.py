"""(domain, kind) of a case -> component of ours.

Kinds, connectors, parameters and quantities have the names of the Modelica Standard Library on both sides, so most
rows of `KINDS` only name the class. Where a name or a default differs, the row says so; where more than a name differs,
a small function makes the component (`SPECIAL`). Parameters a case leaves out take the default of Modelica.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from torqueloop.core import components
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.params import params_of
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.reference.assembly import ImportedCase, NotMapped, Parameters, Quantity


@dataclass(frozen=True)
class Kind:
    """How a kind becomes a component."""

    #: class in torqueloop.core.components
    component: str
    #: our parameter -> its name in the case
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: parameter of the case -> Modelica's default, where our component has none or another
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: parameter of the case -> the only value that is mapped
    only: Mapping[str, Any] = field(default_factory=dict)
    #: parameters of the case without effect here
    ignored: tuple[str, ...] = ()
    #: input connector of the case -> our input ("": none)
    ports: Mapping[str, str] = field(default_factory=dict)
    #: quantity of the case -> our output, or a product of two ("tau*w")
    quantities: Mapping[str, str] = field(default_factory=dict)
    #: quantity that starts at the value of an input connector, unless the case prescribes it; an apostrophe: at its
    #: derivative, if the source is exact
    starts: Mapping[str, str] = field(default_factory=dict)


def _same(*names: str) -> dict[str, Kind]:
    return {name: Kind(name) for name in names}


def _pressed(name: str, quantities: Mapping[str, str] | None = None) -> Kind:
    """Clutches and brakes: our curves are called as in Modelica 3; Modelica 4 says mu_pos."""
    return Kind(name, {"mue_pos": "mu_pos"}, {"mu_pos": [[0.0, 0.5]]}, quantities=quantities or {})


def _driven(name: str, **starts: str) -> Kind:
    """Speed, Position, Move: they start where their input is (quantity -> input connector)."""
    return Kind(name, starts=starts)


#: motion of the shaft of a brake: relative to its support
_SHAFT = {"phi": "phi_rel", "w": "w_rel"}
_ROD = {"s": "s_rel", "v": "v_rel"}
#: tables are lines between their points
_LINES = {"smoothness": "LinearSegments"}
_MOVE = {"u[1]": "phi", "u[2]": "w", "u[3]": "a"}
_POWER = {"power": "tau*w"}

ROTATIONAL: dict[str, Kind] = {
    **_same(
        "Fixed", "Inertia", "Disc", "Spring", "Damper", "SpringDamper", "ElastoBacklash", "ElastoBacklash2",
        "IdealGear", "IdealPlanetary", "Gearbox", "IdealGearR2T", "IdealRollingWheel", "RelativeStates", "Torque",
        "Torque2", "TorqueStep", "ConstantTorque", "LinearSpeedDependentTorque", "QuadraticSpeedDependentTorque",
        "InverseSpeedDependentTorque", "SignTorque", "ConstantSpeed", "Accelerate", "AngleSensor", "SpeedSensor",
        "AccSensor", "RelAngleSensor", "RelSpeedSensor", "RelAccSensor", "TorqueSensor", "FreeWheel",
        "VariableGear", "Wheel2",
    ),
    "LossyGear": Kind("LossyGear", only=_LINES),
    "Clutch": _pressed("Clutch"),
    "Brake": _pressed("Brake", quantities=_SHAFT),
    "OneWayClutch": _pressed("OneWayClutch"),
    "BearingFriction": Kind(
        "BearingFriction", defaults={"tau_pos": [[0.0, 1.0]]}, only=_LINES, quantities=_SHAFT
    ),
    "Position": _driven("Position", phi="phi_ref", w="phi_ref'"),
    "Speed": _driven("Speed", w="w_ref"),
    "Move": Kind("Move", ports=_MOVE, starts={"phi": "u[1]", "w": "u[2]"}),
    "EddyCurrentTorque": Kind("EddyCurrentTorque", only={"useTau_nominalInput": False}),
    "EddyCurrentBrake": Kind("EddyCurrentTorque", only={"useTau_nominalInput": False}),
    "InitializeFlange": Kind(
        "InitializeFlange", only={"use_a_start": False}, ignored=("use_phi_start", "use_w_start"),
        starts={"phi": "phi_start", "w": "w_start"}, ports={"phi_start": "", "w_start": "", "a_start": ""},
    ),
    "PowerSensor": Kind("PowerSensor", quantities=_POWER),
    "MultiSensor": Kind("MultiSensor", quantities=_POWER),
}  # fmt: skip

TRANSLATIONAL: dict[str, Kind] = {
    **_same(
        "Mass", "Rod", "ElastoGap", "Force", "Force2", "ForceStep", "ConstantForce", "LinearSpeedDependentForce",
        "QuadraticSpeedDependentForce", "InverseSpeedDependentForce", "SignForce", "IdealGearR2T",
        "IdealRollingWheel", "PositionSensor", "RelPositionSensor", "ForceSensor",
    ),
    **{
        name: Kind(f"Translational{name}")
        for name in (
            "Fixed", "Spring", "Damper", "SpringDamper", "RelativeStates", "ConstantSpeed", "Accelerate",
            "SpeedSensor", "AccSensor", "RelSpeedSensor", "RelAccSensor",
        )
    },
    "Brake": _pressed("TranslationalBrake", quantities=_ROD),
    "SupportFriction": Kind("SupportFriction", defaults={"f_pos": [[0.0, 1.0]]}, only=_LINES, quantities=_ROD),
    "Position": _driven("TranslationalPosition", s="s_ref", v="s_ref'"),
    "Speed": _driven("TranslationalSpeed", v="v_ref"),
    "Move": Kind(
        "TranslationalMove", ports={"u[1]": "s", "u[2]": "v", "u[3]": "a"}, starts={"s": "u[1]", "v": "u[2]"}
    ),
    "EddyCurrentForce": Kind("EddyCurrentForce", only={"useF_nominalInput": False}),
    "EddyCurrentBrake": Kind("EddyCurrentForce", only={"useF_nominalInput": False}),
    "InitializeFlange": Kind(
        "TranslationalInitializeFlange", only={"use_a_start": False}, ignored=("use_s_start", "use_v_start"),
        starts={"s": "s_start", "v": "v_start"}, ports={"s_start": "", "v_start": "", "a_start": ""},
    ),
    "MassWithStopAndFriction": Kind(
        "MassWithStopAndFriction", quantities={"f": "f"},
        defaults={"m": 1.0, "F_prop": 1.0, "F_Coulomb": 5.0, "F_Stribeck": 10.0, "fexp": 2.0},
    ),
    "Vehicle": Kind("Vehicle", only={"useWindInput": False, "vWindConstant": 0.0}),
    "PowerSensor": Kind("TranslationalPowerSensor", quantities={"power": "f*v"}),
    "MultiSensor": Kind("TranslationalMultiSensor", quantities={"power": "f*v"}),
}  # fmt: skip

_CONSTANT_FLOW = {"alpha": 0.0}
THERMAL: dict[str, Kind] = {
    **_same("ThermalConductor", "Convection", "TemperatureSensor"),
    "FixedTemperature": Kind("FixedTemperature"),
    "PrescribedTemperature": Kind("PrescribedTemperature"),
    "FixedHeatFlow": Kind("FixedHeatFlow", only=_CONSTANT_FLOW, ignored=("T_ref",)),
    "PrescribedHeatFlow": Kind("PrescribedHeatFlow", only=_CONSTANT_FLOW, ignored=("T_ref",)),
    "Celsius.FixedTemperature": Kind("FixedTemperature"),
}

KINDS: dict[str, dict[str, Kind]] = {
    "rotational": ROTATIONAL, "translational": TRANSLATIONAL, "thermal": THERMAL,
}  # fmt: skip


def add_component(imported: ImportedCase, p: Parameters, domain: str, kind: str) -> None:
    """Add the component of one entry of a case; NotMapped with the reason if there is none."""
    if (domain, kind) in SPECIAL:
        SPECIAL[domain, kind](imported, p)
    elif kind in KINDS.get(domain, {}):
        _add_row(imported, p, KINDS[domain][kind])
    else:
        raise NotMapped(f"{p.label} {p.name}: there is no such component")
    if p.unread:
        raise NotMapped(f"{p.label} {p.name}: parameter {', '.join(sorted(p.unread))} is not known")


def _add_row(imported: ImportedCase, p: Parameters, row: Kind) -> None:
    for name, wanted in row.only.items():
        given = p(name, wanted)
        if (str(given).rpartition(".")[2] if isinstance(given, str) else given) != wanted:
            raise NotMapped(f"{p.label} {p.name}: {name} = {given} (only {wanted} is mapped)")
    values = values_for(row, p)
    name = imported.add(p.name, made(row.component, p, **values))
    for ignored in row.ignored:
        p(ignored, None)
    for connector, port in row.ports.items():
        imported.ports[f"{p.name}.{connector}"] = [(f"{name}.{port}", 1.0)] if port else []
    for quantity, output in row.quantities.items():
        factors = tuple(f"{name}.{factor}" for factor in output.split("*"))
        imported.quantities[f"{p.name}.{quantity}"] = Quantity(factors)
    for quantity, connector in row.starts.items():
        order = connector.count("'")
        if order == 0 or values.get("exact", False):
            ports = imported.start_ports.setdefault(f"{p.name}.{connector[: len(connector) - order]}", [])
            ports.append((f"{p.name}.{quantity}", order))


def component_class(word: str, p: Parameters) -> type[Component]:
    """A class of torqueloop.core.components by its word."""
    if word not in components.KINDS:
        raise NotMapped(f"{p.label} {p.name}: there is no component {word}")
    return components.KINDS[word]


def made(word: str, p: Parameters, **values: Any) -> Component:
    """The component; its errors have the name that it has in the case."""
    try:
        return component_class(word, p)(**values)
    except ConfigError as error:
        raise NotMapped(f"{p.label} {p.name}: {error}") from None


def values_for(row: Kind, p: Parameters) -> dict[str, Any]:
    """Parameters of our component from those of the case."""
    values = {}
    for name, declared in params_of(component_class(row.component, p)).items():
        given = row.renamed.get(name, name)
        if given not in p and given == "mu_pos" and name in p:
            given = name
        value = p(given, row.defaults.get(given, None))
        if value is not None:
            values[name] = curve(value) if declared.form == "curve" else value
    return values


def curve(rows: Any) -> Table1D:
    """A table of a case; Modelica continues tables along their first and last line."""
    if isinstance(rows, Table1D):
        return rows
    table = [rows] if rows and not isinstance(rows[0], list) else rows
    x, y = zip(*table, strict=True)
    return Table1D(x, y, extrapolation="linear" if len(table) > 1 else "hold")


# --- kinds that need more than names ----------------------------------------------------------------------------------
def _heat_capacitor(imported: ImportedCase, p: Parameters) -> None:
    """Its start temperature is a parameter here."""
    T0 = p.start("T", 293.15)
    imported.add(p.name, made("HeatCapacitor", p, C=p("C"), T0=T0))


def _resistor(imported: ImportedCase, p: Parameters) -> None:
    """ThermalResistor: G = 1/R."""
    imported.add(p.name, made("ThermalConductor", p, G=1.0 / p("R")))


def _convective_resistor(imported: ImportedCase, p: Parameters) -> None:
    """ConvectiveResistor: Gc = 1/Rc."""
    name = imported.add(p.name, made("Convection", p))
    imported.ports[f"{p.name}.Rc"] = [(f"{name}.Gc", 1.0)]
    imported.reciprocal.add(f"{p.name}.Rc")


def _collector(imported: ImportedCase, p: Parameters) -> None:
    """ThermalCollector: port_a[1..m] and port_b are one."""
    ports = [f"{p.name}.port_b", *(f"{p.name}.port_a[{k}]" for k in range(1, int(p("m", 3)) + 1))]
    imported.joined += [(ports[0], port) for port in ports[1:]]


def _heat_flow_sensor(imported: ImportedCase, p: Parameters) -> None:
    """HeatFlowSensor: its two ports are one; the flow is no result here."""
    imported.joined.append((f"{p.name}.port_a", f"{p.name}.port_b"))


SPECIAL: dict[tuple[str, str], Callable[[ImportedCase, Parameters], None]] = {
    ("thermal", "HeatCapacitor"): _heat_capacitor,
    ("thermal", "ThermalResistor"): _resistor,
    ("thermal", "ConvectiveResistor"): _convective_resistor,
    ("thermal", "HeatFlowSensor"): _heat_flow_sensor,
    ("thermal", "ThermalCollector"): _collector,
}
