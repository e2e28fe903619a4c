"""What a run left in its directory, as numpy: signals per tick, with names, units and gaps.

run_dir/
  run.json      state of the run, rewritten once a second (atomically): what is known of a killed run
  signals/      one record per tick, see `signal_dtype`
  first_fault/  as signals/, every tick around the latching of the safe state (see `first_fault`)
  inputs/       what the ticks took in, for replay (see `replay`)
  bus/          frames with times (see `bus_log`)
  config/       every file the run was made of
  modes.csv     mode changes as text; missing after a kill, then made from the `<element>.mode` columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.naming import cell
from torqueloop.core.describe.reading import JSON_BYTES, read_text
from torqueloop.core.describe.renamed import signals_in
from torqueloop.hil.record.columns import Layout, LayoutError, all_finite, column_of
from torqueloop.hil.record.recording import Damage, Located, RecordingError, StreamData, StreamReader
from torqueloop.hil.record.signals import KEPT_BYTES, ChunkColumns, Piece, Signals, signal_dtype

#: versions of recorded signals: whole records one after the other; by columns (see `columns`)
ROWS, COLUMNS = 1, 2


def signal_header(
    names: Sequence[str], units: Sequence[str], tick_s: float, version: int = ROWS, **more: Any
) -> dict[str, Any]:
    """Header of a stream of signals."""
    if len(names) != len(units):
        raise ValueError(f"{len(names)} names but {len(units)} units")
    if len(set(names)) != len(names):
        raise ValueError("a signal is named twice")
    return {"kind": "signals", "version": version, "names": list(names), "units": list(units), "tick_s": tick_s, **more}


def read_signals(run_dir: Path | str, folder: str = "signals") -> Signals:
    """All readable signal records of a run; `folder`: another stream of the same kind. Every byte is looked at once,
    none of a long recording is kept."""
    where = f"{run_dir}/{folder}"
    reader = StreamReader(Path(run_dir) / folder)
    opened: _Opening | None = None
    for chunk in reader:
        if opened is None:
            opened = _Opening(reader, where)
        opened.add(chunk)
    opened = opened or _Opening(reader, where)
    tick = np.concatenate(opened.ticks) if opened.ticks else np.zeros(0, np.int64)
    jump = np.flatnonzero(np.diff(tick) != opened.every)
    every = opened.every
    gaps = [(int(tick[k]) + every, (int(tick[k + 1]) - int(tick[k])) // every - 1) for k in jump]
    signals = Signals(
        opened.names,
        dict(zip(opened.names, opened.units, strict=True)),
        opened.tick_s,
        ChunkColumns(opened.pieces, len(opened.names)),
        opened.header,
        gaps,
        [*reader.damage, *opened.damage],
        reader.closed,
        opened.stray,
        opened.finite,
        opened.chunks,
    )
    signals.tick = tick
    return signals


class _Opening:
    """What is learnt of the chunks of a recording as they pass by."""

    def __init__(self, reader: StreamReader, where: str) -> None:
        assert reader.header is not None, "known with the first chunk"
        self.header = reader.header
        self.version = signals_version(self.header, where)
        self.names, self.units, self.tick_s, self.every = described(self.header, where)
        self._dtype = signal_dtype(len(self.names))
        self.pieces: list[Piece] = []
        self.ticks: list[NDArray[np.int64]] = []
        self.damage: list[Damage] = []
        self.stray, self.finite, self.chunks = 0, True, 0
        self._kept = 0

    def add(self, chunk: Located) -> None:
        """Take in a chunk."""
        size, layout = len(chunk.payload), None
        self.chunks += 1
        if self.version == ROWS:
            count = size // self._dtype.itemsize
            self.stray += size % self._dtype.itemsize
            records = np.frombuffer(chunk.payload, self._dtype, count)
            self.ticks.append(records["tick"].copy())
            self.finite = self.finite and bool(np.isfinite(records["out"]).all())
        else:
            try:
                layout = Layout.of(chunk.payload, len(self.names))
            except LayoutError as error:
                self.damage.append(Damage(chunk.file.name, chunk.offset, size, f"not by columns: {error}", False))
                return
            count = layout.n
            self.ticks.append(np.array(column_of(layout, chunk.payload, 0)))
            self.finite = self.finite and all_finite(layout, chunk.payload)
        self._keep(size)
        kept = chunk.payload if self._kept <= KEPT_BYTES else None
        self.pieces.append(Piece(chunk.file, chunk.offset, size, count, layout, kept))

    def _keep(self, size: int) -> None:
        """A recording that turns out long is not kept at all: then all of it is read in one way."""
        before, self._kept = self._kept, self._kept + size
        if before <= KEPT_BYTES < self._kept:
            self.pieces = [replace(piece, payload=None) for piece in self.pieces]


def signals_version(header: Mapping[str, Any], where: str) -> int:
    """Version of a recording of signals; RecordingError when it is none, or of another version."""
    if header.get("kind") != "signals":
        raise RecordingError(f"{where}: holds a recording of kind {header.get('kind')!r}, not 'signals'")
    version = header.get("version")
    if version not in (ROWS, COLUMNS):
        raise RecordingError(f"{where}: format version {version}; this program reads versions {ROWS} and {COLUMNS}")
    return int(version)


def described(header: Mapping[str, Any], where: str) -> tuple[list[str], list[str], float, int]:
    """(names, units, tick_s, every) of a header, names as they are called today.

    RecordingError where it is not what a recording of signals has."""
    found: tuple[Any, ...] = tuple(header.get(k) for k in ("names", "units", "tick_s", "every"))
    names, units, tick_s, every = found
    words = [isinstance(x, list) and all(isinstance(word, str) for word in x) for x in (names, units)]
    every = 1 if every is None else every
    numbers = type(tick_s) in (int, float) and 0.0 < tick_s < 1e9 and type(every) is int and 0 < every < 1 << 31
    if not all(words) or not numbers or len(names) != len(units) or len(set(names)) != len(names):
        raise RecordingError(f"{where}: its head does not say what the signals are")
    return [signals_in(name) for name in names], units, float(tick_s), every


def described_buses(header: Mapping[str, Any], where: str) -> tuple[list[str], int]:
    """(names of the buses in the order of their numbers, time of the clock's 0 since 1970 [ns]) of the header of a bus
    stream. RecordingError where it is not what a recorded bus has."""
    buses, epoch_ns = header.get("buses", []), header.get("epoch_ns", 0)
    whole = isinstance(buses, list) and all(isinstance(bus, dict) for bus in buses)
    names: list[Any] = [bus.get("name") for bus in buses] if whole else [None]
    # a name becomes part of the name of a file
    known = all(isinstance(name, str) and len(name) <= 60 and not {"/", "\0"} & set(name) for name in names)
    if not known or type(epoch_ns) is not int or not 0 <= epoch_ns < 1 << 62:
        raise RecordingError(f"{where}: its head does not say what the buses are")
    return names, epoch_ns


def _records(stream: StreamData, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    """All whole records of a stream of fixed-size records, and the number of bytes that were none."""
    counts = [len(chunk) // dtype.itemsize for chunk in stream.chunks]
    stray = sum(len(chunk) % dtype.itemsize for chunk in stream.chunks)
    records, at = np.empty(sum(counts), dtype), 0
    for chunk, count in zip(stream.chunks, counts, strict=True):
        records[at : at + count] = np.frombuffer(chunk, dtype, count)
        at += count
    return records, stray


# --- mode changes ---------------------------------------------------------------------------------------------------

MODE_NAMES = {-1: "backward", 0: "stuck", 1: "forward", 2: "free"}
MODES_HEADER = "step,t_s,element,mode,mode_name"


@dataclass(frozen=True)
class ModeChange:
    """One entry of the mode log: the element has this mode from t_s on."""

    step: int
    t_s: float
    element: str
    #: -1 backward, 0 stuck, 1 forward, 2 free
    mode: int


def write_modes(path: Path | str, changes: Sequence[ModeChange]) -> None:
    """modes.csv: one line per mode change."""
    lines = [MODES_HEADER]
    lines += [f"{c.step},{c.t_s:.9f},{cell(c.element)},{c.mode},{MODE_NAMES.get(c.mode, '?')}" for c in changes]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_modes(path: Path | str) -> list[ModeChange]:
    """The mode changes of a modes.csv; columns are found by name."""
    try:
        lines = read_text(path, JSON_BYTES).splitlines()
    except ConfigError as error:
        raise RecordingError(str(error)) from None
    if not lines:
        return []
    head = [h.strip() for h in lines[0].split(",")]
    column = {name: head.index(name) for name in ("step", "t_s", "element", "mode") if name in head}
    if len(column) < 4:
        raise RecordingError(f"{path}: needs the columns step, t_s, element, mode; has {lines[0]!r}")
    changes = []
    for line in lines[1:]:
        cells = line.split(",")
        if len(cells) < len(head):
            continue  # the last line of a file cut off in mid-line
        try:
            changes.append(
                ModeChange(
                    int(cells[column["step"]]),
                    float(cells[column["t_s"]]),
                    cells[column["element"]].strip(),
                    int(float(cells[column["mode"]])),
                )
            )
        except (ValueError, OverflowError) as error:
            raise RecordingError(f"{path}: {line[:80]!r}: {error}") from None
    return changes


def modes_from_signals(signals: Signals, changes_only: bool = False) -> list[ModeChange]:
    """Mode changes as seen at the ends of ticks, from the recorded `<element>.mode` columns.

    Each element's first value is entered too unless `changes_only`. Changes that begin and end within one tick are
    not seen here; the mode log of the kernel has them.
    """
    found = []
    t, tick = signals.t, signals.tick
    for name in signals.names:
        if not name.endswith(".mode") or not len(t):
            continue
        value = np.rint(signals[name]).astype(int)
        at = np.flatnonzero(np.diff(value)) + 1
        for k in at if changes_only else [0, *at]:
            found.append(ModeChange(int(tick[k]) + 1, float(t[k]), name.removesuffix(".mode"), int(value[k])))
    return sorted(found, key=lambda c: (c.t_s, c.element))
