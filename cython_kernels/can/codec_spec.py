"""What the CAN codec is built from: messages, signals, multiplexing, and every check of them.

Plain Python, run once before the tick. `message_fields` and `signal_fields` give the numbers that codec.pyx stores in
its C tables; a mistake is a ValueError that names message and signal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torqueloop.cython_kernels.can.bits import Place, Split, all_bits, bits, parts, place, places, width
from torqueloop.cython_kernels.can.protection import E2E_PROFILES, NONE, Protection, header_fields, protection_of

#: Signals of one message: the codec keeps them on the stack until the frame is accepted. 64 bytes hold no more.
SIGNALS_MAX = 512
#: Longest time of a message: eleven days; as nanoseconds it fits many times over. [ns]
TIME_MAX_NS = 10**15
#: Numbers of data bytes that a CAN FD frame can have.
FD_LENGTHS = (*range(9), 12, 16, 20, 24, 32, 48, 64)

FLOAT32_MAX = (2.0 - 2.0**-23) * 2.0**127
FLOAT64_MAX = (2.0 - 2.0**-52) * 2.0**1023

# kinds of raw values, as RAW_* in codec.pxd
RAW_UNSIGNED, RAW_SIGNED, RAW_FLOAT32, RAW_FLOAT64 = range(4)
#: raw numbers of a selector that a signal belongs to, both ends included
Ranges = tuple[tuple[int, int], ...]
#: values that an alive counter leaves out, at most
SKIPPED_MAX = 64


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
    #: multiplexed: (selector, its raw numbers), all of which must hold for the signal to be in the frame
    when: tuple[tuple[str, Ranges], ...] = ()
    #: raw numbers that say "invalid", "error", "not available": the signal keeps its value, the frame is taken
    invalid: tuple[int, ...] = ()


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
    #: name of the profile in protection.E2E_PROFILES
    e2e: str = "NONE"
    data_id: int = 0
    #: 16 data ids for AUTOSAR_P02
    data_ids: tuple[int, ...] = ()
    #: first byte of the header of AUTOSAR profiles 4 to 7
    e2e_offset: int = 0
    #: start value and final XOR instead of those of the profile
    e2e_init: int | None = None
    e2e_xorout: int | None = None
    #: index of the checksum byte, or the bits of the checksum; profiles with a header have theirs
    crc_byte: int | None = None
    crc_bits: Split | None = None
    #: bits of the alive counter
    counter: Split | None = None
    #: highest value of the counter; None: that of the profile
    counter_max: int | None = None
    #: lowest value, which comes after the highest
    counter_min: int = 0
    #: values between that are left out
    counter_skips: tuple[int, ...] = ()
    #: largest accepted step of the counter. 2: one frame may be lost without losing the next one as well
    max_delta: int = 2
    #: sent multiplexed messages: what the selectors are set to, frame by frame; empty: as the signal table says
    pages: tuple[tuple[tuple[str, int], ...], ...] = ()
    timeout_ns: int = 0
    cycle_ns: int = 0
    #: CAN FD; a frame of the other format is refused
    fd: bool = False
    #: CAN FD: send the data at the second bit rate
    brs: bool = True
    #: nodes that send it, by the database
    senders: tuple[str, ...] = ()
    #: when it is sent, by the database (hil/can/sending.py)
    send_kind: str = "cyclic"
    start_ns: int = 0
    gap_ns: int = 0
    repeats: int = 0

    @property
    def has_checksum(self) -> bool:
        """Its rule has a checksum."""
        return E2E_PROFILES[self.e2e].kind != NONE

    @property
    def has_counter(self) -> bool:
        """It has an alive counter, of its own or in the header of its profile."""
        return self.counter is not None or E2E_PROFILES[self.e2e].header is not None


@dataclass(frozen=True)
class CounterFields:
    """An alive counter as the codec has it; no places: there is none."""

    places: tuple[Place, ...] = ()
    low: int = 0
    high: int = 0
    skips: tuple[int, ...] = ()


@dataclass(frozen=True)
class MessageFields:
    """What needs computing for the codec's row of a message."""

    counter: CounterFields
    protection: Protection | None


def message_fields(message: MessageSpec) -> MessageFields:
    """Counter and protection of a message; ValueError on a mistake in message or signals."""
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
    times = (message.timeout_ns, message.cycle_ns, message.start_ns, message.gap_ns)
    if not all(0 <= t <= TIME_MAX_NS for t in times):
        named = "timeout {} ns, cycle {} ns, first sending {} ns, gap {} ns".format(*times)
        raise ValueError(f"{where}: {named}; allowed 0..{TIME_MAX_NS}")
    checksum: Split | None
    counter: Split | None
    checksum, counter, header = header_fields(message)
    if checksum is None:
        counter = message.counter
        checksum = message.crc_bits
        if message.crc_byte is not None and message.crc_bits is None:
            checksum = (8 * message.crc_byte, 8, False)
    if E2E_PROFILES[message.e2e].kind == NONE:
        checksum = None
    elif message.crc_byte is not None and not 0 <= message.crc_byte < message.length:
        raise ValueError(f"{where}: E2E profile {message.e2e} needs a checksum byte inside the message")
    row = _counter_fields(message, counter)
    protection = protection_of(message, checksum, counter)
    used: dict[int, list[tuple[str, SignalSpec | None]]] = {}
    if header:
        _claim(message, used, "the E2E header", header)
    else:
        if counter is not None:
            _claim(message, used, "alive counter", _apart_bits(message, counter))
        if checksum is not None:
            _claim(message, used, "checksum", _apart_bits(message, checksum))
        for byte, mask, _ in protection.fixed if protection else ():
            _claim(message, used, "the data id", {8 * byte + k for k in range(8) if mask >> k & 1})
    for signal in message.signals:
        field = (signal.start, signal.length, signal.big_endian)
        place(f"{where}: signal {signal.name}", message.length, field)
        _claim(message, used, f"signal {signal.name}", set(bits(field)), signal)
    _check_selectors(message)
    return MessageFields(row, protection)


def _apart_bits(message: MessageSpec, field: Split) -> set[int]:
    """Bits of a field whose parts do not overlap."""
    found = all_bits(field)
    if len(found) != width(field):
        raise ValueError(f"message {message.name}: the parts {parts(field)} of a field overlap")
    return found


def counter_range(message: MessageSpec, counter: Split) -> tuple[int, int]:
    """(lowest, highest) value of an alive counter in these bits."""
    if message.counter_max is not None:
        return message.counter_min, message.counter_max
    full, usual = (1 << width(counter)) - 1, E2E_PROFILES[message.e2e].counter_max
    return message.counter_min, full if usual is None else min(usual, full)


def _counter_fields(message: MessageSpec, counter: Split | None) -> CounterFields:
    """Place and run of the alive counter."""
    where = f"message {message.name}"
    if counter is None:
        return CounterFields()
    if not 1 <= width(counter) <= 32:
        raise ValueError(f"{where}: alive counter of {width(counter)} bit; allowed 1..32")
    spots = places(f"{where}: alive counter", message.length, counter)
    highest = (1 << width(counter)) - 1
    low, high = counter_range(message, counter)
    if not 1 <= high <= highest:
        raise ValueError(f"{where}: counter_max {high}; allowed 1..{highest}")
    if not 0 <= low < high:
        raise ValueError(f"{where}: counter_min {low}; allowed 0..{high - 1}")
    skips = tuple(sorted(set(message.counter_skips)))
    if len(skips) > SKIPPED_MAX or any(not low < x < high for x in skips):
        allowed = f"at most {SKIPPED_MAX} values between {low} and {high}"
        raise ValueError(f"{where}: the counter skips {', '.join(map(str, skips))}; allowed {allowed}")
    if high - low - len(skips) < 1:
        raise ValueError(f"{where}: the counter skips all values but one")
    return CounterFields(spots, low, high, skips)


def _check_selectors(message: MessageSpec) -> None:
    """Selectors are whole numbers of the message, in the frame wherever a signal asks for them."""
    by_name = {s.name: s for s in message.signals}
    for signal in message.signals:
        where = f"message {message.name}, signal {signal.name}"
        earlier: list[str] = []
        for selector, ranges in signal.when:
            if selector not in by_name:
                raise ValueError(f"{where}: it is multiplexed by '{selector}', which is no signal of the message")
            other = by_name[selector]
            if other.is_float or other.signed:
                raise ValueError(f"{where}: its multiplexer {selector} must be an unsigned whole number")
            if not ranges or any(not 0 <= lo <= hi < 1 << other.length for lo, hi in ranges):
                raise ValueError(f"{where}: multiplexer values {ranges}; allowed 0..{(1 << other.length) - 1}")
            if [name for name, _ in other.when] != earlier:
                raise ValueError(f"{where}: its multiplexer {selector} is itself multiplexed by something else")
            earlier.append(selector)
    for page in message.pages:
        for selector, raw in page:
            if selector not in by_name or not 0 <= raw < 1 << by_name[selector].length:
                raise ValueError(f"message {message.name}: page with {selector} = {raw}, which it cannot have")


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
    largest = max(abs(raw_lo), abs(raw_hi)) * abs(signal.scale) + abs(signal.offset)
    if not signal.is_float and not math.isfinite(largest):
        raise ValueError(f"{where}: scale {signal.scale} makes numbers beyond what a double holds")
    if signal.is_float:
        # a value that a double cannot hold is out of range
        most = (FLOAT64_MAX - abs(signal.offset)) / abs(signal.scale) * (1.0 - 1e-15)
        raw_lo, raw_hi = max(raw_lo, -most), min(raw_hi, most)
    if any(not 0 <= x < 1 << signal.length for x in signal.invalid) or (signal.invalid and signal.is_float):
        raise ValueError(f"{where}: invalid values {signal.invalid}; allowed: raw numbers of its {signal.length} bit")
    spot = place(f"{where}", message.length, (signal.start, signal.length, signal.big_endian))
    return {"kind": kind, "sign": sign, "raw_lo": raw_lo, "raw_hi": raw_hi, "check": check, **spot.fields}


def _claim(
    message: MessageSpec,
    used: dict[int, list[tuple[str, SignalSpec | None]]],
    what: str,
    mine: set[int],
    signal: SignalSpec | None = None,
) -> None:
    """Mark bits as used by `what`; ValueError if something else has them that may be in the same frame."""
    for bit in sorted(mine):
        for other, theirs in used.setdefault(bit, []):
            if signal is None or theirs is None or not _apart(signal, theirs):
                raise ValueError(f"message {message.name}: {what} overlaps {other} at bit {bit}")
        used[bit].append((what, signal))


def _apart(a: SignalSpec, b: SignalSpec) -> bool:
    """Two multiplexed signals are never in one frame: some selector cannot have both their values."""
    other = dict(b.when)
    return any(
        selector in other and all(hi < lo2 or hi2 < lo for lo, hi in ranges for lo2, hi2 in other[selector])
        for selector, ranges in a.when
    )


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
