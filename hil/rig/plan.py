"""Rig file + driveline + CAN database -> everything the tick needs, checked as a whole before anything is started.

Every name of the rig file is resolved here: model inputs and outputs, "Message.signal" of the database, driver tables,
the vehicle's signals. Units must agree; both sides of a link are SI, converted at their borders.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torqueloop.core.compiler import CompiledModel
from torqueloop.core.components import params_of
from torqueloop.core.driveline import Driveline, load
from torqueloop.core.errors import ConfigError, MissingValueError, RangeError, UnknownNameError, did_you_mean
from torqueloop.core.units import SYMBOLS, UNITS, to_si
from torqueloop.cython_kernels.codec import CodecTables
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.units import si_unit as database_unit
from torqueloop.hil.can.units import to_si as database_to_si
from torqueloop.hil.link.sockets import VEHICLE_SLOT
from torqueloop.hil.rig.config import Link, RigConfig, load_rig_config, relative
from torqueloop.hil.rig.fault_plan import PlannedFault, PlannedGuard, plan_faults, plan_guards
from torqueloop.hil.rig.signals import DUMMY, SignalTable

Copy = tuple[int, int, float, float]

#: signals of the native bus, in the order of BUS_* in cython_kernels/tick.pxd. state: 0 active, 1 warning, 2 passive,
#: 3 bus off, 4 interface down; tx_errors, rx_errors: error counters of the controller; the rest counts since arming
BUS_SIGNALS = ("state", "tx_errors", "rx_errors", "error_frames", "rx_dropped", "tx_lost")

#: units of VEHICLE_SLOT
_VEHICLE_UNITS = ("1", "1", "s", "m/s", "m/s2", "N", "N", "rad")


@dataclass
class RigPlan:
    """A checked rig: names resolved to slots, nothing started."""

    path: Path
    config: RigConfig
    driveline: Driveline
    compiled: CompiledModel
    database: CanDatabase | None
    table: SignalTable
    in_slot: int
    out_slot: int
    codec: CodecTables | None = None
    in_copies: list[Copy] = field(default_factory=list)
    out_copies: list[Copy] = field(default_factory=list)
    drivers: list[tuple[int, list[float], list[float]]] = field(default_factory=list)
    required: list[int] = field(default_factory=list)
    send: list[tuple[int, int, int]] = field(default_factory=list)
    limits: list[tuple[int, float, float]] = field(default_factory=list)
    limit_names: list[str] = field(default_factory=list)
    reactions: list[tuple[int, float, float]] = field(default_factory=list)
    faults: list[PlannedFault] = field(default_factory=list)
    guards: list[PlannedGuard] = field(default_factory=list)
    vehicle: dict[str, Any] = field(default_factory=dict)
    #: names and slots of the recorded signals
    recorded: list[tuple[str, int]] = field(default_factory=list)

    @property
    def period_ns(self) -> int:
        """Period of the tick in ns."""
        return round(self.config.clock.tick_s * 1e9)

    def cause_name(self, cause: dict[str, Any]) -> str:
        """What the detail of a safe-state cause refers to."""
        kind, detail = cause["cause"], int(cause["detail"])
        if kind in ("tcu_silent", "tcu_frames", "encode") and self.database is not None:
            return self.database.messages[detail].name
        if kind == "limit" and detail < len(self.limit_names):
            return self.limit_names[detail]
        if kind == "output" and detail < len(self.guards):
            return self.guards[detail].name
        if kind == "not_finite" and 1 < detail < len(self.table):
            return self.table.names[detail]
        return "state" if kind == "not_finite" else ""


def load_plan(path: str | Path) -> RigPlan:
    """Read a rig file and everything it refers to; the first mistake raises a ConfigError or CompileError."""
    path = Path(path)
    config = load_rig_config(path)
    powertrain = relative(path, config.rig.powertrain)
    if not powertrain.is_file():
        raise ConfigError(
            "{key} = {value}: no such file", file=str(path), table="rig", key="powertrain", value=powertrain
        )
    driveline = load(powertrain)
    return make_plan(path, config, driveline, driveline.compile())


def make_plan(path: Path, config: RigConfig, driveline: Driveline, compiled: CompiledModel) -> RigPlan:
    """Resolve all names of a rig file against its driveline and its CAN database."""
    database = _database(path, config)
    table = SignalTable()
    codec = None
    if database is not None:
        base = table.add_all((s.full_name, s.si_unit) for s in database.signals)
        table.initial.update({base + k: float(v) for k, v in enumerate(database.initial_table()) if v})
        shifted = [
            replace(m, signals=tuple(replace(s, slot=s.slot + base) for s in m.signals)) for m in database.messages
        ]
        codec = CodecTables(shifted, len(table))
    for name, unit in (("rig.time", "s"), ("rig.tick", "1"), ("rig.status", "1"), ("rig.cause", "1")):
        table.add(name, unit)
    if config.can is not None and config.can.native:
        table.add_all((f"can.{name}", "1") for name in BUS_SIGNALS)
    drivers = []
    for name, points in config.driver.items():
        slot = table.add(f"driver.{name}", "1", points[0][1])
        drivers.append((slot, [t for t, _ in points], [y for _, y in points]))
    table.add("link.F_wheel", "N")
    table.add("link.I_wheel", "Ns")
    if config.vehicle is not None:
        table.add_all((f"vehicle.{n}", u) for n, u in zip(VEHICLE_SLOT, _VEHICLE_UNITS, strict=True))
    in_slot = table.add_all((f"input.{n}", u) for n, u in zip(compiled.input_names, compiled.input_units, strict=True))
    out_slot = table.add_all(zip(compiled.output_names, compiled.output_units, strict=True))
    for name, signal in compiled.default_inputs.items():
        if value := signal.value(0.0):
            table.initial[table.slot(f"input.{name}")] = value
    plan = RigPlan(path, config, driveline, compiled, database, table, in_slot, out_slot, codec, drivers=drivers)
    _Wiring(plan).all()
    return plan


def _database(path: Path, config: RigConfig) -> CanDatabase | None:
    """The CAN database as the rig's node sees it, with every signal the rig file names."""
    if config.can is None:
        return None
    can = config.can
    try:
        return CanDatabase.load(
            relative(path, can.database),
            can.node,
            needed=sorted(_can_names(config)),
            timeouts_s={"*": 0.0, **can.rx_timeout_s},
        )
    except ConfigError as error:
        # the database file is named already where it is at fault
        raise error.located(file=str(path), table="can") from None


def _can_names(config: RigConfig) -> set[str]:
    """Names in the rig file that can only be signals of the CAN database: outputs, and inputs from no other source."""
    names = set(config.outputs)
    for link in config.inputs.values():
        if link.signal is not None and link.signal.partition(".")[0] not in (
            "driver",
            "vehicle",
            "rig",
            "can",
            "link",
            "input",
        ):
            names.add(link.signal)
    return names


class _Wiring:
    """Fills the lists of a plan from its configuration."""

    def __init__(self, plan: RigPlan) -> None:
        self.plan, self.config, self.table = plan, plan.config, plan.table
        self.file = str(plan.path)

    def all(self) -> None:
        self.inputs()
        if self.plan.database is not None:
            self.outputs(self.plan.database)
            self.messages(self.plan.database)
        elif self.config.outputs:
            raise ConfigError("[outputs] needs a [can] table", file=self.file, table="outputs")
        if self.config.vehicle is not None:
            self.vehicle()
        self.limits()
        self.safe_state()
        if self.plan.database is not None:
            self.plan.guards = plan_guards(self.plan, self.plan.database)
        self.plan.faults = plan_faults(self.plan)
        self.record()

    def source(self, name: str, table: str, key: str) -> int:
        """Slot of a signal that something is read from."""
        if name not in self.table:
            raise UnknownNameError(
                "{key}: unknown signal {value}",
                file=self.file,
                table=table,
                key=key,
                value=name,
                hint=did_you_mean(name, self.table.names[2:]),
            )
        return self.table.slot(name)

    def check_units(self, source: str, target: str, target_unit: str, link: Link, table: str, key: str) -> None:
        unit = self.table.unit(source)
        if unit != target_unit and not link.converts:
            raise ConfigError(
                f"{{key}}: {source} is in {unit or 'no unit'}, {target} in {target_unit}",
                file=self.file,
                table=table,
                key=key,
                value=source,
                allowed=f"a signal in {target_unit}, or a gain of your own",
            )

    def inputs(self) -> None:
        names = self.plan.compiled.input_names
        for name, link in self.config.inputs.items():
            if name not in names:
                raise UnknownNameError(
                    "the model has no input {value}",
                    file=self.file,
                    table="inputs",
                    key=name,
                    value=name,
                    hint=did_you_mean(name, names),
                )
            target = f"input.{name}"
            slot = self.table.slot(target)
            if link.signal is not None:
                source = self.source(link.signal, "inputs", name)
                self.check_units(link.signal, name, self.table.unit(target), link, "inputs", name)
                self.plan.in_copies.append((source, slot, link.gain, link.offset))
            elif isinstance(link.value, str):
                raise ConfigError(
                    "{key}: a model input has no words",
                    file=self.file,
                    table="inputs",
                    key=name,
                    value=link.value,
                    allowed="a number in SI",
                )
            else:
                self.table.initial[slot] = float(link.value or 0.0)
        self.derivatives()
        known = {*self.config.inputs, *self.plan.compiled.default_inputs, *self.plan.compiled.derived_inputs}
        missing = [n for n in names if n not in known]
        if missing:
            raise MissingValueError(
                f"model input(s) without a source: {', '.join(missing)}",
                file=self.file,
                table="inputs",
                key=missing[0],
                allowed="a signal, or a constant like { value = 0.0 }",
            )

    def derivatives(self) -> None:
        """Exact motions need the derivatives of their input, and a signal of the rig brings none (a constant has 0)."""
        for derived, (source, _) in self.plan.compiled.derived_inputs.items():
            link = self.config.inputs.get(source)
            if derived in self.config.inputs or link is None or link.signal is None:
                continue
            name = source.rpartition(".")[0]
            component = self.plan.driveline.components[name]
            given = params_of(type(component))
            flags = [f"{flag} = true" for flag in given if flag.startswith("use_")]
            remedy = ["exact = false"] if "exact" in given else [" and ".join(flags)] if flags else []
            raise ConfigError(
                f"{component.kind} {name!r} needs {derived}, which no rig signal brings: {{key}} = {{value}}",
                file=self.file,
                table="inputs",
                key=source,
                value=link.signal,
                allowed=" | ".join([*remedy, "a Move (phi, w, a) instead", "a constant"]),
            )

    def outputs(self, database: CanDatabase) -> None:
        sent = {s.full_name: s for s in database.signals if not s.receive}
        for name, link in self.config.outputs.items():
            if name not in sent:
                raise ConfigError(
                    f"{{key}} is received by node {database.node}, not sent",
                    file=self.file,
                    table="outputs",
                    key=name,
                    allowed=", ".join(m.name for m in database.tx_messages),
                )
            info = sent[name]
            slot = self.table.slot(name)
            if link.signal is not None:
                source = self.source(link.signal, "outputs", name)
                self.check_units(link.signal, name, info.si_unit, link, "outputs", name)
                self.plan.out_copies.append((source, slot, link.gain, link.offset))
            elif isinstance(link.value, str):
                try:
                    self.table.initial[slot] = info.value_of(link.value)
                except ConfigError as error:
                    raise error.located(file=self.file, table="outputs", key=name) from None
            else:
                unit = database_unit(info.unit)
                assert unit is not None, "the database refuses needed signals with unknown units"
                value = database_to_si(float(link.value or 0.0), unit, with_offset=True)
                if not (info.minimum is None or value >= info.minimum - 1e-9) or not (
                    info.maximum is None or value <= info.maximum + 1e-9
                ):
                    raise RangeError(
                        f"{{key}} = {{value}} {info.unit}",
                        file=self.file,
                        table="outputs",
                        key=name,
                        value=link.value,
                        allowed=f"{info.minimum} .. {info.maximum} {info.si_unit}",
                    )
                self.table.initial[slot] = value
        missing = sorted(set(sent) - set(self.config.outputs))
        if missing:
            raise MissingValueError(
                f"signal(s) to be sent without a source: {', '.join(missing)}",
                file=self.file,
                table="outputs",
                key=missing[0],
                allowed="a signal, a constant in the unit of the database, or a word of its value table",
            )

    def messages(self, database: CanDatabase) -> None:
        can = self.config.can
        assert can is not None
        received = [m.name for m in database.rx_messages]
        for name in can.rx_timeout_s:
            if name not in received:
                raise UnknownNameError(
                    "node {value} receives no such message".replace("{value}", database.node),
                    file=self.file,
                    table="can.rx_timeout_s",
                    key=name,
                    hint=did_you_mean(name, received),
                )
            self.plan.required.append(database.message_index(name))
        sent = [m.name for m in database.tx_messages]
        for name in can.tx_offset_s:
            if name not in sent:
                raise UnknownNameError(
                    "{key} is not sent by this node",
                    file=self.file,
                    table="can.tx_offset_s",
                    key=name,
                    hint=did_you_mean(name, sent),
                )
        for message in database.tx_messages:
            period = message.cycle_ns / self.plan.period_ns
            if message.cycle_ns <= 0 or abs(period - round(period)) > 1e-9:
                raise RangeError(
                    f"message {message.name}: cycle time {message.cycle_ns / 1e6:g} ms does not fit the tick",
                    file=str(database.path),
                    allowed=f"a multiple of tick_s = {1e3 * self.config.clock.tick_s:g} ms",
                )
            offset = round(can.tx_offset_s.get(message.name, 0.0) * 1e9 / self.plan.period_ns)
            if offset >= round(period):
                raise RangeError(
                    "{key} = {value} s",
                    file=self.file,
                    table="can.tx_offset_s",
                    key=message.name,
                    value=can.tx_offset_s[message.name],
                    allowed=f"0 .. < {message.cycle_ns / 1e9:g}",
                )
            self.plan.send.append((database.message_index(message.name), round(period), offset))

    def vehicle(self) -> None:
        v = self.config.vehicle
        assert v is not None
        car = self.plan.driveline.components.get(v.car)
        mass = getattr(car, "m", None)
        if mass is None:
            masses = [n for n, c in self.plan.driveline.components.items() if hasattr(c, "m")]
            raise UnknownNameError(
                "{key} = {value}: the powertrain has no such mass",
                file=self.file,
                table="vehicle",
                key="car",
                value=v.car,
                allowed=", ".join(masses),
            )
        # tyre force from the momentum of the car: m*dv/dt = F_wheel + F + F_friction, all positive forward
        slots = {n: self.source(f"{v.road}.{n}", "vehicle", "road") for n in ("F", "F_friction")}
        self.plan.vehicle = {
            "first_slot": self.table.slot(f"vehicle.{VEHICLE_SLOT[0]}"),
            "ramped": VEHICLE_SLOT.index("F"),
            "age_limit_s": v.age_limit_s,
            "hold_s": v.hold_s,
            "ramp_s": v.ramp_s,
            "refuse_limit": v.refuse_limit,
            "momentum": [(self.source(f"{v.car}.v", "vehicle", "car"), DUMMY, float(mass), 0.0)],
            "force": [(slots["F"], DUMMY, -1.0, 0.0), (slots["F_friction"], DUMMY, -1.0, 0.0)],
            "impulse_slot": self.table.slot("link.I_wheel"),
            "force_slot": self.table.slot("link.F_wheel"),
            "speed_slot": self.source(f"{v.car}.v", "vehicle", "car"),
            "distance_slot": self.source(f"{v.car}.s", "vehicle", "car"),
            "brake_slot": self.source(v.brake, "vehicle", "brake"),
        }

    def limits(self) -> None:
        for name, limit in self.config.limits.items():
            slot = self.source(name, "limits", name)
            lo, hi = limit.min, limit.max
            if limit.unit is not None:
                dimension = UNITS[limit.unit][0]
                lo, hi = (to_si(x, limit.unit) if math.isfinite(x) else x for x in (lo, hi))
                if SYMBOLS[dimension] != self.table.unit(name):
                    raise ConfigError(
                        "{key}: unit {value} is not one of " + self.table.unit(name),
                        file=self.file,
                        table=f"limits.{name}",
                        key="unit",
                        value=limit.unit,
                    )
            self.plan.limits.append((slot, lo, hi))
            self.plan.limit_names.append(name)

    def safe_state(self) -> None:
        safe = self.config.safe_state
        targets = safe.inputs
        if targets is None:
            can_slots = (
                {self.table.slot(s.full_name) for s in self.plan.database.signals} if self.plan.database else set()
            )
            targets = {
                self.table.names[dst].removeprefix("input."): 0.0
                for src, dst, _, _ in self.plan.in_copies
                if src in can_slots or self.table.names[dst].endswith(".pedal")
            }
        names = self.plan.compiled.input_names
        for name, target in targets.items():
            if name not in names:
                raise UnknownNameError(
                    "the model has no input {value}",
                    file=self.file,
                    table="safe_state.inputs",
                    key=name,
                    value=name,
                    hint=did_you_mean(name, names),
                )
            self.plan.reactions.append((self.table.slot(f"input.{name}"), target, safe.ramp_s))

    def record(self) -> None:
        wanted = self.config.record.signals
        names: Iterable[str] = self.table.names[2:] if wanted == "all" else wanted
        self.plan.recorded = [(name, self.source(name, "record", "signals")) for name in names]
