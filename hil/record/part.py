"""A part of a recording: records of one stream from one instant to another, kept once more in a folder of their own.

The recorder feeds it beside the recording itself (`recorder.Form`), whole records and in its own thread. What it leaves
is a stream as any other, so all that reads runs reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.signals import signal_dtype, signal_encoder
from torqueloop.hil.results.run import StreamStats


class StreamPart:
    """Records as they come: frames of the buses."""

    def __init__(self, name: str, folder: Path, header: dict[str, Any]) -> None:
        """name: of it among the streams of the run. OSError where the disk refuses."""
        self.name = name
        self.status: StreamStats = StreamStats()
        self._writer: ChunkWriter | None = ChunkWriter(folder, header)

    def take(self, payload: bytes, sync: bool) -> None:
        """Whole records. Never raises: what goes wrong is in the status."""
        if self._writer is None:
            self._note(discarded_bytes=self.status.discarded_bytes + len(payload))
            return
        try:
            self._writer.write(self._form(payload))
            if sync:
                self._writer.sync()
            self._written(payload)
            self._note(bytes_written=self._writer.bytes_written, chunks=self._writer.seq)
        except Exception as error:
            self._note(discarded_bytes=self.status.discarded_bytes + len(payload))
            self._fail(error)

    def _form(self, payload: bytes) -> bytes:
        return payload

    def _written(self, payload: bytes) -> None:
        """These are in the file."""

    def close(self) -> None:
        """The end mark. Never raises."""
        try:
            if self._writer is not None:
                self._writer.close()
                self._note(bytes_written=self._writer.bytes_written)
        except Exception as error:
            self._fail(error)
        self._writer = None

    def _fail(self, error: Exception) -> None:
        self._note(cause=self.status.cause or f"{type(error).__name__}: {error}")
        if self._writer is not None:
            self._writer.abandon()
        self._writer = None

    def _note(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes)


class SignalPart(StreamPart):
    """Signals, all of them or some; `first` and `last` tick that it holds, -1: none yet."""

    def __init__(self, name: str, folder: Path, header: dict[str, Any], chosen: Sequence[int]) -> None:
        """header: of the whole stream. chosen: columns of it that are kept."""
        names, units = header["names"], header["units"]
        kept = {"names": [names[k] for k in chosen], "units": [units[k] for k in chosen]}
        super().__init__(name, folder, {**header, **kept})
        self._whole, self._dtype = signal_dtype(len(names)), signal_dtype(len(chosen))
        self._chosen = None if len(chosen) == len(names) else np.array(chosen, np.intp)
        self._encode = signal_encoder(len(chosen))
        self.first: int = -1
        self.last: int = -1
        #: ticks that were taken
        self.samples: int = 0

    def _form(self, payload: bytes) -> bytes:
        if self._chosen is None:
            return self._encode(payload)
        records = np.frombuffer(payload, self._whole)
        kept = np.empty(len(records), self._dtype)
        for field in self._dtype.names or ():
            kept[field] = records[field][:, self._chosen] if field == "out" else records[field]
        return self._encode(kept.tobytes())

    def _written(self, payload: bytes) -> None:
        records = np.frombuffer(payload, self._whole)
        if self.first < 0:
            self.first = int(records["tick"][0])
        self.last, self.samples = int(records["tick"][-1]), self.samples + len(records)
