"""Messages of the control channel: msgpack maps with a strict schema, one request, one answer.

    request  {v, id, kind, ...}            kind and its keys: REQUESTS
    answer   {v, id, ok: true, ...}        or  {v, id, ok: false, reason, error}

`id` is chosen by the client and comes back. Nothing is unpickled or evaluated. A request is taken whole or not at all:
a wrong version, kind or type, an unknown or missing key, a number that is not finite, more than REQUEST_BYTES: the
answer names it, `reason` (one of REASONS) is counted.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import msgpack

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.link.messages import SchemaError, unpack_map

#: schema version, key `v` of every message
VERSION = 1
#: a longer request is refused before it is decoded
REQUEST_BYTES = 32768
#: a longer answer is refused by the client
ANSWER_BYTES = 4_000_000
#: names in one request
NAMES_MAX = 1024
#: why a request is refused; the last ones when it is well formed but cannot be done
REASONS = ("oversized", "malformed", "version", "kind", "keys", "type", "not_finite", "refused")
#: 2**53: larger tick numbers would not survive as a double
TICK_MAX = 2**53

#: kind -> (keys that must be there, keys that may be)
REQUESTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "hello": (frozenset(), frozenset()),
    "list": (frozenset(), frozenset()),
    "get": (frozenset({"names"}), frozenset()),
    "set": (frozenset({"values"}), frozenset({"at"})),
    "override": (frozenset({"values"}), frozenset({"at"})),
    "release": (frozenset({"names"}), frozenset({"at"})),
    "status": (frozenset(), frozenset()),
    "stats": (frozenset(), frozenset()),
    "layout": (frozenset(), frozenset()),
    "arm": (frozenset(), frozenset()),
    "disarm": (frozenset(), frozenset()),
    "safe": (frozenset(), frozenset()),
    "stop": (frozenset(), frozenset()),
    "checkpoint": (frozenset(), frozenset({"name", "at"})),
    "restore": (frozenset({"name"}), frozenset({"at"})),
    "record": (frozenset(), frozenset({"name", "names"})),
    "stop_recording": (frozenset({"name"}), frozenset()),
}


class RequestError(ValueError):
    """A request that does not follow the schema, or cannot be done; `reason` is one of REASONS."""

    def __init__(self, reason: str, text: str, request_id: int = 0) -> None:
        super().__init__(text)
        self.reason = reason
        #: of the request, 0 when it could not be read
        self.request_id = request_id


@dataclass(frozen=True)
class Request:
    """A request that follows the schema."""

    kind: str
    id: int = 0
    names: tuple[str, ...] = ()
    values: dict[str, float] = field(default_factory=dict)
    #: of a checkpoint or a recording
    name: str = ""
    #: simulated tick to wait for; below 0: the next
    at: int = -1


def encode_request(request: Request) -> bytes:
    """Pack a request with the keys its kind has."""
    required, optional = REQUESTS[request.kind]
    body: dict[str, Any] = {"v": VERSION, "id": request.id, "kind": request.kind}
    given = {"names": list(request.names), "values": dict(request.values), "name": request.name, "at": request.at}
    body.update((key, given[key]) for key in required)
    body.update((key, given[key]) for key in optional if given[key] not in ("", -1, []))
    return bytes(msgpack.packb(body, use_bin_type=True))


def decode_request(data: bytes) -> Request:
    """Unpack and check a request; RequestError with reason and key if anything is not as agreed."""
    body = _unpack(data, REQUEST_BYTES, NAMES_MAX)
    number: Any = body.get("id")
    if not _whole(number) or not 0 <= number < TICK_MAX:
        raise RequestError("type", f"key id = {number!r}, allowed: an integer 0 .. 2^53 - 1")
    try:
        return _checked(body, number)
    except RequestError as error:
        error.request_id = number
        raise


def _checked(body: dict[str, Any], number: int) -> Request:
    if not _whole(body.get("v")) or body["v"] != VERSION:
        raise RequestError("version", f"key v = {body.get('v')!r}, allowed: {VERSION}")
    kind = body.get("kind")
    if not isinstance(kind, str) or kind not in REQUESTS:
        raise RequestError("kind", f"key kind = {_short(kind)}, allowed: {', '.join(REQUESTS)}")
    required, optional = REQUESTS[kind]
    keys = body.keys() - {"v", "id", "kind"}
    missing, unknown = sorted(required - keys), sorted(keys - required - optional)
    if missing or unknown:
        parts = [f"missing key(s) {', '.join(missing)}"] if missing else []
        parts += [f"unknown key(s) {', '.join(_short(k) for k in unknown)}"] if unknown else []
        raise RequestError("keys", f"request {kind!r}: {'; '.join(parts)}")
    name, at = body.get("name", ""), body.get("at", -1)
    if not isinstance(name, str):
        raise RequestError("type", f"key name is {type(name).__name__}, allowed: text")
    if not _whole(at) or not -1 <= at < TICK_MAX:
        raise RequestError("type", f"key at = {_short(at)}, allowed: a simulated tick, or -1 for the next")
    return Request(kind, number, _names(body.get("names", [])), _values(body.get("values", {})), name, at)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise RequestError("type", "key names: allowed: a list of names")
    return tuple(value)


def _values(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise RequestError("type", "key values: allowed: a map of names to numbers")
    numbers = {}
    for name, x in value.items():
        if not isinstance(x, int | float) or isinstance(x, bool):
            raise RequestError("type", f"{name}: {type(x).__name__}, allowed: a number")
        if not math.isfinite(x):
            raise RequestError("not_finite", f"{name} = {x}, allowed: a finite number")
        numbers[name] = float(x)
    return numbers


def encode_answer(request_id: int, content: dict[str, Any]) -> bytes:
    """Pack an answer to a request that was done."""
    return bytes(msgpack.packb({"v": VERSION, "id": request_id, "ok": True, **content}, use_bin_type=True))


def encode_refusal(error: RequestError) -> bytes:
    """Pack the answer to a request that was refused."""
    body = {"v": VERSION, "id": error.request_id, "ok": False, "reason": error.reason, "error": str(error)[:2000]}
    return bytes(msgpack.packb(body, use_bin_type=True))


def decode_answer(data: bytes, request_id: int) -> dict[str, Any]:
    """Content of an answer; RequestError if the request was refused or the answer is none to it."""
    body = _unpack(data, ANSWER_BYTES, 100_000)
    if body.get("v") != VERSION or not isinstance(body.get("ok"), bool):
        raise RequestError("version", f"answer with v = {_short(body.get('v'))}, allowed: {VERSION}")
    if body["ok"] is False:
        raise RequestError(str(body.get("reason", "refused")), str(body.get("error", "")), request_id)
    if body.get("id") != request_id:
        raise RequestError("malformed", f"answer to request {_short(body.get('id'))}, asked: {request_id}")
    return {key: value for key, value in body.items() if key not in ("v", "id", "ok")}


def _unpack(data: bytes, limit: int, items: int) -> dict[str, Any]:
    try:
        return unpack_map(data, limit, max_str_len=4096, max_bin_len=0, max_array_len=items, max_map_len=items)
    except SchemaError as error:
        raise RequestError(error.reason, str(error)) from None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
