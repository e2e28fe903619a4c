"""Frames of a recorded bus, to be sent again: from any log that python-can reads, by their times in it.

    RecordedBus(log, channel)          (time since the log's first frame [s], frame), one after the other
    only=ids                           of these identifiers; default: all
    Protector(database, node)          counters and checksums made anew, as the database says

Error and remote frames are left out. Memory is that of some frames, whatever the length of the log; an
MF4 log is read group by group into memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.blf_containers import check_containers
from torqueloop.hil.can.database import CanDatabase, E2ESettings, bus_id
from torqueloop.hil.can.frame import BRS_FLAG, ERROR_FLAG, ESI_FLAG, EXTENDED, FD_FLAG, REMOTE_FLAG, Frame
from torqueloop.hil.can.mf4_blocks import check_blocks
from torqueloop.hil.common.lean_imports import with_asammdf

if TYPE_CHECKING:
    import can

#: endings of the logs that are read
SUFFIXES = (".blf", ".asc", ".log", ".mf4", ".trc", ".csv", ".db")
#: ending -> raises ValueError where reading would take much memory
_BOUNDED: dict[str, Callable[[Path], None]] = {".blf": check_containers, ".mf4": check_blocks}
#: data bytes of the longest frame
LONGEST = 64
#: the coarsest of them has microseconds: so much may lie between a frame and its time in a log [s]
RESOLUTION_S = 2e-6


def log_messages(path: Path) -> Iterator[can.Message]:
    """The messages of a log; ConfigError where it cannot be read."""
    import can

    if path.suffix.lower() == ".mf4" and not with_asammdf():
        needed = "reading MF4 needs asammdf, which is not installed: pip install 'torqueloop[mf4]'"
        raise ConfigError(needed, file=str(path))
    try:
        if check := _BOUNDED.get(path.suffix.lower()):
            check(path)
        with can.LogReader(path) as reader:
            for message in reader:
                # the readers take some values as they stand in the log, whatever they are
                can_id, t_s, data = message.arbitration_id, message.timestamp, message.data or b""
                if not (0 <= can_id < 1 << 29 and math.isfinite(t_s) and len(data) <= LONGEST):
                    raise ValueError(f"identifier {can_id}, time {t_s} s, {len(data)} data bytes are no frame")
                yield message
    except ConfigError:
        raise
    except Exception as error:  # readers of python-can raise many kinds
        raise ConfigError(f"bus log cannot be read: {error or type(error).__name__}", file=str(path)) from None


def flags_of(m: can.Message) -> int:
    """Flags of a message as a frame has them."""
    flags = FD_FLAG * m.is_fd | BRS_FLAG * m.bitrate_switch | ESI_FLAG * m.error_state_indicator
    return flags | ERROR_FLAG * m.is_error_frame | REMOTE_FLAG * m.is_remote_frame


class RecordedBus:
    """The data frames of a log in their order. Iterate as often as wanted."""

    def __init__(
        self,
        path: Path,
        channel: int | str | None = None,
        only: Callable[[int], bool] = lambda can_id: True,
        bus: int = 0,
    ) -> None:
        """channel: of the log, as python-can gives it (a number, of candump a name); None: all. only: whether an
        identifier (bit 31 set for 29-bit ones) is wanted. bus: of the frames that come out."""
        self.path: Path = path
        self.channel: int | str | None = channel
        self.bus: int = bus
        self._only = only
        #: channels seen, and frames passed over that were not wanted, of the last time
        self.channels: set[str] = set()
        self.others: int = 0

    def __iter__(self) -> Iterator[tuple[float, Frame]]:
        first: float | None = None
        self.channels, self.others = set(), 0
        for m in log_messages(self.path):
            first = m.timestamp if first is None else first
            flags = flags_of(m)
            if m.channel is not None:
                self.channels.add(str(m.channel))
            can_id = m.arbitration_id | EXTENDED * m.is_extended_id
            if flags & (ERROR_FLAG | REMOTE_FLAG) or not self._on_channel(str(m.channel)) or not self._only(can_id):
                self.others += 1
                continue
            yield m.timestamp - first, Frame(can_id, bytes(m.data or b""), flags, self.bus)

    def _on_channel(self, channel: str) -> bool:
        return self.channel is None or channel == str(self.channel)

    def check(self) -> None:
        """ConfigError when the log cannot be read, or has nothing that is wanted."""
        if not os.path.isfile(self.path):
            raise ConfigError("there is no such bus log", file=str(self.path))
        if self.path.suffix.lower() not in SUFFIXES:
            raise ConfigError("no bus log ends like this: {value}", file=str(self.path), value=self.path.suffix,
                              allowed=", ".join(SUFFIXES))  # fmt: skip
        if next(iter(self), None) is None:
            channels = ", ".join(sorted(self.channels)) or "none"
            where = "" if self.channel is None else f" on channel {self.channel}"
            raise ConfigError(f"the bus log has no frame that is to be sent{where}: {self.others} others, "
                              f"channels {channels}", file=str(self.path))  # fmt: skip


class Protector:
    """Frames of a node with counters and checksums made anew, each message counting from its first frame on.

    The signals of a frame are read without its protection and written with it: bits of which the database knows no
    signal become 0. A frame that the database does not have like this (length, value outside its limits) stays as it is
    and is counted.
    """

    def __init__(self, database: Path, node: str | Sequence[str]) -> None:
        """node: or several. ConfigError for a database or node that is not there."""
        sender = CanDatabase.load(database, node)
        self._messages = {bus_id(m): m.name for m in sender.tx_messages}
        names = list(self._messages.values())
        bare = dict.fromkeys(names, E2ESettings())
        reader = CanDatabase.load(
            database, node, send=(), receive=names, e2e=bare, timeouts_s={"*": 0.0}, check_limits=False
        )
        self._sender, self._reader = sender.codec(), reader.codec()
        self._signals = {m.name: {s.name for s in m.signals} for m in sender.tx_messages}
        #: identifiers it can do this for
        self.ids: frozenset[int] = frozenset(self._messages)
        #: frames done, and left as they are
        self.done: int = 0
        self.left: int = 0

    def __call__(self, frame: Frame) -> Frame:
        """The frame, protected."""
        name = self._messages.get(frame.can_id)
        if name is None:
            self.left += 1
            return frame
        status, values = self._reader.decode(frame.can_id, frame.data, 0.0, frame.flags & FD_FLAG)
        if status != "ok":
            self.left += 1
            return frame
        try:
            data = self._sender.encode(name, {n: x for n, x in values.items() if n in self._signals[name]})
        except (ValueError, ConfigError):
            self.left += 1
            return frame
        self.done += 1
        return Frame(frame.can_id, data, frame.flags, frame.bus)
