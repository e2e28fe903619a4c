"""Recordings that a client begins and ends: by the control channel, from the page; and the page with 1000 signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from many_signals import many_signals
from rig_help import DESK
from waiting import wait_for
from watch_help import CHROMIUM, Paced

import torqueloop as tl
from torqueloop.hil.control.client import ControlError, connect
from torqueloop.hil.record.bus_log import read_bus
from torqueloop.hil.record.pieces import SignalPieces
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.signals import signal_encoder
from torqueloop.hil.report.report import analyse
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.recordings import AT_A_TIME
from torqueloop.hil.rig.run.replay import ReplayError, replay
from torqueloop.hil.runs.listing import list_runs
from torqueloop.hil.testing.driven_rig import DrivenRig
from torqueloop.hil.testing.holder import Holder

CONTROL = "tcp://127.0.0.1:0"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of 2.5 s: "first" from 1 to 2 s with all signals, "part-1" from 1 s to the end with some."""
    out = tmp_path_factory.mktemp("recorded") / "run"
    holder = Holder(DESK, "virtual", out, duration_s=60.0, control=CONTROL)
    rig, answers = DrivenRig(holder, out), {}
    channel = holder.live.channel
    assert channel is not None
    with connect(channel.endpoint) as client:
        with pytest.raises(ControlError, match="no recording 'first' is running; running: none"):
            client.stop_recording("first")
        rig.run(1.0)
        answers["first"], answers["part-1"] = client.record("first"), client.record("", ["engine.*", "C*.p"])
        rig.run(1.0)
        for name, signals, words in (
            ("first", [], "nothing is overwritten"),
            ("../else", [], "allowed: up to 64 letters"),
            ("a.mf4", [], "allowed: up to 64 letters"),
            ("b", ["engine.speed"], "no recorded signal is called 'engine.speed'"),
        ):
            with pytest.raises(ControlError, match=words):
                client.record(name, signals)
        for k in range(AT_A_TIME - 2):
            client.record(f"more-{k}", ["engine.w"])
        with pytest.raises(ControlError, match="recordings at a time"):
            client.record("one-more")
        answers["stopped"] = client.stop_recording("first")
        answers["status"] = client.status()["recordings"]
        rig.run(0.5)
    answers["forms"] = [[form.name for form in stream.forms] for stream in holder.live.recorder._streams]
    holder.end()
    return {"out": out, **answers}


def test_a_recording_is_read_as_a_run(recorded: dict[str, Any]) -> None:
    out = recorded["out"]
    assert recorded["first"] == {"name": "first", "folder": "recordings/first", "signals": 230}
    stopped = recorded["stopped"]
    assert (stopped["samples"], stopped["first_tick"], stopped["last_tick"]) == (1000, 1000, 1999)
    # nothing is given any more to one that was ended
    assert {"recordings/part-1/signals"} <= set(recorded["forms"][0]) - {"recordings/first/signals"}
    assert "recordings/first/signals" not in recorded["forms"][0]
    assert recorded["status"]["first"]["running"] is False and recorded["status"]["part-1"]["running"] is True
    whole, first, part = (tl.read_run(p) for p in (out, out / "recordings/first", out / "recordings/part-1"))
    assert (first.signals.tick == np.arange(1000, 2000)).all() and (part.signals.tick == np.arange(1000, 2500)).all()
    assert first.signals.names == whole.signals.names and len(part.signals.names) == recorded["part-1"]["signals"] == 13
    for name in whole.signals.names:
        assert first.signals[name].tobytes() == whole.signals[name][1000:2000].tobytes(), name
    for name in part.signals.names:
        assert part.signals[name].tobytes() == whole.signals[name][1000:].tobytes(), name
    # the frames of that time, and no others
    frames, mine = read_bus(out)[0], read_bus(out / "recordings/first")[0]
    at = int(np.flatnonzero(frames["t_ns"] == mine["t_ns"][0])[0])
    assert len(mine) > 500 and (frames[at : at + len(mine)] == mine).all()
    assert 0.99e9 <= mine["t_ns"][0] and mine["t_ns"][-1] <= 2.01e9


def test_report_replay_and_listing_know_it(recorded: dict[str, Any]) -> None:
    out = recorded["out"]
    report = analyse(out / "recordings/first")
    assert report.passed and report.run.info.part_of is not None and report.run.info.part_of.last_tick == 1999
    for name, ticks, compared in (("first", 2000, 1000), ("part-1", 2500, 1500)):
        result = replay(out / "recordings" / name)
        assert result.passed and (result.ticks, result.compared) == (ticks, compared)
        assert "a part of a run" in result.remarks[0]
    assert [row.name for row in list_runs(out.parent)] == ["run"]
    told = read_run_info(out)
    assert told is not None and told.stats is not None and "recordings/first/signals" in told.stats.recording


def exchange(folder: Path, tick: int) -> None:
    """Write the recording again with one bit of one signal turned in one tick."""
    pieces = SignalPieces.of(folder.parent)
    header, records = pieces.pieces.header, np.concatenate(list(pieces))
    column = pieces.names.index("engine.w")
    records["out"].view(np.uint64)[tick - records["tick"][0], column] ^= 1
    shutil.rmtree(folder)
    writer = ChunkWriter(folder, header)
    writer.write(signal_encoder(len(pieces.names))(records.tobytes()))
    writer.close()


def test_a_wrong_bit_of_a_recording_is_found(recorded: dict[str, Any], tmp_path: Path) -> None:
    """And a recording without its run says what it lacks."""
    copy = tmp_path / "run"
    shutil.copytree(recorded["out"], copy)
    exchange(copy / "recordings/first/signals", 1000)
    result = replay(copy / "recordings/first")
    assert not result.passed and result.difference is not None and result.difference.tick == 1000
    shutil.rmtree(copy / "inputs")
    with pytest.raises(ReplayError, match="inputs"):
        replay(copy / "recordings/first")
    moved = tmp_path / "alone"
    shutil.copytree(recorded["out"] / "recordings/first", moved)
    with pytest.raises(ReplayError, match="is a part of a run that is not at"):
        replay(moved)
    assert tl.read_run(moved).signals.n == 1000


def test_a_killed_run_leaves_its_recordings(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "torqueloop.hil.cli", "run", str(DESK), "--clock", "virtual", "--duration", "600",
               "--control", CONTROL, "--out", str(out), "--set", "record.inputs=false"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: (out / "run.json").is_file() and getattr(read_run_info(out), "state", "") == "running")
        info = read_run_info(out)
        assert info is not None and info.control is not None
        with connect(info.control) as client:
            client.record("kept", ["engine.*"])
            wait_for(lambda: client.status()["recordings"]["kept"]["samples"] > 1000)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept, whole = tl.read_run(out / "recordings/kept"), tl.read_run(out)
    assert kept.signals.n > 1000 and not kept.signals.closed
    first, last = kept.signals.tick[0], min(kept.signals.tick[-1], whole.signals.tick[-1])
    assert last > first + 900
    mine = kept.signals["engine.w"][: last - first + 1]
    assert mine.tobytes() == whole.signals["engine.w"][first : last + 1].tobytes()


@pytest.mark.proof
def test_a_thousand_signals_and_recordings_in_a_browser(tmp_path: Path) -> None:
    """All of them are on the page, found by a part of a name; a recording is begun and ended by the keyboard alone."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    paced = Paced(tmp_path / "run", rig=many_signals(tmp_path, DESK))
    try:
        with api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            mistakes: list[str] = []
            tab.on("console", lambda message: mistakes.append(message.text))
            tab.on("pageerror", lambda error: mistakes.append(str(error)))
            tab.goto(paced.server.url)
            wait_for(lambda: tab.evaluate("torqueloop.pictures > 5"))
            control = paced.holder.live.control
            count = len(control.signals.keys() - control.plan.table.internal)
            assert count >= 1000 and tab.inner_text("#signal-count") == f"{count} of {count}"
            assert tab.evaluate("document.querySelectorAll('#signal-rows div').length") < 40
            # to the last one, by the keyboard
            tab.focus("#signal-list")
            tab.keyboard.press("End")
            wait_for(lambda: tab.evaluate("document.getElementById('signal-list').scrollTop > 10000"))
            tab.fill("#filter", "M4 v")
            seen = tab.evaluate("[...document.querySelectorAll('#signal-rows b')].map((e) => e.textContent).join()")
            wait_for(lambda: seen != tab.evaluate(
                "[...document.querySelectorAll('#signal-rows b')].map((e) => e.textContent).join()"))  # fmt: skip
            tab.fill("#filter", "m7. V3")
            assert tab.inner_text("#signal-count").startswith("1 of ")
            tab.focus("#record-name")
            tab.keyboard.type("by-hand")
            tab.keyboard.press("Tab")
            tab.keyboard.type("engine.* M7.*")
            tab.keyboard.press("Enter")
            wait_for(lambda: "by-hand" in tab.inner_text("#recordings"))
            wait_for(lambda: paced.holder.live.control.status()["recordings"]["by-hand"]["samples"] > 200)
            wait_for(lambda: "signals from now on" in tab.inner_text("#recorded"))
            tab.focus("#recordings button")
            tab.keyboard.press("Enter")
            wait_for(lambda: "closed" in tab.inner_text("#recordings"))
            assert "recordings/by-hand:" in tab.inner_text("#recorded")
            tab.fill("#record-name", "by-hand")
            tab.keyboard.press("Enter")
            wait_for(lambda: "nothing is overwritten" in tab.inner_text("#recorded"))
            tab.set_viewport_size({"width": 390, "height": 844})
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390
            assert mistakes == []
            browser.close()
    finally:
        paced.close()
    signals = tl.read_run(tmp_path / "run/recordings/by-hand").signals
    assert signals.closed and signals.n > 200 and "M7.v3" in signals.names and "car.v" not in signals.names
