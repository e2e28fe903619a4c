"""Where the bits of a signal, counter or checksum stand in a CAN frame. Plain Python, run once before the tick.

The codec reads 8 data bytes as one word of the signal's byte order. Messages of up to 8 bytes have one word, at = 0; in
longer ones a word begins with the byte of the first bit (56 at most). A field of 58 to 64 bits that begins within a
byte may touch a ninth byte: `nine`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: start bit as in a DBC file, length, big endian (Motorola)
Field = tuple[int, int, bool]
#: a field, or the parts of one that is split, its lowest bits first
Split = Field | tuple[Field, ...]
#: parts of a split field, at most (FIELD_PARTS_MAX in word.pxd)
PARTS_MAX = 4


@dataclass(frozen=True)
class Place:
    """A field as the codec finds it."""

    #: first byte of its 64-bit word
    at: int
    #: of the least significant bit in the word; with `nine` and big endian: bits in the ninth byte
    shift: int
    big_endian: bool
    mask: int
    #: touches a ninth byte
    nine: bool

    @property
    def fields(self) -> dict[str, int]:
        """As the C structs call them."""
        return {"at": self.at, "shift": self.shift, "big_endian": int(self.big_endian), "mask": self.mask,
                "nine": int(self.nine)}  # fmt: skip


def first_bit(start: int, big_endian: bool) -> int:
    """Place of the bit a DBC file names: from the low end of the first byte (Intel), from its high end (Motorola)."""
    return 8 * (start // 8) + 7 - start % 8 if big_endian else start


def bits(field: Field) -> Iterator[int]:
    """Numbers of the bits of a field, 8 * byte + bit from the low end."""
    start, length, big = field
    first = first_bit(start, big)
    for k in range(first, first + length):
        yield 8 * (k // 8) + 7 - k % 8 if big else k


def parts(field: Split | None) -> tuple[Field, ...]:
    """The parts of a field; none of None."""
    if field is None:
        return ()
    return field if isinstance(field[0], tuple) else (field,)


def places(where: str, n_bytes: int, field: Split) -> tuple[Place, ...]:
    """The place of each part; ValueError if there are too many, or bits leave the message or lie in 9 bytes."""
    found = tuple(place(where, n_bytes, part) for part in parts(field))
    if len(found) > PARTS_MAX:
        raise ValueError(f"{where} has {len(found)} parts; allowed 1..{PARTS_MAX}")
    for part, spot in zip(parts(field), found, strict=True):
        if spot.nine:
            raise ValueError(f"{where} (start bit {part[0]}) lies in 9 bytes")
    return found


def width(field: Split) -> int:
    """Bits of a field, all parts together."""
    return sum(length for _, length, _ in parts(field))


def all_bits(field: Split | None) -> set[int]:
    """Numbers of the bits of all parts of a field."""
    return {bit for part in parts(field) for bit in bits(part)}


def place(where: str, n_bytes: int, field: Field) -> Place:
    """The place of a field in a message of so many bytes; ValueError if bits leave it."""
    start, length, big = field
    position = first_bit(start, big)
    if not 1 <= length <= 64 or start < 0 or position + length > 8 * n_bytes:
        raise ValueError(f"{where} (start bit {start}, {length} bit) does not fit its {n_bytes} bytes")
    at = min(position // 8, 56) if n_bytes > 8 else 0
    position -= 8 * at
    over = position + length - 64
    mask = (1 << length) - 1
    if over > 0:
        return Place(at, over if big else position, big, mask, True)
    return Place(at, 64 - position - length if big else position, big, mask, False)
