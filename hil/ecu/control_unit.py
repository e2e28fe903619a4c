"""What a control unit is to the rig: a small Protocol. Kinds of it are found by entry points (hil/common/plugins.py),
group "torqueloop.ecus".

    make(EcuSetup) -> ControlUnit           reads and checks its files, starts nothing
    start()                                 processes, libraries, connections
    step(EcuInputs) -> EcuOutputs           one control period, again and again
    save() -> data | None, load(data)       its state for checkpoints
    stop() -> ParticipantStats                     always called once start() was, whatever happened

Time: step k is called at t = k period_s of simulated time, before the tick of the rig that begins there. It is given
what came since step k - 1 and the sensors at t; what it returns reaches the tick at t. On the virtual clock that is
exact, and equal inputs must give equal outputs: no clock of its own, no random numbers without a fixed seed. On the
real clock the same object runs in a process of its own on the buses. There it is given the sensors of the newest tick,
and the next tick takes what it returns.

A unit that cannot go on raises a TorqueloopError (PeerError of hil/link/endpoints.py) that says what was seen: the rig
latches its safe state with that text. It is called by one thread at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Protocol

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.frame import Frame
from torqueloop.hil.common.plugins import ECUS, find
from torqueloop.hil.results.links import ParticipantStats, PeerStats

__all__ = [
    "Bus",
    "ControlUnit",
    "EcuInputs",
    "EcuOutputs",
    "EcuSetup",
    "Frame",
    "ParticipantStats",
    "PeerStats",
    "Pin",
    "make_unit",
]


@dataclass(frozen=True)
class Bus:
    """A bus the control unit is on."""

    #: as in the rig file
    name: str
    database: Path
    #: the unit's node in the database
    node: str
    #: how a process of its own opens it
    place: CanBusConfig
    #: the rig's node in the database: what this node sends, the rig sends; "": not known
    rig_node: str = ""


@dataclass(frozen=True)
class Pin:
    """A number that goes to or comes from a control unit directly, not over a bus."""

    #: as the control unit calls it
    name: str
    #: SI symbol: "rad/s", "Pa", "1"
    unit: str


@dataclass(frozen=True)
class EcuSetup:
    """What a control unit receives before it is made."""

    #: as in the rig file, [ecu.NAME]
    name: str
    #: length of the rig's tick [s]
    tick_s: float
    #: `start` of the rig file: the unit's own file (configuration, library ...)
    file: Path | None = None
    #: Frame.bus counts these
    buses: tuple[Bus, ...] = ()
    sensors: tuple[Pin, ...] = ()
    actuators: tuple[Pin, ...] = ()
    #: keys of the kind's own ([ecu.NAME.options]), not checked yet: the kind does so
    options: Mapping[str, Any] = field(default_factory=dict)
    #: file and table of the rig file, for messages
    rig_file: str = ""
    table: str = ""
    #: where a log of its own may be written; None: nowhere
    folder: Path | None = None
    #: True: a process of its own steps it on the real clock; it begins before the rig does, which starts once it has
    #: heard the unit
    own_clock: bool = False
    #: real clock: descriptor of the memory of sensors and actuators (hil/ecu/pins.py), which its process inherits
    pins: int | None = None


def setup_to_json(setup: EcuSetup) -> str:
    """A set-up as text, for a process of its own."""
    return json.dumps(asdict(setup), default=str)


def setup_from_json(text: str) -> EcuSetup:
    """Inverse of setup_to_json."""
    data = json.loads(text)
    for key in ("file", "folder"):
        data[key] = None if data[key] is None else Path(data[key])
    data["buses"] = tuple(
        Bus(b["name"], Path(b["database"]), b["node"], CanBusConfig(**b["place"]), b["rig_node"]) for b in data["buses"]
    )
    data["sensors"] = tuple(Pin(**pin) for pin in data["sensors"])
    data["actuators"] = tuple(Pin(**pin) for pin in data["actuators"])
    return EcuSetup(**data)


@dataclass(frozen=True, slots=True)
class EcuInputs:
    """What a control unit gets at the beginning of a control period."""

    #: simulated time [s]
    t_s: float
    #: frames of other nodes since the last step, in the order they were sent
    frames: tuple[Frame, ...] = ()
    #: one number for each of EcuSetup.sensors, SI
    sensors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class EcuOutputs:
    """What it answers."""

    #: frames to be sent now, in this order
    frames: tuple[Frame, ...] = ()
    #: one number for each of EcuSetup.actuators, SI; held until the next step
    actuators: tuple[float, ...] = ()


class ControlUnit(Protocol):
    """A control unit; the text above says when its methods are called."""

    @property
    def period_s(self) -> float:
        """Control period [s], a whole number of ticks."""
        ...

    def start(self) -> None: ...
    def step(self, inputs: EcuInputs) -> EcuOutputs: ...
    def save(self) -> dict[str, Any] | None:
        """Everything that changes, as plain data (msgpack: numbers, texts, bytes, lists, maps); None: it cannot."""
        ...

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; KeyError, TypeError or ValueError when it is none of this unit's."""
        ...

    def stop(self) -> ParticipantStats:
        """End it and free everything. Returns its own counts (`reported`) and the frames sent to it that it has lost
        (`losses`), for reports. May be called more than once."""
        ...


_METHODS = ("period_s", "start", "step", "save", "load", "stop")


def make_unit(kind: str, setup: EcuSetup) -> ControlUnit:
    """A control unit of this kind, checked, not started. ConfigError: unknown kind, wrong files; PluginError."""
    found = find(ECUS, kind, file=setup.rig_file or None, table=setup.table or None)
    unit: ControlUnit = found.create(_METHODS, setup)
    return unit
