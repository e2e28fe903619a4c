"""The results of a run: `RunStats` (its numbers) in `RunInfo` (which run it was, how it ended, of what it was made).

    RunInfo ── Measure ...            real-time set-up
       └── RunStats ── ClockStats     ticks, deadlines, times
                ├── BusStats ...      by name of the bus: messages, gateway or socket
                ├── VehicleStats ...  by name of the vehicle
                ├── ParticipantStats ...     by name: what control units and vehicles reported about themselves
                ├── SafeState, FirstFault, Fault ...
                ├── SolverStats, EnergyStats
                └── StreamStats ...   by name of the recorded stream

Written by the rig, read by report, gates, scripts and tests; the JSON of it: `torqueloop.hil.results.files`.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.results.clock import INLINE, NO_METRIC, ClockStats
from torqueloop.hil.results.links import BusStats, ControlStats, IoStats, ParticipantStats, TelemetryStats, VehicleStats
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.results.scenario import ScenarioInfo

#: A process of the rig that was ready waited so long for a processor: from here on a failure may be the machine's. A
#: third of the shortest time after which a silent participant is given up (0.3 s). [s]
WITHHELD_S = 0.1


@dataclass(frozen=True)
class SafeState:
    """The safe state, latched with its first cause."""

    latched: bool = False
    #: in words; empty: not latched
    cause: str = ""
    #: name of the cause, see docs/faults.md; "none"
    kind: str = "none"
    #: tick in which it was latched; -1: not
    step: int = -1
    #: physics stands still: the state of the model is not to be trusted
    frozen: bool = False


@dataclass(frozen=True)
class FirstFaultStats:
    """What became of the ticks around the first fault."""

    #: how many were kept, and in which one the safe state was latched
    ticks: int = 0
    latched: int = -1
    #: where they are, relative to the run directory, or anywhere else
    path: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class FaultWindow:
    """One time that a fault was on."""

    #: tick in which it began
    step: int
    #: first tick in which it was over; -1: it was not
    end: int = -1
    #: ticks or frames it acted on; of a node: of its first message. -1: it was not over
    acts: int = -1


@dataclass(frozen=True)
class FaultStats:
    """A fault that was injected on purpose."""

    #: signal or message it acts on
    target: str
    kind: str
    #: in words
    when: str
    value: float | None = None
    #: how often it acted: in ticks, or on frames
    ticks: int | None = None
    frames: int | None = None
    #: it acts still
    active: bool = False
    #: its name, or number in the rig file
    name: str = ""
    #: when it was on; the first of a run
    windows: list[FaultWindow] = field(default_factory=list)


@dataclass(frozen=True)
class SolverStats:
    """Work of the step, see docs/architecture.md. The names are those of the kernel's counters."""

    events: int = 0
    #: most splits in one step
    splits_max: int = 0
    #: steps that ended with a plain impulse step
    fallbacks: int = 0
    decisions: int = 0
    pivots: int = 0
    pivots_max: int = 0
    relaxed: int = 0
    evals: int = 0
    #: steps finished in one piece because torques of steep friction, gaps or joint shafts were not found to 1e-9
    steep_unsolved: int = 0
    #: trials not taken because an element without a source would have given energy
    refused: int = 0
    #: times friction gave heat back all the same: its curve is negative there, or beyond_standstill
    negative_heat: int = 0
    #: of them, where the curve is not negative: the slip ended within a step too long for how friction rises
    beyond_standstill: int = 0
    #: trials made shorter than what was left of their step, since a universal joint turned too far in it
    joint_parts: int = 0


@dataclass(frozen=True)
class EnergyStats:
    """Change of every energy of the model since arming [J], by its name."""

    #: work done on the driveline; negative = taken out
    supplied: dict[str, float] = field(default_factory=dict)
    #: heat and road load: what left for good
    lost: dict[str, float] = field(default_factory=dict)
    stored: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamStats:
    """What became of one recorded stream."""

    #: "" while all is well, else why writing stopped
    cause: str = ""
    bytes_written: int = 0
    chunks: int = 0
    #: records that could not get into the ring
    lost_records: int = 0
    #: records in the files; None: not counted
    records: int | None = None
    #: bytes drained after writing had stopped
    discarded_bytes: int = 0
    #: largest fill of the ring, 0..1
    high_water: float = 0.0
    #: longest write including fsync [s]
    write_s_max: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.cause and not self.lost_records and not self.discarded_bytes


@dataclass(frozen=True)
class RunStats:
    """All numbers of a run."""

    clock: ClockStats = field(default_factory=ClockStats, metadata=INLINE)
    #: by name; their metrics: `can_...` over all of them, `can_NAME_...` of each where there are several
    buses: dict[str, BusStats] = field(default_factory=dict, metadata=NO_METRIC)
    #: by name; their metrics: `vehicle_...`, as those of the buses
    vehicles: dict[str, VehicleStats] = field(default_factory=dict, metadata=NO_METRIC)
    #: control units, and processes of vehicle models, by name
    participants: dict[str, ParticipantStats] = field(default_factory=dict)
    #: I/O devices by name
    io: dict[str, IoStats] = field(default_factory=dict)
    control: ControlStats | None = None
    telemetry: TelemetryStats | None = None
    recording: dict[str, StreamStats] = field(default_factory=dict)
    safe_state: SafeState = field(default_factory=SafeState)
    first_fault: FirstFaultStats | None = None
    #: faults that were injected
    faults: list[FaultStats] = field(default_factory=list)
    #: ticks each output was held to its limits, by name
    outputs_limited: dict[str, int] = field(default_factory=dict)
    #: real clock: longest time that a process of the rig was ready and the machine did not run it [s]
    withheld_s: float | None = None
    #: why real time was not what was asked for
    degraded: list[str] = field(default_factory=list)
    solver: SolverStats | None = None
    #: what the steps did not resolve, one line each with its remedy; of a rig: what is known of its model before a run
    remarks: list[str] = field(default_factory=list)
    #: None: the run did not leave them (it was killed)
    energy: EnergyStats | None = None
    #: the kernel that stepped
    kernel: str | None = None
    #: hash of the state after the last tick, 16 hexadecimal digits
    hash: str | None = None

    @property
    def recorded_all(self) -> bool:
        """Everything there was to record is in the files; False where nothing was recorded at all."""
        return bool(self.recording) and all(stream.ok for stream in self.recording.values())

    @property
    def not_recorded(self) -> str:
        """What is missing of the recording, in words."""
        if not self.recording:
            return "nothing was recorded"
        return "; ".join(
            f"{name}: {stream.lost_records} records lost, {stream.discarded_bytes} bytes discarded; {stream.cause}"
            for name, stream in self.recording.items()
            if not stream.ok
        )

    def shortened(self) -> RunStats:
        """Without the large parts, for writing while the run goes on."""
        return replace(self, clock=self.clock.shortened())


@dataclass(frozen=True)
class Measure:
    """One thing asked of the system for real time, and what came of it."""

    name: str
    wanted: str
    ok: bool
    in_force: str = ""
    remedy: str = ""
    #: whom it concerns: process, loop, links, or a participant by name
    of: str = "process"


@dataclass(frozen=True)
class StartedFrom:
    """The checkpoint a run began at."""

    file: str
    #: simulated tick of it
    tick: int


@dataclass(frozen=True)
class PartOf:
    """The run that a recording is a part of; -1: nothing was recorded yet."""

    #: its directory, relative to that of the recording
    run: str
    first_tick: int = -1
    last_tick: int = -1


#: states of a run: on its way; ended by itself, by a signal, not at all
STATES = ("starting", "running", "ended", "interrupted", "hung", "failed")


@dataclass(frozen=True)
class RunInfo:
    """run.json: which run this is."""

    rig: str
    #: the rig file among the copies of the inputs; None: no run of a rig
    rig_file: str | None = None
    #: one of STATES
    state: str = "starting"
    #: when, as ISO 8601; ended None: it still runs, or it was killed
    started: str = ""
    ended: str | None = None
    #: "real", "virtual" or "offline"
    clock: str = "real"
    #: asked for [s]
    duration_s: float | None = None
    tick_s: float | None = None
    substeps: int | None = None
    powertrain: str | None = None
    #: kernel asked for, and digest of the model
    kernel: str | None = None
    model_digest: str | None = None
    #: conditions it was started with, by name
    gates: dict[str, str] = field(default_factory=dict)
    #: what its drive is held to by itself; None: nothing
    monitors: MonitorSpec | None = None
    #: endpoint of the control channel
    control: str | None = None
    #: endpoint of the telemetry
    telemetry: str | None = None
    started_from: StartedFrom | None = None
    #: a recording that a client began and ended during a run; None: a run
    part_of: PartOf | None = None
    #: the scenario it drove; None: the rig file's own driver
    scenario: ScenarioInfo | None = None
    #: values that were set instead of the rig file's, by dotted key; None: the key was taken away
    overrides: dict[str, Any] = field(default_factory=dict)
    #: why it failed
    error: str | None = None
    #: false: it failed before anything was armed, there is nothing of a run in the directory
    armed: bool = True
    #: real-time measures of the rig and its participants
    realtime: list[Measure] = field(default_factory=list)
    pid: int | None = None
    command: list[str] = field(default_factory=list)
    #: of torqueloop and of Python; the machine in words
    version: str = ""
    python: str = ""
    machine: str = ""
    #: sha256 of every input, by its path in config/
    inputs: dict[str, str] = field(default_factory=dict)
    stats: RunStats | None = None

    @property
    def over(self) -> bool:
        """The run came to its own end (also to a safe state); False for one that runs, was killed or has crashed."""
        return self.ended is not None and self.state not in ("starting", "running")
