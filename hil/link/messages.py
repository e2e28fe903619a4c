"""Messages between the rig and a vehicle model: msgpack maps with a strict schema.

rig -> vehicle  {v, kind:"step",  step, t, F_wheel, I_wheel, speed, s, brake, carrier?}
vehicle -> rig  {v, kind:"state", step, own_step, t, speed, a, F, F_hold, grade, carrier?}
either way      {v, kind:"bye", reason}

Signs and units (SI): F_wheel [N] tractive force at the tyre contact, + drives the car forward, mean over the interval
since the message before; I_wheel [N s] the same, integrated from the start of the run (so a lost message loses
nothing); F [N] air drag and grade, + drives forward; F_hold [N] >= 0 what rolling resistance and brakes can hold;
grade [rad] + uphill; brake 0..1.

Nothing is unpickled or evaluated. A message is taken whole or not at all: a wrong version, kind, type, an unknown or
missing key, a number that is not finite or out of its range, or more than MAX_BYTES raises a SchemaError that names
the key; the cause is counted by its `reason`.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import msgpack

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.link.form import Form

#: schema version, key `v` of every message
VERSION = 1
#: a message longer than this is refused before it is decoded
MAX_BYTES = 4096
#: 2**53: a larger step number would not survive as a double in a latest-value slot
MAX_STEP = 2**53
#: doubles of the slot rig -> vehicle, in this order (written by the tick)
RIG_SLOT = ("step", "t", "F_wheel", "I_wheel", "speed", "s", "brake")
#: doubles of the slot vehicle -> rig, in this order (written by RigLink)
VEHICLE_SLOT = ("step", "own_step", "t", "speed", "a", "F", "F_hold", "grade")
#: reasons a message is refused, in the order they are checked
REJECT_REASONS = ("oversized", "malformed", "version", "kind", "keys", "type", "not_finite", "range")


class SchemaError(ValueError):
    """A message that does not follow the schema; `reason` is one of REJECT_REASONS."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True)
class StepMessage:
    """What the rig sends to the vehicle model after a tick."""

    step: int
    t: float
    F_wheel: float
    I_wheel: float
    speed: float
    s: float
    brake: float
    #: moments on bodies that carry drivelines (hil/link/carriers.py): name -> list of numbers
    carrier: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class StateMessage:
    """What the vehicle model answers; `step` is the newest rig step it has used."""

    step: int
    own_step: int
    t: float
    speed: float
    a: float
    F: float
    F_hold: float
    grade: float
    #: motion of the body that carries the powertrain (angular velocity, acceleration ...): name -> list of numbers
    carrier: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class ByeMessage:
    """The sender leaves on purpose; `reason` says why (shown in the report)."""

    reason: str


#: allowed range per key: outside = refused. Wide on purpose: they catch wrong units and nonsense, not hard driving.
STEP_KEYS: dict[str, tuple[float, float]] = {
    "t": (0.0, 1e7),
    "F_wheel": (-1e6, 1e6),
    "I_wheel": (-1e12, 1e12),
    "speed": (-200.0, 200.0),
    "s": (-1e8, 1e8),
    "brake": (0.0, 1.0),
}
STATE_KEYS: dict[str, tuple[float, float]] = {
    "t": (0.0, 1e7),
    "speed": (-200.0, 200.0),
    "a": (-1e3, 1e3),
    "F": (-1e6, 1e6),
    "F_hold": (0.0, 1e6),
    "grade": (-1.5, 1.5),
}


def _form(made: type[Any], kind: str, whole: tuple[str, ...], numbers: dict[str, tuple[float, float]]) -> Form[Any]:
    """A message as it nearly always is: keys in our order, no bodies that carry drivelines."""
    head = msgpack.packb({"v": VERSION, "kind": kind})[1:]
    fields = [*((key, None, MAX_STEP - 1) for key in whole), *((key, *limits) for key, limits in numbers.items())]
    return Form(made, head, 2, fields)


#: forms of the two, for who packs and unpacks them without Python (cython_kernels/link/lockstep.pyx)
STEP_FORM: Form[StepMessage] = _form(StepMessage, "step", ("step",), STEP_KEYS)
STATE_FORM: Form[StateMessage] = _form(StateMessage, "state", ("step", "own_step"), STATE_KEYS)
_STEP_ALL = {"v", "kind", "step", *STEP_KEYS}
_STATE_ALL = {"v", "kind", "step", "own_step", *STATE_KEYS}


def encode(message: StepMessage | StateMessage | ByeMessage) -> bytes:
    """Pack a message. real-time: no (allocates)."""
    if isinstance(message, ByeMessage):
        return _packed({"v": VERSION, "kind": "bye", "reason": message.reason[:200]})
    form: Form[Any] = STEP_FORM if isinstance(message, StepMessage) else STATE_FORM
    return (None if message.carrier else form.pack(message)) or _packed(_body(message))


def _body(message: StepMessage | StateMessage) -> dict[str, Any]:
    if isinstance(message, StepMessage):
        body: dict[str, Any] = {"v": VERSION, "kind": "step", "step": message.step}
        keys = STEP_KEYS
    else:
        body = {"v": VERSION, "kind": "state", "step": message.step, "own_step": message.own_step}
        keys = STATE_KEYS
    body |= {key: float(getattr(message, key)) for key in keys}
    return body | ({"carrier": message.carrier} if message.carrier else {})


def _packed(body: dict[str, Any]) -> bytes:
    return bytes(msgpack.packb(body, use_bin_type=True))


def decode(data: bytes) -> StepMessage | StateMessage | ByeMessage:
    """Unpack and check a message; SchemaError with reason and key if anything is not as agreed, whatever it is."""
    try:
        # what is right is recognised as a whole; what is not is looked at key by key, to say what is wrong
        return STATE_FORM.unpack(data) or STEP_FORM.unpack(data) or _decode(data)
    except SchemaError:
        raise
    except Exception as error:  # a mistake of ours must not cost the thread that serves the peer
        raise SchemaError("malformed", f"{type(error).__name__}: {error}") from error


def unpack_map(data: bytes, limit: int, **most: int) -> dict[str, Any]:
    """A message as a map with texts as keys, or SchemaError. limit: most bytes; most: limits of msgpack.unpackb."""
    if len(data) > limit:
        raise SchemaError("oversized", f"message of {len(data)} bytes, allowed: at most {limit}")
    try:
        body = msgpack.unpackb(data, raw=False, strict_map_key=True, max_ext_len=0, **most)
    except Exception as error:  # msgpack raises many kinds (ExtraData, RecursionError, UnicodeDecodeError ...)
        raise SchemaError("malformed", f"not a msgpack map: {type(error).__name__}: {error}") from None
    if not isinstance(body, dict) or not all(type(key) is str for key in body):
        raise SchemaError("malformed", "not a msgpack map with texts as keys")
    return body


def _decode(data: bytes) -> StepMessage | StateMessage | ByeMessage:
    body = unpack_map(data, MAX_BYTES, max_str_len=256, max_bin_len=0, max_array_len=64, max_map_len=32)
    if body.get("v") != VERSION or isinstance(body.get("v"), bool):
        raise SchemaError("version", f"key v = {body.get('v')!r}, allowed: {VERSION}")
    kind = body.get("kind")
    if kind == "step":
        _check_keys(body, _STEP_ALL, {"carrier"})
        numbers = {key: _number(body[key], key, *limits) for key, limits in STEP_KEYS.items()}
        return StepMessage(step=_step(body, "step", 0), carrier=_carrier(body.get("carrier")), **numbers)
    if kind == "state":
        _check_keys(body, _STATE_ALL, {"carrier"})
        numbers = {key: _number(body[key], key, *limits) for key, limits in STATE_KEYS.items()}
        return StateMessage(
            step=_step(body, "step", -1),
            own_step=_step(body, "own_step", 0),
            carrier=_carrier(body.get("carrier")),
            **numbers,
        )
    if kind == "bye":
        _check_keys(body, {"v", "kind", "reason"}, set())
        if not isinstance(body["reason"], str):
            raise SchemaError("type", f"key reason is {type(body['reason']).__name__}, allowed: text")
        return ByeMessage(reason=body["reason"])
    raise SchemaError("kind", f"key kind = {kind!r}, allowed: 'step', 'state', 'bye'")


def _check_keys(body: dict[str, Any], required: set[str], optional: set[str]) -> None:
    missing = sorted(required - body.keys())
    unknown = sorted(body.keys() - required - optional)
    if missing or unknown:
        parts = [f"missing key(s) {', '.join(missing)}"] if missing else []
        parts += [f"unknown key(s) {', '.join(unknown)}"] if unknown else []
        raise SchemaError("keys", f"message {body.get('kind')!r}: {'; '.join(parts)}")


def _step(body: dict[str, Any], key: str, lowest: int) -> int:
    value = body[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise SchemaError("type", f"key {key} = {value!r} is {type(value).__name__}, allowed: an integer")
    if not lowest <= value < MAX_STEP:
        raise SchemaError("range", f"key {key} = {value}, allowed: {lowest} .. 2^53 - 1")
    return value


def _number(value: Any, key: str, low: float, high: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SchemaError("type", f"key {key} is {type(value).__name__}, allowed: a number")
    number = float(value)
    if low <= number <= high:
        return number
    if not math.isfinite(number):
        raise SchemaError("not_finite", f"key {key} = {number}, allowed: a finite number")
    raise SchemaError("range", f"key {key} = {number:g}, allowed: {low:g} .. {high:g}")


def _carrier(value: Any) -> dict[str, list[float]]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > 16:
        raise SchemaError("type", "key carrier: allowed: a map of at most 16 names to lists of numbers")
    carrier: dict[str, list[float]] = {}
    for name, numbers in value.items():
        if type(name) is not str:
            raise SchemaError("type", "key carrier: allowed: texts as names")
        if not isinstance(numbers, list) or len(numbers) > 16:
            raise SchemaError("type", f"key carrier.{name}: allowed: a list of at most 16 numbers")
        key = f"carrier.{name}"
        carrier[name] = [_number(x, key, -1e9, 1e9) for x in numbers]
    return carrier
