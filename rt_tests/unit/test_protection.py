"""Protection of CAN messages against code of others: `autosar-e2e` (AUTOSAR), `opendbc` (makers), by hand else.

Each rule: our frames are right for the independent code, theirs for ours, and every single flipped bit is refused by
both; a refused frame leaves signals and counters of the receiver as they are and is counted by its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.crc import Crc
from torqueloop.cython_kernels.can.protection import E2E_PROFILES

e2e = pytest.importorskip("e2e", reason="autosar-e2e is not installed")
pytest.importorskip("opendbc.can", reason="opendbc is not installed")

from opendbc.can import dbc as opendbc_dbc  # noqa: E402
from opendbc.car.crc import CRC8J1850, mk_crc8_fun  # noqa: E402
from opendbc.car.hyundai.hyundaican import hyundai_checksum  # noqa: E402
from opendbc.car.nissan.nissancan import nissan_checksum  # noqa: E402
from opendbc.car.rivian.riviancan import checksum as rivian_checksum  # noqa: E402

FD = 4
IDS = bytes.fromhex("3F6939DC94F91464D86A34CEA255B52C")


def filler(length: int, taken: set[int]) -> tuple[SignalSpec, ...]:
    """Signals of one bit over all bits that nothing else has."""
    free = [bit for bit in range(8 * length) if bit not in taken]
    return tuple(SignalSpec(f"b{bit}", bit, 1, slot=i) for i, bit in enumerate(free))


def message(profile: str, length: int, taken: set[int], can_id: int = 0x0AD, **more: object) -> MessageSpec:
    return MessageSpec("P", can_id, can_id > 0x7FF, length, True, filler(length, taken), e2e=profile, fd=length > 8,
                       **more)  # type: ignore[arg-type]  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A protected message and the independent judge of its frames."""

    spec: MessageSpec
    right: Callable[[bytes], bool]
    #: bits that the rule does not cover, by its own definition
    uncovered: frozenset[int] = frozenset()


def bits_of(first: int, n: int) -> set[int]:
    return set(range(first, first + n))


def mutable(check: Callable, data: bytes, **more: int) -> bool:
    """Some checks of autosar-e2e want a bytearray."""
    return bool(check(bytearray(data), **more))


def autosar() -> dict[str, Rule]:
    """All profiles, classic and FD, with headers anywhere."""
    found: dict[str, Rule] = {}
    modes = {"AUTOSAR_P01_1A": e2e.p01.E2E_P01_DATAID_BOTH, "AUTOSAR_P01_1B": e2e.p01.E2E_P01_DATAID_ALT,
             "AUTOSAR_P01_1C": e2e.p01.E2E_P01_DATAID_NIBBLE,
             "AUTOSAR_P01_LOW": e2e.p01.E2E_P01_DATAID_LOW}  # fmt: skip
    for name, mode in modes.items():
        for n in (2, 8, 24):
            nibble = bits_of(12, 4) if name.endswith("C") else set()
            spec = message(name, n, bits_of(0, 12) | nibble, data_id=0xA1B if nibble else 0x9A1B, crc_byte=0,
                           counter=(8, 4, False))  # fmt: skip
            found[f"{name} {n}"] = Rule(
                spec, partial(mutable, e2e.p01.e2e_p01_check, data_id=spec.data_id, data_id_mode=mode)
            )
    for n in (2, 8, 16):
        spec = message("AUTOSAR_P02", n, bits_of(0, 12), data_ids=tuple(IDS), crc_byte=0, counter=(8, 4, False))
        found[f"P02 {n}"] = Rule(spec, partial(e2e.p02.e2e_p02_check, data_id_list=IDS))
    headers = {"AUTOSAR_P04": (12, 0x8A7B6C5D, e2e.p04.e2e_p04_check, ((12, 0), (16, 0), (24, 5), (64, 52))),
               "AUTOSAR_P05": (3, 0x9A1B, e2e.p05.e2e_p05_check, ((3, 0), (8, 0), (8, 4), (64, 60))),
               "AUTOSAR_P06": (5, 0x9A1B, e2e.p06.e2e_p06_check, ((5, 0), (8, 0), (8, 2), (48, 40))),
               "AUTOSAR_P07": (20, 0x8A7B6C5D, e2e.p07.e2e_p07_check, ((20, 0), (24, 3), (64, 44)))}  # fmt: skip
    for name, (size, data_id, check, places) in headers.items():
        for n, offset in places:
            spec = message(name, n, bits_of(8 * offset, 8 * size), data_id=data_id, e2e_offset=offset)
            found[f"{name} {n}@{offset}"] = Rule(spec, partial(check, data_id=data_id, length=n, offset=offset))
    for name, mode in (
        ("AUTOSAR_P11_11A", e2e.p11.E2E_P11_DATAID_BOTH),
        ("AUTOSAR_P11_11C", e2e.p11.E2E_P11_DATAID_NIBBLE),
    ):
        nibble = bits_of(12, 4) if name.endswith("C") else set()
        spec = message(name, 8, bits_of(0, 12) | nibble, data_id=0xA1B if nibble else 0x9A1B, crc_byte=0,
                       counter=(8, 4, False))  # fmt: skip
        found[name] = Rule(spec, partial(mutable, e2e.p11.e2e_p11_check, data_id=spec.data_id, data_id_mode=mode))
    return found


def signal(start: int, size: int, little: bool) -> opendbc_dbc.Signal:
    return opendbc_dbc.Signal("CHECKSUM", start, start, start, size, False, 1.0, 0.0, little)


def by_opendbc(function: Callable, address: int, start: int, size: int, little: bool, data: bytes) -> bool:
    """The checksum field of the data as opendbc makes it."""
    wanted = function(address, signal(start, size, little), bytearray(data))
    byte = start // 8
    if size == 16:
        return wanted == int.from_bytes(data[byte : byte + 2], "little")
    low = start % 8 if little else start % 8 - size + 1
    return wanted & (1 << size) - 1 == data[byte] >> low & (1 << size) - 1


def opendbc() -> dict[str, Rule]:
    """The formats of opendbc's parser, in the places its databases have them."""
    d = opendbc_dbc
    counter = (8, 4, False)
    found: dict[str, Rule] = {}

    def add(name: str, profile: str, function: Callable, can_id: int, n: int, field: tuple[int, int, bool],
            counter: tuple[int, int, bool] | None, **more: object) -> None:  # fmt: skip
        start, size, big = field
        bits = bits_of(start - size + 1 if big else start, size)
        bits |= bits_of(counter[0] - counter[1] + 1 if counter[2] else counter[0], counter[1]) if counter else set()
        spec = message(profile, n, bits, can_id, crc_bits=field, counter=counter, **more)
        found[name] = Rule(spec, partial(by_opendbc, function, can_id, start, size, not big))

    for can_id in (0x17C, 0x1A6, 0x0CE, 0x18DAB0F1, 0x12F8BE51):
        add(f"honda {can_id:X}", "HONDA", d.honda_checksum, can_id, 8, (59, 4, True), (61, 2, True))
    add("honda 5", "HONDA", d.honda_checksum, 0xE4, 5, (35, 4, True), (37, 2, True))
    for can_id, n in ((0x2E4, 5), (0x343, 8)):
        add(f"toyota {can_id:X}", "TOYOTA", d.toyota_checksum, can_id, n, (8 * n - 1, 8, True), None)
    add("subaru", "SUM_ID", d.subaru_checksum, 0x122, 8, (0, 8, False), counter)
    add("tesla", "SUM_ID", d.tesla_checksum, 0x2B9, 8, (56, 8, False), (53, 3, False))
    add("chrysler", "SAE_J1850", d.chrysler_checksum, 0x292, 6, (47, 8, True), (39, 4, True), counter_max=15)
    for can_id, n in ((0xDE, 6), (0x106, 7), (0x122, 4), (0xFE, 8)):
        add(f"giorgio {can_id:X}", "FCA_GIORGIO", d.fca_giorgio_checksum, can_id, n, (8 * n - 1, 8, True),
            (8 * n - 13, 4, True))  # fmt: skip
    for n in (8, 16, 24, 32, 48):
        add(f"hyundai fd {n}", "HYUNDAI_CANFD", d.hkg_can_fd_checksum, 0x1A0, n, (0, 16, False), (16, 8, False))
    add("mqb", "AUTOSAR_P02", d.volkswagen_mqb_meb_checksum, 0x0AD, 8, (0, 8, False), counter, data_ids=tuple(IDS))
    add("mqb without ids", "CRC8_H2F", d.volkswagen_mqb_meb_checksum, 0x123, 8, (0, 8, False), counter)
    for can_id in (0x109, 0x10D, 0x30C):
        add(f"mlb {can_id:X}", "VW_MLB", d.volkswagen_mlb_checksum, can_id, 8, (0, 8, False), counter)
    add("pq", "XOR", d.xor_checksum, 0x488, 8, (0, 8, False), (60, 4, False))
    add("pq motor_5", "XOR", d.xor_checksum, 0x480, 8, (56, 8, False), None)
    for can_id in (0x452, 0x38D, 0x42D, 0x305):
        add(f"psa {can_id:X}", "PSA", d.psa_checksum, can_id, 8, (63, 4, True), (59, 4, True))
    add("body", "COMMA_BODY", d.body_checksum, 0x250, 6, (47, 8, True), (39, 4, True))
    return found


def by_hand() -> dict[str, Rule]:
    """Makers' code outside opendbc's parser, and rules written out here."""
    counter = (56, 4, False)

    def right(make: Callable[[bytes], int], at: int, low: int, bits: int, data: bytes) -> bool:
        return data[at] >> low & (1 << bits) - 1 == make(data) & (1 << bits) - 1

    def others(data: bytes, at: int) -> bytes:
        return data[:at] + data[at + 1 :]

    def fold(can_id: int, at: int, data: bytes) -> int:
        s = sum(can_id.to_bytes(4, "big")) + sum(others(data, at))
        return (s & 0xFF) + (s >> 8)

    def fold4(can_id: int, data: bytes) -> int:
        s = fold(can_id, 0, bytes([0]) + bytes([data[0] & 0xF0]) + data[1:]) & 0xFF
        return (s & 0xF) + (s >> 4)

    def j1939(can_id: int, data: bytes) -> int:
        # SAE J1939-71, TSC1: bytes 1 to 7, message counter, bytes of the identifier
        s = sum(data[:7]) + (data[7] & 0x0F) + sum(can_id.to_bytes(4, "big"))
        return ((s >> 6) + (s >> 3) + s) & 7

    def panda_nibbles(data: bytes) -> int:
        # opendbc/safety, hyundai_compute_checksum: EMS16 (0x260) has it in the low nibble of byte 7
        s = sum((b & 15) + (b >> 4) for b in data[:7] + bytes([data[7] & 0xF0]))
        return (16 - s % 16) % 16

    def panda_bits(data: bytes) -> int:
        # the same, WHL_SPD11 (0x386): alive counter and checksum are the two high bits of bytes 1, 3, 5, 7
        s = sum(b.bit_count() for b in data[:6]) + data[6].bit_count() + (data[7] & 0x0F).bit_count()
        return (s ^ 9) & 15

    rows: list[tuple[str, str, int, tuple[int, int, bool], Callable, dict]] = [
        ("hyundai crc8", "HYUNDAI_CRC8", 0x340, (48, 8, False), lambda x: hyundai_checksum(others(x, 6)), {}),
        ("hyundai 6b", "HYUNDAI_SUM6", 0x340, (48, 8, False), lambda x: sum(x[:6]), {}),
        ("hyundai 7b", "SUM", 0x340, (48, 8, False), lambda x: sum(others(x, 6)), {}),
        ("hyundai ems16", "HYUNDAI_NIBBLES", 0x260, (56, 4, False), panda_nibbles, {"counter": (60, 2, False)}),
        ("hyundai bits", "HYUNDAI_BITS", 0x386, (60, 4, False), panda_bits, {"counter": None}),
        ("nissan", "SAE_J1850", 0x169, (56, 8, False), lambda x: nissan_checksum(x[:7]), {"counter": (48, 2, False)}),
        ("rivian", "RIVIAN", 0x120, (0, 8, False), lambda x: rivian_checksum(x[1:], 0x1D, 0x63), {}),
        ("rivian 12", "RIVIAN", 0x160, (0, 8, False), lambda x: rivian_checksum(x[1:], 0x1D, 0x12),
         {"e2e_xorout": 0x12}),
        ("j1850", "SAE_J1850_ID", 0x123, (0, 8, False),
         lambda x: mk_crc8_fun(CRC8J1850, 0x00, 0xFF)(bytes([0x1B, 0x9A]) + x[1:]), {"data_id": 0x9A1B}),
        ("sum inverted", "SUM_INVERTED", 0x123, (56, 8, False), lambda x: 255 - sum(x[:7]), {"counter": (0, 4, False)}),
        ("bmw", "BMW_SUM", 0x0BA, (40, 8, False), lambda x: fold(0x0BA, 5, x), {"counter": (48, 4, False)}),
        ("bmw 0x194", "BMW_SUM", 0x194, (0, 8, False), lambda x: fold(0, 0, x), {"e2e_init": 0}),
        ("bmw 4 bit", "BMW_SUM4", 0x130, (0, 4, False), lambda x: fold4(0x130, x), {}),
        ("tsc1", "J1939", 0x0C000003, (60, 4, False), lambda x: j1939(0x0C000003, x), {"counter": (56, 4, False)}),
    ]  # fmt: skip
    found: dict[str, Rule] = {}
    for name, profile, can_id, field, make, more in rows:
        run = more.get("counter", counter)
        bits = bits_of(field[0], field[1]) | (bits_of(run[0], run[1]) if run else set())
        spec = message(profile, 8, bits, can_id, crc_bits=field, **{"counter": run, **more})
        uncovered = {*bits_of(56, 8)} if profile == "HYUNDAI_SUM6" else set()
        check = partial(right, make, field[0] // 8, field[0] % 8, field[1])
        found[name] = Rule(spec, check, frozenset(uncovered))
    return found


RULES = {**autosar(), **opendbc(), **by_hand()}


def frames_of(spec: MessageSpec, seed: int, n: int) -> list[bytes]:
    sender = TxState(CodecTables([replace(spec, receive=False)], len(spec.signals)))
    rng = np.random.default_rng(seed)
    return [sender.encode(rng.integers(0, 2, len(spec.signals)).astype(float), 0)[2] for _ in range(n)]


@pytest.mark.parametrize("name", RULES)
def test_our_frames_are_right_for_the_independent_code_and_for_us(name: str) -> None:
    rule = RULES[name]
    receiver = RxState(CodecTables([rule.spec], len(rule.spec.signals)))
    for data in frames_of(rule.spec, 1, 40):
        assert rule.right(data), data.hex()
        frame_id = rule.spec.can_id | (0x80000000 if rule.spec.extended else 0)
        assert receiver.decode(np.zeros(len(rule.spec.signals)), frame_id, data, 0, FD * rule.spec.fd) == k.OK


@pytest.mark.parametrize("name", RULES)
def test_every_flipped_bit_is_refused_by_both_and_changes_nothing(name: str) -> None:
    rule = RULES[name]
    n = len(rule.spec.signals)
    receiver, table = RxState(CodecTables([rule.spec], n)), np.full(n, -1.0)
    frame_id = rule.spec.can_id | (0x80000000 if rule.spec.extended else 0)
    first, second = frames_of(rule.spec, 2, 2)
    assert receiver.decode(table, frame_id, first, 0, FD * rule.spec.fd) == k.OK
    before = table.copy()
    flipped = [bit for bit in range(8 * rule.spec.length) if bit not in rule.uncovered]
    for count, bit in enumerate(flipped, start=1):
        bad = bytearray(second)
        bad[bit // 8] ^= 1 << bit % 8
        assert not rule.right(bytes(bad)), f"bit {bit}: the independent code takes it"
        assert receiver.decode(table, frame_id, bytes(bad), 0, FD * rule.spec.fd) == k.CRC, f"bit {bit}"
        assert receiver.counters()["P"]["crc"] == count
    assert np.array_equal(table, before)
    assert receiver.decode(table, frame_id, second, 0, FD * rule.spec.fd) == k.OK
    assert receiver.counters()["P"]["lost"] == 0


def test_every_profile_is_compared() -> None:
    assert {r.spec.e2e for r in RULES.values()} == set(E2E_PROFILES) - {"NONE"}


def test_counters_of_the_autosar_profiles_are_those_of_the_independent_code() -> None:
    for name, rule in autosar().items():
        frames = frames_of(rule.spec, 3, 300)
        at = name.split()[0]
        protect = {
            "P01": e2e.p01.e2e_p01_protect,
            "P11": e2e.p11.e2e_p11_protect,
            "P04": e2e.p04.e2e_p04_protect,
            "P05": e2e.p05.e2e_p05_protect,
            "P06": e2e.p06.e2e_p06_protect,
            "P07": e2e.p07.e2e_p07_protect,
        }
        key = next((p for p in protect if p in at), None)
        if key is None:
            continue
        arguments = {x: y for x, y in rule.right.keywords.items()}
        for now, after in zip(frames, frames[1:], strict=False):
            # their sender goes on from our frame: same counter, so with our data the same frame
            theirs = bytearray(now)
            protect[key](theirs, **arguments)
            span = _counter_bits(rule.spec)
            assert _bits(bytes(theirs), span) == _bits(after, span), name


def _counter_bits(spec: MessageSpec) -> tuple[int, int]:
    from torqueloop.cython_kernels.can.protection import header_fields

    _, counter, _ = header_fields(spec)
    start, length, _ = counter or spec.counter or (0, 0, False)
    return start // 8, max(1, length // 8)


def _bits(data: bytes, span: tuple[int, int]) -> bytes:
    part = data[span[0] : span[0] + span[1]]
    return bytes([part[0] & 0x0F]) if span[1] == 1 and span[0] == 1 else part


@pytest.mark.parametrize(
    ("parameters", "check"),
    [((16, 0x1021, 0xFFFF, 0, False), 0x29B1), ((32, 0xF4ACFB13, 0xFFFFFFFF, 0xFFFFFFFF, True), 0x1697D06A),
     ((64, 0x42F0E1EBA9EA3693, 2**64 - 1, 2**64 - 1, True), 0x995DC9BBDF1939FA), ((8, 0x1D, 0xFF, 0xFF, False), 0x4B),
     ((8, 0x2F, 0xFF, 0xFF, False), 0xDF), ((32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True), 0xCBF43926)],
)  # fmt: skip
def test_crcs_of_the_text_123456789_are_the_published_ones(parameters: tuple, check: int) -> None:
    assert Crc(*parameters)(b"123456789") == check


def test_recorded_frames_of_a_gearbox_are_taken() -> None:
    from opendbc.can.tests import test_checksums

    frames: list[bytes] = []
    probe = test_checksums.TestCanChecksums()
    probe.verify_volkswagen_mqb_crc = lambda *a, **_: frames.extend(a[2])  # type: ignore[method-assign]
    probe.test_volkswagen_mqb_crc_getriebe_11()
    assert len(frames) == 16
    spec = message("AUTOSAR_P02", 8, bits_of(0, 12), 0x0AD, data_ids=tuple(IDS), crc_byte=0, counter=(8, 4, False))
    receiver = RxState(CodecTables([spec], len(spec.signals)))
    assert [receiver.decode(np.zeros(len(spec.signals)), 0x0AD, f) for f in frames] == [k.OK] * 16


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"e2e": "AUTOSAR_P04", "data_id": 1}, "header of 12 bytes"),
        ({"e2e": "AUTOSAR_P05", "data_id": 1, "e2e_offset": 6}, "allowed 0..5"),
        ({"e2e": "AUTOSAR_P05", "data_id": 1 << 16}, "0..65535"),
        ({"e2e": "AUTOSAR_P01_1C", "data_id": 0x1000, "crc_byte": 0}, "0..4095"),
        ({"e2e": "AUTOSAR_P01_1B", "data_id": 1, "crc_byte": 0, "counter": None}, "alive counter"),
        ({"e2e": "PSA", "crc_byte": 0}, "has 4"),
        ({"e2e": "HYUNDAI_CANFD", "crc_byte": 0}, "has 16"),
        ({"e2e": "HYUNDAI_SUM6", "length": 5, "crc_byte": 0}, "covers 6 bytes"),
        ({"e2e": "SAE_J1850", "crc_bits": (4, 8, False)}, "whole bytes"),
    ],
)
def test_settings_that_do_not_fit_are_named(change: dict, text: str) -> None:
    base = MessageSpec("P", 0x123, False, 8, True, (), counter=(20, 4, False))
    with pytest.raises(ValueError, match="message P") as error:
        CodecTables([replace(base, **change)], 0)
    assert text in str(error.value)


def test_the_page_of_the_rules_is_up_to_date() -> None:
    from pathlib import Path

    from torqueloop.hil.can.protection_page import page

    path = Path(__file__).resolve().parents[2] / "docs" / "can_protection.md"
    assert path.read_text(encoding="utf-8") == page(), (
        "python -m torqueloop.hil.can.protection_page > docs/can_protection.md"
    )
