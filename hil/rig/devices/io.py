"""[io.NAME] of a rig file: pins of a card, read before and written after each step by a C library (docs/io.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick.io import IO_REASONS, REASON_BITS, IoDevices
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile
from torqueloop.hil.ecu.compiled import SOURCES, compiled
from torqueloop.hil.io.library import Channel, IoSetup
from torqueloop.hil.rig.devices.device import Device, PlannedGuard
from torqueloop.hil.rig.devices.signals import si_unit
from torqueloop.hil.rig.schema.participants import relative
from torqueloop.hil.rig.schema.rig_file import PEER_NAME

#: folder of the drivers that come with the package
DRIVERS = "examples/io"
#: a value that leaves its range by less than this share of it has only been rounded
ROUNDING = 1e-9


class IoChannel(ConfigTable):
    """What inputs and outputs of an I/O device have in common."""

    #: Name of the pin in the driver, such as "line 4" or "ao1". By default it is the name of the channel.
    pin: str | None = None
    #: Pin of the control unit's plug that the channel is wired to, as `torqueloop wire` shows it.
    plug: str = ""
    #: Lower end of the range, in the unit of the channel.
    low: float = 0.0
    #: Upper end of the range, in the unit of the channel.
    high: float = 1.0

    @model_validator(mode="after")
    def _order(self) -> IoChannel:
        if not self.low < self.high:
            raise BadValue("high = {value} is not above low", key="high", value=self.high, allowed=f"> {self.low}")
        return self


class IoInput(IoChannel):
    """One entry of [io.NAME.inputs]. The device reads it, and its value is the signal io.NAME.KEY."""

    #: Unit of the value.
    unit: str = "1"
    #: Correction: the value is gain times what the device reads, plus `offset`. `torqueloop doctor --calibrate` finds
    #: both.
    gain: float = 1.0
    #: Number that is added after the gain, in the unit of the channel.
    offset: float = 0.0
    #: Output channel "DEVICE.NAME" that is wired to this input for `torqueloop doctor --calibrate`.
    loop: str | None = None


class IoOutput(IoChannel):
    """One entry of [io.NAME.outputs]. The device writes it. The signal io.NAME.KEY has the value that is written."""

    #: Signal that is written.
    signal: str
    #: Factor on the value of the signal in SI. With `gain` or `offset` the units are not checked.
    gain: float = 1.0
    #: Number that is added after the gain.
    offset: float = 0.0
    #: Unit of the value that is written. By default it is the unit of the signal.
    unit: str | None = None
    #: Value that is written before and after a run, in the safe state and while disarming.
    safe: float = 0.0
    #: Largest change per second, in the unit of the channel.
    slew: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _safe_in_range(self) -> IoOutput:
        if not self.low <= self.safe <= self.high:
            raise BadValue("safe = {value} is outside the range of the channel", key="safe", value=self.safe,
                           allowed=f"{self.low} .. {self.high}")  # fmt: skip
        return self


class Io(ConfigTable):
    """[io.NAME]: an I/O device behind the C interface torqueloop_io.h."""

    #: Shared library of the driver, or its C source, relative to the rig file, or the bare name of an installed driver.
    library: Annotated[str, InFile(DRIVERS)]
    #: Name -> channel that the device reads.
    inputs: dict[str, IoInput] = {}
    #: Name -> channel that the device writes.
    outputs: dict[str, IoOutput] = {}
    #: Keys that belong to the driver.
    options: dict[str, str | float | bool] = {}
    #: Real clock: a call that takes longer than this latches the safe state [us]. 0: any time is allowed.
    limit_us: Annotated[float, Field(ge=0, le=1e6)] = 200.0
    #: Number of ticks in a row without a new value that latches the safe state.
    stale_ticks: Annotated[int, Field(ge=1, le=1_000_000)] = 10

    @model_validator(mode="after")
    def _channels(self) -> Io:
        if not self.inputs and not self.outputs:
            raise BadValue("has neither inputs nor outputs", key="inputs", allowed="one channel or more")
        pins = [output.pin or name for name, output in self.outputs.items()]
        for pin in pins:
            if pins.count(pin) > 1:
                raise BadValue("{value} is the pin of two outputs", key="outputs", value=pin, allowed="one output each")
        for key, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            for name in names:
                if not PEER_NAME.fullmatch(name) or name == "state" or (key == "outputs" and name in self.inputs):
                    raise BadValue("{value} is no name of a channel", key=key, value=name,
                                   allowed="letters, digits, _; each name once, not state")  # fmt: skip
        return self


class IoTables(ConfigTable):
    """Table of I/O devices in the rig file."""

    #: I/O devices by name, see docs/io.md.
    io: dict[str, Io] = {}

    @field_validator("io")
    @classmethod
    def _names(cls, table: dict[str, Io]) -> dict[str, Io]:
        for name in table:
            if not PEER_NAME.fullmatch(name):
                raise BadValue("{value} is no name of an I/O device", value=name, allowed="letters, digits, _")
        return table


class IoCards(Device[IoTables]):
    """Signals io.NAME.state and io.NAME.CHANNEL."""

    TABLES = IoTables
    GROUPS = ("io",)

    def signals(self) -> None:
        #: slot of io.NAME.state; inputs, then outputs follow
        self.first: dict[str, int] = {}
        for name, io in self.given.io.items():
            self.first[name] = self.table.add(f"io.{name}.state", "1")
            for key, channel in io.inputs.items():
                self.table.add(f"io.{name}.{key}", channel.unit, min(max(0.0, channel.low), channel.high))
            for key, output in io.outputs.items():
                # the unit of its signal is known once all signals are
                self.table.add(f"io.{name}.{key}", output.unit, output.safe)

    def plan(self) -> None:
        for name, io in self.given.io.items():
            for key, channel in io.inputs.items():
                if channel.loop is not None:
                    self._check_loop(f"io.{name}.inputs.{key}", channel)
            for key, output in io.outputs.items():
                table = f"io.{name}.outputs.{key}"
                source, slot = self.read_slot(output.signal, table, "signal"), self.table.slot(f"io.{name}.{key}")
                unit = self.table.units[source]
                if output.unit is None:
                    self.table.units[slot] = unit
                elif si_unit(output.unit) != unit and not {"gain", "offset"} & output.model_fields_set:
                    problem = f"{{key}}: {output.signal} is in {unit}, the channel in {{value}}"
                    raise ConfigError(problem, file=self.file, table=table, key="unit", value=output.unit,
                                      allowed=f"{unit}, or a gain of your own")  # fmt: skip
                self.rig.out_copies.append((source, slot, output.gain, output.offset))
                tolerance = ROUNDING * (output.high - output.low)
                guard = PlannedGuard(f"io.{name}.{key}", slot, output.low, output.high, tolerance, output.slew or 0.0,
                                     False)  # fmt: skip
                self.rig.guards.append(guard)

    def _check_loop(self, table: str, channel: IoInput) -> None:
        known = [f"{name}.{key}" for name, io in self.given.io.items() for key in io.outputs]
        where: dict[str, Any] = {"file": self.file, "table": table, "key": "loop", "value": channel.loop}
        if channel.loop not in known:
            hint = did_you_mean(str(channel.loop), known)
            raise UnknownNameError("{key}: there is no output channel {value}", **where, hint=hint)
        other = self.output(channel.loop)
        if not max(channel.low, other.low) < min(channel.high, other.high):
            raise ConfigError("{key}: the ranges of both channels do not overlap", **where,
                              allowed=f"an output in {channel.low:g} .. {channel.high:g} {channel.unit}")  # fmt: skip

    def output(self, name: str) -> IoOutput:
        """An output channel, "DEVICE.NAME"."""
        card, _, key = name.partition(".")
        return self.given.io[card].outputs[key]

    def loops(self) -> list[tuple[str, str, IoInput]]:
        """Device and name of the inputs that an output is wired to."""
        return [(name, key, channel) for name, io in self.given.io.items() for key, channel in io.inputs.items()
                if channel.loop is not None]  # fmt: skip

    @property
    def input_slots(self) -> set[int]:
        """Slots of all that the devices read."""
        return {self.first[name] + 1 + k for name, io in self.given.io.items() for k in range(len(io.inputs))}

    def make(self, tick: Rig, received: Sequence[RxState]) -> IoDevices | None:
        """The table of the tick; None: there are no devices. The libraries are opened by the run."""
        if not self.given.io:
            return None
        made = IoDevices(len(self.table), len(self.given.io))
        for k, (name, io) in enumerate(self.given.io.items()):
            inputs = [(c.low, c.high, c.gain, c.offset) for c in io.inputs.values()]
            outputs = [(channel.low, channel.high, channel.safe) for channel in io.outputs.values()]
            first = self.first[name]
            made.set_device(k, state_slot=first, in_slot=first + 1, inputs=inputs, out_slot=first + 1 + len(inputs),
                            outputs=outputs, stale_limit=io.stale_ticks)  # fmt: skip
        tick.set_io(made)
        return made

    def cause(self, kind: str, detail: int) -> str:
        if kind != "io":
            return ""
        names = list(self.given.io)
        return f"{names[detail >> REASON_BITS]}: {IO_REASONS[detail & ((1 << REASON_BITS) - 1)]}"

    def library(self, name: str, folder: Path | None = None) -> Path:
        """The shared library of a device; a C source is compiled into `folder` (None: into one of this process)."""
        where: dict[str, Any] = {"file": self.file, "table": f"io.{name}", "key": "library"}
        try:
            path = relative(self.file, self.given.io[name].library, DRIVERS)
        except ConfigError as error:
            raise error.located(**where) from None
        target = Path(f"io_{name}.so") if folder is None else folder.absolute() / f"io_{name}.so"
        return path if path.suffix not in SOURCES else compiled(path, target, where)

    def setups(self, folder: Path, simulated: bool) -> dict[str, IoSetup]:
        """What each device receives when it is opened; folder: of the run."""
        found = {}
        for name, io in self.given.io.items():
            inputs = tuple(Channel(key, c.pin or key, c.unit, c.low, c.high) for key, c in io.inputs.items())
            units = {key: self.table.unit(f"io.{name}.{key}") for key in io.outputs}
            outputs = tuple(
                Channel(key, c.pin or key, units[key], c.low, c.high, c.safe) for key, c in io.outputs.items()
            )
            options: Mapping[str, str] = {key: _text(value) for key, value in io.options.items()}
            library, beside = str(self.library(name, folder)), str(Path(self.file).parent)
            found[name] = IoSetup(name, library, self.tick_s, beside, inputs, outputs, options, simulated)
        return found


def _text(value: str | float | bool) -> str:
    """A key's value as the driver gets it: true and false are 1 and 0, numbers have all their digits."""
    if isinstance(value, bool):
        return str(int(value))
    return value if isinstance(value, str) else repr(value)
