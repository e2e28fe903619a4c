"""Scenarios on the desk rig in virtual time: the library, replay, checkpoints in the middle, failures that are told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from control_help import Running
from rig_help import Car, Unit
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.hil.cli import app
from torqueloop.hil.report.html import failed_moments
from torqueloop.hil.report.moment import moment
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import run_rig
from torqueloop.hil.scenario.rig_scenario import load_rig_scenario
from torqueloop.hil.scenario.run import run_scenario

LIBRARY = sorted(installed("manoeuvres"))


#: of the library in every run of the tests; the others with `scripts/test --long`
EVERY_DAY = {"kick_down", "garage_shifts"}


@pytest.mark.parametrize(
    "name", [name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.long) for name in LIBRARY]
)
def test_the_library_is_green(name: str, tmp_path: Path) -> None:
    report = run_scenario(name, out=tmp_path / "run", html=False)
    assert report.passed, [v for v in report.verdicts if not v.passed] + [c for c in report.checks if not c.passed]
    assert len(report.verdicts) >= 4 and report.run.info.scenario is not None
    assert tl.read_run(tmp_path / "run").report.verdicts == report.verdicts, "run.json keeps what is judged"


def test_a_scenario_replays_to_the_bit_and_is_the_same_in_processes(tmp_path: Path) -> None:
    one = run_scenario("garage_shifts", parameters={"times": 1}, out=tmp_path / "one", html=False)
    assert replay(tmp_path / "one").passed
    other = run_scenario("garage_shifts", parameters={"times": 1}, out=tmp_path / "two", processes=True, html=False)
    assert one.stats.hash == other.stats.hash and one.stats.clock.ticks == other.stats.clock.ticks


#: every check of the library fails once: (scenario, check or step, what is disturbed)
DISTURBED = [
    (
        "full_throttle",
        "first gear within 1 s",
        {"faults": [{"signal": "HIL_Driver.lever", "kind": "stuck", "from_s": 0.0}]},
    ),
    ("kick_down", "kick down", {"vehicle.start": "bmw_528i_hill"}),
    ("creep", "creeps within 2 s", {"vehicle.start": "bmw_528i_hill"}),
    (
        "kick_down",
        "the kick-down is quick and can be borne",
        {"faults": [{"signal": "TCU_Pressure_1.p_C5", "kind": "gain", "value": 0.2}]},
    ),
    (
        "hill_start",
        "rolls back less than 0.5 m",
        {"faults": [{"signal": "driver.pedal", "kind": "gain", "value": 0.3}]},
    ),
]


@pytest.mark.parametrize(("name", "what", "overrides"), DISTURBED)
def test_a_disturbed_run_fails_and_says_where(name: str, what: str, overrides: dict, tmp_path: Path) -> None:
    report = run_scenario(name, out=tmp_path / "run", overrides=overrides, html=False)
    assert not report.passed and report.exit_status == 1
    failed = {v.name: v for v in report.verdicts if not v.passed}
    assert what in failed and failed[what].text
    # a shift that did not come has no time
    assert failed[what].t_s is not None or "no shift 3-2 while" in failed[what].text


def test_the_moment_of_failure_is_drawn(tmp_path: Path) -> None:
    """A picture for each verdict that failed at a time, with the signals it looked at; none for those that passed."""
    report = run_scenario("creep", out=tmp_path / "run", overrides={"vehicle.start": "bmw_528i_hill"}, html=False)
    moments = failed_moments(report)
    assert [name for name, _, _ in moments] == [f"{v.kind} {v.name}" for v in report.verdicts if not v.passed] != []
    svg = next(picture for name, _, picture in moments if name == "check creeps within 2 s")
    assert svg is not None and svg.startswith("<svg") and "car.v" in svg and "driver.pedal" in svg
    assert moment(report.run.signals, replace(report.verdicts[0], t_s=None), "x") is None


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
    assert "eventually car.v > 1000 km/h: not until" in failures[0][2]


def test_the_command_names_a_mistake(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('[scenario]\nname = "bad"\nrig = "desk_4hp22"\n[[steps]]\nname = "x"\nwhen = "car.vv > 3"\n')
    result = CliRunner().invoke(app, ["scenario", str(bad), "--out", str(tmp_path / "runs")])
    assert result.exit_code == 2
    assert "car.vv" in result.output and "bad.toml" in result.output.replace("\n", "")
    result = CliRunner().invoke(app, ["scenario", "creep", "--param", "x=1", "--out", str(tmp_path / "more")])
    assert result.exit_code == 2 and "no parameter" in result.output


def test_a_checkpoint_in_the_middle_of_the_steps(tmp_path: Path) -> None:
    """The manoeuvre goes on where it stood: the same end, to the bit."""
    made = load_rig_scenario(installed("manoeuvres")["garage_shifts"], {"times": 1.0})
    peers = {"vehicle": Car(), "ecus": {"tcu": Unit()}}
    whole = run_rig(
        made.rig, "virtual", out=tmp_path / "whole", overrides=made.overrides, html=False, progress=False, **peers
    )
    going = Running(made.rig, tmp_path / "taken", 60.0, overrides=made.overrides)
    with going.client() as client:
        client.checkpoint("middle", at=5000)
    assert going.join().stats.hash == whole.stats.hash
    peers = {"vehicle": Car(), "ecus": {"tcu": Unit()}}
    rest = run_rig(made.rig, "virtual", out=tmp_path / "rest", overrides=made.overrides, html=False, progress=False,
                   start_from=tmp_path / "taken" / "control" / "middle.tlc", **peers)  # fmt: skip
    assert rest.stats.hash == whole.stats.hash and rest.stats.clock.ticks == whole.stats.clock.ticks - 5000
