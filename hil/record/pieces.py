"""A recording piece by piece: memory for one chunk, however long the recording is."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.record.recording import SUFFIX, Bad, Damage, RecordingError, head_of, scan
from torqueloop.hil.record.run_data import described, signal_dtype


@dataclass
class Pieces:
    """The chunks of one stream folder, read as they are asked for."""

    folder: Path
    header: dict[str, Any]
    #: what could not be read, of the chunks asked for so far
    damage: list[Damage] = field(default_factory=list)
    #: the end mark was there; known when all chunks were asked for
    closed: bool = False

    @classmethod
    def of(cls, folder: Path | str) -> Pieces:
        """Open a stream; RecordingError where there is none."""
        folder = Path(folder)
        cause = ""
        for path in _files(folder):
            with _mapped(path) as data:
                header, _, cause = head_of(data)
            if header is not None:
                return cls(folder, header)
        raise RecordingError(f"{folder}: {cause}; nothing in it can be read")

    def __iter__(self) -> Iterator[bytes]:
        expected = 0
        self.damage, self.closed = [], False
        for path in _files(self.folder):
            with _mapped(path) as data:
                header, start, cause = head_of(data)
                if header is None:
                    self.damage.append(Damage(path.name, 0, len(data), cause))
                    continue
                for chunk in scan(data, start):
                    if isinstance(chunk, Bad):
                        self.damage.append(Damage(path.name, chunk.offset, chunk.n_bytes, chunk.cause))
                        continue
                    if chunk.seq < expected:
                        size = len(chunk.payload)
                        self.damage.append(Damage(path.name, chunk.offset, size, "chunk out of order", False))
                        continue
                    if chunk.seq > expected:
                        missing = chunk.seq - expected
                        self.damage.append(Damage(path.name, chunk.offset, 0, "chunks missing", False, missing))
                    expected, self.closed = chunk.seq + 1, not chunk.payload
                    if chunk.payload:
                        yield chunk.payload


@dataclass
class SignalPieces:
    """Recorded signals, some thousand ticks at a time: (tick, values by column)."""

    pieces: Pieces
    names: list[str]
    units: list[str]
    tick_s: float
    every: int

    @classmethod
    def of(cls, run_dir: Path | str, stream: str = "signals") -> SignalPieces:
        """The signals of a run; RecordingError where none were recorded."""
        pieces = Pieces.of(Path(run_dir) / stream)
        if pieces.header.get("kind") != "signals" or pieces.header.get("version") != 1:
            raise RecordingError(f"{pieces.folder}: no recording of signals of version 1")
        return cls(pieces, *described(pieces.header, str(pieces.folder)))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Records as they stand in the file (see signal_dtype)."""
        dtype = signal_dtype(len(self.names))
        for payload in self.pieces:
            yield np.frombuffer(payload, dtype, len(payload) // dtype.itemsize)


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*" + SUFFIX)) if folder.is_dir() else []
    if not files:
        raise RecordingError(f"{folder}: no recording here (no *{SUFFIX} file)")
    return files


def _mapped(path: Path) -> AbstractContextManager[bytes | mmap.mmap]:
    """The file's bytes without reading them; pages are the system's to take back."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            # a writer that was killed as it began its next file; nothing can be mapped
            return nullcontext(b"")
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
