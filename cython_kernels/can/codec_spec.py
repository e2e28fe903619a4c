"""What the CAN codec is built from: messages, signals, end-to-end profiles, and every check of them.

Plain Python, run once before the tick. `message_fields` and `signal_fields` give the numbers that codec.pyx stores in
its C tables; a mistake is a ValueError that names message and signal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Signals of one message: the codec keeps them on the stack until the frame is accepted. 64 bytes hold no more.
SIGNALS_MAX = 512
#: Numbers of data bytes that a CAN FD frame can have.
FD_LENGTHS = (*range(9), 12, 16, 20, 24, 32, 48, 64)

FLOAT32_MAX = (2.0 - 2.0**-23) * 2.0**127
FLOAT64_MAX = (2.0 - 2.0**-52) * 2.0**1023

# kinds of raw values, as RAW_* in codec.pxd
RAW_UNSIGNED, RAW_SIGNED, RAW_FLOAT32, RAW_FLOAT64 = range(4)
# kinds of end-to-end protection, as E2E_* in codec.pxd
E2E_NONE, E2E_CRC_ID, E2E_CRC_LIST, E2E_XOR, E2E_SUM_ID = range(5)


@dataclass(frozen=True)
class E2EProfile:
    """Rule of checksum and alive counter. The checksum covers all bytes of the message but its own."""

    kind: int
    #: highest value of the alive counter, if the message does not say otherwise
    counter_max: int
    #: CRC-8 polynomial, start value, final XOR
    crc: tuple[int, int, int] = (0, 0, 0)


#: Profiles by name, as written in the DBC attribute E2EProfile.
E2E_PROFILES = {
    # alive counter only
    "NONE": E2EProfile(E2E_NONE, 15),
    # AUTOSAR E2E profile 1, both bytes of the data id (low, high) before the data; counter 15 is invalid
    "AUTOSAR_P01_1A": E2EProfile(E2E_CRC_ID, 14, (0x1D, 0x00, 0x00)),
    # the same with the start value and final XOR of SAE J1850
    "SAE_J1850_ID": E2EProfile(E2E_CRC_ID, 14, (0x1D, 0xFF, 0xFF)),
    # AUTOSAR E2E profile 2, used by VW MQB: one of 16 data ids, chosen by the counter, after the data
    "AUTOSAR_P02": E2EProfile(E2E_CRC_LIST, 15, (0x2F, 0xFF, 0xFF)),
    # VW PQ: XOR of all other bytes
    "XOR": E2EProfile(E2E_XOR, 15),
    # BMW E-series: folded sum of identifier and all other bytes
    "BMW_SUM": E2EProfile(E2E_SUM_ID, 14),
}


@dataclass(frozen=True)
class SignalSpec:
    """One signal of a message. `scale`, `offset`, `minimum`, `maximum` give the values of the signal table (SI)."""

    name: str
    #: start bit as in a DBC file: least significant bit (little endian) or most significant bit (big endian)
    start: int
    length: int
    big_endian: bool = False
    signed: bool = False
    is_float: bool = False
    scale: float = 1.0
    offset: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    #: index in the signal table
    slot: int = 0
    #: received values outside the limits refuse the frame
    check: bool = True


@dataclass(frozen=True)
class MessageSpec:
    """One message and its protection."""

    name: str
    can_id: int
    extended: bool
    #: data bytes
    length: int
    #: we receive it (else we send it)
    receive: bool
    signals: tuple[SignalSpec, ...]
    #: name of the profile in E2E_PROFILES
    e2e: str = "NONE"
    data_id: int = 0
    #: 16 data ids for AUTOSAR_P02
    data_ids: tuple[int, ...] = ()
    #: index of the checksum byte
    crc_byte: int | None = None
    #: alive counter: (start, length, big endian)
    counter: tuple[int, int, bool] | None = None
    #: highest value of the counter; None: that of the profile
    counter_max: int | None = None
    #: largest accepted step of the counter. 2: one frame may be lost without losing the next one as well
    max_delta: int = 2
    timeout_ns: int = 0
    cycle_ns: int = 0
    #: CAN FD; a frame of the other format is refused
    fd: bool = False
    #: CAN FD: send the data at the second bit rate
    brs: bool = True


def message_fields(message: MessageSpec) -> dict[str, int]:
    """Values of the codec_message_t fields that need computing; ValueError on a mistake in message or signals."""
    where = f"message {message.name}"
    if message.fd and message.length not in FD_LENGTHS:
        raise ValueError(f"{where}: {message.length} bytes; CAN FD carries 0..8, {', '.join(map(str, FD_LENGTHS[9:]))}")
    if not message.fd and not 0 <= message.length <= 8:
        raise ValueError(f"{where}: {message.length} bytes; classic CAN carries 0..8")
    limit = 0x1FFFFFFF if message.extended else 0x7FF
    if not 0 <= message.can_id <= limit:
        raise ValueError(f"{where}: identifier 0x{message.can_id:X}; allowed 0..0x{limit:X}")
    if len(message.signals) > SIGNALS_MAX:
        raise ValueError(f"{where}: {len(message.signals)} signals; at most {SIGNALS_MAX}")
    if message.e2e not in E2E_PROFILES:
        raise ValueError(f"{where}: E2E profile '{message.e2e}'; allowed {', '.join(E2E_PROFILES)}")
    if not 1 <= message.max_delta <= 255:
        raise ValueError(f"{where}: max_delta {message.max_delta}; allowed 1..255")
    if not 0 <= message.data_id <= 0xFFFF:
        raise ValueError(f"{where}: E2E data id {message.data_id}; allowed 0..65535")
    if message.timeout_ns < 0 or message.cycle_ns < 0:
        raise ValueError(f"{where}: timeout {message.timeout_ns} ns, cycle {message.cycle_ns} ns; not negative")

    profile = E2E_PROFILES[message.e2e]
    fields = {"e2e": profile.kind, "has_counter": 0, "counter_shift": 0, "counter_mask": 0, "counter_max": 0}
    fields |= {"counter_big_endian": 0, "counter_at": 0, "crc_byte": 0}
    used: dict[int, str] = {}
    if message.counter is not None:
        start, length, big = message.counter
        if not 1 <= length <= 8:
            raise ValueError(f"{where}: alive counter of {length} bit; allowed 1..8")
        highest = (1 << length) - 1
        counter_max = message.counter_max if message.counter_max is not None else min(profile.counter_max, highest)
        if not 1 <= counter_max <= highest:
            raise ValueError(f"{where}: counter_max {counter_max}; allowed 1..{highest}")
        at, shift = _place(message, "alive counter", start, length, big)
        _claim(message, used, "alive counter", start, length, big)
        fields |= {"has_counter": 1, "counter_at": at, "counter_shift": shift, "counter_mask": highest}
        fields |= {"counter_max": counter_max, "counter_big_endian": int(big)}
    if profile.kind != E2E_NONE:
        if message.crc_byte is None or not 0 <= message.crc_byte < message.length:
            raise ValueError(f"{where}: E2E profile {message.e2e} needs a checksum byte inside the message")
        _claim(message, used, "checksum", 8 * message.crc_byte, 8, False)
        fields["crc_byte"] = message.crc_byte
    if profile.kind == E2E_CRC_LIST:
        ids = message.data_ids
        if len(ids) != 16 or not all(0 <= d <= 255 for d in ids) or message.counter is None:
            raise ValueError(f"{where}: E2E profile {message.e2e} needs an alive counter and 16 data ids 0..255")
    for signal in message.signals:
        _place(message, f"signal {signal.name}", signal.start, signal.length, signal.big_endian)
        _claim(message, used, f"signal {signal.name}", signal.start, signal.length, signal.big_endian)
    return fields


def signal_fields(message: MessageSpec, signal: SignalSpec) -> dict[str, float]:
    """Values of the codec_signal_t fields that need computing; ValueError on a mistake in the signal."""
    where = f"message {message.name}, signal {signal.name}"
    if signal.scale == 0 or not math.isfinite(signal.scale) or not math.isfinite(signal.offset):
        raise ValueError(f"{where}: scale {signal.scale}, offset {signal.offset}; finite, scale not 0")
    sign = 0
    if signal.is_float:
        if signal.length not in (32, 64):
            raise ValueError(f"{where}: a floating point signal has 32 or 64 bit, not {signal.length}")
        kind, bits_hi = (RAW_FLOAT32, FLOAT32_MAX) if signal.length == 32 else (RAW_FLOAT64, FLOAT64_MAX)
        bits_lo = -bits_hi
    elif signal.signed:
        sign = 1 << (signal.length - 1)
        kind, bits_lo, bits_hi = RAW_SIGNED, -float(sign), _whole_below(signal.length - 1)
    else:
        kind, bits_lo, bits_hi = RAW_UNSIGNED, 0.0, _whole_below(signal.length)
    lo, hi = _raw_limits(signal, where)
    raw_lo, raw_hi = max(lo, bits_lo), min(hi, bits_hi)
    if raw_lo > raw_hi:
        raise ValueError(f"{where}: no value of its bits is inside [{signal.minimum}, {signal.maximum}]")
    # whole numbers that may use all their bits need no check; it would refuse the highest ones beyond 53 bits
    check = signal.is_float or (signal.check and (lo > bits_lo or hi < bits_hi))
    if signal.is_float and not signal.check:
        raw_lo, raw_hi = bits_lo, bits_hi
    at, shift = _place(message, f"signal {signal.name}", signal.start, signal.length, signal.big_endian)
    mask = (1 << signal.length) - 1
    fields = {"kind": kind, "sign": sign, "at": at, "shift": shift, "mask": mask}
    return fields | {"raw_lo": raw_lo, "raw_hi": raw_hi, "check": check}


def _first_bit(start: int, big_endian: bool) -> int:
    """Place of the bit a DBC file names: from the low end of the first byte (Intel), from its high end (Motorola)."""
    return 8 * (start // 8) + 7 - start % 8 if big_endian else start


def _place(message: MessageSpec, what: str, start: int, length: int, big_endian: bool) -> tuple[int, int]:
    """(first byte of its word, shift of the least significant bit in it); ValueError if bits leave the message."""
    position = _first_bit(start, big_endian)
    if not 1 <= length <= 64 or start < 0 or position + length > 8 * message.length:
        size = f"{message.length} bytes"
        raise ValueError(f"message {message.name}: {what} (start bit {start}, {length} bit) does not fit its {size}")
    # up to 8 bytes are one word; in longer messages the word begins with the byte of the first bit
    at = min(position // 8, 56) if message.length > 8 else 0
    position -= 8 * at
    if position + length > 64:
        where = f"{what} (start bit {start}, {length} bit)"
        raise ValueError(f"message {message.name}: {where} lies in 9 bytes; the codec reads 8 at once")
    return at, 64 - position - length if big_endian else position


def _claim(message: MessageSpec, used: dict[int, str], what: str, start: int, length: int, big_endian: bool) -> None:
    """Mark bits as used by `what`; ValueError if something else of the message has them."""
    first = _first_bit(start, big_endian)
    for k in range(first, first + length):
        bit = 8 * (k // 8) + 7 - k % 8 if big_endian else k
        if bit in used:
            raise ValueError(f"message {message.name}: {what} overlaps {used[bit]} at bit {bit}")
        used[bit] = what


def _raw_limits(signal: SignalSpec, where: str) -> tuple[float, float]:
    """Limits of a signal as raw numbers, +-inf where it has none.

    A limit written in decimals is met by the raw number next to it: 1e-6 of a step covers the rounding of the division.
    """
    if signal.minimum is not None and signal.maximum is not None and not signal.minimum <= signal.maximum:
        raise ValueError(f"{where}: minimum {signal.minimum} is not below maximum {signal.maximum}")
    raw = [None if x is None else (x - signal.offset) / signal.scale for x in (signal.minimum, signal.maximum)]
    if signal.scale < 0:
        raw.reverse()
    lo = -math.inf if raw[0] is None else raw[0]
    hi = math.inf if raw[1] is None else raw[1]
    if signal.is_float:
        return lo - 1e-12 * abs(lo) if math.isfinite(lo) else lo, hi + 1e-12 * abs(hi) if math.isfinite(hi) else hi
    lo = float(math.ceil(lo - 1e-6)) if math.isfinite(lo) else lo
    hi = float(math.floor(hi + 1e-6)) if math.isfinite(hi) else hi
    return lo, hi


def _whole_below(bits: int) -> float:
    """The largest whole number < 2**bits that a double holds."""
    return float((1 << bits) - (1 << max(0, bits - 53)))
