"""A page on this computer only: loopback, and every request needs the token.

A wrong or missing token is 403, whatever the path. The Host header must be the loopback address itself, so that a name
that another page resolves to it is refused, and a request that says where it comes from must come from the page.
"""

from __future__ import annotations

import hmac
import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class LocalServer(ThreadingHTTPServer):
    """Serves at 127.0.0.1. `url` has the port that was taken, and the token."""

    daemon_threads = True
    # a port that is taken is an error, not shared
    allow_reuse_address = True

    def __init__(self, handler: type[LocalHandler], port: int = 0) -> None:
        self.token: str = secrets.token_urlsafe(16)
        super().__init__(("127.0.0.1", port), handler)
        self.hosts: set[str] = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.url: str = f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is nothing to say a word about."""


class LocalHandler(BaseHTTPRequestHandler):
    """What all pages do with a request."""

    server: LocalServer
    server_version, sys_version = "torqueloop", ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def allowed(self) -> str | None:
        """The requested path if the request is permitted; None: refused."""
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
            refused = "the token is missing or wrong: open the address that the command has printed"
        if refused:
            self.answer(HTTPStatus.FORBIDDEN, {"ok": False, "error": refused})
            return None
        return parts.path

    def page(self, text: str, policy: str) -> None:
        """A page, with what it may load and run."""
        data = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", policy)
        self.head()
        self.wfile.write(data)

    def answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        """An answer as JSON."""
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status != HTTPStatus.OK:
            # what was sent with a request that is refused was not read
            self.send_header("Connection", "close")
            self.close_connection = True
        self.head()
        self.wfile.write(data)

    def head(self) -> None:
        """What every answer says, and the end of its head."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged, because their addresses contain the token."""
