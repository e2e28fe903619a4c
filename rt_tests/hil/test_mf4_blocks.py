"""MF4 logs that unpack to gigabytes are refused before they are unpacked; real ones are read as before."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import can
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can import mf4_blocks
from torqueloop.hil.can.mf4_blocks import MOST, check_blocks
from torqueloop.hil.can.recorded import log_messages

asammdf = pytest.importorskip("asammdf")


def recorded(path: Path, frames: int) -> Path:
    with can.Logger(path) as log:
        for k in range(frames):
            log(
                can.Message(
                    timestamp=1e9 + 1e-3 * k, arbitration_id=0x100 + k % 5, is_extended_id=False, data=[k % 251] * 8
                )
            )
    return path


def packed_again(path: Path) -> Path:
    """The log with its blocks deflated, by asammdf."""
    with asammdf.MDF(path) as log:
        return Path(log.save(path.with_name("packed.mf4"), compression=2))


def test_a_log_with_packed_blocks_is_read_whole(tmp_path: Path) -> None:
    path = packed_again(recorded(tmp_path / "drive.mf4", 3000))
    assert path.read_bytes().count(b"##DZ") >= 1
    got = list(log_messages(path))
    assert [m.arbitration_id for m in got] == [0x100 + k % 5 for k in range(3000)]
    assert [m.data[0] for m in got] == [k % 251 for k in range(3000)]


@pytest.mark.parametrize("honest", [True, False], ids=["says so", "says less"])
def test_a_block_that_would_fill_the_memory_is_refused(tmp_path: Path, honest: bool) -> None:
    """The first packed block of a log, with zeros of 64 MiB in its place."""
    path = packed_again(recorded(tmp_path / "drive.mf4", 3000))
    content = path.read_bytes()
    zeros = zlib.compress(bytes(64 << 20), 9)
    at = content.index(b"##DZ")
    head = struct.pack(
        "<4s4xQQ2sBxIQQ", b"##DZ", 48 + len(zeros), 0, b"DT", 0, 0, 64 << 20 if honest else 1 << 16, len(zeros)
    )
    path.write_bytes(content[:at] + head + zeros)
    tracemalloc.start()
    with pytest.raises(ConfigError, match=f"packed.mf4: bus log cannot be read: a block .*{MOST}"):
        list(log_messages(path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * MOST


def test_many_blocks_that_are_allowed_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_again(recorded(tmp_path / "drive.mf4", 3000))
    whole = sum(
        struct.unpack_from("<Q", path.read_bytes(), at + 32)[0]
        for at in range(0, path.stat().st_size, 8)
        if path.read_bytes()[at : at + 4] == b"##DZ"
    )
    monkeypatch.setattr(mf4_blocks, "MOST_TOGETHER", whole)
    check_blocks(path)
    monkeypatch.setattr(mf4_blocks, "MOST_TOGETHER", whole - 1)
    with pytest.raises(ValueError, match=str(whole - 1)):
        check_blocks(path)
