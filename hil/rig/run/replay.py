"""Replay: run a recording again through the same tick and compare every recorded bit.

    config/ -> the same model and wiring;  inputs/ -> what each tick took in (frames, vehicle value, causes)

The rig of the run is built again from config/ alone, each input record is fed through the tick function of the rig, and
the samples that come out are compared with the recorded ones, bit by bit, tick by tick. At the end the state hashes are
compared. Times of waking and computing are not part of the comparison.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.configs import installed_at
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.core.describe.reading import reading_only
from torqueloop.hil.record.pieces import Pieces, SignalPieces
from torqueloop.hil.record.recording import RecordingError
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.run_folder import INSTALLED, changed_inputs
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.run import RunInfo

#: `input_head_t` of cython_kernels/tick/tick.pxd: n_bytes, n_frames, flags, cause, tick, now_ns, detail
INPUT_HEAD = struct.Struct("<IIIiqqq")
#: version of the input records: 2 has packed frames and the state of the bus; with 3 goes another hash of the signals,
#: 4 has the bus of each frame
INPUT_VERSION = 4
#: Ticks between two looks into the rings of the replayed rig; its rings hold several seconds.
BLOCK = 250


class ReplayError(TorqueloopError):
    """The run cannot be replayed at all."""


@dataclass(frozen=True)
class Difference:
    """The first recorded value that came out differently."""

    tick: int
    t_s: float
    #: signal name, or "tick", "status" for the record's own fields
    name: str
    recorded: float
    replayed: float

    def __str__(self) -> str:
        return f"tick {self.tick} (t = {self.t_s:.4f} s): {self.name} was {self.recorded!r}, replayed {self.replayed!r}"


@dataclass
class ReplayResult:
    """What a replay found."""

    #: ticks run again
    ticks: int
    #: of them compared with recorded samples
    compared: int
    hash_recorded: str | None
    hash_replayed: str
    difference: Difference | None = None
    #: why the replay is only partial, in words
    remarks: list[str] = field(default_factory=list)

    @property
    def hash_equal(self) -> bool | None:
        """None when the run left no hash (it was killed)."""
        return None if self.hash_recorded is None else self.hash_recorded == self.hash_replayed

    @property
    def passed(self) -> bool:
        """Same bits everywhere that could be compared, and something was."""
        return self.difference is None and self.hash_equal is not False and (self.compared > 0 or bool(self.hash_equal))

    def as_dict(self) -> dict[str, Any]:
        first = self.difference.__dict__ if self.difference else None
        return {**self.__dict__, "difference": first, "hash_equal": self.hash_equal, "passed": self.passed}


def replay(run_dir: Path | str, progress: Callable[[int], None] | None = None) -> ReplayResult:
    """Run the recording again. Raises ReplayError when there is nothing to replay or the run was not that of a rig."""
    from torqueloop.hil.rig.assemble.parts import build
    from torqueloop.hil.rig.online.replayed_journal import serve_references
    from torqueloop.hil.rig.resolve.plan import load_plan

    run_dir = Path(run_dir)
    info = read_run_info(run_dir)
    if info is None:
        what = "holds no run.json" if os.path.isdir(run_dir) else "is not there"
        raise ReplayError(
            f"{run_dir}: a run directory is needed, and this {what}; `torqueloop runs FOLDER` lists the runs of one"
        )
    kept = run_dir
    if info.part_of is not None:
        # a state is reached only by the way to it: the whole run up to the end of this part
        run_dir = run_dir / info.part_of.run
        last, info = info.part_of.last_tick, read_run_info(run_dir)
        if info is None:
            raise ReplayError(f"{kept} is a part of a run that is not at {run_dir}: it is replayed from its beginning")
        if np.any(np.diff(read_signals(run_dir).tick) <= 0):
            raise ReplayError(f"{kept}: a part of a run that went back to a checkpoint: replay the run, {run_dir}")
    else:
        last = None
    rig_file = info.rig_file
    if rig_file is None or not os.path.isfile(run_dir / rig_file):
        raise ReplayError(f"{run_dir}: run.json names no rig file in config/; only runs of a rig can be replayed")
    if changed := changed_inputs(run_dir, info.inputs):
        raise ReplayError(f"{run_dir}: {'; '.join(changed)}: these are not the files of the run")
    try:
        stream = Pieces.of(run_dir / "inputs")
    except RecordingError as error:
        raise ReplayError(f"{error}; was the run made with [record] inputs = false?") from None
    first = next(iter(stream), None)
    if first is None:
        raise ReplayError(f"{run_dir}/inputs: holds no records")
    version = stream.header.get("version")
    if version != INPUT_VERSION:
        raise ReplayError(f"{run_dir}/inputs: format version {version}; this program replays version {INPUT_VERSION}")
    kernel = info.kernel or "auto"
    # as it was then: nothing but what the run has left counts
    with installed_at(run_dir / INSTALLED), reading_only(run_dir):
        plan = load_plan(run_dir / rig_file, info.overrides)
        parts = build(plan, kernel=kernel)
    serve_references(run_dir, plan, parts, kernel)
    result = ReplayResult(0, 0, _recorded_hash(info), "")
    compare = _Comparison(kept, [name for name, _ in plan.recorded], plan.config.clock.tick_s, result,
                          last is not None)  # fmt: skip

    def drain() -> None:
        compare.take(b"".join(iter(parts.samples.drain, b"")))
        for ring in (parts.inputs, parts.bus_log, parts.modes):
            while ring.drain():
                pass
        for bus in parts.buses:
            bus.tx_ring.pop_all()

    # The first tick runs at the very time of arming.
    if len(first) < INPUT_HEAD.size:
        raise ReplayError(f"{run_dir}/inputs: its first chunk holds no record")
    parts.rig.begin(INPUT_HEAD.unpack_from(first)[5])
    for chunk in _unbroken(stream, result):
        offset = 0
        while offset < len(chunk) and not (last is not None and result.ticks > last):
            try:
                offset = parts.rig.replay(chunk, offset)
            except ValueError as error:
                raise ReplayError(f"{run_dir}/inputs, tick {result.ticks}: {error}") from None
            result.ticks += 1
            if result.ticks % BLOCK == 0:
                drain()
                if progress is not None:
                    progress(result.ticks)
    drain()
    result.hash_replayed = f"{parts.rig.state_hash:016x}"
    ticks = info.stats.clock.ticks if info.stats is not None else None
    if last is not None:
        result.remarks.append(f"a part of a run: ticks up to its last one, {last}, and no hash to compare")
        result.hash_recorded = None
    elif result.hash_recorded is not None and result.ticks != ticks:
        result.remarks.append(f"{result.ticks} of {ticks} ticks could be replayed: the hash is not comparable")
        result.hash_recorded = None
    return result


def _recorded_hash(info: RunInfo) -> str | None:
    """The hash the run left when it ended; one written while it was running belongs to some tick in between."""
    return info.stats.hash if info.ended is not None and info.stats is not None else None


def _unbroken(stream: Pieces, result: ReplayResult) -> Iterator[bytes]:
    """The chunks up to the first hole: a tick cannot be replayed when one before it is missing."""
    before: int | None = None
    for seq, payload in stream.numbered():
        if before is not None and seq != before + 1:
            result.remarks.append(f"inputs are missing after chunk {before}: replayed up to there")
            return
        before = seq
        yield payload
    if not stream.closed:
        result.remarks.append("the input recording has no end mark: replayed up to its end")


class _Comparison:
    """Compares replayed sample records with the recorded ones as they come."""

    def __init__(
        self, run_dir: Path, names: list[str], tick_s: float, result: ReplayResult, part: bool = False
    ) -> None:
        """part: what was recorded may be some of the names."""
        self.result, self.tick_s = result, tick_s
        self.names = names
        self.dtype = signal_dtype(len(names))
        #: of the rig's records, those that were kept
        self.columns: list[int] = list(range(len(names)))
        #: recorded samples that were read and not yet compared
        self.recorded: NDArray[Any] | None = None
        self._more: Iterator[NDArray[Any]] = iter(())
        try:
            signals = read_signals(run_dir)
        except RecordingError as error:
            result.remarks.append(f"nothing to compare with but the hash: {error}")
            return
        if part:
            self.columns = [names.index(name) for name in signals.names if name in names]
        if [names[k] for k in self.columns] != signals.names:
            result.remarks.append("the recorded signals are not those of the rig file: only the hash is compared")
            return
        if np.any(np.diff(signals.tick) <= 0):
            result.remarks.append("the recorded ticks do not rise: only the hash is compared")
            return
        self._more = iter(SignalPieces.of(run_dir))

    def _read_to(self, tick: int) -> NDArray[Any]:
        """Recorded samples up to this tick that were not compared yet."""
        if self.recorded is None:
            self.recorded = np.empty(0, signal_dtype(len(self.columns)))
        while not len(self.recorded) or self.recorded["tick"][-1] < tick:
            piece = next(self._more, None)
            if piece is None:
                break
            self.recorded = np.concatenate([self.recorded, piece])
        count = int(np.searchsorted(self.recorded["tick"], tick, "right"))
        found, self.recorded = self.recorded[:count], self.recorded[count:]
        return found

    def take(self, data: bytes) -> None:
        """Compare the next samples; samples that were lost in the run are passed over."""
        if not data or self.result.difference is not None:
            return
        new = np.frombuffer(data, self.dtype)
        old = self._read_to(int(new["tick"][-1]))
        _, mine, theirs = np.intersect1d(new["tick"], old["tick"], assume_unique=True, return_indices=True)
        if not len(mine):
            return
        new, old = new[mine], old[theirs]
        # Bits, not numbers: NaN equals itself and -0.0 is not 0.0.
        now_out = np.ascontiguousarray(new["out"][:, self.columns])
        off = now_out.view(np.uint64) != old["out"].view(np.uint64)
        status = new["status"] != old["status"]
        bad = np.flatnonzero(off.any(axis=1) | status)
        self.result.compared += len(new) if not len(bad) else int(bad[0])
        if len(bad):
            k = int(bad[0])
            tick = int(new["tick"][k])
            if off[k].any():
                j = int(np.flatnonzero(off[k])[0])
                name, was, now = self.names[self.columns[j]], float(old["out"][k, j]), float(now_out[k, j])
            else:
                name, was, now = "status", float(old["status"][k]), float(new["status"][k])
            self.result.difference = Difference(tick, (tick + 1) * self.tick_s, name, was, now)
