"""What the live page is given: the signals it shows, at most so many pictures a second, the trace of its buses."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told_report import recorded, report
from waiting import PATIENCE_S

from torqueloop.hil.record.bus_log import bus_header, pack_frame
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.report.serve import ReportServer
from torqueloop.hil.watch.source import RATE_HZ, Pace, Source

DATABASE = Path(__file__).resolve().parents[2] / "configs" / "can" / "tcu_4hp22.dbc"


class Answers(Source):
    """A source whose rig answers what is written here."""

    def __init__(self, folder: Path, databases: dict[str, str]) -> None:
        super().__init__("tcp://127.0.0.1:1")
        layout = {
            "signals": {"engine": "engine.w", "car": "car.v", "none": ""}, "elements": ["C4", "B1"],
            "levers": [{"members": [{"signal": "S12.w"}, {"signal": ""}, {"signal": "engine.w"}]}],
            "databases": databases,
        }  # fmt: skip
        there = ["S12.w", "B1.tau", "C4.p_command", "C4.p", "C4.mode", "C4.w_rel", "C4.tau", "car.v", "engine.w", "x"]
        keys = {"unit": "1", "kind": "output", "writable": False, "allowed": "", "more": 1}
        self.answers: dict[str, Any] = {
            "hello": {"rig": "desk", "tick_s": 1e-3, "folder": str(folder)}, "layout": {"layout": layout},
            "list": {"names": [{"name": name, **keys} for name in there]},
        }  # fmt: skip

    def _asked(self, kind: str, **keys: Any) -> dict[str, Any]:
        return dict(self.answers[kind])


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Answers]:
    made = Answers(tmp_path, {"powertrain": str(DATABASE)})
    yield made
    made.stop()


def test_without_telemetry_a_page_gets_the_signals_it_shows_each_once(source: Answers) -> None:
    """Those of its layout, of each element mode, pressure, slip and torque, those of its levers; of them what is
    there."""
    source._greet()
    assert source._shown == ["engine.w", "car.v", "C4.mode", "C4.p", "C4.w_rel", "C4.tau", "B1.tau", "S12.w"]
    hello = json.loads(source._known["hello"])
    assert set(hello["names"][0]) == {"name", "unit", "kind", "writable", "allowed"} and hello["hello"]["rig"] == "desk"


def test_values_stand_in_a_tree_of_their_names_with_their_time(source: Answers) -> None:
    source._values(1.25, {"engine.w": 3.0, "C4.p": 4.0, "C4.mode": 1.0, "a.b.c": 5.0, "plain": 6.0})
    tree = {"engine": {"w": 3.0}, "C4": {"p": 4.0, "mode": 1.0}, "a/b": {"c": 5.0}, "": {"plain": 6.0}}
    assert json.loads(source._known["values"]) == {"t": 1.25, **tree}


def test_a_browser_that_comes_later_has_all_rows_of_the_trace_the_others_what_is_new(source: Answers) -> None:
    folder = Path(source.answers["hello"]["folder"])
    writer = ChunkWriter(folder / "bus", bus_header("can0"))
    source._greet()
    events = source.subscribe()
    frames = [pack_frame(t * 10_000_000, key, bytes(8), tx=False) for t, key in ((1, 0x210), (2, 0x212), (3, 0x212))]
    seen = []
    for frame in frames:
        writer.write(frame)
        source._look_at_buses()
        while not events.empty():
            kind, data = events.get()
            seen += [json.loads(data)] if kind == "trace" else []
    assert [[(row["id"], row["t"], row["count"]) for row in event["rows"]] for event in seen] == [
        [],
        [("210", pytest.approx(0.01), 1)], [("212", pytest.approx(0.02), 1)], [("212", pytest.approx(0.03), 2)],
    ]  # fmt: skip
    late = dict(source.subscribe().queue)
    rows = json.loads(late["trace"])["rows"]
    assert [(row["id"], row["name"], row["count"]) for row in rows] == [
        ("210", "TCU_Pressure_1", 1), ("212", "TCU_Status", 2)]  # fmt: skip
    assert rows[1]["period_s"] == pytest.approx(0.01)


@pytest.mark.parametrize("rate_hz", [20.0, 59.0, 62.0, 100.0, 1000.0])
def test_a_page_gets_every_picture_up_to_the_most_a_second(rate_hz: float) -> None:
    """Of more than 60 a second 60, not every second one; after a pause at most one more at once."""
    pace = Pace(RATE_HZ)
    came = np.arange(1, round(10 * rate_hz) + 1) / rate_hz
    shown = sum(pace.due(1e6 + t) for t in came)
    assert shown == pytest.approx(10 * min(rate_hz, RATE_HZ), abs=2)
    again = 1e6 + 100.0 + np.arange(200) * 1e-3
    assert sum(pace.due(t) for t in again) == pytest.approx(0.2 * RATE_HZ, abs=2)


# --- the server of a page ---------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    made = ReportServer(report(tmp_path, signals=recorded({"engine.w": ("rad/s", np.arange(500.0))})))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def test_a_page_is_served_under_our_name_with_its_policy_and_nothing_else_is(server: ReportServer) -> None:
    def ask(path: str, query: str = "", token: str = "") -> tuple[int, dict[str, str], bytes]:
        url = f"http://127.0.0.1:{server.server_port}{path}?token={token or server.token}{query}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    status, head, text = ask("/")
    assert status == 200 and text.decode() == server.text
    assert head["Server"].strip() == "torqueloop", "neither Python nor its version is told"
    assert "default-src 'none'" in head["Content-Security-Policy"] and head["Cache-Control"] == "no-store"
    assert ask("/samples", "&from=0.1&to=0.2&name=engine.w")[0] == 200
    status, _, text = ask("/samples", "&from=0.2&to=0.1")
    assert status == 400 and "from before to" in json.loads(text)["error"]
    assert (ask("/other")[0], ask("/", token="x")[0], ask("/samples", token="x")[0]) == (404, 403, 403)
