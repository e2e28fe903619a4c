"""Faults to inject and limits of what is sent: [[faults]] and the entries of [outputs] -> rows for the tick.

    [[faults]]
    signal = "TCU_Pressure_1.p_C4"      received, vehicle.*, driver.* (as the model sees it), a model input, or one sent
    kind = "offset"                     offset, gain, stuck, value, noise, nan
    value = 0.5                         unit of the database for CAN signals, else SI; gain: a factor
    from_s = 3.0
    until_s = 4.0                       default: to the end

    [[faults]]
    message = "HIL_Speeds"              one the rig sends
    kind = "crc"                        drop, crc (wrong checksum), counter (stands still), dlc (one byte short)
    switch = "broken_speeds"            by hand instead of by time: RigParts.faults.switch(name, on)

    [outputs]
    "HIL_Speeds.n_engine" = { signal = "engine.w", min = 0, max = 8000, slew = 20000, on_limit = "clamp" }

Limits are in the unit of the database, slew in that unit per second; without min and max the database's range holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.tick.safety import SWITCHES_MAX, Safety
from torqueloop.hil.can.database import SignalInfo
from torqueloop.hil.can.units import si_unit
from torqueloop.hil.can.units import to_si as database_to_si
from torqueloop.hil.results.run import FaultStats
from torqueloop.hil.rig.describe.config import Fault
from torqueloop.hil.rig.describe.planned import BusPlan, PlannedFault, PlannedGuard, RigPlan
from torqueloop.hil.rig.describe.signals import DUMMY

if TYPE_CHECKING:  # a name of the kernel's stub
    from torqueloop.cython_kernels.tick.safety import Fault as FaultRow


def plan_guards(plan: RigPlan) -> list[PlannedGuard]:
    """Range and slew of every sent signal; ConfigError with its place."""
    found = []
    for name, entry in plan.config.outputs.items():
        slot = plan.table.slot(name)
        _, info = plan.on_bus(slot) or (None, None)
        assert info is not None, "outputs are signals of a bus"

        def refuse(key: str, value: Any, allowed: str, name: str = name) -> ConfigError:
            where = {"file": str(plan.path), "table": f"outputs.{name}", "key": key, "value": value}
            return RangeError("{key} = {value}", **where, allowed=allowed)

        lo = -math.inf if info.minimum is None else info.minimum
        hi = math.inf if info.maximum is None else info.maximum
        unit = info.unit or "no unit"
        for key, given in (("min", entry.min), ("max", entry.max)):
            if given is None:
                continue
            value = _si(info, given, with_offset=True)
            if not lo - 1e-9 <= value <= hi + 1e-9:
                raise refuse(key, given, f"the range of the database, {info.minimum} .. {info.maximum} {info.si_unit}")
            lo, hi = (value, hi) if key == "min" else (lo, value)
        if lo > hi:
            raise refuse("max", entry.max, f">= min = {entry.min} {unit}")
        slew = 0.0 if entry.slew is None else abs(_si(info, entry.slew, with_offset=False))
        start = plan.table.initial.get(slot, 0.0)
        if entry.value is not None and not lo - 1e-9 <= start <= hi + 1e-9:
            raise refuse("value", entry.value, f"{entry.min} .. {entry.max} {unit}, its own limits")
        found.append(PlannedGuard(name, slot, lo, hi, abs(info.scale) / 2.0, slew, entry.on_limit == "safe"))
    return found


def plan_faults(plan: RigPlan) -> list[PlannedFault]:
    """Resolve [[faults]]; ConfigError with the entry's number, counted from 1."""
    found: list[PlannedFault] = []
    switches: list[str] = []
    for k, spec in enumerate(plan.config.faults, start=1):
        table = f"faults {k}"
        if spec.switch is not None and spec.switch not in switches:
            switches.append(spec.switch)
            if len(switches) > SWITCHES_MAX:
                raise ConfigError(
                    "too many faults that are switched by hand",
                    file=str(plan.path),
                    table=table,
                    key="switch",
                    value=spec.switch,
                    allowed=f"{SWITCHES_MAX} names",
                )
        bit = -1 if spec.switch is None else switches.index(spec.switch)
        if spec.message is not None:
            bus, at = _message(plan, spec, table)
            found.append(PlannedFault(spec, (("frame", at, 1.0, 0.0),), 0.0, bit, bus))
        else:
            found.append(PlannedFault(spec, *_signal(plan, spec, table), bit))
    return found


def _message(plan: RigPlan, spec: Fault, table: str) -> tuple[int, int]:
    """Number of the bus, index in its codec."""
    name = spec.message or ""
    sent: dict[str, list[tuple[BusPlan, str]]] = {}
    for bus in plan.buses:
        for m in bus.database.tx_messages:
            for key in (m.name, f"{bus.name}.{m.name}"):
                sent.setdefault(key, []).append((bus, m.name))
    where = {"file": str(plan.path), "table": table}
    if name not in sent:
        hint = did_you_mean(name, sent)
        raise UnknownNameError("{key}: the rig sends no {value}", **where, key="message", value=name, hint=hint)
    if len(sent[name]) > 1:
        allowed = ", ".join(f"{bus.name}.{name}" for bus, _ in sent[name])
        raise UnknownNameError("several buses have a message {value}", **where, key="message", value=name,
                               allowed=allowed)  # fmt: skip
    bus, short = sent[name][0]
    message = bus.database.message(short)
    if spec.kind == "crc" and not message.has_checksum:
        raise ConfigError("{value} has no checksum", **where, key="message", value=name)
    if spec.kind == "counter" and not message.has_counter:
        raise ConfigError("{value} has no alive counter", **where, key="message", value=name)
    return bus.number, bus.database.message_index(short)


def _signal(plan: RigPlan, spec: Fault, table: str) -> tuple[tuple[tuple[str, int, float, float], ...], float]:
    name = spec.signal or ""
    slot = plan.table.slot(name) if name in plan.table else -1
    _, info = plan.on_bus(slot) or (None, None)
    if info is not None and not info.receive:
        if not any(dst == slot for _, dst, _, _ in plan.out_copies):
            # a constant is written once; with a fault on it, in every tick
            plan.out_copies.append((DUMMY, slot, 0.0, plan.table.initial.get(slot, 0.0)))
        return (("output", slot, 1.0, 0.0),), _value(spec, info)
    own = name.removeprefix("input.")
    if own in plan.compiled.input_names:
        slot = plan.table.slot(f"input.{own}")
        if not any(dst == slot for _, dst, _, _ in plan.in_copies):
            plan.in_copies.append((DUMMY, slot, 0.0, plan.table.initial.get(slot, 0.0)))
        return (("input", slot, 1.0, 0.0),), spec.value or 0.0
    source = plan.table.slot(name) if name in plan.table else -1
    places = tuple(("input", dst, gain, offset) for src, dst, gain, offset in plan.in_copies if src == source and gain)
    if not places:
        used = [plan.table.names[src] for src, _, _, _ in plan.in_copies if src != DUMMY]
        raise UnknownNameError(
            "{key}: {value} is neither sent nor read by a model input",
            file=str(plan.path),
            table=table,
            key="signal",
            value=name,
            hint=did_you_mean(name, [*plan.config.outputs, *used]),
        )
    return places, _value(spec, info)


def _value(spec: Fault, info: SignalInfo | None) -> float:
    """The fault's value in SI."""
    value = spec.value or 0.0
    if info is None or spec.kind == "gain":
        return value
    return _si(info, value, with_offset=spec.kind == "value")


def _si(info: SignalInfo, value: float, *, with_offset: bool) -> float:
    unit = si_unit(info.unit)
    assert unit is not None, "the database refuses needed signals with unknown units"
    return database_to_si(value, unit, with_offset=with_offset)


class Faults:
    """The faults of a running rig: switch those that are switched by hand, see what acted."""

    def __init__(self, safety: Safety, faults: Sequence[PlannedFault]) -> None:
        self.safety, self.faults = safety, list(faults)

    @property
    def switches(self) -> list[str]:
        """Names of the faults switched by hand, in the order of their bits."""
        names = {f.switch: str(f.spec.switch) for f in self.faults if f.switch >= 0}
        return [names[k] for k in sorted(names)]

    def switched(self) -> dict[str, bool]:
        """Names of the switches, and whether they are on."""
        bits = self.safety.switches
        return {name: bool(bits >> k & 1) for k, name in enumerate(self.switches)}

    def switch(self, name: str, on: bool) -> None:
        """Switch all faults of this name, from the next tick on; any thread. UnknownNameError with the closest."""
        if name not in self.switches:
            hint = did_you_mean(name, self.switches)
            raise UnknownNameError("no fault is switched by {value}", value=name, hint=hint)
        self.safety.switch(self.switches.index(name), on)

    def stats(self, tick_s: float) -> list[FaultStats]:
        """Every fault: what, when, how often it acted (ticks; frames for those on messages)."""
        counts, active = iter(self.safety.fault_counts()), iter(self.safety.faults_active())
        found = []
        for f in self.faults:
            acted = [(next(counts), next(active)) for _ in f.places]
            spec, times = f.spec, max(n for n, _ in acted)
            when = f"switched by {spec.switch}" if f.switch >= 0 else _when(spec.from_s, spec.until_s)
            ticks, frames = (None, times) if spec.message else (times, None)
            is_active = any(a for _, a in acted)
            found.append(FaultStats(f.target, spec.kind, when, spec.value, ticks, frames, is_active))
        return found


def _when(from_s: float, until_s: float | None) -> str:
    return f"from {from_s:g} s" + (f" to {until_s:g} s" if until_s is not None else "")


def make_safety(plan: RigPlan, n_sig: int) -> tuple[Safety, Faults]:
    """The tick's tables of a plan."""
    tick_s = plan.config.clock.tick_s
    safety = Safety(n_sig, tick_s)
    rows: list[FaultRow] = []
    for f in plan.faults:
        until = -1 if f.spec.until_s is None else _tick(f.spec.until_s, tick_s)
        first = _tick(f.spec.from_s, tick_s)
        rows += [
            (stage, f.spec.kind, slot, f.value, g, o, first, until, f.switch, f.bus) for stage, slot, g, o in f.places
        ]
    safety.set_faults(rows)
    safety.set_guards([(g.slot, g.lo, g.hi, g.tol, g.slew, g.safe) for g in plan.guards])
    safety.set_solver_limit(plan.config.safe_state.solver_limit)
    return safety, Faults(safety, plan.faults)


def _tick(t_s: float, tick_s: float) -> int:
    """First tick that begins at t_s or later."""
    return math.ceil(t_s / tick_s - 1e-9)
