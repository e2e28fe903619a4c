"""Frames into the ticks of a whole rig, and packets into the software bus."""

from __future__ import annotations

import random
import struct
import tempfile
from functools import cache
from pathlib import Path

import mutate
import numpy as np

import torqueloop
from torqueloop.cython_kernels.rings.ring import FrameRing
from torqueloop.hil.can.multicast import pack_frame, unpack_frame
from torqueloop.hil.ecu.soft_tcu import SoftTcu, soft_tcu
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan

DESK = Path(torqueloop.__file__).parent / "configs" / "rigs" / "desk_4hp22.toml"
#: a frame of an input: id, flags, data bytes, data
FRAME = struct.Struct("<IBB8s")
#: frames of a bus that one tick latches (RX_PER_TICK of tick.pxd)
LATCHED = 64
#: flags a classic frame may come with: remote, error
FLAGS = (0, 0, 0, 1, 2)


# --- frames into the tick -------------------------------------------------------------------------------------------


class _Rig:
    """The desk rig: ticks, frames put into its receive ring, and their sender's own tables."""

    def __init__(self) -> None:
        # faults of the bus latch the safe state, which is not left: the ticks go on
        path = Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-")) / "rig.toml"
        path.write_text(f'extends = "{DESK}"\nsafe_state.stop_after_s = -1.0\n', encoding="utf-8")
        self.plan: RigPlan = load_plan(path)
        self.parts = build(self.plan, 1e6)
        self.bus = self.parts.buses[0]
        self.parts.rig.begin(0)

    def take(self, frames: list[tuple[int, int, bytes]]) -> None:
        """Ticks until these frames are taken."""
        n = 1 + len(frames) // LATCHED
        before = self._counted()
        for can_id, flags, data in frames:
            assert self.bus.rx_ring.push(can_id, data, 0, flags)
        assert self.parts.rig.ticks(n, 0) == n, self.parts.rig.cause()
        assert self._counted() - before == len(frames), "a frame is counted once"
        names = len(self.plan.recorded)
        record = np.frombuffer(b"".join(iter(self.parts.samples.drain, b"")), np.uint8)
        values = record.reshape(n, -1)[:, -8 * names :].copy().view(np.float64)
        assert np.isfinite(values).all(), "a signal is no number"
        assert not self.parts.rig.cause()["frozen"]
        for ring in (self.parts.inputs, self.parts.bus_log, self.parts.modes):
            while ring.drain():
                pass
        self.bus.tx_ring.pop_all()

    def _counted(self) -> int:
        rows = self.bus.rx.counters().values()
        kinds = ("ok", "unknown", "length", "format", "crc", "repeat", "jump", "range")
        return sum(row.get(kind, 0) for row in rows for kind in kinds) + int(self.bus.rx.unknown)


@cache
def _rig() -> _Rig:
    return _Rig()


@cache
def _unit() -> SoftTcu:
    """The control unit, whose codec makes frames with the right counters and checksums."""
    return soft_tcu(DESK.parents[1] / "tcu" / "soft_4hp22.toml", DESK.parents[1] / "can" / "tcu_4hp22.dbc")


def _right(rng: random.Random) -> tuple[int, int, bytes]:
    """A frame of the control unit with values it may send, and some it may not."""
    codec = _unit().codec
    message = rng.choice(codec.database.tx_messages)
    values: dict[str, float | str] = {
        s.name: rng.choice((0.0, 1.0, rng.uniform(-1e7, 1e7), 1e300, -1e300)) for s in message.signals
    }
    return message.can_id, 0, codec.encode(message.name, values)


def frames() -> list[bytes]:
    """Some frames that are right."""
    rng = random.Random(2)
    return [_packed([_right(rng) for _ in range(12)]) for _ in range(4)]


def _packed(found: list[tuple[int, int, bytes]]) -> bytes:
    return b"".join(FRAME.pack(i, flags, len(data), data.ljust(8, b"\0")) for i, flags, data in found)


def disturbed(data: bytes, rng: random.Random) -> bytes:
    """Right frames, frames with changed bits, frames of anybody."""
    ids = [m.can_id for m in _unit().codec.database.tx_messages]
    found = []
    for _ in range(24):
        can_id, flags, content = _right(rng)
        kind = rng.random()
        if kind < 0.4:
            changed = bytearray(content)
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            content = bytes(changed[: len(changed) - rng.choice((0, 0, 0, 1))])
        elif kind < 0.7:
            content, flags = rng.randbytes(rng.randrange(9)), rng.choice(FLAGS)
            can_id = rng.choice((*ids, rng.randrange(1 << 32)))
        found.append((can_id, flags, content))
    return _packed(found) if rng.random() < 0.8 else mutate.binary(_packed(found), rng)


def read_frames(data: bytes) -> None:
    """Ticks with these frames."""
    found = []
    for at in range(0, len(data) - FRAME.size + 1, FRAME.size):
        can_id, flags, n, content = FRAME.unpack_from(data, at)
        found.append((can_id, flags & 3, content[: n % 9]))
    _rig().take(found)


# --- packets into the software bus ----------------------------------------------------------------------------------


def packets() -> list[bytes]:
    """As python-can sends them."""
    return [pack_frame(0x110, bytes(8)), pack_frame(0x1ABCDEF | 1 << 31, b"\1\2"), pack_frame(1, bytes(64), 0x0C)]


def read_packet(data: bytes) -> None:
    """A frame that a ring takes, or nothing."""
    frame = unpack_frame(data)
    if frame is None:
        return
    can_id, content, flags = frame
    ring = FrameRing(2)
    assert ring.push(can_id, content, 0, flags) and ring.pop() == (can_id, content, 0, flags)
    again = pack_frame(can_id, content, flags)
    # the packet of a frame is that frame; remote and error frames are not sent
    assert flags & 3 or unpack_frame(again) == frame
