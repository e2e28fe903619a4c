"""Parts of a recording and checkpoints of a run, without a run: which ticks they hold, how much room they may take."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.record.run_data import COLUMNS, read_signals, signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.run import RunInfo
from torqueloop.hil.rig.online import checkpoint, restore
from torqueloop.hil.rig.online.checkpoint import Checkpoint, CheckpointError, Quota
from torqueloop.hil.rig.online.restore import Checkpoints
from torqueloop.hil.rig.run.recordings import LiveRecordings

NAMES = ["engine.w", "out.w", "C4.p"]


class Given:
    """A recorder that hands on what a test gives it."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}

    def attach(self, parts: dict[str, Any]) -> bool:
        self.parts = parts
        return True

    def detach(self, parts: dict[str, Any]) -> bool:
        for part in parts.values():
            part.close()
        return True

    def give(self, ticks: range) -> None:
        records = np.zeros(len(ticks), signal_dtype(len(NAMES)))
        records["tick"] = ticks
        records["out"] = np.array(ticks)[:, None] + [0.0, 0.25, 0.5]
        self.parts["signals"].take(records.tobytes(), False)


@pytest.mark.parametrize("every", [1, 10])
def test_a_part_holds_the_ticks_and_lasts_the_time_from_its_begin_to_its_end(tmp_path: Path, every: int) -> None:
    """Two samples of a run whose every n-th tick of 2 ms is recorded, then three more, last of all tick 600 n."""
    (tmp_path / "config").mkdir()
    folder: Any = SimpleNamespace(path=tmp_path, info=RunInfo("r", "config/r.toml", tick_s=0.002))
    header = signal_header(NAMES, ["rad/s", "rad/s", "Pa"], 0.002, COLUMNS, every=every)
    recorder: Any = Given()
    recordings = LiveRecordings(folder, recorder, {"signals": header})
    begun = recordings.start("", ("C*.p", "out.w"))
    assert begun == {"name": "part-1", "folder": "recordings/part-1", "signals": 2}
    recorder.give(range(596 * every, 598 * every, every))
    recorder.give(range(598 * every, 601 * every, every))
    told = recordings.status()["part-1"]
    assert (told["running"], told["samples"], told["cause"]) == (True, 5, "") and told["bytes"] > 5 * 16
    stopped = recordings.stop("part-1")
    assert (stopped["samples"], stopped["first_tick"], stopped["last_tick"]) == (5, 596 * every, 600 * every)
    made = tmp_path / "recordings" / "part-1"
    info, signals = read_run_info(made), read_signals(made)
    assert info is not None and info.part_of is not None and info.stats is not None
    part = info.part_of
    assert (part.run, part.first_tick, part.last_tick) == ("../..", 596 * every, 600 * every)
    assert info.duration_s == pytest.approx(5 * every * 0.002) and info.stats.clock.ticks == 5 * every
    assert signals.names == ["out.w", "C4.p"]
    np.testing.assert_array_equal(signals.records["out"][:, 1], np.arange(596, 601) * every + 0.5)


def kept(size: int) -> Checkpoint:
    return Checkpoint("r", "m", "s", [1], 7, 0.001, {}, b"x" * size, {})


def test_the_quota_counts_files_and_their_bytes(tmp_path: Path) -> None:
    quota = Quota()
    for k, size in enumerate((1000, 250_000)):
        checkpoint.write(tmp_path / f"{k}.tlc", kept(size), quota)
    # without the mark and the checksum of 32 bytes at the head of each file
    sizes = [(tmp_path / f"{k}.tlc").stat().st_size - len(checkpoint.MAGIC) - 32 for k in range(2)]
    assert (quota.count, quota.bytes) == (2, sum(sizes)) and sizes[1] - sizes[0] == pytest.approx(249_000, abs=8)
    assert checkpoint.read(tmp_path / "1.tlc") == kept(250_000)


@pytest.mark.parametrize(
    ("count", "size", "words"),
    [(3, 5, ""), (4, 5, "4 checkpoints of 5 bytes are kept; allowed in a run: 4, 900 bytes"),
     (3, 899, ""), (3, 900, "3 checkpoints of 900 bytes are kept; allowed in a run: 4, 900 bytes")],
)  # fmt: skip
def test_a_checkpoint_beyond_the_quota_is_refused(
    monkeypatch: pytest.MonkeyPatch, count: int, size: int, words: str
) -> None:
    monkeypatch.setattr(restore, "COUNT_MAX", 4)
    monkeypatch.setattr(restore, "BYTES_MAX", 900)
    rig: Any = SimpleNamespace(plan=None, parts=SimpleNamespace(rig=SimpleNamespace(state="disarmed")))
    checkpoints = Checkpoints(rig, real=False)
    checkpoints._quota = Quota(count, size)
    # what is not beyond the quota comes as far as the rig, which is not armed
    with pytest.raises(RequestError, match=words or "the rig is disarmed"):
        checkpoints.take("a", 0)


@pytest.mark.parametrize(
    ("head", "words"),
    [(b"tlcheck", "not a checkpoint"), (checkpoint.MAGIC[:-1] + b"9", "version 9; this program reads"),
     (checkpoint.MAGIC, "truncated or changed")],
)  # fmt: skip
def test_a_file_is_known_by_its_head(tmp_path: Path, head: bytes, words: str) -> None:
    (tmp_path / "a.tlc").write_bytes(head + b"\0" * 40)
    with pytest.raises(CheckpointError, match=words):
        checkpoint.read(tmp_path / "a.tlc")
