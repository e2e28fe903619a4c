"""Bus logs through python-can's writers: what is read again is what was on the bus; MF4 is an ASAM bus log."""

from __future__ import annotations

from pathlib import Path

import can
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
)
from torqueloop.hil.record.recording import ChunkWriter

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
