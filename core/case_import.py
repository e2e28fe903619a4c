"""Reference cases (`case.yaml` + `reference.csv`, schema case/1) as drivelines of our components.

A case names components by domain and kind, joins their flanges in pairs, wires signal blocks to inputs and prescribes
initial values. Each `(domain, kind)` is mapped by one small function of `KINDS`; what is not in that table is listed in
`ImportedCase.unsupported`, and nothing is simulated then. Signal blocks become one `Signal` per model input: the graph
of blocks is followed backwards from the input, so a Product of anything is a product of signals, with its event times.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core import signals as sig
from torqueloop.core.components.base import Component
from torqueloop.core.components.compliances import Damper, Spring, SpringDamper
from torqueloop.core.components.friction import BearingFriction, Brake, Clutch, OneWayClutch
from torqueloop.core.components.gears import IdealGear, IdealPlanetary, IdealRollingWheel
from torqueloop.core.components.shafts import Fixed, Inertia, Mass
from torqueloop.core.components.sources import (
    ConstantTorque,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    Torque,
    TorqueStep,
)
from torqueloop.core.driveline import Driveline
from torqueloop.core.errors import ConfigError
from torqueloop.core.tables import Table1D

SCHEMA = "case/1"
#: columns that describe friction modes: compared as fractions of equal rows, not as errors
MODE_QUANTITIES = ("mode", "startForward", "startBackward", "stuck")


@dataclass(frozen=True)
class Column:
    """One column of reference.csv."""

    #: heading in the CSV file
    name: str
    #: component of the case and quantity ("w", "phi_rel", "mode" ...)
    component: str
    quantity: str
    unit: str
    #: error of the reference itself, relative to the column's range (absolute if constant)
    deviation: float


@dataclass(frozen=True)
class Case:
    """A case as read from its directory."""

    name: str
    path: Path
    t_start: float
    t_stop: float
    components: list[dict[str, Any]]
    connections: dict[str, list[list[str]]]
    #: "component.quantity" -> start value; the prescribed ones (the others follow from them, or are 0)
    start: dict[str, Any]
    columns: tuple[Column, ...]
    #: row times, not decreasing; equal times are the two sides of an event
    time: np.ndarray
    #: (rows, columns) in the order of `columns`
    values: np.ndarray
    event_times: tuple[float, ...]
    #: rows later than this must not be compared (the solution is too sensitive)
    comparable_until: float


@dataclass
class ImportedCase:
    """A case mapped onto a driveline. `driveline` is usable only when `unsupported` is empty."""

    case: Case
    driveline: Driveline
    #: model input name -> signal
    inputs: dict[str, Any] = field(default_factory=dict)
    #: "domain/kind" of everything that has no counterpart here
    unsupported: list[str] = field(default_factory=list)
    #: component name of the case -> name in the driveline
    names: dict[str, str] = field(default_factory=dict)


def read_case(directory: str | Path) -> Case:
    """Read `case.yaml` and `reference.csv` of one directory."""
    try:
        import yaml
    except ImportError:
        raise ConfigError("reading case.yaml needs PyYAML: pip install 'torqueloop[dev]' (or pyyaml)") from None
    path = Path(directory)
    file = path / "case.yaml"
    if not file.is_file():
        raise ConfigError("no case.yaml here", file=str(path))
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise ConfigError("unknown schema {value}", file=str(file), key="schema", value=found, allowed=SCHEMA)
    reference = document["reference"]
    start = document.get("initial_conditions") or {}
    columns = tuple(
        Column(c["name"], c.get("component", ""), c["quantity"], c.get("unit", "1"), float(c.get("deviation", 0.0)))
        for c in reference["columns"]
        if c["quantity"] != "time"
    )
    time, values = _read_trajectories(path / reference["file"], columns)
    experiment = document["experiment"]
    until = reference.get("comparable_until")
    connections = document.get("connections") or {}
    return Case(
        name=document["case"],
        path=path,
        t_start=_value(experiment["start_time"]),
        t_stop=_value(experiment["stop_time"]),
        components=document["components"],
        connections={k: list(connections.get(k) or ()) for k in ("flange", "frame", "heat", "signal")},
        start={e["quantity"]: e["value"] for e in start.get("prescribed") or ()},
        columns=columns,
        time=time,
        values=values,
        event_times=tuple(float(t) for t in reference.get("event_times") or ()),
        comparable_until=math.inf if until is None else _value(until),
    )


def _read_trajectories(file: Path, columns: tuple[Column, ...]) -> tuple[np.ndarray, np.ndarray]:
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.reader(stream)
        heading = next(rows)
        data = np.array([[float(x) for x in row] for row in rows if row])
    missing = [c.name for c in columns if c.name not in heading]
    if missing:
        raise ConfigError("reference.csv has no column {value}", file=str(file), value=", ".join(missing))
    time = data[:, heading.index("time")] if "time" in heading else data[:, 0]
    if np.any(np.diff(time) < 0.0):
        raise ConfigError("the times of the rows decrease", file=str(file))
    return time, data[:, [heading.index(c.name) for c in columns]]


def _value(entry: Any) -> Any:
    return entry["value"] if isinstance(entry, Mapping) else entry


class _Parameters:
    """Parameters of one component of a case; remembers which were read, so that none is dropped silently."""

    #: Modelica parameters that have no effect on the trajectories of the supported kinds
    HARMLESS = frozenset({"useSupport", "useSupportR", "useSupportT", "useHeatPort"})

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.raw = {name: _value(v) for name, v in (entry.get("parameters") or {}).items()}
        self.unread = set(self.raw) - self.HARMLESS

    def __call__(self, name: str, default: Any = None) -> Any:
        self.unread.discard(name)
        if name in self.raw:
            return self.raw[name]
        if default is None:
            raise KeyError(name)
        return default


def _friction(kind: type[Clutch] | type[Brake] | type[OneWayClutch]) -> Callable[[_Parameters], Component]:
    """Clutch, Brake, OneWayClutch: mu_pos with linear extrapolation, as Modelica's tables have it."""

    def make(p: _Parameters) -> Component:
        return kind(fn_max=p("fn_max"), cgeo=p("cgeo", 1.0), mue_pos=_curve(p("mu_pos")), peak=p("peak", 1.0))

    return make


def _curve(rows: list[list[float]]) -> Table1D:
    x, y = zip(*rows, strict=True)
    return Table1D(x, y, extrapolation="linear" if len(rows) > 1 else "hold")


def _torque_step(p: _Parameters) -> Component:
    return TorqueStep(stepTorque=p("stepTorque"), offsetTorque=p("offsetTorque", 0.0), startTime=p("startTime", 0.0))


#: (domain, kind) of a case -> component; supports stay joined to the housing unless a connection says otherwise
KINDS: dict[tuple[str, str], Callable[[_Parameters], Component]] = {
    ("rotational", "Fixed"): lambda p: Fixed(phi0=p("phi0", 0.0)),
    ("rotational", "Inertia"): lambda p: Inertia(J=p("J")),
    ("rotational", "Spring"): lambda p: Spring(c=p("c"), phi_rel0=p("phi_rel0", 0.0)),
    ("rotational", "Damper"): lambda p: Damper(d=p("d")),
    ("rotational", "SpringDamper"): lambda p: SpringDamper(c=p("c"), d=p("d"), phi_rel0=p("phi_rel0", 0.0)),
    ("rotational", "IdealGear"): lambda p: IdealGear(ratio=p("ratio")),
    ("rotational", "IdealPlanetary"): lambda p: IdealPlanetary(ratio=p("ratio")),
    ("rotational", "IdealRollingWheel"): lambda p: IdealRollingWheel(radius=p("radius")),
    ("rotational", "Clutch"): _friction(Clutch),
    ("rotational", "Brake"): _friction(Brake),
    ("rotational", "OneWayClutch"): _friction(OneWayClutch),
    ("rotational", "BearingFriction"): lambda p: BearingFriction(tau_pos=_curve(p("tau_pos")), peak=p("peak", 1.0)),
    ("rotational", "Torque"): lambda p: Torque(),
    ("rotational", "TorqueStep"): _torque_step,
    ("rotational", "ConstantTorque"): lambda p: ConstantTorque(tau_constant=p("tau_constant")),
    ("rotational", "QuadraticSpeedDependentTorque"): lambda p: QuadraticSpeedDependentTorque(
        tau_nominal=p("tau_nominal"), w_nominal=p("w_nominal"), TorqueDirection=p("TorqueDirection", True)
    ),
    ("rotational", "MultiSensor"): lambda p: Inertia(J=0.0),
    ("translational", "Fixed"): lambda p: Fixed(phi0=p("s0", 0.0)),
    ("translational", "Mass"): lambda p: Mass(m=p("m"), L=p("L", 0.0)),
    ("translational", "QuadraticSpeedDependentForce"): lambda p: QuadraticSpeedDependentForce(
        f_nominal=p("f_nominal"), v_nominal=p("v_nominal"), ForceDirection=p("ForceDirection", True)
    ),
}

#: signal blocks without inputs
SOURCES: dict[str, Callable[[_Parameters], sig.Signal]] = {
    "Constant": lambda p: sig.Constant(k=p("k")),
    "Sine": lambda p: sig.Sine(
        amplitude=p("amplitude"), f=p("f"), phase=p("phase", 0.0),
        offset=p("offset", 0.0), startTime=p("startTime", 0.0),
    ),  # fmt: skip
    "Step": lambda p: sig.Step(height=p("height"), offset=p("offset", 0.0), startTime=p("startTime", 0.0)),
    "Ramp": lambda p: sig.Ramp(
        height=p("height"), duration=p("duration"), offset=p("offset", 0.0), startTime=p("startTime", 0.0)
    ),
    "Pulse": lambda p: sig.Pulse(
        amplitude=p("amplitude"), width=p("width"), period=p("period"), nperiod=p("nperiod", -1),
        offset=p("offset", 0.0), startTime=p("startTime", 0.0),
    ),  # fmt: skip
}  # fmt: skip

#: signal blocks of two inputs u1, u2
OPERATORS: dict[str, Callable[[sig.Signal, sig.Signal], sig.Signal]] = {
    "Product": lambda a, b: a * b,
    "Feedback": lambda a, b: a - b,
}


def import_case(case: Case) -> ImportedCase:
    """Map a case on a driveline; what has no counterpart is listed, never skipped in silence."""
    driveline = Driveline(_plain(case.name))
    imported = ImportedCase(case, driveline)
    signals: dict[str, dict[str, Any]] = {}
    for entry in case.components:
        domain, kind, name = entry["domain"], entry["kind"], entry["name"]
        if domain == "signal":
            signals[name] = entry
            if kind not in SOURCES and kind not in OPERATORS:
                imported.unsupported.append(f"signal/{kind}")
            continue
        make = KINDS.get((domain, kind))
        if make is None:
            imported.unsupported.append(f"{domain}/{kind}")
            continue
        parameters = _Parameters(entry)
        try:
            component = make(parameters)
        except KeyError as missing:
            imported.unsupported.append(f"{domain}/{kind} without {missing.args[0]}")
            continue
        imported.unsupported += [f"{domain}/{kind}.{p}" for p in sorted(parameters.unread)]
        imported.names[name] = _plain(name)
        driveline.add(_plain(name), component)
    for group in ("frame", "heat"):
        if case.connections[group]:
            imported.unsupported.append(f"{group} connections")
    imported.unsupported = sorted(set(imported.unsupported))
    if imported.unsupported:
        return imported
    for a, b in case.connections["flange"]:
        driveline.connect(_flange(imported, a), _flange(imported, b))
    for path, value in case.start.items():
        driveline.set_start(_flange(imported, path), float(value))
    _wire(imported, signals)
    return imported


def _plain(name: str) -> str:
    """Names of a case may hold dots and brackets; ours are words."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_")


def split_quantity(case: Case, path: str) -> tuple[str, str]:
    """ "sine[1].y" -> ("sine[1]", "y"): the part after the longest matching component name."""
    names = [c["name"] for c in case.components if path.startswith(c["name"] + ".")]
    if not names:
        raise ConfigError("{value} belongs to no component of the case", file=str(case.path), value=path)
    owner = max(names, key=len)
    return owner, path[len(owner) + 1 :]


def _flange(imported: ImportedCase, path: str) -> str:
    """Name of a flange or quantity of the case in our driveline."""
    owner, flange = split_quantity(imported.case, path)
    return f"{imported.names[owner]}.{flange}"


def _wire(imported: ImportedCase, blocks: Mapping[str, Mapping[str, Any]]) -> None:
    """One signal per model input, by following the blocks backwards."""
    case = imported.case
    feeds: dict[str, str] = {}
    for source, sink in case.connections["signal"]:
        feeds[sink] = split_quantity(case, source)[0]
    made: dict[str, sig.Signal] = {}

    def signal_of(block: str, above: tuple[str, ...] = ()) -> sig.Signal:
        if block in above:
            loop = " > ".join([*above, block])
            raise ConfigError("the signal blocks form a loop: {value}", file=str(case.path), value=loop)
        if block not in made:
            kind = blocks[block]["kind"]
            if kind in SOURCES:
                made[block] = SOURCES[kind](_Parameters(blocks[block]))
            else:
                operands = []
                for port in ("u1", "u2"):
                    if f"{block}.{port}" not in feeds:
                        raise ConfigError("input {value} is open", file=str(case.path), value=f"{block}.{port}")
                    operands.append(signal_of(feeds[f"{block}.{port}"], (*above, block)))
                made[block] = OPERATORS[kind](*operands)
        return made[block]

    for sink, source in feeds.items():
        owner, port = split_quantity(case, sink)
        if owner in imported.names:
            imported.inputs[f"{imported.names[owner]}.{port}"] = signal_of(source)
