"""The page of a run from this computer: what the file holds thinned, the page then asks for by time.

GET /?token=T                                    report.html
GET /samples?token=T&from=S&to=S&name=...&name=  columns of that time, packed as in the page
"""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from torqueloop.hil.report.html import render
from torqueloop.hil.report.report import Report
from torqueloop.hil.views.figure import Figures
from torqueloop.hil.views.local_server import LocalHandler, LocalServer

#: signals in one answer
NAMES_MAX = 40
#: scripts and styles of the page are in it
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ReportServer(LocalServer):
    """Serves one report."""

    def __init__(self, report: Report, port: int = 0) -> None:
        self.report: Report = report
        self.text: str = render(report)
        super().__init__(_Handler, port)


class _Handler(LocalHandler):
    server: ReportServer

    def do_GET(self) -> None:
        path = self.allowed()
        if path == "/":
            self.page(self.server.text, POLICY)
        elif path == "/samples":
            try:
                self.answer(HTTPStatus.OK, samples(self.server.report, urlsplit(self.path).query))
            except ValueError as error:
                self.answer(HTTPStatus.BAD_REQUEST, {"ok": False, "error": str(error)})
        elif path is not None:
            self.answer(HTTPStatus.NOT_FOUND, {"ok": False, "error": "no such page"})


def samples(report: Report, query: str) -> dict[str, object]:
    """Columns of a stretch of time; ValueError for one that is none, or a signal that was not recorded."""
    asked, signals = parse_qs(query), report.run.signals
    begin, end = (float(asked.get(key, ["nan"])[0]) for key in ("from", "to"))
    names = asked.get("name", [])
    if not (math.isfinite(begin) and math.isfinite(end) and begin < end):
        raise ValueError("from and to are times in seconds, from before to")
    if signals is None or len(names) > NAMES_MAX or not set(names) <= set(signals.names):
        raise ValueError(f"name: at most {NAMES_MAX} of the recorded signals; not {names[:NAMES_MAX]}")
    near = signals.between(begin, end)
    figures = Figures()
    block = figures.block(near.t, near.tick_s)
    for name in names:
        block.add(name, near[name], signals.units.get(name, ""))
    text, numbers = figures.packed()
    return {"blocks": json.loads(text)["blocks"], "numbers": numbers}
