"""Kind "recording": frames of a control unit from a log of any tool replace the control unit.

    [ecu.tcu]
    kind = "recording"
    start = "drive.blf"             BLF, ASC, candump (.log), MF4 bus logging, TRC, CSV
    node = "TCU"
    options = { begin_s = 0.0, protect = true }

Each frame is sent in the first tick at or after its time in the log, counted from the log's first frame. On the real
clock the process of the unit keeps this grid and reports how late it was. Time 0 is then the time of the first frame of
the rig. Until then the log's first frame is sent repeatedly, because the rig waits for its control unit. The unit sends
the messages that the database gives to the node; the rig itself sends the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.recorded import RESOLUTION_S, Protector, RecordedBus
from torqueloop.hil.common.config_file import ConfigTable, read_table
from torqueloop.hil.ecu.control_unit import Bus, EcuInputs, EcuOutputs, EcuSetup, Frame, ParticipantStats

#: so often the first frame is sent while nobody is heard [s]: seldom enough that hardly one falls between the rig's
#: first tick and its first frame
CALL_S = 0.25


class RecordingOptions(ConfigTable):
    """[ecu.NAME.options] of a recording."""

    #: Simulated time of the first frame of the log [s].
    begin_s: Annotated[float, Field(ge=-1e6, le=1e6)] = 0.0
    #: Channel of the log: a number, or a name for a candump log. By default the unit sends all channels.
    channel: int | str | None = None
    #: If true, the unit computes counters and checksums anew.
    protect: bool = False
    #: Messages that the unit sends. By default these are all messages of its node in the database.
    messages: list[str] | None = None


class RecordedUnit:
    """A control unit that sends what was recorded, whatever it receives; its clock begins with the rig's first
    frame."""

    def __init__(
        self,
        log: RecordedBus,
        period_s: float,
        begin_s: float = 0.0,
        protector: Protector | None = None,
        rig_ids: Callable[[int], bool] | None = None,
    ):
        self.log: RecordedBus = log
        self.period_s: float = period_s
        self.begin_s: float = begin_s
        self._protector = protector
        #: on a clock of its own: whether a frame is the rig's, by its identifier (bit 31 set for 29 bits)
        self._of_rig = rig_ids
        #: time of the steps at which the rig begins; None: not heard yet
        self._zero_s: float | None = None
        self._called_s = -CALL_S
        self._frames: Iterator[tuple[float, Frame]] = iter(())
        self._next: tuple[float, Frame] | None = None
        self.sent: int = 0
        self._moved_s = 0.0

    def start(self) -> None:
        """From the first frame on."""
        self._frames, self.sent, self._moved_s = iter(self.log), 0, 0.0
        self._zero_s, self._called_s = None if self._of_rig else 0.0, -CALL_S
        self._next = next(self._frames, None)

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        """What was recorded up to now and not sent yet."""
        if self._zero_s is None:
            if self._of_rig is None or not any(self._of_rig(frame.can_id) for frame in inputs.frames):
                return self._call(inputs.t_s)
            self._zero_s = inputs.t_s
        found = []
        due_s = inputs.t_s - self._zero_s - self.begin_s + RESOLUTION_S
        while self._next is not None and self._next[0] <= due_s:
            t_s, frame = self._next
            self._moved_s = max(self._moved_s, due_s - RESOLUTION_S - t_s)
            found.append(frame if self._protector is None else self._protector(frame))
            self._next = next(self._frames, None)
        self.sent += len(found)
        return EcuOutputs(tuple(found))

    def _call(self, t_s: float) -> EcuOutputs:
        """The log's first frame now and then, for the rig that waits for it."""
        if self._next is None or t_s < self._called_s + CALL_S:
            return EcuOutputs()
        self._called_s = t_s
        frame = self._next[1]
        return EcuOutputs((frame if self._protector is None else self._protector(frame),))

    def save(self) -> dict[str, Any] | None:
        """How far it is; with protection: the counters cannot be had, and it cannot."""
        return None if self._protector is not None else {"sent": self.sent}

    def load(self, data: Mapping[str, Any]) -> None:
        """To the same place of the log."""
        count = int(data["sent"])
        self.start()
        while self.sent < count and self._next is not None:
            self._next = next(self._frames, None)
            self.sent += 1

    def stop(self) -> ParticipantStats:
        """Frames sent, whether the log has more, by how much a frame was moved to the grid at most."""
        reported: dict[str, Any] = {
            "frames": self.sent,
            "log_ended": self._next is None,
            "moved_us_max": 1e6 * self._moved_s,
        }
        if self._protector is not None:
            reported |= {"protected": self._protector.done, "left_as_recorded": self._protector.left}
        return ParticipantStats(reported=reported)


def _ids_of(bus: Bus) -> Callable[[int], bool]:
    """Whether an identifier is one that the rig sends; if the rig is not known, any is."""
    if not bus.rig_node:
        return lambda can_id: True
    return CanDatabase.load(bus.database, bus.rig_node, timeouts_s={"*": 0.0}).own_ids.__contains__


def make(setup: EcuSetup) -> RecordedUnit:
    """The recording of a rig file: its log, one bus, no pins."""
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None}
    if setup.file is None:
        raise ConfigError("a recording needs its bus log", **where, key="start", allowed="a file as drive.blf")
    options = read_table(setup.options, RecordingOptions, setup.rig_file, f"{setup.table}.options")
    if setup.sensors or setup.actuators:
        key = "sensors" if setup.sensors else "actuators"
        raise ConfigError("a recording has no pins, only a bus", **where, key=key)
    if len(setup.buses) != 1:
        names = [bus.name for bus in setup.buses]
        raise ConfigError("a recording is on one bus", **where, key="bus", value=names, allowed="one name")
    [bus] = setup.buses
    try:
        database = CanDatabase.load(bus.database, bus.node, timeouts_s={"*": 0.0})
        sent = database.tx_messages
        if options.messages is not None:
            sent = tuple(database.message(name) for name in options.messages)
        ids = frozenset(bus_id(m) for m in sent)
        log = RecordedBus(setup.file, options.channel, ids.__contains__)
        log.check()
        protector = Protector(bus.database, bus.node) if options.protect else None
        rig_ids = _ids_of(bus)
    except ConfigError as error:
        raise error.located(**where, key="start") from None
    return RecordedUnit(log, setup.tick_s, options.begin_s, protector, rig_ids if setup.own_clock else None)
