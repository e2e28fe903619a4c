"""Which checksum rule fits recorded frames: every rule of the codec at every place, and rules with an unknown constant.

The codec of the tick itself says whether a checksum is right (codec.pyx), so a rule that fits here is one a rig can
use. Rules whose data ids are not public fit when the ids are found: CRC-8 0x1D, CRC-8 0x2F, XOR and sum with a constant
of the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.can.bits import Split, all_bits, width
from torqueloop.cython_kernels.can.codec import CRC, LENGTH, CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.protection import E2E_PROFILES, NONE
from torqueloop.hil.can.frame import EXTENDED, FD_FLAG

#: different frames that a rule is tried on at least
FRAMES_MIN = 6
#: bits of checksum, all different frames together, that a rule must fit: by chance it does so once in 2**48
BITS_MIN = 48
#: frames a rule is tried on before it is tried on all
SAMPLE = 24
#: share of right checksums below which a rule is not reported
SHARE_MIN = 0.5
#: share of the different frames that may have the same checksum, where none is declared
COMMONEST_MAX = 0.6
#: rules with a start value or final XOR of the message: name -> (what it is called, how it enters)
FREE = {"BMW_CRC8": "init", "CRC8_H2F": "xorout", "VW_MLB": "init", "SUM": "init"}


@dataclass(frozen=True)
class Fit:
    """A rule at a place of a message."""

    #: name of the rule in E2E_PROFILES, and its constant where that is of the message: "init 0x4C"
    rule: str
    constant: str
    place: Split
    #: frames with a right checksum, of so many
    right: int
    frames: int

    @property
    def share(self) -> float:
        """Right checksums of all."""
        return self.right / self.frames if self.frames else 0.0

    @property
    def text(self) -> str:
        """As "byte 0 fits BMW_SUM, 7786 of 7786"."""
        rule = f"{self.rule} ({self.constant})" if self.constant else self.rule
        where = place_text(self.place)
        return f"{where} fit{'s' * where.startswith(('byte ', 'bit '))} {rule}, {self.right} of {self.frames}"


def place_text(place: Split) -> str:
    """A field as people say it: "byte 0", "bits 60 to 63"."""
    found = sorted(all_bits(place))
    if len(found) % 8 == 0 and found == list(range(found[0], found[0] + len(found))) and found[0] % 8 == 0:
        first, n = found[0] // 8, len(found) // 8
        return f"byte {first}" if n == 1 else f"bytes {first} to {first + n - 1}"
    if found != list(range(found[0], found[0] + len(found))):
        return "bits " + ", ".join(map(str, found))
    return f"bits {found[0]} to {found[-1]}" if len(found) > 1 else f"bit {found[0]}"


def bare(can_id: int, length: int, name: str = "heard") -> MessageSpec:
    """A message that no database declares."""
    return MessageSpec(name, can_id & 0x1FFFFFFF, bool(can_id & EXTENDED), length, True, (), fd=length > 8)


def right(spec: MessageSpec, data: Iterable[bytes]) -> int:
    """Frames whose checksum is right by the message's rule. ValueError for a rule that the message cannot have."""
    tables = CodecTables([replace(spec, signals=(), pages=(), receive=True)], 0)
    state, table = RxState(tables), np.zeros(0)
    can_id, flags = spec.can_id | EXTENDED * spec.extended, FD_FLAG * spec.fd
    # length and checksum are judged before anything else (docs/can_protection.md)
    return sum(state.decode(table, can_id, frame, 0, flags) not in (CRC, LENGTH) for frame in data)


def fits(spec: MessageSpec, data: Sequence[bytes]) -> list[Fit]:
    """Rules that fit these frames of one length, each once, the best first. spec: the message, with its counter and the
    checksum it declares, if any."""
    different = list(dict.fromkeys(data))
    if len(different) < FRAMES_MIN:
        return []
    sample = different[:: max(1, len(different) // SAMPLE)][:SAMPLE]
    found: list[Fit] = []
    array = np.frombuffer(b"".join(different), np.uint8).reshape(len(different), -1)
    places = [place for place in _places(spec, array) if width(place) * len(different) >= BITS_MIN]
    for place in places:
        for rule, profile in E2E_PROFILES.items():
            candidate = _with(spec, rule, place)
            if candidate is None:
                continue
            # makers leave the identifier out of the sum of some messages: BMW of 0x194
            for init, constant in ((candidate.e2e_init, ""), (0, "init 0x00"))[: 2 if profile.start else 1]:
                tried = replace(candidate, e2e_init=init)
                if right(tried, sample) >= SHARE_MIN * len(sample):
                    found.append(Fit(rule, constant, place, right(tried, data), len(data)))
    if not found:
        found = [fit for place in places for rule in FREE if (fit := _free(spec, rule, place, sample, data))]
    bits = np.unpackbits(array, axis=1, bitorder="little")
    different_at = {f.place: len(np.unique(bits[:, sorted(all_bits(f.place))], axis=0)) for f in found}
    found.sort(key=lambda f: (-f.right, f.place != spec.crc_bits, f.rule != spec.e2e, -different_at[f.place]))
    # an XOR of all bytes fits at every position: the one with the most values is reported
    first = {(f.rule, f.constant): f for f in reversed(found) if f.share >= SHARE_MIN}
    return [f for f in found if f is first.get((f.rule, f.constant))]


def _places(spec: MessageSpec, data: np.ndarray) -> list[Split]:
    """Where the checksum may stand: the declared place, then bytes, then half bytes that change."""
    places: list[Split] = [] if spec.crc_bits is None else [spec.crc_bits]
    taken = all_bits(spec.counter)
    for byte in range(data.shape[1]):
        if _changes(data[:, byte]) and not taken & set(range(8 * byte, 8 * byte + 8)):
            places.append((8 * byte, 8, False))
    for nibble in range(2 * data.shape[1]):
        if _changes((data[:, nibble // 2] >> 4 * (nibble % 2)) & 15):
            places.append((4 * nibble, 4, False))
    if data.shape[1] >= 16:
        places.append((0, 16, False))
    return list(dict.fromkeys(places))


def _changes(values: np.ndarray) -> bool:
    """A checksum changes with the frame: none of its values is in most of the different frames."""
    return bool(np.unique(values, return_counts=True)[1].max() <= COMMONEST_MAX * len(values))


def _with(spec: MessageSpec, rule: str, place: Split) -> MessageSpec | None:
    """The message with a rule; None where it cannot have it."""
    profile = E2E_PROFILES[rule]
    if profile.kind == NONE or profile.header is not None or width(place) not in profile.widths:
        return None
    if (profile.id_bits or profile.suffix == "list") and spec.e2e != rule:
        return None
    own = spec.e2e == rule
    needs_counter = profile.without_counter or profile.suffix == "list" or profile.prefix == "alternating"
    counter = spec.counter if needs_counter or own else None
    if all_bits(counter) & all_bits(place):
        return None
    made = replace(spec, e2e=rule, crc_bits=place, crc_byte=None, counter=counter, signals=(),
                   e2e_init=spec.e2e_init if own else None, e2e_xorout=spec.e2e_xorout if own else None,
                   counter_max=None, counter_min=0, counter_skips=())  # fmt: skip
    try:
        CodecTables([made], 0)
    except ValueError:
        return None
    return made


def _free(spec: MessageSpec, rule: str, place: Split, sample: Sequence[bytes], data: Sequence[bytes]) -> Fit | None:
    """A rule with a constant of the message, which is that of at least half of the sample."""
    if width(place) not in E2E_PROFILES[rule].widths:
        return None
    plain = replace(bare(spec.can_id, spec.length), extended=spec.extended, e2e=rule, crc_bits=place, e2e_init=0,
                    e2e_xorout=0)  # fmt: skip
    # a checksum of 8 bits stands in one byte
    at = next(iter(all_bits(place))) // 8
    made = _checksums(plain, at, sample)
    if made is None:
        return None
    off = [(frame[at] - sum_) & 255 if rule == "SUM" else frame[at] ^ sum_
           for frame, sum_ in zip(sample, made, strict=True)]  # fmt: skip
    constant = max(set(off), key=off.count)
    if off.count(constant) < SHARE_MIN * len(off):
        return None
    candidate, value = replace(plain, e2e_xorout=constant), constant
    if rule == "BMW_CRC8":
        # a start value says the same as a final XOR of frames of one length; makers publish the start value
        good = next(frame for frame, x in zip(sample, off, strict=True) if x == constant)
        value = next((k for k in range(256) if right(replace(plain, e2e_init=k), [good])), constant)
        candidate = replace(plain, e2e_init=value)
    elif rule in ("SUM", "VW_MLB"):
        candidate = replace(plain, e2e_init=constant)
    return Fit(rule, f"{FREE[rule]} 0x{value:02X}", place, right(candidate, data), len(data))


def _checksums(spec: MessageSpec, at: int, data: Iterable[bytes]) -> list[int] | None:
    """The checksum byte of a rule for the other bytes of frames; None where the message cannot have the rule."""
    others = [k for k in range(spec.length) if k != at]
    signals = tuple(SignalSpec(f"b{k}", 8 * k, 8, slot=n) for n, k in enumerate(others))
    try:
        state = TxState(CodecTables([replace(spec, receive=False, signals=signals)], len(signals)))
    except ValueError:
        return None
    return [state.encode(np.array([float(frame[k]) for k in others]), 0)[2][at] for frame in data]
