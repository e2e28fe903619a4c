"""Driving by hand on the live page, and what was driven as a scenario that drives it again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rig_help import DESK
from waiting import PATIENCE_S, wait_for
from watch_help import Paced, page_in_a_browser

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.driven import save_driven
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.scenario.run import run_scenario
from torqueloop.hil.testing.driven_rig import DrivenRig
from torqueloop.hil.testing.holder import Holder


@pytest.fixture(scope="module")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paced]:
    made = Paced(tmp_path_factory.mktemp("driving") / "run")
    yield made
    made.close()


def test_what_was_driven_is_repeated_to_the_bit(tmp_path: Path) -> None:
    """Holds that begin in any tick, a ramp of the rig file's own driver, the lever, another value of the rig file."""
    finer = {"clock.substeps": 2}
    rig = DrivenRig(Holder(DESK, "virtual", tmp_path / "run", duration_s=30.0, overrides=finer), tmp_path / "run")
    rig.run(1.637)
    for pedal in (0.31, 0.7, 1.0):
        rig.drive(pedal=pedal, lever="D")
        rig.run(0.413)
    rig.drive(lever="3", pedal=0.0, brake=0.25)
    rig.run(0.5)
    rig.release()
    rig.run(0.2)
    rig.end()
    driven = save_driven(tmp_path / "run", tmp_path / "drive.toml")
    again = run_scenario(driven.path, out=tmp_path / "again", html=False)
    first, second = read_signals(tmp_path / "run"), read_signals(tmp_path / "again")
    assert driven.seconds == pytest.approx(first.n * 1e-3) and first.n == second.n > 3000
    assert {3.0, 5.0} <= set(first["driver.lever"]) and 0.31 in first["driver.pedal"]
    differ = [name for name in first.names if not np.array_equal(first[name], second[name], equal_nan=True)]
    assert differ == [] and again.run.info.overrides["clock.substeps"] == 2


@pytest.mark.parametrize("changed", ["record.every", "record.signals"])
def test_a_recording_that_is_not_tick_by_tick_is_refused(changed: str, tmp_path: Path) -> None:
    values = {"record.every": {"record.every": 2}, "record.signals": {"record.signals": ["engine.w"]}}[changed]
    run = run_rig(DESK, RunSpec("virtual", 0.1, tmp_path / "run", overrides=values))
    with pytest.raises(ConfigError, match=r"tick by tick|no recorded signal of the driver"):
        save_driven(run.out, tmp_path / "drive.toml")
    assert not (tmp_path / "drive.toml").exists()


def test_the_page_writes_a_scenario_once_and_only_beside_the_run(paced: Paced) -> None:
    wait_for(lambda: read_signals(paced.holder.live.folder.path).n > 0)
    code, answer = paced.ask("/command", {"kind": "save_driven", "name": "morning"})
    assert code == 200 and answer["ok"], answer
    assert Path(answer["file"]).parent == paced.holder.live.folder.path
    assert answer["seconds"] > 0 and "[driver]" in Path(answer["file"]).read_text()
    assert "choose another name" in paced.ask("/command", {"kind": "save_driven", "name": "morning"})[1]["error"]
    for name in ("", "../morning", "a/b", "a" * 65, "a\n"):
        assert "is no name of a file" in paced.ask("/command", {"kind": "save_driven", "name": name})[1]["error"]


def test_run_with_the_page_keeps_the_pace_of_a_clock_on_the_wall(tmp_path: Path) -> None:
    """`torqueloop run --watch`: the page's address is printed, both endpoints are open, the page ends with the run."""
    command = "run desk_4hp22 --clock virtual --watch --duration 8 --out run --no-html -q".split()
    done = subprocess.run([sys.executable, "-m", "torqueloop.hil.cli", *command], cwd=tmp_path, timeout=PATIENCE_S,
                          capture_output=True, text=True, env={**os.environ, "BROWSER": "true"})  # fmt: skip
    info = read_run_info(tmp_path / "run")
    assert info is not None and info.control and info.telemetry and "http://127.0.0.1:" in done.stdout, done.stderr
    assert info.stats is not None and info.stats.clock.real_time_factor is not None
    assert info.stats.clock.ticks == 8000 and info.stats.clock.real_time_factor < 1.01


@pytest.mark.proof
def test_in_a_browser(paced: Paced) -> None:
    """Pedals come up when their key is released, the switches follow, the lever by its letter, a slider stays."""

    def held(**wanted: float) -> None:
        wait_for(lambda: all(paced.rig.value(f"driver.{name}") == x for name, x in wanted.items()))

    with page_in_a_browser(paced) as tab:
        tab.keyboard.press("w")
        assert tab.evaluate("document.getElementById('drive-pedal').disabled") and tab.inner_text("#held") == ""
        tab.click("#wheel")
        tab.keyboard.press("d")
        held(lever=3.0)
        tab.keyboard.down("w")
        held(pedal=1.0, kickdown=0.0)
        assert tab.inner_text("#drive-pedal + output") == "100 %"
        tab.keyboard.up("w")
        held(pedal=0.0)
        tab.keyboard.down("k")
        held(pedal=1.0, kickdown=1.0)
        tab.keyboard.up("k")
        held(pedal=0.0, kickdown=0.0)
        tab.keyboard.down("ArrowDown")
        held(brake=1.0, brake_switch=1.0)
        tab.keyboard.up("ArrowDown")
        held(brake=0.0, brake_switch=0.0)
        tab.fill("#drive-pedal", "0.4")
        held(pedal=0.4)
        # letters that are typed into a field drive nothing
        tab.fill("#filter", "")
        tab.type("#filter", "nr")
        tab.get_by_role("button", name="2", exact=True).click()
        held(lever=6.0, pedal=0.4)
        tab.fill("#driven-name", "by_hand")
        tab.click("#save-driven button")
        wait_for(lambda: "torqueloop scenario" in tab.inner_text("#driven"))
        assert (paced.holder.live.folder.path / "by_hand.toml").is_file()
        tab.click("#wheel")
        wait_for(lambda: tab.inner_text("#held") == "")
        assert tab.inner_text("#wheel") == "Take the wheel"
