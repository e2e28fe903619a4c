"""A C library behind torqueloop_io.h, opened with the channels and keys of a rig file."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.ecu.c_header import ERROR_BYTES, LOG, Header, said, texts, write_log
from torqueloop.hil.link.endpoints import PeerError

HEADER = Header("torqueloop_io.h")
#: TL_IO_OK, TL_IO_STALE; TL_IO_IDLE, TL_IO_RUNS
OK, STALE, IDLE, RUNS = 0, 1, 0, 1
#: where memory that processes share has a name
SHARED = "/dev/shm"


@dataclass(frozen=True)
class Channel:
    """One channel, in the unit of its value."""

    name: str
    pin: str
    unit: str
    low: float
    high: float
    #: what is written outside of a run and in the safe state (outputs)
    safe: float = 0.0


@dataclass(frozen=True)
class IoSetup:
    """What a device receives before it is opened."""

    name: str
    #: shared library
    library: str
    tick_s: float
    folder: str
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    #: keys of the driver's own
    options: Mapping[str, str]
    simulated: bool

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> IoSetup:
        """Inverse of plain."""
        channels = {key: tuple(Channel(**c) for c in data[key]) for key in ("inputs", "outputs")}
        return cls(**{**data, **channels})


#: C name -> its image here; a test compares sizes and offsets with the compiler's
STRUCTS: dict[str, Any] = HEADER.structs
CChannel, CWatch, CIoSetup = (STRUCTS[f"tl_io_{name}"] for name in ("channel", "watch", "setup"))


class OpenDevice:
    """An open device with its outputs at the safe values. PeerError where it refuses."""

    def __init__(self, setup: IoSetup) -> None:
        self.setup: IoSetup = setup
        file = Path(setup.library)
        library = HEADER.library(file)
        self._library = library
        self._make_watch()
        channels = (CChannel * max(1, len(setup.inputs) + len(setup.outputs)))()
        for k, channel in enumerate((*setup.inputs, *setup.outputs)):
            words = (channel.name.encode(), channel.pin.encode(), channel.unit.encode())
            output = int(k >= len(setup.inputs))
            channels[k] = CChannel(*words, channel.low, channel.high, channel.safe, output, 0, 0)
        keys, values = texts(list(setup.options)), texts(list(setup.options.values()))
        watch = CWatch.from_buffer(self._memory)
        c = CIoSetup(
            setup.tick_s, setup.name.encode(), setup.folder.encode(), channels, keys, values, ctypes.pointer(watch),
            self.watch_file.encode(), LOG(write_log),
            len(setup.inputs) + len(setup.outputs), len(setup.inputs), len(setup.options), int(setup.simulated),
        )  # fmt: skip
        # what the C side keeps pointers to
        self._keep: list[Any] = [channels, keys, values, watch, c]
        self._safe = (ctypes.c_double * max(1, len(setup.outputs)))(*(channel.safe for channel in setup.outputs))
        error = ctypes.create_string_buffer(ERROR_BYTES)
        self.device: int | None = library.tl_io_open(ctypes.byref(c), error, ERROR_BYTES)
        if not self.device:
            self._drop_watch()
            raise PeerError(f"{file.name}: tl_io_open refuses: {said(error)}")
        if not self.write_safe():
            self.close()
            raise PeerError(f"{file.name}: tl_io_write does not take the safe values")

    @property
    def functions(self) -> dict[str, int]:
        """Addresses of what the tick calls."""
        at = {name: ctypes.cast(getattr(self._library, f"tl_io_{name}"), ctypes.c_void_p).value for name in
              ("read", "write")}  # fmt: skip
        return {name: address or 0 for name, address in at.items()}

    @property
    def watch(self) -> mmap.mmap:
        """The memory of tl_io_watch."""
        return self._memory

    def read(self) -> list[float]:
        """All inputs, outside of a run. PeerError where reading fails."""
        values = (ctypes.c_double * max(1, len(self.setup.inputs)))()
        if self._library.tl_io_read(self.device, self._keep[3].beats * self.setup.tick_s, values) not in (OK, STALE):
            raise PeerError(f"{self.setup.name}: reading has failed")
        return list(values)

    def write(self, values: Sequence[float]) -> None:
        """All outputs, outside of a run, as a tick does it. PeerError where the device does not take them."""
        watch = self._keep[3]
        watch.state, watch.beats = RUNS, watch.beats + 1
        given = (ctypes.c_double * max(1, len(values)))(*values)
        if self._library.tl_io_write(self.device, watch.beats * self.setup.tick_s, given) != OK:
            raise PeerError(f"{self.setup.name}: writing has failed")

    def write_safe(self) -> bool:
        """Write the safe values; False where the device does not take them."""
        return not self.setup.outputs or self._library.tl_io_write(self.device, 0.0, self._safe) == OK

    def close(self) -> bool:
        """Safe values, then free the device; whether the device took them."""
        if self.device is None:
            return True
        taken = self.write_safe()
        self._keep[3].state = IDLE
        self._library.tl_io_close(self.device)
        self.device = None
        self._drop_watch()
        return taken

    def _make_watch(self) -> None:
        folder = SHARED if os.path.isdir(SHARED) else None
        handle, self.watch_file = tempfile.mkstemp(prefix=f"torqueloop-{os.getpid()}-", dir=folder)
        try:
            os.truncate(handle, mmap.PAGESIZE)
            self._memory = mmap.mmap(handle, mmap.PAGESIZE)
        finally:
            os.close(handle)
        CWatch.from_buffer(self._memory).pid = os.getpid()
        CWatch.from_buffer(self._memory).tick_ns = round(self.setup.tick_s * 1e9)

    def _drop_watch(self) -> None:
        """The name goes; the memory stays mapped for those who look at it."""
        if os.path.exists(self.watch_file):
            os.unlink(self.watch_file)
