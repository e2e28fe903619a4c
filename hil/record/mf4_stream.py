"""Signals as ASAM MDF 4.10 while a run goes on: one sorted group of doubles, a file that is whole after every chunk.

    ID  HD ─ FH                     made with the first chunk, whose time is that of the file
        └─ DG ─ CG ─ CN(t) ─ CN ─ CN ...
            └─ DL ─ DL ─ DL ...     a chunk each: DT (its records), then the DL that names it

A chunk is appended first, then the link of the DL before it is set, then the number of records of the group: each one
write of 8 bytes. So whatever kills the process leaves a finalised file that ends with the last chunk or the one before,
and closing has nothing to mend. Layout: ASAM MDF 4.1, chapter 5.
"""

from __future__ import annotations

import html
import os
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import torqueloop

_HEAD = struct.Struct("<4sIQQ")
_LINK = struct.Struct("<Q")
#: cn_type, cn_sync_type, cn_data_type of the standard
_VALUE, _MASTER, _TIME, _FLOAT = 0, 2, 1, 4


def block(name: str, links: Sequence[int], data: bytes = b"") -> bytes:
    """A block of MDF 4, padded to 8 bytes."""
    length = _HEAD.size + 8 * len(links) + len(data)
    head = _HEAD.pack(b"##" + name.encode(), 0, length, len(links))
    return (head + struct.pack(f"<{len(links)}Q", *links) + data).ljust((length + 7) & ~7, b"\0")


class BlockFile:
    """A file of blocks that grows behind its heads. OSError from a disk that refuses; it then ends as it did before."""

    def __init__(self, path: Path, head: bytes) -> None:
        self.path: Path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self.bytes_written: int = 0
        try:
            self._append(head)
        except OSError:
            self.close()
            raise

    def group(self, data_group: int, channel_group: int, record: int) -> Group:
        """The group of channels whose blocks stand at these bytes; record: its length [bytes]."""
        return Group(self, data_group + _HEAD.size + 8 * 2, channel_group + _HEAD.size + 8 * 6 + 8, record)

    def add_chunk(self, rows: bytes, before: int, link: int) -> int:
        """Append records, then the list that names them, and set the link to it; place of the link to the next one.
        before: bytes of the group so far."""
        at = self.bytes_written
        data = block("DT", (), rows)
        place = at + len(data)
        # one data block, not all of equal length, at this byte of the group's data
        self._append(data + block("DL", (0, at), struct.pack("<B3xIQ", 0, 1, before)))
        self.patch(link, place)
        return place + _HEAD.size

    def patch(self, place: int, number: int) -> None:
        """One number of 8 bytes."""
        os.pwrite(self._fd, _LINK.pack(number), place)

    def _append(self, data: bytes) -> None:
        view, at = memoryview(data), self.bytes_written
        try:
            while view:
                done = os.pwrite(self._fd, view, at)
                view, at = view[done:], at + done
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self.bytes_written += len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sync(self) -> None:
        """To the disk."""
        if self._fd >= 0:
            os.fsync(self._fd)

    def close(self) -> None:
        """Release the file; may be called twice."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class Group:
    """One sorted group of records of a block file."""

    def __init__(self, file: BlockFile, link: int, cycles: int, record: int) -> None:
        """link: place of the link to its data. cycles: place of the number of its records."""
        self._file, self._link, self._cycles, self._record = file, link, cycles, record
        self.records: int = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Append whole records."""
        self._link = self._file.add_chunk(rows.tobytes(), self.records * self._record, self._link)
        self.records += len(rows)
        self._file.patch(self._cycles, self.records)


class Mf4Stream(BlockFile):
    """Writes one group of channels."""

    def __init__(self, path: Path | str, names: Sequence[str], units: Sequence[str], start: datetime) -> None:
        """names and units of the channels beside the time (`t`, s), all float64; start: when t was 0."""
        self._columns = len(names)
        # no unit is what others write for a number
        written = ["" if unit == "1" else unit for unit in units]
        head, data_group, channel_group = _heads(list(names), written, start)
        super().__init__(Path(path), head)
        self._group = self.group(data_group, channel_group, 8 * (1 + self._columns))

    @property
    def records(self) -> int:
        """Records so far."""
        return self._group.records

    def write(self, t: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Append records: times (n) and values (n, channels)."""
        if not len(t):
            return
        rows = np.empty((len(t), 1 + self._columns))
        rows[:, 0], rows[:, 1:] = t, values
        self._group.append(rows)


def _heads(names: list[str], units: list[str], start: datetime) -> tuple[bytes, int, int]:
    """(everything in front of the data, place of the data group, of the channel group)."""
    # whole microseconds: a double holds no nanoseconds since 1970
    since = start - datetime(1970, 1, 1, tzinfo=UTC)
    start_ns = (since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds) * 1000
    made = bytearray(
        b"MDF     4.10    torqulp\0" + bytes(4) + struct.pack("<H", 410) + bytes(30) + struct.pack("<HH", 0, 0)
    )
    hd = len(made)
    made += block("HD", [0] * 6, struct.pack("<QhhBBBBdd", start_ns, 0, 0, 0, 0, 0, 0, 0.0, 0.0))

    def link(place: int, number: int, to: int) -> None:
        _LINK.pack_into(made, place + _HEAD.size + 8 * number, to)

    def add(data: bytes) -> int:
        made.extend(data)
        return len(made) - len(data)

    def text(words: str, name: str = "TX") -> int:
        return add(block(name, (), words.encode() + b"\0"))

    tool = (
        '<FHcomment xmlns="http://www.asam.net/mdf/v4"><TX>recorded</TX><tool_id>torqueloop</tool_id>'
        f"<tool_vendor>torqueloop</tool_vendor><tool_version>{html.escape(torqueloop.__version__)}</tool_version></FHcomment>"
    )
    comment = text(tool, "MD")
    link(hd, 1, add(block("FH", (0, comment), struct.pack("<QhhB3x", start_ns, 0, 0, 0))))
    dg = add(block("DG", [0] * 4, bytes(8)))
    link(hd, 0, dg)
    note = text("torqueloop signals")
    cg = add(block("CG", [0, 0, 0, 0, 0, note], struct.pack("<QQHH4xII", 0, 0, 0, 0, 8 * (1 + len(names)), 0)))
    link(dg, 1, cg)
    before, number = cg, 1
    written: dict[str, int] = {}
    for k, (name, unit) in enumerate([("t", "s"), *zip(names, units, strict=True)]):
        if unit not in written:
            written[unit] = text(unit) if unit else 0
        kind = (_MASTER, _TIME) if k == 0 else (_VALUE, 0)
        facts = struct.pack("<BBBBIIIIBxH6d", *kind, _FLOAT, 0, 8 * k, 64, 0, 0, 0, 0, *[0.0] * 6)
        cn = add(block("CN", [0, 0, text(name), 0, 0, 0, written[unit], 0], facts))
        link(before, number, cn)
        before, number = cn, 0
    return bytes(made), dg, cg
