"""Sends a recorded bus to a control unit, by its times, on an absolute grid: `torqueloop bus replay`."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError, UnknownNameError, did_you_mean
from torqueloop.hil.can.bus import CanPort
from torqueloop.hil.can.database import EXTENDED
from torqueloop.hil.can.frame import Frame
from torqueloop.hil.can.load import read_database
from torqueloop.hil.can.recorded import Protector, RecordedBus
from torqueloop.hil.common.stop_flag import Stop, StopFlag
from torqueloop.hil.link.stats import AgeStatistics
from torqueloop.hil.results.links import Age

#: frames in a row that a bus refuses before it is given up
SEND_FAILURES_MAX = 200


@dataclass(frozen=True)
class Replayed:
    """What was sent, and how late."""

    frames: int = 0
    seconds: float = 0.0
    #: frames that the bus did not take
    refused: int = 0
    #: sending behind the time of the frame
    lateness: Age = field(default_factory=Age)
    #: frames of the log that were not to be sent
    others: int = 0
    #: with new counters and checksums; left as recorded although asked for
    protected: int = 0
    left: int = 0


def rest_of_bus(
    log: Path, database: Path | None, node: str | None, channel: int | str | None = None, protect: bool = False
) -> tuple[RecordedBus, Protector | None]:
    """The log without the messages of a node (the control unit that is there itself), checked; and what protects them.
    ConfigError."""
    if database is None:
        if node is not None or protect:
            key = "node" if node is not None else "protect"
            raise ConfigError("{key} needs a database", key=key, allowed="together with a database")
        recorded = RecordedBus(log, channel)
        recorded.check()
        return recorded, None
    known = read_database(database)
    nodes = sorted({n.name for n in known.nodes} | {n for m in known.messages for n in m.senders})
    if node is not None and node not in nodes:
        raise UnknownNameError("{key}: the database has no node {value}", file=str(database), key="node", value=node,
                               allowed=", ".join(nodes), hint=did_you_mean(node, nodes))  # fmt: skip
    own = {m.frame_id | EXTENDED * m.is_extended_frame for m in known.messages if node in m.senders}
    recorded = RecordedBus(log, channel, lambda can_id: can_id not in own)
    recorded.check()
    others = [n.name for n in known.nodes if n.name != node]
    return recorded, Protector(database, others) if protect else None


def replay_bus(
    frames: Iterable[tuple[float, Frame]], port: CanPort, protector: Protector | None = None, stop: Stop | None = None
) -> Replayed:
    """Send each frame at its time after the first one; one that is late is sent at once, and the grid stays. SIGTERM,
    SIGINT or `stop` end it. TorqueloopError where the bus takes nothing any more."""
    stop = StopFlag(stop)
    lateness, sent, refused, in_a_row, t_s = AgeStatistics(), 0, 0, 0, 0.0
    gc.collect()
    gc.freeze()
    start = time.monotonic_ns()
    for t_s, frame in frames:
        if not _wait(start + round(1e9 * t_s), stop):
            break
        given = frame if protector is None else protector(frame)
        lateness.add(1e-9 * (time.monotonic_ns() - start) - t_s)
        try:
            port.send(given.can_id, given.data, given.flags)
            sent, in_a_row = sent + 1, 0
        except (OSError, TorqueloopError) as error:
            refused, in_a_row = refused + 1, in_a_row + 1
            if in_a_row == SEND_FAILURES_MAX:
                raise TorqueloopError(f"bus {port.name} takes no frames: {error}") from None
    gc.unfreeze()
    others = frames.others if isinstance(frames, RecordedBus) else 0
    done, left = (protector.done, protector.left) if protector is not None else (0, 0)
    return Replayed(sent, t_s, refused, lateness.report(), others, done, left)


def _wait(due_ns: int, stop: StopFlag) -> bool:
    """Until then, in steps in which a signal is seen; False: it is to end."""
    while (ahead := due_ns - time.monotonic_ns()) > 0:
        if stop.is_set():
            return False
        time.sleep(min(1e-9 * ahead, 0.1))
    return not stop.is_set()
