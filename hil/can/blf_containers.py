"""Whether a BLF log can be read in little memory: its containers are compressed, and a small one may hold gigabytes.

A container holds objects, and an object may go on in the next one; readers keep both in memory. Vector's programs and
python-can write containers of 128 kB; an object of a CAN bus has less than 1 kB.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: bytes that a container, or an object, may have
MOST = 1 << 22
#: head of an object: signature, length of the head, version, length, kind
_OBJECT = struct.Struct("<4sHHLL")
#: what a container begins with: method, length without compression
_CONTAINER = struct.Struct("<H6xL4x")
_KIND_CONTAINER, _ZLIB = 10, 2


def containers(file: BinaryIO) -> Iterator[bytes]:
    """What the containers of a log hold; ValueError for one of more than MOST bytes. Ends at what is no object."""
    head = file.read(8)
    if head[:4] != b"LOGG":
        return
    file.seek(struct.unpack("<L", head[4:])[0])
    while len(head := file.read(_OBJECT.size)) == _OBJECT.size:
        signature, _, _, size, kind = _OBJECT.unpack(head)
        if signature != b"LOBJ" or size < _OBJECT.size + _CONTAINER.size:
            return
        if size > MOST:
            raise ValueError(f"an object of {size} bytes; at most {MOST} are read")
        held = file.read(size - _OBJECT.size)
        file.read(size % 4)
        if kind == _KIND_CONTAINER and len(held) >= _CONTAINER.size:
            method, _ = _CONTAINER.unpack_from(held)
            unpacked = held[_CONTAINER.size :]
            if method == _ZLIB:
                packed = zlib.decompressobj()
                unpacked = packed.decompress(unpacked, MOST)
                if packed.unconsumed_tail:
                    raise ValueError(f"a container of {len(held)} bytes holds more than {MOST}; no more are read")
            yield unpacked


def check_containers(path: Path) -> None:
    """ValueError where a reader of the log would need much memory."""
    with path.open("rb") as file:
        rest = b""
        for held in containers(file):
            rest, at = rest + held, 0
            while (found := rest.find(b"LOBJ", at, at + 8)) >= 0 and len(rest) >= found + _OBJECT.size:
                size = _OBJECT.unpack_from(rest, found)[3]
                if not _OBJECT.size <= size <= MOST:
                    raise ValueError(f"an object of {size} bytes; allowed: {_OBJECT.size} to {MOST}")
                if found + size > len(rest):
                    break
                at = found + size
            if found < 0 and len(rest) >= at + 8:
                return  # no log: its reader says so
            rest = rest[at:]
