"""A run can be reported and replayed from any prefix of its files: cut at every border of a chunk and at 200 places."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "hil"))

from rig_help import DESK, run

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.record.recording import CHUNK_MAGIC, RecordingError, read_stream
from torqueloop.hil.report.collect import load_run
from torqueloop.hil.report.report import analyse
from torqueloop.hil.rig.run.replay import replay

STREAMS = ("signals", "inputs", "bus")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "run"
    run(DESK, out, 1.5)
    return out


def borders(data: bytes) -> list[int]:
    """Where chunks begin, and the end."""
    found, at = [], data.find(CHUNK_MAGIC)
    while at >= 0:
        found.append(at)
        at = data.find(CHUNK_MAGIC, at + 1)
    return [*found, len(data)]


def test_every_prefix_of_a_stream_is_a_prefix_of_its_records(made: Path, tmp_path: Path) -> None:
    rng = random.Random(5)
    for name in STREAMS:
        data = (made / name / "000001.tlc").read_bytes()
        whole = read_stream(made / name).payload()
        target = tmp_path / name / "000001.tlc"
        target.parent.mkdir()
        cuts = borders(data) + [rng.randrange(len(data) + 1) for _ in range(200)]
        for cut in cuts:
            target.write_bytes(data[:cut])
            try:
                stream = read_stream(target.parent)
            except RecordingError:
                assert cut < borders(data)[0], "only a torn head cannot be read"
                continue
            assert whole.startswith(stream.payload())
            assert stream.closed == (cut == len(data)) and (stream.intact or cut < len(data))


def test_a_run_is_reported_and_replayed_from_any_prefix_of_its_files(made: Path, tmp_path: Path) -> None:
    rng = random.Random(7)
    files = {name: (made / name / "000001.tlc").read_bytes() for name in STREAMS}
    at_borders = sorted({b / len(data) for data in files.values() for b in borders(data)})
    parts = [*(at_borders[:: max(1, len(at_borders) // 6)]), 1.0, *(rng.random() for _ in range(20))]
    copy = Path(shutil.copytree(made, tmp_path / "copy"))
    for k, part in enumerate(parts):
        for name, data in files.items():
            (copy / name / "000001.tlc").write_bytes(data[: round(part * len(data))])
        found = load_run(copy)
        assert part == 1.0 or found.incomplete
        assert analyse(copy).exit_status == 1  # the gates of the desk rig want more than 1.5 s
        if k % 4 == 0 or part == 1.0:
            try:
                result = replay(copy)
            except TorqueloopError as error:
                assert "no record" in str(error) or "head" in str(error) or "torn" in str(error)
                continue
            assert result.difference is None and result.ticks <= 1500
            assert part < 1.0 or (result.passed and result.ticks == 1500)
