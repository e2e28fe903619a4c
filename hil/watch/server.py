"""The page's web server: loopback only, one page, one stream of events, commands; each asks for the token.

    GET  /?token=T            the page, everything in it: no other file, no network
    GET  /events?token=T      server-sent events: hello, values, status, stats, gone
    POST /command?token=T     {"kind": "set", "values": {"car.m": 1600}}; answer {"ok": true} or {"ok": false, "error"}

Standard library only. Who may ask: hil/views/local_server.py.
"""

from __future__ import annotations

import json
import queue
import secrets
from http import HTTPStatus
from typing import Any

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil import views
from torqueloop.hil.views.local_server import LocalHandler, LocalServer
from torqueloop.hil.views.style import css
from torqueloop.hil.watch.source import Source

#: longest command [bytes]
BODY_BYTES = 32768
#: an empty comment is sent to a browser that hears nothing, so that one that is gone is seen [s]
ALIVE_S = 5.0
#: browsers at a time
BROWSERS_MAX = 16


class WatchServer(LocalServer):
    """Serves one source."""

    def __init__(self, source: Source, port: int = 0) -> None:
        self.source: Source = source
        super().__init__(_Handler, port)
        self.browsers = 0
        self.closing = False


class _Handler(LocalHandler):
    server: WatchServer

    def do_GET(self) -> None:
        path = self.allowed()
        if path == "/":
            self._page()
        elif path == "/events":
            self._events()
        elif path is not None:
            self.answer(HTTPStatus.NOT_FOUND, {"ok": False, "error": "no such page"})

    def do_POST(self) -> None:
        path = self.allowed()
        if path is None:
            return
        if path != "/command":
            self.answer(HTTPStatus.NOT_FOUND, {"ok": False, "error": "no such page"})
            return
        try:
            length = int(self.headers.get("Content-Length", "-1"))
            if not 0 <= length <= BODY_BYTES:
                raise ValueError(f"a command of {length} bytes; allowed: at most {BODY_BYTES}")
            kind, names, values, name = _command(json.loads(self.rfile.read(length)))
            answer = self.server.source.command(kind, names, values, name)
            self.answer(HTTPStatus.OK, {"ok": True, **answer})
        except (ValueError, OverflowError, RecursionError) as error:
            self.answer(HTTPStatus.BAD_REQUEST, {"ok": False, "error": str(error)})
        except TorqueloopError as error:
            self.answer(HTTPStatus.OK, {"ok": False, "error": str(error)})

    def _page(self) -> None:
        nonce = secrets.token_urlsafe(12)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self.page(page(nonce), policy)

    def _events(self) -> None:
        server = self.server
        if server.browsers >= BROWSERS_MAX:
            self.answer(HTTPStatus.SERVICE_UNAVAILABLE, {"ok": False, "error": f"{BROWSERS_MAX} pages are open"})
            return
        server.browsers += 1
        events = server.source.subscribe()
        try:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.head()
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


def page(nonce: str) -> str:
    """The whole page in one text; scripts and styles carry the nonce of its policy."""
    text = (views.PAGE / "watch/watch.html").read_text(encoding="utf-8")
    styles = "".join(f'<style nonce="{nonce}">{style}</style>' for style in (css(), *views.styles("watch")))
    scripts = "".join(f'<script nonce="{nonce}">{script}</script>' for script in views.scripts("watch"))
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
