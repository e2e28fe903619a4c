"""A bound socket that lives in a process of its own, so that nothing a client does to it reaches the rig.

    clients  <-- ROUTER or XPUB, hil/link/link_socket.py -->  front process  <-- PAIR over a private file -->  rig

libzmq ends its process when an assertion of its own fails, and it stores what clients send. In the front process either
costs no more than the connections to the clients: the rig starts the process again at the same endpoint, and counts how
often it did so. The process ends by itself when more than CONNECTIONS_MAX clients are connected, which drops them all;
well-behaved clients connect again. It also ends when clients make it need more than MEMORY_BYTES.

The first part of each message between the two says what the other parts are (the constants below).
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import zmq

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.link.child import Child, die_with
from torqueloop.hil.link.endpoints import CurveKeys, PeerError, check_endpoint
from torqueloop.hil.link.link_socket import POLL_SLICE_MS, LinkSocket

#: what the first part of a message says of the others: a message from or to clients; the endpoint that was bound; why
#: it cannot be bound; the rig asks the process to end
MESSAGE, BOUND, REFUSED, END = b"m", b"b", b"r", b"e"
#: connections at most
CONNECTIONS_MAX = 64
#: exit status: more were connected
CROWDED = 75
#: messages to a client that may wait, at least: a burst of answers to a full queue is not dropped
ANSWERS = 64
#: a silent client is asked this often whether it is still there [ms]
HEARTBEAT_MS = 2000
#: data that the front process may hold: 40 times what it needs at the start [bytes]
MEMORY_BYTES = 512 << 20
#: the process has said within this time what it has bound [s]
START_S = 30.0
#: the process is not started again in this run after so many unexpected ends
ENDS_MAX = 20
#: pause before the process is started again [s]
PAUSE_S = 1.0


@dataclass(frozen=True)
class Binding:
    """What is bound: ZeroMQ's kind of socket, endpoint, keys, messages that wait at most, longest message [bytes]."""

    kind: int
    endpoint: str
    curve: CurveKeys | None
    queue: int
    max_bytes: int

    def to_json(self) -> str:
        """For the command line of the process."""
        keys = None if self.curve is None else [str(self.curve.own_secret), str(self.curve.clients)]
        return json.dumps([self.kind, self.endpoint, keys, self.queue, self.max_bytes])

    @classmethod
    def from_json(cls, text: str) -> Binding:
        """In the process."""
        kind, endpoint, keys, queue, max_bytes = json.loads(text)
        curve = None if keys is None else CurveKeys(Path(keys[0]), clients=Path(keys[1]))
        return cls(kind, endpoint, curve, queue, max_bytes)


class FrontSocket:
    """The rig's end. One thread uses it. real-time: no."""

    def __init__(
        self, kind: int, endpoint: str, curve: CurveKeys | None, queue: int = 1024, max_bytes: int = 65536
    ) -> None:
        endpoint = check_endpoint(endpoint, curve)
        if endpoint.startswith("inproc:"):
            raise PeerError(
                f"endpoint {endpoint!r}: a process of its own binds it; allowed: tcp://host:port, ipc://path"
            )
        self._binding = Binding(kind, endpoint, curve, queue, max_bytes)
        self._context: zmq.Context[Any] = zmq.Context()
        # readable for this user only
        self._folder = tempfile.TemporaryDirectory(prefix="torqueloop-front-")
        #: times it ended because too many clients were connected
        self.crowded: int = 0
        #: times it ended for another reason
        self.ends: int = 0
        #: how it ended the last time; "": it has not
        self.last_end: str = ""
        #: it is started again at this time [s]; None: it runs
        self._due_s: float | None = None
        #: times it was started
        self.starts: int = 0
        try:
            self._start()
        except BaseException:
            self._tear_down()
            raise
        #: where clients connect, with the port that was taken
        self.endpoint: str = self._binding.endpoint

    def wait(self, timeout_ms: int) -> bool:
        """True when a message is there. Starts the process again when it has ended."""
        if self._inner.poll(timeout_ms):
            return True
        if self._due_s is None:
            if (how := self._child.ended()) is not None:
                self._ended(how, self._child.process.returncode == CROWDED)
        elif time.monotonic() > self._due_s and self.ends <= ENDS_MAX:
            try:
                self._start()
            except PeerError as error:
                self._ended(str(error), False)
        return False

    def _ended(self, how: str, crowded: bool) -> None:
        self._due_s = time.monotonic() + PAUSE_S
        self._child.end()
        if crowded:
            self.crowded += 1
        else:
            self.ends += 1
            self.last_end = how if self.ends <= ENDS_MAX else f"{how}; it is not started again in this run"

    def receive(self) -> list[bytes] | None:
        """The parts of the next message from a client; None: there is none."""
        try:
            return self._inner.recv_multipart(zmq.DONTWAIT)[1:]
        except zmq.Again:
            return None

    def send(self, parts: list[bytes]) -> bool:
        """To the clients; False: the process does not take it."""
        try:
            self._inner.send_multipart([MESSAGE, *parts], zmq.DONTWAIT)
        except zmq.ZMQError:
            return False
        return True

    def close(self) -> None:
        """What was sent goes out, then the process ends."""
        if self._context.closed:
            return
        asked = self._due_s is None
        if asked:
            with suppress(zmq.ZMQError):
                self._inner.send_multipart([END], zmq.DONTWAIT)
        self._child.end(by_itself_s=2.0 if asked else 0.0)
        self._tear_down()

    def _start(self) -> None:
        """Start the process and wait until it has bound; PeerError with the reason if it cannot."""
        if self.starts:
            self._inner.close(0)
        self.starts += 1
        inner = f"ipc://{self._folder.name}/{self.starts}"
        self._inner: zmq.Socket[bytes] = self._context.socket(zmq.PAIR)
        self._inner.setsockopt(zmq.SNDHWM, max(ANSWERS, self._binding.queue))
        self._inner.setsockopt(zmq.RCVHWM, self._binding.queue)
        self._inner.bind(inner)
        arguments = ["--binding", self._binding.to_json(), "--inner", inner]
        self._child = Child("torqueloop.hil.link.front", arguments, Path(self._folder.name) / "log")
        deadline = time.monotonic() + START_S
        while not self._inner.poll(POLL_SLICE_MS):
            how = self._child.ended()
            if how is None and time.monotonic() > deadline:
                how = f"has bound nothing within {START_S:g} s"
            if how is not None:
                self._child.end()
                raise PeerError(f"endpoint {self._binding.endpoint}: its process {how}")
        what, text = self._inner.recv_multipart()
        if what == REFUSED:
            self._child.end()
            raise PeerError(text.decode())
        # the same port when it starts again
        self._binding = replace(self._binding, endpoint=text.decode())
        self._due_s = None

    def _tear_down(self) -> None:
        self._context.destroy(0)
        self._folder.cleanup()


def serve(binding: Binding, inner: zmq.Socket[bytes]) -> int:
    """Pass messages on in both directions until the rig sends END; the exit status."""
    try:
        outer = LinkSocket(binding.kind, binding.endpoint, True, binding.curve, None, binding.queue, binding.max_bytes)
    except PeerError as error:
        inner.send_multipart([REFUSED, str(error).encode()])
        return 0
    raw = outer.raw
    raw.setsockopt(zmq.SNDHWM, max(ANSWERS, binding.queue))
    raw.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    raw.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2 * HEARTBEAT_MS)
    events = raw.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
    inner.send_multipart([BOUND, outer.endpoint.encode()])
    poller = zmq.Poller()
    for socket in (raw, events, inner):
        poller.register(socket, zmq.POLLIN)
    connected, taking = 0, True
    try:
        while True:
            ready = dict(poller.poll(None if taking else POLL_SLICE_MS))
            if events in ready:
                # the number of the event is in front, little endian
                event = int.from_bytes(events.recv_multipart()[0][:2], "little")
                connected = max(0, connected + (1 if event == zmq.EVENT_ACCEPTED else -1))
                if connected > CONNECTIONS_MAX:
                    return CROWDED
            if inner in ready:
                what, *parts = inner.recv_multipart()
                if what == END:
                    return 0
                with suppress(zmq.ZMQError):  # the client has gone, or does not read
                    raw.send_multipart(parts, zmq.DONTWAIT)
            # while the rig takes nothing, messages stay in ZeroMQ's queue, which is bounded
            taking = bool(inner.poll(0, zmq.POLLOUT))
            poller.register(raw, zmq.POLLIN if taking else 0)
            if taking and raw in ready:
                inner.send_multipart([MESSAGE, *raw.recv_multipart()])
    finally:
        raw.disable_monitor()
        outer.close()


def main() -> int:
    """Entry of the process."""
    parser = argparse.ArgumentParser(prog="torqueloop.hil.link.front")
    parser.add_argument("--binding", required=True)
    parser.add_argument("--inner", required=True)
    parser.add_argument("--parent", type=int, required=True)
    given = parser.parse_args()
    die_with(given.parent)
    # Ctrl-C is for the rig, which then ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    context: zmq.Context[Any] = zmq.Context()
    inner: zmq.Socket[bytes] = context.socket(zmq.PAIR)
    binding = Binding.from_json(given.binding)
    inner.setsockopt(zmq.LINGER, 1000)
    inner.setsockopt(zmq.SNDHWM, binding.queue)
    inner.connect(given.inner)
    try:
        return serve(binding, inner)
    finally:
        inner.close()
        context.term()
        zmq.Context.instance().term()


if __name__ == "__main__":
    sys.exit(main())
