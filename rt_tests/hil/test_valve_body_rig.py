"""The 722.6 over solenoid currents with a shift controller compiled from C, and solenoids that fail."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.run.replay import replay

needs_cc = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")


@needs_cc
@pytest.mark.long
def test_five_gears_up_and_down_over_currents(tmp_path: Path) -> None:
    run = tl.run("desk_mb_7226_solenoids", clock="virtual", out=tmp_path / "run", html=False)
    assert not [g.text for g in run.report.gates if not g.passed] and run.metrics["energy_residual_rel"] < 1e-8
    told = re.findall(r"(\d) -> (\d)", (tmp_path / "run" / "egs.log").read_text())
    assert [int(b) for _, b in told] == [1, 2, 3, 4, 5, 4, 3, 2, 1]
    # torque was asked for and given in each shift up
    asked, driver = run["GS_218.request_min"] > 0.5, run["engine_control.tau_driver"]
    assert asked.sum() > 500 and (run["engine_control.tau_limit"][asked] < 0.8 * driver[asked]).mean() > 0.9
    assert replay(run.path).difference is None


@needs_cc
def test_into_first_over_currents_with_the_speeds_of_two_sensors(tmp_path: Path) -> None:
    run = tl.run("desk_mb_7226_solenoids", clock="virtual", duration=2.6, out=tmp_path / "run", html=False)
    assert "0 -> 1" in (tmp_path / "run" / "egs.log").read_text() and run["car.v"][-1] > 0.3
    on = {e for e in ("K1", "K2", "K3", "B1", "B2", "B3") if run[f"{e}.p"][-1] > 3e5}
    assert on == {"B1", "B2", "K3"}
    # what the controller makes of the teeth of two wheels is the speed of the turbine
    late = run.t > 2.3
    # a message every 20 ms, at 90 rad/s2
    assert np.abs(run["GS_338.turbine_rpm"][late] - run["turbine.w"][late]).max() < 3.0


def test_a_solenoid_that_sticks_and_one_without_current(tmp_path: Path) -> None:
    faults = [
        {"solenoid": "EDS_C11", "kind": "value", "value": 0.0, "from_s": 1.2, "name": "open"},
        {"solenoid": "EDS_C4", "kind": "stuck", "from_s": 0.3, "until_s": 1.0},
    ]
    run = tl.run(
        "desk_4hp22_solenoids", clock="virtual", duration=1.5, out=tmp_path / "run", html=False,
        overrides={"faults": faults},
    )  # fmt: skip
    t = run.t
    # the control unit goes on asking for pressure, and the clutch has none
    assert (
        run["TCU_Pressure_2.p_C11"][-1] > 2e5
        and run["hydraulics.C11.p"][-1] < 0.1e5 < run["hydraulics.C11.p"][t < 1.2].max()
    )
    held = run["hydraulics.EDS_C4.i"][(t > 0.35) & (t < 1.0)]
    assert np.ptp(held) < 1e-3 and run["hydraulics.EDS_C4.i"][-1] > held[-1] + 0.002
    assert [f.name for f in run.stats.faults][:1] == ["open"] and replay(run.path).difference is None


def test_a_solenoid_that_is_none_is_named(tmp_path: Path) -> None:
    fault = {"solenoid": "EDS_C44", "kind": "stuck"}
    with pytest.raises(ConfigError, match="EDS_C44.*EDS_C4"):
        tl.run(
            "desk_4hp22_solenoids", clock="virtual", duration=0.1, out=tmp_path / "run", overrides={"faults": [fault]}
        )
