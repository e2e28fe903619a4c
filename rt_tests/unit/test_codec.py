"""CAN codec of the tick: bits against cantools, protection rules, every detector provoked."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from cantools.database import Message, Signal
from cantools.database.conversion import BaseConversion
from hypothesis import given, settings
from hypothesis import strategies as st
from repetitions import repetitions

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.crc import Crc8

MS = 1_000_000


# --- bits, against cantools ---


@st.composite
def layouts(draw: st.DrawFn, longest: int = 52, lossless: bool = False) -> list[SignalSpec]:
    """Signals that fill 8 bytes: regions of whole bytes, each of one byte order, cut into signals. `lossless`: value
    and raw number are one to one in doubles, whose four roundings (times scale, plus offset, and back) are a quarter
    of a raw number at 49 bits and may be a whole one at 52."""
    signals: list[SignalSpec] = []
    byte = 0
    while byte < 8:
        n_bytes = draw(st.integers(1, 8 - byte))
        big = draw(st.booleans())
        position, end = 8 * byte, 8 * (byte + n_bytes)
        while position < end:
            length = draw(st.integers(1, min(longest, end - position)))
            # DBC start bit of the first bit of the region's order
            start = 8 * (position // 8) + 7 - position % 8 if big else position
            rounded = not lossless or length <= 49
            signals.append(
                SignalSpec(
                    f"s{len(signals)}", start, length, big, draw(st.booleans()),
                    scale=draw(st.sampled_from([1.0, 0.5, -0.25, 0.005, 0.1, 25.0][: 6 if rounded else 3])),
                    offset=draw(st.sampled_from([0.0, -40.0, 273.15, 1000.0][: 4 if rounded else 1])),
                    slot=len(signals),
                )
            )  # fmt: skip
            position += length
        byte += n_bytes
    return signals


def message_of(signals: list[SignalSpec], receive: bool, **fields: object) -> MessageSpec:
    return MessageSpec("M", 0x123, False, 8, receive, tuple(signals), **fields)  # type: ignore[arg-type]


def cantools_message(signals: list[SignalSpec]) -> Message:
    return Message(0x123, "M", 8, [
        Signal(
            s.name, s.start, s.length, "big_endian" if s.big_endian else "little_endian", s.signed,
            conversion=BaseConversion.factory(s.scale, s.offset, None, s.is_float),
        )
        for s in signals
    ])  # fmt: skip


@settings(max_examples=repetitions(300), deadline=None)
@given(layouts(longest=64), st.binary(min_size=8, max_size=8))
def test_decode_equals_cantools(signals: list[SignalSpec], data: bytes) -> None:
    tables = CodecTables([message_of(signals, True)], len(signals))
    table = np.full(len(signals), np.nan)
    assert RxState(tables).decode(table, 0x123, data) == k.OK
    expected = cantools_message(signals).decode(data, decode_choices=False)
    for s in signals:
        # raw * scale + offset cancels at worst to a few ulp of the larger term
        assert table[s.slot] == pytest.approx(float(expected[s.name]), rel=1e-14, abs=1e-12), s


@settings(max_examples=repetitions(300), deadline=None)
@given(layouts(lossless=True), st.binary(min_size=8, max_size=8))
def test_encode_gives_back_the_bits_that_cantools_decoded(signals: list[SignalSpec], data: bytes) -> None:
    tables = CodecTables([message_of(signals, False)], len(signals))
    values = cantools_message(signals).decode(data, decode_choices=False)
    table = np.array([float(values[s.name]) for s in signals])
    assert TxState(tables).encode(table, 0) == (k.OK, 0x123, data)


@pytest.mark.parametrize(("big", "start"), [(False, 0), (True, 7)])
@pytest.mark.parametrize("signed", [False, True])
def test_64_bit_numbers_saturate_at_the_last_number_a_double_holds(big: bool, start: int, signed: bool) -> None:
    signal = SignalSpec("x", start, 64, big, signed)
    sender = TxState(CodecTables([message_of([signal], False)], 1))
    receiver = RxState(CodecTables([message_of([signal], True)], 1))
    table = np.zeros(1)
    lowest, highest = (-(2.0**63), 2.0**63 - 2.0**10) if signed else (0.0, 2.0**64 - 2.0**11)
    for value, expected in ((1e300, highest), (-1e300, lowest), (math.inf, highest), (2.0**52 + 1, 2.0**52 + 1)):
        _, can_id, data = sender.encode(np.array([value]), 0)
        assert receiver.decode(table, can_id, data) == k.OK
        assert table[0] == expected


@pytest.mark.parametrize(("length", "form"), [(32, "f"), (64, "d")])
@pytest.mark.parametrize("big", [False, True])
def test_ieee_numbers(length: int, form: str, big: bool) -> None:
    start = 7 if big else 0
    signal = SignalSpec("x", start, length, big, True, True, scale=2.0, offset=-1.0, minimum=-1e6, maximum=1e6)
    sender = TxState(CodecTables([message_of([signal], False)], 1))
    receiver = RxState(CodecTables([message_of([signal], True)], 1))
    table = np.zeros(1)
    _, _, data = sender.encode(np.array([123.0]), 0)
    assert data[: length // 8] == struct.pack((">" if big else "<") + form, 62.0)
    assert receiver.decode(table, 0x123, data) == k.OK and table[0] == 123.0
    for bad in (math.nan, math.inf, -math.inf, 1e7):
        wrong = struct.pack((">" if big else "<") + form, bad).ljust(8, b"\0")
        assert receiver.decode(table, 0x123, wrong) == k.RANGE and table[0] == 123.0


@pytest.mark.parametrize(("scale", "offset"), [(1e5, 0.0), (-1e5, 0.0), (1.0, 1e308), (1e300, 0.0)])
def test_a_number_that_scaling_makes_too_large_is_out_of_range(scale: float, offset: float) -> None:
    """The bits hold a double, scale and offset are doubles, and what they make of it is none."""
    spec = SignalSpec("x", 0, 64, is_float=True, scale=scale, offset=offset)
    tables, table = CodecTables([message_of([spec], True)], 1), np.array([5.0])
    state = RxState(tables)
    for raw in (1.7e308, -1.7e308):
        value = raw * scale + offset
        status = state.decode(table, 0x123, struct.pack("<d", raw))
        # with an offset, what is near the edge is refused as well
        assert status == k.RANGE or np.isfinite(value)
        assert table[0] == (value if status == k.OK else 5.0)
    assert state.decode(table, 0x123, struct.pack("<d", 1e3 / scale)) == k.OK
    # of a whole number that is known beforehand
    with pytest.raises(ValueError, match="beyond what a double holds"):
        CodecTables([message_of([SignalSpec("x", 0, 64, scale=1e300)], True)], 1)


def test_encode_limits_to_database_and_bits_and_counts() -> None:
    signals = [
        SignalSpec("p", 0, 12, scale=500.0, minimum=0.0, maximum=20e5, slot=0),
        SignalSpec("n", 16, 8, signed=True, slot=1),
    ]
    sender = TxState(CodecTables([message_of(signals, False)], 2))
    _, _, data = sender.encode(np.array([30e5, -1000.0]), 0)
    assert int.from_bytes(data[:2], "little") == 4000 and data[2] == 0x80
    assert sender.counters()["M"] == {"sent": 1, "saturated": 2, "refused": 0}
    # the limits themselves, and what rounds to them, are no saturation
    sender.encode(np.array([20e5 + 100.0, 127.4]), 0)
    assert sender.counters()["M"]["saturated"] == 2


def test_nan_is_never_sent() -> None:
    sender = TxState(CodecTables([message_of([SignalSpec("p", 0, 12, slot=0)], False, counter=(60, 4, False))], 1))
    assert sender.encode(np.array([1.0]), 0)[2][7] >> 4 == 0
    assert sender.encode(np.array([math.nan]), 0)[::2] == (k.NAN, b"")
    assert sender.counters()["M"] == {"sent": 1, "saturated": 0, "refused": 1}
    # the counter did not move: the receiver sees silence, not a jump
    assert sender.encode(np.array([1.0]), 0)[2][7] >> 4 == 1


# --- protection ---

P01 = MessageSpec(
    "P", 0x210, False, 8, True,
    (SignalSpec("a", 16, 12, scale=500.0, minimum=0.0, maximum=20e5, slot=0), SignalSpec("b", 28, 12, slot=1)),
    e2e="AUTOSAR_P01_1A", data_id=0x4410, crc_byte=0, counter=(8, 4, False), timeout_ns=50 * MS, cycle_ns=5 * MS,
)  # fmt: skip


class Link:
    """A sender and a receiver of P01."""

    def __init__(self, spec: MessageSpec = P01) -> None:
        self.tx = TxState(CodecTables([replace(spec, receive=False)], 2))
        self.rx = RxState(CodecTables([spec], 2))
        self.table = np.array([-1.0, -1.0])
        self.can_id = spec.can_id | (0x80000000 if spec.extended else 0)
        self.now_ms = 0

    def frame(self, a: float = 8e5) -> bytes:
        return self.tx.encode(np.array([a, 7.0]), 0)[2]

    def receive(self, data: bytes, after_ms: int = 5) -> int:
        self.now_ms += after_ms
        return self.rx.decode(self.table, self.can_id, data, self.now_ms * MS)

    def skip(self, n: int) -> None:
        for _ in range(n):
            self.frame()

    @property
    def counters(self) -> dict[str, int]:
        return self.rx.counters()["P"]


@pytest.fixture
def link() -> Link:
    link = Link()
    assert link.receive(link.frame()) == k.OK
    return link


def assert_refused(link: Link, data: bytes, status: int, counter: str, after_ms: int = 5) -> None:
    """The frame changes this counter and nothing else."""
    table, before = link.table.copy(), link.counters
    assert link.receive(data, after_ms) == status
    after = link.counters
    assert (link.table == table).all()
    assert after[counter] == before[counter] + 1
    assert {n for n in after if after[n] != before[n]} == {counter}


def test_frame_carries_counter_and_checksum_of_its_data_id() -> None:
    link = Link()
    for i in range(17):
        data = link.frame()
        assert data[1] & 0x0F == i % 15
        assert data[0] == Crc8.named("E2E_P01")(bytes([0x10, 0x44]) + data[1:])


def test_good_frames_are_taken_and_write_the_table(link: Link) -> None:
    for _ in range(40):
        assert link.receive(link.frame()) == k.OK
    assert list(link.table) == [8e5, 7.0]
    assert link.counters["ok"] == 41 and link.counters["lost"] == 0 and link.counters["last_ok_ns"] == link.now_ms * MS


@given(bit=st.integers(0, 63))
def test_any_flipped_bit_is_a_checksum_error(bit: int) -> None:
    link = Link()
    link.receive(link.frame())
    word = int.from_bytes(link.frame(9e5), "little") ^ (1 << bit)
    assert_refused(link, word.to_bytes(8, "little"), k.CRC, "crc")


def test_frame_of_another_data_id_is_a_checksum_error(link: Link) -> None:
    other = Link(replace(P01, data_id=0x4411))
    other.skip(1)
    assert_refused(link, other.frame(), k.CRC, "crc")


@pytest.mark.parametrize("length", [0, 1, 7])
def test_wrong_length_is_refused(link: Link, length: int) -> None:
    assert_refused(link, link.frame()[:length], k.LENGTH, "length")


def test_repeated_counter_is_refused(link: Link) -> None:
    data = link.frame(9e5)
    assert link.receive(data) == k.OK
    assert_refused(link, data, k.REPEAT, "repeat")
    # a new value under the old counter is refused as well: the sender's protection stands still
    stuck = TxState(CodecTables([replace(P01, receive=False)], 2))
    stuck.encode(np.zeros(2), 0)
    assert_refused(link, stuck.encode(np.zeros(2), 0)[2], k.REPEAT, "repeat")


@pytest.mark.parametrize("max_delta", [1, 2, 5])
def test_counter_may_step_by_max_delta_and_not_further(max_delta: int) -> None:
    link = Link(replace(P01, max_delta=max_delta))
    link.receive(link.frame())
    link.skip(max_delta - 1)
    assert link.receive(link.frame()) == k.OK
    assert link.counters["lost"] == max_delta - 1
    link.skip(max_delta)
    assert_refused(link, link.frame(), k.JUMP, "jump")
    # judged from the jump: the next in sequence is good again
    assert link.receive(link.frame()) == k.OK


def test_counter_value_that_does_not_exist_is_refused(link: Link) -> None:
    data = bytearray(link.frame())
    data[1] |= 0x0F
    data[0] = Crc8.named("E2E_P01")(bytes([0x10, 0x44]) + bytes(data[1:]))
    assert_refused(link, bytes(data), k.JUMP, "jump")


def test_a_sender_does_not_begin_with_a_counter_value_that_does_not_exist() -> None:
    """The first frame is compared with none before: the value itself must be one."""
    link = Link(P01)
    data = bytearray(link.frame())
    data[1] |= 0x0F
    data[0] = Crc8.named("E2E_P01")(bytes([0x10, 0x44]) + bytes(data[1:]))
    assert link.receive(bytes(data)) == k.JUMP
    assert link.receive(link.frame()) == k.OK


@pytest.mark.parametrize(("minimum", "maximum", "good"), [(0.25, 9.75, range(1, 10)), (1.0, 9.0, range(1, 10))])
def test_limits_between_two_raw_numbers_leave_out_the_one_outside(minimum: float, maximum: float, good: range) -> None:
    spec = SignalSpec("s", 0, 8, slot=0, minimum=minimum, maximum=maximum)
    rx = RxState(CodecTables([message_of([spec], True)], 1))
    taken = [raw for raw in range(16) if rx.decode(np.zeros(1), 0x123, bytes([raw, *bytes(7)])) == k.OK]
    assert taken == list(good)


def test_disturbed_frames_do_not_make_the_next_good_one_a_jump(link: Link) -> None:
    for _ in range(5):
        data = bytearray(link.frame())
        data[3] ^= 0x55
        assert link.receive(bytes(data)) == k.CRC
    assert link.receive(link.frame()) == k.OK
    assert link.counters["lost"] == 0 and link.counters["crc"] == 5


def test_value_outside_the_limits_refuses_the_whole_frame(link: Link) -> None:
    loose = replace(P01, receive=False, signals=(replace(P01.signals[0], maximum=None), P01.signals[1]))
    sender = TxState(CodecTables([loose], 2))
    sender.encode(np.zeros(2), 0)
    assert_refused(link, sender.encode(np.array([4001 * 500.0, 99.0]), 0)[2], k.RANGE, "range")
    # its counter was used up: the next frame of that sender is in sequence
    assert link.receive(sender.encode(np.array([4000 * 500.0, 99.0]), 0)[2]) == k.OK
    assert list(link.table) == [20e5, 99.0] and link.counters["lost"] == 0


def test_unknown_identifiers_and_remote_frames_are_counted_once(link: Link) -> None:
    before = link.counters
    for can_id, flags in ((0x211, 0), (0x210 | 0x80000000, 0), (0x7FFFFFFF, 0), (0x800, 0), (0x210, 1), (0x210, 2)):
        assert link.rx.decode(link.table, can_id, link.frame(), 0, flags) == k.UNKNOWN
        assert link.rx.last_index == -1
    assert link.rx.unknown == 6 and link.counters == before


def test_silence_is_a_timeout_once_and_the_first_frame_after_it_is_accepted(link: Link) -> None:
    start = link.now_ms * MS
    assert link.rx.check_timeouts(start + 50 * MS) == 0
    assert link.rx.check_timeouts(start + 50 * MS + 1) == 1
    assert link.rx.check_timeouts(start + 60 * MS) == 1
    assert link.counters["timeout"] == 1 and link.counters["timed_out"]
    # the sender was started again: any counter is good
    link.skip(6)
    assert link.receive(link.frame(), after_ms=100) == k.OK
    assert link.rx.check_timeouts(link.now_ms * MS) == 0
    assert not link.counters["timed_out"] and link.counters["lost"] == 0


def test_a_sender_that_stands_still_times_out_for_good(link: Link) -> None:
    data = link.frame()
    assert link.receive(data) == k.OK
    for _ in range(100):
        assert link.receive(data) == k.REPEAT
    assert link.rx.check_timeouts(link.now_ms * MS) == 1
    assert link.receive(link.frame()) == k.OK
    assert link.rx.check_timeouts(link.now_ms * MS) == 0


def test_silence_since_arming_is_a_timeout() -> None:
    link = Link()
    link.rx.arm(1000 * MS)
    assert link.rx.check_timeouts(1050 * MS) == 0
    assert link.rx.check_timeouts(1051 * MS) == 1


def test_extended_identifiers_are_found_among_many() -> None:
    ids = [0x18F00503, 0x0CF00203, 0x18FE4A03, 0x0CF00400, 0x210]
    messages = [MessageSpec(f"m{i}", x, True, 8, True, (SignalSpec("s", 0, 8, slot=i),)) for i, x in enumerate(ids)]
    messages.append(MessageSpec("short", 0x210, False, 8, True, (SignalSpec("s", 0, 8, slot=5),)))
    rx = RxState(CodecTables(messages, 6))
    table = np.zeros(6)
    for i, can_id in enumerate([*(x | 0x80000000 for x in ids), 0x210]):
        assert rx.decode(table, can_id, bytes([i + 1, *range(7)])) == k.OK
    assert list(table) == [1, 2, 3, 4, 5, 6]


# --- other makers' rules ---


def test_profile_2_accepts_recorded_frames_of_a_vw_mqb_gearbox() -> None:
    # Getriebe_11 (0x0AD): frames and data ids as published in opendbc's checksum tests (MIT)
    ids = bytes.fromhex("3F6939DC94F91464D86A34CEA255B52C")
    signals = (SignalSpec("s", 12, 10, slot=0),)
    spec = MessageSpec("G", 0x0AD, False, 8, True, signals, e2e="AUTOSAR_P02", data_ids=tuple(ids), crc_byte=0,
                       counter=(8, 4, False))  # fmt: skip
    rx = RxState(CodecTables([spec], 1))
    recorded = bytes.fromhex("F8E0BFFF5F202020")
    assert rx.decode(np.zeros(1), 0x0AD, recorded) == k.OK
    # the same content with the next counter is protected by another id: sender and receiver agree, a fixed id does not
    tx = TxState(CodecTables([replace(spec, receive=False)], 1))
    frames = [tx.encode(np.zeros(1), 0)[2] for _ in range(17)]
    assert [rx.decode(np.zeros(1), 0x0AD, f) for f in frames[1:]] == [k.OK] * 16
    crc = Crc8.named("H2F")
    assert [f[0] for f in frames] == [crc(f[1:] + ids[i % 16 : i % 16 + 1]) for i, f in enumerate(frames)]


def test_bmw_sum_and_vw_xor_by_hand() -> None:
    signals = (SignalSpec("s", 16, 16, slot=0),)
    bmw = MessageSpec("B", 0x0BA, False, 8, False, signals, e2e="BMW_SUM", crc_byte=5, counter=(48, 4, False))
    vw = MessageSpec("V", 0x488, False, 8, False, signals, e2e="XOR", crc_byte=0, counter=(60, 4, False))
    tx = TxState(CodecTables([bmw, vw], 1))
    table = np.array([float(0xFFFF)])
    for i in range(16):
        data = tx.encode(table, 0)[2]
        total = 0xBA + sum(data) - data[5]
        assert data[6] == i % 15 and data[5] == ((total & 0xFF) + (total >> 8)) & 0xFF
        data = tx.encode(table, 1)[2]
        assert data[7] >> 4 == i and data[0] == 0xFF ^ 0xFF ^ data[7]


def test_big_endian_counter_and_checksum_in_the_last_byte() -> None:
    spec = replace(P01, counter=(55, 4, True), crc_byte=7, e2e="SAE_J1850_ID")
    link = Link(spec)
    for i in range(20):
        data = link.frame()
        assert data[6] >> 4 == i % 15 and data[7] == Crc8.named("SAE_J1850")(bytes([0x10, 0x44]) + data[:7])
        assert link.receive(data) == k.OK


# --- mistakes in the specification ---


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"length": 9}, "classic CAN carries 0..8"),
        ({"length": 9, "fd": True}, "CAN FD carries"),
        ({"length": 65, "fd": True}, "CAN FD carries"),
        ({"can_id": 0x800}, "0x800"),
        ({"cycle_ns": -1}, "cycle -1 ns"),
        ({"timeout_ns": 10**30}, "allowed 0..1000000000000000"),
        ({"e2e": "P7"}, "AUTOSAR_P02"),
        ({"crc_byte": None}, "checksum byte"),
        ({"crc_byte": 2}, "overlaps checksum"),
        ({"counter": (14, 4, False)}, "overlaps alive counter"),
        ({"counter": (8, 33, False)}, "1..32"),
        ({"counter_max": 16}, "1..15"),
        ({"max_delta": 0}, "max_delta"),
        ({"e2e": "AUTOSAR_P02"}, "16 data ids"),
        ({"signals": (SignalSpec("x", 60, 8),)}, "does not fit"),
        ({"signals": (SignalSpec("x", 60, 8, big_endian=True),)}, "does not fit"),
        ({"signals": (SignalSpec("x", 16, 8, scale=0.0),)}, "scale"),
        ({"signals": (SignalSpec("x", 16, 8, minimum=300.0),)}, "no value of its bits"),
        ({"signals": (SignalSpec("x", 16, 8, minimum=3.0, maximum=2.0),)}, "minimum"),
        ({"signals": (SignalSpec("x", 16, 16, is_float=True),)}, "32 or 64"),
        ({"signals": (SignalSpec("x", 16, 8, slot=9),)}, "slot 9"),
    ],
)
def test_mistakes_are_named(change: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match="message P") as error:
        CodecTables([replace(P01, **change)], 2)  # type: ignore[arg-type]
    assert text in str(error.value)


def test_two_received_messages_with_one_identifier_are_refused() -> None:
    with pytest.raises(ValueError, match="received twice"):
        CodecTables([P01, replace(P01, name="Q")], 2)
    # we may send what we also decode: the soft control unit's tables and the rig's are different ones
    CodecTables([P01, replace(P01, name="Q", receive=False)], 2)
