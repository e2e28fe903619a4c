"""Judging a database by a recording: what fits is confirmed, each planted mistake of a database is contradicted.

The recording is made here, by rules written out below and with its own places of bits, not by the codec that judges.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import reduce
from operator import xor
from pathlib import Path

import cantools
import pytest

from torqueloop.hil.can.checksum_fit import bare, fits
from torqueloop.hil.can.frame import ERROR_FLAG, REMOTE_FLAG
from torqueloop.hil.can.judge import Judgement, judge
from torqueloop.hil.can.scan import Frame

#: engine speed raw 0.25 rpm at 32|16, pedal at 24|8, counter at 8|4, checksum in byte 0; every 10 ms, sum of BMW
ID, PERIOD_S = 0x1AA, 0.010

DBC = """VERSION ""
NS_ :
BS_:
BU_: TCU DME

BO_ 426 AccPedal: 8 DME
 SG_ Checksum : 0|8@1+ (1,0) [0|255] "" TCU
 SG_ Counter : 8|4@1+ (1,0) [0|15] "" TCU
 SG_ Pedal : 24|8@1+ (0.4,0) [0|102] "%" TCU
 SG_ Speed : 32|16@1+ (0.25,0) [0|7000] "rpm" TCU
 SG_ Fixed : 56|8@1+ (1,0) [0|255] "" TCU
BO_ 427 Silent: 8 DME
 SG_ Nothing : 0|8@1+ (1,0) [0|255] "" TCU

BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_ BO_ "E2EProfile" STRING ;
BA_DEF_ BO_ "E2ECrcSignal" STRING ;
BA_DEF_ BO_ "E2ECounterSignal" STRING ;
BA_DEF_ BO_ "E2ECounterMax" INT 0 255;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_DEF_DEF_ "E2EProfile" "NONE";
BA_DEF_DEF_ "E2ECrcSignal" "";
BA_DEF_DEF_ "E2ECounterSignal" "";
BA_DEF_DEF_ "E2ECounterMax" 15;
BA_ "GenMsgCycleTime" BO_ 426 10;
BA_ "E2EProfile" BO_ 426 "BMW_SUM";
BA_ "E2ECrcSignal" BO_ 426 "Checksum";
BA_ "E2ECounterSignal" BO_ 426 "Counter";
BA_ "E2ECounterMax" BO_ 426 14;
"""


def bmw_sum(can_id: int, data: bytes) -> int:
    total = can_id + sum(data)
    return ((total & 0xFF) + (total >> 8)) & 0xFF


def recording(n: int = 400) -> list[Frame]:
    """Pedal and speed rise and fall; 3 ms of jitter."""
    frames = []
    for k in range(n):
        speed, pedal = 3000 + 37 * (k % 200), (3 * k) % 251
        rest = bytes([k % 15, 0, pedal, speed & 0xFF, speed >> 8, 0, 0x33])
        data = bytes([bmw_sum(ID, rest)]) + rest
        frames.append((1.0 + k * PERIOD_S + 0.003 * (k % 3) / 2, ID, data, 0))
    return frames


def judged(tmp_path: Path, frames: list[Frame], old: str = "", new: str = "") -> Judgement:
    assert not old or old in DBC
    path = tmp_path / "car.dbc"
    path.write_text(DBC.replace(old, new))
    return judge(frames, path)


def test_a_right_database_is_confirmed(tmp_path: Path) -> None:
    found = judged(tmp_path, recording())
    row = found.messages["AccPedal"]
    assert {n: v.state for n, v in row.verdicts.items()} == dict.fromkeys(
        ("length", "period", "counter", "checksum", "values"), "confirmed"
    )
    assert row.fits[0].text == "byte 0 fits BMW_SUM, 400 of 400"
    assert row.period_s is not None and row.period_s[1] == pytest.approx(0.0115, abs=2e-3)
    assert row.still == {"Fixed": 0x33} and row.undeclared_bits == [] and row.out_of_range == {}
    assert found.messages["Silent"].state == "not seen" and found.undeclared == []


@pytest.mark.parametrize(
    ("old", "new", "side", "words"),
    [
        ('BA_ "GenMsgCycleTime" BO_ 426 10;', 'BA_ "GenMsgCycleTime" BO_ 426 20;', "period", "declared 20"),
        ('BA_ "GenMsgCycleTime" BO_ 426 10;', 'BA_ "GenMsgCycleTime" BO_ 426 5;', "period", "declared 5"),
        ('"BMW_SUM"', '"SUM_ID"', "checksum", "byte 0 fits BMW_SUM, 400 of 400"),
        ('"BMW_SUM"', '"XOR"', "checksum", "byte 0 fits BMW_SUM, 400 of 400"),
        ('"BMW_SUM"', '"NONE"', "checksum", "no checksum declared, byte 0 fits BMW_SUM, 400 of 400"),
        ("BO_ 426 AccPedal: 8 DME", "BO_ 426 AccPedal: 7 DME", "length", "400 frames of 8 bytes, declared 7"),
        ('"E2ECounterMax" BO_ 426 14;', '"E2ECounterMax" BO_ 426 15;', "counter", "declared 0 .. 15"),
        ("Counter : 8|4@1+", "Counter : 9|4@1+", "counter", "bits 8 to 11 (0 .. 14) counts"),
        ("Counter : 8|4@1+", "Counter : 12|4@1+", "counter", "bits 8 to 11 (0 .. 14) counts"),
        ("Speed : 32|16@1+", "Speed : 33|16@1+", "values", ""),
        ("Speed : 32|16@1+", "Speed : 39|16@0+", "values", "Speed outside its range"),
        ("[0|7000]", "[0|2000]", "values", "Speed outside its range"),
    ],
)  # fmt: skip
def test_a_planted_mistake_is_contradicted(tmp_path: Path, old: str, new: str, side: str, words: str) -> None:
    if new.startswith("BO_ 426 AccPedal: 7"):
        # the last signal would leave the message
        found = judge(recording(), written(tmp_path, DBC.replace(old, new).replace("56|8@1+", "48|8@1+")))
    else:
        found = judged(tmp_path, recording(), old, new)
    row = found.messages["AccPedal"]
    if words:
        assert row.verdicts[side].state == "contradicted" and words in row.verdicts[side].text, row.verdicts
        assert row.state == "contradicted"
    else:
        # a field that begins a bit late leaves a bit that moves
        assert row.undeclared_bits == [32]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "car.dbc"
    path.write_text(text)
    return path


def test_an_identifier_that_is_missing_and_one_that_nobody_declares(tmp_path: Path) -> None:
    found = judge(recording(), written(tmp_path, re.sub(r"\b426\b", "428", DBC)))
    assert found.messages["AccPedal"].state == "not seen"
    assert [(row.can_id, row.frames) for row in found.undeclared] == [(ID, 400)]
    assert found.undeclared[0].fits[0].text == "byte 0 fits BMW_SUM, 400 of 400"


def test_error_values_and_error_frames_are_counted(tmp_path: Path) -> None:
    text = DBC + 'VAL_ 426 Fixed 51 "Fehler" 0 "ok" ;\n'
    frames = [*recording(), (9.0, 0, b"", ERROR_FLAG), (9.1, ID, b"", REMOTE_FLAG)]
    found = judge(frames, written(tmp_path, text))
    assert found.messages["AccPedal"].errors == {"Fixed": 400}
    assert (found.error_frames, found.remote_frames) == (1, 1)


@pytest.mark.parametrize("order", ["1", "0"])
@pytest.mark.parametrize("sign", ["-", "+"])
@pytest.mark.parametrize("length", [5, 12, 32, 63, 64])
def test_values_beyond_their_range_are_those_that_cantools_decodes(
    tmp_path: Path, length: int, sign: str, order: str
) -> None:
    start = 0 if order == "1" else 7
    path = tmp_path / "wide.dbc"
    signal = f'BU_: A\nBO_ 5 Wide: 8 A\n SG_ X : {start}|{length}@{order}{sign} (0.5,3) [-2|%r] "" A\n'
    draw = random.Random(length)
    frames = [(k * 0.01, 5, draw.randbytes(8), 0) for k in range(100)]
    path.write_text('VERSION ""\n' + signal % 0)
    decode = cantools.database.load_file(str(path)).decode_message
    values = [decode(5, data, decode_choices=False)["X"] for _, _, data, _ in frames]
    highest = sorted(values)[70]
    path.write_text('VERSION ""\n' + signal % highest)
    row = judge(frames, path).messages["Wide"]
    # a quarter is half a step
    assert row.out_of_range["X"] == sum(x < -2.25 or x > highest + 0.25 for x in values) > 0
    assert judge(frames[:1] * 9, path).messages["Wide"].still == {"X": pytest.approx(values[0], rel=1e-15)}


def crc8(data: bytes, poly: int, start: int) -> int:
    """Bit by bit."""
    crc = start
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = ((crc << 1) ^ poly if crc & 0x80 else crc << 1) & 0xFF
    return crc


PAYLOADS = [bytes([k % 15, 7 * k % 256, 13 * k * k % 256, k // 7, 0, 255, 3]) for k in range(200)]


@pytest.mark.parametrize(
    ("rule", "make"),
    [
        # recorded rules that need no constant are in test_can_frames.py; these have one that nobody told
        ("BMW_CRC8 (init 0x9D)", lambda rest: crc8(rest, 0x1D, 0x9D)),
        ("VW_MLB (init 0x5A)", lambda rest: reduce(xor, rest, 0x5A)),
        ("SUM (init 0x21)", lambda rest: (0x21 + sum(rest)) & 0xFF),
        ("CRC8_H2F (xorout 0xC3)", lambda rest: crc8(rest, 0x2F, 0x00) ^ 0xC3),
    ],
    ids=["crc 0x1D", "xor", "sum", "crc 0x2F"],
)
def test_the_constant_of_a_message_is_found(rule: str, make: Callable[[bytes], int]) -> None:
    data = [bytes([make(rest)]) + rest for rest in PAYLOADS]
    best = fits(bare(0x321, 8), data)[0]
    # start value 0 and a final XOR say of the CRC what start value 0xFF and another final XOR say
    assert best.text == f"byte 0 fits {rule}, 200 of 200" or (rule.startswith("CRC8_H2F") and best.rule == "CRC8_H2F")
    assert best.right == 200


def test_frames_without_a_checksum_fit_no_rule() -> None:
    noise = random.Random(1)
    assert fits(bare(0x321, 8), [noise.randbytes(8) for _ in range(300)]) == []


def test_one_wrong_checksum_of_two_hundred_is_counted() -> None:
    data = [bytes([bmw_sum(0x321, rest)]) + rest for rest in PAYLOADS]
    data[7] = bytes([data[7][0] ^ 1]) + data[7][1:]
    assert fits(bare(0x321, 8), data)[0].text == "byte 0 fits BMW_SUM, 199 of 200"


def test_a_field_that_stands_still_but_once_is_no_checksum() -> None:
    # a lever at rest as recorded: only its counter moves, and a frame of a starting sender has another byte
    data = [bytes([0x6A, 0x00, 0x80, 0xF0 | k % 14 + 1]) for k in range(400)]
    data[3] = bytes([0x6A, 0x00, 0xFF, 0xF1])
    assert fits(bare(0x192, 4), data) == []
