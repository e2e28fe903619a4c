"""Scenarios on the desk rig in virtual time: the library, replay, checkpoints in the middle, failures that are told."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from control_help import Running, SlowCar
from rig_help import Car, Unit
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.hil.cli import app
from torqueloop.hil.report.html import draw
from torqueloop.hil.report.moment import moment
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.scenario.run import run_scenario
from torqueloop.hil.scenario.scenario_tables import load_scenario
from torqueloop.hil.views.figure import Figures

LIBRARY = sorted(name for name, path in installed("scenarios").items() if load_scenario(path).rig is not None)


#: of the library, by rig, in every run of the tests; the others with `scripts/test --long`
EVERY_DAY = {("desk_4hp22", "kick_down"), ("desk_4hp22", "garage_shifts"), ("desk_6hp26", "kick_down")}


def every_day(rig: str, name: str) -> object:
    return pytest.param(rig, name, marks=() if (rig, name) in EVERY_DAY else pytest.mark.long)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("rig", "name"), [every_day(rig, name) for rig in ("desk_4hp22", "desk_6hp26") for name in LIBRARY]
)
def test_the_library_is_green(rig: str, name: str, tmp_path: Path) -> None:
    report = run_scenario(name, rig=rig, out=tmp_path / "run", html=False)
    assert report.passed, [v for v in report.verdicts if not v.passed] + [c for c in report.checks if not c.passed]
    assert len(report.verdicts) >= 4 and report.run.info.scenario is not None
    assert tl.read_run(tmp_path / "run").report.verdicts == report.verdicts, "run.json keeps what is judged"


def test_limits_of_the_six_speed_are_reached_by_a_worse_calibration(tmp_path: Path) -> None:
    """Kick-down: an offgoing element that lets go at once lets the turbine flare, as the calibration did before."""
    text = installed("tcu")["soft_6hp26"].read_text()
    good = 'on = { law = "torque", start = 0.6, end = 1.4 }, off = { law = "torque", end = 0.0 }'
    assert text.count(good) == 1
    worse = tmp_path / "worse.toml"
    worse.write_text(text.replace(good, 'on = { law = "torque", end = 1.2 }, off = { law = "open" }'))
    report = run_scenario("kick_down", rig="desk_6hp26", out=tmp_path / "run", html=False,
                          overrides={"ecu.tcu.start": str(worse)})  # fmt: skip
    failed = [v for v in report.verdicts if not v.passed]
    assert [v.name for v in failed] == ["the kick-down is quick and can be borne"]
    flare = re.search(r"flare = (\d+\.\d*)", failed[0].text)
    assert flare is not None and float(flare[1]) > 3 * 10.0, "three times the scenario's limit on this rig"


@pytest.mark.proof
def test_a_scenario_replays_to_the_bit_and_is_the_same_in_processes(tmp_path: Path) -> None:
    one = run_scenario("garage_shifts", parameters={"times": 1}, out=tmp_path / "one", html=False)
    assert replay(tmp_path / "one").passed
    other = run_scenario("garage_shifts", parameters={"times": 1}, out=tmp_path / "two", processes=True, html=False)
    assert one.stats.hash == other.stats.hash and one.stats.clock.ticks == other.stats.clock.ticks


def fault(signal: str, kind: str, value: float | None = None, from_s: float = 0.0) -> dict:
    """One injected fault."""
    return {
        "faults": [{"signal": signal, "kind": kind, "from_s": from_s} | ({} if value is None else {"value": value})]
    }


def brakes(force_N: float) -> dict:
    """A car whose brakes do no more than this."""
    return {"vehicle.options": {"set": {"brakes.force_max_N": force_N}}}


def grade(from_m: float, percent: float) -> dict:
    """A road that goes up behind the place where the car is to stand."""
    return {"vehicle.options": {"set": {"road.grade_percent": [[0.0, 0.0], [from_m, 0.0], [from_m + 2.0, percent]]}}}


def first_gear(from_s: float) -> dict:
    """First gear with engine braking whatever the control unit says: the car drags the engine up."""
    none = [("TCU_Pressure_1.p_C5", 0.0), ("TCU_Pressure_1.p_C6", 0.0), ("TCU_Pressure_1.p_C7", 0.0)]
    found = [
        {"signal": s, "kind": "gain", "value": x, "from_s": from_s} for s, x in [*none, ("TCU_Pressure_2.p_C12", 0.0)]
    ]
    full = ["TCU_Pressure_2.p_C8", "TCU_Pressure_2.p_C11"]
    return {"faults": found + [{"signal": s, "kind": "offset", "value": 16.0, "from_s": from_s} for s in full]}


LEVER_STUCK = fault("HIL_Driver.lever", "stuck")
NEVER_FIRST = {"ecu.tcu.options.set": {"schedule.down.2-1": [[0.0, 0.0], [100.0, 0.0]]}}
#: early into second gear, and never back
SECOND_ONLY = {
    "ecu.tcu.options.set": {
        "schedule.up.1-2": [[0.0, 200.0], [100.0, 200.0]],
        "schedule.down.2-1": [[0.0, 0.0], [100.0, 0.0]],
        "schedule.kick_down.2-1": 50.0,
    }
}
LOCKED_UP = fault("TCU_Pressure_2.p_LU", "offset", 10.0)
HILL = {"vehicle.start": "bmw_528i_hill"}
#: full throttle as soon as the car is to stand, wherever and whenever that is: more than the brake holds
PEDAL_IN_STAND = {
    "faults": [{"signal": "input.engine.pedal", "kind": "offset", "value": 1.0, "when": "scenario.step == 4"}]
}
NO_KICK_DOWN = {
    "faults": [
        {"signal": "HIL_Driver.pedal", "kind": "gain", "value": 0.7, "from_s": 3.0},
        {"signal": "HIL_Driver.kickdown", "kind": "gain", "value": 0.0},
    ]
}
#: every check of the library fails once: (scenario, check or step, what is disturbed)
DISTURBED = [
    ("coast_down", "in first gear when it stands", NEVER_FIRST),
    ("coast_down", "the engine does not stall", LOCKED_UP),
    ("coast_down", "no push forward while it brakes", brakes(100.0) | fault("input.engine.pedal", "offset", 1.0, 25.0)),
    ("coast_down", "it stands", grade(530.0, 70.0)),
    ("creep", "creeps within 2 s", HILL),
    ("creep", "at walking pace, not faster", fault("input.engine.pedal", "offset", 0.8, 3.0)),
    ("creep", "it stays in first gear", fault("input.engine.pedal", "offset", 0.8, 3.0)),
    ("full_throttle", "first gear within 1 s", LEVER_STUCK),
    ("full_throttle", "100 km/h within 12 s of the pedal", fault("driver.pedal", "gain", 0.4)),
    ("full_throttle", "the engine stays below 6500 rpm", first_gear(18.5)),
    ("full_throttle", "never back while it pulls", HILL | fault("driver.pedal", "gain", 0.05)),
    (
        "full_throttle",
        "the power flow is never interrupted in a shift",
        fault("TCU_Pressure_1.p_C7", "gain", 0.0),
    ),
    ("garage_shifts", "D within 1 s", LEVER_STUCK),
    ("garage_shifts", "R within 1 s", fault("TCU_Pressure_2.p_C8", "gain", 0.0)),
    ("garage_shifts", "neutral lets go", fault("TCU_Pressure_1.p_C4", "offset", 5e5)),
    ("garage_shifts", "the car does not move", brakes(100.0)),
    ("hill_start", "rolls back less than 0.5 m", fault("driver.pedal", "gain", 0.3)),
    ("hill_start", "the brake holds it before", brakes(100.0)),
    ("kick_down", "kick down", HILL),
    ("kick_down", "first gear within 1 s", LEVER_STUCK),
    ("kick_down", "a lower gear is asked for within 0.5 s", NO_KICK_DOWN),
    ("kick_down", "and is engaged within 1.5 s", fault("TCU_Pressure_1.p_C5", "offset", 8.0, 16.8)),
    ("kick_down", "the car pulls with 2 m/s2 or more", fault("input.engine.pedal", "gain", 0.3, 16.8)),
    ("kick_down", "the engine stays below 6500 rpm", first_gear(20.0)),
    ("kick_down", "the kick-down is quick and can be borne", fault("TCU_Pressure_1.p_C5", "gain", 0.2)),
    ("lock_up", "no slip while it is locked", fault("TCU_Pressure_2.p_LU", "gain", 0.1, 25.0)),
    ("stop_and_go", "it stands between", PEDAL_IN_STAND),
    ("stop_and_go", "first gear for each start", SECOND_ONLY),
    ("stop_and_go", "the engine does not stall", LOCKED_UP),
    ("tip_in_out", "it pulls within 1 s of each tip in", fault("input.engine.pedal", "gain", 0.1, 20.0)),
    ("tip_in_out", "it lets go within 1 s of each tip out", fault("driver.pedal", "offset", 0.4)),
    ("tip_in_out", "no hunting: never below second gear", fault("HIL_Speeds.n_output", "gain", 0.2, 9.0)),
]
#: of these in every run of the tests
DISTURBED_EVERY_DAY = {
    "creeps within 2 s", "rolls back less than 0.5 m", "kick down", "the kick-down is quick and can be borne",
    "D within 1 s",
}  # fmt: skip


def test_every_check_of_the_library_has_failed_once() -> None:
    """A check that is added needs what it fails on."""
    known = {(name, c.name) for name in LIBRARY for c in load_scenario(installed("scenarios")[name]).info.checks}
    seen = {(name, what) for name, what, _ in DISTURBED}
    assert not known - seen and seen - known == {("kick_down", "kick down")}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "what", "overrides"),
    [row if row[1] in DISTURBED_EVERY_DAY else pytest.param(*row, marks=pytest.mark.long) for row in DISTURBED],
)
def test_a_disturbed_run_fails_and_says_where(name: str, what: str, overrides: dict, tmp_path: Path) -> None:
    report = run_scenario(name, out=tmp_path / "run", overrides=overrides, html=False)
    assert not report.passed and report.exit_status == 1
    failed = {v.name: v for v in report.verdicts if not v.passed}
    assert what in failed and failed[what].text
    # a shift that did not come has no time
    assert failed[what].t_s is not None or "no shift 3-2 while" in failed[what].text


@pytest.mark.proof
def test_the_moment_of_failure_is_drawn(tmp_path: Path) -> None:
    """A picture for each verdict that failed at a time, with the signals it looked at; none for those that passed."""
    report = run_scenario("creep", out=tmp_path / "run", overrides={"vehicle.start": "bmw_528i_hill"}, html=False)
    figures = Figures()
    moments = draw(report, figures)["failed"]
    assert [name for name, _, _ in moments] == [f"{v.kind} {v.name}" for v in report.verdicts if not v.passed] != []
    shown = next(figure for name, _, figure in moments if name == "check creeps within 2 s")
    at = next(v.t_s for v in report.verdicts if v.name == "creeps within 2 s")
    made = figures.figures[shown]
    labels = [line.label for panel in made.panels for line in panel.lines]
    assert "driver.pedal" in labels and any(label.startswith("car.v") for label in labels)
    assert [mark.x for mark in made.marks] == [at] and made.begin < at <= made.end
    assert moment(figures, report.run.signals, replace(report.verdicts[0], t_s=None), "x") is None


@pytest.mark.proof
def test_the_command_runs_several_and_leaves_junit(tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text("""
extends = "creep"
[scenario]
name = "slow"
[[checks]]
name = "flies"
eventually = "car.v > 1000 km/h"
""")
    options = ["--out", str(tmp_path / "runs"), "-j", "2", "--no-html", "--json"]
    result = CliRunner().invoke(app, ["scenario", "creep", str(slow), *options])
    assert result.exit_code == 1, result.output
    told = json.loads(result.output)
    assert {s["name"]: s["passed"] for s in told["scenarios"]} == {"creep": True, "slow": False}
    suites = ElementTree.parse(tmp_path / "runs" / "junit.xml").getroot()
    failures = [
        (s.get("name"), c.get("name"), c[0].get("message")) for s in suites for c in s.iter("testcase") if len(c)
    ]
    assert [f[:2] for f in failures] == [("slow", "check: flies")]
    assert "eventually car.v > 1000 km/h: does not hold until" in failures[0][2]


def test_the_command_names_a_mistake(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('[scenario]\nname = "bad"\nrig = "desk_4hp22"\n[[steps]]\nname = "x"\nwhen = "car.vv > 3"\n')
    result = CliRunner().invoke(app, ["scenario", str(bad), "--out", str(tmp_path / "runs")])
    assert result.exit_code == 2
    assert "car.vv" in result.output and "bad.toml" in result.output.replace("\n", "")
    result = CliRunner().invoke(app, ["scenario", "creep", "--param", "x=1", "--out", str(tmp_path / "more")])
    assert result.exit_code == 2 and "no parameter" in result.output


@pytest.mark.proof
def test_a_checkpoint_in_the_middle_of_the_steps(tmp_path: Path) -> None:
    """The scenario goes on where it stood: the same end, to the bit."""
    made = load_scenario(installed("scenarios")["garage_shifts"], {"times": 1.0})
    participants = {"vehicle": Car(), "ecus": {"tcu": Unit()}}
    whole = run_rig(made.rig, RunSpec("virtual", out=tmp_path / "whole", overrides=made.overrides, **participants))
    going = Running(made.rig, tmp_path / "taken", 60.0, overrides=made.overrides, vehicle=SlowCar(before=(5000,)))
    with going.client() as client:
        client.checkpoint("middle", at=5000)
    assert going.join().stats.hash == whole.stats.hash
    participants = {"vehicle": Car(), "ecus": {"tcu": Unit()}}
    rest = run_rig(
        made.rig,
        RunSpec(
            "virtual",
            out=tmp_path / "rest",
            overrides=made.overrides,
            start_from=tmp_path / "taken" / "control" / "middle.tlc",
            **participants,
        ),
    )
    assert rest.stats.hash == whole.stats.hash and rest.stats.clock.ticks == whole.stats.clock.ticks - 5000
