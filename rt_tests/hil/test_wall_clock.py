"""The clock of the machine is set while a rig runs: wall time is only shown, the rig goes on as before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rig_help import PATIENT, rig_file, ticks_so_far
from waiting import PATIENCE_S, wait_for

from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.run import RunStats

SHIFT = Path(__file__).with_name("shifted_clock.c")
#: numbers of clocks in C
REALTIME, MONOTONIC = 0, 1

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


def lost(out: Path) -> bool:
    """A second of ticks is lost, or the safe state is latched."""
    info = read_run_info(out)
    stats = None if info is None else info.stats
    return stats is not None and (stats.clock.missed + stats.clock.dropped > 1000 or stats.safe_state.latched)


def run_while(tmp_path: Path, clock: int, jumps: tuple[float, ...]) -> tuple[RunStats, str]:
    """A run on the real clock, in processes whose clock is ahead by these seconds, one after the other; and what the
    command said. It is interrupted once it has ticked on after the last of them."""
    library, ahead, out = tmp_path / "shifted.so", tmp_path / "ahead", tmp_path / "r"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIFT, "-ldl"], check=True)
    ahead.write_text("0")
    rig = rig_file(tmp_path, *PATIENT, "safe_state.overrun_limit = 0", "safe_state.watchdog_s = 60.0", own_bus=True)
    env = dict(os.environ, LD_PRELOAD=str(library), SHIFTED_CLOCK=str(clock), SHIFTED_BY=str(ahead))
    command = [
        sys.executable,
        "-P",
        "-m",
        "torqueloop.hil.cli",
        "run",
        str(rig),
        "--clock",
        "real",
        "--duration",
        "300",
    ]
    process = subprocess.Popen([*command, "--no-html", "--out", str(out)], env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)  # fmt: skip
    try:
        for jump in (0.0, *jumps):
            ahead.write_text(str(jump))
            ticks = ticks_so_far(out)
            wait_for(lambda ticks=ticks: ticks_so_far(out) > ticks + 500 or lost(out), lambda: process.poll() is None)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    info = read_run_info(out)
    assert info is not None and info.stats is not None, said
    return info.stats, said


def test_wall_time_that_is_set_back_and_forth_changes_nothing(tmp_path: Path) -> None:
    """By an hour back, a day ahead, ten years back."""
    stats, said = run_while(tmp_path, REALTIME, (-3600.0, 86400.0, -3.2e8))
    assert not stats.safe_state.latched, said
    assert stats.clock.ticks > 2000 and stats.vehicles["vehicle"].taken > 200
    assert stats.buses["powertrain"].rx["TCU_Pressure_1"].ok > 200


def test_the_clock_of_the_ticks_that_jumps_is_seen(tmp_path: Path) -> None:
    """The same library on the clock that ticks are made from: ticks are missed."""
    _, said = run_while(tmp_path, MONOTONIC, (1.5,))
    assert lost(tmp_path / "r"), said
