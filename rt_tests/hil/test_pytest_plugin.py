"""The pytest plug-in: rigs driven by tests, runs told with failures, real time, several workers."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from waiting import PATIENCE_S

import torqueloop as tl
from torqueloop.hil.rig.run.replay import replay

pytest_plugins = ["pytester"]
#: what the runs import late: pytester takes modules away again that were first imported in a run of its own, and
#: pydantic's must not be there twice
for _late in ("testing.driven_rig", "scenario.scenario_tables", "ecu.soft_tcu", "vehicle.model", "report.html"):
    importlib.import_module(f"torqueloop.hil.{_late}")
importlib.import_module("lark")
#: as installed, but of this tree, whatever is installed
LOADED = ("-p", "no:torqueloop", "-p", "torqueloop.hil.testing.plugin", "-p", "no:cacheprovider")
START = "    rig.brake(0)\n    rig.lever('D')\n    rig.pedal(0.6, over=0.3)\n"


def run(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile("import pytest, numpy\n" + text)
    return pytester.runpytest_inprocess(*LOADED, *options)


def test_the_entry_point_is_this_plugin() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"torqueloop": "torqueloop.hil.testing.plugin"}


@pytest.mark.proof
def test_a_kick_down(pytester: pytest.Pytester) -> None:
    """As docs/pytest.md has it; the run replays to the bit, what the test wrote included."""
    result = run(
        pytester,
        f"def test_kick_down(rig):\n{START}"
        "    t = rig.wait('gear == 2', within=20.0)\n"
        "    rig.stays('gear == 2 and engine.w < 6500 rpm', 0.4)\n"
        "    assert rig.t == pytest.approx(t + 0.4)\n"
        "    rig.pedal(1.0)\n"
        "    assert rig.value('kickdown') == 1.0\n"
        "    rig.wait('gear == 1', within=1.5, for_s=0.1)\n"
        "    assert 5 < rig['jerk'].max() < 200 and len(rig['jerk']) == len(rig['v']) == len(rig.signals.tick)\n"
        "    assert rig.since(rig.t - 1.0)['acceleration'].max() > 2.0\n"
        "    assert numpy.isclose(rig.since(rig.t - 1.0).t[0], rig.t - 1.0, atol=0.002)\n",
        "--torqueloop-runs", "runs",
    )  # fmt: skip
    result.assert_outcomes(passed=1)
    path = pytester.path / "runs" / "test_kick_down"
    assert replay(path).passed and tl.read_run(path).passed
    assert not (path / "report.html").exists(), "of a test that passed nobody reads it"


def test_virtual_time_is_the_same_every_time(pytester: pytest.Pytester) -> None:
    text = f"@pytest.mark.parametrize('k', [1, 2])\ndef test_drive(rig, k):\n{START}    rig.run(1.5)\n"
    run(pytester, text, "--torqueloop-runs", "runs").assert_outcomes(passed=2)
    one, two = (tl.read_run(path) for path in sorted((pytester.path / "runs").iterdir()))
    assert one.stats.hash == two.stats.hash and one.stats.clock.ticks == two.stats.clock.ticks > 1800


@pytest.mark.proof
def test_a_condition_that_does_not_come_is_told_with_what_was_seen_and_the_run(pytester: pytest.Pytester) -> None:
    text = f"def test_late(rig):\n{START}    rig.wait('gear == 4 and car.v > 50 km/h', within=0.5)\n"
    result = run(pytester, text, "--torqueloop-runs", "runs", "--junit-xml", "junit.xml")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r".*NotReached: 'gear == 4 and car.v > 50 km/h' did not come within 0.5 s "
            r"\(0.30\d .. 0.80\d s\): TCU_Status.gear_actual 0 .. 0, last 0; car.v 0.* .. ",
            r".*torqueloop run.*",
            r".*runs/test_late",
            r".*hold driver.lever = 3",
        ]
    )
    path = pytester.path / "runs" / "test_late"
    assert (path / "report.html").exists()
    properties = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("property")
    assert [(p.get("name"), p.get("value")) for p in properties] == [("torqueloop_run", str(path))]


@pytest.mark.proof
def test_a_run_that_fails_fails_the_test(pytester: pytest.Pytester) -> None:
    """Its gates and checks are looked at after the test; `judge=False` leaves them to the test."""
    text = (
        "def leave(rig):\n    rig.override({'vehicle.F': 0.0})\n    rig._holder.live.control.safe()\n    rig.run(0.1)\n"
        "    assert 'requested' in rig.safe_state\n"
        "def test_judged(rig):\n    leave(rig)\n"
        "@pytest.mark.rig(judge=False)\ndef test_by_hand(rig):\n    leave(rig)\n"
    )
    result = run(pytester, text, "--torqueloop-no-html")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*the run of the rig failed: *safe_state_latched == 0*run: *test_judged*"])


def test_mistakes_are_named(pytester: pytest.Pytester) -> None:
    text = """
MISTAKES = [
    (lambda rig: rig.wait("gears == 2"), "the rig has no signal 'gears'"),
    (lambda rig: rig.wait("car.v >"), "cannot be read"),
    (lambda rig: rig.wait("car.v > 3 bar"), "car.v is in m/s, not in Pa"),
    (lambda rig: rig.wait("p == 2"), "several signals are called 'p'"),
    (lambda rig: rig.lever("Q"), "'Q' is no value of driver.lever"),
    (lambda rig: rig.override({"engine.w": 3.0}), "engine.w cannot be held"),
    (lambda rig: rig.override({"pedal": 7.0}), "driver.pedal = 7 1; allowed: 0 .. 1"),
    (lambda rig: rig.set({"car.m": -1.0}), "car.m"),
    (lambda rig: rig["nothing"], "the rig has no signal 'nothing'"),
    (lambda rig: rig.run(1.0), "the rig has ended: its duration is over"),
    (lambda rig: rig.pedal(1.0), "the rig has ended: its duration is over"),
]
def test_it(make_rig):
    rig = make_rig(duration=0.2)
    for mistake, words in MISTAKES:
        with pytest.raises(Exception) as caught:
            mistake(rig)
        assert words in str(caught.value)
"""
    run(pytester, text).assert_outcomes(passed=1)


def test_marks_and_options_are_checked(pytester: pytest.Pytester) -> None:
    text = "@pytest.mark.rig(colour='red')\ndef test_it(rig):\n    pass\n"
    result = run(pytester, text, "--strict-markers")
    result.assert_outcomes(errors=1)
    assert "unknown option 'colour'; allowed: name, clock" in result.stdout.str()
    pytester.makeini("[pytest]\ntorqueloop_names = gear TCU\n")
    result = run(pytester, "def test_it(rig):\n    pass\n")
    assert "'gear TCU' is not SHORT = SIGNAL" in result.stdout.str()


def test_several_rigs_checkpoints_own_names_and_parameters(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntorqueloop_names =\n    mass = car.m\n    n = engine.w\ntorqueloop_rig = desk_6hp26\n")
    result = run(
        pytester,
        "def test_two(make_rig):\n"
        "    light, heavy = make_rig(name='desk_4hp22'), make_rig(driver={'lever': 'D', 'brake': 0.0})\n"
        "    assert '6hp26' in repr(heavy)\n"
        "    for rig in (light, heavy):\n"
        "        rig.run(0.2)\n"
        "    heavy.set({'car.m': 2500.0})\n"
        "    assert heavy.value('car.m') == 2500.0 and heavy['n'][-1] > 50\n"
        "    light.checkpoint('here')\n"
        "    t = light.t\n"
        "    light.run(0.1)\n"
        "    light.restore('here')\n"
        "    assert abs(light.t - t) <= 0.002\n",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.proof
def test_real_time_and_virtual_time_in_two_workers(pytester: pytest.Pytester) -> None:
    """In processes of pytest-xdist: folders do not meet, and a run on the real clock keeps others of its kind away."""
    # a machine that withholds its processors does not end the run
    patient = {"vehicle.age_limit_s": 60.0, "safe_state.overrun_limit": 0, "safe_state.watchdog_s": 60.0}
    patient |= {f"bus.powertrain.rx_timeout_s.TCU_Pressure_{k}": 60.0 for k in (1, 2)}
    pytester.makepyfile(
        "import fcntl, os, pytest, tempfile\n"
        f"@pytest.mark.rig(judge=False, overrides={patient})\ndef test_it(real_rig):\n"
        "    rig = real_rig\n    rig.brake(0)\n    rig.lever('D')\n    rig.pedal(0.5)\n"
        "    rig.wait('car.v > 0.2', within=60.0)\n    assert rig['v'][-1] >= 0.1\n"
        "    with open(f'{tempfile.gettempdir()}/torqueloop-real-{os.getuid()}.lock') as held:\n"
        "        with pytest.raises(BlockingIOError):\n"
        "            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "class TestOther:\n    def test_it(self, rig):\n        rig.run(0.05)\n"
    )
    result = pytester.runpytest_subprocess(*LOADED, "-n", "2", "--torqueloop-runs", "runs", timeout=PATIENCE_S)
    result.assert_outcomes(passed=2)
    runs = [tl.read_run(path) for path in (pytester.path / "runs").iterdir()]
    assert sorted(run.info.clock for run in runs) == ["real", "virtual"]


@pytest.mark.proof
def test_a_gearbox_that_does_not_drive_fails_a_test_that_does_not_look_at_it(pytester: pytest.Pytester) -> None:
    """B, which first gear needs, has a quarter of its pressure."""
    text = (
        "import pytest\n"
        "LINK = {'signal': 'TCU_Pressure_1.p_B', 'gain': 0.25}\n"
        "@pytest.mark.rig('desk_zf_8hp70', overrides={'inputs.\"B.p\"': LINK})\n"
        "def test_starts(rig):\n    rig.brake(0)\n    rig.lever('D')\n    rig.pedal(0.4)\n    rig.run(8.0)\n"
    )
    result = run(pytester, text, "--torqueloop-no-html")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the run of the rig failed: *no_drive: *B is open, which 1 needs*"])
