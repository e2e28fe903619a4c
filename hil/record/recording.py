"""Crash-safe record files: the format, its writer and its reader.

A stream is a folder of numbered files `000001.tlc`, `000002.tlc` ... Each file stands alone:

    file   := "TLC1" u32 header_bytes u32 crc32(header) header(JSON, UTF-8)  chunk*
    chunk  := "TLCK" u32 n_bytes u32 crc32(seq, n_bytes, payload) u32 seq  payload

All numbers are little endian. A chunk holds whole records only and is written by one write(), so whatever kills the
process, every chunk before the last one is intact, and the last one is recognised as torn by its length or checksum.
`seq` counts chunks over all files of the stream: a chunk lost in the middle is seen as a gap in `seq`. An empty chunk
is the end mark of a recording that was closed properly.

The reader never raises for a damaged body: it returns the intact chunks and says what is missing (`Damage`). It raises
RecordingError only where nothing can be read at all (no file, header unreadable).
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.reading import open_regular

FILE_MAGIC = b"TLC1"
CHUNK_MAGIC = b"TLCK"
_FILE_HEAD = struct.Struct("<4sII")
_CHUNK_HEAD = struct.Struct("<4sIII")
_SEQ_LENGTH = struct.Struct("<II")

#: A chunk header that claims more than this is damage, not data; also the largest chunk the writer makes. [bytes]
CHUNK_BYTES_MAX = 64 << 20
#: A new file is begun after this size, so that one bad sector or one careless editor costs one file. [bytes]
FILE_BYTES = 256 << 20
#: longest file that is read: one that the writer makes, and its last chunk [bytes]
FILE_READ_MAX = FILE_BYTES + CHUNK_BYTES_MAX + (1 << 20)
SUFFIX = ".tlc"
#: a file is searched in steps of this [bytes]
_BLOCK = 1 << 20


class RecordingError(TorqueloopError):
    """A recording cannot be read at all, or is not what the caller needs."""


def chunk_bytes(seq: int, payload: bytes) -> bytes:
    """One chunk as it stands in the file. The checksum covers its sequence number and length as well."""
    crc = zlib.crc32(payload, zlib.crc32(_SEQ_LENGTH.pack(seq, len(payload))))
    return _CHUNK_HEAD.pack(CHUNK_MAGIC, len(payload), crc, seq) + payload


def file_head_bytes(header: dict[str, Any]) -> bytes:
    """The head of a file: magic, length and checksum of the header, the header as JSON."""
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return _FILE_HEAD.pack(FILE_MAGIC, len(text), zlib.crc32(text)) + text


class ChunkWriter:
    """Appends chunks to the numbered files of one stream folder. real-time: no (called by the recorder's thread).

    `write` raises OSError when the disk refuses; the file is then cut back to its last whole chunk.
    """

    def __init__(self, folder: Path | str, header: dict[str, Any], *, file_bytes: int = FILE_BYTES) -> None:
        self.folder: Path = Path(folder)
        self.header: dict[str, Any] = dict(header)
        self.file_bytes = file_bytes
        #: sequence number of the next chunk
        self.seq: int = 0
        #: bytes written over all files, heads included
        self.bytes_written: int = 0
        self._number = 0
        self._fd = -1
        self._size = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.glob("*" + SUFFIX)):
            raise RecordingError(f"{self.folder}: there is already a recording in this folder; nothing is overwritten")
        self._open_next()

    def _open_next(self) -> None:
        self._number += 1
        self._path = self.folder / f"{self._number:06d}{SUFFIX}"
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._size = 0
        self._append(file_head_bytes({**self.header, "file": self._number, "first_seq": self.seq}))

    def _append(self, data: bytes) -> None:
        """Write all of `data` or leave the file as it was."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            try:
                os.ftruncate(self._fd, self._size)
            except OSError:
                pass  # the reader recognises the torn chunk
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._size += len(data)
        self.bytes_written += len(data)

    def write(self, payload: bytes) -> None:
        """Append one chunk of whole records. Longer payloads than CHUNK_BYTES_MAX are an error of the caller."""
        if self._fd < 0:
            raise RecordingError(f"{self.folder}: the recording is closed")
        if not payload:
            return
        if len(payload) > CHUNK_BYTES_MAX:
            raise ValueError(f"chunk of {len(payload)} bytes: at most {CHUNK_BYTES_MAX}")
        if self._size + len(payload) > self.file_bytes and self._size > 0 and self.seq > 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1
            self._open_next()
        self._append(chunk_bytes(self.seq, payload))
        self.seq += 1

    def sync(self) -> None:
        """Push everything written so far through the operating system to the disk."""
        if self._fd >= 0:
            os.fsync(self._fd)

    def close(self) -> None:
        """Write the end mark (an empty chunk), sync and close; may be called twice.

        The descriptor is released even where the disk refuses.
        """
        if self._fd >= 0:
            try:
                self._append(chunk_bytes(self.seq, b""))
                os.fsync(self._fd)
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Release the file without end mark and without sync (after an error)."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def remove(self) -> None:
        """Take the files of this writer away again (nothing was recorded)."""
        self.abandon()
        for number in range(1, self._number + 1):
            (self.folder / f"{number:06d}{SUFFIX}").unlink(missing_ok=True)
        self.folder.rmdir()


@dataclass
class Damage:
    """A part of a recording that could not be read."""

    #: file name inside the stream folder
    file: str
    #: byte at which the damage begins
    offset: int
    #: bytes passed over until the next intact chunk or the end of the file
    n_bytes: int
    #: what is wrong there
    cause: str
    #: True: at the very end of the recording (what a killed writer leaves); False: intact data follow
    at_end: bool = True
    #: chunks missing here, from the sequence numbers of the chunks around it; 0 where unknown (at the end)
    chunks_missing: int = 0

    def __str__(self) -> str:
        what = f"{self.file} at byte {self.offset}: {self.cause}, {self.n_bytes} bytes not readable"
        return what + (" (end of the recording)" if self.at_end else f", {self.chunks_missing} chunks missing")


@dataclass
class StreamData:
    """Everything readable of one stream."""

    #: the JSON header of the first file
    header: dict[str, Any]
    #: payloads of the intact chunks, in order
    chunks: list[bytes] = field(default_factory=list)
    #: sequence number of each chunk
    seqs: list[int] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    #: the writer closed the recording properly: its end mark is there
    closed: bool = False

    @property
    def intact(self) -> bool:
        """Nothing is missing: closed properly and no damage."""
        return self.closed and not self.damage

    @property
    def holes(self) -> list[Damage]:
        """Damage with intact data behind it; empty for a recording that was only cut off."""
        return [d for d in self.damage if not d.at_end]

    def payload(self) -> bytes:
        """All chunks in one piece."""
        return b"".join(self.chunks)


@dataclass
class Located:
    """An intact chunk and where it stands."""

    file: Path
    #: byte of the file at which its payload begins
    offset: int
    seq: int
    payload: bytes


class StreamReader:
    """The chunks of a stream folder, one after the other: memory for one chunk, however long the recording is.

    Iterate as often as wanted; `damage` and `closed` are those of the last time it came to the end.
    """

    def __init__(self, folder: Path | str) -> None:
        """RecordingError where there is no file."""
        self.folder: Path = Path(folder)
        self.files: list[Path] = sorted(self.folder.glob("*" + SUFFIX)) if os.path.isdir(self.folder) else []
        if not self.files:
            raise RecordingError(f"{self.folder}: no recording here (no *{SUFFIX} file)")
        #: the JSON header of the first file that has one; known once the first chunk is asked for
        self.header: dict[str, Any] | None = None
        self.damage: list[Damage] = []
        #: the writer closed the recording properly: its end mark is there
        self.closed: bool = False
        self._expected = 0

    def __iter__(self) -> Iterator[Located]:
        self.header, self.damage, self.closed, self._expected = None, [], False, 0
        for path in self.files:
            with ExitStack() as stack:
                data: FileBytes | bytes = b""
                try:
                    data = stack.enter_context(FileBytes(path))
                except ConfigError as error:
                    self.damage.append(Damage(path.name, 0, 0, str(error)))
                yield from self._of_file(path, data)
        if self.header is None:
            raise RecordingError(f"{self.files[0]}: {self.damage[0].cause}; nothing in {self.folder} can be read")

    def _of_file(self, path: Path, data: FileBytes | bytes) -> Iterator[Located]:
        damage = self.damage
        header, start, cause = head_of(data)
        if header is None:
            # Only the first header is needed to understand the records; behind a broken one, look for chunks.
            following = data.find(CHUNK_MAGIC)
            start = len(data) if following < 0 or self.header is None else following
            damage.append(Damage(path.name, 0, start, cause))
        elif self.header is None:
            self.header = header
        if self.header is None:
            return
        for chunk in scan(data, start):
            if isinstance(chunk, Bad):
                last = damage[-1] if damage else None
                if last and last.at_end and last.file == path.name and last.offset + last.n_bytes == chunk.offset:
                    last.n_bytes += chunk.n_bytes
                else:
                    damage.append(Damage(path.name, chunk.offset, chunk.n_bytes, chunk.cause))
                continue
            if chunk.seq < self._expected:
                # a copy of what is there already: a file was doubled, or they were exchanged
                damage.append(Damage(path.name, chunk.offset, len(chunk.payload), "chunk out of order", False))
                continue
            missing = chunk.seq - self._expected
            if missing and not (damage and damage[-1].at_end):
                damage.append(Damage(path.name, chunk.offset, 0, "chunks missing"))
            for d in damage:
                if d.at_end:
                    d.at_end, d.chunks_missing = False, missing
            self._expected = chunk.seq + 1
            # An empty chunk is the end mark.
            self.closed = not chunk.payload
            if chunk.payload:
                yield Located(path, chunk.offset + _CHUNK_HEAD.size, chunk.seq, chunk.payload)


def read_stream(folder: Path | str) -> StreamData:
    """Read all files of a stream folder. Damaged parts are left out and listed in `damage`."""
    reader = StreamReader(folder)
    found = list(reader)
    assert reader.header is not None, "the reader says so"
    chunks, seqs = [c.payload for c in found], [c.seq for c in found]
    return StreamData(reader.header, chunks, seqs, reader.damage, reader.closed)


class FileBytes:
    """A file as if it were `bytes`, of which only what is asked for is read: no map of it, which a file that is cut off
    meanwhile would turn into a fault of the process."""

    def __init__(self, path: Path) -> None:
        """ConfigError for what is no regular file, cannot be read, or is longer than any of ours."""
        self.path = path
        self._fd = open_regular(path)
        self._size = os.fstat(self._fd).st_size
        if self._size > FILE_READ_MAX:
            os.close(self._fd)
            raise ConfigError("file is too long", file=str(path), allowed=f"at most {FILE_READ_MAX} bytes")

    def __enter__(self) -> FileBytes:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        begin, end, _ = part.indices(self._size)
        try:
            return os.pread(self._fd, max(0, end - begin), begin)
        except OSError:  # a bad sector: as if the file ended there
            return b""

    def find(self, what: bytes, start: int = 0) -> int:
        """As bytes.find."""
        while start < self._size:
            block = self[start : start + _BLOCK]
            at = block.find(what)
            if at >= 0:
                return start + at
            if len(block) < _BLOCK:
                break
            start += _BLOCK - len(what) + 1
        return -1


@dataclass(frozen=True)
class Chunk:
    """An intact chunk of a file."""

    seq: int
    payload: bytes
    offset: int


@dataclass(frozen=True)
class Bad:
    """A stretch of a file that is no chunk."""

    offset: int
    n_bytes: int
    cause: str


def scan(data: bytes | FileBytes, start: int) -> Iterator[Chunk | Bad]:
    """The chunks of one file from byte `start` on, and the stretches between them that are none."""
    pos, end = start, len(data)
    while pos < end:
        chunk = _parse_chunk(data, pos)
        if isinstance(chunk, Chunk):
            yield chunk
            pos += _CHUNK_HEAD.size + len(chunk.payload)
            continue
        # Look for the next place where an intact chunk could begin; records before it are lost.
        following = data.find(CHUNK_MAGIC, pos + 1)
        following = end if following < 0 else following
        yield Bad(pos, following - pos, chunk)
        pos = following


def _parse_chunk(data: bytes | FileBytes, pos: int) -> Chunk | str:
    """The chunk that begins at `pos`, or why there is none."""
    if len(data) - pos < _CHUNK_HEAD.size:
        return "torn chunk"
    head = data[pos : pos + _CHUNK_HEAD.size]
    if len(head) < _CHUNK_HEAD.size:
        return "torn chunk"
    magic, n_bytes, crc, seq = _CHUNK_HEAD.unpack(head)
    if magic != CHUNK_MAGIC:
        return "no chunk begins here"
    begin = pos + _CHUNK_HEAD.size
    if n_bytes > CHUNK_BYTES_MAX or begin + n_bytes > len(data):
        return "torn chunk"
    payload = data[begin : begin + n_bytes]
    if len(payload) < n_bytes:
        return "torn chunk"
    if zlib.crc32(payload, zlib.crc32(_SEQ_LENGTH.pack(seq, n_bytes))) != crc:
        return "wrong checksum"
    return Chunk(seq, payload, pos)


def head_of(data: bytes | FileBytes) -> tuple[dict[str, Any] | None, int, str]:
    """(header, offset of the first chunk, "") or (None, 0, cause)."""
    if len(data) < _FILE_HEAD.size:
        return None, 0, "file head torn"
    head = data[: _FILE_HEAD.size]
    if len(head) < _FILE_HEAD.size:
        return None, 0, "file head torn"
    magic, length, crc = _FILE_HEAD.unpack(head)
    if magic != FILE_MAGIC:
        return None, 0, "not a torqueloop recording"
    text = data[_FILE_HEAD.size : _FILE_HEAD.size + length]
    if len(text) < length:
        return None, 0, "file head torn"
    if zlib.crc32(text) != crc:
        return None, 0, "file head has a wrong checksum"
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, 0, f"file head is no JSON: {error}"
    if not isinstance(header, dict):
        return None, 0, "file head is no table"
    return header, _FILE_HEAD.size + length, ""
