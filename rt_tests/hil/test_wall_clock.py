"""The clock of the machine is set while a rig runs: wall time is only shown, the rig goes on as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rig_help import rig_file

from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.run import RunStats

SHIFT = Path(__file__).with_name("shifted_clock.c")
#: numbers of clocks in C
REALTIME, MONOTONIC = 0, 1

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


def run_while(tmp_path: Path, clock: int, jumps: tuple[float, ...]) -> tuple[RunStats, str]:
    """A run of 4 s on the real clock, in processes whose clock is ahead by these seconds, one after the other; and what
    the command said."""
    library, ahead, out = tmp_path / "shifted.so", tmp_path / "ahead", tmp_path / "r"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIFT, "-ldl"], check=True)
    ahead.write_text("0")
    slow = (
        "bus.powertrain.rx_timeout_s.TCU_Pressure_1",
        "bus.powertrain.rx_timeout_s.TCU_Pressure_2",
        "vehicle.age_limit_s",
    )
    rig = rig_file(tmp_path, *(f"{key} = 2.0" for key in slow), "safe_state.overrun_limit = 0", own_bus=True)
    env = dict(os.environ, LD_PRELOAD=str(library), SHIFTED_CLOCK=str(clock), SHIFTED_BY=str(ahead))
    command = [sys.executable, "-P", "-m", "torqueloop.hil.cli", "run", str(rig), "--clock", "real", "--duration", "4"]
    process = subprocess.Popen([*command, "--no-html", "--out", str(out)], env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)  # fmt: skip
    until = time.monotonic() + 60.0
    # what the first ticks have taken in
    while sum(f.stat().st_size for f in out.glob("inputs/*")) < 50_000:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    for jump in jumps:
        time.sleep(0.6)
        assert process.poll() is None, "the run is over before its clock is set"
        ahead.write_text(str(jump))
    try:
        said, _ = process.communicate(timeout=120.0)
    finally:
        process.kill()
    info = read_run_info(out)
    assert info is not None and info.stats is not None, said
    return info.stats, said


def test_wall_time_that_is_set_back_and_forth_changes_nothing(tmp_path: Path) -> None:
    """By an hour back, a day ahead, ten years back."""
    stats, said = run_while(tmp_path, REALTIME, (-3600.0, 86400.0, -3.2e8))
    assert not stats.safe_state.latched, said
    assert stats.clock.ticks == 4000 and stats.vehicles["vehicle"].taken > 200
    assert stats.buses["powertrain"].rx["TCU_Pressure_1"].ok > 200


def test_the_clock_of_the_ticks_that_jumps_is_seen(tmp_path: Path) -> None:
    """The same library on the clock that ticks are made from, ahead for a while: ticks are missed."""
    stats, said = run_while(tmp_path, MONOTONIC, (1.5, 0.0))
    lost = stats.clock.missed + stats.clock.dropped
    assert lost > 1000 or stats.safe_state.latched, said
