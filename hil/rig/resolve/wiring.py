"""Fills the lists of a plan from its configuration: names become slots, mistakes errors with their place."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torqueloop.core.components import params_of
from torqueloop.core.describe.errors import (
    ConfigError,
    MissingValueError,
    RangeError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.describe.units import SYMBOLS, UNITS, to_si
from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.hil.can.database import SignalInfo
from torqueloop.hil.can.sending import CYCLIC
from torqueloop.hil.rig.devices.device import BusPlan, RigPlan
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.devices.phases import frame_bits, spread
from torqueloop.hil.rig.devices.signals import SignalTable
from torqueloop.hil.rig.devices.vehicle import VehicleLink
from torqueloop.hil.rig.resolve.guards import plan_guards
from torqueloop.hil.rig.resolve.sending import is_cyclic, send_kind, send_row
from torqueloop.hil.rig.schema.links import Link
from torqueloop.hil.rig.schema.rig_file import Output, RigConfig


class Wiring:
    """One plan being filled."""

    def __init__(self, plan: RigPlan) -> None:
        self.plan: RigPlan = plan
        self.config: RigConfig = plan.config
        self.table: SignalTable = plan.table
        self.file: str = str(plan.path)

    def all(self) -> None:
        """Everything, in the order in which mistakes are best reported."""
        self.inputs()
        self.outputs()
        for bus in self.plan.buses:
            self.messages(bus)
        for device in self.plan.devices:
            if not device.LAST:
                device.plan()
        self.limits()
        self.safe_state()
        self.plan.guards += plan_guards(self.plan)
        for device in self.plan.devices:
            if device.LAST:
                device.plan()
        self.record()

    def refuse(
        self, problem: str, table: str, key: str, kind: type[ConfigError] = ConfigError, **more: Any
    ) -> ConfigError:
        """The error for a mistake at this place."""
        return kind(problem, file=self.file, table=table, key=key, **more)

    def source(self, name: str, table: str, key: str) -> int:
        """Slot of a signal that something is read from."""
        try:
            return self.table.slot(name)
        except UnknownNameError as error:
            problem = f"{{key}}: {error.problem}"
            raise self.refuse(
                problem, table, key, UnknownNameError, value=name, allowed=error.allowed, hint=error.hint
            ) from None

    def unknown(self, problem: str, table: str, key: str, name: str, known: Iterable[str]) -> ConfigError:
        """The error for a name that is none of the known ones."""
        return self.refuse(problem, table, key, UnknownNameError, value=name, hint=did_you_mean(name, known))

    def check_units(self, source: str, target: str, target_unit: str, link: Link, table: str, key: str) -> None:
        """A link without a gain of its own joins signals of one unit."""
        unit = self.table.unit(source)
        if unit != target_unit and not link.converts:
            problem = f"{{key}}: {source} is in {unit or 'no unit'}, {target} in {target_unit}"
            allowed = f"a signal in {target_unit}, or a gain of your own"
            raise self.refuse(problem, table, key, value=source, allowed=allowed)

    # --- model --------------------------------------------------------------------------------------------------------
    def inputs(self) -> None:
        """[inputs]: what each model input is copied from. A model output is that of the tick before."""
        names = self.plan.compiled.input_names
        for name, link in self.config.inputs.items():
            if name not in names:
                raise self.unknown("the model has no input {value}", "inputs", name, name, names)
            target = f"input.{name}"
            slot = self.table.slot(target)
            if link.signal is not None:
                source = self.source(link.signal, "inputs", name)
                self.check_units(link.signal, name, self.table.unit(target), link, "inputs", name)
                self.plan.in_copies.append((source, slot, link.gain, link.offset))
                self.driven(name, source, link)
            elif isinstance(link.value, str):
                problem = "{key}: a model input has no words"
                raise self.refuse(problem, "inputs", name, value=link.value, allowed="a number in SI")
            else:
                self.table.initial[slot] = self.plan.in_range(name, float(link.value or 0.0), "inputs", name)
        self.derivatives()
        moved = self.plan.device(VehicleLink).moved()
        known = {*self.config.inputs, *moved, *self.plan.compiled.default_inputs, *self.plan.compiled.derived_inputs}
        missing = [n for n in names if n not in known]
        if missing:
            problem = f"model input(s) without a source: {', '.join(missing)}"
            allowed = "a signal, or a constant like { value = 0.0 }"
            raise self.refuse(problem, "inputs", missing[0], MissingValueError, allowed=allowed)

    def driven(self, name: str, source: int, link: Link) -> None:
        """A driver table that goes to an input must stay in the range the input's law is made for."""
        for slot, _, values in self.plan.drivers:
            if slot == source:
                for value in values:
                    self.plan.in_range(name, value * link.gain + link.offset, "driver", link.signal or "")

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
            problem = f"{component.kind} {name!r} needs {derived}, which no rig signal brings: {{key}} = {{value}}"
            allowed = " | ".join([*remedy, "a Move (phi, w, a) instead", "a constant"])
            raise self.refuse(problem, "inputs", source, value=link.signal, allowed=allowed)

    # --- buses --------------------------------------------------------------------------------------------------------
    def outputs(self) -> None:
        """[outputs]: what each signal that is sent is copied from, a model, a driver table, another bus ..."""
        if self.config.outputs and not self.plan.buses:
            raise self.refuse("[outputs] needs a table [bus.NAME]", "outputs", next(iter(self.config.outputs)))
        given = set()
        for name, link in self.config.outputs.items():
            slot = self.source(name, "outputs", name)
            found = self.plan.on_bus(slot)
            if found is None:
                raise self.refuse("{key} is on no bus", "outputs", name, allowed="a signal that the rig sends")
            bus, info = found
            if info.receive:
                problem = f"{{key}} is received by node {bus.database.node}, not sent"
                raise self.refuse(problem, "outputs", name, allowed=_names(bus.database.tx_messages))
            given.add(slot)
            self.output(name, slot, info, link)
        whole = [bus for bus in self.plan.buses if not bus.config.restbus]
        sent = {bus.slot(s): s for bus in whole for s in bus.database.signals if not s.receive}
        missing = [self.table.names[slot] for slot in sorted(set(sent) - given)]
        if missing:
            problem = f"signal(s) to be sent without a source: {', '.join(sorted(missing))}"
            allowed = "a signal, a constant in the unit of the database, or a word of its value table"
            raise self.refuse(problem, "outputs", sorted(missing)[0], MissingValueError, allowed=allowed)

    def output(self, name: str, slot: int, info: SignalInfo, link: Output) -> None:
        """One entry of [outputs]."""
        if link.signal is not None:
            source = self.source(link.signal, "outputs", name)
            self.check_units(link.signal, name, info.si_unit, link, "outputs", name)
            self.plan.out_copies.append((source, slot, link.gain, link.offset))
            return
        if isinstance(link.value, str):
            try:
                self.table.initial[slot] = info.value_of(link.value)
            except ConfigError as error:
                raise error.located(file=self.file, table="outputs", key=name) from None
            return
        value = info.in_si(float(link.value or 0.0))
        low, high = info.minimum, info.maximum
        if not (low is None or value >= low - 1e-9) or not (high is None or value <= high + 1e-9):
            problem = f"{{key}} = {{value}} {info.unit}"
            allowed = info.range_text(low, high)
            raise self.refuse(problem, "outputs", name, RangeError, value=link.value, allowed=allowed)
        self.table.initial[slot] = value

    def messages(self, bus: BusPlan) -> None:
        """Which messages of a bus must come, and when each is sent."""
        database, table = bus.database, f"bus.{bus.name}"
        received = [m.name for m in database.rx_messages]
        for name in bus.config.rx_timeout_s:
            if name not in received:
                problem = f"node {database.node} receives no such message"
                raise self.unknown(problem, f"{table}.rx_timeout_s", name, name, received)
            bus.required.append(database.message_index(name))
        sent = [m.name for m in database.tx_messages]
        for name in bus.config.tx_offset_s:
            if name not in sent:
                raise self.unknown("{key} is not sent by this node", f"{table}.tx_offset_s", name, name, sent)
        for name in bus.config.sending:
            if name not in sent:
                raise self.unknown("{key} is not sent by this node", f"{table}.sending", name, name, sent)
        rows: list[tuple[MessageSpec, int, int | None]] = []
        for message in database.tx_messages:
            kind = send_kind(bus, message)
            given_s = bus.config.tx_offset_s.get(message.name, message.start_ns * 1e-9 or None)
            given = None if given_s is None else round(given_s * 1e9 / self.plan.period_ns)
            if not is_cyclic(kind):
                bus.events.append(send_row(self.plan, bus, message, kind, 0, given or 0))
                continue
            given = given if given is not None or bus.config.restbus else 0
            rows.append((message, self.cycle(bus, message), given))
        offsets = spread([(period, frame_bits(message), given) for message, period, given in rows])
        for (message, period_ticks, _), offset in zip(rows, offsets, strict=True):
            kind = send_kind(bus, message)
            if kind == CYCLIC:
                bus.send.append((database.message_index(message.name), period_ticks, offset))
            else:
                bus.events.append(send_row(self.plan, bus, message, kind, period_ticks, offset))

    def cycle(self, bus: BusPlan, message: MessageSpec) -> int:
        """Cycle time of a message in ticks."""
        period = message.cycle_ns / self.plan.period_ns
        if message.cycle_ns <= 0 or abs(period - round(period)) > 1e-9:
            has = f"cycle time {message.cycle_ns / 1e6:g} ms does not fit the tick"
            raise RangeError(
                f"message {message.name}: {has if message.cycle_ns > 0 else 'there is no cycle time'}",
                file=str(bus.database.path),
                allowed=f"a multiple of tick_s = {1e3 * self.config.clock.tick_s:g} ms",
                hint=f"bus.{bus.name}.cycle_s gives it another one, bus.{bus.name}.send leaves it out",
            )
        return round(period)

    # --- safety and record --------------------------------------------------------------------------------------------
    def limits(self) -> None:
        """[limits]"""
        for name, limit in self.config.limits.items():
            slot = self.source(name, "limits", name)
            lo, hi = limit.min, limit.max
            if limit.unit is not None:
                dimension = UNITS[limit.unit][0]
                lo, hi = (to_si(x, limit.unit) if math.isfinite(x) else x for x in (lo, hi))
                if SYMBOLS[dimension] != self.table.units[slot]:
                    problem = "{key}: unit {value} is not one of " + self.table.units[slot]
                    raise self.refuse(problem, f"limits.{name}", "unit", value=limit.unit)
            self.plan.limits.append((slot, lo, hi))
            self.plan.limit_names.append(name)

    def safe_state(self) -> None:
        """[safe_state] inputs; default: buses, control units, I/O devices and every pedal go to 0."""
        safe, names = self.config.safe_state, self.plan.compiled.input_names
        targets = safe.inputs
        if targets is None:
            pins = {unit.actuator_slot + k for unit in self.plan.units for k in range(len(unit.actuators))}
            pins |= self.plan.device(IoCards).input_slots
            targets = {
                self.table.names[dst].removeprefix("input."): 0.0
                for src, dst, _, _ in self.plan.in_copies
                if self.table.names[dst].startswith("input.")
                and (self.plan.on_bus(src) is not None or src in pins or self.table.names[dst].endswith(".pedal"))
            }
        for name, target in targets.items():
            if name not in names:
                raise self.unknown("the model has no input {value}", "safe_state.inputs", name, name, names)
            target = self.plan.in_range(name, target, "safe_state.inputs", name)
            self.plan.reactions.append((self.table.slot(f"input.{name}"), target, safe.ramp_s))

    def record(self) -> None:
        """[record]"""
        wanted = self.config.record.signals
        own = [n for n in self.table.names[2:] if n not in self.table.internal]
        names: Iterable[str] = own if wanted == "all" else wanted
        self.plan.recorded = [(name, self.source(name, "record", "signals")) for name in names]


def _names(messages: Iterable[Any]) -> str:
    return ", ".join(m.name for m in messages)
