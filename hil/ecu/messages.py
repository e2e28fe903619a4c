"""Messages between the rig and a control unit in a process of its own: msgpack maps with a strict schema.

    rig -> unit                                                        unit -> rig, one answer to each
    {v, kind:"init", name, tick_s, period_s, buses, sensors,           {v, kind:"ready"}
        sensor_units, actuators, actuator_units, config}
    {v, kind:"step", step, t, frames, sensors}                         {v, kind:"out", step, frames, actuators}
    {v, kind:"save"}                                                   {v, kind:"state", state}
    {v, kind:"load", state}                                            {v, kind:"ready"}
    {v, kind:"stop", reason}                                           {v, kind:"bye", counts}
                                        or, instead of any of them:    {v, kind:"error", text}

v: VERSION. frames: list of [bus, id, flags, data]; data is binary. state: nil (it cannot be saved) or anything msgpack
can hold, handed back as it was. docs/external_controllers.md describes every key.

Nothing is unpickled or evaluated. A message is taken whole or not at all: SchemaError (hil/link/messages.py) names the
key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import msgpack

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.link.frames_form import FramesForm
from torqueloop.hil.can.frame import FD_LENGTHS, Frame
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, EcuSetup
from torqueloop.hil.link.messages import SchemaError, unpack_map

#: schema version, key `v` of every message
VERSION = 1
#: a longer message is refused before it is decoded; a state may be long
MAX_BYTES = 16 << 20
#: frames of one message
MAX_FRAMES = 4096
_MAX_ID = (1 << 29) - 1 | 1 << 31


@dataclass(frozen=True, slots=True)
class Ready:
    """The unit has done what it was asked."""


@dataclass(frozen=True, slots=True)
class Out:
    """Answer to a step."""

    step: int
    outputs: EcuOutputs


@dataclass(frozen=True, slots=True)
class State:
    """Answer to save."""

    state: Any


@dataclass(frozen=True, slots=True)
class Bye:
    """Answer to stop: counts for the report."""

    counts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The unit cannot: why, in its own words."""

    text: str


Answer = Ready | Out | State | Bye | Failed


def _form(kind: str, timed: bool, numbers: str) -> FramesForm[Frame]:
    head = bytes(msgpack.packb({"v": VERSION, "kind": kind}))[1:]
    return FramesForm(Frame, head, 2, timed, numbers)


_STEP_FORM, _OUT_FORM = _form("step", True, "sensors"), _form("out", False, "actuators")


def pack(kind: str, **keys: Any) -> bytes:
    """A message as it travels."""
    return bytes(msgpack.packb({"v": VERSION, "kind": kind, **keys}, use_bin_type=True))


def pack_init(setup: EcuSetup, period_s: float, config: str) -> bytes:
    """The first message."""
    return pack(
        "init",
        name=setup.name,
        tick_s=setup.tick_s,
        period_s=period_s,
        buses=[bus.name for bus in setup.buses],
        sensors=[pin.name for pin in setup.sensors],
        sensor_units=[pin.unit for pin in setup.sensors],
        actuators=[pin.name for pin in setup.actuators],
        actuator_units=[pin.unit for pin in setup.actuators],
        config=config,
    )


def pack_step(step: int, inputs: EcuInputs) -> bytes:
    """A step, as `pack` gives it."""
    i = inputs
    return _STEP_FORM.pack(step, i.t_s, i.frames, i.sensors) or pack(
        "step", step=step, t=i.t_s, frames=pack_frames(i.frames), sensors=i.sensors
    )


def usual_step(data: bytes) -> tuple[int, EcuInputs] | None:
    """A step in the form it nearly always has, checked; None: `unpack` says what this message is."""
    found = _STEP_FORM.unpack(data)
    return None if found is None else (found[0], EcuInputs(*found[1:]))


def pack_out(step: Any, outputs: EcuOutputs) -> bytes:
    """Answer to a step, as `pack` gives it."""
    return _OUT_FORM.pack(step, None, outputs.frames, outputs.actuators) or pack(
        "out", step=step, frames=pack_frames(outputs.frames), actuators=outputs.actuators
    )


def pack_frames(frames: tuple[Frame, ...]) -> list[tuple[int, int, int, bytes]]:
    """Frames as they stand in a message."""
    return [(f.bus, f.can_id, f.flags, f.data) for f in frames]


def unpack(data: bytes) -> dict[str, Any]:
    """Any message as a map with the right version; SchemaError otherwise."""
    body = unpack_map(data, MAX_BYTES)
    if body.get("v") != VERSION or isinstance(body.get("v"), bool):
        raise SchemaError("version", f"key v = {body.get('v')!r}, allowed: {VERSION}")
    return body


def decode_answer(data: bytes) -> Answer:
    """An answer of a unit, checked; SchemaError with reason and key if anything is not as agreed."""
    usual = _OUT_FORM.unpack(data)
    if usual is not None:
        return Out(usual[0], EcuOutputs(usual[2], usual[3]))
    body = unpack(data)
    kind = body.get("kind")
    if kind == "out":
        _keys(body, "step", "frames", "actuators")
        step = body["step"]
        if not isinstance(step, int) or isinstance(step, bool):
            raise SchemaError("type", f"key step = {step!r}, allowed: a whole number")
        return Out(step, EcuOutputs(frames_of(body["frames"]), numbers_of(body["actuators"], "actuators")))
    if kind == "ready":
        _keys(body)
        return Ready()
    if kind == "state":
        _keys(body, "state")
        return State(body["state"])
    if kind == "bye":
        _keys(body, "counts")
        if not isinstance(body["counts"], dict) or not all(isinstance(k, str) for k in body["counts"]):
            raise SchemaError("type", "key counts: allowed: a map of names to values")
        return Bye(body["counts"])
    if kind == "error":
        _keys(body, "text")
        return Failed(str(body["text"])[:1000])
    raise SchemaError("kind", f"key kind = {kind!r}, allowed: 'ready', 'out', 'state', 'bye', 'error'")


def _keys(body: Mapping[str, Any], *wanted: str) -> None:
    if len(body) == len(wanted) + 2 and all(key in body for key in wanted):
        return  # beside kind and v, which have been looked at
    missing, unknown = sorted({*wanted} - body.keys()), sorted(body.keys() - {"v", "kind", *wanted})
    if missing or unknown:
        parts = [f"missing key(s) {', '.join(missing)}"] if missing else []
        parts += [f"unknown key(s) {', '.join(map(str, unknown))}"] if unknown else []
        raise SchemaError("keys", f"message {body.get('kind')!r}: {'; '.join(parts)}")


def frames_of(value: Any) -> tuple[Frame, ...]:
    """The frames of a message."""
    if not isinstance(value, list) or len(value) > MAX_FRAMES:
        raise SchemaError("type", f"key frames: allowed: a list of at most {MAX_FRAMES} frames [bus, id, flags, data]")
    frames = []
    for k, entry in enumerate(value):
        if not isinstance(entry, list) or len(entry) != 4 or [type(x) for x in entry] != [int, int, int, bytes]:
            raise SchemaError("type", f"frames[{k}]: allowed: [bus, id, flags, data], three whole numbers and binary")
        bus, can_id, flags, data = entry
        if not 0 <= can_id <= _MAX_ID or not 0 <= bus < 256 or not 0 <= flags < 256:
            raise SchemaError("range", f"frames[{k}]: bus {bus}, id 0x{can_id:X}, flags {flags}")
        if len(data) not in FD_LENGTHS:
            allowed = "0 .. 8, 12, 16, 20, 24, 32, 48, 64"
            raise SchemaError("range", f"frames[{k}]: {len(data)} data bytes, allowed: {allowed}")
        frames.append(Frame(can_id, data, flags, bus))
    return tuple(frames)


def numbers_of(value: Any, key: str) -> tuple[float, ...]:
    """A list of finite numbers."""
    if not isinstance(value, list) or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in value):
        raise SchemaError("type", f"key {key}: allowed: a list of numbers")
    if not all(map(math.isfinite, value)):
        raise SchemaError("not_finite", f"key {key}: allowed: finite numbers")
    return tuple(map(float, value))
