"""Reference cases at a 1 ms tick against their trajectories: those of the Modelica Standard Library, and our own.

Errors are relative to each column's range, beyond the reference's own deviation, a time shift of up to 10 us allowed.
Source and licence of the trajectories: msl/README.md, msl/LICENSE-MSL; own/: make_cases.py, an independent solution.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="reading case.yaml needs PyYAML (extra `dev`)")

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.errors import CompileError
from torqueloop.core.reference import Case, import_case, read_case
from torqueloop.core.reference.case_run import SHIFT, CaseResult, Trajectory, convergence, run_case
from torqueloop.core.simulate.offline import Simulation

MSL = Path(__file__).parent / "msl"
OWN = Path(__file__).parent / "own"
FRICTION = (
    "CoupledClutches", "SimpleGearShift", "Friction", "OneWayClutch", "LossyGearDemo1", "LossyGearDemo2",
    "LossyGearDemo3",
)  # fmt: skip
SMOOTH = (
    "First", "FirstGrounded", "ElasticBearing", "GenerationOfFMUs", "Backlash", "RollingWheel", "EddyCurrentBrake",
    "ActuatedDrive", "GearConstraint", "GyroscopicEffects",
)  # fmt: skip
OWN_FRICTION = ("OwnLossyGear", "OwnSelfLocking", "OwnFreeWheel", "OwnBlocks")
#: with contacts, stiff shafts or driven motions: as oscillating cases
OWN_OSCILLATING = ("OwnBacklash", "OwnDriven", "OwnHeatLosses", "OwnStopsAndBrake")
MAPPED = (*FRICTION, *SMOOTH)


def folder(name: str) -> Path:
    return (OWN if name.startswith("Own") else MSL) / name


def check(result: CaseResult, tolerance: float) -> None:
    """All columns compared, and none beyond the tolerance."""
    assert not result.failure and not result.unsupported
    flags = ("startForward", "startBackward", "stuck")
    wanted = [c.name for c in read_case(folder(result.case)).columns if c.quantity not in flags]
    assert sorted(wanted) == sorted([*(c.name for c in result.columns), *result.modes])
    worst = result.worst("beyond")
    assert worst is not None and worst.beyond <= tolerance, f"{worst.name} at {worst.worst_time} s: {worst.beyond:.1e}"


@pytest.mark.parametrize(("substeps", "tolerance"), [(1, 1e-4), (8, 1e-5)])
@pytest.mark.parametrize("name", [*FRICTION, *OWN_FRICTION])
def test_friction_case_follows_its_reference(name: str, substeps: int, tolerance: float) -> None:
    check(run_case(folder(name), substeps=substeps, order=4), tolerance)


@pytest.mark.parametrize("substeps", [1, 32])
@pytest.mark.parametrize("name", SMOOTH)
def test_oscillating_case_follows_its_reference(name: str, substeps: int) -> None:
    check(run_case(MSL / name, substeps=substeps, order=4), 1e-5)


@pytest.mark.parametrize("order", [2, 4])
def test_a_car_on_a_hilly_road_follows_its_solution(order: int) -> None:
    # what is left is the polygon of sin and cos of the slope
    check(run_case(OWN / "OwnVehicle", order=order), 1e-6)


@pytest.mark.parametrize(("order", "tolerance"), [(2, 1e-3), (4, 1e-8)])
def test_gears_of_changing_ratio_follow_their_solution(order: int, tolerance: float) -> None:
    check(run_case(OWN / "OwnChangingRatio", order=order), tolerance)


@pytest.mark.parametrize(("substeps", "tolerance"), [(1, 5e-4), (32, 1e-5)])
@pytest.mark.parametrize("name", OWN_OSCILLATING)
def test_own_case_with_contacts_or_driven_motions_follows_its_solution(
    name: str, substeps: int, tolerance: float
) -> None:
    check(run_case(OWN / name, substeps=substeps, order=4), tolerance)


@pytest.mark.parametrize(
    "name", ["CoupledClutches", "SimpleGearShift", "Friction", "LossyGearDemo1", "LossyGearDemo3", *OWN_FRICTION,
             "OwnStopsAndBrake", "OwnDriven", "OwnHeatLosses"]
)  # fmt: skip
def test_modes_equal_those_of_the_reference_away_from_events(name: str) -> None:
    result = run_case(folder(name))
    if name != "OwnFreeWheel":
        assert result.modes
    assert all(fraction == 1.0 for fraction in result.modes.values()), result.modes


def test_two_elements_that_hold_one_shaft_move_as_the_reference_while_it_moves() -> None:
    """LossyGearDemo2: who holds at standstill is not unique (its remarks); the gear's mode elsewhere is."""
    result = run_case(MSL / "LossyGearDemo2")
    # at standstill: 0.0636-0.2304 s and 0.3083-0.4727 s of 0.5 s
    moving = 1.0 - (0.2304 - 0.0636 + 0.4727 - 0.3083) / 0.5
    assert all(fraction >= moving - 0.01 for fraction in result.modes.values()), result.modes


@pytest.mark.parametrize(
    ("name", "largest"),
    [*((name, 4e-3) for name in ("CoupledClutches", "SimpleGearShift", "Friction", "OneWayClutch", "First")),
     # steps of 3 ms and more do not resolve its contact, so their trials end at events instead of being cut there
     ("Backlash", 16e-3), ("Backlash", 2e-3)],
)  # fmt: skip
def test_error_falls_with_at_least_second_order(name: str, largest: float) -> None:
    found = convergence(MSL / name, steps=(largest, largest / 2.0, largest / 4.0))
    coarse, middle, fine = found.own
    # 3.4: a little less than 4, the factor of second order; below 1e-9 rounding decides
    assert middle < 1e-9 or coarse / middle > 3.4
    assert fine < 1e-9 or middle / fine > 3.4


def test_fourth_order_does_not_lose_its_order_at_events() -> None:
    found = convergence(MSL / "OneWayClutch", steps=(4e-3, 2e-3), order=4)
    assert found.own[0] / found.own[1] > 12.0


@pytest.mark.parametrize("name", [*MAPPED, "OwnLossyGear", "OwnSelfLocking", "OwnFreeWheel", "OwnDriven"])
def test_case_runner_and_simulation_walk_the_same_path(name: str) -> None:
    case = read_case(folder(name))
    imported = import_case(case)
    h, duration = 1e-3, 0.5 if case.t_stop < 1.0 else 0.95
    sim = Simulation(imported.driveline, h=h)
    result = sim.run(duration, inputs=imported.inputs)
    if name == "OwnDriven":  # a flange that follows its input has no inertia to oscillate with
        assert not [remark for remark in result.remarks if remark.kind == "oscillation"]
    trajectory = Trajectory(imported, h, "auto", "auto")
    # with rows on the way, and in one go
    for times in ([duration], [0.1, 0.10037, 0.3, duration]):
        trajectory = Trajectory(imported, h, "auto", "auto")
        end = trajectory.values(times)[-1]
        for k, output in enumerate(result.model.output_names):
            assert end[k] == result[output][-1], output  # to the bit


def test_a_body_that_turns_at_1900_rad_per_s_follows_its_reference_where_the_step_resolves_it() -> None:
    """BevelGear1D: a body lighter than the rotors on it, in a Cardan suspension; 2 rad per tick at the end. Its inertia
    cannot be (the reference leaves that of the rotors at rest out), its equations have a solution all the same."""
    check(run_case(MSL / "BevelGear1D", substeps=32, order=4), 1e-9)
    coarse = run_case(MSL / "BevelGear1D", substeps=16, order=4)
    assert 1e-9 < (coarse.largest("beyond") or 0.0) < 1e-4


@pytest.mark.parametrize("name", ["GyroscopicEffects"])
def test_a_gyrostat_is_beyond_its_reference_nowhere(name: str) -> None:
    check(run_case(MSL / name, order=4), 1e-9)


def changed(name: str, component: str, **parameters: object) -> Case:
    """A case with other parameters of one component, its mass properties computed anew."""
    case = read_case(MSL / name)
    components = [dict(c) for c in case.components]
    for c in components:
        if c["name"] == component:
            c["parameters"] = {**c["parameters"], **parameters}
            c.pop("derived", None)
    return replace(case, components=components)


@pytest.mark.parametrize(
    ("case", "reason"),
    [(changed("GyroscopicEffects", "bodyCylinder2", r=[0.2, 0.01, 0.0]),
      "Revolute revolute: what turns on it is not symmetric about its axis .the inertia of the whole depends"),
     (changed("GyroscopicEffects", "rotor1D", exact=False), "exact = false goes with a carrier whose motion is given"),
     (changed("BevelGear1D", "revolute2", n=[0.0, 0.0, 1.0]),
      "Revolute revolute2: of a chain only x, y, z in turn at one point is mapped")],
    ids=["pendulum on a body", "without coupling", "other axes"],
)  # fmt: skip
def test_bodies_that_are_no_gyrostat_are_refused_with_the_reason(case: Case, reason: str) -> None:
    imported = import_case(case)
    found = list(imported.unsupported)
    if not found:
        with pytest.raises(CompileError) as error:
            compile_driveline(imported.driveline)
        found = [str(error.value)]
    assert len(found) == 1 and re.search(reason, found[0]), found


def test_a_wrong_parameter_is_seen() -> None:
    case = read_case(MSL / "CoupledClutches")
    components = [dict(c) for c in case.components]
    for c in components:
        if c["name"] == "clutch2":
            c["parameters"] = {**c["parameters"], "fn_max": {"value": 20.02, "unit": "N"}}
    result = run_case(replace(case, components=components))
    assert (result.largest("beyond") or 0.0) > 1e-4


def test_a_shift_of_a_few_microseconds_is_forgiven_and_a_longer_one_is_not() -> None:
    case = read_case(MSL / "SimpleGearShift")
    steep = [k for k, c in enumerate(case.columns) if c.name == "engine.phi"]
    columns = tuple(case.columns[k] for k in steep)
    base = run_case(replace(case, columns=columns, values=case.values[:, steep])).columns[0]
    speed = case.values[:, [k for k, c in enumerate(case.columns) if c.name == "engine.w"]]
    for shift, forgiven in ((0.5 * SHIFT, True), (5.0 * SHIFT, False)):
        moved = replace(case, columns=columns, values=case.values[:, steep] + shift * speed)
        column = run_case(moved).columns[0]
        assert column.raw > 2.0 * base.raw
        assert (column.shifted < 2.0 * base.raw) is forgiven


def test_rows_after_comparable_until_do_not_count() -> None:
    case = read_case(MSL / "SimpleGearShift")
    spoilt = case.values.copy()
    spoilt[case.time > 3.0] += 1e3
    assert (run_case(replace(case, values=spoilt)).largest("raw") or 0.0) > 0.1
    result = run_case(replace(case, values=spoilt, comparable_until=3.0))
    assert (result.largest("raw") or 1.0) < 1e-4


def test_script_prints_one_json_line_per_case_and_goes_on_after_a_bad_directory(tmp_path: Path) -> None:
    script = Path(__file__).with_name("run_case.py")
    odd = tmp_path / "odd"
    odd.mkdir()
    text = (MSL / "First" / "case.yaml").read_text()
    (odd / "case.yaml").write_text(text.replace("kind: Damper", "kind: Dashpot", 1))
    shutil.copy(MSL / "First" / "reference.csv", odd)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(MSL / "SimpleGearShift"), str(odd)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [d["case"] for d in lines] == ["SimpleGearShift", "First"]
    keys = {"case", "h", "columns", "max_error", "max_error_shifted", "worst_column", "worst_time", "unsupported"}
    assert keys <= set(lines[0]) and lines[0]["unsupported"] == [] and len(lines[1]["unsupported"]) == 1
    assert done.returncode == 2 and "no case.yaml" in done.stderr
