"""Random sequences: drawn again the same, run and judged, and a planted error shrunk to the moves it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rig_help import DESK
from typer.testing import CliRunner

from torqueloop import read_run
from torqueloop.configs import installed
from torqueloop.hil.cli import app
from torqueloop.hil.scenario import random_drive as rd

DRIVER = ("pedal", "kickdown", "brake", "brake_switch", "lever")


def test_a_seed_draws_the_same_sequences_everywhere() -> None:
    one = [rd.draw(3, k, DRIVER) for k in range(1, 40)]
    assert one == [rd.draw(3, k, DRIVER) for k in range(1, 40)] and len(set(one)) == 39
    assert one[0] != rd.draw(4, 1, DRIVER) and all(dict(moves[0].set) == {"lever": "D"} for moves in one)
    for move in (m for moves in one for m in moves):
        values = dict(move.set)
        if "pedal" in values:
            assert 0.0 <= values["pedal"] <= 1.0 and values["kickdown"] == float(values["pedal"] == 1.0)
            assert values["brake_switch"] == float(values["brake"] > 0.0)
            assert not (values["pedal"] and values["brake"]), "one foot"
    assert {dict(m.set).get("lever") for moves in one for m in moves} >= {"R", "N", "D"}
    assert [str(m) for m in rd.draw(3, 1, DRIVER)][0].startswith("lever D, ")
    roads = [rd.draw_hills(3, k) for k in range(1, 40)]
    assert roads == [rd.draw_hills(3, k) for k in range(1, 40)] and 10 < sum(not r for r in roads) < 30
    assert all(r[0][0] == 0.0 and list(r) == sorted(r) for r in roads if r)
    grades = [grade for r in roads for _, grade in r]
    assert -rd.GRADE_PERCENT <= min(grades) < -6.0 and 6.0 < max(grades) <= rd.GRADE_PERCENT


@pytest.mark.parametrize("seed", range(5))
def test_shrinking_finds_the_moves_that_matter(seed: int) -> None:
    """A law that fails where R comes after full pedal, whatever else: two moves are left, as simple as they can be."""

    def run(moves):
        values = [dict(m.set) for m in moves]
        full = next((k for k, v in enumerate(values) if v.get("pedal", 0.0) > 0.4), None)
        bad = full is not None and any(v.get("lever") == "R" for v in values[full + 1 :])
        return rd.SequenceResult(
            1, tuple(moves), {"law": "broken"} if bad else {"other": "x"} if len(moves) % 2 else {}
        )

    first = next(r for k in range(1, 500) if "law" in (r := run(rd.draw(seed, k, DRIVER))).failed)
    best, runs = rd.shrink(first, run)
    assert [dict(m.set).get("lever", dict(m.set).get("pedal")) for m in best.moves] == [1.0, "R"]
    assert all(m.hold_s == rd.SHORTEST_S and m.over_s == 0.0 for m in best.moves) and runs <= rd.SHRINK_RUNS
    assert best.failed == {"law": "broken"}


@pytest.mark.proof
def test_sequences_run_and_pass_and_leave_nothing(tmp_path: Path) -> None:
    drive = rd.prepare(DESK)
    [one] = rd.run_random(drive, 1, 5, tmp_path)
    assert one.failed == {} and one.path is None and list(tmp_path.iterdir()) == []
    assert one.duration_s == pytest.approx(sum(m.hold_s for m in one.moves), abs=0.02)


#: random drives of seed 11 in which a monitor once failed wrongly, or the soft control unit was wrong: a free wheel
#: leaves the ratio before the shift is asked for; D at standstill under full throttle; D while it rolls backwards;
#: pedal pressed while a coasting shift is filled | lever moved in a shift; pedal let go just before one; D behind N at
#: speed, with elements of 1st closed on the way to 3rd | a shift down of several gears, just engaged | 2nd
#: overrun, 4th crossed on the way | the turbine passes the speed of 3rd between two looks in a kick-down
ALARMED = (("desk_gm_4l60e", 5), ("desk_gm_4l60e", 33), ("desk_gm_4l60e", 71), ("desk_gm_4l60e", 100),
           ("desk_zf_8hp70", 26), ("desk_zf_8hp70", 90), ("desk_zf_8hp70", 184), ("desk_6hp26", 62),
           ("desk_mb_7226", 4), ("desk_mb_7226", 46), ("desk_mb_7226", 100), ("desk_mb_7226", 136),
           ("desk_zf_4hp22_small", 106), ("desk_gm_4l60e", 153))  # fmt: skip


@pytest.mark.parametrize("rig, number", ALARMED)
def test_a_driver_s_rough_wishes_are_no_failure_of_the_gearbox(rig: str, number: int, tmp_path: Path) -> None:
    drive = rd.prepare(installed("rigs")[rig])
    assert rd.run_sequence(drive, number, rd.draw(11, number, drive.driver), tmp_path / "run").failed == {}


#: random drives of seed 2026, over hills: 2 engaged at a speed that 2nd does not stand, two of them over hills | shifts
#: up that begin while the governor of the engine has taken its torque away | 2nd overrun on the way from 3rd to 1st | a
#: hill that holds the car at 10 % pedal | a kick-down answered behind a shift | two shifts at full throttle within 4 s
OVER_HILLS = (("desk_zf_8hp70", 9), ("desk_zf_8hp70", 194), ("desk_zf_8hp70", 111), ("desk_zf_8hp70", 164),
              ("desk_mb_7226", 99), ("desk_gm_4l60e", 60), ("desk_gm_4l60e", 111))  # fmt: skip


#: random drives of seed 7: in R down a hill beyond the engine's limit | the ratio of 5th by chance, in neutral | full
#: throttle in N, then D: what the engine has too much goes through C4 | standing, with an element of 1st that slips |
#: 1st overrun for seconds before 2nd is asked for | full throttle in R forwards, which is neutral, then 3 | braked to a
#: stop during 2-1 | 3rd holds a while at 13 Nm of B | two full shifts of the band within 3 s (seed 2026)
ROUGH = (("desk_mb_7226", 7, 71), ("desk_mb_7226", 7, 105), ("desk_4hp22", 7, 131), ("desk_4hp22", 7, 118),
         ("desk_4hp22", 7, 94), ("desk_zf_8hp45", 7, 63), ("desk_mb_7226", 7, 86), ("desk_6hp26", 7, 94),
         ("desk_gm_4l60e", 2026, 164))  # fmt: skip


#: random drives in which an event that changed nothing was met again and again, until an impulse ended the step: a
#: grade of 1.1 % beside a rolling resistance of 1.1 %, so that the car just holds | free wheels that begin to carry |
#: a car that stands, with torques of rounding | a slip that would turn within the look-ahead
ROUNDING = (("desk_gm_4l60e", 11, 188), ("desk_mb_7226", 11, 188), ("desk_mb_7226", 2026, 110),
            ("desk_mb_7226", 7, 119), ("desk_mb_7226", 11, 134), ("desk_mb_7226", 11, 144), ("desk_mb_7226", 11, 180),
            ("desk_mb_7226", 7, 85))  # fmt: skip


#: random drives with a defect of the soft control unit, of the engine, of a monitor: the pedal is let go in a
#: kick-down, and the oncoming element takes the turbine up with a torque that raises itself | the kick-down comes in a
#: coasting shift up, whose element slips 1.3 s | pressed, let go and pressed in one shift | an engine beyond its limit
#: that full throttle kept there | 2nd held by what is left in its band at a stop | full throttle in N, then R | an
#: upshift while braking, given up | one that is due there | D engaged late, the engine at 3500 rpm | a
#: coasting shift that goes on as one under power | R engaged late, while the speeds still had the ratio of 1st in N
PEDALS = (("desk_zf_8hp70", 78, 71), ("desk_zf_8hp70", 78, 98), ("desk_gm_4l60e", 78, 8), ("desk_mb_7226", 78, 98),
          ("desk_zf_8hp70", 79, 101), ("desk_6hp26", 78, 196), ("desk_4hp22", 78, 148),
          ("desk_zf_8hp70", 80, 70), ("desk_mb_7226", 80, 184), ("desk_zf_8hp70", 81, 31),
          ("desk_zf_8hp70", 81, 152), ("desk_6hp26", 81, 73), ("desk_4hp22", 82, 151))  # fmt: skip
CASES = [*((rig, 2026, number) for rig, number in OVER_HILLS), *ROUGH, *ROUNDING, *PEDALS]


@pytest.mark.parametrize("rig, seed, number", CASES)
def test_nor_are_they_over_hills(rig: str, seed: int, number: int, tmp_path: Path) -> None:
    drive = rd.prepare(installed("rigs")[rig])
    moves, hills = rd.draw(seed, number, drive.driver), rd.draw_hills(seed, number)
    assert drive.road and rd.run_sequence(drive, number, moves, tmp_path / "run", hills=hills).failed == {}


def test_a_sequence_over_hills_stands_in_the_file_that_is_left(tmp_path: Path) -> None:
    """The scenario of a sequence drives over the same road: at the same place at its end."""
    drive, hills = rd.prepare(DESK), ((0.0, 5.0), (30.0, -8.0))
    moves = (rd.Move((("lever", "D"), ("brake", 0.0)), hold_s=1.0), rd.Move((("pedal", 0.4),), hold_s=3.0))
    made = rd.run_sequence(drive, 1, moves, tmp_path / "made", True, hills)
    level = rd.run_sequence(drive, 1, moves, tmp_path / "level", True)
    (tmp_path / "again.toml").write_text(rd.scenario_text(drive, made, str(DESK)))
    out = tmp_path / "again"
    CliRunner().invoke(app, ["scenario", str(tmp_path / "again.toml"), "--out", str(out), "--no-html", "--json"])
    [again] = [path.parent for path in out.rglob("run.json")]
    ends = [read_run(path)["car.v"][-1] for path in (made.path, level.path, again)]
    assert ends[0] == ends[2] and ends[0] != pytest.approx(ends[1], abs=0.5)


@pytest.mark.proof
def test_a_planted_error_is_found_shrunk_and_reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that driving breaks: the file that is left fails in the same way as a scenario."""
    monkeypatch.setattr(rd, "SHRINK_RUNS", 4)
    planted = tmp_path / "planted.toml"
    planted.write_text("""
[scenario]
name = "planted"
rig = "desk_4hp22"
[[steps]]
name = "unused"
[[checks]]
name = "the engine stays below 1500 rpm"
always = "engine.w < 1500 rpm"
""")
    out = tmp_path / "out"
    options = ["--random", "1", "--seed", "49", "-j", "1", "--out", str(out), "--json"]
    result = CliRunner().invoke(app, ["scenario", str(planted), *options])
    assert result.exit_code == 1, result.output
    told = json.loads(result.output)
    assert told["failed"] and told["shrunk_from"] > len(told["shrunk"]) and told["shrink_runs"] == 4
    assert list(told["shrunk_fails"]) == ["check 'the engine stays below 1500 rpm'"]
    again = CliRunner().invoke(app, ["scenario", told["file"], "--out", str(tmp_path / "again"), "--no-html", "--json"])
    verdicts = json.loads(again.output)["scenarios"][0]["verdicts"]
    assert again.exit_code == 1 and [v["name"] for v in verdicts if not v["passed"]] == [
        "the engine stays below 1500 rpm"
    ]


def test_mistakes_are_named(tmp_path: Path) -> None:
    for options, words in (
        (["creep", "kick_down"], "2 scenarios are named"),
        (["--clock", "real"], "virtual clock"),
        (["--rig", "nothing"], "nothing"),
    ):
        result = CliRunner().invoke(app, ["scenario", *options, "--random", "1", "--out", str(tmp_path / "x")])
        assert result.exit_code == 2 and words in result.output.replace("\n", " "), result.output
