"""A shaft that breaks in a rig: closed forms before and after, energy, replay; and as a component by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.run.replay import replay

LINE = """
name = "two_rotors"
connections = [["drive.flange", "a.flange_a"], ["a.flange_b", "shaft.flange_a"], ["shaft.flange_b", "b.flange_a"]]
[components.drive]
kind = "Torque"
[components.a]
kind = "Inertia"
J_kgm2 = 0.5
[components.b]
kind = "Inertia"
J_kgm2 = 1.5
[components.shaft]
kind = "BreakableShaft"
tau_hold_Nm = 100.0
"""
RIG = """
[rig]
name = "shaft"
duration_s = 1.0
[plant]
powertrain = "line.toml"
[inputs]
"drive.tau" = { signal = "driver.torque", gain = 10.0 }
[driver]
torque = 4.0
"""


def rig(folder: Path, more: str = "") -> Path:
    (folder / "line.toml").write_text(LINE)
    (folder / "rig.toml").write_text(RIG + more)
    return folder / "rig.toml"


def test_before_both_turn_as_one_and_afterwards_each_by_itself(tmp_path: Path) -> None:
    fault = '[[faults]]\nelement = "shaft"\nkind = "broken"\nfrom_s = 0.5\nuntil_s = 5.0\n'
    run = tl.run(rig(tmp_path, fault), clock="virtual", duration=1.0, out=tmp_path / "run", html=False)
    t = run.t
    whole, after = t < 0.4995, t > 0.5015
    assert np.abs(run["a.w"][whole] - 20.0 * t[whole]).max() < 1e-9
    assert (
        np.abs(run["shaft.tau"][whole][5:] + 30.0).max() < 1e-9
        or np.abs(run["shaft.tau"][whole][5:] - 30.0).max() < 1e-9
    )
    # 40 Nm on 0.5 kg m2 alone; the other end goes on at 10 rad/s
    assert np.abs(run["b.w"][after] - run["b.w"][after][0]).max() < 1e-12 and abs(run["b.w"][-1] - 10.0) < 0.03
    assert np.polyfit(t[after], run["a.w"][after], 1)[0] == pytest.approx(80.0, rel=1e-9)
    assert run.metrics["energy_residual_rel"] < 1e-9 and replay(run.path).difference is None


def test_too_much_torque_slides(tmp_path: Path) -> None:
    over = {"driver.torque": [[0.0, 20.0]]}
    run = tl.run(rig(tmp_path), clock="virtual", duration=0.2, out=tmp_path / "run", html=False, overrides=over)
    # it would carry 150 Nm: 100 Nm are held, the rest turns a alone
    slope = [np.polyfit(run.t[10:], run[name][10:], 1)[0] for name in ("a.w", "b.w")]
    assert slope == pytest.approx([(200.0 - 100.0) / 0.5, 100.0 / 1.5], rel=1e-9)


def test_only_a_shaft_can_break(tmp_path: Path) -> None:
    fault = {"element": "C4", "kind": "broken"}
    with pytest.raises(ConfigError, match="no BreakableShaft .C4"):
        tl.run("desk_4hp22", clock="virtual", duration=0.1, out=tmp_path / "run", overrides={"faults": [fault]})
