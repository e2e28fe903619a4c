"""What is alive during a run, on either clock: rig, links, participants, recorder; and its statistics."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from typing import Protocol

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.can.bus import CanGateway
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.control.server import ControlServer
from torqueloop.hil.link.latest_value import RigLink
from torqueloop.hil.link.lockstep import LockstepClient
from torqueloop.hil.realtime.rtenv import Measure, Setup
from torqueloop.hil.realtime.withheld import AWAY_S, RIG, Withheld
from torqueloop.hil.record.mode_log import ModeLog
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_folder import RunFolder
from torqueloop.hil.results.links import ControlStats, Interface, ParticipantStats
from torqueloop.hil.results.run import Measure as MeasureTold
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.assemble.virtual_links import VirtualVehicle
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.resolve.plan import RigPlan
from torqueloop.hil.rig.run.first_fault import FirstFaultWriter
from torqueloop.hil.rig.run.participants import Ended, Participant
from torqueloop.hil.rig.run.recordings import LiveRecordings
from torqueloop.hil.rig.run.run_stats import VEHICLE, Energy, Links, run_stats
from torqueloop.hil.rig.run.telemetry import Telemetry

#: the session looks after links, progress and rings this often [s]
LOOK_S = 0.05
#: run.json is rewritten this often [s]
STATS_S = 1.0
#: a loop that does not come back after stop() is given up after this [s]
GIVE_UP_S = 5.0
#: SCHED_FIFO priorities below the loop's: threads that serve its links, then the participant processes. On a loaded
#: desktop an ordinary process waits up to 100 ms for a CPU, long enough for the participants to look silent
LINKS_BELOW, COMPANIONS_BELOW = 20, 30


class Pilot(Protocol):
    """Who goes along with a run in its own process: a test that drives it (hil/testing)."""

    def attached(self, run: LiveRun) -> None:
        """Everything is built, nothing is started."""

    def between(self) -> None:
        """Virtual clock, before each tick, in the run's thread: may hold the run."""


class StartError(TorqueloopError):
    """A participant did not start; nothing was armed."""


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
    #: those that clients begin and end
    recordings: LiveRecordings
    degraded: list[str] = field(default_factory=list)
    #: real-time measures of this process and its threads; those of participants, as they reported them at their end
    setup: Setup = field(default_factory=Setup)
    participants_realtime: list[MeasureTold] = field(default_factory=list)
    participants: dict[str, Participant] = field(default_factory=dict)
    #: by the name of the bus
    gateways: dict[str, CanGateway] = field(default_factory=dict)
    #: what was found of the CAN interface and its socket (native SocketCAN), by the name of the bus
    interfaces: dict[str, Interface] = field(default_factory=dict)
    link: RigLink | None = None
    #: virtual clock: the vehicle in lockstep, over the link or in this process
    lockstep: LockstepClient | VirtualVehicle | None = None
    channel: ControlServer | None = None
    telemetry: Telemetry | None = None
    participant_stats: dict[str, ParticipantStats] = field(default_factory=dict)
    #: how long the machine did not run this process and the participants
    withheld: Withheld = field(default_factory=Withheld)
    #: first failure of a link in words
    note: str = ""
    #: the loop did not come back: it is not waited for any more
    given_up: bool = False
    #: wall time when tick 0 was due and when the last one was done [s]; None: not yet
    began_s: float | None = None
    over_s: float | None = None

    def stats(self, whole: bool = True) -> RunStats:
        """The run so far; `whole`: with the histograms of the phases and the worst ticks."""
        client = self.link or self.lockstep
        links = Links(
            gateways={name: gateway.stats() for name, gateway in self.gateways.items()},
            interfaces=dict(self.interfaces),
            foreign={bus.name: self.foreign(bus.name) for bus in self.plan.buses},
            vehicles={} if client is None else {VEHICLE: client.stats()},
            participants=self.participant_stats,
            control=self._control_stats(),
            telemetry=None if self.telemetry is None else self.telemetry.stats(),
            recording=self.recorder.status(),
            first_fault=self.first_fault.result,
        )
        away_s = self.withheld.longest_s if self.withheld.who == RIG else 0.0
        note = self.note or (f"the rig itself was not run for {away_s:.1f} s" if away_s > AWAY_S else "")
        took = None if self.began_s is None else (self.over_s or time.monotonic()) - self.began_s
        made = run_stats(self.plan, self.parts, self.energy, links, self.degraded, note, self.real, took, whole)
        return replace(made, withheld_s=self.withheld.longest_s) if self.real else made

    def _control_stats(self) -> ControlStats | None:
        """Counts of the control channel, with what it has done to the rig; None: there is none."""
        return None if self.channel is None else replace(self.channel.stats(), **self.control.stats())

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

    def look_at_machine(self, away_s: float) -> None:
        """away_s: this process was not run for so long: it was stopped, or its machine. A silence it saw is its own."""
        alive = [(name, c.process.pid) for name, c in self.participants.items() if c.process.poll() is None]
        self.withheld.look([(RIG, os.getpid()), *alive], away_s)
        if away_s > AWAY_S:
            self.degrade(f"the rig itself was not run for {away_s:.1f} s (stopped, suspended, or the machine withheld)")

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

    def realtime(self) -> list[MeasureTold]:
        """All real-time measures so far, those of participants as they reported them."""
        return [m.report() for m in self.setup.measures] + self.participants_realtime

    def participant_ended(self, name: str, ended: Ended) -> None:
        """Keep what a participant counted, and which real-time measures took effect in it."""
        for measure in ended.realtime:
            self.participants_realtime.append(replace(measure, of=name))
            if not measure.ok:
                self.degrade(f"{name} process: {measure.in_force}")
        self.participant_stats[name] = ended.stats

    def foreign(self, bus: str) -> str:
        """The message of ours that another node has sent first on a bus, as text; empty: none."""
        source = self.gateways.get(bus) or self.parts.bus(bus).port
        found = None if source is None else source.foreign_id
        if found is None:
            return ""
        messages = self.plan.bus(bus).database.tx_messages
        return f"{next((m.name for m in messages if bus_id(m) == found), '?')} (0x{found & 0x1FFFFFFF:X})"

    def fail(self, cause: str, note: str) -> None:
        """A link failed: latch the safe state with this cause, keep the first text."""
        if self.parts.rig.request_safe(cause):
            self.note = note


def start_participant(
    stack: ExitStack, run: LiveRun, name: str, arguments: list[str], pass_fds: Sequence[int] = ()
) -> Participant:
    """Start a participant; it is stopped, and its counts are kept, when the stack unwinds."""
    priority = max(0, run.plan.config.clock.fifo_priority - COMPANIONS_BELOW) if run.real else 0
    lock = run.real and run.plan.config.clock.lock_memory
    participant = Participant(name, arguments, run.folder.path / f"{name}.log", priority, lock, pass_fds)
    run.participants[name] = participant
    stack.callback(lambda: run.participant_ended(name, participant.stop()))
    return participant
