"""What is alive during a run, on either clock: rig, links, companions, recorder; and its statistics."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from torqueloop.core.errors import TorqueloopError
from torqueloop.hil.can.bus import CanGateway
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.control.server import ControlServer
from torqueloop.hil.link.sockets import LockstepClient, RigLink
from torqueloop.hil.realtime.rtenv import Measure, Setup
from torqueloop.hil.record.mode_log import ModeLog
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_folder import RunFolder
from torqueloop.hil.rig.companions import Companion
from torqueloop.hil.rig.first_fault import FirstFaultWriter
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.parts import RigParts
from torqueloop.hil.rig.plan import RigPlan
from torqueloop.hil.rig.run_stats import Energy, run_stats
from torqueloop.hil.rig.virtual_links import TcuStep

#: the session looks after links, progress and rings this often [s]
LOOK_S = 0.05
#: run.json is rewritten this often [s]
STATS_S = 1.0
#: a loop that does not come back after stop() is given up after this [s]
GIVE_UP_S = 5.0
#: SCHED_FIFO priorities below the loop's: threads that serve its links, then the companion processes. On a loaded
#: desktop an ordinary process waits up to 100 ms for a CPU, long enough for the peers to look silent
LINKS_BELOW, COMPANIONS_BELOW = 20, 30


class StartError(TorqueloopError):
    """A peer did not come up; nothing was armed."""


@dataclass
class LiveRun:
    """Everything alive during a run."""

    plan: RigPlan
    parts: RigParts
    folder: RunFolder
    recorder: Recorder
    energy: Energy
    modes: ModeLog
    real: bool
    first_fault: FirstFaultWriter
    #: the rig by name, for the control channel and checkpoints
    control: RigControl
    degraded: list[str] = field(default_factory=list)
    #: real-time measures of this process and its threads; those of companions, as they reported them at their end
    setup: Setup = field(default_factory=Setup)
    companions_realtime: list[dict[str, Any]] = field(default_factory=list)
    companions: dict[str, Companion] = field(default_factory=dict)
    gateway: CanGateway | None = None
    #: what was found of the CAN interface and its socket (native SocketCAN)
    native_info: dict[str, Any] = field(default_factory=dict)
    link: RigLink | None = None
    lockstep: LockstepClient | None = None
    channel: ControlServer | None = None
    tcu: TcuStep | None = None
    peer_stats: dict[str, Any] = field(default_factory=dict)
    #: first failure of a link in words
    note: str = ""
    #: the loop did not come back: it is not waited for any more
    given_up: bool = False
    #: wall time when tick 0 was due and when the last one was done [s]; None: not yet
    began_s: float | None = None
    over_s: float | None = None

    def stats(self, whole: bool = True) -> dict[str, Any]:
        """The run so far; `whole`: with the histograms of the phases and the worst ticks."""
        links: dict[str, Any] = {"peers": self.peer_stats}
        if self.gateway is not None:
            links["can"] = {"gateway": {**self.gateway.stats(), "stolen": self.stolen()}}
        if self.parts.port is not None:
            links["can"] = {"native": {**self.native_info, "stolen": self.stolen()}}
        if (client := self.link or self.lockstep) is not None:
            links["vehicle"] = client.stats()
        if self.channel is not None:
            links["control"] = {**self.channel.stats(), **self.control.stats()}
        links["recording"] = {name: vars(s) for name, s in self.recorder.status().items()}
        took = None if self.began_s is None else (self.over_s or time.monotonic()) - self.began_s
        stats = run_stats(self.plan, self.parts, self.energy, self.degraded, links, self.note, self.real, took, whole)
        if self.first_fault.result:
            stats["first_fault"] = dict(self.first_fault.result)
        return stats

    def save(self) -> None:
        """What is known so far into run.json. A disk that refuses does not stop a run that is going on."""
        try:
            # the short form: writing it must not hold up the threads of the links
            self.folder.write(stats=self.stats(whole=False))
        except OSError as error:
            self.degrade(f"run.json cannot be written: {error.strerror}")

    def look_at_recorder(self) -> None:
        """A recorder that has died, or whose disk refuses, costs the recording, not the run."""
        if not self.recorder.alive():
            self.degrade("the recorder's thread has died: the recording is incomplete")
        for name, stream in self.recorder.status().items():
            if stream.cause:
                self.degrade(f"the recording of {name} has stopped: {stream.cause}")
        self.first_fault.look()

    def degrade(self, text: str) -> None:
        """Note once that something is not as it should be."""
        if text not in self.degraded:
            self.degraded.append(text)

    def took(self, *measures: Measure) -> None:
        """Real-time measures were taken: keep them for run.json, note those that did not succeed."""
        self.setup.take(*measures)
        for measure in measures:
            if not measure.ok:
                self.degrade(measure.reason)

    def realtime(self) -> list[dict[str, Any]]:
        """All real-time measures so far: name, wanted, ok, in_force, remedy, of (whom)."""
        return [m.as_dict() for m in self.setup.measures] + self.companions_realtime

    def companion_ended(self, name: str, stats: dict[str, Any]) -> None:
        """Keep what a companion counted, and which real-time measures took effect in it."""
        for measure in stats.pop("realtime", []):
            self.companions_realtime.append({**measure, "of": name})
            if not measure["ok"]:
                self.degrade(f"{name} process: {measure['in_force']}")
        self.peer_stats[name] = stats

    def stolen(self) -> str:
        """The message of ours that somebody else has sent first, in words; empty: none."""
        source = self.gateway or self.parts.port
        found = None if source is None else source.stolen_id
        if found is None or self.plan.database is None:
            return ""
        name = next((m.name for m in self.plan.database.tx_messages if bus_id(m) == found), "?")
        return f"{name} (0x{found & 0x1FFFFFFF:X})"

    def fail(self, cause: str, note: str) -> None:
        """A link failed: latch the safe state with this cause, keep the first text."""
        if self.parts.rig.request_safe(cause):
            self.note = note


def start_companion(stack: ExitStack, run: LiveRun, name: str, arguments: list[str]) -> Companion:
    """Start a companion; it is stopped, and its counts are kept, when the stack unwinds."""
    priority = max(0, run.plan.config.clock.fifo_priority - COMPANIONS_BELOW) if run.real else 0
    lock = run.real and run.plan.config.clock.lock_memory
    companion = Companion(name, arguments, run.folder.path / f"{name}.log", priority, lock)
    run.companions[name] = companion
    stack.callback(lambda: run.companion_ended(name, companion.stop()))
    return companion
