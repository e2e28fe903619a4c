"""The control channel's server: a thread of its own between a ZeroMQ socket and the rig by name. real-time: no.

It meets the tick only in one transaction at a time, so clients that die, are slow, send garbage or flood cost
nothing there. Requests wait in queues of fixed length (the sender is held back when they are full), at most RATE of
them a second are served, in at most half of the time, and an answer that no client fetches is dropped. What waits for
a tick or compiles a model does so in a thread of its own, so that `safe` and `stop` never stand behind it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import zmq

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.control.messages import (
    REASONS,
    REQUEST_BYTES,
    Request,
    RequestError,
    decode_request,
    encode_answer,
    encode_refusal,
)
from torqueloop.hil.link.endpoints import CurveKeys
from torqueloop.hil.link.front import FrontSocket
from torqueloop.hil.link.link_socket import POLL_SLICE_MS
from torqueloop.hil.results.links import ControlStats

#: requests a second at most: beyond, the next one waits
RATE = 500
#: requests and answers that wait per client, and requests of all clients that wait for the thread of slow ones
QUEUE = 16
#: a slow request that does not end is given up after this [s]
GIVE_UP_S = 3.0
#: kinds that wait for a tick, or for the recorder
SLOW = frozenset({"set", "override", "release", "checkpoint", "restore", "record", "stop_recording"})


class Served(Protocol):
    """What is served: a rig by name (hil/rig/online/rig_control.py). A method that refuses raises a RequestError."""

    def hello(self) -> dict[str, Any]: ...
    def describe(self) -> list[dict[str, Any]]: ...
    def get(self, names: tuple[str, ...]) -> dict[str, Any]: ...
    def set(self, values: Mapping[str, float], at: int) -> int: ...
    def override(self, values: Mapping[str, float], at: int) -> int: ...
    def release(self, names: tuple[str, ...], at: int) -> int: ...
    def status(self) -> dict[str, Any]: ...
    def run_stats(self) -> dict[str, Any]: ...
    def layout(self) -> dict[str, Any]: ...
    def arm(self) -> str: ...
    def disarm(self) -> str: ...
    def safe(self) -> bool: ...
    def stop(self) -> str: ...
    def checkpoint(self, name: str, at: int) -> dict[str, Any]: ...
    def restore(self, name: str, at: int) -> dict[str, Any]: ...
    def record(self, name: str, patterns: tuple[str, ...]) -> dict[str, Any]: ...
    def stop_recording(self, name: str) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...


class ControlServer(threading.Thread):
    """Serves one rig until stop(). `endpoint` holds the port that was taken."""

    def __init__(self, rig: Served, endpoint: str, curve: CurveKeys | None = None) -> None:
        super().__init__(name="control", daemon=True)
        self.rig = rig
        self._socket = FrontSocket(zmq.ROUTER, endpoint, curve, queue=QUEUE, max_bytes=2 * REQUEST_BYTES)
        self.endpoint: Any = self._socket.endpoint
        self._stop_asked = threading.Event()
        self.requests: int = 0
        self.answered: int = 0
        self.delayed: int = 0
        self.not_sent: int = 0
        self.rejected: dict[str, int] = dict.fromkeys(REASONS, 0)
        self.failure: str | None = None
        self._waiting: queue.Queue[tuple[bytes, Request] | None] = queue.Queue(QUEUE)
        self._done: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
        self._out = 0
        self._counting = threading.Lock()
        self._worker = threading.Thread(target=self._work, name="control-slow", daemon=True)
        self._kinds: dict[str, Callable[[Request], dict[str, Any]]] = {
            "hello": lambda _: rig.hello(),
            "list": lambda _: {"names": rig.describe()},
            "get": lambda r: rig.get(r.names),
            "set": lambda r: {"tick": rig.set(r.values, r.at)},
            "override": lambda r: {"tick": rig.override(r.values, r.at)},
            "release": lambda r: {"tick": rig.release(r.names, r.at)},
            "status": lambda _: {**rig.status(), "channel": asdict(self.stats())},
            "stats": lambda _: {"stats": rig.run_stats()},
            "layout": lambda _: {"layout": rig.layout()},
            "arm": lambda _: {"state": rig.arm()},
            "disarm": lambda _: {"state": rig.disarm()},
            "safe": lambda _: {"first": rig.safe()},
            "stop": lambda _: {"state": rig.stop()},
            "checkpoint": lambda r: rig.checkpoint(r.name, r.at),
            "restore": lambda r: rig.restore(r.name, r.at),
            "record": lambda r: rig.record(r.name, r.names),
            "stop_recording": lambda r: rig.stop_recording(r.name),
        }

    # --- thread -----------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Until stop(): one request after the other; answers of the slow ones as they come."""
        self._worker.start()
        next_free = time.monotonic()
        try:
            while not self._stop_asked.is_set():
                asked = self._socket.wait(1 if self._out else POLL_SLICE_MS)
                while not self._done.empty():
                    self._out -= 1
                    self._send(*self._done.get())
                if not asked:
                    continue
                begin = time.monotonic()
                if begin < next_free:
                    self.delayed += 1
                    time.sleep(next_free - begin)
                    begin = next_free
                try:
                    self._serve()
                except zmq.ZMQError:
                    raise
                except Exception as error:  # a mistake of ours: this request is lost, the channel is not
                    self.failure = f"{type(error).__name__}: {error}"
                next_free = begin + max(1.0 / RATE, 2.0 * (time.monotonic() - begin))
        except Exception as error:  # a control channel that dies costs the channel, not the run
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self._waiting.put(None)
            self._worker.join(GIVE_UP_S)
            while not self._done.empty():
                self._send(*self._done.get())
            self._socket.close()

    def _work(self) -> None:
        """The thread of slow requests."""
        while (item := self._waiting.get()) is not None:
            self._done.put((item[0], self._answer(item[1])))

    def _serve(self) -> None:
        parts = self._socket.receive()
        if parts is None:
            return
        self.requests += 1
        try:
            # client, empty delimiter, message: what a REQ socket sends
            if len(parts) != 3 or parts[1]:
                raise RequestError("malformed", f"message of {len(parts) - 1} parts, allowed: one (REQ socket)")
            request = decode_request(parts[2])
            if request.kind not in SLOW:
                self._send(parts[0], self._answer(request))
            elif self._out >= QUEUE:
                text = f"{self._out} requests wait for a tick already; allowed: at most {QUEUE}"
                raise RequestError("refused", text, request.id)
            else:
                self._out += 1
                self._waiting.put((parts[0], request))
        except RequestError as error:
            with self._counting:
                self.rejected[error.reason] += 1
            self._send(parts[0], encode_refusal(error))

    def _answer(self, request: Request) -> bytes:
        refused = ("", "")
        try:
            answer = encode_answer(request.id, self._kinds[request.kind](request))
        except RequestError as error:
            refused = (error.reason, str(error))
        except (TorqueloopError, OSError) as error:
            refused = ("refused", str(error))
        except Exception as error:  # a mistake of this program: said to the client, and the channel lives on
            self.failure = f"{type(error).__name__}: {error}"
            refused = ("refused", f"internal error: {self.failure}")
        with self._counting:
            if not refused[0]:
                self.answered += 1
                return answer
            self.rejected[refused[0]] += 1
        return encode_refusal(RequestError(*refused, request.id))

    def _send(self, client: bytes, answer: bytes) -> None:
        if not self._socket.send([client, b"", answer]):
            self.not_sent += 1

    # --- session ----------------------------------------------------------------------------------------------------
    def stop(self, timeout_s: float = 2.0 * GIVE_UP_S) -> None:
        """End the thread, close the socket."""
        self._stop_asked.set()
        if self.is_alive():
            self.join(timeout_s)
        else:
            self._socket.close()

    def stats(self) -> ControlStats:
        """Counts for the report and for `status`."""
        return ControlStats(
            self.endpoint,
            self.requests,
            self.answered,
            {reason: n for reason, n in self.rejected.items() if n},
            self.delayed,
            self.not_sent,
            self._socket.crowded,
            self._socket.ends,
            self._socket.last_end,
            self.failure,
        )
