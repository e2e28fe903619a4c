"""Kind "library": a control unit compiled for the PC, behind the C ABI of hil/ecu/include/torqueloop_ecu.h.

The shared library runs in a process of its own by default: a crash or a hang then ends that process and not the rig.
`host = "rig"` loads it into the rig's process: this saves about 20 us a step, and a debugger sees the library, but a
crash ends the rig.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.frame import FD_LENGTHS, Frame
from torqueloop.hil.ecu.c_header import ERROR_BYTES, LOG, Header, said, texts, write_log
from torqueloop.hil.ecu.compiled import shared_library
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, EcuSetup
from torqueloop.hil.ecu.declared_frames import FrameCheck
from torqueloop.hil.ecu.external import ExternalUnit, Options, hosted, read_options
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.results.links import ParticipantStats

HEADER = Header("torqueloop_ecu.h")
#: frames a unit may send in a step
MAX_FRAMES = 256
_STATE = ("tl_ecu_save", "tl_ecu_load")
#: C name -> its image here; a test compares sizes and offsets with the compiler's
STRUCTS: dict[str, Any] = HEADER.structs
CFrame, CSetup, CInputs, COutputs = (
    STRUCTS[f"tl_{name}"] for name in ("frame", "ecu_setup", "ecu_inputs", "ecu_outputs")
)


class LibraryOptions(Options):
    """[ecu.NAME.options] of kind library: a unit behind the C ABI, docs/external_controllers.md."""

    #: "process": the unit runs in a process of its own, so that the rig survives if it crashes or hangs. "rig": it runs
    #: in the process of the rig.
    host: Literal["process", "rig"] = "process"


class LibraryUnit:
    """A control unit of a shared library, in this process."""

    def __init__(self, setup: EcuSetup, options: LibraryOptions) -> None:
        assert setup.file is not None
        self.period_s: float = options.period_s or setup.tick_s
        self._setup, self._file, self._config = setup, setup.file, options.config
        self._check = FrameCheck(setup)
        self._library: ctypes.CDLL | None = None
        self._unit: int | None = None
        self._can_save = False
        self.steps: int = 0
        self.sent: int = 0
        self._error = ctypes.create_string_buffer(ERROR_BYTES)
        self._sensors = (ctypes.c_double * max(1, len(setup.sensors)))()
        self._actuators = (ctypes.c_double * max(1, len(setup.actuators)))()
        self._received = (CFrame * 64)()
        self._sent = (CFrame * MAX_FRAMES)()
        self._in = CInputs(0.0, self._sensors, self._received, 0, 0)
        self._out = COutputs(
            self._actuators, self._sent, MAX_FRAMES, 0,
            ctypes.cast(self._error, ctypes.POINTER(ctypes.c_char)), ERROR_BYTES, 0,
        )  # fmt: skip
        # what the C side keeps pointers to
        self._keep: list[Any] = []

    def start(self) -> None:
        """Load the library, see that it is one of ours, make the unit."""
        library = self._load()
        setup = self._setup
        c = CSetup(
            setup.tick_s, self.period_s, setup.name.encode(), self._config.encode(),
            str(Path(setup.rig_file or ".").resolve().parent).encode(),
            len(setup.buses), len(setup.sensors), len(setup.actuators), 0,
            self._texts([bus.name for bus in setup.buses]),
            self._texts([pin.name for pin in setup.sensors]),
            self._texts([pin.unit for pin in setup.sensors]),
            self._texts([pin.name for pin in setup.actuators]),
            self._texts([pin.unit for pin in setup.actuators]),
            LOG(write_log),
        )  # fmt: skip
        self._keep.append(c)
        self._unit = library.tl_ecu_init(ctypes.byref(c), self._error, ERROR_BYTES)
        if not self._unit:
            raise PeerError(f"{self._file.name}: tl_ecu_init made no unit: {said(self._error)}")
        self._library = library

    def _load(self) -> ctypes.CDLL:
        library = HEADER.library(self._file, optional=_STATE)
        states = [name for name in _STATE if hasattr(library, name)]
        if len(states) == 1:
            raise PeerError(f"{self._file.name} exports {states[0]} alone; {' and '.join(_STATE)} go together")
        self._can_save = bool(states)
        return library

    def _texts(self, names: Sequence[str]) -> Any:
        self._keep.append(texts(names))
        return self._keep[-1]

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        """One control period."""
        assert self._library is not None
        if len(inputs.frames) > len(self._received):
            self._received = (CFrame * (2 * len(inputs.frames)))()
            self._in.frames = self._received
        for c, frame in zip(self._received, inputs.frames, strict=False):
            c.id, c.bus, c.flags, c.length = frame.can_id, frame.bus, frame.flags, len(frame.data)
            ctypes.memmove(c.data, frame.data.ljust(64, b"\0"), 64)
        self._in.t_s, self._in.n_frames = inputs.t_s, len(inputs.frames)
        if inputs.sensors:
            self._sensors[: len(inputs.sensors)] = list(inputs.sensors)
        self._error[0] = b"\0"
        self._out.n_frames = 0
        if self._library.tl_ecu_run(self._unit, ctypes.byref(self._in), ctypes.byref(self._out)) != 1:
            raise PeerError(f"{self._file.name}: tl_ecu_run(t = {inputs.t_s:.6g} s) failed: {said(self._error)}")
        outputs = EcuOutputs(self._frames(), tuple(self._actuators[: len(self._setup.actuators)]))
        if not all(map(math.isfinite, outputs.actuators)):
            pins = zip(self._setup.actuators, outputs.actuators, strict=True)
            bad = [pin.name for pin, x in pins if not math.isfinite(x)]
            raise PeerError(f"{self._file.name}: actuators that are no finite numbers: {', '.join(bad)}")
        self._check.check(outputs)
        self.steps += 1
        self.sent += len(outputs.frames)
        return outputs

    def _frames(self) -> tuple[Frame, ...]:
        n = self._out.n_frames
        if n > MAX_FRAMES:
            raise PeerError(f"{self._file.name}: n_frames = {n}; allowed: max_frames = {MAX_FRAMES}")
        frames = []
        for c in self._sent[:n]:
            if c.length not in FD_LENGTHS:
                raise PeerError(
                    f"{self._file.name}: frame 0x{c.id & 0x1FFFFFFF:X} of length {c.length}; allowed: 0 .. 8, 12, 16, "
                    "20, 24, 32, 48, 64"
                )
            frames.append(Frame(c.id, bytes(c.data[: c.length]), c.flags, c.bus))
        return tuple(frames)

    def save(self) -> dict[str, Any] | None:
        """The library's own bytes; None if it cannot save them."""
        if not self._can_save:
            return None
        assert self._library is not None
        size = self._library.tl_ecu_save(self._unit, None, 0)
        if size < 0:
            return None
        data = ctypes.create_string_buffer(max(1, size))
        if self._library.tl_ecu_save(self._unit, data, size) != size:
            raise PeerError(f"{self._file.name}: tl_ecu_save returns another size for a buffer of {size} bytes")
        return {
            "data": data.raw[:size], "actuators": list(self._actuators), "steps": self.steps, "sent": self.sent
        }  # fmt: skip

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        assert self._library is not None
        state = bytes(data["data"])
        if not self._can_save or self._library.tl_ecu_load(self._unit, state, len(state)) != 1:
            raise ValueError(f"{self._file.name}: tl_ecu_load takes {len(state)} bytes for none of its states")
        self._actuators[:] = [float(x) for x in data["actuators"]]
        self.steps, self.sent = int(data["steps"]), int(data["sent"])

    def stop(self) -> ParticipantStats:
        """Free the unit; the library stays loaded."""
        if self._library is not None and self._unit:
            self._library.tl_ecu_fini(self._unit)
        self._unit = None
        return ParticipantStats("in process", reported={"steps": self.steps, "frames": self.sent},
                         undeclared=dict(self._check.undeclared))  # fmt: skip


def make(setup: EcuSetup) -> LibraryUnit | ExternalUnit:
    """Kind "library": `start` of the rig file is the shared library, or the C source of one."""
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None, "key": "start"}
    if setup.file is None:
        raise ConfigError("kind library needs its file", **where, allowed="a shared library, or a C source")
    if not os.path.isfile(setup.file):
        raise ConfigError("start = {value}: no such file", **where, value=str(setup.file))
    options = read_options(setup, LibraryOptions)
    setup = replace(setup, file=shared_library(setup))
    if options.host == "rig":
        return LibraryUnit(setup, options)
    FrameCheck(setup)  # a wrong node or database is an error of the rig file, found here and not in the process
    inner = replace(setup, options={**setup.options, "host": "rig"})
    return hosted("library", inner, options.period_s or setup.tick_s, options)
