"""A recording is what it was made of: what is missing, changed or forged in a run directory is named by `report`,
`replay` and `--from`, never passed over, never a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_help import Running
from rig_help import CONFIGS, DESK, run
from test_bad_input import call

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import read_toml
from torqueloop.hil.control.client import ControlError
from torqueloop.hil.record.recording import read_stream
from torqueloop.hil.rig.online.restore import COUNT_MAX, Checkpoints
from torqueloop.hil.rig.run.replay import _Comparison, replay

STREAMS = ("signals", "inputs", "bus")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "run"
    run(DESK, out, 1.0, gates=None)
    assert len(read_stream(out / "inputs").chunks) >= 1
    return out


@pytest.fixture
def recording(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def checks(folder: Path) -> str:
    """What `report` says of the recording."""
    return call("report", folder, "--no-html")[1]


def test_an_untouched_recording_has_no_gaps(recording: Path) -> None:
    # checks that pass are counted, not named
    text = checks(recording)
    assert "recording without gaps" not in text and "checks of every run passed" in text
    assert call("replay", recording)[0] == 0


@pytest.mark.proof
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("how", ["cut", "flipped", "gone", "emptied", "no end mark"])
def test_every_stream_counts(recording: Path, stream: str, how: str) -> None:
    file = recording / stream / "000001.tlc"
    data = file.read_bytes()
    if how == "cut":
        file.write_bytes(data[: len(data) * 2 // 3])
    elif how == "flipped":
        file.write_bytes(data[:-1000] + bytes([data[-1000] ^ 1]) + data[-999:])
    elif how == "gone":
        shutil.rmtree(file.parent)
    elif how == "emptied":
        file.write_bytes(b"")
    else:
        file.write_bytes(data[:-16])
    text = checks(recording)
    # without any signals there is nothing to look for gaps in
    lost = "FAIL signals recorded no signals were recorded"
    assert ("FAIL recording without gaps" in text and f"{stream}: " in text) or (stream == "signals" and lost in text)
    assert call("replay", recording)[0] in (0, 1, 2)


def test_a_file_that_is_there_twice_is_seen(recording: Path) -> None:
    for stream in STREAMS:
        shutil.copy(recording / stream / "000001.tlc", recording / stream / "000002.tlc")
    text = checks(recording)
    assert text.count("chunk out of order") >= 3
    status, text = call("replay", recording)
    assert status == 0 and "1000 ticks" in text


# --- what a run was made of -----------------------------------------------------------------------------------------


def test_a_changed_copy_is_named_and_not_replayed(recording: Path) -> None:
    copy = next((recording / "config").rglob("drive_4hp22.toml"))
    copy.write_text(copy.read_text() + "\n")
    assert "was changed after the run" in checks(recording)
    status, text = call("replay", recording)
    assert status == 2 and "drive_4hp22.toml was changed" in text
    copy.unlink()
    status, text = call("replay", recording)
    assert status == 2 and "drive_4hp22.toml is missing" in text


@pytest.mark.parametrize("how", ["in the file", "by --set"])
def test_a_replay_reads_the_copies_wherever_the_originals_were(tmp_path: Path, how: str) -> None:
    configs = Path(shutil.copytree(CONFIGS, tmp_path / "configs", ignore=shutil.ignore_patterns("__pycache__")))
    rig, train = configs / "rigs" / "desk_4hp22.toml", configs / "powertrains" / "car_4hp22_rig.toml"
    more: list[str] = []
    if how == "in the file":
        rig.write_text(rig.read_text().replace("../powertrains/car_4hp22_rig.toml", str(train)))
        train.write_text(train.read_text().replace('"drive_4hp22.toml"', f"'{configs}/powertrains/drive_4hp22.toml'"))
    else:
        more = ["--set", f"plant.powertrain={train}"]
    out = tmp_path / "run"
    call("run", rig, "--clock", "virtual", "--duration", "0.3", "--quiet", "--no-html", "--out", out, *more)
    drive = configs / "drives" / "drive_528i.toml"
    drive.write_text(drive.read_text().replace("m_kg = 1500", "m_kg = 1700"))
    status, text = call("replay", out)
    assert status == 0, text
    shutil.rmtree(configs)
    status, text = call("replay", out)
    assert status == 0 and "identical" in text, text


def test_nothing_outside_of_a_recording_is_read_for_its_replay(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever asks for it: here the reader of the rig file itself."""
    outside = tmp_path / "outside.toml"
    outside.write_text("x = 1\n")

    def load(path: Path, *_: object) -> None:
        read_toml(path)
        read_toml(outside)

    monkeypatch.setattr("torqueloop.hil.rig.resolve.plan.load_plan", load)
    with pytest.raises(ConfigError, match="not part of the recording"):
        replay(recording)


# --- checkpoints ----------------------------------------------------------------------------------------------------


def test_no_client_writes_over_what_a_replay_needs(tmp_path: Path) -> None:
    going = Running(DESK, tmp_path / "run", 20.0)
    with going.client() as client:
        client.checkpoint("a")
        client.restore("a")
        with pytest.raises(ControlError, match="restored-"):
            client.checkpoint("restored-1")
        client.stop()
    going.join()
    assert call("replay", tmp_path / "run")[0] == 0


def test_checkpoints_of_a_run_have_a_quota(tmp_path: Path) -> None:
    going = Running(DESK, tmp_path / "run", 20.0)
    with going.client() as client:
        client.checkpoint("a")
        size = (tmp_path / "run" / "control" / "a.tlc").stat().st_size
        assert size * COUNT_MAX < 100_000_000, "the quota is what a disk has room for"
        Checkpoints.__init__.__globals__["COUNT_MAX"] = 2
        try:
            client.checkpoint("b")
            with pytest.raises(ControlError, match="2 checkpoints .* allowed in a run: 2"):
                client.checkpoint("c")
        finally:
            Checkpoints.__init__.__globals__["COUNT_MAX"] = COUNT_MAX
        client.stop()
    going.join()
    assert not (tmp_path / "run" / "control" / "c.tlc").exists()


def test_a_parameter_is_not_changed_in_the_safe_state(tmp_path: Path) -> None:
    going = Running(DESK, tmp_path / "run", 20.0, overrides={"safe_state.stop_after_s": -1.0})
    with going.client() as client:
        before = client["car.m"]
        client.safe()
        while not client.status()["safe"]:
            pass
        with pytest.raises(ControlError, match="nothing was changed"):
            client.set({"car.m": before + 100.0})
        assert client["car.m"] == before and client.status()["parameters"] == {}
        client.stop()
    going.join()
    assert call("replay", tmp_path / "run")[0] == 0


def test_a_replay_sees_a_recorded_number_that_differs_in_its_last_bit(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = _Comparison._read_to

    def changed(self: _Comparison, tick: int) -> Any:
        found = read(self, tick).copy()
        speed = self.names.index("engine.w")
        at = found["tick"] == 600
        found["out"][at, speed] = np.nextafter(found["out"][at, speed], np.inf)
        return found

    monkeypatch.setattr(_Comparison, "_read_to", changed)
    result = replay(recording)
    assert result.difference is not None and not result.passed
    assert (result.difference.tick, result.difference.name) == (600, "engine.w")
