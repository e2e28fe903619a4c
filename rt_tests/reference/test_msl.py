"""Reference cases of the Modelica Standard Library at a 1 ms tick, against their published trajectories.

Errors are relative to each column's range, beyond the reference's own deviation, a time shift of up to 10 us allowed.
Source and licence of the trajectories: msl/README.md, msl/LICENSE-MSL.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("yaml", reason="reading case.yaml needs PyYAML (extra `dev`)")

from torqueloop.core.case_import import import_case, read_case
from torqueloop.core.case_run import SHIFT, Trajectory, convergence, run_case
from torqueloop.core.components.friction import Clutch
from torqueloop.core.errors import ConfigError
from torqueloop.core.offline import Simulation

MSL = Path(__file__).parent / "msl"
FRICTION = ("CoupledClutches", "SimpleGearShift", "Friction", "OneWayClutch")
ALL = (*FRICTION, "First")


@pytest.mark.parametrize(("substeps", "tolerance"), [(1, 1e-4), (8, 1e-5)])
@pytest.mark.parametrize("name", FRICTION)
def test_friction_case_follows_its_reference(name: str, substeps: int, tolerance: float) -> None:
    result = run_case(MSL / name, substeps=substeps)
    assert not result.unsupported and not result.failure
    assert len(result.columns) >= 4
    worst = result.worst("beyond")
    assert worst is not None and worst.beyond <= tolerance, f"{worst.name} at {worst.worst_time} s"


@pytest.mark.parametrize("substeps", [1, 32])
def test_oscillating_case_follows_its_reference(substeps: int) -> None:
    result = run_case(MSL / "First", substeps=substeps)
    worst = result.worst("beyond")
    assert worst is not None and worst.beyond <= 1e-5, f"{worst.name} at {worst.worst_time} s"


@pytest.mark.parametrize("name", ["CoupledClutches", "SimpleGearShift", "Friction"])
def test_modes_equal_those_of_the_reference_away_from_events(name: str) -> None:
    result = run_case(MSL / name)
    assert result.modes and all(fraction == 1.0 for fraction in result.modes.values()), result.modes


@pytest.mark.parametrize("name", ALL)
def test_error_falls_with_at_least_second_order(name: str) -> None:
    found = convergence(MSL / name, steps=(4e-3, 2e-3, 1e-3))
    coarse, middle, fine = found.own
    # 3.4: a little less than 4, the factor of second order; below 1e-9 rounding decides
    assert middle < 1e-9 or coarse / middle > 3.4
    assert fine < 1e-9 or middle / fine > 3.4


def test_fourth_order_does_not_lose_its_order_at_events() -> None:
    found = convergence(MSL / "OneWayClutch", steps=(4e-3, 2e-3), order=4)
    assert found.own[0] / found.own[1] > 12.0


@pytest.mark.parametrize("name", ALL)
def test_case_runner_and_simulation_walk_the_same_path(name: str) -> None:
    imported = import_case(read_case(MSL / name))
    h, duration = 1e-3, 0.95
    sim = Simulation(imported.driveline, h=h)
    result = sim.run(duration, inputs=imported.inputs)
    trajectory = Trajectory(imported, h, "auto", "auto")
    end = trajectory.values([duration])[0]
    for k, output in enumerate(result.model.output_names):
        assert end[k] == result[output][-1], output  # to the bit


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


def test_unsupported_kinds_are_listed_and_nothing_is_simulated() -> None:
    case = read_case(MSL / "First")
    components = [*case.components, {"name": "lossy", "domain": "rotational", "kind": "LossyGear", "parameters": {}}]
    result = run_case(replace(case, components=components))
    assert result.unsupported == ["rotational/LossyGear"]
    assert result.columns == [] and result.as_dict()["max_error"] is None


def test_rows_after_comparable_until_do_not_count() -> None:
    case = read_case(MSL / "SimpleGearShift")
    spoilt = case.values.copy()
    spoilt[case.time > 3.0] += 1e3
    assert (run_case(replace(case, values=spoilt)).largest("raw") or 0.0) > 0.1
    result = run_case(replace(case, values=spoilt, comparable_until=3.0))
    assert (result.largest("raw") or 1.0) < 1e-4


def test_names_with_dots_and_brackets_are_mapped() -> None:
    case = read_case(MSL / "CoupledClutches")
    # the longest matching component name counts, as in arrays of components
    renamed = json.loads(json.dumps([case.components, case.connections]).replace("clutch1", "arm.clutch[1]"))
    start = {k.replace("clutch1", "arm.clutch[1]"): v for k, v in case.start.items()}
    columns = tuple(replace(c, component=c.component.replace("clutch1", "arm.clutch[1]")) for c in case.columns)
    imported = import_case(replace(case, components=renamed[0], connections=renamed[1], start=start, columns=columns))
    assert isinstance(imported.driveline.components["arm_clutch_1"], Clutch)
    assert set(imported.inputs) == {
        "torque.tau", "arm_clutch_1.f_normalized", "clutch2.f_normalized", "clutch3.f_normalized",
    }  # fmt: skip


def test_signal_graph_is_followed_through_operators() -> None:
    imported = import_case(read_case(MSL / "Friction"))
    torque = imported.inputs["torque.tau"]
    assert torque.before(0.5) == pytest.approx(200.0 * np.sin(50.0))
    assert torque.after(0.5) == 0.0
    assert torque.event_times(0.0, 1.0) == [0.5]
    gear = import_case(read_case(MSL / "SimpleGearShift"))
    assert gear.inputs["brake.f_normalized"].value(2.025) == pytest.approx(0.75)


def test_a_directory_without_case_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no case.yaml"):
        read_case(tmp_path)
    (tmp_path / "case.yaml").write_text("schema: case/9\n")
    with pytest.raises(ConfigError, match=r"unknown schema.*case/1"):
        read_case(tmp_path)


def test_script_prints_one_json_line_per_case_and_goes_on_after_a_bad_directory(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "run_case.py"
    if not script.is_file():
        pytest.skip("scripts/ is not beside the tests (testing an installed wheel)")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(MSL / "SimpleGearShift"), str(MSL / "OneWayClutch")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [d["case"] for d in lines] == ["SimpleGearShift", "OneWayClutch"]
    keys = {"case", "h", "columns", "max_error", "max_error_shifted", "worst_column", "worst_time", "unsupported"}
    assert keys <= set(lines[0])
    assert done.returncode == 2 and "no case.yaml" in done.stderr
