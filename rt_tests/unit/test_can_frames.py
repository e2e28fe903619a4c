"""Frames of real buses (reference/can/frames.yaml, each with its source) through the codec: checksums and counters.

A frame with a checksum is taken as it is and refused with the checksum changed by one. Values: test_can_facts.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.bits import Split, all_bits, parts
from torqueloop.cython_kernels.can.codec import CodecTables, RxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec

FRAMES = Path(__file__).resolve().parents[1] / "reference" / "can" / "frames.yaml"
#: rule of the file -> profile, checksum, alive counter by identifier (None: every other one); start|length as in a DBC,
#: from the layouts that the sources publish
LOW, NONE = (56, 4, False), None
MQB = {
    0x0AD: "3F 69 39 DC 94 F9 14 64 D8 6A 34 CE A2 55 B5 2C",
    0x121: "E9 65 AE 6B 7B 35 E5 5F 4E C7 86 A2 BB DD EB B4",
    0x0FD: "B4 EF F8 49 1E E5 C2 C0 97 19 3C C9 F1 98 D6 61",
}
SPLIT = ((46, 2, False), (62, 2, False)), ((14, 2, False), (30, 2, False))
RULES: dict[str, tuple[str, dict[int | None, tuple[Split, Split | None]]]] = {
    "bmw_sum": ("BMW_SUM", {
        0x0BA: ((40, 8, False), (48, 4, False)), 0x1A0: ((56, 8, False), (52, 4, False)),
        0x19E: ((56, 8, False), NONE), None: ((0, 8, False), (8, 4, False)),
    }),
    "bmw_sum4": ("BMW_SUM4", {None: ((36, 4, False), (32, 4, False))}),
    "xor": ("XOR", {0x480: ((56, 8, False), NONE), 0x488: ((0, 8, False), (60, 4, False))}),
    "autosar_e2e_2": ("AUTOSAR_P02", {None: ((0, 8, False), (8, 4, False))}),
    "hyundai_nibbles": ("HYUNDAI_NIBBLES", {None: (LOW, (60, 2, False))}),
    "minus the sum": ("HYUNDAI_NIBBLES", {None: (LOW, NONE)}),
    "hyundai_canfd": ("HYUNDAI_CANFD", {None: ((0, 16, False), (16, 8, False))}),
    "hyundai_bits": ("HYUNDAI_BITS", {None: SPLIT}),
    "j1939_tsc1": ("J1939", {None: ((60, 4, False), LOW)}),
    "even parity": ("PARITY_01", {None: ((47, 1, True), NONE)}),
    "fca_giorgio": ("FCA_GIORGIO", {0x0DE: ((47, 8, True), (35, 4, True)), 0x106: ((55, 8, True), (43, 4, True)),
                                    0x122: ((31, 8, True), (19, 4, True)), 0x0FE: ((63, 8, True), (51, 4, True))}),
    "toyota_sum": ("TOYOTA", {0x141: ((31, 8, True), NONE), None: ((63, 8, True), NONE), 0x283: ((55, 8, True), NONE)}),
    "honda_nibbles": ("HONDA", {None: ((35, 4, True), (37, 2, True))}),
    "crc8 0x1D": ("SAE_J1850", {None: ((56, 8, False), NONE)}),
}  # fmt: skip


def frames() -> list[dict[str, Any]]:
    """All frames of the file."""
    return list(yaml.safe_load(FRAMES.read_text(encoding="utf-8"))["vectors"])


PROTECTED = [v for v in frames() if "rule" in v]


def spec_of(frame: dict[str, Any]) -> MessageSpec:
    """The codec's description of a frame: protection, and a signal for each other bit."""
    name = max((r for r in RULES if frame["rule"].startswith(r)), key=len)
    profile, places = RULES[name]
    can_id, n = int(frame["id"], 16), len(bytes.fromhex(frame["data"]))
    crc, counter = places[can_id] if can_id in places else places[None]
    free = sorted(set(range(8 * n)) - all_bits(crc) - all_bits(counter))
    return MessageSpec(
        frame["message"], can_id, len(frame["id"]) > 5, n, True,
        tuple(SignalSpec(f"b{bit}", bit, 1, slot=i) for i, bit in enumerate(free)), e2e=profile, crc_bits=crc,
        counter=counter, data_ids=tuple(bytes.fromhex(MQB[can_id])) if profile == "AUTOSAR_P02" else (),
        e2e_init=0 if "start 0 " in frame["rule"] else None, fd=n > 8,
    )  # fmt: skip


def test_no_frame_with_a_checksum_is_left_out() -> None:
    assert len(frames()) == 92 and len(PROTECTED) == 70
    assert {v["rule"] for v in PROTECTED} >= {"bmw_sum", "bmw_sum4", "hyundai_bits", "j1939_tsc1", "fca_giorgio"}


@pytest.mark.parametrize("frame", PROTECTED, ids=lambda f: f"{f['message']} {f['data']}")
def test_the_checksum_is_right_and_any_other_is_refused(frame: dict[str, Any]) -> None:
    spec, data = spec_of(frame), bytes.fromhex(frame["data"])
    frame_id = spec.can_id | (0x80000000 if spec.extended else 0)
    n = len(spec.signals)

    def status(one: bytes) -> int:
        return int(RxState(CodecTables([spec], n)).decode(np.zeros(n), frame_id, one, 0, 4 * spec.fd))

    assert status(data) == k.OK
    # as the source prints them
    value = number(data, spec.crc_bits)
    assert value == int(frame["checksum"], 16)
    if "counter" in frame and spec.counter is not None:
        assert number(data, spec.counter) == frame["counter"]
    assert status(write(data, spec.crc_bits, value ^ 1)) == k.CRC
    if spec.counter is not None and spec.e2e not in ("HYUNDAI_BITS",):
        assert status(write(data, spec.counter, number(data, spec.counter) ^ 1)) in (k.CRC, k.JUMP)


def number(data: bytes, field: Split | None) -> int:
    """A field, bit by bit, without the codec."""
    value, at = 0, 0
    for start, length, big in parts(field):
        if big:
            run = int("".join(f"{b:08b}" for b in data)[8 * (start // 8) + 7 - start % 8 :][:length], 2)
            if length > 8:
                raise ValueError("not needed here")
        else:
            run = int.from_bytes(data, "little") >> start & ((1 << length) - 1)
        value |= run << at
        at += length
    return value


def write(data: bytes, field: Split | None, value: int) -> bytes:
    """The frame with another number in a field."""
    out = bytearray(data)
    for start, length, big in parts(field):
        low = 8 * (start // 8) + start % 8 - length + 1 if big else start
        word = int.from_bytes(out, "little") & ~(((1 << length) - 1) << low) | (value & ((1 << length) - 1)) << low
        out = bytearray(word.to_bytes(len(out), "little"))
        value >>= length
    return bytes(out)
