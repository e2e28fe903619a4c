"""The end of a running recording: chunks that were appended since the last look, each read once."""

from __future__ import annotations

from pathlib import Path

from torqueloop.hil.record.recording import SUFFIX, Bad, FileBytes, chunk_bytes, head_of, scan


class StreamTail:
    """The chunks of a stream folder that are written from now on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = self._files()
        #: the file that is read, and the byte behind its last chunk that was seen; 0: its head was not seen yet
        self._file: Path | None = files[-1] if files else None
        self._at = 0
        self.new()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*" + SUFFIX))

    def new(self) -> list[bytes]:
        """Payloads of the chunks that were written since the last call. OSError, ConfigError as `FileBytes`."""
        found: list[bytes] = []
        for path in self._files():
            if self._file is not None and path < self._file:
                continue
            if path != self._file:
                self._file, self._at = path, 0
            with FileBytes(path) as data:
                start = self._at or head_of(data)[1]
                if not start:
                    continue
                for chunk in scan(data, start):
                    if isinstance(chunk, Bad):
                        break  # not whole yet
                    self._at = chunk.offset + len(chunk_bytes(0, b"")) + len(chunk.payload)
                    found.append(chunk.payload)
        return [payload for payload in found if payload]
