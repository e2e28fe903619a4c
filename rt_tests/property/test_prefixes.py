"""A run is reported and replayed from any prefix of its files, as a power cut may leave them: each stream cut at every
border of its chunks and at random places, independently of the others.

What must come out is counted from the chunks as they were written, not asked of the reader. All places, each with
a report and a replay: `scripts/test --long rt_tests/property/test_prefixes.py`.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "hil"))

from rig_help import DESK, run

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.record.bus_log import read_bus
from torqueloop.hil.record.columns import decode, encode
from torqueloop.hil.record.recording import ChunkWriter, StreamData, read_stream
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.report.report import analyse
from torqueloop.hil.rig.run.replay import INPUT_HEAD, ReplayError, replay

TICKS = 250
#: random places, beside the borders
PLACES = 200
#: records of a chunk; files of a stream, about
CHUNK_RECORDS, FILES = 11, 3


def records(name: str, data: bytes, signal_bytes: int) -> Iterator[bytes]:
    """The records of a stream, from their own lengths."""
    at = 0
    while at < len(data):
        if name == "inputs":
            size = INPUT_HEAD.unpack_from(data, at)[0]
        elif name == "bus":
            size = 16 + max(8, (data[at + 12] + 7) & ~7)
        else:
            size = signal_bytes
        yield data[at : at + size]
        at += size


def payload(name: str, stream: StreamData) -> bytes:
    """All records of a stream, one after the other; those of signals stand in it by columns."""
    if name != "signals":
        return stream.payload()
    dtype = signal_dtype(len(stream.header["names"]))
    return b"".join(decode(chunk, dtype).tobytes() for chunk in stream.chunks)


def chunk_of(name: str, header: dict[str, Any], found: bytes) -> bytes:
    """Records as they stand in a chunk."""
    return encode(np.frombuffer(found, signal_dtype(len(header["names"])))) if name == "signals" else found


@dataclass
class Stream:
    """Files of a stream, and where its chunks end."""

    name: str
    files: dict[str, bytes]
    #: bytes over all files up to which so many records are there: (end of the chunk, records so far)
    ends: list[tuple[int, int]]
    records: list[bytes]

    @property
    def n_bytes(self) -> int:
        return sum(map(len, self.files.values()))

    @property
    def heads(self) -> list[int]:
        """Where each file begins."""
        found, at = [], 0
        for data in self.files.values():
            found.append(at)
            at += len(data)
        return found

    def cut(self, folder: Path, at: int) -> None:
        """The first `at` bytes, the files behind not there; an empty one is what a kill leaves at a border."""
        shutil.rmtree(folder / self.name, ignore_errors=True)
        (folder / self.name).mkdir()
        for begin, (name, data) in zip(self.heads, self.files.items(), strict=True):
            if begin <= at:
                (folder / self.name / name).write_bytes(data[: at - begin])

    def count(self, at: int) -> int:
        """Whole records of the first `at` bytes."""
        k = bisect_right([end for end, _ in self.ends], at)
        return self.ends[k - 1][1] if k else 0


@dataclass
class Made:
    """A run in many chunks."""

    path: Path
    streams: list[Stream]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A run of the desk rig, its streams written again by the recorder's writer as a slow run has them."""
    out = tmp_path_factory.mktemp("made") / "run"
    run(DESK, out, TICKS * 1e-3, gates=None)
    info = json.loads((out / "run.json").read_text())
    info["gates"] = {}  # those of the desk rig want a longer run
    found = []
    for name in ("signals", "inputs", "bus"):
        stream = read_stream(out / name)
        data = payload(name, stream)
        whole = list(records(name, data, len(data) // TICKS))
        assert b"".join(whole) == data
        shutil.rmtree(out / name)
        writer = ChunkWriter(out / name, stream.header, file_bytes=sum(map(len, stream.chunks)) // FILES)
        done: list[tuple[int, int]] = []
        step = max(1, min(CHUNK_RECORDS, len(whole) // 8))
        for at in range(0, len(whole), step):
            writer.write(chunk_of(name, stream.header, b"".join(whole[at : at + step])))
            done.append((writer.bytes_written, min(at + step, len(whole))))
        writer.close()
        files = {p.name: p.read_bytes() for p in sorted((out / name).iterdir())}
        info["stats"]["recording"][name]["chunks"] = len(done)
        found.append(Stream(name, files, done, whole))
    (out / "run.json").write_text(json.dumps(info))
    assert all(len(s.files) >= 2 and len(s.ends) >= 8 for s in found)
    report = analyse(out)
    assert not report.run.incomplete and report.exit_status == 0
    whole_run = replay(out)
    assert whole_run.passed and whole_run.hash_equal and (whole_run.ticks, whole_run.compared) == (TICKS, TICKS)
    return Made(out, found)


def places(stream: Stream) -> list[int]:
    """The end of each chunk and file, one byte around it, and random places."""
    borders = {edge + d for edge in (*(e for e, _ in stream.ends), *stream.heads) for d in (-1, 0, 1)}
    inside = sorted(at for at in borders if 0 <= at < stream.n_bytes)
    rng = random.Random(stream.name)
    return [*inside, *(rng.randrange(stream.n_bytes) for _ in range(PLACES)), stream.n_bytes]


@pytest.mark.proof
def test_a_prefix_of_a_stream_holds_the_records_of_its_whole_chunks(made: Made, tmp_path: Path) -> None:
    for stream in made.streams:
        for at in places(stream):
            stream.cut(tmp_path, at)
            try:
                read = read_stream(tmp_path / stream.name)
            except TorqueloopError:
                assert at < len(stream.files["000001.tlc"]) and not stream.count(at), (stream.name, at)
                continue
            assert payload(stream.name, read) == b"".join(stream.records[: stream.count(at)]), (stream.name, at)
            assert read.intact == (at == stream.n_bytes) and not read.holes, (stream.name, at)
            if stream.name == "bus":
                assert len(read_bus(tmp_path)[0]) == stream.count(at)


def judge(made: Made, copy: Path, at: dict[str, int], replayed: bool) -> None:
    """Report, and replay, of a run whose streams end at these bytes."""
    for stream in made.streams:
        stream.cut(copy, at[stream.name])
    left = {s.name: s.count(at[s.name]) for s in made.streams}
    whole = all(at[s.name] == s.n_bytes for s in made.streams)
    report = analyse(copy)
    signals = report.run.signals
    assert (0 if signals is None else len(signals.tick)) == left["signals"], at
    cut = {s.name for s in made.streams if at[s.name] < s.n_bytes}
    said = " ".join(report.run.incomplete)
    assert bool(said) != whole and all(f"{name}: " in said for name in cut), (cut, said)
    assert report.exit_status == (0 if whole else 1), at
    if not replayed:
        return
    if not left["inputs"]:
        with pytest.raises(ReplayError, match="inputs"):
            replay(copy)
        return
    result = replay(copy)
    assert result.difference is None and result.ticks == left["inputs"], at
    assert result.compared == min(left["inputs"], left["signals"]), at
    # all inputs are there: the hash of the whole run is that of its replay, whatever else is missing
    assert result.hash_equal is (True if left["inputs"] == TICKS else None), at
    assert result.passed is (result.compared > 0 or result.hash_equal is True), at


def cases(made: Made) -> list[dict[str, int]]:
    """One stream cut at all its places, the others whole or cut as well."""
    rng, found = random.Random(3), []
    for stream in made.streams:
        for k, at in enumerate(places(stream)):
            others = {s.name: s.n_bytes if k % 2 else rng.randrange(s.n_bytes + 1) for s in made.streams}
            found.append({**others, stream.name: at})
    return found


def test_a_run_is_reported_and_replayed_from_prefixes_of_its_files(made: Made, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(made.path, tmp_path / "copy"))
    whole = {s.name: s.n_bytes for s in made.streams}
    without_mark = [{**whole, s.name: s.ends[-1][0]} for s in made.streams]
    for k, at in enumerate([whole, *without_mark, *cases(made)[::16]]):
        judge(made, copy, at, replayed=k % 2 == 0)


@pytest.mark.long
def test_a_run_is_reported_and_replayed_from_every_prefix_of_its_files(made: Made, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(made.path, tmp_path / "copy"))
    for at in cases(made):
        judge(made, copy, at, replayed=True)
