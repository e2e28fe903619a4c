"""Requests of the control channel -> transactions of the tick; checked as a whole before anything is posted.

One thread at a time (the server's). Everything slow happens here: looking up names, checking ranges, compiling a
changed driveline, reading and writing checkpoints. What is posted takes effect whole at the top of one tick.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import torqueloop
from torqueloop.cython_kernels.tick.control import HOLD, MAX_HELD, MAX_WRITES, RELEASE, SET, Control
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.online.layout import layout
from torqueloop.hil.rig.online.names import SignalInfo, find, signals
from torqueloop.hil.rig.online.parameters import Parameters, Prepared
from torqueloop.hil.rig.online.restore import Checkpoints
from torqueloop.hil.rig.resolve.plan import RigPlan

#: a rig that takes no tick for this long does not take the transaction [s]
NO_TICK_S = 2.0
#: a transaction may wait for a tick this far ahead [s of simulated time]
AHEAD_S = 60.0
#: file in the run directory: models and images by their reference in the input records
JOURNAL = Path("control") / "journal.jsonl"


class Recordings(Protocol):
    """Recordings of their own that clients begin and end (hil/rig/run/recordings.py). Refuses with a RequestError."""

    def start(self, name: str, patterns: tuple[str, ...]) -> dict[str, Any]: ...
    def stop(self, name: str) -> dict[str, Any]: ...
    def status(self) -> dict[str, Any]: ...


class RigControl:
    """A running rig by name. `folder`: run directory, where models and checkpoints are noted for replay."""

    def __init__(self, plan: RigPlan, parts: RigParts, folder: Path, kernel: str = "auto", real: bool = True) -> None:
        self.plan: RigPlan = plan
        self.parts: RigParts = parts
        self.folder: Path = folder
        self.control: Control = parts.control
        self.signals: dict[str, SignalInfo] = signals(plan)
        self.parameters: Parameters = Parameters(plan, kernel)
        self._lock = threading.Lock()
        #: the first tick may come; on the real clock not before all participants have answered
        self._ready = not real
        #: what a client has asked for before: arm or disarm; None: neither
        self._wanted: bool | None = None
        self._arming = threading.Lock()
        self._references = 0
        self.transactions: int = 0
        self.checkpoints: Checkpoints = Checkpoints(self, real)
        #: endpoint of the telemetry; "": none
        self.telemetry = ""
        #: None: nothing is recorded here (a replay)
        self.recordings: Recordings | None = None
        #: all numbers of the run so far, as run.json has them
        self.numbers: Callable[[], dict[str, Any]] = dict
        #: called when a transaction is posted, before its tick is waited for: a rig that is held lets a tick pass
        self.posted: Callable[[], None] = lambda: None

    # --- reading ----------------------------------------------------------------------------------------------------
    def hello(self) -> dict[str, Any]:
        """Product, version, rig, digest of its model, tick."""
        return {
            "product": "torqueloop",
            "version": torqueloop.__version__,
            "rig": self.plan.config.rig.name,
            "model": self.plan.compiled.digest(),
            "tick_s": self.plan.config.clock.tick_s,
            "signals": len(self.signals),
            "telemetry": self.telemetry,
            "cpu": self.plan.config.clock.cpu,
            "folder": str(self.folder.absolute()),
        }

    def run_stats(self) -> dict[str, Any]:
        """All numbers of the run so far (RunStats without its large parts)."""
        return self.numbers()

    def layout(self) -> dict[str, Any]:
        """What the rig consists of, for who draws it (hil/rig/online/layout.py)."""
        return asdict(layout(self.plan))

    def describe(self) -> list[dict[str, Any]]:
        """All names but those of internal signals: unit, kind, what may be done, range, value."""
        shown = [s for s in self.signals.values() if s.name not in self.plan.table.internal]
        values = self.parts.rig.values([s.slot for s in shown])
        out: list[dict[str, Any]] = [
            {
                "name": s.name,
                "unit": s.unit,
                "kind": "signal",
                "writable": "set" if s.set else "override" if s.override else "",
                "allowed": s.allowed() if s.set or s.override else "",
                "value": value,
            }
            for s, value in zip(shown, values, strict=True)
        ]
        out += [
            {
                "name": p.name,
                "unit": p.unit,
                "kind": "parameter",
                "writable": "set",
                "allowed": p.allowed,
                "value": p.value,
            }
            for p in self.parameters.current.values()
            if p.name not in self.signals
        ]
        out += [
            {"name": name, "unit": "1", "kind": "fault", "writable": "set", "allowed": "0 | 1", "value": value}
            for name, value in self.faults().items()
        ]
        return out

    def get(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Simulated tick and values now, of one tick or of two that follow each other."""
        tick = self.parts.rig.sim_tick
        values: dict[str, float] = {}
        parameters = {p.name: p.value for p in self.parameters.current.values()} | self.faults()
        wanted = [name for name in names if name in self.signals or name not in parameters]
        slots = [find(self.signals, name, tuple(parameters)).slot for name in wanted]
        values.update(zip(wanted, self.parts.rig.values(slots), strict=True))
        values.update((name, parameters[name]) for name in names if name not in values)
        return {"tick": tick, "values": {name: values[name] for name in names}}

    def status(self) -> dict[str, Any]:
        """Tick, state, first cause, counters."""
        rig = self.parts.rig
        cause, counters = rig.cause(), rig.counters()
        wanted = ("ticks", "missed", "dropped", "overruns", "rx_frames", "rx_bad", "tx_frames", "tx_dropped")
        return {
            "rig": self.plan.config.rig.name,
            "tick": rig.sim_tick,
            "ticks": rig.tick,
            "t_s": rig.sim_tick * rig.tick_s,
            "state": rig.state,
            "finished": rig.finished,
            "safe": bool(cause["latched"]),
            "cause": describe(cause, self.plan.cause_name(cause)) if cause["latched"] else "",
            "held": self.held(),
            "parameters": dict(self.parameters.values),
            "transactions": self.transactions,
            "recordings": self.recordings.status() if self.recordings else {},
            "counters": {name: counters[name] for name in wanted if name in counters},
        }

    def faults(self) -> dict[str, float]:
        """Faults that are switched by hand, "fault.NAME": 1 while it acts."""
        return {f"fault.{name}": float(on) for name, on in self.parts.faults.switched().items()}

    def held(self) -> dict[str, float]:
        """Signals that are held now."""
        return {self.plan.table.names[slot]: value for slot, value in self.control.held().items()}

    # --- writing ----------------------------------------------------------------------------------------------------
    def set(self, values: Mapping[str, float], at: int = -1) -> int:
        """Set constants and parameters, all in one tick or none; the simulated tick in which it took effect."""
        writes, changes, switches = [], {}, {}
        parameters, faults = self.parameters.current, self.faults()
        for name, value in values.items():
            if name in faults:
                if value not in (0.0, 1.0):
                    raise RequestError("refused", f"{name} = {value:g}; allowed: 0 | 1")
                switches[name.removeprefix("fault.")] = value == 1.0
                continue
            if name not in self.signals and name in parameters:
                changes[name] = value
                continue
            info = find(self.signals, name, (*parameters, *faults))
            if not info.set:
                remedy = "use override to hold it" if info.override else "it is read only"
                raise RequestError("refused", f"{name} is written by the rig in every tick: {remedy}")
            info.check(value)
            writes.append((info.slot, SET, value))
        prepared = self.parameters.prepare(changes) if changes else None
        tick = self._post(writes, at, prepared)
        # they act from the next tick on, once the rest was taken
        for name, on in switches.items():
            self.parts.faults.switch(name, on)
        return tick

    def override(self, values: Mapping[str, float], at: int = -1) -> int:
        """Hold signals at values, all from one tick on or none."""
        writes = []
        for name, value in values.items():
            info = find(self.signals, name)
            if not info.override:
                remedy = "use set" if info.set else "allowed: model inputs, driver.*, vehicle.*, received signals"
                raise RequestError("refused", f"{name} cannot be held: {remedy}")
            info.check(value)
            writes.append((info.slot, HOLD, value))
        if len(set(self.control.held()) | {slot for slot, _, _ in writes}) > MAX_HELD:
            raise RequestError("refused", f"allowed: at most {MAX_HELD} signals held at a time")
        return self._post(writes, at)

    def release(self, names: tuple[str, ...], at: int = -1) -> int:
        """Release signals that are held; none named: all."""
        held = self.control.held()
        slots = [find(self.signals, name).slot for name in names] if names else list(held)
        for name, slot in zip(names, slots, strict=False):
            if slot not in held:
                raise RequestError("refused", f"{name} is not held; held: {', '.join(self.held()) or 'nothing'}")
        return self._post([(slot, RELEASE, 0.0) for slot in slots], at)

    def ready(self, disarmed: bool) -> None:
        """The first tick may come: the rig is armed, unless it begins disarmed. A client that has asked for the one or
        the other before counts more."""
        with self._arming:
            self._ready = True
            if self._wanted or (self._wanted is None and not disarmed):
                self.parts.rig.arm()

    def arm(self) -> str:
        """Arm, or arm again after disarm; the rig's state now (the next tick takes it over). A rig that still waits for
        its participants is armed when they have answered."""
        return self._arm(True)

    def disarm(self) -> str:
        """Ramp down as the safe state does, then fall silent until armed again; the rig's state now. A rig that still
        waits for its participants begins disarmed."""
        return self._arm(False)

    def _arm(self, wanted: bool) -> str:
        with self._arming:
            if not self._ready:
                self._wanted = wanted
            elif wanted:
                self.parts.rig.arm()
            else:
                self.parts.rig.disarm()
        return self.parts.rig.state

    def stop(self) -> str:
        """End the run; the rig's state now."""
        self.parts.rig.stop()
        return self.parts.rig.state

    def safe(self) -> bool:
        """Ask for the safe state; False if it was asked for before."""
        return self.parts.rig.request_safe("request")

    def checkpoint(self, name: str = "", at: int = -1) -> dict[str, Any]:
        """Keep the whole state under a name in the run directory: name, file, tick."""
        with self._lock:
            self._check_time(at)
            return self.checkpoints.take(name, at)

    def restore(self, name: str, at: int = -1) -> dict[str, Any]:
        """Return to a checkpoint of this run: tick from which it continues, participants that returned."""
        with self._lock:
            self._check_time(at)
            return self.checkpoints.restore(name, at)

    def record(self, name: str = "", patterns: tuple[str, ...] = ()) -> dict[str, Any]:
        """Begin a recording of its own of the signals with these names, default all: name, folder, signals."""
        if self.recordings is None:
            raise RequestError("refused", "nothing is recorded here")
        return self.recordings.start(name, patterns)

    def stop_recording(self, name: str) -> dict[str, Any]:
        """End it: name, folder, samples, first and last tick."""
        if self.recordings is None:
            raise RequestError("refused", "nothing is recorded here")
        return self.recordings.stop(name)

    # --- inside -----------------------------------------------------------------------------------------------------
    def _post(self, writes: list[tuple[int, int, float]], at: int = -1, prepared: Prepared | None = None) -> int:
        if len(writes) > MAX_WRITES:
            raise RequestError("refused", f"{len(writes)} signals; allowed: at most {MAX_WRITES} in one transaction")
        with self._lock:
            self._check_time(at)
            if prepared is None:
                return self.exchange(at, lambda: self.control.post(writes, at))
            reference = self.journal(parameters=prepared.values)
            tick = self.exchange(
                at,
                lambda: self.control.post(
                    writes, at, reference, model=prepared.model, state=prepared.state, gains=prepared.gains
                ),
            )
            self.accept(prepared)
            return tick

    def accept(self, prepared: Prepared) -> None:
        """A model that was prepared is in effect."""
        self.parameters.accept(prepared)
        self.parts.model, self.parts.state = prepared.model, prepared.state

    def _check_time(self, at: int) -> None:
        rig = self.parts.rig
        now, ahead = rig.sim_tick, round(AHEAD_S / rig.tick_s)
        if at >= 0 and not now <= at <= now + ahead:
            raise RequestError("refused", f"at = {at}: allowed: tick {now} (now) .. {now + ahead}")

    def exchange(self, at: int, post: Callable[[], None]) -> int:
        """Post and wait for the tick that takes it. RequestError if no tick comes or it refuses."""
        post()
        self.posted()
        rig = self.parts.rig
        last, since = rig.heartbeat, time.monotonic()
        while self.checkpoints.waiting or not self.control.free:
            time.sleep(0.0005)
            beat = rig.tick if at >= 0 else 0
            if beat != last:
                last, since = beat, time.monotonic()
            over = rig.stopped or rig.finished
            if (over or time.monotonic() - since > NO_TICK_S) and (
                self.checkpoints.withdraw() or self.control.cancel()
            ):
                state = "has ended" if over else f"takes no ticks ({rig.state})"
                raise RequestError("refused", f"nothing was changed: the rig {state}")
        if self.checkpoints.error is not None:
            error, self.checkpoints.error = self.checkpoints.error, None
            raise error
        tick, done = self.control.answer()
        if not done:
            raise RequestError("refused", f"nothing was changed: the rig is {rig.state}")
        self.transactions += 1
        return int(tick)

    def journal(self, **entry: Any) -> int:
        """Note a model or image for replay before it is posted; its reference."""
        self._references += 1
        path = self.folder / JOURNAL
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"reference": self._references, **entry}) + "\n")
        return self._references

    def stats(self) -> dict[str, Any]:
        """Counts for the report."""
        return {"transactions": self.transactions, "parameters": dict(self.parameters.values), "held": self.held()}
