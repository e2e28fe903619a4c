"""Judging a database by a recording: what fits is confirmed, each planted mistake of a database is contradicted.

The recording is made here, by rules written out below and with its own places of bits, not by the codec that judges.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import xor
from pathlib import Path

import cantools
import pytest

from torqueloop.cython_kernels.can.bits import Split
from torqueloop.hil.can.checksum_fit import bare, fits, place_text, right
from torqueloop.hil.can.frame import ERROR_FLAG, EXTENDED, REMOTE_FLAG
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


def test_a_byte_that_is_the_same_in_most_frames_is_no_checksum() -> None:
    """Byte 0 is the sum of the others, but in nine of ten frames that is 0; with a fifth each it is a checksum."""
    often, seldom = (
        [bytes([k % n == 0 and k % 5, k, ((k % n == 0 and k % 5) - k) % 256, 5]) for k in range(200)] for n in (7, 1)
    )
    assert fits(bare(0x321, 4), often) == []
    assert fits(bare(0x321, 4), seldom)[0].text == "byte 0 fits SUM (init 0xFB), 200 of 200"


def test_a_judgement_in_numbers(tmp_path: Path) -> None:
    """Times of `recording` by hand: 0, 11.5, 23, 30 ms and so on, so that two gaps of 11.5 ms follow one of 7 ms."""
    frames = [(t + 50.0, *rest) for t, *rest in recording()]
    found = judged(
        tmp_path, [*frames, (55.0, 0, b"", ERROR_FLAG), (55.5, 1, b"", ERROR_FLAG), (56.0, 2, b"", REMOTE_FLAG)]
    )
    assert (found.frames, found.error_frames, found.remote_frames, found.more) == (403, 2, 1, 0)
    # the first frame is heard at 51 s
    assert found.seconds == pytest.approx(5.0, abs=1e-9)
    row = found.messages["AccPedal"]
    assert row.period_s == (pytest.approx(0.007), pytest.approx(0.0115), pytest.approx(0.0115)) and row.cycle_s == 0.01
    assert (row.senders, row.lengths, row.errors) == (["DME"], {8: 400}, {})
    assert row.summary == (
        "400 frames; 11.5 ms (7.0 .. 11.5); counter 0 .. 14, 100.0 % of its steps are the next number; "
        "byte 0 fits BMW_SUM, 400 of 400; 2 of 3 signals moved"
    )


@pytest.mark.parametrize(
    ("n", "period", "counter"),
    [
        (1, "", "too few frames for a counter"), (2, "too few frames for a period", "too few frames for a counter"),
        (5, "too few frames for a period", "too few frames for a counter"),
        (6, "11.5 ms (7.0 .. 11.5)", "counter 0 .. 5, 100.0 % of its steps are the next number"),
    ],
)  # fmt: skip
def test_a_few_frames_are_no_verdict(tmp_path: Path, n: int, period: str, counter: str) -> None:
    row = judged(tmp_path, recording(n)).messages["AccPedal"]
    assert (row.period.text, row.counter.text) == (period, counter)
    assert {row.period.state, row.counter.state} == {"confirmed" if n == 6 else "not seen"}
    # two different checksums of 8 bits are right by chance once in 2**16
    few = "byte 0 fits BMW_SUM, 1 of 1, too few of them different"
    assert row.checksum.text == (few if n == 1 else f"byte 0 fits BMW_SUM, {n} of {n}")
    assert row.checksum.state == ("not seen" if n == 1 else "confirmed")


def test_identifiers_beyond_the_list_are_counted_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torqueloop.hil.can.judge.IDENTIFIERS_MAX", 2)
    found = judged(tmp_path, [(0.1 * k, 0x500 + k % 4, bytes(8), 0) for k in range(10)])
    assert (found.frames, found.more) == (10, 4) and [row.can_id for row in found.undeclared] == [0x500, 0x501]


def test_the_usual_length_of_an_undeclared_message_is_judged(tmp_path: Path) -> None:
    frames = recording()
    frames[3:5] = [(t, i, data[:5], flags) for t, i, data, flags in frames[3:5]]
    (row,) = judge(frames, written(tmp_path, re.sub(r"\b426\b", "428", DBC))).undeclared
    assert row.lengths == {8: 398, 5: 2} and row.fits[0].text == "byte 0 fits BMW_SUM, 398 of 398"


def with_wrong_sums(n: int, every: int) -> list[Frame]:
    """Of `n` frames, one in `every` has a checksum that no rule gives."""
    return [
        (t, i, bytes([data[0] ^ (k * 7 % 255 + 1)]) + data[1:] if k % every == 0 else data, flags)
        for k, (t, i, data, flags) in enumerate(recording(n))
    ]


@pytest.mark.parametrize(
    ("every", "state", "text"),
    [
        (1000, "confirmed", "byte 0 fits BMW_SUM, 399 of 400"),
        (5, "contradicted", "declared BMW_SUM of byte 0 is right in 320 of 400; no rule fits better"),
    ],
)
def test_a_declared_checksum_may_be_wrong_in_single_frames(tmp_path: Path, every: int, state: str, text: str) -> None:
    verdict = judged(tmp_path, with_wrong_sums(400, every)).messages["AccPedal"].checksum
    assert (verdict.state, verdict.text) == (state, text)


def test_a_better_rule_is_told_before_the_declared_one(tmp_path: Path) -> None:
    """The sum of all bytes is that of the first six where the last two are 0, in four fifths of the frames."""
    made = [bytes([0, k % 15, 0, 3 * k % 251, k % 256, k // 256, 0, 0x33 if k % 5 == 1 else 0]) for k in range(400)]
    data = [bytes([sum(rest) & 0xFF]) + rest[1:] for rest in made]
    frames = [(k * PERIOD_S, ID, frame, 0) for k, frame in enumerate(data)]
    row = judged(tmp_path, frames, '"BMW_SUM"', '"HYUNDAI_SUM6"').messages["AccPedal"]
    told = [(fit.rule, fit.right) for fit in row.fits]
    assert told[0] == ("SUM", 400) and ("HYUNDAI_SUM6", 320) in told
    assert row.checksum.text == ("declared HYUNDAI_SUM6 of byte 0 is right in 320 of 400; byte 0 fits SUM, 400 of 400")


def counted(values: list[int]) -> list[Frame]:
    """Frames with these values in bits 8 to 11 and the checksum of BMW."""
    frames = []
    for k, value in enumerate(values):
        rest = bytes([value, 0, 7 * k % 251, 0, 16, 0, 0x33])
        frames.append((k * PERIOD_S, ID, bytes([bmw_sum(ID, rest)]) + rest, 0))
    return frames


MAXIMUM = 'BA_ "E2ECounterMax" BO_ 426 14;\n'
#: 8 of 41 steps are two numbers long, so that 80.5 % are one; a fifteenth of all lead from 14 to 0
UNSTEADY = [sum(2 if j % 5 == 4 and j % 41 < 40 else 1 for j in range(k)) % 15 for k in range(411)]


@pytest.mark.parametrize(
    ("profile", "declared", "values", "state", "text"),
    [
        # the highest number of a counter is that of the message, else of its rule, else what its bits hold
        ("BMW_SUM", MAXIMUM, [k % 15 for k in range(400)], "confirmed", "counter 0 .. 14, 100.0 %"),
        ("BMW_SUM", "", [k % 15 for k in range(400)], "confirmed", "counter 0 .. 14, 100.0 %"),
        ("NONE", "", [k % 16 for k in range(400)], "confirmed", "counter 0 .. 15, 100.0 %"),
        ("SUM", "", [k % 16 for k in range(400)], "confirmed", "counter 0 .. 15, 100.0 %"),
        # 26 of 399 steps lead from 14 to 0
        ("NONE", "", [k % 15 for k in range(400)], "contradicted",
         "counter 0 .. 14, 93.5 % of its steps are the next number, declared 0 .. 15; bits 8 to 11 (0 .. 14) counts"),
        ("BMW_SUM", MAXIMUM, [3] * 400, "contradicted",
         "counter 3 .. 3, 0.0 % of its steps are the next number, declared 0 .. 14"),
    ],
)  # fmt: skip
def test_the_steps_of_a_counter(
    tmp_path: Path, profile: str, declared: str, values: list[int], state: str, text: str
) -> None:
    written_as = DBC.replace('"BMW_SUM"', f'"{profile}"').replace(MAXIMUM, declared)
    for line in (
        ('BA_DEF_ BO_ "E2ECounterMax" INT 0 255;\n', 'BA_DEF_DEF_ "E2ECounterMax" 15;\n') if not declared else ()
    ):
        written_as = written_as.replace(line, "")
    verdict = judge(counted(values), written(tmp_path, written_as)).messages["AccPedal"].counter
    assert verdict.state == state and verdict.text.startswith(text), verdict


def test_a_counter_that_nobody_declares_is_found_by_four_fifths_of_its_steps(tmp_path: Path) -> None:
    text = DBC.replace('BA_ "E2ECounterSignal" BO_ 426 "Counter";\n', "")
    found = judge(counted(UNSTEADY), written(tmp_path, text)).messages["AccPedal"].counter
    assert found.text == "no counter declared; bits 8 to 11 (0 .. 14) counts"
    steps = [(b - a) % 15 for a, b in itertools.pairwise(UNSTEADY)]
    assert steps.count(1) / len(steps) > 0.8 > (steps.count(1) - UNSTEADY.count(0)) / len(steps)


@pytest.mark.parametrize(
    ("signal", "outside"),
    [
        # values 3, 2.5, 2, ... of the raw numbers 0 to 15: above 1.25 are four, below -2.25 are five
        ('(-0.5,3) [-100|1]', 4),
        ('(-0.5,3) [-2|100]', 5),
        ('(-0.5,3) [0|0]', 0),
    ],
)  # fmt: skip
def test_half_a_step_beyond_the_range_is_inside(tmp_path: Path, signal: str, outside: int) -> None:
    path = written(tmp_path, f'VERSION ""\nBU_: A\nBO_ 5 M: 1 A\n SG_ X : 0|8@1+ {signal} "" A\n')
    row = judge([(k * 0.01, 5, bytes([k]), 0) for k in range(16)], path).messages["M"]
    assert row.out_of_range == ({"X": outside} if outside else {}) and row.errors == {}
    assert row.values.text.startswith("1 of 1 signals moved")


KCD = """<NetworkDefinition xmlns="http://kayak.2codeornot2code.org/1.0"><Document name="one"/><Node id="1" name="A"/>
<Bus name="bus"><Message id="0x5" name="M" length="1"><Producer><NodeRef id="1"/></Producer>
<Signal name="X" offset="0" length="8"><Value LIMIT/></Signal></Message></Bus></NetworkDefinition>"""


@pytest.mark.parametrize(("limit", "outside"), [('min="100"', 100), ('max="99"', 156), ("", 0)])
def test_a_range_may_have_one_end(tmp_path: Path, limit: str, outside: int) -> None:
    """A signal of 8 bits in which each number stands once."""
    path = tmp_path / "one.kcd"
    path.write_text(KCD.replace("LIMIT", limit))
    row = judge([(k * 0.01, 5, bytes([k]), 0) for k in range(256)], path).messages["M"]
    assert row.out_of_range == ({"X": outside} if outside else {})


#: an XOR says the same at every place: it is told at the byte that has the most values, so the others have few
FEW_VALUES = [bytes([k % 7, k // 3 % 16 << 4, k // 7, 0, 255, 3, k // 5]) for k in range(200)]


def placed(rest: bytes, at: int, checksum: int) -> bytes:
    return rest[:at] + bytes([checksum]) + rest[at:]


@pytest.mark.parametrize(
    ("at", "n", "wrong", "can_id"), [(0, 20, 3, 0x18FEF121 | EXTENDED), (4, 200, 50, 0x321), (7, 20, 3, 0x321)]
)
@pytest.mark.parametrize(
    ("rule", "make"),
    [
        ("BMW_SUM", lambda can_id, rest: bmw_sum(can_id, rest)),
        ("BMW_CRC8 (init 0x9D)", lambda can_id, rest: crc8(rest, 0x1D, 0x9D)),
        ("VW_MLB (init 0x5A)", lambda can_id, rest: reduce(xor, rest, 0x5A)),
        ("SUM (init 0x21)", lambda can_id, rest: (0x21 + sum(rest)) & 0xFF),
        ("CRC8_H2F", lambda can_id, rest: crc8(rest, 0x2F, 0x00) ^ 0xC3),
    ],
    ids=["with the identifier", "crc 0x1D", "xor", "sum", "crc 0x2F"],
)
def test_a_rule_is_found_at_every_place_though_a_sender_that_starts_is_wrong(
    rule: str, make: Callable[[int, bytes], int], at: int, n: int, wrong: int, can_id: int
) -> None:
    data = [
        placed(rest, at, make(can_id & 0x1FFFFFFF, rest) ^ (k % 255 + 1 if k < wrong else 0))
        for k, rest in enumerate(FEW_VALUES[:n])
    ]
    best = fits(bare(can_id, 8), data)[0]
    # start value 0 and a final XOR say of the CRC 0x2F what start value 0xFF and another final XOR say
    told = re.sub(r"(CRC8_H2F) \(xorout 0x[0-9A-F]{2}\)", r"\1", best.text)
    assert told == f"byte {at} fits {rule}, {n - wrong} of {n}" and best.share == pytest.approx(1 - wrong / n)


def test_a_checksum_beside_its_counter_and_one_of_half_a_byte() -> None:
    spec = replace(bare(0x321, 8), counter=(8, 4, False))
    data = [placed(rest, 2, bmw_sum(0x321, rest)) for rest in PAYLOADS]
    assert fits(spec, data)[0].text == "byte 2 fits BMW_SUM, 200 of 200"
    # minus the sum of even half bytes is even, in the upper half of the last byte
    noise = random.Random(3)
    halves = [[noise.choice((0, 2, 4, 6)) for _ in range(14)] for _ in range(200)]
    data = [
        bytes([low | high << 4 for low, high in zip(half[::2], half[1::2], strict=True)] + [(-sum(half) & 15) << 4])
        for half in halves
    ]
    assert fits(bare(0x321, 8), data)[0].text == "bits 60 to 63 fit HYUNDAI_NIBBLES, 200 of 200"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((0, 8, False), "byte 0"), ((23, 8, True), "byte 2"), ((8, 16, False), "bytes 1 to 2"),
        ((60, 4, False), "bits 60 to 63"), ((4, 8, False), "bits 4 to 11"), ((17, 1, False), "bit 17"),
        (((0, 4, False), (12, 4, False)), "bits 0, 1, 2, 3, 12, 13, 14, 15"),
    ],
)  # fmt: skip
def test_a_field_in_words(place: Split, text: str) -> None:
    assert place_text(place) == text


def test_the_codec_judges_checksums_of_long_identifiers() -> None:
    """A rule that is right in no frame: the identifier is the message's in both formats."""
    for can_id in (0x321, 0x321 | EXTENDED):
        spec = replace(bare(can_id, 8), e2e="SUM", crc_bits=(0, 8, False))
        good = [bytes([sum(rest) & 0xFF]) + rest for rest in PAYLOADS]
        assert right(spec, good) == 200 and right(spec, [bytes([x[0] ^ 1]) + x[1:] for x in good]) == 0
