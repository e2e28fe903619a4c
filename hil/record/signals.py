"""Recorded signals by name, read column by column from where they stand: memory for what is asked for.

A short recording is kept in memory as it stands in its files (KEPT_BYTES); of a longer one the pieces of a column are
read when the column is asked for. `Signals.part` is a window of it that reads only the chunks it touches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.record.columns import N_FIXED, Layout, encode
from torqueloop.hil.record.recording import Damage, RecordingError

#: Fixed part of a signal record, in front of the recorded outputs; all little endian.
SIGNAL_FIXED: list[tuple[str, str]] = [
    ("tick", "<i8"),  # number of the tick, from 0
    ("t_wall_ns", "<i8"),  # clock of the loop at the wake-up; 0 in virtual time [ns]
    ("wake_lateness_ns", "<i4"),  # wake-up after its absolute deadline [ns]
    ("compute_ns", "<i4"),  # from wake-up to the end of the tick's work [ns]
    ("status", "<u4"),  # status bits of the tick
    ("flags", "<u4"),  # what happened in it
]
FIXED_NAMES = [name for name, _ in SIGNAL_FIXED]
assert len(SIGNAL_FIXED) == N_FIXED
#: recordings up to this size stay in memory once they are read [bytes]
KEPT_BYTES = 48 << 20


def signal_dtype(n_out: int) -> np.dtype[Any]:
    """One record per tick: SIGNAL_FIXED, then `n_out` doubles in SI units."""
    return np.dtype([*SIGNAL_FIXED, ("out", "<f8", (n_out,))])


def signal_encoder(n_out: int) -> Callable[[bytes], bytes]:
    """Whole records, joined -> a chunk of a recording by columns."""
    dtype = signal_dtype(n_out)
    return lambda data: encode(np.frombuffer(data, dtype))


class Columns(Protocol):
    """Where the columns of a recording are."""

    def __len__(self) -> int:
        """Records."""

    def read(self, column: int, first: int, last: int) -> NDArray[Any]:
        """Records first .. last - 1 of a column: the fixed ones, then the signals."""


class Records:
    """Columns of records that are in memory."""

    def __init__(self, records: NDArray[Any]) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    def read(self, column: int, first: int, last: int) -> NDArray[Any]:
        records = self.records[first:last]
        if column < N_FIXED:
            return np.ascontiguousarray(records[FIXED_NAMES[column]])
        return np.array(records["out"][:, column - N_FIXED])


@dataclass(frozen=True)
class Piece:
    """One chunk."""

    file: Path
    offset: int
    n_bytes: int
    n: int
    #: None: whole records, one after the other (version 1)
    layout: Layout | None
    #: its payload, where it is kept
    payload: bytes | None = None


class ChunkColumns:
    """Columns in the chunks of a recording."""

    def __init__(self, pieces: Sequence[Piece], n_out: int) -> None:
        self._pieces, self._dtype = list(pieces), signal_dtype(n_out)
        self._first = np.concatenate([[0], np.cumsum([p.n for p in pieces], dtype=np.int64)])

    def __len__(self) -> int:
        return int(self._first[-1])

    def read(self, column: int, first: int, last: int) -> NDArray[Any]:
        kind = np.float64 if column >= N_FIXED else np.dtype(SIGNAL_FIXED[column][1])
        found = np.empty(max(0, last - first), kind)
        k = int(np.searchsorted(self._first, first, "right")) - 1
        with _Files() as files:
            while k < len(self._pieces) and self._first[k] < last:
                piece, start = self._pieces[k], int(self._first[k])
                a, b = max(first - start, 0), min(last - start, piece.n)
                found[start + a - first : start + b - first] = self._values(files, piece, column, a, b)
                k += 1
        return found

    def _values(self, files: _Files, piece: Piece, column: int, a: int, b: int) -> NDArray[Any]:
        if piece.layout is not None:
            begin, size = piece.layout.span(column, a, b)
            return piece.layout.values(column, files.read(piece, begin, size), b - a)
        size = self._dtype.itemsize
        records = np.frombuffer(files.read(piece, a * size, (b - a) * size), self._dtype)
        return records["out"][:, column - N_FIXED] if column >= N_FIXED else records[FIXED_NAMES[column]]


class _Files:
    """The files of a recording, open while a column is read."""

    def __init__(self) -> None:
        self._open: dict[Path, int] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)

    def read(self, piece: Piece, begin: int, size: int) -> bytes:
        if piece.payload is not None:
            return piece.payload[begin : begin + size]
        try:
            if piece.file not in self._open:
                self._open[piece.file] = os.open(piece.file, os.O_RDONLY | os.O_CLOEXEC)
            data = os.pread(self._open[piece.file], size, piece.offset + begin)
        except OSError as error:
            raise RecordingError(f"{piece.file}: cannot be read any more: {error.strerror}") from None
        if len(data) < size:
            raise RecordingError(f"{piece.file}: was truncated after it was opened")
        return data


@dataclass
class _Window:
    """Some records of others."""

    columns: Columns
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    def read(self, column: int, first: int, last: int) -> NDArray[Any]:
        return self.columns.read(column, self.first + first, self.first + last)


@dataclass
class Signals(Mapping[str, NDArray[np.float64]]):
    """Recorded columns by name: `signals["engine.w"]`; every column has the length of `tick`."""

    names: list[str]
    units: dict[str, str]
    tick_s: float
    columns: Columns
    header: dict[str, Any] = field(default_factory=dict)
    #: [(first missing tick, number of missing ticks)]
    gaps: list[tuple[int, int]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    #: the recorder closed the file properly
    closed: bool = True
    #: bytes at the end of chunks that were no whole record
    stray_bytes: int = 0
    #: every recorded number is finite; None: not looked at yet
    known_finite: bool | None = None
    #: intact chunks they were read from
    chunks: int = 0

    def __post_init__(self) -> None:
        self._index = {name: N_FIXED + k for k, name in enumerate(self.names)}

    @classmethod
    def of(cls, names: list[str], units: dict[str, str], tick_s: float, records: NDArray[Any]) -> Signals:
        """Of records in memory (signal_dtype)."""
        return cls(names, units, tick_s, Records(records))

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        try:
            column = self._index[name]
        except KeyError:
            raise KeyError(f"{name}: not recorded; recorded are {', '.join(self.names)}") from None
        return self.columns.read(column, 0, self.n)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n(self) -> int:
        """Recorded ticks."""
        return len(self.columns)

    def fixed(self, name: str) -> NDArray[Any]:
        """A column of SIGNAL_FIXED: "status", "compute_ns" ..."""
        return self.columns.read(FIXED_NAMES.index(name), 0, self.n)

    @cached_property
    def tick(self) -> NDArray[np.int64]:
        """Number of each recorded tick."""
        return self.fixed("tick")

    @cached_property
    def t(self) -> NDArray[np.float64]:
        """Simulation time at the end of each recorded tick [s]: (tick + 1) * tick_s."""
        return np.asarray((self.tick + 1) * self.tick_s, dtype=np.float64)

    @property
    def wake_lateness_us(self) -> NDArray[np.float64]:
        return np.asarray(self.fixed("wake_lateness_ns") * 1e-3)

    @property
    def compute_us(self) -> NDArray[np.float64]:
        return np.asarray(self.fixed("compute_ns") * 1e-3)

    @property
    def finite(self) -> bool:
        """Every recorded number is finite."""
        if self.known_finite is None:
            self.known_finite = all(bool(np.isfinite(self[name]).all()) for name in self.names)
        return self.known_finite

    def part(self, first: int, last: int) -> Signals:
        """The records first .. last - 1 as signals of their own; only these are read."""
        first = min(max(first, 0), self.n)
        window = _Window(self.columns, first, min(max(last, first), self.n))
        return Signals(self.names, self.units, self.tick_s, window, self.header, known_finite=None)

    def between(self, begin_s: float, end_s: float) -> Signals:
        """The records with begin_s <= t <= end_s."""
        first, last = np.searchsorted(self.t, begin_s), np.searchsorted(self.t, end_s, "right")
        return self.part(int(first), int(last))

    @property
    def records(self) -> NDArray[Any]:
        """All of it as records (signal_dtype), in memory: an hour of 200 signals at 1 kHz takes 6 GB."""
        if isinstance(self.columns, Records):
            return self.columns.records
        made = np.empty(self.n, signal_dtype(len(self.names)))
        for name in FIXED_NAMES:
            made[name] = self.fixed(name)
        for k, name in enumerate(self.names):
            made["out"][:, k] = self[name]
        return made
