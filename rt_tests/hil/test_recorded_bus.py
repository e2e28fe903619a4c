"""A recorded bus comes back: read frame by frame, replayed to the same state hash from each form, sent to a bus."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from datetime import datetime
from pathlib import Path

import can
import numpy as np
import pytest
from rig_help import UNHURRIED, rig_file
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import EXTENDED, Frame
from torqueloop.hil.can.recorded import Protector, RecordedBus, flags_of
from torqueloop.hil.cli import app
from torqueloop.hil.common.locate import locate
from torqueloop.hil.ecu.control_unit import EcuInputs
from torqueloop.hil.ecu.recording import RecordedUnit
from torqueloop.hil.ecu.replay_bus import replay_bus, rest_of_bus
from torqueloop.hil.record.bus_log import FLAG_TX, write_bus_log, write_candump
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.runs.recorded_run import RecordedRun

DBC = locate("tcu_4hp22", "can")
FORMS = ("blf", "asc", "log", "mf4")
SECONDS = 0.6


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordedRun, Path]:
    """A run of the desk rig, and its bus in every form."""
    folder = tmp_path_factory.mktemp("bus")
    run = tl.run("desk_4hp22", duration=SECONDS, out=folder / "run",
                 overrides={"driver.pedal": 0.8, "record.bus_formats": list(FORMS)})  # fmt: skip
    for form in FORMS:
        if form == "mf4":
            pytest.importorskip("asammdf")
        (write_candump if form == "log" else write_bus_log)(run.path, folder / f"bus.{form}")
    return run, folder


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_while_running_is_what_is_exported(made: tuple[RecordedRun, Path], form: str) -> None:
    """So all that holds below of the one holds of the other; and the recorder has counted every frame of the rig."""
    run, folder = made
    with can.LogReader(folder / f"bus.{form}") as exported, can.LogReader(run.path / f"bus.{form}") as streamed:
        wanted, found = list(exported), list(streamed)
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found, strict=True):
        assert a.equals(b, timestamp_delta=2e-6)
    bus = run.stats.buses["powertrain"]
    told = run.stats.recording[f"bus.{form}"].records, run.stats.recording["bus"].records
    assert told == (len(wanted), len(wanted)) and len(wanted) == bus.rx_frames + bus.tx_frames


@pytest.mark.parametrize("form", FORMS)
def test_every_frame_is_read_as_it_was_sent(made: tuple[RecordedRun, Path], form: str) -> None:
    """Identifier, data, flags and order, and direction where the form has it; times to the resolution of the form."""
    run, folder = made
    sent = run.frames()
    sent = sent[np.argsort(sent["t_ns"], kind="stable")]
    with can.LogReader(folder / f"bus.{form}") as reader:
        read = list(reader)
    assert len(read) == len(sent) > 300
    for m, frame in zip(read, sent, strict=True):
        assert (m.arbitration_id | EXTENDED * m.is_extended_id, bytes(m.data), flags_of(m), m.is_rx) == (
            int(frame["id"]), bytes(frame["data"][: frame["dlc"]]), int(frame["flags"]) & 0x1F,
            form == "log" or not int(frame["flags"]) & FLAG_TX,
        )  # fmt: skip
    times = np.array([m.timestamp for m in read]) - read[0].timestamp
    assert np.abs(times - (sent["t_ns"] - sent["t_ns"][0]) * 1e-9).max() < 2e-6


@pytest.mark.parametrize("form", FORMS)
def test_an_export_of_a_virtual_run_begins_when_the_run_was_started(made: tuple[RecordedRun, Path], form: str) -> None:
    """Not in 1601 or 1970."""
    run, folder = made
    # python-can reads ASC from 0 on unless it is asked for the date in the head
    absolute = {"relative_timestamp": False} if form == "asc" else {}
    with can.LogReader(folder / f"bus.{form}", **absolute) as reader:
        first = next(iter(reader)).timestamp
    begun = datetime.fromisoformat(run.info.started).timestamp()
    assert begun <= first < begun + 1.0


def test_asammdf_finds_every_frame(made: tuple[RecordedRun, Path]) -> None:
    """As a bus log of ASAM, not by way of python-can's reader."""
    asammdf = pytest.importorskip("asammdf")
    run, folder = made
    frames = run.frames()
    frames = frames[np.argsort(frames["t_ns"], kind="stable")]
    with asammdf.MDF(folder / "bus.mf4") as mdf:
        found = mdf.get("CAN_DataFrame.ID"), mdf.get("CAN_DataFrame.DataBytes")
        np.testing.assert_array_equal(found[0].samples & 0x1FFFFFFF, frames["id"])
        data = [
            bytes(d[:n]) for d, n in zip(found[1].samples, mdf.get("CAN_DataFrame.DataLength").samples, strict=True)
        ]
        assert data == [bytes(f["data"][: f["dlc"]]) for f in frames]
        decoded = mdf.extract_bus_logging({"CAN": [(str(DBC), 0)]})
        gears = (
            decoded.get("TCU_Status.gear_actual") if "TCU_Status.gear_actual" in decoded else decoded.get("gear_actual")
        )
        assert len(gears.samples) > 10


@pytest.mark.proof
@pytest.mark.parametrize("form", FORMS)
def test_the_plant_goes_the_same_way_from_a_recording(
    made: tuple[RecordedRun, Path], form: str, tmp_path: Path
) -> None:
    run, folder = made
    again = replayed(folder / f"bus.{form}", tmp_path / "again", protect=form == "asc")
    assert again.stats.hash == run.stats.hash
    told = again.stats.participants["tcu"].reported
    assert told["frames"] == int((run.frames()["flags"] & FLAG_TX == 0).sum()) and told["log_ended"]
    assert told["moved_us_max"] < 2.0
    # and what was made of a recording is replayed from the run directory alone
    if form == "blf":
        (folder / "bus.blf").rename(folder / "away.blf")
        result = CliRunner().invoke(app, ["replay", str(tmp_path / "again"), "--json"])
        (folder / "away.blf").rename(folder / "bus.blf")
        assert json.loads(result.stdout)["hash_equal"] is True


def replayed(log: Path, out: Path, **options: object) -> RecordedRun:
    """The desk rig on a recorded bus."""
    values = {"driver.pedal": 0.8, "ecu.tcu.kind": "recording", "ecu.tcu.start": str(log)}
    values |= {f"ecu.tcu.options.{key}": value for key, value in options.items()}
    return tl.run("desk_4hp22", duration=SECONDS, out=out, overrides=values)


@pytest.mark.proof
def test_on_the_real_clock_a_recording_takes_the_place_of_the_control_unit(
    made: tuple[RecordedRun, Path], tmp_path: Path, multicast: None
) -> None:
    """In its own process, on the grid of the clock, from the rig's first frame on: all is sent, its lateness told."""
    run, folder = made
    edits = [f'ecu.tcu.start = "{folder / "bus.blf"}"', 'ecu.tcu.kind = "recording"']
    rig = rig_file(tmp_path, *UNHURRIED, *edits, own_bus=True)
    # the log lasts 0.6 s; its process may be held up for longer than that by a busy machine
    again = tl.run(rig, clock="real", duration=4.0, out=tmp_path / "real", html=False)
    told = again.stats.participants["tcu"].reported
    assert told["frames"] == int((run.frames()["flags"] & FLAG_TX == 0).sum()) and told["log_ended"]
    assert told["lateness"]["count"] > 100 and told["lateness"]["max_ms"] >= told["lateness"]["p50_ms"] > 0.0
    # what a message was sent as often, it was taken: the log began with the run, not with the process
    sent = run.stats.buses["powertrain"].rx["TCU_Pressure_1"].ok
    assert not again.stats.safe_state.latched, again.stats.safe_state
    assert again.stats.buses["powertrain"].rx["TCU_Pressure_1"].ok >= sent - 1 > 50
    assert replay(tmp_path / "real").hash_equal


def test_a_tick_later_is_another_run(made: tuple[RecordedRun, Path], tmp_path: Path) -> None:
    """That the hashes above are equal says something."""
    run, folder = made
    later = replayed(folder / "bus.blf", tmp_path / "later", begin_s=0.001)
    assert later.stats.hash != run.stats.hash and sum(bus.rx_frames for bus in later.stats.buses.values()) > 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"start": "nothing.blf"}, "nothing.blf"),
        ({"options.channel": 7}, "no frame that is to be sent on channel 7"),
        ({"options.messages": ["TCU_Statu"]}, "did you mean 'TCU_Status'"),
        ({"options.begin": 1.0}, "begin"),
    ],
)
def test_mistakes_are_named(
    made: tuple[RecordedRun, Path], tmp_path: Path, values: dict[str, object], words: str
) -> None:
    log = made[1] / "bus.asc"
    given = {"ecu.tcu.kind": "recording", "ecu.tcu.start": str(log)} | {f"ecu.tcu.{k}": v for k, v in values.items()}
    with pytest.raises(ConfigError, match=words):
        tl.run("desk_4hp22", duration=0.1, out=tmp_path / "run", overrides=given)


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bus.blf").write_bytes(b"this is no BLF" * 40)
    with pytest.raises(ConfigError, match="bus log cannot be read"):
        RecordedBus(tmp_path / "bus.blf").check()
    with pytest.raises(ConfigError, match="no bus log ends like this"):
        RecordedBus(DBC).check()


def test_a_log_with_something_that_is_no_frame_is_refused(tmp_path: Path) -> None:
    """A database of SQLite may have anything in its columns (found by rt_tests/fuzz/fuzz bus_log)."""
    path = tmp_path / "bus.db"
    with can.Logger(path) as log:
        log.on_message_received(can.Message(arbitration_id=5, data=b"\1", timestamp=3.0))
    assert [frame.data for _, frame in RecordedBus(path)] == [b"\1"]
    for column, value in (("arbitration_id", None), ("arbitration_id", 1 << 40), ("ts", float("inf"))):
        damaged = tmp_path / f"{column}.db"
        damaged.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(damaged)) as data, data:
            data.execute(f"UPDATE messages SET {column} = ?", (value,))
        with pytest.raises(ConfigError, match="bus log cannot be read"):
            list(RecordedBus(damaged))


def test_counters_and_checksums_are_made_anew() -> None:
    """Frames of one message recorded twice over, as a loop would: the second pass jumps back, protected it goes on."""
    codec = CanDatabase.load(DBC, "TCU").codec()
    recorded = [codec.encode("TCU_Pressure_1", {"p_C4": 1e5 * k}) for k in range(5)] * 2
    can_id = codec.can_id("TCU_Pressure_1")
    protector = Protector(DBC, "TCU")
    made = [protector(Frame(can_id, data)).data for data in recorded]
    receiver = CanDatabase.load(DBC, "HIL", timeouts_s={"*": 0.0}).codec()
    assert [receiver.decode(can_id, data)[0] for data in made] == ["ok"] * 10
    assert receiver.decode(can_id, recorded[0])[0] != "ok", "the receiver does look at the counter"
    plain = CanDatabase.load(DBC, "HIL", timeouts_s={"*": 0.0}).codec()
    values = [plain.decode(can_id, data)[1]["p_C4"] for data in made]
    assert values == [1e5 * k for k in range(5)] * 2
    assert made[:5] == recorded[:5], "the first pass was right already"
    short = Frame(can_id, recorded[0][:-1])
    assert protector(short) is short and (protector.done, protector.left) == (10, 1)


class Port:
    """A bus that keeps what it is given."""

    name = "test"

    def __init__(self, fails: bool = False) -> None:
        self.sent: list[tuple[int, bytes, int]] = []
        self.fails = fails

    def send(self, can_id: int, data: bytes, flags: int = 0) -> None:
        if self.fails:
            raise OSError("no buffer space")
        self.sent.append((can_id, data, flags))


def test_the_rest_of_a_bus_goes_to_a_control_unit(made: tuple[RecordedRun, Path]) -> None:
    """All but what the control unit sends itself, in order; lateness is told."""
    run, folder = made
    frames, protector = rest_of_bus(folder / "bus.blf", DBC, "TCU", protect=True)
    port = Port()
    done = replay_bus(frames, port, protector)  # type: ignore[arg-type]
    sent = run.frames()
    ours = sent[sent["flags"] & FLAG_TX != 0]
    assert [(i, d) for i, d, _ in port.sent] == [(int(f["id"]), bytes(f["data"][: f["dlc"]])) for f in ours]
    assert (done.frames, done.others, done.refused) == (len(ours), len(sent) - len(ours), 0)
    assert done.lateness.count == done.frames and done.lateness.max_ms >= done.lateness.p50_ms > 0.0
    assert done.seconds == pytest.approx(ours["t_ns"][-1] * 1e-9, abs=1e-6)
    stop = threading.Event()
    stop.set()
    assert replay_bus(frames, Port(), None, stop).frames == 0  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="node needs a database"):
        rest_of_bus(folder / "bus.blf", None, "TCU")
    with pytest.raises(ConfigError, match="no node 'TCX'"):
        rest_of_bus(folder / "bus.blf", DBC, "TCX")


def test_with_a_clock_of_its_own_it_calls_until_it_is_heard(made: tuple[RecordedRun, Path]) -> None:
    log = RecordedBus(made[1] / "bus.asc")
    first = next(iter(log))[1]
    unit, other = RecordedUnit(log, 1e-3, rig_ids={0x7FF}.__contains__), RecordedUnit(log, 1e-3)
    unit.start()
    stranger = (Frame(0x123, b"", bus=0),)
    calls = [unit.step(EcuInputs(1e-3 * k, stranger)).frames for k in range(1000)]
    assert [k for k, frames in enumerate(calls) if frames] == [0, 250, 500, 750] and calls[250] == (first,)
    other.start()
    heard = (Frame(0x7FF, b""),)
    for k in range(300):
        assert unit.step(EcuInputs(1.0 + 1e-3 * k, heard if k == 0 else ())) == other.step(EcuInputs(1e-3 * k))
    assert unit.sent == other.sent > 0


def test_a_recording_goes_on_from_a_checkpoint(made: tuple[RecordedRun, Path]) -> None:
    log = RecordedBus(made[1] / "bus.asc")
    one, other = (RecordedUnit(log, 1e-3) for _ in range(2))
    one.start()
    for k in range(100):
        one.step(EcuInputs(1e-3 * k))
    other.start()
    other.load(one.save() or {})
    for k in range(100, 200):
        assert one.step(EcuInputs(1e-3 * k)) == other.step(EcuInputs(1e-3 * k))
    assert one.stop() == other.stop() or one.sent == other.sent > 0
