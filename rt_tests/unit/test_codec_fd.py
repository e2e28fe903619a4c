"""CAN FD in the codec: bits against cantools over 64 bytes, the two formats kept apart, protection over the whole
payload, databases with CAN FD messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cantools
import numpy as np
import pytest
from cantools.database import Message, Signal
from cantools.database.conversion import BaseConversion
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import FD_LENGTHS, MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.crc import Crc8
from torqueloop.cython_kernels.rings.ring import FrameRing
from torqueloop.hil.can.database import CanDatabase

FD, BRS = 4, 8


@st.composite
def layouts(draw: st.DrawFn) -> tuple[int, list[SignalSpec]]:
    """(length, signals): regions of one byte order, with holes, cut into signals of any length that the codec takes."""
    length = draw(st.sampled_from([n for n in FD_LENGTHS if n > 0]))
    signals: list[SignalSpec] = []
    byte = 0
    while byte < length and len(signals) < 60:
        byte += draw(st.integers(0, 3))
        if byte >= length:
            break
        n_bytes = draw(st.integers(1, min(20, length - byte)))
        big = draw(st.booleans())
        position, end = 8 * byte, 8 * (byte + n_bytes)
        while position < end:
            n_bits = draw(st.integers(1, min(52, end - position)))
            start = 8 * (position // 8) + 7 - position % 8 if big else position
            signals.append(
                SignalSpec(
                    f"s{len(signals)}", start, n_bits, big, draw(st.booleans()),
                    scale=draw(st.sampled_from([1.0, 0.5, 0.005, 25.0, -0.25])),
                    offset=draw(st.sampled_from([0.0, -40.0, 273.15])), slot=len(signals),
                )
            )  # fmt: skip
            position += n_bits + draw(st.sampled_from([0, 0, 0, 1, 5]))
        byte += n_bytes
    return length, signals


def spec(length: int, signals: list[SignalSpec], receive: bool) -> MessageSpec:
    return MessageSpec("M", 0x123, False, length, receive, tuple(signals), fd=True)


def theirs(length: int, signals: list[SignalSpec]) -> Message:
    return Message(
        0x123, "M", length,
        [
            Signal(s.name, s.start, s.length, "big_endian" if s.big_endian else "little_endian", s.signed,
                   conversion=BaseConversion.factory(s.scale, s.offset, None, False)) for s in signals
        ],
        is_fd=True,
    )  # fmt: skip


@pytest.mark.proof
@settings(max_examples=300, deadline=None)
@given(layouts(), st.data())
def test_both_ways_equal_cantools(layout: tuple[int, list[SignalSpec]], more: st.DataObject) -> None:
    length, signals = layout
    data = more.draw(st.binary(min_size=length, max_size=length))
    table = np.full(len(signals), np.nan)
    receiver = RxState(CodecTables([spec(length, signals, True)], len(signals)))
    assert receiver.decode(table, 0x123, data, 0, FD) == k.OK
    message = theirs(length, signals)
    expected = message.decode(data, decode_choices=False)
    for s in signals:
        assert table[s.slot] == pytest.approx(float(expected[s.name]), rel=1e-14, abs=1e-12), s
    # what cantools encodes from the same doubles (it decodes to integers of any length): holes are 0 on both sides
    sender = TxState(CodecTables([spec(length, signals, False)], len(signals)))
    numbers = {s.name: float(expected[s.name]) for s in signals}
    status, _, ours = sender.encode(np.array([numbers[s.name] for s in signals]), 0)
    assert status == k.OK and ours == message.encode(numbers, padding=False, strict=False)


@pytest.mark.parametrize("length", [12, 64])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("first_bit", [0, 1, 7])
def test_long_signals_are_exact_wherever_they_begin(length: int, big: bool, first_bit: int) -> None:
    for n_bits in (57, 58, 63, 64):
        for byte in range(length - (8 if first_bit + n_bits <= 64 else 9) + 1):
            position = 8 * byte + first_bit
            start = 8 * (position // 8) + 7 - position % 8 if big else position
            message = spec(length, [SignalSpec("x", start, n_bits, big)], True)
            table = np.zeros(1)
            raw = (1 << n_bits - 1) | (1 << n_bits - 30)  # 30 bits: exact in a double
            message = replace(message, receive=False)
            status, _, data = TxState(CodecTables([message], 1)).encode(np.array([float(raw)]), 0)
            assert status == k.OK
            receiver = RxState(CodecTables([replace(message, receive=True)], 1))
            assert receiver.decode(table, 0x123, data, 0, FD) == k.OK and table[0] == raw
            assert theirs(length, list(message.signals)).decode(data)["x"] == raw


def test_a_frame_of_the_other_format_is_refused_and_counted() -> None:
    signal = SignalSpec("x", 0, 8)
    specs = [spec(8, [signal], True), MessageSpec("C", 0x124, False, 8, True, (replace(signal, slot=1),))]
    receiver, table = RxState(CodecTables(specs, 2)), np.zeros(2)
    assert receiver.decode(table, 0x123, b"\x05" + bytes(7)) == k.FORMAT
    assert receiver.decode(table, 0x124, b"\x05" + bytes(7), 0, FD) == k.FORMAT
    assert receiver.decode(table, 0x124, b"\x05" + bytes(7), 0, FD | BRS) == k.FORMAT
    assert list(table) == [0.0, 0.0]
    assert receiver.decode(table, 0x123, b"\x05" + bytes(7), 0, FD | BRS) == k.OK
    assert receiver.decode(table, 0x123, b"\x05" + bytes(11), 0, FD) == k.LENGTH
    counters = receiver.counters()
    assert (counters["M"]["format"], counters["C"]["format"], counters["M"]["length"]) == (1, 2, 1)
    with pytest.raises(ValueError, match="9 data bytes"):
        receiver.decode(table, 0x123, bytes(9))


def test_checksum_and_counter_cover_the_whole_payload() -> None:
    protected = MessageSpec(
        "P", 0x1ABCDE, True, 48, False, tuple(SignalSpec(f"s{i}", 8 * i, 8, slot=i - 2) for i in range(2, 48)),
        e2e="SAE_J1850_ID", data_id=0x4410, crc_byte=0, counter=(8, 4, False), fd=True,
    )  # fmt: skip
    sender = TxState(CodecTables([protected], 46))
    receiver, table = RxState(CodecTables([replace(protected, receive=True)], 46)), np.zeros(46)
    rng = np.random.default_rng(1)
    for i in range(20):
        values = rng.integers(0, 256, 46).astype(float)
        status, can_id, data = sender.encode(values, 0)
        assert status == k.OK and can_id == 0x80000000 | 0x1ABCDE and data[1] == i % 15
        assert data[0] == Crc8.named("SAE_J1850")(bytes([0x10, 0x44]) + data[1:])
        for byte in (1, 30, 47):
            wrong = bytearray(data)
            wrong[byte] ^= 0x10
            assert receiver.decode(table, can_id, bytes(wrong), 0, FD) == k.CRC
        assert receiver.decode(table, can_id, data, 0, FD) == k.OK and (table == values).all()


def test_counter_far_in_the_message() -> None:
    for big, start in ((False, 300), (True, 303)):  # both the high half of byte 37
        message = MessageSpec("P", 1, False, 64, False, (), e2e="XOR", crc_byte=63, counter=(start, 4, big), fd=True)
        sender = TxState(CodecTables([message], 1))
        receiver = RxState(CodecTables([replace(message, receive=True)], 1))
        for i in range(40):
            _, _, data = sender.encode(np.zeros(1), 0)
            assert data[37] >> 4 == i % 16 and receiver.decode(np.zeros(1), 1, data, 0, FD) == k.OK
        assert receiver.decode(np.zeros(1), 1, data, 0, FD) == k.REPEAT


def test_frames_of_both_formats_go_through_the_ring() -> None:
    ring = FrameRing(8)
    assert ring.push(1, bytes(range(64)), 5, FD | BRS) and ring.push(2, b"ab", 6)
    assert ring.pop_all() == [(1, bytes(range(64)), 5, FD | BRS), (2, b"ab", 6, 0)]
    with pytest.raises(ValueError, match="allowed 0..64 for CAN FD"):
        ring.push(1, bytes(65), 0, FD)


# --- databases

DBC = """VERSION ""
NS_ :
BS_:
BU_: HIL TCU
BO_ 256 Long: 32 HIL
 SG_ a : 200|16@1+ (0.5,0) [0|30000] "rpm" TCU
BO_ 257 Short: 8 HIL
 SG_ b : 0|8@1+ (1,0) [0|255] "-" TCU
BO_ 258 Slow: 12 TCU
 SG_ c : 95|8@0+ (1,0) [0|255] "-" HIL
BO_ 259 Classic: 8 TCU
 SG_ d : 0|8@1+ (1,0) [0|255] "-" HIL
BO_ 260 Odd: 10 TCU
 SG_ e : 0|8@1+ (1,0) [0|255] "-" HIL
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","r2","r3","r4","r5","r6","r7","r8","r9","r10","r11","r12",
 "r13","StandardCAN_FD","ExtendedCAN_FD";
BA_DEF_ BO_ "CANFD_BRS" ENUM "0","1";
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 1000;
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
BA_DEF_DEF_ "CANFD_BRS" "1";
BA_DEF_DEF_ "GenMsgCycleTime" 10;
BA_ "VFrameFormat" BO_ 256 14;
BA_ "VFrameFormat" BO_ 257 14;
BA_ "VFrameFormat" BO_ 258 14;
BA_ "CANFD_BRS" BO_ 258 0;
"""


@pytest.fixture
def dbc(tmp_path: Path) -> Path:
    path = tmp_path / "fd.dbc"
    path.write_text(DBC.replace('"r12",\n "r13"', '"r12","r13"'))
    return path


def test_formats_of_a_database_are_taken_over(dbc: Path) -> None:
    db = CanDatabase.load(dbc, "HIL")
    assert {m.name: (m.length, m.fd, m.brs) for m in db.messages} == {
        "Long": (32, True, True), "Short": (8, True, True), "Slow": (12, True, False), "Classic": (8, False, True)
    }  # fmt: skip
    assert db.has_fd and "CAN FD carries" in db.skipped["Odd"]
    sent, received = db.codec(), CanDatabase.load(dbc, "TCU").codec()
    data = sent.encode("Long", {"a": 100.0})
    assert len(data) == 32
    assert received.decode(0x100, data[:8])[0] == "format"
    status, values = received.decode(0x100, data, 0.0, FD | BRS)
    assert status == "ok" and values["a"] == pytest.approx(100.0, abs=0.06)
    plain = cantools.database.load_file(str(dbc)).get_message_by_name("Long")
    assert plain.decode(data)["a"] == pytest.approx(values["a"] * 30 / np.pi)
