"""What a vehicle model is to the rig: a small Protocol. Kinds of it are found by entry points (hil/common/plugins.py),
group "torqueloop.vehicles".

    make(VehicleSetup) -> Vehicle           reads and checks its files, starts nothing
    start()                                 processes, libraries, connections
    step(StepMessage) -> StateMessage       forces at the time of the message: the messages of the vehicle link
    save() -> data | None, load(data)       its state for checkpoints
    stop() -> ParticipantStats                     always called once start() was, whatever happened

On the virtual clock step is called before each tick, in the rig's process or over the link from a process of its own;
equal messages must give equal states. On the real clock it runs in a process of its own. Units, signs and ranges of
the messages: hil/link/messages.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Protocol

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.common.plugins import VEHICLES, find
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.results.links import ParticipantStats, PeerStats

__all__ = ["ParticipantStats", "PeerStats", "StateMessage", "StepMessage", "Vehicle", "VehicleSetup", "make_vehicle"]


@dataclass(frozen=True)
class VehicleSetup:
    """What a vehicle model receives before it is made."""

    #: `start` of the rig file: the model's own file
    file: Path | None = None
    #: mass of the car in the rig's powertrain [kg]; None: not known (a process that was started by hand)
    mass_kg: float | None = None
    #: name of that mass in the powertrain, for messages
    car: str = ""
    #: keys of the kind's own ([vehicle.options]), not checked yet: the kind does so
    options: Mapping[str, Any] = field(default_factory=dict)
    #: file and table of the rig file, for messages
    rig_file: str = ""
    table: str = "vehicle"
    #: carriers of the powertrain whose motion it gives ([vehicle] carriers); None: not known
    carriers: tuple[str, ...] | None = None


def setup_to_json(setup: VehicleSetup) -> str:
    """A set-up as text, for a process of its own."""
    return json.dumps(asdict(setup), default=str)


def setup_from_json(text: str) -> VehicleSetup:
    """Inverse of setup_to_json."""
    data = json.loads(text)
    data["file"] = None if data["file"] is None else Path(data["file"])
    data["carriers"] = None if data["carriers"] is None else tuple(data["carriers"])
    return VehicleSetup(**data)


class Vehicle(Protocol):
    """A vehicle model; the text above says when its methods are called."""

    def start(self) -> None: ...
    def step(self, message: StepMessage) -> StateMessage: ...
    def save(self) -> dict[str, Any] | None:
        """Everything that changes, as plain data (msgpack: numbers, texts, bytes, lists, maps); None: it cannot."""
        ...

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; KeyError, TypeError or ValueError when it is none of this model's."""
        ...

    def stop(self) -> ParticipantStats:
        """End it and free everything. Returns what it lost (`losses`) and its own counts (`told`), for the report. May
        be called twice."""
        ...


_METHODS = ("start", "step", "save", "load", "stop")


def make_vehicle(kind: str, setup: VehicleSetup) -> Vehicle:
    """A vehicle model of this kind, checked, not started. ConfigError: unknown kind, wrong files; PluginError."""
    found = find(VEHICLES, kind, file=setup.rig_file or None, table=setup.table or None)
    model: Vehicle = found.create(_METHODS, setup)
    return model
