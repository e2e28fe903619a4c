"""Random and mutated frames into the receiver: a frame that is refused changes nothing but its own counters, one that
is taken is right by an independent count, and nothing else ever happens.

    python rt_tests/unit/test_codec_fuzz.py 10000000        that many frames from the command line
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import STATUS_NAMES, CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.protection import E2E_PROFILES

FD, ERROR, REMOTE = 4, 2, 1


def messages(receive: bool) -> list[MessageSpec]:
    """One of each family: CRC, header, sum, nibbles, multiplexed, floats, nine bytes, counters with gaps, no check."""
    byte = [SignalSpec("a", 16, 16, slot=0, minimum=0, maximum=40000), SignalSpec("b", 32, 12, True, slot=1)]
    mux = [SignalSpec("m", 8, 4, slot=2), SignalSpec("x", 16, 32, signed=True, slot=3, when=(("m", ((0, 3),)),)),
           SignalSpec("y", 16, 40, slot=4, when=(("m", ((4, 9),)),), invalid=(0xFFFFFFFFFF,), maximum=1e9)]  # fmt: skip
    wide = [SignalSpec("w", 163, 62, slot=5), SignalSpec("f", 256, 64, is_float=True, slot=6, scale=1e5)]
    rows = [
        dict(name="P1", can_id=0x100, length=8, signals=byte, e2e="AUTOSAR_P01_1A", data_id=7, crc_byte=0,
             counter=(8, 4, False)),
        dict(name="P7", can_id=0x101, length=48, signals=wide, e2e="AUTOSAR_P07", data_id=9, fd=True),
        dict(name="Sum", can_id=0x102, length=8, signals=byte, e2e="BMW_SUM", crc_byte=0, counter=(8, 4, False),
             counter_min=1, counter_skips=(5, 9)),
        dict(name="Nibbles", can_id=0x1ABCDEF, extended=True, length=8, signals=byte, e2e="PSA", crc_bits=(7, 4, True)),
        dict(name="Mux", can_id=0x103, length=8, signals=mux, e2e="SAE_J1850", crc_byte=0),
        dict(name="Bare", can_id=0x104, length=8, signals=byte),
    ]  # fmt: skip
    return [MessageSpec(**{"extended": False, **r, "signals": tuple(r["signals"]), "receive": receive}) for r in rows]


def fuzz(n: int, seed: int) -> Counter[str]:
    """n frames: a third random, a third right ones with bits, length or format changed, a third right."""
    rng = np.random.default_rng(seed)
    specs = messages(True)
    rx = RxState(CodecTables(specs, 7))
    sender = TxState(CodecTables(messages(False), 7))
    table = np.zeros(7)
    ids = [s.can_id | (0x80000000 if s.extended else 0) for s in specs]
    seen: Counter[str] = Counter()
    for number in range(n):
        kind, which = number % 3, int(rng.integers(len(specs)))
        values = rng.integers(0, 4000, 7).astype(float)
        values[2] = number % 10
        _, frame_id, data = sender.encode(values, which)
        flags = FD if specs[which].fd else 0
        if kind == 0:
            data, flags = rng.bytes(int(rng.integers(0, 65))), int(rng.choice([0, FD, REMOTE, ERROR, FD | 8]))
            data = data if flags & FD else data[:8]
            frame_id = int(rng.choice(ids)) if number % 2 else int(rng.integers(1 << 32))
        elif kind == 1:
            changed = bytearray(data)
            for bit in rng.integers(0, 8 * len(data), int(rng.integers(1, 4))):
                changed[bit // 8] ^= 1 << bit % 8
            data = bytes(changed)[: len(data) - int(rng.integers(0, 2))]
        before = table.copy()
        status = rx.decode(table, frame_id, data, number * 1000, flags)
        seen[STATUS_NAMES[status]] += 1
        if status != k.OK:
            assert np.array_equal(table, before), (number, STATUS_NAMES[status], data.hex())
        else:
            assert np.isfinite(table).all() and data, number
            if not rx.last_index == 5:
                # what has a checksum and was taken is a frame of the sender, or one in 2^bits by chance
                seen["taken of " + ("random" if kind == 0 else "changed" if kind == 1 else "right")] += 1
    counted = rx.counters()
    total = sum(sum(c[name] for name in STATUS_NAMES if name in c) for c in counted.values()) + rx.unknown
    assert total == n
    return seen


def test_no_refused_frame_changes_a_signal_and_every_frame_is_counted_once() -> None:
    seen = fuzz(30_000, 1)
    assert {"ok", "unknown", "length", "format", "crc", "repeat", "jump", "range"} <= set(seen)
    # three changed bits of ten thousand frames: CRC-8 and nibble sums let some through, no more than 1 in 2^4
    assert seen["taken of changed"] < 10_000 / 16 and seen["taken of right"] > 5_000
    assert E2E_PROFILES["AUTOSAR_P07"].kind


if __name__ == "__main__":
    print(fuzz(int(sys.argv[1]), 2))
