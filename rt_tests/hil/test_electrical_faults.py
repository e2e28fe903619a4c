"""Faults of wires, coils and the supply in a rig: what each does to the current, its measurement and the pressure."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.run.replay import replay

U, R = 12.0, 5.0
COMMAND = {"EDS_C4": "TCU_Pressure_1.p_C4", "EDS_C11": "TCU_Pressure_2.p_C11"}
#: the clutch of the lever has a coil that a current is regulated in; the one of second gear is switched from the supply
UNIT = """kind = "hydraulics"
extends = "zf_4hp22_direct"
name = "with_coils"
without = ["solenoid.EDS_C4.coil_s", "solenoid.EDS_C11.coil_s"]
[solenoid.EDS_C4.coil]
resistance_ohm = 5.0
inductance_H = 0.01
drive = "current"
[solenoid.EDS_C11]
bar_over_command = [[0.0, 0.0], [2.4, 10.0]]
[solenoid.EDS_C11.coil]
resistance_ohm = 5.0
inductance_H = 0.01
side = "high"
"""
RIG = """kind = "rig"
extends = "desk_4hp22_solenoids"
[rig]
name = "with_coils"
[supply]
battery_V = [[0.0, 12.0]]
[hydraulics]
file = "with_coils.toml"
supply = "supply.terminal_30"
"""


def driven(folder: Path, *faults: dict[str, Any], duration: float = 1.0, **more: Any) -> tl.RecordedRun:
    """One second of the desk rig, in which the control unit closes C4 and C11."""
    (folder / "with_coils.toml").write_text(UNIT)
    (folder / "rig.toml").write_text(RIG)
    return tl.run(folder / "rig.toml", clock="virtual", duration=duration, out=folder / "run", html=False,
                  overrides={"faults": list(faults), "record.every": 1, **more})  # fmt: skip


def seen(run: tl.RecordedRun, solenoid: str, t: float) -> tuple[float, float]:
    """Current of the coil and what the output stage measures, at a time."""
    k = int(np.searchsorted(run.t, t))
    return float(run[f"hydraulics.{solenoid}.i"][k]), float(run[f"hydraulics.{solenoid}.sense"][k])


@pytest.mark.parametrize(
    ("solenoid", "kind", "value", "current", "measured"),
    [
        ("EDS_C4", "open", None, 0.0, 0.0),
        ("EDS_C4", "resistance", 200.0, U / 200.0, U / 200.0),
        # low side: the coil hangs on the supply, and the output stage sees nothing of its current
        ("EDS_C4", "short_to_ground", None, U / R, 0.0),
        ("EDS_C4", "short_to_battery", None, 0.0, 0.0),
        # high side
        ("EDS_C11", "short_to_battery", None, U / R, 0.0),
        ("EDS_C11", "short_to_ground", None, 0.0, 0.0),
    ],
)  # fmt: skip
def test_an_electrical_fault_has_the_current_of_ohms_law(
    tmp_path: Path, solenoid: str, kind: str, value: float | None, current: float, measured: float
) -> None:
    fault = {"solenoid": solenoid, "kind": kind, "from_s": 0.6, "until_s": 0.8} | ({"value": value} if value else {})
    run = driven(tmp_path, fault)
    i, sense = seen(run, solenoid, 0.79)
    # from regulated to free-wheeling and back: many time constants of 2 ms
    assert i == pytest.approx(current, rel=1e-9, abs=1e-7) and sense == pytest.approx(measured, rel=1e-9, abs=1e-7)
    for t in (0.59, 0.99):
        i, sense = seen(run, solenoid, t)
        wanted = run[COMMAND[solenoid]][int(np.searchsorted(run.t, t))] * 1e-6
        if solenoid == "EDS_C11":
            # a duty, and the diode in between
            wanted = max(0.0, wanted * U - (1.0 - wanted) * 0.7) / R
        assert i == sense == pytest.approx(wanted, abs=0.01), "before and after it, the command"
        assert wanted > 0.05
    assert replay(run.path).difference is None


def test_a_stuck_valve_has_current_and_an_old_pressure(tmp_path: Path) -> None:
    run = driven(tmp_path, {"solenoid": "EDS_C4", "kind": "stuck_valve", "from_s": 0.0})
    assert run["hydraulics.EDS_C4.i"].max() > 0.14 and run["hydraulics.EDS_C4.p"].max() == 0.0


def test_a_crank_dip_and_a_fault_of_the_battery_reach_the_coils(tmp_path: Path) -> None:
    dip = [[0.0, 12.0], [0.4, 12.0], [0.405, 8.0], [0.42, 8.0], [0.47, 9.5], [0.7, 9.5], [0.74, 12.0]]
    run = driven(tmp_path, {"solenoid": "EDS_C11", "kind": "short_to_battery"},
                 {"signal": "supply.terminal_30", "kind": "value", "value": 5.0, "from_s": 0.8, "until_s": 0.9},
                 **{"supply.battery_V": dip})  # fmt: skip
    for t, u in ((0.39, 12.0), (0.69, 9.5), (0.89, 5.0), (0.99, 12.0)):
        assert seen(run, "EDS_C11", t)[0] == pytest.approx(u / R, rel=1e-6), t
    # in the ramp the current is late by the time constant of the coil; the voltage is held over a tick
    keep = math.exp(-1e-3 * R / 0.01)
    ramp = (run.t > 0.44) & (run.t < 0.465)
    late = run["supply.terminal_30"][ramp] - R * run["hydraulics.EDS_C11.i"][ramp]
    assert late == pytest.approx(1.5 / 0.05 * 1e-3 * keep / (1.0 - keep), rel=1e-4)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"solenoid": "EDS_C5", "kind": "open"}, r"EDS_C5.*has no coil.*solenoid\.EDS_C5\.coil"),
        ({"solenoid": "EDS_C4", "kind": "resistance"}, "needs a value"),
        ({"solenoid": "EDS_C4", "kind": "resistance", "value": 0.0}, "out of range"),
        ({"solenoid": "EDS_C4", "kind": "open", "value": 1.0}, "takes no value"),
        ({"message": "HIL_Speeds", "kind": "short_to_ground"}, "no fault of kind"),
    ],
)
def test_mistakes_in_electrical_faults_are_named(tmp_path: Path, fault: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        driven(tmp_path, fault)


def test_a_rig_without_a_supply_for_its_coils_is_refused(tmp_path: Path) -> None:
    (tmp_path / "with_coils.toml").write_text(UNIT)
    (tmp_path / "rig.toml").write_text(RIG.replace('supply = "supply.terminal_30"\n', ""))
    with pytest.raises(ConfigError, match="supply.*EDS_C4"):
        tl.run(tmp_path / "rig.toml", clock="virtual", duration=0.1, out=tmp_path / "run", html=False)


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
def test_the_broken_wire_of_a_shift_solenoid_keeps_the_valve_body_in_first_gear(tmp_path: Path) -> None:
    fault = {"solenoid": "Y3", "kind": "open"}
    for name, faults in (("whole", []), ("broken", [fault])):
        run = tl.run("desk_mb_7226_solenoids", clock="virtual", duration=7.5, out=tmp_path / name, html=False,
                     overrides={"faults": faults})  # fmt: skip
        assert "1 -> 2" in (tmp_path / name / "egs.log").read_text()
        closed = {e for e in ("K1", "B1") if run[f"{e}.p"][-1] > 3e5}
        assert closed == ({"B1"} if faults else {"K1"}), name
        assert (run["hydraulics.Y3.sense"].max() < 1e-6) == bool(faults)
