"""Frames of the buses in forms that other tools open, written while the run goes on by the recorder's thread.

    blf    bus.blf    python-can's writer; its container is closed and its head written anew with every chunk
    asc    bus.asc    its text, whole lines after every chunk
    log    bus.log    candump's text, likewise
    mf4    bus.mf4    ASAM MDF 4.10 bus logging: heads as asammdf makes them, chunks as mf4_stream appends them

What of a killed run is readable ends with the last chunk, or the one before it. Frames are in the order of their times:
those of the last HOLD_NS of a chunk wait for the next one. Beside `bus/`, which is the recording itself.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.common.lean_imports import with_asammdf
from torqueloop.hil.record.bus_log import (
    FD_FRAME_DTYPE,
    FLAG_BRS,
    FLAG_ERROR,
    FLAG_ESI,
    FLAG_FD,
    FLAG_REMOTE,
    FLAG_TX,
    ID_EXTENDED,
    candump_lines,
    messages,
    unpack_frames,
)
from torqueloop.hil.record.file_form import FileForm
from torqueloop.hil.record.mf4 import frame_writer, no_asammdf
from torqueloop.hil.record.mf4_stream import BlockFile
from torqueloop.hil.record.recording import StreamData

BusForm = Literal["blf", "asc", "mf4", "log"]
BUS_FORMS: tuple[BusForm, ...] = ("blf", "asc", "mf4", "log")
#: a frame is at most so much older than one that was logged before it: two ticks at the slowest, and the kernel's queue
HOLD_NS = 50_000_000

Frames = NDArray[Any]


class _Writer(Protocol):
    """One form."""

    def write(self, frames: Frames) -> None:
        """In the order of their times; the file is whole afterwards."""

    def close(self) -> None: ...


class BusStreamed(FileForm):
    """One form of the frames of a run, fed with their records (`recorder.Form`)."""

    def __init__(self, form: BusForm, run_dir: Path, channels: Sequence[str], started: datetime, epoch_ns: int) -> None:
        """channels: name of each bus. started: of the run. epoch_ns: what is added to the clock of the loop to have
        time since 1970. MissingExtraError where asammdf is missing."""
        if form == "mf4" and not with_asammdf():
            raise no_asammdf()
        super().__init__(run_dir, f"bus.{form}")
        self.form, self._channels = form, list(channels)
        self._started, self._epoch_ns = started, epoch_ns
        self._writer: _Writer | None = None
        self._held: Frames = np.zeros(0, FD_FRAME_DTYPE)

    def _take(self, payload: bytes, sync: bool) -> None:
        found = unpack_frames(StreamData({}, [payload]))
        new = np.concatenate([self._held, found.astype(FD_FRAME_DTYPE) if found.dtype != FD_FRAME_DTYPE else found])
        new = new[np.argsort(new["t_ns"], kind="stable")]
        count = int(np.searchsorted(new["t_ns"], new["t_ns"][-1] - HOLD_NS)) if len(new) else 0
        self._held = new[count:].copy()
        self._write(new[:count])

    def _write(self, frames: Frames) -> None:
        if not len(frames):
            return
        if self._writer is None:
            self._writer = self._open()
        self._writer.write(frames)
        self.status = replace(self.status, bytes_written=self._path.stat().st_size, chunks=self.status.chunks + 1,
                              records=(self.status.records or 0) + len(frames))  # fmt: skip

    def _open(self) -> _Writer:
        if self._path.exists():
            raise FileExistsError(17, "there is already such a file", str(self._path))
        if self.form == "blf":
            return _Blf(self._path, self._epoch_ns)
        if self.form == "mf4":
            return _Mf4(self._path, self._started, self._epoch_ns)
        return (_Asc if self.form == "asc" else _Candump)(self._path, self._epoch_ns, self._channels)

    def _close(self) -> None:
        try:
            if not self._over:
                self._write(self._held)
        finally:
            if self._writer is not None:
                self._writer.close()
                self.status = replace(self.status, bytes_written=self._path.stat().st_size)


class _Blf:
    """Every chunk ends a container, and the head is that of a file that ends here."""

    def __init__(self, path: Path, epoch_ns: int) -> None:
        import can

        self._log, self._epoch_ns = can.BLFWriter(str(path)), epoch_ns

    def write(self, frames: Frames) -> None:
        log = self._log
        for message in messages(frames, self._epoch_ns):
            log.on_message_received(message)
        while log._buffer_size:
            log._flush()
        end = log.file.tell()
        log.file.seek(0)
        log._write_header(end)
        log.file.seek(end)
        log.file.flush()

    def close(self) -> None:
        self._log.stop()


class _Asc:
    def __init__(self, path: Path, epoch_ns: int, _: Sequence[str]) -> None:
        import can

        self._log, self._epoch_ns = can.ASCWriter(str(path)), epoch_ns

    def write(self, frames: Frames) -> None:
        for message in messages(frames, self._epoch_ns):
            self._log.on_message_received(message)
        self._log.file.flush()

    def close(self) -> None:
        self._log.stop()


class _Candump:
    def __init__(self, path: Path, epoch_ns: int, channels: Sequence[str]) -> None:
        self._file: IO[str] = path.open("x", encoding="ascii", errors="replace")
        self._channels, self._epoch_ns = channels, epoch_ns

    def write(self, frames: Frames) -> None:
        self._file.write("".join(line + "\n" for line in candump_lines(frames, self._channels, self._epoch_ns)))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


_DATA = np.dtype([
    ("t", "<f8"), ("channel", "u1"), ("id", "<u4"), ("ide", "u1"), ("dlc", "u1"), ("length", "u1"), ("data", "u1", 64),
    ("dir", "u1"), ("edl", "u1"), ("brs", "u1"), ("esi", "u1"),
])  # fmt: skip
_REMOTE = np.dtype([("t", "<f8"), ("channel", "u1"), ("id", "<u4"), ("ide", "u1"), ("dlc", "u1"), ("length", "u1"),
                    ("dir", "u1")])  # fmt: skip
#: data length code of 0 .. 64 bytes, ISO 11898-1
_DLC = np.searchsorted([*range(9), 12, 16, 20, 24, 32, 48, 64], np.arange(65)).astype(np.uint8)
_LINKS = struct.Struct("<4Q")


class _Mf4(BlockFile):
    """Groups of data, error and remote frames; their heads are those of an empty log of asammdf."""

    def __init__(self, path: Path, started: datetime, epoch_ns: int) -> None:
        empty = path.with_name(f".{path.name}")
        with frame_writer(empty, started):
            pass
        head = empty.read_bytes()
        empty.unlink()
        super().__init__(path, head.ljust((len(head) + 7) & ~7, b"\0"))
        # on the virtual clock simulated time 0 is when the run was started
        self._since_ns = round((started - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 10**9 if epoch_ns else 0
        self._since_ns -= epoch_ns
        group = _LINKS.unpack_from(head, 64 + 24)[0]
        self._groups = []
        for record in (_DATA, _DATA, _REMOTE):
            following, cg = _LINKS.unpack_from(head, group + 24)[:2]
            if struct.unpack_from("<I", head, cg + 24 + 48 + 24)[0] != record.itemsize:
                raise ValueError("asammdf makes another record of a frame than this program writes")
            self._groups.append(self.group(group, cg, record.itemsize))
            group = following

    def write(self, frames: Frames) -> None:
        flags = frames["flags"]
        error = (flags & FLAG_ERROR) != 0
        remote = ((flags & FLAG_REMOTE) != 0) & ~error
        for group, record, which in zip(
            self._groups, (_DATA, _DATA, _REMOTE), (~error & ~remote, error, remote), strict=True
        ):
            if which.any():
                group.append(self._records(frames[which], record))
        self.sync()

    def _records(self, frames: Frames, record: np.dtype[Any]) -> NDArray[Any]:
        made = np.zeros(len(frames), record)
        flags, fd = frames["flags"], (frames["flags"] & FLAG_FD) != 0
        made["t"] = (frames["t_ns"] - self._since_ns) * 1e-9
        # ASAM counts channels from 1
        made["channel"] = frames["bus"] + 1
        extended = (frames["id"] & ID_EXTENDED) != 0
        made["id"] = frames["id"] & np.where(extended, 0x1FFFFFFF, 0x7FF).astype(np.uint32)
        made["ide"] = extended
        made["dlc"] = np.where(fd, _DLC[np.minimum(frames["dlc"], 64)], frames["dlc"])
        made["dir"] = (flags & FLAG_TX) != 0
        if record is _DATA:
            made["length"], made["data"] = frames["dlc"], frames["data"]
            made["edl"], made["brs"], made["esi"] = fd, (flags & FLAG_BRS) != 0, (flags & FLAG_ESI) != 0
        return made
