"""Multiplexed messages, fields over nine bytes, counters of any run, invalid values: against cantools and by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import cantools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.multiplex import pages

DBC = """VERSION ""
BU_: A B
BO_ 256 Simple: 8 A
 SG_ page M : 0|4@1+ (1,0) [0|15] "" B
 SG_ always : 4|12@1- (0.5,-10) [0|0] "" B
 SG_ a0 m0 : 16|16@1+ (0.25,0) [0|0] "" B
 SG_ b0 m0 : 32|32@1- (1,0) [0|0] "" B
 SG_ a1 m1 : 23|20@0+ (1,5) [0|0] "" B
 SG_ a3 m3 : 16|48@1+ (1,0) [0|0] "" B

BO_ 257 Nested: 16 A
 SG_ outer M : 0|8@1+ (1,0) [0|0] "" B
 SG_ inner m2M : 8|8@1+ (1,0) [0|0] "" B
 SG_ other m1 : 8|16@1+ (1,0) [0|0] "" B
 SG_ deep0 m0 : 16|64@1+ (1,0) [0|0] "" B
 SG_ deep5 m5 : 19|61@1- (1,0) [0|0] "" B
 SG_ both m0 : 80|16@1+ (1,0) [0|0] "" B
 SG_ static : 96|32@1+ (1,0) [0|0] "" B

SG_MUL_VAL_ 257 inner outer 2-2;
SG_MUL_VAL_ 257 other outer 1-1;
SG_MUL_VAL_ 257 deep0 inner 0-3;
SG_MUL_VAL_ 257 deep5 inner 5-5;
SG_MUL_VAL_ 257 both outer 1-2, 4-6;
"""


@pytest.fixture
def dbc(tmp_path: Path) -> Path:
    path = tmp_path / "mux.dbc"
    path.write_text(DBC)
    return path


@cache
def known(path: Path, frame_id: int) -> tuple:
    """cantools' message, our receiver, and a sender whose multiplexers are signals."""
    path.write_text(DBC)
    message = cantools.database.load_file(path).get_message_by_frame_id(frame_id)
    held = [f"{message.name}.{s.name}" for s in message.signals if s.is_multiplexer]
    receiver = CanDatabase.load(path, "B", units="database")
    return message, receiver, CanDatabase.load(path, "A", units="database", needed=held)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([(256, 8, (0, 1, 3, 7)), (257, 16, (1, 2, 4, 9))]), st.binary(min_size=16, max_size=16),
       st.integers(0, 3), st.sampled_from([0, 1, 3, 5]))  # fmt: skip
def test_multiplexed_frames_decode_and_encode_as_cantools_does(
    tmp_path_factory: pytest.TempPathFactory, which: tuple, data: bytes, page: int, inner: int
) -> None:
    frame_id, length, outers = which
    message, receiving, sending = known(tmp_path_factory.getbasetemp() / "mux.dbc", frame_id)
    payload = bytearray(data[:length])
    payload[0] = (payload[0] & 0xF0) | outers[page] if frame_id == 256 else outers[page]
    payload[1] = inner if frame_id == 257 and outers[page] == 2 else payload[1]
    receiver = receiving.codec()
    before = dict(receiver.counters()[message.name])
    flags = 4 if length > 8 else 0
    for slot in range(len(receiver.table)):
        receiver.table[slot] = -12345.5
    status, values = receiver.decode(frame_id, bytes(payload), flags=flags)
    assert status == "ok" and before["ok"] == 0
    known_page = outers[page] not in (7, 9)
    expected = message.decode(bytes(payload), allow_truncated=True, decode_choices=False) if known_page else {}
    for name, value in values.items():
        if name in expected:
            assert value == pytest.approx(float(expected[name]), rel=1e-12), name
        elif expected:
            # not in this frame: untouched
            assert value == -12345.5, name
    if expected:
        sender = sending.codec()
        exact = {n: v for n, v in expected.items() if abs(float(v)) < 2**53}
        again = sender.encode(message.name, {n: float(v) for n, v in exact.items()})
        theirs = message.decode(again, allow_truncated=True, decode_choices=False)
        assert {n: float(theirs[n]) for n in exact} == {n: float(v) for n, v in exact.items()}
        # bits that belong to no signal of this page are 0
        assert set(theirs) == set(expected)


def test_a_value_that_no_signal_asks_for_leaves_the_others_alone(dbc: Path) -> None:
    codec = CanDatabase.load(dbc, "B", units="database").codec()
    status, values = codec.decode(256, bytes([0x0F, 1, 255, 255, 255, 255, 255, 255]))
    assert status == "ok" and values["page"] == 15 and values["always"] == -2.0
    assert values["a0"] == values["b0"] == values["a3"] == 0.0


def test_a_sender_goes_through_all_pages_and_every_signal_arrives(dbc: Path) -> None:
    sender, receiver = (CanDatabase.load(dbc, n, units="database").codec() for n in "AB")
    message = cantools.database.load_file(dbc).get_message_by_name("Nested")
    given = {"other": 1234.0, "deep0": 2.0**50, "deep5": -7.0, "both": 77.0, "static": 5.0}
    seen: list[tuple] = []
    for _ in range(8):
        data = sender.encode("Nested", given)
        theirs = message.decode(data, decode_choices=False)
        seen.append((theirs["outer"], theirs.get("inner")))
        assert all(theirs[n] == given[n] for n in theirs if n in given)
        assert receiver.decode(257, data, flags=4)[0] == "ok"
    assert set(seen[:4]) == {(1, None), (2, 0), (2, 5), (4, None)} and seen[:4] == seen[4:]
    arrived = {s.name: float(receiver.table[s.slot]) for s in receiver.database.signals if s.message == "Nested"}
    assert {n: arrived[n] for n in given} == given
    with pytest.raises(ConfigError, match="goes through its pages"):
        sender.encode("Nested", {"outer": 1.0})


def test_pages_of_ranges_are_as_many_as_there_are_different_sets_of_signals() -> None:
    when = {"s": (), "a": (("s", ((0, 9),)),), "b": (("s", ((5, 200),)),), "c": (("s", ((201, 255),)),)}
    assert pages("M", when) == ((("s", 0),), (("s", 5),), (("s", 10),), (("s", 201),))


def test_a_multiplexed_signal_without_its_switch_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.dbc"
    path.write_text(DBC.replace("page M :", "page :"))
    with pytest.raises(ConfigError, match="a0") as error:
        CanDatabase.load(path, "B", needed=["Simple.a0"])
    assert "multiplexer" in str(error.value) and "bad.dbc" in str(error.value)


def test_signals_of_one_page_may_not_overlap_those_of_different_pages_may(tmp_path: Path) -> None:
    path = tmp_path / "bad.dbc"
    path.write_text(DBC.replace("b0 m0 : 32|32", "b0 m0 : 24|32"))
    with pytest.raises(ConfigError, match="overlaps") as error:
        CanDatabase.load(path, "B", needed=["Simple.b0"])
    assert "a0" in str(error.value) and "b0" in str(error.value)


# --- nine bytes ---


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([12, 16, 24, 64]), st.booleans(), st.integers(0, 7), st.integers(50, 64), st.integers(0, 400),
       st.integers(0, 2**64 - 1), st.booleans())  # fmt: skip
def test_fields_of_any_width_and_alignment_keep_their_bits(
    length: int, big: bool, bit: int, width: int, byte: int, raw: int, signed: bool
) -> None:
    position = min(8 * byte + bit, 8 * length - width)
    start = 8 * (position // 8) + 7 - position % 8 if big else position
    signal = SignalSpec("x", start, width, big, signed)
    message = MessageSpec("M", 1, False, length, True, (signal,), fd=True)
    raw &= (1 << width) - 1
    number = raw - (1 << width) if signed and raw >> (width - 1) else raw
    # the frame as a whole number, first byte highest (Motorola) or lowest (Intel)
    frame = (raw << (8 * length - position - width)).to_bytes(length, "big") if big else (raw << position).to_bytes(
        length, "little")  # fmt: skip
    table = np.zeros(1)
    assert RxState(CodecTables([message], 1)).decode(table, 1, frame, flags=4) == k.OK
    assert table[0] == float(number)
    if float(number) == number and int(float(number)) == number and abs(number) < 2**63:
        status, _, data = TxState(CodecTables([replace(message, receive=False)], 1)).encode(
            np.array([float(number)]), 0
        )
        assert status == k.OK and data == frame


# --- floats ---


def test_a_float_that_a_double_cannot_hold_is_out_of_range() -> None:
    signal = SignalSpec("x", 0, 64, is_float=True, scale=1000.0)
    tables = CodecTables([MessageSpec("M", 1, False, 8, True, (signal,))], 1)
    table = np.array([3.0])
    rx = RxState(tables)
    for raw in (1e308, -1e306, math.inf, math.nan):
        assert rx.decode(table, 1, np.float64(raw).tobytes()) == k.RANGE
    assert table[0] == 3.0 and rx.counters()["M"]["range"] == 4
    assert rx.decode(table, 1, np.float64(1e305).tobytes()) == k.OK and table[0] == 1e308
    tx = TxState(CodecTables([MessageSpec("M", 1, False, 8, False, (replace(signal, scale=1e-9),))], 1))
    status, _, data = tx.encode(np.array([1e308]), 0)
    assert status == k.OK and math.isfinite(np.frombuffer(data)[0]) and tx.counters()["M"]["saturated"] == 1


# --- counters ---


@pytest.mark.parametrize(
    ("low", "high", "skips"), [(0, 14, ()), (1, 15, ()), (0, 15, (7, 8)), (2, 11, (3, 5, 10)), (0, 1, ()), (0, 9, ())]
)
def test_counters_run_through_their_values_and_judge_steps_in_them(low: int, high: int, skips: tuple) -> None:
    spec = MessageSpec("M", 1, False, 1, False, (), counter=(0, 4, False), counter_min=low, counter_max=high,
                       counter_skips=skips, max_delta=1)  # fmt: skip
    tx, rx = TxState(CodecTables([spec], 0)), RxState(CodecTables([replace(spec, receive=True)], 0))
    run = [x for x in range(low, high + 1) if x not in skips]
    frames = [tx.encode(np.zeros(0), 0)[2] for _ in range(3 * len(run))]
    assert [f[0] for f in frames] == 3 * run
    assert {rx.decode(np.zeros(0), 1, f) for f in frames} == {k.OK}
    for wrong in {*range(16)} - {*run}:
        assert rx.decode(np.zeros(0), 1, bytes([wrong])) == k.JUMP
    if len(run) > 3:
        again = RxState(CodecTables([replace(spec, receive=True)], 0))
        assert [again.decode(np.zeros(0), 1, f) for f in (frames[0], frames[0], frames[2])] == [k.OK, k.REPEAT, k.JUMP]


def test_a_32_bit_counter_goes_round() -> None:
    spec = MessageSpec("M", 1, False, 4, True, (), counter=(0, 32, False), max_delta=2)
    rx = RxState(CodecTables([spec], 0))
    words = [0xFFFFFFFE, 0xFFFFFFFF, 0, 2, 2, 5]
    got = [rx.decode(np.zeros(0), 1, x.to_bytes(4, "little")) for x in words]
    assert got == [k.OK, k.OK, k.OK, k.OK, k.REPEAT, k.JUMP] and rx.counters()["M"]["lost"] == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"counter_min": 9, "counter_max": 9}, "counter_min 9"),
        ({"counter_skips": (0,)}, "skips 0"),
        ({"counter_skips": tuple(range(1, 15)), "counter_min": 0, "counter_max": 15, "counter": (0, 4, False)}, ""),
        ({"counter": (0, 33, False), "length": 8}, "1..32"),
    ],
)
def test_counters_that_cannot_run_are_refused(change: dict, text: str) -> None:
    spec = MessageSpec("M", 1, False, 1, True, (), counter=(0, 4, False))
    if not text:
        CodecTables([replace(spec, **change)], 0)
        return
    with pytest.raises(ValueError, match="message M") as error:
        CodecTables([replace(spec, **change)], 0)
    assert text in str(error.value)


# --- invalid values ---


def test_a_value_that_means_invalid_keeps_the_signal_and_takes_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "invalid.dbc"
    path.write_text(
        'VERSION ""\nBU_: A B\nBO_ 3 M: 2 A\n SG_ t : 0|8@1+ (1,-40) [-40|200] "" B\n SG_ u : 8|8@1+ (1,0) [0|0] "" B\n'
        'VAL_ 3 t 254 "error" 255 "invalid" 10 "cold" ;\n'
    )
    codec = CanDatabase.load(path, "B", units="database").codec()
    assert codec.decode(3, bytes([60, 1])) == ("ok", {"t": 20.0, "u": 1.0})
    assert codec.decode(3, bytes([255, 2])) == ("ok", {"t": 20.0, "u": 2.0})
    assert codec.decode(3, bytes([250, 3]))[0] == "range"
    assert codec.decode(3, bytes([10, 4])) == ("ok", {"t": -30.0, "u": 4.0})
    counters = codec.counters()["M"]
    assert counters["invalid"] == 1 and counters["range"] == 1 and counters["ok"] == 3
