"""Every rule of protection as code of others has it: `autosar-e2e`, `opendbc`, written out by hand where neither does.

A rule stands in a message: where checksum and counter are, and which bits nothing else uses. The rig's side and the
tests of the codec make their messages of the same table; what is right is said here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import e2e
from opendbc.can import dbc as opendbc_dbc
from opendbc.car.crc import CRC8J1850, mk_crc8_fun
from opendbc.car.hyundai.hyundaican import hyundai_checksum
from opendbc.car.nissan.nissancan import nissan_checksum
from opendbc.car.rivian.riviancan import checksum as rivian_checksum

#: data ids of a VW MQB gearbox (Getriebe_11)
IDS = bytes.fromhex("3F6939DC94F91464D86A34CEA255B52C")
#: start bit as in a DBC, size, big endian
Field = tuple[int, int, bool]
#: a field, or its parts, the lowest bits first
Split = Field | tuple[Field, ...]


@dataclass(frozen=True)
class Rule:
    """A protected message and the independent judge of its frames."""

    #: the rule's name in a rig file
    profile: str
    can_id: int
    length: int
    #: whether a frame's checksum is right
    right: Callable[[bytes], bool]
    #: the same data with the checksum made anew
    protect: Callable[[bytes], bytes]
    #: the frame their sender makes of this one's data when it goes on from its counter
    following: Callable[[bytes], bytes] | None = None
    crc: Split | None = None
    counter: Split | None = None
    #: further keys of [bus.NAME.e2e.MESSAGE]
    settings: dict[str, Any] = field(default_factory=dict)
    #: bits of a header or data id, that no signal may use
    reserved: frozenset[int] = frozenset()
    #: bits that the rule does not cover, by its own definition
    uncovered: frozenset[int] = frozenset()

    @property
    def free(self) -> list[int]:
        """Bits for signals, numbered 8 * byte + bit."""
        taken = set(self.reserved)
        for place in (*parts_of(self.crc), *parts_of(self.counter)):
            taken |= bits_of(place)
        return [bit for bit in range(8 * self.length) if bit not in taken]

    @property
    def flips(self) -> list[int]:
        """Bits whose change must be refused."""
        return [bit for bit in range(8 * self.length) if bit not in self.uncovered]


def parts_of(place: Split | None) -> tuple[Field, ...]:
    """The parts of a field, one of most."""
    if place is None:
        return ()
    return (place,) if isinstance(place[0], int) else place  # type: ignore[return-value]


def bits_of(place: Field) -> set[int]:
    """Bits of a field that lies in one byte, or begins one."""
    start, size, big = place
    return set(range(start - size + 1, start + 1)) if big else set(range(start, start + size))


def flipped(data: bytes, bit: int) -> bytes:
    """The frame with one bit changed."""
    out = bytearray(data)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


# --- AUTOSAR ----------------------------------------------------------------------------------------------------------


def _checked(check: Callable[..., bool], more: dict[str, Any], data: bytes) -> bool:
    # some checks of autosar-e2e want a bytearray
    return bool(check(bytearray(data), **more))


def _protected(protect: Callable[..., None], crc_bytes: range, more: dict[str, Any], data: bytes) -> bytes:
    out = bytearray(data)
    for k in crc_bytes:
        out[k] = 0
    protect(out, increment_counter=False, **more)
    return bytes(out)


def _following(protect: Callable[..., None], more: dict[str, Any], data: bytes) -> bytes:
    out = bytearray(data)
    protect(out, **more)
    return bytes(out)


def _of(module: Any, name: str, crc_bytes: range, **more: Any) -> dict[str, Any]:
    check, protect = getattr(module, f"e2e_{name}_check"), getattr(module, f"e2e_{name}_protect")
    return {
        "right": partial(_checked, check, more),
        "protect": partial(_protected, protect, crc_bytes, more),
        "following": partial(_following, protect, more),
    }


def autosar() -> dict[str, Rule]:
    """All profiles, classic and FD, with headers anywhere."""
    found: dict[str, Rule] = {}
    counter, crc = (8, 4, False), (0, 8, False)
    p01, p11 = e2e.p01, e2e.p11
    forms = (
        ("AUTOSAR_P01_1A", p01, "p01", p01.E2E_P01_DATAID_BOTH, (2, 8, 24)),
        ("AUTOSAR_P01_1B", p01, "p01", p01.E2E_P01_DATAID_ALT, (2, 8, 24)),
        ("AUTOSAR_P01_1C", p01, "p01", p01.E2E_P01_DATAID_NIBBLE, (2, 8, 24)),
        ("AUTOSAR_P01_LOW", p01, "p01", p01.E2E_P01_DATAID_LOW, (2, 8, 24)),
        ("AUTOSAR_P11_11A", p11, "p11", p11.E2E_P11_DATAID_BOTH, (8,)),
        ("AUTOSAR_P11_11C", p11, "p11", p11.E2E_P11_DATAID_NIBBLE, (8,)),
    )
    for profile, module, name, mode, lengths in forms:
        for n in lengths:
            nibble = profile.endswith("C")
            data_id = 0xA1B if nibble else 0x9A1B
            judge = _of(module, name, range(1), data_id=data_id, data_id_mode=mode)
            found[f"{profile} {n}"] = Rule(
                profile, 0x400 + len(found), n, **judge, crc=crc, counter=counter, settings={"data_id": data_id},
                reserved=frozenset(range(12, 16) if nibble else ()),
            )  # fmt: skip
    for n in (2, 8, 16):
        judge = _of(e2e.p02, "p02", range(1), data_id_list=IDS, length=n)
        found[f"AUTOSAR_P02 {n}"] = Rule(
            "AUTOSAR_P02", 0x400 + len(found), n, **judge, crc=crc, counter=counter, settings={"data_ids": list(IDS)}
        )
    # size of the header, bytes of the checksum in it, data id, (length, offset)
    headers = {
        4: (12, (8, 12), 0x8A7B6C5D, ((12, 0), (16, 0), (24, 5), (64, 52))),
        5: (3, (0, 2), 0x9A1B, ((3, 0), (8, 0), (8, 4), (64, 60))),
        6: (5, (0, 2), 0x9A1B, ((5, 0), (8, 0), (8, 2), (48, 40))),
        7: (20, (0, 8), 0x8A7B6C5D, ((20, 0), (24, 3), (64, 44))),
    }
    for number, (size, (first, end), data_id, places) in headers.items():
        module, name = getattr(e2e, f"p0{number}"), f"p0{number}"
        for n, offset in places:
            judge = _of(module, name, range(offset + first, offset + end), data_id=data_id, length=n, offset=offset)
            found[f"AUTOSAR_P0{number} {n}@{offset}"] = Rule(
                f"AUTOSAR_P0{number}", 0x400 + len(found), n, **judge,
                settings={"data_id": data_id, "offset": offset},
                reserved=frozenset(range(8 * offset, 8 * (offset + size))),
            )  # fmt: skip
    return found


# --- makers -----------------------------------------------------------------------------------------------------------


def _put(make: Callable[[bytes], int], place: Split, data: bytes) -> bytes:
    """The checksum field filled; 16 bits stand in little endian."""
    value, out = make(data), bytearray(data)
    for start, size, big in parts_of(place):
        at, mask = start // 8, (1 << size) - 1
        if size == 16:
            out[at : at + 2] = (value & mask).to_bytes(2, "little")
        else:
            low = start % 8 - size + 1 if big else start % 8
            out[at] = out[at] & ~(mask << low) | (value & mask) << low
        value >>= size
    return bytes(out)


def _made_anew(make: Callable[[bytes], int], place: Split) -> dict[str, Any]:
    protect = partial(_put, make, place)
    return {"right": lambda data: protect(data) == data, "protect": protect}


def _by_opendbc(function: Callable[..., int], address: int, place: Field, data: bytes) -> int:
    start, size, big = place
    signal = opendbc_dbc.Signal("CHECKSUM", start, start, start, size, False, 1.0, 0.0, not big)
    return int(function(address, signal, bytearray(data)))


def opendbc() -> dict[str, Rule]:
    """The formats of opendbc's parser, in the places its databases have them."""
    d = opendbc_dbc
    counter = (8, 4, False)
    found: dict[str, Rule] = {}

    def add(name: str, profile: str, function: Callable[..., int], can_id: int, n: int, crc: Field,
            counter: Field | None, **settings: Any) -> None:  # fmt: skip
        judge = _made_anew(partial(_by_opendbc, function, can_id, crc), crc)
        found[name] = Rule(profile, can_id, n, **judge, crc=crc, counter=counter, settings=settings)

    for can_id in (0x17C, 0x1A6, 0x0CE, 0x18DAB0F1, 0x12F8BE51):
        add(f"honda {can_id:X}", "HONDA", d.honda_checksum, can_id, 8, (59, 4, True), (61, 2, True))
    add("honda 5", "HONDA", d.honda_checksum, 0xE4, 5, (35, 4, True), (37, 2, True))
    for can_id, n in ((0x2E4, 5), (0x343, 8)):
        add(f"toyota {can_id:X}", "TOYOTA", d.toyota_checksum, can_id, n, (8 * n - 1, 8, True), None)
    add("subaru", "SUM_ID", d.subaru_checksum, 0x124, 8, (0, 8, False), counter)
    add("tesla", "SUM_ID", d.tesla_checksum, 0x2B9, 8, (56, 8, False), (53, 3, False))
    add("chrysler", "SAE_J1850", d.chrysler_checksum, 0x292, 6, (47, 8, True), (39, 4, True), counter_max=15)
    for can_id, n in ((0xDE, 6), (0x106, 7), (0x122, 4), (0xFE, 8)):
        add(f"giorgio {can_id:X}", "FCA_GIORGIO", d.fca_giorgio_checksum, can_id, n, (8 * n - 1, 8, True),
            (8 * n - 13, 4, True))  # fmt: skip
    for n in (8, 16, 24, 32, 48):
        add(f"hyundai fd {n}", "HYUNDAI_CANFD", d.hkg_can_fd_checksum, 0x500 + n, n, (0, 16, False), (16, 8, False))
    add("mqb", "AUTOSAR_P02", d.volkswagen_mqb_meb_checksum, 0x0AD, 8, (0, 8, False), counter, data_ids=list(IDS))
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

    def others(data: bytes, at: int) -> bytes:
        return data[:at] + data[at + 1 :]

    def fold(can_id: int, at: int, data: bytes) -> int:
        # recorded frames of a BMW 760Li (rt_tests/can_frames.yaml); 0x1A0 tells this from the sum of the id's bytes
        s = can_id + sum(others(data, at))
        return (s & 0xFF) + (s >> 8)

    def fold4(can_id: int, data: bytes) -> int:
        s = fold(can_id, 0, bytes([0]) + bytes([data[0] & 0xF0]) + data[1:]) & 0xFF
        return (s & 0xF) + (s >> 4)

    def j1939(can_id: int, data: bytes) -> int:
        # SAE J1939-71, TSC1: bytes 1 to 7, message counter, bytes of the identifier
        s = sum(data[:7]) + (data[7] & 0x0F) + sum(can_id.to_bytes(4, "big"))
        return (((s >> 6) & 3) + (s >> 3) + s) & 7

    def panda_nibbles(data: bytes) -> int:
        # opendbc/safety, hyundai_compute_checksum: EMS16 (0x260) has it in the low nibble of byte 7
        s = sum((b & 15) + (b >> 4) for b in data[:7] + bytes([data[7] & 0xF0]))
        return (16 - s % 16) % 16

    def panda_bits(data: bytes) -> int:
        # the same, WHL_SPD11 (0x386): alive counter and checksum are the two high bits of bytes 1, 3, 5, 7
        return (sum((b & (0x3F if k % 2 else 0xFF)).bit_count() for k, b in enumerate(data)) ^ 9) & 15

    def start_8(start: int, data: bytes) -> int:
        # WOOL929/SIMShifterBOX, bmw_shifter.c: CRC-8 0x1D, a start value for each identifier, over bytes 1 to the last
        return int(mk_crc8_fun(CRC8J1850, start, 0)(data[1:]))

    last = (56, 4, False)
    split_counter, split_crc = ((14, 2, False), (30, 2, False)), ((46, 2, False), (62, 2, False))
    rows: list[tuple[str, str, int, Split, Callable[[bytes], int], Split | None, dict[str, Any]]] = [
        ("hyundai crc8", "HYUNDAI_CRC8", 0x340, (48, 8, False), lambda x: hyundai_checksum(others(x, 6)), last, {}),
        ("hyundai 6b", "HYUNDAI_SUM6", 0x341, (48, 8, False), lambda x: sum(x[:6]), last, {}),
        ("hyundai 7b", "SUM", 0x342, (48, 8, False), lambda x: sum(others(x, 6)), last, {}),
        ("hyundai ems16", "HYUNDAI_NIBBLES", 0x260, (56, 4, False), panda_nibbles, (60, 2, False), {}),
        ("hyundai bits", "HYUNDAI_BITS", 0x386, split_crc, panda_bits, split_counter, {}),
        ("nissan", "SAE_J1850", 0x169, (56, 8, False), lambda x: nissan_checksum(x[:7]), (48, 2, False), {}),
        ("rivian", "RIVIAN", 0x120, (0, 8, False), lambda x: rivian_checksum(x[1:], 0x1D, 0x63), last, {}),
        ("rivian 12", "RIVIAN", 0x160, (0, 8, False), lambda x: rivian_checksum(x[1:], 0x1D, 0x12), last,
         {"xorout": 0x12}),
        ("j1850", "SAE_J1850_ID", 0x126, (0, 8, False),
         lambda x: mk_crc8_fun(CRC8J1850, 0x00, 0xFF)(bytes([0x1B, 0x9A]) + x[1:]), last, {"data_id": 0x9A1B}),
        ("sum inverted", "SUM_INVERTED", 0x127, (56, 8, False), lambda x: 255 - sum(x[:7]), (0, 4, False), {}),
        ("bmw", "BMW_SUM", 0x0BA, (40, 8, False), lambda x: fold(0x0BA, 5, x), (48, 4, False), {}),
        ("bmw speed", "BMW_SUM", 0x1A0, (56, 8, False), lambda x: fold(0x1A0, 7, x), (52, 4, False), {}),
        ("bmw 0x194", "BMW_SUM", 0x194, (0, 8, False), lambda x: fold(0, 0, x), last, {"init": 0}),
        ("bmw 4 bit", "BMW_SUM4", 0x130, (0, 4, False), lambda x: fold4(0x130, x), last, {}),
        ("bmw f 0xB0", "BMW_CRC8", 0x0B0, (0, 8, False), lambda x: start_8(0x4C, x), (8, 4, False), {}),
        ("bmw f own", "BMW_CRC8", 0x0B1, (0, 8, False), lambda x: start_8(0x5A, x), (8, 4, False), {"init": 0x5A}),
        ("gs_218", "PARITY_01", 0x218, (47, 1, True), lambda x: int.from_bytes(x[:2]).bit_count(), None, {}),
        ("tsc1", "J1939", 0x0C000003, (60, 4, False), lambda x: j1939(0x0C000003, x), (56, 4, False), {}),
    ]  # fmt: skip
    # by definition: the sum of bytes 0 to 5, the four speeds, the 16 bits of the request
    uncovered = {"HYUNDAI_SUM6": set(range(56, 64)), "PARITY_01": set(range(16, 64)) - bits_of((47, 1, True)),
                 "HYUNDAI_BITS": bits_of(split_counter[0]) | bits_of(split_counter[1])}  # fmt: skip
    found: dict[str, Rule] = {}
    for name, profile, can_id, crc, make, counter, settings in rows:
        found[name] = Rule(profile, can_id, 8, **_made_anew(make, crc), crc=crc, counter=counter, settings=settings,
                           uncovered=frozenset(uncovered.get(profile, ())))  # fmt: skip
    return found


RULES: dict[str, Rule] = {**autosar(), **opendbc(), **by_hand()}
