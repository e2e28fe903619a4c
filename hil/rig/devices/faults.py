"""[[faults]] of a rig file: names become slots and messages, and each fault rows for the tick.

The tables: hil/rig/schema/fault_tables.py. A running rig's faults: hil/rig/devices/injected.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.can.bits import width
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.can.codec_spec import FD_LENGTHS, MessageSpec, SignalSpec, signal_fields
from torqueloop.cython_kernels.can.protection import E2E_PROFILES
from torqueloop.cython_kernels.tick.fault_rows import NEVER, Code, FaultRow
from torqueloop.cython_kernels.tick.faults import SWITCHES_MAX
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.can.database import SignalInfo, bus_id
from torqueloop.hil.rig.devices.device import BusPlan, Device, RigPlan
from torqueloop.hil.rig.devices.hydraulics import HydraulicUnit, command_signal
from torqueloop.hil.rig.devices.injected import Faults, PlannedFault
from torqueloop.hil.rig.devices.phases import frame_bits
from torqueloop.hil.rig.devices.sensors import Sensor, Sensors
from torqueloop.hil.rig.devices.signals import DUMMY
from torqueloop.hil.rig.devices.steps import Steps
from torqueloop.hil.rig.devices.supply import SUPPLIES
from torqueloop.hil.rig.schema.fault_tables import COIL_KINDS, LINE_KINDS, Fault, FaultTables

#: identifiers of the frames of a bus load and of a babbling node: they lose, or win, against all others
LOWEST, HIGHEST = 0x7FF, 0x000
#: resistance of a broken wire
INSULATION_OHM = 1e9
#: a duty and a current in A that no output stage exceeds: the coil has the whole supply
WHOLE = 1e6
#: XOR of a checksum that is to be wrong
WRONG = 0xFF
#: the brake that the vehicle receives, where a fault acts on its signal
TOLD_BRAKE = "vehicle.brake"


class _Planner:
    """One entry."""

    def __init__(self, plan: RigPlan, spec: Fault, number: int, table: str) -> None:
        self.plan, self.spec, self.number = plan, spec, number
        self.where = {"file": str(plan.path), "table": table}
        self.tick_s = plan.config.clock.tick_s

    def planned(self, switches: list[str]) -> PlannedFault:
        spec = self.spec
        name = spec.name or str(self.number)
        made = {
            "signal": self.signal, "message": self.message, "node": self.node, "bus": self.bus, "element": self.element,
            "solenoid": self.solenoid,
        }[spec.kind_of_target]()  # fmt: skip
        timing: dict[str, Any] = {
            "from_tick": self.tick(spec.from_s),
            "until_tick": None if spec.until_s is None else self.tick(spec.until_s),
            "switch": None if spec.switch is None else switches.index(spec.switch),
            "when": NEVER if spec.when is None else self.code("when", spec.when),
            "until": NEVER if spec.until is None else self.code("until", spec.until),
            "lasts_ticks": 0 if spec.lasts_s is None else max(1, self.tick(spec.lasts_s)),
            "count": spec.count or 0,
            "times": spec.times if spec.when is not None else 0,
            "every": spec.every,
            "chance": spec.chance,
            "back_ticks": round(spec.back_s / self.tick_s),
        }
        # each row has random numbers of its own, whatever is added to the file behind it
        slot = self.plan.table.slot(f"fault.{name}.on")
        rows = tuple(
            # of a signal that goes to several inputs, the first row counts the ticks
            replace(row, seed=_seed(spec.seed, self.number, i), slot=slot if i == 0 or row.stage == "frame" else 0,
                    **timing)
            for i, row in enumerate(made)
        )  # fmt: skip
        return PlannedFault(spec, name, rows)

    def tick(self, t_s: float) -> int:
        """First tick that begins at t_s or later."""
        return math.ceil(t_s / self.tick_s - 1e-9)

    def code(self, key: str, text: str) -> Code:
        try:
            return self.plan.table.condition(text)
        except ConfigError as error:
            raise error.located(**self.where, key=key) from None

    def error(self, problem: str, key: str, kind: type[ConfigError] = ConfigError, **more: Any) -> ConfigError:
        return kind(problem, **self.where, key=key, **{"value": getattr(self.spec, key), **more})

    # --- frames -------------------------------------------------------------------------------------------------------
    def messages(self) -> dict[str, list[tuple[BusPlan, MessageSpec]]]:
        """Messages of all buses, sent and received, by name and by bus.name."""
        found: dict[str, list[tuple[BusPlan, MessageSpec]]] = {}
        for bus in self.plan.buses:
            for m in bus.database.messages:
                for key in (m.name, f"{bus.name}.{m.name}"):
                    found.setdefault(key, []).append((bus, m))
        return found

    def message(self) -> list[FaultRow]:
        name, known = self.spec.target, self.messages()
        if name not in known:
            problem = "{key}: the rig neither sends nor receives {value}"
            raise self.error(problem, "message", UnknownNameError, hint=did_you_mean(name, known))
        if len(known[name]) > 1:
            allowed = ", ".join(f"{bus.name}.{name}" for bus, _ in known[name])
            raise self.error("several buses have a message {value}", "message", UnknownNameError, allowed=allowed)
        return [self.frame(*known[name][0], self.spec.kind)]

    def node(self) -> list[FaultRow]:
        of = [(bus, m) for bus in self.plan.buses for m in bus.database.messages if self.spec.node in m.senders]
        if not of:
            known = sorted({n for bus in self.plan.buses for m in bus.database.messages for n in m.senders})
            problem = "{key}: the rig neither sends nor receives a message of {value}"
            raise self.error(problem, "node", UnknownNameError, allowed=", ".join(known))
        kind = "drop" if self.spec.kind == "silent" else self.spec.kind
        return [self.frame(bus, m, kind) for bus, m in of]

    def frame(self, bus: BusPlan, m: MessageSpec, kind: str) -> FaultRow:
        spec, value, raw = self.spec, self.spec.value, 0
        if kind.startswith("crc"):
            if not m.has_checksum:
                raise self.error("{value} has no checksum", "message")
            n = width(m.crc_bits) if m.crc_bits is not None else max(E2E_PROFILES[m.e2e].widths)
            raw = int(value) if value is not None else WRONG & ((1 << n) - 1)
            if raw >= 1 << n:
                allowed = f"1 .. {(1 << n) - 1}: its checksum has {n} bit"
                raise self.error("{key} = {value} is out of range", "value", RangeError, allowed=allowed)
        if kind.startswith("counter") and not m.has_counter:
            raise self.error("{value} has no alive counter", "message")
        if kind == "dlc":
            value = self.length(m)
        if kind in ("delay", "jitter"):
            value = max(1, round((value or 0.0) / self.tick_s))
        if kind == "duplicate":
            value = spec.value or 1
        return FaultRow("frame", kind, bus.database.messages.index(m), bus.number, float(value or 0.0), raw=raw)

    def length(self, m: MessageSpec) -> float:
        """Data bytes; below 0: fewer by so many."""
        value = self.spec.value
        shorter = max((n for n in FD_LENGTHS if n < m.length), default=0)
        if value is None:
            if m.length == 0:
                raise self.error("{value} has no data byte that could be missing", "message")
            return shorter - m.length
        allowed = [n for n in FD_LENGTHS if m.fd or n <= 8]
        if int(value) not in allowed:
            raise self.error("{key} = {value} is no length of a frame", "value", RangeError,
                             allowed=", ".join(map(str, allowed)))  # fmt: skip
        return value

    # --- buses --------------------------------------------------------------------------------------------------------
    def bus(self) -> list[FaultRow]:
        spec = self.spec
        bus = next((b for b in self.plan.buses if b.name == spec.bus), None)
        if bus is None:
            known = [b.name for b in self.plan.buses]
            raise self.error("there is no bus {value}", "bus", UnknownNameError, allowed=", ".join(known))
        if spec.kind == "bus_off":
            return [FaultRow("bus", "bus_off", bus=bus.number)]
        rate = spec.bitrate or bus.config.bitrate
        if rate is None:
            raise self.error("{key} is missing: how long is a frame on this bus?", "bitrate", allowed="500000, ...")
        can_id = spec.can_id if spec.can_id is not None else LOWEST if spec.kind == "load" else HIGHEST
        for m in bus.database.messages:
            if m.can_id == can_id and m.extended == (can_id > LOWEST):
                raise self.error("{key}: {value} is the identifier of " + m.name, "can_id", value=can_id)
        filler = MessageSpec("load", can_id, can_id > LOWEST, 8, False, ())
        per_tick = (spec.value or 0.0) * rate * self.tick_s / frame_bits(filler)
        if per_tick <= 0.0:
            raise self.error("{key} = {value} is no load", "value", RangeError, allowed="0 .. 1, not 0")
        bus.filler_ids.append(bus_id(filler))
        return [FaultRow("bus", "load", bus=bus.number, value=per_tick, can_id=bus_id(filler))]

    # --- signals ------------------------------------------------------------------------------------------------------
    def signal(self) -> list[FaultRow]:
        plan, spec, name = self.plan, self.spec, self.spec.target
        slot = plan.table.slot(name) if name in plan.table else -1
        at = plan.on_bus(slot)
        if spec.kind in ("raw", "out_of_range"):
            return [self.raw(at)]
        info = at[1] if at is not None else None
        value = self.value(info)
        if info is not None and not info.receive:
            if not any(dst == slot for _, dst, _, _ in plan.out_copies):
                # a constant is written once; with a fault on it, in every tick
                plan.out_copies.append((DUMMY, slot, 0.0, plan.table.initial.get(slot, 0.0)))
            return [FaultRow("output", spec.kind, slot, value=value)]
        sensor = plan.device(Sensors).given.sensors.get(name.removeprefix("sensor."))
        if sensor is not None and sensor.kind != "moves" and name.startswith("sensor."):
            return self.sensor(name, slot, sensor)
        if spec.kind in LINE_KINDS:
            raise self.error("{key}: {value} is no sensor of kind curve or teeth, which a fault of kind "
                             f"{spec.kind} needs", "signal")  # fmt: skip
        if name in SUPPLIES and slot >= 0:
            # before the solenoids read it
            return [FaultRow("command", spec.kind, slot, value=self.value(None))]
        if any(guard.slot == slot for guard in plan.guards):
            # an output of an I/O device
            return [FaultRow("output", spec.kind, slot, value=value)]
        own = name.removeprefix("input.")
        if own in plan.compiled.input_names:
            return [FaultRow("input", spec.kind, self.model_input(own, "signal"), value=value)]
        if plan.vehicle is not None and slot == plan.vehicle.brake_slot and TOLD_BRAKE in plan.table:
            # the vehicle receives the disturbed one from here on
            told = plan.table.slot(TOLD_BRAKE)
            plan.in_copies.append((slot, told, 1.0, 0.0))
            plan.vehicle = replace(plan.vehicle, brake_slot=told)
        # as the model and the vehicle see it; what they do not read, as it is sent
        places = [("input", *copy) for copy in plan.in_copies if copy[0] == slot and copy[2]]
        places = places or [("output", *copy) for copy in plan.out_copies if copy[0] == slot and copy[2]]
        if not places:
            used = [plan.table.names[src] for src, _, _, _ in (*plan.in_copies, *plan.out_copies) if src != DUMMY]
            hint = did_you_mean(name, [*plan.config.outputs, *used])
            problem = "{key}: {value} is neither sent nor read by a model input"
            raise self.error(problem, "signal", UnknownNameError, hint=hint)
        return [FaultRow(stage, spec.kind, dst, value=value, gain=gain, offset=offset)
                for stage, _, dst, gain, offset in places]  # fmt: skip

    def sensor(self, name: str, slot: int, sensor: Sensor) -> list[FaultRow]:
        """What all read of a sensor; line faults: what a control unit reads."""
        if self.spec.kind not in LINE_KINDS:
            return [FaultRow("sensor", self.spec.kind, slot, value=self.value(None))]
        read = sensor.broken_line(self.spec.kind)
        if not read:
            problem = f"{{key}}: what a control unit reads of {{value}} with {self.spec.kind} is not known"
            allowed = "pull_up_ohm of the sensor; or kind value with what it reads"
            raise self.error(problem, "signal", allowed=allowed)
        return [FaultRow("sensor", "value", self.plan.table.slot(name + part), value=x) for part, x in read.items()]

    def value(self, info: SignalInfo | None) -> float:
        """The fault's value in SI, as its kind counts it."""
        spec, value = self.spec, self.spec.value or 0.0
        if spec.kind == "lag":
            return -math.expm1(-self.tick_s / value)
        if info is not None and spec.kind != "gain":
            value = info.in_si(value, with_offset=spec.kind == "value")
        return value * self.tick_s if spec.kind == "ramp" else value

    def model_input(self, own: str, key: str) -> int:
        """Slot of a model input that is written in every tick."""
        plan = self.plan
        slot = plan.table.slot(f"input.{own}")
        if slot in plan.device(Steps).moved:
            raise self.error("{key}: {value} is moved by [[steps]]", key)
        if not any(dst == slot for _, dst, _, _ in plan.in_copies):
            plan.in_copies.append((DUMMY, slot, 0.0, plan.table.initial.get(slot, 0.0)))
        return slot

    def raw(self, at: tuple[BusPlan, SignalInfo] | None) -> FaultRow:
        """A raw number in the frame of a CAN signal."""
        if at is None:
            raise self.error(f"{{key}}: {{value}} is no signal of a bus, which a fault of kind {self.spec.kind} needs",
                             "signal", UnknownNameError)  # fmt: skip
        bus, info = at
        index = bus.database.message_index(info.message)
        message = bus.database.messages[index]
        signal = next(s for s in message.signals if s.name == info.name)
        if self.spec.kind == "out_of_range":
            raw = self.outside(message, signal, info)
        else:
            raw = int(self.spec.value or 0)
            low = -(1 << (signal.length - 1)) if signal.signed else 0
            high = low + (1 << signal.length) - 1
            if not low <= raw <= high:
                raise self.error("{key} = {value} is out of range", "value", RangeError, allowed=f"{low} .. {high}")
        number = bus.codec.signal_index(index, bus.slot(info))
        return FaultRow("frame", "raw", index, bus.number, raw=raw % (1 << signal.length), signal=number)

    def outside(self, message: MessageSpec, signal: SignalSpec, info: SignalInfo) -> int:
        """The raw number next to the limits of the database, outside, that has no meaning of its own."""
        fields: dict[str, Any] = signal_fields(message, signal)
        if signal.is_float:
            return 0x7FC00000 if signal.length == 32 else 0x7FF8000000000000
        low = -(1 << (signal.length - 1)) if signal.signed else 0
        high = low + (1 << signal.length) - 1
        taken = {*info.choices, *(raw - (1 << signal.length) if raw > high else raw for raw in info.choices)}
        above = range(math.floor(fields["raw_hi"]) + 1, high + 1)
        below = range(math.ceil(fields["raw_lo"]) - 1, low - 1, -1)
        free = [raw for raw in (*above[: len(taken) + 1], *below[: len(taken) + 1]) if raw not in taken]
        if free:
            return int(free[0])
        raise self.error("{value} has no number outside its range", "signal",
                         allowed="a signal whose limits do not fill its bits")  # fmt: skip

    # --- solenoids ---------------------------------------------------------------------------------------------------
    def solenoid(self) -> list[FaultRow]:
        """The command of a solenoid on its way to the hydraulic unit, in A."""
        plan, name = self.plan, self.spec.target
        unit = plan.device(HydraulicUnit).unit
        known = [] if unit is None else list(unit.solenoid)
        if name not in known:
            allowed = ", ".join(known) or "none: the rig has no [hydraulics]"
            raise self.error("{key}: the hydraulic unit has no {value}", "solenoid", UnknownNameError, allowed=allowed,
                             hint=did_you_mean(name, known))  # fmt: skip
        command = plan.table.slot(command_signal(name))
        if self.spec.kind not in COIL_KINDS:
            return [FaultRow("command", self.spec.kind, command, value=self.value(None))]
        coil = unit.solenoid[name].coil if unit is not None else None
        if coil is None:
            problem = f"{{key}}: {{value}} has no coil, which a fault of kind {self.spec.kind} needs"
            allowed = f"[solenoid.{name}.coil] in the file of the hydraulic unit"
            raise self.error(problem, "solenoid", allowed=allowed)
        own = {n: plan.table.slot(f"hydraulics.{name}.{n}") for n in ("resistance", "through", "free")}
        if self.spec.kind == "stuck_valve":
            return [FaultRow("command", "value", own["free"], value=0.0)]
        if self.spec.kind in ("open", "resistance"):
            return [FaultRow("command", "value", own["resistance"], value=self.spec.value or INSULATION_OHM)]
        # the line between coil and output stage: the coil has the whole supply, or nothing; the output stage measures 0
        whole = (self.spec.kind == "short_to_ground") == (coil.side == "low")
        return [FaultRow("command", "value", command, value=WHOLE if whole else 0.0),
                FaultRow("command", "value", own["through"], value=0.0)]  # fmt: skip

    # --- elements -----------------------------------------------------------------------------------------------------
    def element(self) -> list[FaultRow]:
        """Faults of a plate clutch or brake, by the pressure that reaches it."""
        plan, spec = self.plan, self.spec
        name, what, end = spec.target, "shift element", ".p"
        if spec.kind == "broken":
            what, end = "BreakableShaft", ".hold"
        if f"{name}{end}" not in plan.compiled.input_names:
            known = [n.removesuffix(end) for n in plan.compiled.input_names if n.endswith(end)]
            raise self.error(f"{{key}}: the powertrain has no {what} {{value}}", "element", UnknownNameError,
                             allowed=", ".join(known) or "none", hint=did_you_mean(name, known))  # fmt: skip
        if spec.kind == "broken":
            return [FaultRow("input", "value", self.model_input(f"{name}{end}", "element"))]
        part = plan.driveline.components[name]
        slot = self.model_input(f"{name}.p", "element")
        value = spec.value or 0.0
        if spec.kind == "worn":
            # capacity is mue*area*(p - p_return): less mue is less of that pressure
            return [FaultRow("input", "gain", slot, value=value, offset=float(getattr(part, "p_return", 0.0)))]
        if spec.kind == "leak":
            return [FaultRow("input", "gain", slot, value=1.0 - value)]
        if spec.kind == "slow_fill":
            return [FaultRow("input", "lag", slot, value=-math.expm1(-self.tick_s / value))]
        if spec.kind == "stuck_closed":
            value = spec.value if spec.value is not None else float(getattr(part, "p_max", 0.0))
        return [FaultRow("input", "value", slot, value=value)]


def _seed(seed: int, number: int, row: int) -> int:
    """Start of a row's random numbers: rows differ whatever their seeds.

    The tick adds the same odd number to it with each draw (splitmix64), so a factor that is a small multiple of that
    number makes one row repeat the draws of another. With these factors, any two of 20 faults with 8 rows each and
    seeds below 1000 are more than 10^12 draws apart.
    """
    return (seed + number * 0xD1B54A32D192ED03 + row * 0x8CB92BA72F3D8DD7) % (1 << 64)


class FaultInjection(Device[FaultTables]):
    """Signals fault.NAME.on and fault.NAME.acts of every fault."""

    TABLES = FaultTables
    GROUPS = ("fault",)
    LAST = True

    def signals(self) -> None:
        vehicle = self.rig.config.vehicle
        if vehicle is not None and any(spec.target == vehicle.brake for spec in self.given.faults):
            self.table.add(TOLD_BRAKE, "1", 0.0)
        for k, spec in enumerate(self.given.faults, start=1):
            name = spec.name or str(k)
            try:
                self.table.add_all((f"fault.{name}.{part}", "1") for part in ("on", "acts"))
            except ConfigError:
                raise ConfigError("two faults are called {value}", file=self.file, table=f"faults {k}", key="name",
                                  value=name) from None  # fmt: skip

    def plan(self) -> None:
        #: the faults with their rows for the tick
        self.planned: list[PlannedFault] = []
        switches: list[str] = []
        for k, spec in enumerate(self.given.faults, start=1):
            if spec.switch is not None and spec.switch not in switches:
                switches.append(spec.switch)
                if len(switches) > SWITCHES_MAX:
                    raise ConfigError("too many faults that are switched by hand", file=self.file, table=f"faults {k}",
                                      key="switch", value=spec.switch, allowed=f"{SWITCHES_MAX} names")  # fmt: skip
            self.planned.append(_Planner(self.rig, spec, k, f"faults {k}").planned(switches))

    def make(self, tick: Rig, received: Sequence[RxState]) -> Faults:
        made = Faults(len(self.table), self.planned)
        if made.table is not None:
            tick.set_faults(made.table)
        return made
