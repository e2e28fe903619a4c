"""The page's web server: loopback only, one page, one stream of events, commands; each asks for the token.

    GET  /?token=T            the page, everything in it: no other file, no network
    GET  /events?token=T      server-sent events: hello, values, status, stats, gone
    POST /command?token=T     {"kind": "set", "values": {"car.m": 1600}}; answer {"ok": true} or {"ok": false, "error"}

Standard library only. A wrong or missing token is 403, whatever the path. The Host header must be the loopback address
itself, so that a name that a stranger's page resolves to it is refused, and a request that says where it comes from
must come from the page.
"""

from __future__ import annotations

import hmac
import json
import queue
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.watch.source import Source

#: longest command [bytes]
BODY_BYTES = 32768
#: an empty comment is sent to a browser that hears nothing, so that one that is gone is seen [s]
ALIVE_S = 5.0
#: browsers at a time
BROWSERS_MAX = 16
_PAGE = Path(__file__).parent / "page"
_SCRIPTS = (
    "uPlot.iife.min.js", "link.js", "plots.js", "gearbox.js", "clock.js", "control.js", "recordings.js", "signals.js",
    "main.js",
)  # fmt: skip
_STYLES = ("uPlot.min.css", "watch.css")


class WatchServer(ThreadingHTTPServer):
    """Serves one source at 127.0.0.1. `url` has the port that was taken, and the token."""

    daemon_threads = True
    # a port that is taken is an error, not shared
    allow_reuse_address = True

    def __init__(self, source: Source, port: int = 0) -> None:
        self.source: Source = source
        self.token: str = secrets.token_urlsafe(16)
        super().__init__(("127.0.0.1", port), _Handler)
        self.hosts: set[str] = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.url: str = f"http://127.0.0.1:{self.server_port}/?token={self.token}"
        self.browsers = 0
        self.closing = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is nothing to say a word about."""


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer
    server_version, sys_version = "torqueloop", ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        path = self._allowed()
        if path == "/":
            self._page()
        elif path == "/events":
            self._events()
        elif path is not None:
            self._answer(HTTPStatus.NOT_FOUND, {"ok": False, "error": "no such page"})

    def do_POST(self) -> None:
        path = self._allowed()
        if path is None:
            return
        if path != "/command":
            self._answer(HTTPStatus.NOT_FOUND, {"ok": False, "error": "no such page"})
            return
        try:
            length = int(self.headers.get("Content-Length", "-1"))
            if not 0 <= length <= BODY_BYTES:
                raise ValueError(f"a command of {length} bytes; allowed: at most {BODY_BYTES}")
            kind, names, values, name = _command(json.loads(self.rfile.read(length)))
            answer = self.server.source.command(kind, names, values, name)
            self._answer(HTTPStatus.OK, {"ok": True, **answer})
        except (ValueError, OverflowError, RecursionError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"ok": False, "error": str(error)})
        except TorqueloopError as error:
            self._answer(HTTPStatus.OK, {"ok": False, "error": str(error)})

    def _allowed(self) -> str | None:
        """The path asked for, if whoever asks may; None: refused."""
        parts = urlsplit(self.path)
        token = parse_qs(parts.query).get("token", [""])[0]
        origin = self.headers.get("Origin")
        refused = ""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            refused = "this page is served to 127.0.0.1 only"
        elif origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            refused = "commands come from the page itself only"
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            refused = "the token is missing or wrong: open the address that `torqueloop watch` has printed"
        if refused:
            self._answer(HTTPStatus.FORBIDDEN, {"ok": False, "error": refused})
            return None
        return parts.path

    def _page(self) -> None:
        nonce = secrets.token_urlsafe(12)
        data = page(nonce).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self.send_header("Content-Security-Policy", policy)
        self._head()
        self.wfile.write(data)

    def _events(self) -> None:
        server = self.server
        if server.browsers >= BROWSERS_MAX:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"ok": False, "error": f"{BROWSERS_MAX} pages are open"})
            return
        server.browsers += 1
        events = server.source.subscribe()
        try:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self._head()
            while not server.closing:
                try:
                    kind, data = events.get(timeout=ALIVE_S)
                    self.wfile.write(b"event: %s\ndata: %s\n\n" % (kind.encode(), data))
                except queue.Empty:
                    self.wfile.write(b":\n\n")
                self.wfile.flush()
        except OSError:
            pass  # the browser has gone
        finally:
            server.source.leave(events)
            server.browsers -= 1
            self.close_connection = True

    def _answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status != HTTPStatus.OK:
            # what was sent with a request that is refused was not read
            self.send_header("Connection", "close")
            self.close_connection = True
        self._head()
        self.wfile.write(data)

    def _head(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's business, and their addresses hold the token."""


def page(nonce: str) -> str:
    """The whole page in one text; scripts and styles carry the nonce of its policy."""
    text = (_PAGE / "watch.html").read_text(encoding="utf-8")
    styles = "".join(f'<style nonce="{nonce}">{(_PAGE / name).read_text(encoding="utf-8")}</style>' for name in _STYLES)
    scripts = "".join(
        f'<script nonce="{nonce}">{(_PAGE / name).read_text(encoding="utf-8")}</script>' for name in _SCRIPTS
    )
    return text.replace("<!--styles-->", styles).replace("<!--scripts-->", scripts)


def _command(body: Any) -> tuple[str, tuple[str, ...], dict[str, float], str]:
    """Parts of a command; ValueError when it is none. What it means is checked by the rig."""
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise ValueError('a command is {"kind": ..., ...}')
    names, values, name = body.get("names", []), body.get("values", {}), body.get("name", "")
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names) or not isinstance(name, str):
        raise ValueError("names: a list of names; name: a name")
    if not isinstance(values, dict) or not all(type(x) in (int, float) for x in values.values()):
        raise ValueError("values: numbers by name")
    return body["kind"], tuple(names), {n: float(x) for n, x in values.items()}, name
