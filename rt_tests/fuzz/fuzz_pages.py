"""Requests to the two pages: bytes as they come from a socket, into the handler of the server itself."""

from __future__ import annotations

import io
import queue
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import fuzz_runs
import mutate

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.serve import ReportServer
from torqueloop.hil.views.local_server import LocalServer
from torqueloop.hil.watch.server import WatchServer

#: stands for token and address, which are drawn anew for each server
TOKEN, HOST = b"TOKEN", b"HOST"
REQUESTS = (
    b"GET /?token=TOKEN HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /events?token=TOKEN HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST\r\n\r\n",
    b"GET /nothing?token=TOKEN HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /samples?token=TOKEN&from=0&to=0.02&name=engine.w HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /samples?token=TOKEN&from=1&to=0&name=x HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /?token=TOKEN HTTP/1.1\r\nHost: example.org\r\n\r\n",
    b"GET /?token=TOKEN HTTP/1.1\r\nHost: HOST\r\nOrigin: http://example.org\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
    *(
        b"POST /%s?token=TOKEN HTTP/1.1\r\nHost: HOST\r\nContent-Length: %d\r\n\r\n%s" % (path, len(body), body)
        for path, body in (
            (b"command", b'{"kind": "set", "values": {"car.m": 1600}}'),
            (b"command", b'{"kind": "get", "names": ["a", "b"], "name": "x"}'),
            (b"command", b'{"kind": "refuse"}'),
            (b"command", b'{"names": 1}'),
            (b"command", b'{"kind": "get", "names": [1]}'),
            (b"command", b'{"kind": "set", "values": {"a": "b"}}'),
            (b"other", b""),
        )
    ),
)  # fmt: skip


class _Source:
    """A rig behind the page of `watch` that takes every command."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def subscribe(self) -> queue.Queue[tuple[str, bytes]]:
        events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        events.put(("values", b"{}"))
        return events

    def leave(self, events: object) -> None:
        """Nothing is kept."""

    def command(self, kind: str, names: tuple[str, ...], values: Mapping[str, float], name: str) -> dict[str, Any]:
        """What a rig refuses is an error of torqueloop."""
        if kind == "refuse":
            raise ConfigError("refused", value=name)
        self.taken.append(kind)
        return {}


class _Socket:
    """A connection that brings some bytes and then ends."""

    def __init__(self, data: bytes, server: LocalServer) -> None:
        self.data, self.server, self.sent = data, server, bytearray()

    def settimeout(self, seconds: float | None) -> None:
        """Nothing is waited for."""

    def makefile(self, mode: str, size: int = -1) -> io.BytesIO:
        """What is read of it."""
        return io.BytesIO(self.data)

    def sendall(self, data: bytes) -> None:
        """The browser goes away behind the first event."""
        if data.startswith(b"event:"):
            raise ConnectionResetError
        self.sent += data


@cache
def _servers() -> tuple[LocalServer, LocalServer]:
    """That of `watch`, and that of a report."""
    found = WatchServer(_Source()), ReportServer(analyse(fuzz_runs.desk_run()))  # type: ignore[arg-type]
    for server in found:
        server.server_close()
    return found


def requests() -> list[bytes]:
    """Which server, and a request."""
    return [kind + request for kind in (b"w", b"r") for request in REQUESTS]


def changed(data: bytes, rng: random.Random) -> bytes:
    """A request with other bytes, a line taken out, doubled or longer, or its body as mutated text."""
    head, _, body = data.partition(b"\r\n\r\n")
    kind = rng.random()
    if kind < 0.4:
        return data[:1] + mutate.binary(data[1:], rng)
    if kind < 0.7:
        body = mutate.text(body.replace(b",", b",\n"), rng).replace(b"\n", b"")
        first = head.split(b"\r\nContent-Length:")[0]
        return b"%s\r\nContent-Length: %d\r\n\r\n%s" % (first, len(body), body)
    return (
        mutate.text(head.replace(b"\r\n", b"\n").replace(b"&", b"\n&"), rng).replace(b"\n", b"\r\n")
        + b"\r\n\r\n"
        + body
    )


def read_request(data: bytes) -> None:
    """One connection: what is not permitted is refused and does nothing."""
    server = _servers()[data[:1] == b"r"]
    text = data[1:].replace(TOKEN, server.token.encode()).replace(HOST, f"127.0.0.1:{server.server_port}".encode())
    source = getattr(server, "source", _Source())
    source.taken.clear()
    connection = _Socket(text, server)
    server.finish_request(connection, ("127.0.0.1", 1))  # type: ignore[arg-type]
    assert not source.taken or server.token.encode() in text
    if b"HTTP/1.1 200" in connection.sent:
        assert server.token.encode() in text and b"127.0.0.1:" in text
