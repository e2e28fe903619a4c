"""A C library behind torqueloop_io.h, opened with the channels and keys of a rig file."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torqueloop.hil.ecu.compiled import exported
from torqueloop.hil.link.endpoints import PeerError

#: TORQUELOOP_IO_ABI
ABI = 1
#: TL_IO_OK, TL_IO_STALE; TL_IO_IDLE, TL_IO_RUNS
OK, STALE, IDLE, RUNS = 0, 1, 0, 1
_ERROR_BYTES = 512
_NEEDED = ("tl_io_abi", "tl_io_open", "tl_io_read", "tl_io_write", "tl_io_close")
_Log = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_Texts = ctypes.POINTER(ctypes.c_char_p)
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


class CChannel(ctypes.Structure):
    """tl_io_channel"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("pin", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("safe", ctypes.c_double),
        ("output", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("reserved_too", ctypes.c_int64),
    ]


class CWatch(ctypes.Structure):
    """tl_io_watch"""

    _fields_ = [
        ("beats", ctypes.c_uint64),
        ("tick_ns", ctypes.c_int64),
        ("state", ctypes.c_int32),
        ("pid", ctypes.c_int32),
        ("taken", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class CIoSetup(ctypes.Structure):
    """tl_io_setup"""

    _fields_ = [
        ("tick_s", ctypes.c_double),
        ("name", ctypes.c_char_p),
        ("folder", ctypes.c_char_p),
        ("channels", ctypes.POINTER(CChannel)),
        ("keys", _Texts),
        ("values", _Texts),
        ("watch", ctypes.POINTER(CWatch)),
        ("watch_file", ctypes.c_char_p),
        ("log", _Log),
        ("n_channels", ctypes.c_uint32),
        ("n_inputs", ctypes.c_uint32),
        ("n_keys", ctypes.c_uint32),
        ("simulated", ctypes.c_int32),
    ]


#: C name -> its image here; a test compares sizes and offsets with the compiler's
STRUCTS: dict[str, type[ctypes.Structure]] = {
    "tl_io_channel": CChannel, "tl_io_watch": CWatch, "tl_io_setup": CIoSetup
}  # fmt: skip


class OpenDevice:
    """An open device with its outputs at the safe values. PeerError where it refuses."""

    def __init__(self, setup: IoSetup) -> None:
        self.setup: IoSetup = setup
        file = Path(setup.library)
        library = exported(file, _NEEDED, "tl_io_abi", ABI, "torqueloop_io.h")
        library.tl_io_open.restype = ctypes.c_void_p
        library.tl_io_open.argtypes = [ctypes.POINTER(CIoSetup), ctypes.c_char_p, ctypes.c_uint32]
        library.tl_io_write.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_double)]
        library.tl_io_write.restype = ctypes.c_int32
        library.tl_io_read.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_double)]
        library.tl_io_read.restype = ctypes.c_int32
        library.tl_io_close.argtypes, library.tl_io_close.restype = [ctypes.c_void_p], None
        self._library = library
        self._make_watch()
        channels = (CChannel * max(1, len(setup.inputs) + len(setup.outputs)))()
        for k, channel in enumerate((*setup.inputs, *setup.outputs)):
            texts = (channel.name.encode(), channel.pin.encode(), channel.unit.encode())
            output = int(k >= len(setup.inputs))
            channels[k] = CChannel(*texts, channel.low, channel.high, channel.safe, output, 0, 0)
        keys, values = _texts(list(setup.options)), _texts(list(setup.options.values()))
        watch = CWatch.from_buffer(self._memory)
        c = CIoSetup(
            setup.tick_s, setup.name.encode(), setup.folder.encode(), channels, ctypes.cast(keys, _Texts),
            ctypes.cast(values, _Texts), ctypes.pointer(watch), self.watch_file.encode(), _Log(_write_log),
            len(setup.inputs) + len(setup.outputs), len(setup.inputs), len(setup.options), int(setup.simulated),
        )  # fmt: skip
        # what the C side keeps pointers to
        self._keep: list[Any] = [channels, keys, values, watch, c]
        self._safe = (ctypes.c_double * max(1, len(setup.outputs)))(*(channel.safe for channel in setup.outputs))
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self.device: int | None = library.tl_io_open(ctypes.byref(c), error, _ERROR_BYTES)
        if not self.device:
            self._drop_watch()
            said = error.value.decode("utf-8", "replace") or "(it gave no reason)"
            raise PeerError(f"{file.name}: tl_io_open refuses: {said}")
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


def _texts(words: list[str]) -> Any:
    return (ctypes.c_char_p * max(1, len(words)))(*(word.encode() for word in words))


def _write_log(text: bytes) -> None:
    print(text.decode("utf-8", "replace"), file=sys.stderr, flush=True)
