"""The recorder: a thread that moves records from rings to crash-safe files and never holds up the run.

Rings are filled by the tick; this thread drains them every DRAIN_S, and writes what it has as one chunk per stream at
least every CHUNK_S, followed by fsync. So a killed process loses at most CHUNK_S + DRAIN_S of records, a power cut the
same as long as the disk keeps its promises.

When the disk refuses (full, gone), that stream stops, its cause is kept in the status, its ring is still drained so
that the tick goes on undisturbed, and every record from then on is counted as lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.results.run import StreamStats

#: Pause between two looks into the rings. Shorter: smaller rings suffice; longer: fewer wake-ups. [s]
DRAIN_S = 0.05
#: The same while somebody waits for the records: one picture of 60 a second. [s]
TAPPED_S = 0.016
#: A chunk is written at least this often while records arrive: the most a killed run can lose. [s]
CHUNK_S = 0.5
#: A chunk is written before it grows beyond this size, which keeps single writes short. [bytes]
CHUNK_BYTES = 4 << 20
#: Drains of one ring in one look, so that a producer that is always faster cannot starve the other rings.
POLL_ROUNDS = 64

SyncPolicy = Literal["chunk", "close"]
#: whole records, joined -> a chunk
Encode = Callable[[bytes], bytes]


class RecordSource(Protocol):
    """Where records come from; `cython_kernels.ring.DataRing` is one. Called by the recorder's thread only."""

    def drain(self) -> bytes:
        """Whole records that are there now, joined; may stop at a size of its own; empty when there is none."""

    @property
    def dropped(self) -> int:
        """Records the writing side could not get in, since the beginning."""

    @property
    def high_water(self) -> int:
        """Largest fill so far [bytes]."""

    @property
    def capacity(self) -> int:
        """Room for records [bytes]."""


class Form(Protocol):
    """Another form of the records of a stream, for other tools; `streamed.Streamed` is one."""

    name: str
    status: StreamStats

    def take(self, payload: bytes, sync: bool) -> None:
        """Whole records. Never raises."""

    def close(self) -> None:
        """The last of it. Never raises."""


class _Stream:
    """One source, its writer and the chunk being gathered."""

    def __init__(
        self,
        name: str,
        source: RecordSource,
        writer: ChunkWriter,
        sync: SyncPolicy,
        encode: Encode | None,
        forms: Sequence[Form],
        count: Callable[[bytes], int] | None,
    ) -> None:
        self.forms = list(forms)
        self._count = count
        #: forms that ended before the run did: their last status
        self.ended: dict[str, StreamStats] = {}
        self.name, self.source, self.sync, self._encode = name, source, sync, encode
        self.writer: ChunkWriter | None = writer
        # written by the recorder's thread, whole; read by any
        self.status = StreamStats()
        #: given all that is drained
        self.tap: Callable[[bytes], None] | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._since = time.monotonic()

    def poll(self, rounds: int = POLL_ROUNDS) -> None:
        """Take what the ring holds; write a chunk when it is due."""
        for _ in range(rounds):
            data = self.source.drain()
            if not data:
                break
            if self.tap is not None:
                self.tap(data)
            if self.writer is None:
                self._note(discarded_bytes=self.status.discarded_bytes + len(data))
                continue
            # A chunk never splits a record: the gathered part is written first if both together are too long.
            if self._size + len(data) > CHUNK_BYTES:
                self.flush()
            if not self._parts:
                self._since = time.monotonic()
            self._parts.append(data)
            self._size += len(data)
        if self._parts and time.monotonic() - self._since >= CHUNK_S - DRAIN_S:
            self.flush()
        self._note(
            lost_records=int(self.source.dropped), high_water=self.source.high_water / max(self.source.capacity, 1)
        )

    def _note(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes)

    def flush(self) -> None:
        """Write the gathered records as one chunk."""
        if not self._parts or self.writer is None:
            return
        payload = b"".join(self._parts)
        self._parts, self._size = [], 0
        begin = time.monotonic()
        try:
            self.writer.write(payload if self._encode is None else self._encode(payload))
            if self.sync == "chunk":
                self.writer.sync()
            if self._count is not None:
                self._note(records=(self.status.records or 0) + self._count(payload))
        except Exception as error:
            self._note(discarded_bytes=self.status.discarded_bytes + len(payload))
            self.stop(error)
        for form in self.forms:
            form.take(payload, self.sync == "chunk")
        self._note(write_s_max=max(self.status.write_s_max, time.monotonic() - begin))
        if self.writer is not None:
            self._note(bytes_written=self.writer.bytes_written, chunks=self.writer.seq)

    def stop(self, error: Exception) -> None:
        """Give up writing this stream; the first cause is kept."""
        self._note(cause=self.status.cause or f"{type(error).__name__}: {error}")
        if self.writer is not None:
            self.writer.abandon()
            self.writer = None

    def close(self) -> None:
        """Write everything still in the ring and the end mark."""
        self.poll(rounds=1 << 30)
        self.flush()
        for form in self.forms:
            form.close()
        if self.writer is not None:
            try:
                self.writer.close()
                self._note(bytes_written=self.writer.bytes_written)
            except Exception as error:
                self.stop(error)


class Recorder:
    """Drains sources into `run_dir/<name>/NNNNNN.tlc`. Use as a context manager or with start() and close().

    `add_stream` before `start`. `status()` may be called at any time from any thread.
    """

    def __init__(self, run_dir: Path | str, *, sync: SyncPolicy = "chunk") -> None:
        self.run_dir: Path = Path(run_dir)
        self.sync = sync
        self._streams: list[_Stream] = []
        self._stop = threading.Event()
        self._wake = threading.Event()
        #: those who wait until all that has arrived is on disk, and what is to be done then
        self._asked: list[tuple[threading.Event, Callable[[], None] | None]] = []
        self._asking = threading.Lock()
        self._thread: threading.Thread | None = None
        self._died = False
        self._started = False
        #: pause between two looks into the rings [s]
        self.drain_s: float = DRAIN_S

    def tap(self, name: str, tap: Callable[[bytes], None]) -> None:
        """Pass on what is drained of a stream, in this thread; it is looked at more often then. Before start."""
        self.drain_s = TAPPED_S
        next(s for s in self._streams if s.name == name).tap = tap

    def add_stream(
        self,
        name: str,
        header: dict[str, Any],
        source: RecordSource,
        *,
        file_bytes: int | None = None,
        encode: Encode | None = None,
        forms: Sequence[Form] = (),
        count: Callable[[bytes], int] | None = None,
    ) -> None:
        """Record `source` to the folder `name`. `header` says what the records are (see `channels`). encode: how the
        records of a chunk stand in it, default as they come. forms: what is written of them beside. count: number of
        records in what was drained."""
        if self._thread is not None:
            raise RuntimeError("add_stream after start")
        options = {} if file_bytes is None else {"file_bytes": file_bytes}
        writer = ChunkWriter(self.run_dir / name, header, **options)
        self._streams.append(_Stream(name, source, writer, self.sync, encode, forms, count))

    def start(self) -> None:
        """Begin draining in a thread of its own."""
        self._started = True
        self._thread = threading.Thread(target=self._run, name="torqueloop-recorder", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._wake.wait(self.drain_s)
                self._wake.clear()
                self._serve()
        except BaseException:
            self._died = True
            raise

    def _serve(self) -> None:
        """Look into the rings, and do what was asked for meanwhile."""
        with self._asking:
            asked, self._asked = self._asked, []
        self.poll()
        if asked:
            for stream in self._streams:
                stream.flush()
        for done, job in asked:
            if job is not None:
                job()
            done.set()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Have everything that is in the rings now written; False: not within this time. From any other thread."""
        if not self._started or self._stop.is_set() or not self.alive():
            return not self._started or self._stop.is_set()
        return self._ask(None, timeout_s) or self._stop.is_set()

    def _ask(self, job: Callable[[], None] | None, timeout_s: float) -> bool:
        done = threading.Event()
        with self._asking:
            self._asked.append((done, job))
        self._wake.set()
        if done.wait(timeout_s):
            return True
        # not later either, where it has not begun
        with self._asking:
            self._asked = [each for each in self._asked if each[0] is not done]
        return False

    def attach(self, forms: Mapping[str, Form], timeout_s: float = 5.0) -> bool:
        """Give these forms (by stream) all that comes from now on; False: the recorder does not run, or not within this
        time. From any other thread."""

        def job() -> None:
            for stream in self._streams:
                if stream.name in forms:
                    stream.forms.append(forms[stream.name])

        return self._running() and self._ask(job, timeout_s)

    def detach(self, forms: Mapping[str, Form], timeout_s: float = 5.0) -> bool:
        """Give these forms the last that has arrived and close them; their status is kept. False as `attach`."""

        def job() -> None:
            for stream in self._streams:
                form = forms.get(stream.name)
                if form is not None and form in stream.forms:
                    form.close()
                    stream.forms.remove(form)
                    stream.ended[form.name] = form.status

        return self._running() and self._ask(job, timeout_s)

    def _running(self) -> bool:
        return self._started and not self._stop.is_set() and self._thread is not None and self._thread.is_alive()

    def poll(self) -> None:
        """Look into all rings once. Called by the thread; call it yourself where no thread is wanted (virtual time)."""
        for stream in self._streams:
            try:
                stream.poll()
            except Exception as error:
                stream.stop(error)

    def close(self) -> dict[str, StreamStats]:
        """Stop the thread, write all that is still queued, close the files. Returns the status per stream."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for stream in self._streams:
            try:
                stream.close()
            except Exception as error:
                stream.stop(error)
        return self.status()

    def discard(self) -> None:
        """A run that never began: take away the streams, which hold nothing but their heads."""
        if self._started:
            return
        for stream in self._streams:
            if stream.writer is not None:
                stream.writer.remove()
                stream.writer = None

    def status(self) -> dict[str, StreamStats]:
        """Status per stream, and of what is written beside it, by name."""
        found = {s.name: s.status for s in self._streams}
        for s in self._streams:
            found |= {form.name: form.status for form in tuple(s.forms)} | s.ended
        return found

    def alive(self) -> bool:
        """False when the thread was started and has died, also after `close`."""
        return not self._died

    def __enter__(self) -> Recorder:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
