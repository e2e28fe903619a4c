"""What a run left in its directory, as numpy: signals per tick, with names, units and gaps.

run_dir/
  run.json      state of the run, rewritten once a second (atomically): what a killed run still tells
  signals/      one record per tick, see `signal_dtype`
  first_fault/  as signals/, every tick around the latching of the safe state (see `first_fault`)
  inputs/       what the ticks took in, for replay (see `replay`)
  bus/          frames with times (see `bus_log`)
  config/       every file the run was made of
  modes.csv     mode changes as text; missing after a kill, then made from the `<element>.mode` columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import JSON_BYTES, read_text
from torqueloop.hil.record.recording import Damage, RecordingError, StreamData, read_stream

#: Fixed part of a signal record, in front of the recorded outputs; all little endian.
SIGNAL_FIXED: list[tuple[str, str]] = [
    ("tick", "<i8"),  # number of the tick, from 0
    ("t_wall_ns", "<i8"),  # clock of the loop at the wake-up; 0 in virtual time [ns]
    ("wake_lateness_ns", "<i4"),  # wake-up after its absolute deadline [ns]
    ("compute_ns", "<i4"),  # from wake-up to the end of the tick's work [ns]
    ("status", "<u4"),  # status bits of the tick
    ("flags", "<u4"),  # what happened in it
]


def signal_dtype(n_out: int) -> np.dtype[Any]:
    """One record per tick: SIGNAL_FIXED, then `n_out` doubles in SI units."""
    return np.dtype([*SIGNAL_FIXED, ("out", "<f8", (n_out,))])


def signal_header(names: Sequence[str], units: Sequence[str], tick_s: float, **more: Any) -> dict[str, Any]:
    """Header of the signals stream."""
    if len(names) != len(units):
        raise ValueError(f"{len(names)} names but {len(units)} units")
    if len(set(names)) != len(names):
        raise ValueError("a signal is named twice")
    return {"kind": "signals", "version": 1, "names": list(names), "units": list(units), "tick_s": tick_s, **more}


@dataclass
class Signals(Mapping[str, NDArray[np.float64]]):
    """Recorded columns by name: `signals["engine.w"]`; every column has the length of `tick`."""

    names: list[str]
    units: dict[str, str]
    tick_s: float
    #: the records as they stand in the file
    records: NDArray[Any]
    header: dict[str, Any] = field(default_factory=dict)
    #: [(first missing tick, number of missing ticks)]
    gaps: list[tuple[int, int]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    #: the recorder closed the file properly
    closed: bool = True
    #: bytes at the end of chunks that were no whole record
    stray_bytes: int = 0

    def __post_init__(self) -> None:
        self._index = {name: k for k, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        try:
            return np.ascontiguousarray(self.records["out"][:, self._index[name]])
        except KeyError:
            raise KeyError(f"{name}: not recorded; recorded are {', '.join(self.names)}") from None

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def tick(self) -> NDArray[np.int64]:
        """Number of each recorded tick."""
        return np.ascontiguousarray(self.records["tick"])

    @property
    def t(self) -> NDArray[np.float64]:
        """Simulation time at the end of each recorded tick [s]: (tick + 1) * tick_s."""
        return np.asarray((self.tick + 1) * self.tick_s, dtype=np.float64)

    @property
    def wake_lateness_us(self) -> NDArray[np.float64]:
        return self.records["wake_lateness_ns"] * 1e-3

    @property
    def compute_us(self) -> NDArray[np.float64]:
        return self.records["compute_ns"] * 1e-3


def read_signals(run_dir: Path | str, folder: str = "signals") -> Signals:
    """All readable signal records of a run; `folder`: another stream of the same kind."""
    stream = read_stream(Path(run_dir) / folder)
    header = stream.header
    if header.get("kind") != "signals":
        raise RecordingError(f"{run_dir}/{folder}: holds a recording of kind {header.get('kind')!r}, not 'signals'")
    if header.get("version") != 1:
        version = header.get("version")
        raise RecordingError(f"{run_dir}/{folder}: format version {version}; this program reads version 1")
    names, units, tick_s, every = described(header, f"{run_dir}/{folder}")
    records, stray = _records(stream, signal_dtype(len(names)), release=True)
    tick = records["tick"]
    jump = np.flatnonzero(np.diff(tick) != every)
    gaps = [(int(tick[k]) + every, int(tick[k + 1] - tick[k]) // every - 1) for k in jump]
    return Signals(
        names,
        dict(zip(names, units, strict=True)),
        tick_s,
        records,
        header,
        gaps,
        stream.damage,
        stream.closed,
        stray,
    )


def described(header: Mapping[str, Any], where: str) -> tuple[list[str], list[str], float, int]:
    """(names, units, tick_s, every) of a header; RecordingError where it is not what a recording of signals has."""
    found: tuple[Any, ...] = tuple(header.get(k) for k in ("names", "units", "tick_s", "every"))
    names, units, tick_s, every = found
    words = [isinstance(x, list) and all(isinstance(word, str) for word in x) for x in (names, units)]
    every = 1 if every is None else every
    numbers = type(tick_s) in (int, float) and 0.0 < tick_s < 1e9 and type(every) is int and 0 < every < 1 << 31
    if not all(words) or not numbers or len(names) != len(units) or len(set(names)) != len(names):
        raise RecordingError(f"{where}: its head does not say what the signals are")
    return names, units, float(tick_s), every


def _records(stream: StreamData, dtype: np.dtype[Any], release: bool = False) -> tuple[NDArray[Any], int]:
    """All whole records of a stream of fixed-size records, and the number of bytes that were none. release: let go of
    each chunk as it is copied, so that nothing is in memory twice."""
    counts = [len(chunk) // dtype.itemsize for chunk in stream.chunks]
    stray = sum(len(chunk) % dtype.itemsize for chunk in stream.chunks)
    records, at = np.empty(sum(counts), dtype), 0
    for k, count in enumerate(counts):
        records[at : at + count] = np.frombuffer(stream.chunks[k], dtype, count)
        at += count
        if release:
            stream.chunks[k] = b""
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
    lines += [f"{c.step},{c.t_s:.9f},{c.element},{c.mode},{MODE_NAMES.get(c.mode, '?')}" for c in changes]
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
        cell = line.split(",")
        if len(cell) < len(head):
            continue  # the last line of a file cut off in mid-line
        changes.append(
            ModeChange(
                int(cell[column["step"]]),
                float(cell[column["t_s"]]),
                cell[column["element"]].strip(),
                int(float(cell[column["mode"]])),
            )
        )
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
