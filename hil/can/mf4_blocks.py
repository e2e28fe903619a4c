"""Whether an MF4 log can be read in bounded memory: readers keep a whole group of frames, and blocks are compressed.

A block ##DZ holds data of at most 4 MiB, as ASAM MDF 4.10 demands, and says how many bytes it unpacks to; readers
unpack it without asking. Of blocks that are not packed by deflate (LZ4, Zstandard) it is believed what they say.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from pathlib import Path

#: bytes that a block may unpack to
MOST = 1 << 22
#: bytes that all blocks of a log may unpack to: some 20 million frames
MOST_TOGETHER = 1 << 30
_MARK = b"##DZ"
#: methods: deflate, and deflate of transposed records
_DEFLATE = (0, 1)
#: head of a block: mark, length, links, kind of what is packed, method, parameter, lengths unpacked and packed
_HEAD = struct.Struct("<4s4xQQ2sBxIQQ")


def check_blocks(path: Path) -> None:
    """ValueError where a reader of the log would need much memory."""
    together = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        at = held.find(_MARK)
        while at >= 0 and at + _HEAD.size <= len(held):
            _, _, _, _, method, _, promised, size = _HEAD.unpack_from(held, at)
            if promised > MOST:
                raise ValueError(f"a block unpacks to {promised} bytes; at most {MOST} are read")
            together += promised
            if method in _DEFLATE:
                _check_deflated(held[at + _HEAD.size : at + _HEAD.size + size])
            if together > MOST_TOGETHER:
                raise ValueError(f"its blocks unpack to more than {MOST_TOGETHER} bytes; no more are read")
            at = held.find(_MARK, at + 4)


def _check_deflated(block: bytes) -> None:
    """ValueError for a block that unpacks to more than is allowed."""
    packed = zlib.decompressobj()
    try:
        packed.decompress(block, MOST)
    except zlib.error:
        # its reader says so
        return
    if packed.unconsumed_tail:
        raise ValueError(f"a block of {len(block)} bytes unpacks to more than {MOST}; no more are read")
