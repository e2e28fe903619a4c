"""A recording piece by piece: memory for one chunk, however long the recording is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.record.columns import LayoutError, decode
from torqueloop.hil.record.recording import Damage, StreamReader
from torqueloop.hil.record.run_data import ROWS, described, signals_version
from torqueloop.hil.record.signals import signal_dtype


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
        reader = StreamReader(folder)
        next(iter(reader), None)
        assert reader.header is not None, "the reader says where nothing can be read"
        return cls(Path(folder), reader.header)

    def __iter__(self) -> Iterator[bytes]:
        for _, payload in self.numbered():
            yield payload

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """(sequence number, payload) of the intact chunks."""
        reader = StreamReader(self.folder)
        self.closed = False
        for chunk in reader:
            self.damage = reader.damage
            yield chunk.seq, chunk.payload
        self.damage, self.closed = reader.damage, reader.closed


@dataclass
class SignalPieces:
    """Recorded signals, some thousand ticks at a time."""

    pieces: Pieces
    version: int
    names: list[str]
    units: list[str]
    tick_s: float
    every: int

    @classmethod
    def of(cls, run_dir: Path | str, stream: str = "signals") -> SignalPieces:
        """The signals of a run; RecordingError where none were recorded."""
        pieces = Pieces.of(Path(run_dir) / stream)
        where = str(pieces.folder)
        return cls(pieces, signals_version(pieces.header, where), *described(pieces.header, where))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Records (see signal_dtype)."""
        dtype = signal_dtype(len(self.names))
        for payload in self.pieces:
            if self.version == ROWS:
                yield np.frombuffer(payload, dtype, len(payload) // dtype.itemsize)
                continue
            try:
                records = decode(payload, dtype)
            except LayoutError as error:
                self.pieces.damage.append(Damage(self.pieces.folder.name, 0, len(payload), str(error), False))
                continue
            yield records
