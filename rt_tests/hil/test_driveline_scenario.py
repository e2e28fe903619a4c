"""Steps and checks of a scenario of a driveline alone: the same as on a rig that is nothing but its plant."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.scenario.run import run_scenario

STEPS = """
[[steps]]
name = "pedal"
at_s = 0.1
set = { "input.engine.pedal" = 0.8 }
over_s = 0.05
[[steps]]
name = "fast"
when = "car.v > 1 km/h"
for_s = 0.03
set = { "input.engine.pedal" = "$then", "input.C6.p" = 3e5 }
over_s = 0.1
hold_s = 0.2
"""
INPUTS = {"engine.pedal": 0.0, "C4.p": 1e6, "C5.p": 0.0, "C6.p": 0.0, "C7.p": 0.0, "C8.p": 0.0, "C11.p": 1e6,
          "C12.p": 0.0, "lockup.p": 0.0}  # fmt: skip


def scenario(folder: Path, more: str = "", steps: str = STEPS) -> Path:
    lines = [f'"{name}_bar" = {value / 1e5}' if name.endswith(".p") else f'"{name}" = {value}'
             for name, value in INPUTS.items()]  # fmt: skip
    path = folder / "plain.toml"
    path.write_text('kind = "scenario"\n[scenario]\nname = "plain"\nduration_s = 3.0\npowertrain = "car_4hp22"\n'
                    "[parameters]\nthen = 0.1\n[inputs]\n" + "\n".join(lines) + "\n" + steps + more)  # fmt: skip
    return path


def test_a_driveline_takes_the_same_steps_as_a_rig_of_it(tmp_path: Path) -> None:
    """Bit by bit: the tick of a rig and the simulation without one."""
    report = run_scenario(scenario(tmp_path), out=tmp_path / "alone", html=False)
    assert [v.name for v in report.verdicts if v.passed] == ["pedal", "fast"] and report.passed
    rig = tmp_path / "rig.toml"
    links = "\n".join(f'"{name}" = {{ value = {value} }}' for name, value in INPUTS.items())
    rig.write_text(f'kind = "rig"\n[rig]\nname = "r"\nduration_s = 3.0\n[plant]\npowertrain = "car_4hp22"\n'
                   f"[inputs]\n{links}\n")  # fmt: skip
    steps = tomllib.loads(STEPS.replace('"$then"', "0.1"))["steps"]
    run_rig(rig, RunSpec("virtual", out=tmp_path / "rig", overrides={"steps": steps}))
    alone, whole = tl.read_run(tmp_path / "alone"), tl.read_run(tmp_path / "rig")
    assert len(alone.t) == len(whole.t) < 3000, "both end with the steps"
    assert {"scenario.step", "input.engine.pedal", "car.v", "C4.tau"} <= set(alone) <= set(whole)
    for name in alone:
        assert np.array_equal(alone[name], whole[name]), name
    assert alone["input.engine.pedal"][-1] == 0.1 and alone["input.engine.pedal"].max() > 0.7


def test_checks_judge_a_driveline_alone(tmp_path: Path) -> None:
    more = """
[[checks]]
name = "the pedal is down"
during = "fast"
always = "input.engine.pedal > 0.5"
[[checks]]
name = "it moves"
during = "fast"
always = "car.v > 1 km/h"
"""
    report = run_scenario(scenario(tmp_path, more), parameters={"then": 0.2}, out=tmp_path / "run", html=False)
    assert {v.name: v.passed for v in report.verdicts} == {
        "pedal": True, "fast": True, "the pedal is down": False, "it moves": True,
    }  # fmt: skip
    assert not report.passed
    # 0.8 to 0.2 in 0.1 s passes 0.5 after half of the time
    begun = next(v.t_s for v in report.verdicts if v.name == "fast")
    failed = next(v.t_s for v in report.verdicts if v.name == "the pedal is down")
    assert begun is not None and failed == pytest.approx(begun + 0.05, abs=1.1e-3)


def test_an_input_follows_its_table_until_a_step_moves_it(tmp_path: Path) -> None:
    """Also where the step sets the value that the input has anyway."""
    text = scenario(tmp_path).read_text().replace('"engine.pedal" = 0.0', '"engine.pedal" = [[0.0, 0.0], [3.0, 0.3]]')
    path = tmp_path / "moving.toml"
    path.write_text(text[: text.index("[[steps]]")] + '[[steps]]\nname = "hold"\nat_s = 1.0\n'
                    'set = { "input.engine.pedal" = 0.1 }\nhold_s = 0.5\n')  # fmt: skip
    run_scenario(path, out=tmp_path / "run", html=False)
    run = tl.read_run(tmp_path / "run")
    pedal = run["input.engine.pedal"]
    assert len(pedal) == 1501 and pedal[:1000] == pytest.approx(1e-4 * np.arange(1000)) and set(pedal[1000:]) == {0.1}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('set = { "input.engine.pedal" = 0.8 }', "set = { pedal = 0.8 }", ["no driver for 'pedal'", "steps 1"]),
        ('set = { "input.engine.pedal" = 0.8 }', 'set = { "input.C4.p" = -1e9 }', ["out of range", "steps 1"]),
        ('"car.v > 1 km/h"', '"car.vv > 1 km/h"', ["unknown signal 'car.vv'", "steps 2"]),
        ('[inputs]', '[driver]\nlever = "D"\n[inputs]', ["[driver] is for a rig"]),
        ('powertrain = "car_4hp22"', 'rig = "desk_4hp22"', ["[inputs] is for a driveline alone"]),
        ('powertrain = "car_4hp22"', '', ["a scenario is of a rig or of a driveline"]),
        ('powertrain = "car_4hp22"', 'powertrain = "car_4hp22"\nset = { }', ["[scenario] set is now written [set]"]),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    path = scenario(tmp_path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    checked = check_file(path)
    assert not checked.ok and all(word in str(checked.error) for word in said), str(checked.error)


def test_a_driveline_runs_on_no_rig(tmp_path: Path) -> None:
    for options in ({"rig": "desk_4hp22"}, {"clock": "real"}, {"processes": True}):
        with pytest.raises(ConfigError, match="driveline alone"):
            run_scenario(scenario(tmp_path), out=tmp_path / "run", html=False, **options)
