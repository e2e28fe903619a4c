"""Monitors: every shipped rig passes as it is, and fails with one element dead, one signal inverted, one shift that
lasts ten times as long. What is wrong is in the plant, the wiring or the control unit, never in a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.hil.ecu.config import load_tcu_config
from torqueloop.hil.report.checks import Check
from torqueloop.hil.runs.recorded_run import RecordedRun

#: rig -> soft TCU whose shifts are stretched, element that holds one of its gears
SOFT = {
    "desk_4hp22": ("soft_4hp22", "C5"),
    "desk_4hp22_axle": ("soft_4hp22", "C11"),
    "desk_4hp22_body": ("soft_4hp22", "C12"),
    "desk_4hp22_cycle": ("soft_4hp22", "C5"),
    "desk_4hp22_mounts": ("soft_4hp22", "C4"),
    "desk_4hp22_solenoids": ("soft_4hp22", "C5"),
    "desk_6hp26": ("soft_6hp26", "E"),
    "desk_bmw_e9x": ("soft_6hp26", "C"),
    "desk_gm_4l60e": ("soft_gm_4l60e", "C34"),
    "desk_hyundai": ("soft_zf_8hp45", "C"),
    "desk_j1939": ("soft_zf_8hp70", "D"),
    "desk_mb_7226": ("soft_mb_7226", "K2"),
    "desk_mb_egs52": ("soft_mb_7226", "K3"),
    "desk_vw_mqb": ("soft_6hp26", "B"),
    "desk_vw_pq": ("soft_zf_4hp22_small", "C5"),
    "desk_zf_4hp22_small": ("soft_zf_4hp22_small", "C6"),
    "desk_zf_8hp45": ("soft_zf_8hp45", "E"),
    "desk_zf_8hp70": ("soft_zf_8hp70", "A"),
    "two_buses_4hp22": ("soft_4hp22", "C5"),
    "vcan_4hp22": ("soft_4hp22", "C12"),
}
SOLENOIDS = "desk_mb_7226_solenoids"
#: one of each gearbox in every run of the tests, the others with the long ones
EVERY_DAY = {"desk_4hp22", "desk_6hp26"}
RIGS = [pytest.param(rig, marks=() if rig in EVERY_DAY else pytest.mark.long) for rig in (*SOFT, SOLENOIDS)]


def drive(rig: str, out: Path, overrides: dict[str, Any] | None = None, duration: float | None = None) -> RecordedRun:
    return tl.run(rig, clock="virtual", out=out, overrides=overrides, duration=duration, html=False)


def failed(run: RecordedRun) -> list[Check]:
    names = ("gears as the schedule asks for", "shifts in time", "car moves off", "acceleration in range")
    return [c for c in run.report.checks if not c.passed and c.counts and c.name in names]


def dead(rig: str) -> dict[str, Any]:
    """The piston of one element gets no pressure."""
    return {f'inputs."{SOFT[rig][1] if rig in SOFT else "K2"}.p"': {"value": 0.0}}


def inverted(rig: str) -> dict[str, Any]:
    """The control unit is told the output speed with the wrong sign; over solenoids, the pedal."""
    if rig == SOLENOIDS:
        return {'inputs."engine.pedal"': {"signal": "engine_control.pedal", "gain": -1.0, "offset": 1.0}}
    return {'outputs."HIL_Speeds.n_output"': {"signal": "out.w", "gain": -1.0}}


def stretched(rig: str, folder: Path) -> dict[str, Any]:
    """Every phase of the shift 2-3 lasts ten times as long, as far as the file allows; over solenoids, the ramps of all
    shifts that the controller in C makes."""
    if rig == SOLENOIDS:
        text = (Path(tl.__file__).parent / "configs/examples/external/mb_7226.c").read_text()
        for old, new in (("in_phase_s / 0.25", "in_phase_s / 2.5"), ("in_phase_s / 0.5", "in_phase_s / 5.0"),
                         ("in_phase_s > 1.2", "in_phase_s > 9.0")):  # fmt: skip
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / "slow.c").write_text(text)
        return {"ecu.egs.start": str(folder / "slow.c")}
    phases = load_tcu_config(installed("tcu")[SOFT[rig][0]]).phases("2-3")
    slow = [
        {
            **p.model_dump(exclude_none=True),
            "duration_s": min(10.0, 10.0 * p.duration_s),
            "timeout_s": min(10.0, 10.0 * p.timeout_s),
            "inertia_s": min(5.0, 10.0 * p.inertia_s),
        }
        for p in phases
    ]
    return {"ecu.tcu.options.set": {"shifts.2-3": {"phases": slow}}}


@pytest.mark.parametrize("rig", RIGS)
def test_a_shipped_rig_passes_as_it_is_and_fails_when_something_is_wrong(rig: str, tmp_path: Path) -> None:
    good = drive(rig, tmp_path / "good")
    assert good.passed, [c for c in good.report.checks if not c.passed]
    plants = {"dead": dead(rig), "inverted": inverted(rig), "stretched": stretched(rig, tmp_path)}
    for name, overrides in plants.items():
        run = drive(rig, tmp_path / name, overrides)
        print(f"{rig:24}{name:11}{'; '.join(c.text for c in failed(run))[:150]}")
        assert failed(run) and not run.passed, name


def test_two_clutches_of_the_six_speed_forced_to_0_fail(tmp_path: Path) -> None:
    """The case the monitors are for: gears left out, none for seconds, and every gate written by hand passes."""
    faults = [{"signal": f"input.{e}.p", "kind": "value", "value": 0.0, "from_s": 0.0} for e in ("C", "E")]
    run = drive("desk_6hp26", tmp_path / "run", {"faults": faults})
    assert all(g.passed for g in run.report.gates)
    assert {c.name for c in failed(run)} >= {"gears as the schedule asks for", "shifts in time"}
    assert "longest" in failed(run)[1].text


def test_a_run_cut_short_is_judged_by_what_it_has_reached(tmp_path: Path) -> None:
    run = drive("desk_6hp26", tmp_path / "run", duration=10.0)
    gears = next(c for c in run.report.checks if c.name == "gears as the schedule asks for")
    assert run.passed and gears.text == "engaged 1 2 3; not reached: 4, 5, 6, the run was cut short"
    # the same drive to its end in a car too heavy to come there
    heavy = drive("desk_6hp26", tmp_path / "heavy", {"rig.duration_s": 10.0})
    assert [c.text[:22] for c in failed(heavy)] == ["gear 6 is not reached;"]


def test_limits_are_moved_and_waived_by_a_key(tmp_path: Path) -> None:
    tight = drive("desk_6hp26", tmp_path / "tight", {"monitors.shift_s": 0.3}, duration=10.0)
    assert [c.name for c in failed(tight)] == ["shifts in time"] and "allowed 0.30 s" in failed(tight)[0].text
    assert drive("desk_6hp26", tmp_path / "waived", {"monitors.shift_s": 0.0}, duration=10.0).passed
    with pytest.raises(tl.ConfigError, match="reaches = '7' is no gear of this gearbox"):
        drive("desk_6hp26", tmp_path / "seven", {"monitors.reaches": "7"})
