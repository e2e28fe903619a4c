"""BLF logs that unpack to gigabytes are refused before they are unpacked; real ones are read as before."""

from __future__ import annotations

import random
import struct
import tracemalloc
import zlib
from pathlib import Path

import can
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.blf_containers import MOST
from torqueloop.hil.can.recorded import log_messages

TIME = (2026, 11, 0, 29, 1, 2, 3, 4)
HEAD = struct.pack("<4sLBBBBBBBBQQLL8H8H72x", b"LOGG", 144, 5, 0, 0, 0, 2, 6, 8, 1, 0, 0, 1, 1, *TIME, *TIME)


def container(packed: bytes, claimed: int) -> bytes:
    made = struct.pack("<4sHHLL", b"LOBJ", 16, 1, 32 + len(packed), 10) + struct.pack("<H6xL4x", 2, claimed) + packed
    return made + b"\0" * (len(made) % 4)


def zeros(size: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def endless() -> bytes:
    """Containers in which an object begins that never ends."""
    begin = struct.pack("<4sHHLL", b"LOBJ", 16, 1, 0xFFFFFFF0, 86)
    return (
        container(zlib.compress(begin + bytes(1 << 17)), 1 << 17)
        + container(zlib.compress(bytes(1 << 17)), 1 << 17) * 100
    )


@pytest.mark.parametrize(
    "content",
    [container(zeros(64 << 20), 64 << 20), container(zeros(64 << 20), 1 << 17), endless()],
    ids=["large", "larger than it claims", "an object without end"],
)
def test_a_log_that_would_fill_the_memory_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bomb.blf"
    path.write_bytes(HEAD[:144] + content)
    tracemalloc.start()
    with pytest.raises(ConfigError, match=f"bomb.blf: bus log cannot be read: .*{MOST}"):
        list(log_messages(path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * MOST


def test_a_log_of_many_containers_is_read_whole(tmp_path: Path) -> None:
    """20 000 frames of different lengths, which go on from one container to the next."""
    rng, path = random.Random(5), tmp_path / "drive.blf"
    sent = [
        can.Message(1.7e9 + 1e-3 * k, rng.randrange(1 << 11), False, data=rng.randbytes(rng.randrange(9)), channel=0)
        for k in range(20_000)
    ]
    with can.BLFWriter(path, max_container_size=4096) as writer:
        for message in sent:
            writer(message)
    read = list(log_messages(path))
    assert [(m.arbitration_id, bytes(m.data)) for m in read] == [(m.arbitration_id, bytes(m.data)) for m in sent]
