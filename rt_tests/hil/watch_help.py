"""The live page for tests: a rig that goes on about as fast as a clock on the wall, and a browser."""

from __future__ import annotations

import json
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from rig_help import DESK
from waiting import PATIENCE_S, wait_for

from torqueloop.hil.testing.driven_rig import DrivenRig
from torqueloop.hil.testing.holder import Holder, RigEnded
from torqueloop.hil.watch.server import WatchServer
from torqueloop.hil.watch.source import Source

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FAULT = {"signal": "HIL_Speeds.n_turbine", "kind": "gain", "value": 0.0, "switch": "turbine_speed"}


class Paced:
    """A rig on the virtual clock that goes on about as fast as a clock on the wall, and its page."""

    def __init__(self, out: Path, telemetry: str | None = "tcp://127.0.0.1:0", rig: Path = DESK) -> None:
        options = {"duration_s": 600.0, "control": "tcp://127.0.0.1:0", "overrides": {"faults": [FAULT]}}
        self.holder = Holder(rig, "virtual", out, telemetry=telemetry, **options)
        self.rig = DrivenRig(self.holder, out)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pace, daemon=True)
        self._thread.start()
        channel = self.holder.live.channel
        assert channel is not None
        self.source = Source(channel.endpoint)
        self.source.start()
        self.server = WatchServer(self.source)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _pace(self) -> None:
        with suppress(RigEnded):
            while not self._stop.wait(0.01):
                self.rig.run(0.02)

    def close(self) -> None:
        self.server.closing = True
        self.server.shutdown()
        self.server.server_close()
        self.source.stop()
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self.holder.end()

    def ask(self, path: str, body: Any = None, token: str | None = None, **headers: str) -> tuple[int, Any]:
        """(status, content) of a request as a browser would send it."""
        token = self.server.token if token is None else token
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.server.server_port}{path}" + (f"?token={token}" if token else "")
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=PATIENCE_S) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text[:1] == b"{" else text.decode()
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@contextmanager
def page_in_a_browser(paced: Paced) -> Iterator[Any]:
    """The live page in Chromium; no message in its console, no address but its own."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    mistakes: list[str] = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.on("console", lambda message: mistakes.append(message.text))
        tab.on("pageerror", lambda error: mistakes.append(str(error)))
        tab.on("request", lambda request: None if "127.0.0.1" in request.url or "data:" in request.url[:5]
               else mistakes.append(request.url))  # fmt: skip
        tab.goto(paced.server.url)
        wait_for(lambda: tab.evaluate("torqueloop.pictures > 5"))
        yield tab
        assert mistakes == []
        browser.close()
