"""What is on a bus: every identifier with its times, what the database knows of it, what a node waits for in vain."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.hil.can.bus import CanBusConfig, open_bus
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import ERROR_FLAG, EXTENDED, FD_FLAG, REMOTE_FLAG
from torqueloop.hil.can.load import read_database
from torqueloop.hil.can.recorded import flags_of, log_messages

#: (time [s], identifier with bit 31 set for 29-bit ones, data, flags)
Frame = tuple[float, int, bytes, int]
#: more identifiers than that are noise: the rest is only counted
IDENTIFIERS_MAX = 4096


@dataclass
class Heard:
    """One identifier."""

    can_id: int
    #: of the database; "": it does not know it
    name: str = ""
    senders: list[str] = field(default_factory=list)
    frames: int = 0
    #: data bytes seen
    lengths: list[int] = field(default_factory=list)
    #: data bytes and cycle time of the database [s]
    length: int | None = None
    cycle_s: float | None = None
    #: of the times between two frames [s]
    mean_s: float | None = None
    min_s: float | None = None
    max_s: float | None = None
    #: frames that the node would refuse, by reason
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def remarks(self) -> list[str]:
        """What is not as the database says."""
        found = []
        if self.length is not None and self.lengths != [self.length]:
            found.append(f"{', '.join(map(str, self.lengths))} data bytes, not {self.length}")
        if self.cycle_s and self.mean_s is not None and not 0.8 < self.mean_s / self.cycle_s < 1.25:
            found.append(f"every {1e3 * self.mean_s:.0f} ms, not {1e3 * self.cycle_s:g}")
        return found + [f"{n} refused: {reason}" for reason, n in self.refused.items()]


@dataclass
class Scan:
    """What was received in a time."""

    seconds: float
    frames: int = 0
    #: error and remote frames; frames of identifiers beyond IDENTIFIERS_MAX
    errors: int = 0
    remote: int = 0
    more: int = 0
    heard: list[Heard] = field(default_factory=list)
    #: messages the node receives, by the database, that nobody sends: name -> senders
    missing: dict[str, list[str]] = field(default_factory=dict)
    #: messages of the node itself that were not heard
    silent: list[str] = field(default_factory=list)


def log_frames(path: Path, channel: str | None = None) -> Iterator[Frame]:
    """Frames of a log that python-can reads (ASC, BLF, candump, CSV, TRC, MF4). channel: of the log, as python-can
    gives it (a number, of candump a name); None: all. ConfigError when the log has no frame of this channel."""
    seen: set[str] = set()
    for m in log_messages(path):
        seen.add(str(m.channel))
        if channel is not None and str(m.channel) != channel:
            continue
        yield m.timestamp, m.arbitration_id | EXTENDED * m.is_extended_id, bytes(m.data or b""), flags_of(m)
    if channel is not None and channel not in seen:
        raise ConfigError("the log has no frame on channel {value}", file=str(path), key="log-channel", value=channel,
                          allowed=", ".join(sorted(seen)) or "none: the log is empty")  # fmt: skip


def bus_frames(config: CanBusConfig, seconds: float) -> Iterator[Frame]:
    """Frames of a bus for a time; nothing is sent."""
    port = open_bus(config)
    try:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            frame = port.recv(min(left, 0.1))
            if frame is not None:
                yield (time.monotonic(), *frame)
    finally:
        port.close()


class _Scanner:
    def __init__(self, database: Path | None, node: str | None) -> None:
        self.known: dict[int, Any] = {}
        self.codec = None
        self.node = node
        if database is not None:
            raw = read_database(database)
            self.known = {m.frame_id | EXTENDED * m.is_extended_frame: m for m in raw.messages}
            named = {n for m in raw.messages for n in (*m.senders, *m.receivers)}
            nodes = sorted({n.name for n in raw.nodes} | named)
            if node is not None and node not in nodes:
                raise UnknownNameError("{key}: the database has no node {value}", file=str(database), key="node",
                                       value=node,
                                       allowed=", ".join(nodes), hint=did_you_mean(node, nodes))  # fmt: skip
            if node is not None and any(n.name == node for n in raw.nodes):
                self.codec = CanDatabase.load(database, node).codec()
        elif node is not None:
            raise ConfigError("{key} = {value}: a node belongs to a database", key="node", value=node,
                              allowed="together with a database")  # fmt: skip
        self.rows: dict[int, Heard] = {}
        self.last: dict[int, float] = {}
        self.first: dict[int, float] = {}

    def take(self, scan: Scan, frame: Frame) -> None:
        t, can_id, data, flags = frame
        scan.frames += 1
        if flags & ERROR_FLAG:
            scan.errors += 1
            return
        if flags & REMOTE_FLAG:
            scan.remote += 1
            return
        row = self.rows.get(can_id)
        if row is None:
            if len(self.rows) == IDENTIFIERS_MAX:
                scan.more += 1
                return
            row = self.rows[can_id] = self.new(can_id)
            self.first[can_id] = t
        else:
            gap = t - self.last[can_id]
            row.min_s = gap if row.min_s is None else min(row.min_s, gap)
            row.max_s = gap if row.max_s is None else max(row.max_s, gap)
        self.last[can_id] = t
        row.frames += 1
        if len(data) not in row.lengths:
            row.lengths = sorted([*row.lengths, len(data)])
        if self.codec is not None:
            status, _ = self.codec.decode(can_id, data, t, flags & FD_FLAG)
            if status not in ("ok", "unknown"):
                row.refused[status] = row.refused.get(status, 0) + 1

    def new(self, can_id: int) -> Heard:
        message = self.known.get(can_id)
        if message is None:
            return Heard(can_id)
        cycle = message.cycle_time
        return Heard(can_id, message.name, list(message.senders), length=message.length,
                     cycle_s=cycle / 1e3 if cycle else None)  # fmt: skip

    def finish(self, scan: Scan) -> Scan:
        scan.heard = [self.rows[can_id] for can_id in sorted(self.rows)]
        for row in scan.heard:
            if row.frames > 1:
                row.mean_s = (self.last[row.can_id] - self.first[row.can_id]) / (row.frames - 1)
        names = {row.name for row in scan.heard}
        for message in self.known.values():
            if message.name in names or self.node is None:
                continue
            if self.node in message.senders:
                scan.silent.append(message.name)
            elif self.node in message.receivers:
                scan.missing[message.name] = list(message.senders)
        return scan


def scan(frames: Iterable[Frame], database: Path | None = None, node: str | None = None) -> Scan:
    """Look at frames; ConfigError for a database or node that is not there."""
    scanner = _Scanner(database, node)
    found = Scan(0.0)
    first = last = None
    for frame in frames:
        first = frame[0] if first is None else first
        last = frame[0]
        scanner.take(found, frame)
    found.seconds = (last or 0.0) - (first or 0.0)
    return scanner.finish(found)
