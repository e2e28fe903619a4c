"""Protection of CAN messages by name: AUTOSAR E2E profiles, sums, XORs and CRCs of makers, and every check of them.

Plain Python, run once before the tick: `protection_of` turns a profile and what the message says about it into the
numbers that codec.pyx stores (protect_t). A mistake is a ValueError that names the message.

Sources: AUTOSAR PRS E2E Protocol (profiles 1, 2, 4, 5, 6, 7, 11), SAE J1939-71 (TSC1), opendbc (MIT) for the makers'.
All of them are compared with `autosar-e2e` and `opendbc` in rt_tests/unit/test_protection.py,
and with recorded frames in rt_tests/unit/test_can_frames.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torqueloop.cython_kernels.can.bits import Field, Place, Split, all_bits, parts, places, width

if TYPE_CHECKING:
    from torqueloop.cython_kernels.can.codec_spec import MessageSpec

# how a checksum is made, as PROTECT_* in protect.pxd
NONE, CRC8, CRC, XOR, SUM, NIBBLES, BITS = range(7)
# what is done with a sum at its end, as FINISH_* in protect.pxd
PLAIN, NEGATE, FOLD, FOLD_NIBBLE, J1939 = range(5)


@dataclass(frozen=True)
class Header:
    """The E2E header of AUTOSAR profiles 4 to 7: (first byte, bytes) of its parts, counted from its offset. Big endian,
    but for the CRC where it says so."""

    size: int
    crc: tuple[int, int]
    counter: tuple[int, int]
    length: tuple[int, int] | None = None
    data_id: tuple[int, int] | None = None
    crc_big_endian: bool = True


@dataclass(frozen=True)
class E2EProfile:
    """Rule of checksum and alive counter."""

    kind: int
    #: highest value of the alive counter, if the message does not say otherwise; None: what its bits hold
    counter_max: int | None = None
    #: (width, polynomial, start value, final XOR, reflected)
    crc: tuple[int, int, int, int, bool] | None = None
    #: what goes into the CRC before the data: "", low+high, low, alternating (by the counter), low+0 of the data id
    prefix: str = ""
    #: and behind them: "", list (of 16 data ids, by the counter), low+high, high+low, can_id (low, high)
    suffix: str = ""
    #: bits of the data id; 0: there is none
    id_bits: int = 0
    #: the high nibble of the data id stands beside the counter, in the high nibble of byte 1
    id_nibble: bool = False
    header: Header | None = None
    #: what a sum starts with: "", can_id (the sum of its bytes), number (the identifier as a number), can_id+length,
    #: can_id_nibbles
    start: str = ""
    finish: int = PLAIN
    #: first byte it covers, and the one behind the last (None: all)
    covers: tuple[int, int | None] = (0, None)
    #: bytes from the last to the first
    backwards: bool = False
    #: the alive counter is left out as well
    without_counter: bool = False
    #: lengths of the checksum field [bit]
    widths: tuple[int, ...] = (8,)
    #: start value or final XOR by identifier (None: all others), final XOR by bytes of the message
    init_by_id: Mapping[int | None, int] = field(default_factory=dict)
    xorout_by_id: Mapping[int | None, int] = field(default_factory=dict)
    xorout_by_length: Mapping[int, int] = field(default_factory=dict)
    #: the rule, as docs/can_protection.md has it
    what: str = ""


_J1850 = (8, 0x1D, 0xFF, 0xFF, False)
_E2E_CRC8 = (8, 0x1D, 0x00, 0x00, False)
_H2F = (8, 0x2F, 0xFF, 0xFF, False)
_CCITT = (16, 0x1021, 0xFFFF, 0x0000, False)
_P4 = (32, 0xF4ACFB13, 0xFFFFFFFF, 0xFFFFFFFF, True)
#: start values of BMW's F series by identifier: WOOL929/SIMShifterBOX; the six in common with r00li/CarCluster, and
#: 0x197 and 0x3FD of the openinverter wiki agree
_BMW_F: dict[int | None, int] = {
    0x08F: 0x75, 0x0A0: 0xBC, 0x0A5: 0x16, 0x0A6: 0xC2, 0x0A7: 0x8E, 0x0B0: 0x4C, 0x0C2: 0xD8, 0x0D9: 0x3E, 0x0EF: 0x98,
    0x12F: 0x60, 0x145: 0x48, 0x163: 0xA0, 0x173: 0x13, 0x197: 0x62, 0x199: 0x8F, 0x19A: 0x17, 0x19F: 0xEF, 0x1A1: 0x77,
    0x1AF: 0xB5, 0x1E1: 0x78, 0x1FC: 0x66, 0x207: 0x51, 0x254: 0xB8, 0x297: 0xDF, 0x2C5: 0xFC, 0x2E0: 0x5B, 0x2ED: 0x1D,
    0x302: 0xC3, 0x30B: 0xBE, 0x3A7: 0x05, 0x3F9: 0x38, 0x3FD: 0xD7,
}  # fmt: skip
_ECMA = (64, 0x42F0E1EBA9EA3693, (1 << 64) - 1, (1 << 64) - 1, True)

#: Profiles by name, as written in the rig file or in the DBC attribute E2EProfile.
E2E_PROFILES: dict[str, E2EProfile] = {
    "NONE": E2EProfile(NONE, what="alive counter only"),
    # --- AUTOSAR. The CRC-8 of profiles 1 and 11 is called so that start value and final XOR of the library cancel
    "AUTOSAR_P01_1A": E2EProfile(CRC8, 14, _E2E_CRC8, "low+high", id_bits=16,
                                 what="profile 1, both bytes of the data id"),
    "AUTOSAR_P01_1B": E2EProfile(CRC8, 14, _E2E_CRC8, "alternating", id_bits=16,
                                 what="profile 1, low byte of the data id with even counters, high byte with odd ones"),
    "AUTOSAR_P01_1C": E2EProfile(CRC8, 14, _E2E_CRC8, "low+0", id_bits=12, id_nibble=True,
                                 what="profile 1, 12-bit data id, its high nibble in the high nibble of byte 1"),
    "AUTOSAR_P01_LOW": E2EProfile(CRC8, 14, _E2E_CRC8, "low", id_bits=16, what="profile 1, low byte of the data id"),
    "AUTOSAR_P02": E2EProfile(CRC8, 15, _H2F, suffix="list",
                              what="profile 2, the counter selects one of 16 data ids; VW MQB"),
    "AUTOSAR_P04": E2EProfile(CRC, 0xFFFF, _P4, id_bits=32, widths=(32,), what="profile 4, CRC-32",
                              header=Header(12, crc=(8, 4), counter=(2, 2), length=(0, 2), data_id=(4, 4))),
    "AUTOSAR_P05": E2EProfile(CRC, 0xFF, _CCITT, suffix="low+high", id_bits=16, widths=(16,), what="profile 5, CRC-16",
                              header=Header(3, crc=(0, 2), counter=(2, 1), crc_big_endian=False)),
    "AUTOSAR_P06": E2EProfile(CRC, 0xFF, _CCITT, suffix="high+low", id_bits=16, widths=(16,),
                              what="profile 6, CRC-16 and length",
                              header=Header(5, crc=(0, 2), counter=(4, 1), length=(2, 2))),
    "AUTOSAR_P07": E2EProfile(CRC, 0xFFFFFFFF, _ECMA, id_bits=32, widths=(64,), what="profile 7, CRC-64",
                              header=Header(20, crc=(0, 8), counter=(12, 4), length=(8, 4), data_id=(16, 4))),
    "AUTOSAR_P11_11A": E2EProfile(CRC8, 14, _E2E_CRC8, "low+high", id_bits=16,
                                  what="profile 11, both bytes of the data id"),
    "AUTOSAR_P11_11C": E2EProfile(CRC8, 14, _E2E_CRC8, "low+0", id_bits=12, id_nibble=True,
                                  what="profile 11, 12-bit data id, its high nibble in the high nibble of byte 1"),
    # --- plain CRCs, XOR, sums
    "SAE_J1850": E2EProfile(CRC8, crc=_J1850, what="CRC-8 SAE J1850 of all other bytes; Chrysler, Nissan"),
    "SAE_J1850_ID": E2EProfile(CRC8, 14, _J1850, "low+high", id_bits=16,
                               what="as AUTOSAR_P01_1A with start value and final XOR of SAE J1850"),
    "CRC8_H2F": E2EProfile(CRC8, crc=_H2F, what="CRC-8 0x2F of all other bytes"),
    "XOR": E2EProfile(XOR, what="XOR of all other bytes; VW PQ"),
    "SUM": E2EProfile(SUM, what="sum of all other bytes; Hyundai, Subaru before 2018"),
    "SUM_INVERTED": E2EProfile(SUM, xorout_by_length=dict.fromkeys(range(65), 0xFF),
                               what="255 minus the sum of all other bytes"),
    # --- makers
    "BMW_SUM": E2EProfile(SUM, 14, start="number", finish=FOLD,
                          what="sum of the identifier as a number and all other bytes, folded to 8 bits; BMW E series"),
    "BMW_SUM4": E2EProfile(SUM, 14, start="number", finish=FOLD_NIBBLE, widths=(4,),
                           what="as BMW_SUM, then folded to 4 bits; BMW 0x130"),
    "BMW_CRC8": E2EProfile(CRC8, 14, (8, 0x1D, 0x00, 0x00, False), init_by_id=_BMW_F,
                           what="CRC-8 0x1D, each message has its own start value; BMW F series"),
    "VW_MLB": E2EProfile(XOR, 15, init_by_id={0x109: 0x08, 0x111: 0x10, 0x30C: 0x0F, 0x324: 0x27,
                         0x10B: 0x0A, 0x10D: 0x0C,
                                              0x10F: 0x0E, 0x311: 0x12, 0x397: 0x94, 0x10C: 0x0D},
                         what="XOR of all other bytes and a constant that each message has"),
    "HYUNDAI_CRC8": E2EProfile(CRC8, crc=(8, 0x1D, 0x22, 0xDF, False), what="CRC-8 0x1D, Hyundai and Kia from 2019"),
    "HYUNDAI_SUM6": E2EProfile(SUM, covers=(0, 6), what="sum of bytes 0 to 5; Kia 2018"),
    "HYUNDAI_NIBBLES": E2EProfile(NIBBLES, finish=NEGATE, widths=(4,),
                                  what="minus the sum of all nibbles; EMS16, TCS13"),
    "HYUNDAI_BITS": E2EProfile(BITS, widths=(4,), without_counter=True, xorout_by_length=dict.fromkeys(range(65), 9),
                               what="number of one bits outside of the counter, XOR 9; WHL_SPD11"),
    "HYUNDAI_CANFD": E2EProfile(CRC, 0xFF, (16, 0x1021, 0x0000, 0x0000, False), suffix="can_id", widths=(16,),
                                xorout_by_length={8: 0x5F29, 16: 0x041D, 24: 0x819D, 32: 0x9F5B},
                                what="CRC-16 of the data followed by the identifier"),
    "HONDA": E2EProfile(NIBBLES, start="can_id_nibbles", finish=NEGATE, widths=(4,), init_by_id={None: 8},
                        what="8 minus the sum of the nibbles of data and identifier; 11 minus it with 29 bits"),
    "TOYOTA": E2EProfile(SUM, start="can_id+length", what="sum of identifier, length and all other bytes"),
    "SUM_ID": E2EProfile(SUM, start="can_id", what="sum of identifier and all other bytes; Subaru, Tesla"),
    "FCA_GIORGIO": E2EProfile(CRC8, crc=(8, 0x1D, 0x00, 0x0A, False),
                              xorout_by_id={0xDE: 0x10, 0x106: 0xF6, 0x122: 0xF1},
                              what="CRC-8 0x1D, each message has its own final XOR; Alfa Romeo"),
    "PSA": E2EProfile(NIBBLES, finish=NEGATE, widths=(4,), init_by_id={0x452: 0x4, 0x38D: 0x7, 0x42D: 0xC, None: 0xB},
                      what="a constant that each message has, minus the sum of all nibbles"),
    "RIVIAN": E2EProfile(CRC8, 14, (8, 0x1D, 0x00, 0x63, False),
                         what="CRC-8 0x1D, each message has its own final XOR"),
    "COMMA_BODY": E2EProfile(CRC8, 15, (8, 0xD5, 0xFF, 0x00, False), backwards=True,
                             what="CRC-8 0xD5 of the bytes from the last to the first"),
    "PARITY_01": E2EProfile(BITS, covers=(0, 2), widths=(1,), what="even parity of bytes 0 and 1; Mercedes GS_218"),
    "J1939": E2EProfile(SUM, 7, start="can_id", finish=J1939, widths=(4,),
                        what="SAE J1939 TSC1 (SPN 4207): (((s >> 6) & 3) + (s >> 3) + s) & 7 of the sum s of bytes, "
                             "counter and the bytes of the identifier"),
}  # fmt: skip


@dataclass(frozen=True)
class Protection:
    """Numbers of protect_t: how the checksum of one message is made, and what else of it is given."""

    kind: int
    finish: int
    crc: tuple[int, int, int, int, bool] | None
    init: int
    xorout: int
    prefix: tuple[int, ...]
    #: the prefix is one of two bytes, by the lowest bit of the counter
    alternating: bool
    suffix: tuple[int, ...]
    #: 16 data ids, one of which is the suffix; else empty
    listed_ids: tuple[int, ...]
    #: a CRC covers [first, skip) and [resume, last)
    first: int
    skip: int
    resume: int
    last: int
    backwards: bool
    #: what of each byte a sum covers
    keep: tuple[int, ...]
    #: where the checksum stands, its lowest bits first
    places: tuple[Place, ...]
    #: of the checksum's bits
    mask: int
    #: (byte, mask, value) of what else the rule gives: length, data id
    fixed: tuple[tuple[int, int, int], ...]


def header_fields(message: MessageSpec) -> tuple[Field | None, Field | None, set[int]]:
    """(checksum, alive counter, all bits of the header) of a profile that has one; (None, None, {}) else. ValueError if
    it does not fit the message."""
    header = E2E_PROFILES[message.e2e].header
    if header is None:
        return None, None, set()
    at = message.e2e_offset
    if not 0 <= at <= message.length - header.size:
        allowed = f"0..{message.length - header.size}" if message.length >= header.size else "more bytes"
        what = f"E2E header of {header.size} bytes at byte {at} of {message.length}"
        raise ValueError(f"message {message.name}: {what}; allowed {allowed}")
    crc = _bytes(at, header.crc, header.crc_big_endian)
    return crc, _bytes(at, header.counter, True), set(range(8 * at, 8 * (at + header.size)))


def protection_of(message: MessageSpec, checksum: Split | None, counter: Split | None) -> Protection | None:
    """The numbers of a message's profile; None without a checksum. ValueError on what does not fit."""
    where = f"message {message.name}"
    name, profile = message.e2e, E2E_PROFILES[message.e2e]
    if profile.kind == NONE:
        return None
    if checksum is None:
        raise ValueError(f"{where}: E2E profile {name} needs a checksum byte inside the message")
    _check_ids(message, profile, counter)
    spots = places(f"{where}: checksum", message.length, checksum)
    length = width(checksum)
    if length not in profile.widths:
        allowed = " or ".join(map(str, profile.widths))
        raise ValueError(f"{where}: checksum of {length} bit; E2E profile {name} has {allowed}")
    first, last = profile.covers[0], message.length if profile.covers[1] is None else profile.covers[1]
    if last > message.length:
        raise ValueError(f"{where}: E2E profile {name} covers {last} bytes, the message has {message.length}")
    mine = sorted({bit // 8 for bit in all_bits(checksum)})
    if profile.kind in (CRC8, CRC) and 8 * len(mine) != length:
        start = parts(checksum)[0][0]
        raise ValueError(f"{where}: checksum (start bit {start}, {length} bit) must fill whole bytes")
    left_out = all_bits(checksum) | (all_bits(counter) if profile.without_counter else set())
    keep = tuple(
        sum(1 << k for k in range(8) if 8 * byte + k not in left_out) if first <= byte < last else 0
        for byte in range(64)
    )
    skip, resume = mine[0], mine[-1] + 1
    return Protection(
        kind=profile.kind, finish=profile.finish, crc=profile.crc, init=_init(message, profile),
        xorout=_xorout(message, profile), prefix=_prefix(message, profile),
        alternating=profile.prefix == "alternating", suffix=_suffix(message, profile),
        listed_ids=message.data_ids if profile.suffix == "list" else (), first=first, skip=max(first, min(skip, last)),
        resume=max(first, min(resume, last)), last=last, backwards=profile.backwards, keep=keep, places=spots,
        mask=(1 << length) - 1, fixed=tuple(_fixed(message, profile)),
    )  # fmt: skip


def _check_ids(message: MessageSpec, profile: E2EProfile, counter: Split | None) -> None:
    where = f"message {message.name}"
    if profile.suffix == "list":
        ids = message.data_ids
        if len(ids) != 16 or not all(0 <= d <= 255 for d in ids) or counter is None:
            raise ValueError(f"{where}: E2E profile {message.e2e} needs an alive counter and 16 data ids 0..255")
    highest = (1 << (profile.id_bits or 16)) - 1
    if not 0 <= message.data_id <= highest:
        raise ValueError(f"{where}: E2E data id {message.data_id}; allowed 0..{highest}")
    if profile.prefix == "alternating" and counter is None:
        raise ValueError(f"{where}: E2E profile {message.e2e} needs an alive counter")


def _bytes(at: int, part: tuple[int, int], big: bool) -> Field:
    """A part of a header as a field."""
    first, n = part
    return (8 * (at + first) + (7 if big else 0), 8 * n, big)


def _id_bytes(can_id: int) -> list[int]:
    return [(can_id >> shift) & 0xFF for shift in (0, 8, 16, 24)]


def _init(message: MessageSpec, profile: E2EProfile) -> int:
    """What the register or the sum starts with."""
    if message.e2e_init is not None:
        return message.e2e_init
    usual = profile.init_by_id.get(None, None if profile.init_by_id else profile.crc[2] if profile.crc else 0)
    start = profile.init_by_id.get(message.can_id, usual)
    if start is None:
        raise ValueError(
            f"message {message.name}: E2E profile {message.e2e} has no start value for identifier "
            f"0x{message.can_id:X}; give `init`, or the attribute E2EInit"
        )
    if profile.start in ("can_id", "can_id+length"):
        start += sum(_id_bytes(message.can_id))
    if profile.start == "number":
        start += message.can_id
    if profile.start == "can_id+length":
        start += message.length
    if profile.start == "can_id_nibbles":
        start -= sum((message.can_id >> shift) & 0xF for shift in range(0, 32, 4))
        start += 3 if message.extended else 0
    return start & 0xFFFFFFFF if profile.crc is None else start


def _xorout(message: MessageSpec, profile: E2EProfile) -> int:
    if message.e2e_xorout is not None:
        return message.e2e_xorout
    usual = profile.crc[3] if profile.crc else 0
    return profile.xorout_by_length.get(message.length, profile.xorout_by_id.get(message.can_id, usual))


def _prefix(message: MessageSpec, profile: E2EProfile) -> tuple[int, ...]:
    low, high = message.data_id & 0xFF, message.data_id >> 8 & 0xFF
    known = {"": (), "low+high": (low, high), "alternating": (low, high), "low": (low,), "low+0": (low, 0)}
    return known[profile.prefix]


def _suffix(message: MessageSpec, profile: E2EProfile) -> tuple[int, ...]:
    low, high = message.data_id & 0xFF, message.data_id >> 8 & 0xFF
    from_id = (message.can_id & 0xFF, message.can_id >> 8 & 0xFF)
    return {"": (), "list": (), "low+high": (low, high), "high+low": (high, low), "can_id": from_id}[profile.suffix]


def _fixed(message: MessageSpec, profile: E2EProfile) -> list[tuple[int, int, int]]:
    """(byte, mask, value) of length and data id where they stand in the frame."""
    found: list[tuple[int, int, int]] = []
    if profile.id_nibble:
        found.append((1, 0xF0, (message.data_id >> 8 & 0xF) << 4))
    if profile.header is not None:
        for part, value in ((profile.header.length, message.length), (profile.header.data_id, message.data_id)):
            if part is not None:
                first, n = part
                at = message.e2e_offset + first
                found += [(at + k, 0xFF, value >> 8 * (n - 1 - k) & 0xFF) for k in range(n)]
    return found
