"""The control channel's server: a thread of its own between a ZeroMQ socket and the rig by name. real-time: no.

It meets the tick only in one transaction at a time, so clients that die, are slow, send garbage or flood cost
nothing there. Requests wait in queues of fixed length (the sender is held back when they are full), are answered one
after the other, at most RATE of them a second, and an answer nobody fetches is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import zmq

from torqueloop.core.errors import TorqueloopError
from torqueloop.hil.control.messages import (
    REASONS,
    REQUEST_BYTES,
    Request,
    RequestError,
    decode_request,
    encode_answer,
    encode_refusal,
)
from torqueloop.hil.link.sockets import POLL_SLICE_MS, BoundSocket, CurveKeys

#: requests a second at most: beyond, the next one waits
RATE = 500
#: requests and answers that wait per client
QUEUE = 16


class Served(Protocol):
    """What is served: a rig by name (hil/rig/rig_control.py). A method that refuses raises a RequestError."""

    def hello(self) -> dict[str, Any]: ...
    def describe(self) -> list[dict[str, Any]]: ...
    def get(self, names: tuple[str, ...]) -> dict[str, Any]: ...
    def set(self, values: Mapping[str, float], at: int) -> int: ...
    def override(self, values: Mapping[str, float], at: int) -> int: ...
    def release(self, names: tuple[str, ...], at: int) -> int: ...
    def status(self) -> dict[str, Any]: ...
    def arm(self) -> str: ...
    def disarm(self) -> str: ...
    def safe(self) -> bool: ...
    def stop(self) -> str: ...
    def checkpoint(self, name: str, at: int) -> dict[str, Any]: ...
    def restore(self, name: str, at: int) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...


class ControlServer(threading.Thread):
    """Serves one rig until stop(). `endpoint` holds the port that was taken."""

    def __init__(self, rig: Served, endpoint: str, curve: CurveKeys | None = None) -> None:
        super().__init__(name="control", daemon=True)
        self.rig = rig
        self._socket = BoundSocket(zmq.ROUTER, endpoint, curve, queue=QUEUE, max_bytes=2 * REQUEST_BYTES)
        self.endpoint = self._socket.endpoint
        self._stop_asked = threading.Event()
        self.requests = self.answered = self.delayed = self.not_sent = 0
        self.rejected = dict.fromkeys(REASONS, 0)
        self.failure: str | None = None
        self._kinds: dict[str, Callable[[Request], dict[str, Any]]] = {
            "hello": lambda _: rig.hello(),
            "list": lambda _: {"names": rig.describe()},
            "get": lambda r: rig.get(r.names),
            "set": lambda r: {"tick": rig.set(r.values, r.at)},
            "override": lambda r: {"tick": rig.override(r.values, r.at)},
            "release": lambda r: {"tick": rig.release(r.names, r.at)},
            "status": lambda _: {**rig.status(), "channel": self.stats()},
            "arm": lambda _: {"state": rig.arm()},
            "disarm": lambda _: {"state": rig.disarm()},
            "safe": lambda _: {"first": rig.safe()},
            "stop": lambda _: {"state": rig.stop()},
            "checkpoint": lambda r: rig.checkpoint(r.name, r.at),
            "restore": lambda r: rig.restore(r.name, r.at),
        }

    # --- thread -----------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Until stop(): one request after the other."""
        next_free = time.monotonic()
        try:
            while not self._stop_asked.is_set():
                if not self._socket.raw.poll(POLL_SLICE_MS):
                    continue
                now = time.monotonic()
                if now < next_free:
                    self.delayed += 1
                    time.sleep(next_free - now)
                next_free = max(next_free, now) + 1.0 / RATE
                self._serve()
        except Exception as error:  # a control channel that dies costs the channel, not the run
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self._socket.close()

    def _serve(self) -> None:
        try:
            parts = self._socket.raw.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return
        self.requests += 1
        try:
            # client, empty delimiter, message: what a REQ socket sends
            if len(parts) != 3 or parts[1]:
                raise RequestError("malformed", f"message of {len(parts) - 1} parts, allowed: one (REQ socket)")
            request = decode_request(parts[2])
            try:
                answer = encode_answer(request.id, self._kinds[request.kind](request))
            except (RequestError, TorqueloopError, OSError) as error:
                reason = error.reason if isinstance(error, RequestError) else "refused"
                raise RequestError(reason, str(error), request.id) from None
            self.answered += 1
        except RequestError as error:
            self.rejected[error.reason] += 1
            answer = encode_refusal(error)
        try:
            self._socket.raw.send_multipart([parts[0], b"", answer], zmq.DONTWAIT)
        except zmq.ZMQError:
            self.not_sent += 1

    # --- session ----------------------------------------------------------------------------------------------------
    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread, close the socket."""
        self._stop_asked.set()
        if self.is_alive():
            self.join(timeout_s)
        else:
            self._socket.close()

    def stats(self) -> dict[str, Any]:
        """Counts for the report and for `status`."""
        return {
            "endpoint": self.endpoint,
            "requests": self.requests,
            "answered": self.answered,
            "rejected": {reason: n for reason, n in self.rejected.items() if n},
            "delayed": self.delayed,
            "not_sent": self.not_sent,
            "failure": self.failure,
        }
