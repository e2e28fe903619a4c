"""Scenario files of a rig: what is read, what is refused and where, and the verdicts on what was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report.scenario_checks import Verdict, verdicts
from torqueloop.hil.results.scenario import CheckSpec, ScenarioInfo, StepSpec
from torqueloop.hil.rig.devices.steps import Steps
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.scenario.scenario_tables import load_scenario, of_the_scenario

FILE = """
[scenario]
name = "one"
rig = "desk_4hp22"
duration_s = 20.0

[parameters]
v_kmh = { value = 60.0, min = 40.0, max = 90.0 }
times = 3

[driver]
lever = "N"
pedal = 0.0

[[steps]]
name = "drive"
set = { lever = "D", pedal = 0.5 }
over_s = 0.4

[[steps]]
name = "kick down"
when = "car.v > ${v_kmh} km/h"
set = { pedal = { to = 1.0, over_s = 0.1 } }
hold_s = 2.0

[[steps]]
name = "again"
back_to = "drive"
times = "$times"

[[checks]]
name = "it shifts"
during = "kick down"
eventually = "TCU_Status.gear_actual == 2"

[[checks]]
name = "close to 100"
signal = "car.v"
expected = 100.0
tolerance = 2.0
unit = "kmh"
"""


def load(tmp_path: Path, old: str = "", new: str = "", **options):
    assert not old or old in FILE
    path = tmp_path / "one.toml"
    path.write_text(FILE.replace(old, new) if old else FILE)
    return load_scenario(path, **options)


def test_parameters_stand_in_numbers_and_texts(tmp_path: Path) -> None:
    made = load(tmp_path, parameters={"v_kmh": 75.0})
    assert made.overrides["steps"][1]["when"] == "car.v > 75 km/h"
    assert made.overrides["steps"][2]["times"] == 3
    assert made.info.parameters == {"v_kmh": 75.0, "times": 3.0}
    assert [c.condition for c in made.info.checks][1] == "car.v >= 98.0 kmh and car.v <= 102.0 kmh"


def test_the_steps_become_those_of_the_rig(tmp_path: Path) -> None:
    made = load(tmp_path)
    plan = load_plan(made.rig, made.overrides)
    steps = plan.device(Steps)
    assert [step.name for step in steps.given.steps] == ["drive", "kick down", "again"]
    [_, (code, moves, back, *_), again] = steps.rows
    assert code == (("signal", plan.table.slot("car.v"), 0.0), ("number", 0, pytest.approx(60 / 3.6)), (">", 0, 0.0))
    assert moves == [(steps.moved.index(plan.table.slot("driver.pedal")), 1.0, 100)]
    assert back == -1 and again[2:4] == (0, 3)
    assert plan.config.gates.keys() == {"no_safe_state", "energy", "nothing_lost"}, "the rig's are about its own drive"
    recorded = [name for name, _ in plan.recorded]
    assert "scenario.step" in recorded and "scenario.driver.pedal.from" not in recorded


@pytest.mark.parametrize("name", ["pedal", "brake", "lever", "gear", "tip", "kickdown", "brake_switch"])
def test_a_step_may_set_what_every_driver_has_and_the_schema_names_it(name: str, tmp_path: Path) -> None:
    """Also on a rig that has no such signal; an editor offers the name in [driver] of a rig file."""
    made = load(tmp_path, 'set = { lever = "D", pedal = 0.5 }', f"set = {{ {name} = 1.0 }}")
    steps = load_plan(made.rig, made.overrides).device(Steps)
    assert f"driver.{name}" in steps.targets
    schema = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "rig.schema.json").read_text())
    driver = schema["properties"]["driver"]
    assert name in driver["properties"] and list(driver["patternProperties"]) == [""]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"car.v > ${v_kmh} km/h"', '"car.vv > 3"', ["unknown signal", "car.vv", "steps 2", "one.toml"]),
        ('"car.v > ${v_kmh} km/h"', '"car.v >> 3"', ["cannot be read", "steps", "when"]),
        ('"car.v > ${v_kmh} km/h"', '"car.v > 3 bar"', ["is in m/s, not in Pa", "steps 2"]),
        ('"car.v > ${v_kmh} km/h"', '"car.v > ${speed} km/h"', ["no parameter", "speed"]),
        ('set = { lever = "D", pedal = 0.5 }', 'set = { "input.C4.p" = 1.0 }', ["is written by [inputs]", "steps 1"]),
        ('set = { lever = "D", pedal = 0.5 }', 'set = { lever = "X" }', ["'X' is no value", "P, R, N", "steps 1"]),
        ('set = { lever = "D", pedal = 0.5 }', 'set = { pedall = 0.5 }',
         ["no signal 'driver.pedall'", "did you mean 'driver.pedal'?", "steps 1"]),
        ('set = { lever = "D", pedal = 0.5 }', 'set = { pedal = "D" }', ["'D' is no value of driver.pedal"]),
        ('set = { lever = "D", pedal = 0.5 }', 'set = { "input.nothing" = 1.0 }', ["no signal", "input.nothing"]),
        ('back_to = "drive"', 'back_to = "again"', ["no such step before this one", "drive, kick down", "steps 3"]),
        ('name = "kick down"\nwhen', 'name = "drive"\nwhen', ["no step 'kick down'"]),
        ('over_s = 0.4', 'at_s = 4.0\nhold_s = 3.0\n[[steps]]\nname = "early"\nat_s = 6.5',
         ["at_s = 6.5: it would begin while the step before still lasts", "allowed: >= 7", "steps 2"]),
        ('hold_s = 2.0', 'hold = 2.0', ["unknown key 'hold'", "hold_s"]),
        ('hold_s = 2.0', 'hold_s = -2.0', ["hold_s = -2.0 is not allowed", ">= 0"]),
        ('value = 60.0, min', 'value = 20.0, min', ["out of its own range", "40 .. 90"]),
        ('eventually = "TCU_Status.gear_actual == 2"', 'for_s = 1.0', ["a check has one of these", "always"]),
        ('eventually = "TCU_Status.gear_actual == 2"', 'always = "car.v"', ["no condition", "checks 1", "always"]),
        ('during = "kick down"', 'during = "kick"', ["there is no step 'kick'", "drive, kick down, again"]),
        ('expected = 100.0\n', '', ["signal, expected and tolerance belong together"]),
        ('rig = "desk_4hp22"', 'rig = "desk_4hp23"', ["no rig of this name", "desk_4hp22", "one.toml"]),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        with of_the_scenario(tmp_path / "one.toml"):
            made = load(tmp_path, old, new)
            load_plan(made.rig, made.overrides)
    for text in said:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("parameters", "said"), [({"v": 1.0}, "no parameter"), ({"v_kmh": 100.0}, "allowed: 40 .. 90")]
)
def test_parameters_from_outside_are_checked(tmp_path: Path, parameters: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, parameters=parameters)


# --- verdicts -------------------------------------------------------------------------------------------------------


def recording(**columns: list[float]) -> Signals:
    """10 ms of ticks of 1 ms."""
    names = [name.replace("__", ".") for name in columns]
    values = np.array(list(columns.values())).T
    records = np.zeros(len(values), signal_dtype(len(names)))
    records["tick"] = np.arange(len(values))
    records["out"] = values
    return Signals.of(names, dict.fromkeys(names, "1"), 1e-3, records)


STEPS = [StepSpec("a"), StepSpec("b", "x > 0.5", within_s=0.004)]


def judged(check: CheckSpec | None = None, **columns: list[float]) -> list[Verdict]:
    info = ScenarioInfo("s", steps=STEPS, checks=[] if check is None else [check])
    return verdicts(info, recording(**columns))


def test_steps_that_began_and_one_that_did_not() -> None:
    ok = judged(scenario__step=[0, 1, 1, 2, 2], scenario__state=[0, 0, 0, 0, 1], x=[0, 0, 1, 1, 1])
    assert [(v.name, v.passed, v.t_s) for v in ok] == [
        ("a", True, pytest.approx(0.002)),
        ("b", True, pytest.approx(0.004)),
    ]
    late = judged(scenario__step=[0, 1, 1, 1, 1], scenario__state=[0, 0, 0, 0, 2], x=[0, 0.1, 0.2, 0.4, 0.3])
    assert not late[1].passed and late[1].t_s == pytest.approx(0.005)
    assert late[1].text == "did not begin within 0.004 s: x > 0.5; seen: x 0.1 .. 0.4, last 0.3"


def test_a_step_that_goes_back_has_begun_although_the_run_ends_in_its_repetitions() -> None:
    info = ScenarioInfo("s", steps=[StepSpec("a"), StepSpec("b"), StepSpec("again", "x > 0.5")], checks=[])
    found = verdicts(info, recording(scenario__step=[1, 2, 1, 2, 2], x=[0, 0, 1, 0, 0]))
    assert [(v.name, v.passed, v.t_s) for v in found][2] == ("again", True, pytest.approx(0.003))
    never = verdicts(info, recording(scenario__step=[1, 2, 2, 2, 2], x=[0, 0, 0, 0, 0]))
    assert not never[2].passed and "had not begun when the run ended" in never[2].text


@pytest.mark.parametrize(
    ("check", "x", "text"),
    [
        (CheckSpec("c", "always", "x < 3", "b"), [9, 9, 1, 2, 2], ""),
        (CheckSpec("c", "always", "x < 3", "b"), [0, 0, 1, 4, 2],
         "always x < 3: does not hold at 0.004 s, where x = 4"),
        (CheckSpec("c", "always", "x < 3"), [9, 9, 1, 2, 2], "always x < 3: does not hold at 0.001 s, where x = 9"),
        (CheckSpec("c", "never", "x == 4", "b"), [4, 4, 1, 2, 2], ""),
        (CheckSpec("c", "never", "x == 4", "b"), [4, 4, 1, 2, 4], "never x == 4: holds at 0.005 s, where x = 4"),
        (CheckSpec("c", "eventually", "x > 1", "b"), [4, 4, 1, 1, 2], ""),
        (CheckSpec("c", "eventually", "x > 1", "b"), [4, 4, 1, 1, 0],
         "eventually x > 1: does not hold until 0.005 s, where x = 0"),
        (CheckSpec("c", "eventually", "x > 1", "b", until_s=0.001), [4, 4, 1, 1, 2],
         "eventually x > 1: does not hold until 0.004 s, where x = 1"),
        (CheckSpec("c", "eventually", "x > 1", for_s=0.002), [4, 1, 2, 2, 0],
         "eventually x > 1: does not hold until 0.005 s (for 0.001 s of 0.002 s), where x = 0"),
        (CheckSpec("c", "eventually", "x > 1", for_s=0.002), [4, 1, 2, 2, 2], ""),
        (CheckSpec("c", "at_end", "x > 1"), [4, 4, 4, 4, 1], "at_end x > 1: does not hold at 0.005 s, where x = 1"),
        (CheckSpec("c", "at_end", "x > 1"), [0, 0, 0, 0, 2], ""),
        (CheckSpec("c", "always", "y < 3"), [0, 0, 0, 0, 2], "y was not recorded"),
        (CheckSpec("c", "always", "x < 3", "b", from_s=1.0), [0, 0, 0, 0, 2], "not looked at: step 'b' never began"),
    ],
)  # fmt: skip
def test_checks_say_when_and_what(check: CheckSpec, x: list[float], text: str) -> None:
    verdict = judged(check, scenario__step=[0, 1, 2, 2, 2], scenario__state=[0, 0, 0, 0, 1], x=x)[-1]
    assert verdict.text == text and verdict.passed == (not text)


def test_each_repetition_is_looked_at() -> None:
    check = CheckSpec("c", "eventually", "x > 1", "b")
    step = [0, 1, 2, 1, 2, 2]
    state = [0.0] * 6
    assert judged(check, scenario__step=step, scenario__state=state, x=[0, 0, 2, 0, 0, 2])[-1].passed
    missed = judged(check, scenario__step=step, scenario__state=state, x=[0, 0, 2, 0, 0, 0])[-1]
    assert "(repetition 2 of 2)" in missed.text


def test_the_moment_of_a_verdict_and_what_was_seen_are_those_of_its_step() -> None:
    """Step b runs in ticks 4 to 6 and 8 to 9 of ten (5 to 7 ms, 9 to 10 ms); x is 0 to 9, y falls."""
    step, x = [0, 1, 1, 1, 2, 2, 2, 1, 2, 2], list(range(10))
    cases = (
        ("always", "x >= 4", {}, True, 0.010), ("always", "x < 6", {}, False, 0.007),
        ("always", "x < 6", {"until_s": 0.001}, False, 0.009), ("always", "x != 5", {"from_s": 0.002}, False, 0.009),
        ("never", "x == 9", {}, False, 0.010), ("never", "x == 3 or x == 7", {}, True, 0.010),
        ("eventually", "x > 4", {}, True, 0.009), ("eventually", "x > 8", {}, False, 0.007),
        ("eventually", "x > 7", {}, False, 0.007), ("eventually", "x == 5 or x == 9", {}, True, 0.010),
        ("eventually", "x > 3", {"for_s": 0.001}, True, 0.009),
        ("eventually", "x > 3", {"for_s": 0.0015}, False, 0.010),
        ("at_end", "x == 6 or x == 9", {}, True, 0.010), ("at_end", "x != 9", {}, False, 0.010),
        ("at_end", "x != 8", {}, True, 0.010),
    )  # fmt: skip
    for kind, condition, more, passed, t_s in cases:
        if kind == "always" and more.get("from_s") == 0.002:
            t_s = None  # the second run of the step is shorter than that, the first one passes
        verdict = judged(CheckSpec("c", kind, condition, "b", **more), scenario__step=step, x=x)[-1]
        wanted = (passed, pytest.approx(t_s)) if t_s is not None else (True, pytest.approx(0.007))
        assert (verdict.passed, verdict.t_s) == wanted, (kind, condition, verdict)
    held = judged(CheckSpec("c", "eventually", "x != 5 and x != 9", "b", for_s=0.005), scenario__step=step, x=x)[-1]
    assert held.text.startswith("eventually x != 5 and x != 9: does not hold until 0.007 s (repetition 1 of 2)")
    held = judged(CheckSpec("c", "eventually", "x != 2", for_s=0.008), x=x)[-1]
    assert "does not hold until 0.010 s (for 0.006 s of 0.008 s)" in held.text


def test_a_step_that_was_waited_for_says_what_its_condition_saw_while_it_was() -> None:
    step = StepSpec("b", "x > 5", for_s=0.003, within_s=0.007)
    info = ScenarioInfo("s", steps=[StepSpec("a"), step, StepSpec("c")])
    columns = {"scenario__step": [0, 1, 1, 1, 1], "x": [9, 3, 1, 4, 2]}
    cases = {"did not begin within 0.007 s": [0, 0, 0, 0, 2], "had not begun when the run ended": [0, 0, 0, 2, 0]}
    for text, state in cases.items():
        began, waited, after = verdicts(info, recording(**columns, scenario__state=state))
        assert (began.passed, began.t_s) == (True, pytest.approx(0.002))
        assert (waited.passed, waited.t_s, waited.signals) == (False, pytest.approx(0.005), ("x",))
        assert waited.text == f"{text}: x > 5 for 0.003 s; seen: x 1 .. 4, last 2"
        assert (after.passed, after.t_s, after.text) == (False, None, "an earlier step did not begin")


def test_without_a_recording_nothing_passes() -> None:
    info = ScenarioInfo("s", steps=STEPS, checks=[CheckSpec("c", "always", "x < 3")])
    assert [v.passed for v in verdicts(info, None)] == [False, False, False]


ON = """
[words]
where = "car"

[on.desk_6hp26]
reason = "another car"
parameters = { v_kmh = 80.0 }
words = { where = "rig" }
set = { "vehicle.age_limit_s" = 0.2 }
"""


def test_what_is_different_on_another_rig(tmp_path: Path) -> None:
    """Numbers, words and values of the rig file; what is given from outside comes last."""
    path = tmp_path / "one.toml"
    path.write_text(FILE.replace("car.v > ${v_kmh}", "${where}.v > ${v_kmh}") + ON)
    here, there = load_scenario(path), load_scenario(path, rig=installed("rigs")["desk_6hp26"])
    assert here.overrides["steps"][1]["when"] == "car.v > 60 km/h" and "vehicle.age_limit_s" not in here.overrides
    assert there.overrides["steps"][1]["when"] == "rig.v > 80 km/h" and there.overrides["vehicle.age_limit_s"] == 0.2
    assert there.info.parameters["v_kmh"] == 80.0
    given = load_scenario(path, {"v_kmh": 70.0}, installed("rigs")["desk_6hp26"])
    assert given.overrides["steps"][1]["when"] == "rig.v > 70 km/h"
    for old, new, said in (
        ("v_kmh = 80.0", "v_kmh = 95.0", "allowed: 40 .. 90"),
        ("v_kmh = 80.0", "speed = 80.0", "no parameter 'speed'"),
        ('{ where = "rig" }', '{ were = "rig" }', "did you mean 'where'"),
        ('reason = "another car"\n', "", "reason"),
        ("[words]\nwhere", '[words]\nv_kmh = "a"\nwhere', "a parameter and a word"),
    ):
        assert old in ON
        path.write_text(FILE + ON.replace(old, new))
        with pytest.raises(ConfigError, match=said):
            load_scenario(path, rig=installed("rigs")["desk_6hp26"])
