"""Bus logs through python-can's writers: what is read again is what was on the bus; MF4 is an ASAM bus log."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import can
import numpy as np
import pytest

import torqueloop
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.record.bus_log import (
    FLAG_BRS,
    FLAG_FD,
    FLAG_REMOTE,
    ID_EXTENDED,
    bus_header,
    pack_frame,
    write_bus_log,
    write_candump,
)
from torqueloop.hil.record.mf4 import write_mf4
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import RunInfo

DBC = Path(torqueloop.__file__).parent / "configs" / "can" / "tcu_4hp22.dbc"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A bus with classic frames of the database both ways, a long identifier, an FD frame, a remote one."""
    codec = CanDatabase.load(DBC, "TCU").codec()
    writer = ChunkWriter(tmp_path / "bus", bus_header("vcan0", 1_700_000_000_000_000_000))
    for k in range(100):
        data = codec.encode("TCU_Pressure_1", {"p_C4": 1e4 * k})
        writer.write(pack_frame(10_000_000 * k + 1000, 0x210, data, tx=False))
        writer.write(pack_frame(10_000_000 * k + 500_000, 0x110, bytes([k] * 8), tx=True))
    writer.write(pack_frame(1_000_000_000, 0x18DAF110 | ID_EXTENDED, b"\x01\x02", tx=True))
    writer.write(pack_frame(1_001_000_000, 0x300, bytes(range(48)), tx=False, flags=FLAG_FD | FLAG_BRS))
    writer.write(pack_frame(1_002_000_000, 0x301, b"", tx=False, flags=FLAG_REMOTE))
    writer.close()
    return tmp_path


@pytest.mark.parametrize("ending", ["blf", "asc", "log"])
def test_every_frame_comes_back(run_dir: Path, ending: str) -> None:
    assert write_bus_log(run_dir, run_dir / f"bus.{ending}") == 203
    found = list(can.LogReader(str(run_dir / f"bus.{ending}")))
    assert len(found) == 203
    first, second = found[0], found[1]
    assert (first.arbitration_id, first.is_rx, len(first.data)) == (0x210, True, 8)
    assert (second.arbitration_id, second.is_rx, bytes(second.data)) == (0x110, False, bytes(8))
    times = [m.timestamp - first.timestamp for m in found]
    assert times == sorted(times) and times[1] == pytest.approx(0.000499, abs=2e-6)
    by_id = {m.arbitration_id: m for m in found}
    assert by_id[0x18DAF110].is_extended_id and not by_id[0x210].is_extended_id
    assert by_id[0x300].is_fd and by_id[0x300].bitrate_switch and bytes(by_id[0x300].data) == bytes(range(48))
    assert by_id[0x301].is_remote_frame


@pytest.mark.parametrize("ending", ["blf", "log"])
def test_frames_that_were_logged_out_of_order_keep_their_own_data_and_length(tmp_path: Path, ending: str) -> None:
    """A received frame is older than one that was sent before it was taken from the socket."""
    writer = ChunkWriter(tmp_path / "bus", bus_header("vcan0", 1_700_000_000_000_000_000))
    for ms, data in ((3, b"\x03\x33"), (1, b"\x01\x11\x11"), (2, b"\x02")):
        writer.write(pack_frame(1_000_000 * ms, 0x100 + ms, data, tx=False))
    writer.close()
    write_bus_log(tmp_path, tmp_path / f"bus.{ending}")
    found = [(m.arbitration_id, bytes(m.data)) for m in can.LogReader(str(tmp_path / f"bus.{ending}"))]
    assert found == [(0x101, b"\x01\x11\x11"), (0x102, b"\x02"), (0x103, b"\x03\x33")]


def test_mf4_is_a_bus_log_that_asammdf_decodes(run_dir: Path) -> None:
    """With the database, the signals come out of it: what an ASAM bus log is for."""
    asammdf = pytest.importorskip("asammdf")
    assert write_bus_log(run_dir, run_dir / "bus.mf4") == 203
    with asammdf.MDF(run_dir / "bus.mf4") as mdf:
        found = mdf.extract_bus_logging({"CAN": [(str(DBC), 0)]})
        pressure = found.get("p_C4", group=next(k for k, g in enumerate(found.groups) if "p_C4" in
                             [c.name for c in g.channels]))  # fmt: skip
    assert len(pressure.samples) == 100
    step = pressure.samples[51] - pressure.samples[50]
    assert step > 0 and pressure.timestamps[51] - pressure.timestamps[50] == pytest.approx(0.01, abs=1e-6)


def test_another_ending_is_refused(run_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"bus.xyz.*blf, asc, mf4"):
        write_bus_log(run_dir, run_dir / "bus.xyz")


@pytest.fixture
def two_buses(tmp_path: Path) -> Path:
    """The same identifier on both buses, a second apart."""
    buses = [{"name": "powertrain", "channel": "vcan0"}, {"name": "chassis", "channel": "vcan1"}]
    writer = ChunkWriter(tmp_path / "bus", bus_header("vcan0", 1_700_000_000_000_000_000, buses=buses))
    for k in range(10):
        writer.write(pack_frame(1_000_000_000 * k, 0x210, bytes([k] * 8), tx=False, bus=k % 2))
    writer.close()
    return tmp_path


@pytest.mark.parametrize(("ending", "channels"), [("blf", (0, 1)), ("asc", (0, 1)), ("trc", (1, 2)), ("mf4", (1, 2)),
                                                  ("log", ("can0", "can1"))])  # fmt: skip
def test_each_bus_is_a_channel_of_its_own(two_buses: Path, ending: str, channels: tuple[object, object]) -> None:
    if ending == "mf4":
        pytest.importorskip("asammdf")
    write_bus_log(two_buses, two_buses / f"bus.{ending}")
    found = list(can.LogReader(str(two_buses / f"bus.{ending}")))
    assert [(m.channel, m.data[0]) for m in found] == [(channels[k % 2], k) for k in range(10)]


def test_csv_which_has_no_channels_is_written_once_a_bus(two_buses: Path) -> None:
    assert write_bus_log(two_buses, two_buses / "bus.csv") == 10
    assert not (two_buses / "bus.csv").exists()
    first, second = (list(can.LogReader(str(two_buses / f"bus.{name}.csv"))) for name in ("powertrain", "chassis"))
    assert [m.data[0] for m in first] == [0, 2, 4, 6, 8] and [m.data[0] for m in second] == [1, 3, 5, 7, 9]


def test_candump_text_names_the_buses(two_buses: Path) -> None:
    write_candump(two_buses, two_buses / "bus.log")
    words = [line.split()[1] for line in (two_buses / "bus.log").read_text().splitlines()]
    assert words == ["powertrain", "chassis"] * 5


def test_a_line_of_candump_is_what_wireshark_reads(two_buses: Path) -> None:
    """Time, interface and frame, and nothing behind them: a trailing R or T makes Wireshark refuse the file."""
    write_candump(two_buses, two_buses / "bus.log")
    lines = (two_buses / "bus.log").read_text().splitlines()
    assert len(lines) == 10
    for line in lines:
        assert re.fullmatch(r"\(\d{10}\.\d{6}\) \w+ [0-9A-F]+#(#[0-9A-F])?([0-9A-F]{2})*", line), line


@pytest.mark.parametrize(("clock", "late"), [("real", 0), ("real", 120), ("virtual", 0)])
def test_mf4_begins_when_the_run_did(tmp_path: Path, clock: str, late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it is exported, nor with the first recorded tick; frames and signals of one instant stand at one time in
    both files. In pieces of 300 samples."""
    monkeypatch.setattr("torqueloop.hil.record.mf4.SAMPLES", 300)
    asammdf = pytest.importorskip("asammdf")
    armed_ns = 5_000_000_000 if clock == "real" else 0
    epoch_ns = 1_700_000_000_000_000_000 if clock == "real" else 0
    begun = datetime(2023, 11, 14, 22, 13, 25, tzinfo=UTC)  # 1 700 000 005 s
    write_run_info(tmp_path, RunInfo("rig", clock=clock, started=begun.isoformat(timespec="seconds")))
    bus = ChunkWriter(tmp_path / "bus", bus_header("vcan0", epoch_ns))
    bus.write(pack_frame(armed_ns + 250_000_000, 0x210, bytes(8), tx=False))
    bus.close()
    records = np.zeros(1000, signal_dtype(1))
    records["tick"] = np.arange(1000)
    records["t_wall_ns"] = armed_ns + 1_000_000 * np.arange(1000) if clock == "real" else 0
    records["out"][249:] = 1.0  # its end is at 0.25 s
    records["wake_lateness_ns"], records["compute_ns"] = 1500, 2000 + records["tick"]
    signals = ChunkWriter(tmp_path / "signals", signal_header(["a"], ["1"], 1e-3))
    signals.write(records[late:].tobytes())
    signals.close()
    write_bus_log(tmp_path, tmp_path / "bus.mf4")
    write_mf4(tmp_path, tmp_path / "signals.mf4")
    with asammdf.MDF(tmp_path / "bus.mf4") as frames, asammdf.MDF(tmp_path / "signals.mf4") as numbers:
        assert abs((frames.header.start_time - begun).total_seconds()) < 1e-3
        assert frames.header.start_time == numbers.header.start_time
        at = frames.get("CAN_DataFrame.ID").timestamps[0]
        a = numbers.get("a")
        assert at == pytest.approx(0.25, abs=1e-9) == a.timestamps[a.samples.argmax()]
        assert len(a.samples) == 1000 - late
        assert (numbers.get("rig.wake_lateness").samples == 1.5).all()
        np.testing.assert_allclose(numbers.get("rig.compute").samples, 2.0 + 1e-3 * np.arange(late, 1000))
