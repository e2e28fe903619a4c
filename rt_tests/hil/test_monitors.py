"""Monitors: every shipped rig passes as it is, and fails with one element dead, one signal inverted, one shift that
lasts ten times as long; each planted defect (planted.py) fails one monitor with its sentence. What is wrong is in the
plant, the wiring or the control unit, never in a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from planted import DEFECTS, FIRST, SOLENOIDS, Defect, changed, first_unit

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.monitors.catalogue import BY_NAME, MONITORS
from torqueloop.hil.report.monitors import MonitorVerdict
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
#: planted defects of every run of the tests; the others with the long ones
QUICK = {"elements swapped", "late acknowledge", "neutral in D"}
#: one of each gearbox in every run of the tests, the others with the long ones
EVERY_DAY = {"desk_4hp22", "desk_6hp26"}
RIGS = [pytest.param(rig, marks=() if rig in EVERY_DAY else pytest.mark.long) for rig in (*SOFT, SOLENOIDS)]


def drive(rig: str, out: Path, overrides: dict[str, Any] | None = None, duration: float | None = None) -> RecordedRun:
    return tl.run(rig, clock="virtual", out=out, overrides=overrides, duration=duration, html=False)


def failed(run: RecordedRun) -> list[MonitorVerdict]:
    return [v for v in run.report.monitors if v.state == "failed"]


def dead(rig: str) -> dict[str, Any]:
    """The piston of one element gets no pressure."""
    return {f'inputs."{SOFT[rig][1] if rig in SOFT else "K2"}.p"': {"value": 0.0}}


def inverted(rig: str) -> dict[str, Any]:
    """The control unit is told the output speed with the wrong sign; over solenoids, D and R of the lever's valve are
    exchanged."""
    if rig == SOLENOIDS:
        return {"hydraulics.solenoids.LEVER_D": "sensor.manual_R", "hydraulics.solenoids.LEVER_R": "sensor.manual_D"}
    return {'outputs."HIL_Speeds.n_output"': {"signal": "out.w", "gain": -1.0}}


def stretched(rig: str, folder: Path) -> dict[str, Any]:
    """Every phase of the shift 2-3 lasts ten times as long, as far as the file allows; over solenoids, the ramps of all
    shifts that the controller in C makes."""
    if rig == SOLENOIDS:
        slow = (("in_phase_s / 0.25", "in_phase_s / 2.5"), ("in_phase_s / 0.5", "in_phase_s / 5.0"),
                ("in_phase_s > 1.2", "in_phase_s > 9.0"))  # fmt: skip
        return {"ecu.egs.start": str(changed("mb_7226.c", slow, folder))}
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
    assert good.passed, [*failed(good), *(c for c in good.report.checks if not c.passed)]
    solver = good.report.run.stats.solver
    assert solver is not None and solver.fallbacks == solver.steep_unsolved == 0
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
    assert "no_drive" in {v.name for v in failed(run)}
    assert run.report.summary.endswith("A is closed, which drives nothing; C is open, which 2 needs.")


def test_a_unit_in_c_is_compiled_into_a_run_directory_that_is_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = first_unit()(tmp_path)
    monkeypatch.chdir(tmp_path)
    drive(str(tmp_path / FIRST), Path("here"), overrides, 0.1)
    assert (tmp_path / "here" / "unit.so").exists()


def test_a_solenoid_of_a_gear_that_is_never_asked_for_may_rest(tmp_path: Path) -> None:
    """The driver keeps the unit in 2nd gear: D, which the gears from 4 on need, never gets a current."""
    overrides = first_unit(driver__gear="2", rig__duration_s=14.0)(tmp_path)
    run = drive(str(tmp_path / FIRST), tmp_path / "run", overrides)
    assert run.passed and np.ptp(run["Currents_1.i_D"]) == 0.0 < np.ptp(run["Currents_2.i_park"])
    assert verdict(run, "actuator_still").text == "each actuator moved: Currents_2.i_park"


def test_behind_the_safe_state_the_gearbox_is_not_judged(tmp_path: Path) -> None:
    """A control unit that falls silent at speed: the rig opens all elements, and says why; no monitor blames the
    gearbox."""
    fault = {"node": "TCU", "kind": "silent", "from_s": 6.0}
    run = drive("desk_6hp26", tmp_path / "run", {"faults": [fault]}, duration=16.0)
    safe = run.report.stats.safe_state
    assert safe.latched and not run.passed and failed(run) == []
    assert run.report.summary == f"The rig went to its safe state at {(safe.step + 1) * 1e-3:.2f} s: {safe.cause}."
    # the same elements open, without a safe state that says why
    faults = [{"signal": f"input.{e}.p", "kind": "value", "value": 0.0, "from_s": 6.0} for e in "ABCDE"]
    assert "no_drive" in {v.name for v in failed(drive("desk_6hp26", tmp_path / "open", {"faults": faults}, 16.0))}


def test_a_run_cut_short_is_judged_by_what_it_has_reached(tmp_path: Path) -> None:
    run = drive("desk_6hp26", tmp_path / "run", duration=10.0)
    assert run.passed and verdict(run, "reaches").state == "not reached"
    # the same drive to its end in a car too heavy to come there
    heavy = drive("desk_6hp26", tmp_path / "heavy", {"rig.duration_s": 10.0})
    assert [v.name for v in failed(heavy)] == ["reaches"]
    assert heavy.report.summary == "The drive does not come to gear 6: the highest is 3."


def test_limits_are_moved_and_waived_by_a_key(tmp_path: Path) -> None:
    tight = drive("desk_6hp26", tmp_path / "tight", {"monitors.limit": {"shift_time": 0.3}}, duration=10.0)
    assert [v.name for v in failed(tight)] == ["shift_time"] and verdict(tight, "shift_time").limit == 0.3
    moved = {"monitors.limit": {"shift_time": 0.3}, "monitors.waive": {"shift_time": "the valve body is old"}}
    waived = drive("desk_6hp26", tmp_path / "waived", moved, duration=10.0)
    assert waived.passed and verdict(waived, "shift_time").state == "waived"
    assert verdict(waived, "shift_time").text.endswith("Waived: the valve body is old")
    with pytest.raises(tl.ConfigError, match="reaches = '7' is no gear of this gearbox"):
        drive("desk_6hp26", tmp_path / "seven", {"monitors.reaches": "7"})
    with pytest.raises(tl.ConfigError, match="did you mean 'shift_time'"):
        drive("desk_6hp26", tmp_path / "typo", {"monitors.waive": {"shift_tme": "a slip"}})


def test_friction_power_is_the_mean_of_the_loss_over_the_lining(tmp_path: Path) -> None:
    """From the recorded loss power of each element and the plates of the gearbox file; beyond its limit it fails."""
    run = drive("desk_6hp26", tmp_path / "run", {"monitors.limit": {"heat_power": 0.1}}, duration=10.0)
    found = verdict(run, "heat_power")
    window = np.ones(100) / 100.0  # 0.1 s of ticks
    area = {"A": 105506.0, "B": 105506.0, "C": 70337.0, "D": 282743.0, "E": 81091.0}  # mm2: faces pi (r_o^2 - r_i^2)
    # what the lever has engaged in the first seconds is the driver's
    late = run.t[len(window) - 1 :] > 5.5
    power = {e: float(np.convolve(run[f"{e}.lossPower"], window, "valid")[late].max() / a) for e, a in area.items()}
    most = max(power, key=power.__getitem__)
    assert found.state == "failed" and found.worst == pytest.approx(power[most], rel=0.02)
    assert found.text.startswith(f"{most} takes {power[most]:.1f} W/mm² of friction power for 0.1 s")


def test_each_monitor_is_a_case_of_junit_with_its_state(tmp_path: Path) -> None:
    drive("desk_6hp26", tmp_path / "run", {"monitors.limit": {"shift_time": 0.3}}, duration=6.0)
    suites = ElementTree.parse(tmp_path / "run" / "junit.xml").getroot()
    cases = {c.get("name"): [e.tag for e in c] for c in suites.findall("testsuite[@name='monitors']/testcase")}
    assert list(cases) == [m.name for m in MONITORS]
    assert cases["shift_time"] == ["failure"] and cases["reaches"] == ["skipped"] and cases["flare"] == []


def test_a_step_reacts_to_a_latched_monitor_and_the_recording_gives_the_same(tmp_path: Path) -> None:
    """monitor.tie_up is a signal of the tick; what is found from the recording begins in the tick in which it rises."""
    steps = [
        {
            "name": "go",
            "at_s": 2.0,
            "set": {"pedal": {"to": 0.49, "over_s": 0.5}, "brake": {"to": 0.0}, "lever": {"to": "D"}},
        },
        {"name": "let off", "when": "monitor.tie_up == 1", "set": {"pedal": {"to": 0.0}}, "hold_s": 0.5},
    ]
    faults = [{"signal": "input.E.p", "kind": "value", "value": 6.0e5, "from_s": 3.4}]
    run = drive("desk_zf_8hp70", tmp_path / "run", {"steps": steps, "faults": faults})
    latched = np.flatnonzero(run["monitor.tie_up"])
    found = verdict(run, "tie_up")
    assert found.first_s is not None and len(latched)
    # the limit is exceeded for hold_s before it latches
    assert run.t[latched[0]] - found.first_s == pytest.approx(BY_NAME["tie_up"].hold_s, abs=1e-9)
    assert run["driver.pedal"][latched[0] - 1] == 0.49 and run["driver.pedal"][-1] == 0.0
    for m in (m for m in MONITORS if m.online):
        assert bool(run[m.signal][-1]) == (verdict(run, m.name).state in ("failed", "follows")), m.name


@pytest.mark.parametrize("defect", [pytest.param(d, id=d.name, marks=() if d.name in QUICK else pytest.mark.long)
                                    for d in DEFECTS])  # fmt: skip
def test_a_planted_defect_fails_one_monitor_with_its_sentence(defect: Defect, tmp_path: Path) -> None:
    planted = defect.plant(tmp_path)
    run = drive(defect.rig_in(tmp_path), tmp_path / "run", planted, defect.duration_s)
    assert [v.name for v in failed(run)] == [defect.monitor]
    assert defect.says in run.report.summary == verdict(run, defect.monitor).text


@pytest.mark.rt
@pytest.mark.long  # in real time, and only where the machine has nothing else to do: late ticks are findings as well
@pytest.mark.parametrize("defect", [pytest.param(d, id=d.name) for d in DEFECTS])
def test_a_planted_defect_fails_on_the_real_clock_too(defect: Defect, tmp_path: Path) -> None:
    planted = defect.plant(tmp_path)
    run = tl.run(defect.rig_in(tmp_path), clock="real", out=tmp_path / "run", overrides=planted, html=False,
                 duration=defect.duration_s)  # fmt: skip
    assert [v.name for v in failed(run)] == [defect.monitor] and defect.says in run.report.summary


def verdict(run: RecordedRun, name: str) -> MonitorVerdict:
    return next(v for v in run.report.monitors if v.name == name)
