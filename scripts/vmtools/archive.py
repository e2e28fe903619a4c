"""Archives of the kind the kernel unpacks into its first file system (cpio, format "newc")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DIRECTORY, FILE, LINK, DEVICE = 0o040000, 0o100000, 0o120000, 0o020000


@dataclass(frozen=True)
class Entry:
    """One file. `path` is relative to the root; `mode` holds kind and rights."""

    path: str
    mode: int
    data: bytes = b""
    #: [s] since 1970; Python takes a compiled module only if this is the time of its source
    mtime: int = 0
    #: major and minor number of a device
    device: tuple[int, int] = (0, 0)


def cpio(entries: Iterable[Entry]) -> bytes:
    """The archive; several of them one after the other are one archive to the kernel."""
    out = bytearray()

    def put(number: int, e: Entry) -> None:
        name = e.path.encode() + b"\0"
        fields = (number, e.mode, 0, 0, 1, e.mtime, len(e.data), 0, 0, *e.device, len(name), 0)
        out.extend(b"070701" + b"".join(b"%08X" % f for f in fields) + name)
        out.extend(bytes(-len(out) % 4))
        out.extend(e.data)
        out.extend(bytes(-len(out) % 4))

    number = 0
    for number, entry in enumerate(entries, 1):
        put(number, entry)
    put(number + 1, Entry("TRAILER!!!", 0))
    out.extend(bytes(-len(out) % 512))
    return bytes(out)
