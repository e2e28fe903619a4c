"""The live page: who may see it, what it serves, what it does to the rig; and in a real browser."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S, wait_for
from watch_help import Paced, page_in_a_browser

from torqueloop.hil.watch.server import BODY_BYTES, page


@pytest.fixture(scope="module")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paced]:
    made = Paced(tmp_path_factory.mktemp("watch") / "run")
    yield made
    made.close()


def test_the_page_needs_nothing_from_anywhere() -> None:
    """All scripts and styles are inside and carry the nonce; no address but those of the page's own server."""
    text = page("N0NCE")
    assert text.count("<script") == text.count('<script nonce="N0NCE"') == 14
    assert text.count("<style") == text.count('<style nonce="N0NCE"') == 4
    assert "src=" not in text.partition("<script")[0] and "@import" not in text
    own = text.replace((Path(__file__).parents[2] / "hil/views/page/libraries/uPlot.iife.min.js").read_text(), "")
    assert "http://" not in own.replace("https://github.com/leeoniya/uPlot", "") and "https://" not in own.replace(
        "https://github.com/leeoniya/uPlot", ""
    )
    assert "Leon Sorokin" in (Path(__file__).parents[2] / "hil/views/page/libraries/LICENSE-uPlot.txt").read_text()


@pytest.mark.parametrize("path", ["/", "/events", "/command", "/nothing"])
def test_without_the_token_there_is_nothing(paced: Paced, path: str) -> None:
    body = {"kind": "stop"} if path == "/command" else None
    for token in ("wrong", paced.server.token[:-1], paced.server.token + "x"):
        assert paced.ask(path, body, token)[0] == 403
    status, answer = paced.ask(path, body, "")
    assert status == 403 and "token is missing or wrong" in answer["error"]
    assert not paced.holder.over


def test_strangers_pages_are_refused_even_with_the_token(paced: Paced) -> None:
    """A name that resolves to the loopback address (DNS rebinding), and a request from another origin."""
    assert paced.ask("/", Host="rig.example:80")[0] == 403
    assert paced.ask("/command", {"kind": "safe"}, Origin="http://rig.example")[0] == 403
    assert paced.ask("/", Host=f"localhost:{paced.server.server_port}")[0] == 200
    port = paced.server.server_port
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as two:
        two.sendall(
            f"GET /?token={paced.server.token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: rig.example\r\n\r\n".encode()
        )
        assert two.recv(64).startswith(b"HTTP/1.1 403")
    assert not paced.rig.safe_state


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "Expecting"),
        (b"[" * 20000, 400, ""),
        (b"x" * (BODY_BYTES + 1), 400, "allowed: at most"),
        ([1], 400, "a command is"),
        ({"kind": "set", "values": {"car.m": "1"}}, 400, "numbers by name"),
        ({"kind": "set", "values": {"car.m": True}}, 400, "numbers by name"),
        (b'{"kind": "set", "values": {"car.m": ' + b"9" * 400 + b"}}", 400, "too large"),
        ({"kind": "release", "names": "all"}, 400, "a list of names"),
        ({"kind": "exec"}, 200, "no command; allowed: arm, checkpoint"),
        ({"kind": "set", "values": {"engine.w": 1}}, 200, "engine.w is written by the rig"),
        ({"kind": "override", "values": {"driver.pedal": 7}}, 200, "allowed: 0 .. 1"),
        ({"kind": "restore", "name": "nothing"}, 200, "no checkpoint 'nothing'"),
    ],
)
def test_a_bad_command_is_refused_with_the_reason(paced: Paced, body: Any, status: int, words: str) -> None:
    code, answer = paced.ask("/command", body)
    assert code == status and answer["ok"] is False and words in answer["error"]


def test_commands_and_events_reach_the_rig_and_the_page(paced: Paced) -> None:
    events = paced.source.subscribe()
    seen: dict[str, Any] = {}

    def read(*wanted: str) -> bool:
        while not events.empty():
            kind, data = events.get()
            seen[kind] = json.loads(data)
        return all(kind in seen for kind in wanted)

    wait_for(lambda: read("hello", "values", "status", "stats"))
    hello = seen["hello"]
    assert hello["hello"]["rig"] == "desk_4hp22" and len(hello["layout"]["levers"]) == 3
    assert hello["layout"]["words"]["gear"]["7"] == "R" and "fault.turbine_speed" in {n["name"] for n in hello["names"]}
    assert seen["stats"]["clock"]["compute_us"]["hist"] and seen["values"]["engine"]["w"] > 50
    code, answer = paced.ask("/command", {"kind": "override", "values": {"driver.pedal": 0.25}})
    assert code == 200 and answer["ok"] and answer["tick"] > 0
    wait_for(lambda: read() and seen["status"]["held"] == {"driver.pedal": 0.25} or read("x"))
    assert paced.ask("/command", {"kind": "release"})[1]["ok"]
    paced.source.leave(events)


def test_a_browser_that_stops_reading_holds_up_nobody(paced: Paced) -> None:
    idle, missed = paced.source.subscribe(), paced.source.missed
    tick = paced.holder.tick
    wait_for(lambda: paced.source.missed > missed + 20)
    assert idle.full() and paced.holder.tick > tick + 100
    paced.source.leave(idle)


@pytest.mark.proof
def test_a_rig_without_telemetry_is_asked(tmp_path: Path) -> None:
    made = Paced(tmp_path / "run", telemetry=None)
    try:
        events = made.source.subscribe()
        kinds = set()
        wait_for(lambda: (kinds.add(events.get()[0]) or True) and {"values", "status"} <= kinds)
        # and one that has ended is said to be gone
        made.ask("/command", {"kind": "stop"})
        wait_for(lambda: (kinds.add(events.get()[0]) or True) and "gone" in kinds)
    finally:
        made.close()


@pytest.mark.proof
def test_in_a_browser(paced: Paced, tmp_path: Path) -> None:
    """Numbers, pictures, keyboard, a fault, the safe state with its cause, a phone's width; nothing in its console."""
    with page_in_a_browser(paced) as tab:
        assert tab.evaluate("document.querySelectorAll('#elements tbody tr').length") == 10
        assert tab.inner_text("#state") == "armed" and tab.inner_text("#rig") == "desk_4hp22"
        assert float(tab.inner_text("#engine")) > 500 and "computing" in tab.inner_text("#deadlines")
        assert tab.evaluate("element('levers').getContext('2d').getImageData(0, 0, 400, 200).data.some((x) => x > 0)")
        # the histogram has every tick that took a time, by the numbers that the rig has sent
        bars = "plots.panels().find((u) => u.root.parentNode.id === 'histograms').data[2]"
        wait_for(lambda: tab.evaluate(f"{bars}.reduce((sum, n) => sum + (n || 0), 0)") > 100)
        wait_for(lambda: tab.evaluate(f"{bars}.reduce((sum, n) => sum + (n || 0), 0) === clock.stats.compute_us.count"))
        # plots of one's own: the values that came, in the unit that is shown; the cursor reads them; gone again
        tab.fill("#plot-signals", "engine.w, turbine.w")
        tab.keyboard.press("Enter")
        own = "plots.panels().find((u) => u.root.parentNode.id === 'chosen-1')"
        wait_for(lambda: tab.evaluate(f"{own}?.data[0].length > 20"))
        first, engine = tab.evaluate(f"[{own}.data[0].at(-20), {own}.data[1].at(-20)]")
        recorded = paced.rig.signals
        assert engine == pytest.approx(recorded["engine.w"][round(first / 1e-3) - 1] * 30 / 3.14159265, rel=1e-6)
        tab.locator("#chosen-1").scroll_into_view_if_needed()
        box = tab.locator("#chosen-1 .u-over").bounding_box()
        tab.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 40)
        wait_for(lambda: "rpm" in tab.inner_text("#chosen-1 .u-legend"))
        assert tab.locator("#chosen section").count() == 1
        for names, words in (("engine.w C4.p", "rad/s, Pa"), ("engine.q", "no signal called engine.q")):
            tab.fill("#plot-signals", names)
            tab.keyboard.press("Enter")
            assert words in tab.inner_text("#plot-answer") and tab.locator("#chosen section").count() == 1
        tab.click("#chosen button")
        assert tab.locator("#chosen section").count() == 0 and tab.evaluate(f"{own} === undefined")
        # keyboard only: to the field of names, a value, enter
        tab.focus("#name")
        tab.keyboard.type("driver.brake")
        tab.keyboard.press("Tab")
        tab.keyboard.type("0.125")
        tab.keyboard.press("Enter")
        wait_for(lambda: tab.evaluate("document.getElementById('held').textContent.includes('driver.brake = 0.125')"))
        tab.fill("#name", "driver.pedal")
        tab.fill("#value", "2")
        tab.keyboard.press("Enter")
        wait_for(lambda: tab.evaluate("document.getElementById('answer').className == 'bad'"))
        assert "allowed: 0 .. 1" in tab.inner_text("#answer")
        fault = tab.get_by_role("button", name="fault.turbine_speed")
        fault.focus()
        tab.keyboard.press("Space")
        wait_for(
            lambda: tab.evaluate("document.querySelector('#faults button').getAttribute('aria-pressed') == 'true'")
        )
        wait_for(lambda: paced.rig.value("HIL_Speeds.n_turbine") == 0.0)
        tab.set_viewport_size({"width": 390, "height": 844})
        wide = tab.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{wide} pixels on a screen of 390"
        # plots follow their place in the picture after the change
        wait_for(
            lambda: tab.evaluate(
                "[...document.querySelectorAll('.plot canvas')]"
                ".every(c => c.getBoundingClientRect().right <= innerWidth)"
            )
        )
        tab.set_viewport_size({"width": 1280, "height": 900})
        # the question is answered with No first
        tab.get_by_role("button", name="Safe state").click()
        tab.keyboard.press("Enter")
        assert not paced.rig.safe_state
        tab.get_by_role("button", name="Safe state").click()
        tab.get_by_role("button", name="Yes").click()
        wait_for(lambda: tab.evaluate("!document.getElementById('cause').hidden"))
        assert tab.inner_text("#state") == "safe state" and "requested by the operator" in tab.inner_text("#cause")
