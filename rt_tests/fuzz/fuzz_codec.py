"""CAN frames against an oracle: a layout made of bytes, a frame made of bytes, decoded by the tick's codec and by
cantools."""

from __future__ import annotations

import math
import random

import numpy as np
from cantools.database.can import Message, Signal
from cantools.database.conversion import BaseConversion

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec

SCALES = (1.0, 0.5, -2.0, 1e-3, 1e5, 1e300, 0.0, math.inf)
OFFSETS = (0.0, -40.0, 273.15, 1e308, math.nan)
#: a signal takes this many bytes of an input, the frame the last 8
ENTRY = 5


def seeds() -> list[bytes]:
    """Some layouts with some data."""
    rng = random.Random(1)
    return [rng.randbytes(ENTRY * n + 8) for n in (1, 1, 2, 3, 4) for _ in range(4)]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Another layout, or other data for this one."""
    out = bytearray(data if len(data) > 8 else rng.randbytes(13))
    for _ in range(rng.choice((1, 2, 4))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _layout(data: bytes) -> list[SignalSpec]:
    found = []
    for n in range(min(4, (len(data) - 8) // ENTRY)):
        start, length, flags, scale, offset = data[ENTRY * n : ENTRY * (n + 1)]
        is_float = flags & 0xC == 0xC
        length = (32, 64)[length & 1] if is_float else 1 + length % 64
        found.append(SignalSpec(
            f"s{n}", start % 64, length, bool(flags & 1), bool(flags & 2) and not is_float, is_float,
            SCALES[scale % len(SCALES)] if scale & 8 else 1.0, OFFSETS[offset % len(OFFSETS)] if offset & 8 else 0.0,
            slot=n,
        ))  # fmt: skip
    return found


def _oracle(signals: list[SignalSpec], data: bytes) -> dict[str, float]:
    made = [
        Signal(s.name, s.start, s.length, "big_endian" if s.big_endian else "little_endian", s.signed,
               conversion=BaseConversion.factory(s.scale, s.offset, None, s.is_float))
        for s in signals
    ]  # fmt: skip
    try:
        decoded = Message(0x123, "M", 8, made).decode(data, decode_choices=False)
        return {name: float(value) for name, value in decoded.items()}  # type: ignore[union-attr, arg-type]
    except OverflowError:  # a whole number times a scale
        return {s.name: math.inf for s in signals}


def read(data: bytes) -> None:
    """Both decode the same, or the codec says that a value is none; and what it sends, it reads back."""
    signals, frame = _layout(data), data[-8:].ljust(8, b"\0")
    try:
        tables = CodecTables([MessageSpec("M", 0x123, False, 8, True, tuple(signals))], max(1, len(signals)))
    except ValueError:
        return  # the layout is impossible: overlapping, outside, no scale
    table = np.full(max(1, len(signals)), np.nan)
    status = RxState(tables).decode(table, 0x123, frame)
    expected = _oracle(signals, frame)
    finite = all(map(math.isfinite, expected.values()))
    assert status in (k.OK, k.RANGE), status
    assert finite or status == k.RANGE, (expected, status)
    if status != k.OK:
        assert any(not math.isfinite(x) or abs(x) > 1e300 for x in expected.values()), (expected, status)
        return
    for s in signals:
        scale = abs(s.offset) + abs(expected[s.name] - s.offset) + abs(expected[s.name])
        assert abs(table[s.slot] - expected[s.name]) <= 1e-13 * scale, (s, table[s.slot], expected[s.name])
    sent = CodecTables([MessageSpec("M", 0x123, False, 8, False, tuple(signals))], max(1, len(signals)))
    again = table.copy()
    status, _, wire = TxState(sent).encode(table, 0)
    assert status == k.OK and RxState(tables).decode(again, 0x123, wire) == k.OK
