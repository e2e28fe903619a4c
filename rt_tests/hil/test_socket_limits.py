"""Limits of SECURITY.md: requests a second, slow requests that wait, pages that are open; a test of each."""

import queue
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
import zmq
from waiting import PATIENCE_MS, PATIENCE_S

from torqueloop.hil.control import server as control
from torqueloop.hil.control.messages import Request, decode_answer, encode_request
from torqueloop.hil.control.server import QUEUE, ControlServer
from torqueloop.hil.watch.server import BROWSERS_MAX, WatchServer
from torqueloop.hil.watch.source import Source


class Rig:
    """Answers at once; a checkpoint waits until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()

    def hello(self) -> dict[str, Any]:
        return {"rig": "stub"}

    def checkpoint(self, name: str, at: int) -> dict[str, Any]:
        self.may.wait(PATIENCE_S)
        return {"tick": 1}


@pytest.fixture
def served() -> Iterator[tuple[Rig, ControlServer, zmq.Socket[bytes]]]:
    rig = Rig()
    server = ControlServer(cast(Any, rig), "tcp://127.0.0.1:0")
    server.start()
    client: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    client.connect(server.endpoint)
    yield rig, server, client
    client.close(0)
    rig.may.set()
    server.stop()


def ask(client: zmq.Socket[bytes], kind: str, number: int, **more: Any) -> None:
    client.send_multipart([b"", encode_request(Request(kind, number, **more))])


def answer(client: zmq.Socket[bytes]) -> bytes:
    assert client.poll(PATIENCE_MS), "no answer"
    return client.recv_multipart()[1]


def test_a_request_that_comes_too_soon_is_delayed(served, monkeypatch: pytest.MonkeyPatch) -> None:
    _, server, client = served
    monkeypatch.setattr(control, "RATE", 0.5)
    for number in (1, 2):
        ask(client, "hello", number)
        decode_answer(answer(client), number)
        # longer than the pause that each answer is followed by, shorter than 1 / RATE
        time.sleep(0.1)
    assert server.delayed == 1


def test_slow_requests_that_wait_are_bounded(served) -> None:
    rig, server, client = served
    for number in range(QUEUE + 1):
        ask(client, "checkpoint", number, name=f"c{number}")
    # the first to be answered is the one too many
    with pytest.raises(Exception, match=f"{QUEUE} requests wait for a tick already"):
        decode_answer(answer(client), QUEUE)
    rig.may.set()
    for number in range(QUEUE):
        assert decode_answer(answer(client), number)["tick"] == 1


def test_pages_that_are_open_are_bounded() -> None:
    class Quiet:
        """A rig whose page shows nothing."""

        def subscribe(self) -> Any:
            return queue.Queue()

        def leave(self, _: Any) -> None: ...

    server = WatchServer(cast(Source, Quiet()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = []
    try:
        for k in range(BROWSERS_MAX + 1):
            page = socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE_S)
            pages.append(page)
            page.sendall(
                f"GET /events?token={server.token} HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
            )
            status = page.recv(12)
            assert status == (b"HTTP/1.1 200" if k < BROWSERS_MAX else b"HTTP/1.1 503"), k
    finally:
        for page in pages:
            page.close()
        server.closing = True
        server.shutdown()
        server.server_close()
