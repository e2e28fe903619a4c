"""Scenario files of random sequences, and the tables of scenarios: what is written is read as the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import torqueloop
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.results.scenario import SHIFT, CheckSpec, StepSpec
from torqueloop.hil.scenario import random_drive as rd
from torqueloop.hil.scenario.scenario_tables import GATES, load_scenario

DESK = Path(torqueloop.__file__).parent / "configs" / "rigs" / "desk_4hp22.toml"
MOVES = (
    rd.Move((("lever", "D"), ("brake", 0.0)), hold_s=1.25),
    rd.Move((("pedal", 0.4), ("kickdown", 1.0)), over_s=0.3, hold_s=3.0),
    rd.Move((("lever", "R"),), hold_s=0.125),
)
#: every form of a check on the whole run
CHECKS = [
    CheckSpec("slow", "always", "engine.w < 1500 rpm"),
    CheckSpec("late", "never", "car.v < -1", from_s=2.0, until_s=3.5),
    CheckSpec("once", "eventually", "car.v > 1", for_s=0.5),
    CheckSpec('at "its" end', "at_end", "car.v > 0.1", from_s=1.5),
    CheckSpec("shifts", SHIFT, "time < 1 s and flare < 200 rpm", until_s=9.0, shift="3-2"),
]


def test_the_file_of_a_sequence_drives_and_judges_as_the_sequence_was(tmp_path: Path) -> None:
    """Moves, road, driver, changed values, gates and checks with their times."""
    given = {
        "gates": {**GATES, "warm": "peak_heat_J < 1e4", "lost_records": "lost_records <= 3"},
        "driver.pedal": 0.0, "driver.brake": 0.3, "clock.substeps": 2, "plant.set": {"components.car.m_kg": 1500.0},
        "monitors.shift_hard.max_mps2": 9.0, "rig.duration_s": 99.0,
    }  # fmt: skip
    drive = rd.Drive(DESK, ("pedal", "brake", "lever", "kickdown"), given, CHECKS, True)
    failed = {"check 'slow'": "1600 rpm\nat 1 s"}
    result = rd.SequenceResult(7, MOVES, failed, hills=((0.0, 5.0), (30.0, -8.0)))
    path = tmp_path / "again.toml"
    path.write_text(rd.scenario_text(drive, result, str(DESK)), encoding="utf-8")
    own_table = path.read_text(encoding="utf-8").partition("[set]")[2].partition("\n[")[0]
    assert [line.partition(" = ")[0] for line in own_table.split("\n") if line] == [
        '"clock.substeps"', '"plant.set"', '"monitors.shift_hard.max_mps2"', '"vehicle.options.set"',
    ], "the driver, the rig and the gates have tables of their own"  # fmt: skip
    made = load_scenario(path)
    assert made.rig == DESK.resolve() and made.name == "random_7" and made.info.checks == CHECKS
    own = {k: v for k, v in given.items() if not k.startswith("rig.")}
    told = dict(made.overrides)
    steps = told.pop("steps")
    assert told.pop("rig.name") == "random_7" and told.pop("rig.duration_s") == pytest.approx(1.25 + 3.0 + 0.125 + 1.0)
    assert told == {**own, rd.GRADES: {"road.grade_percent": [[0.0, 5.0], [30.0, -8.0]]}}
    # a switch and a lever move at once, a pedal within its time
    assert [(s["name"], s["hold_s"]) for s in steps] == [("move 1", 1.25), ("move 2", 3.0), ("move 3", 0.125)]
    assert steps[1]["set"] == {"pedal": {"to": 0.4, "over_s": 0.3}, "kickdown": {"to": 1.0, "over_s": 0.0}}
    assert steps[2]["set"] == {"lever": {"to": "R", "over_s": 0.0}}


def test_a_sequence_runs_for_its_moves_and_a_second_and_tells_the_first_fault_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = np.array([0.0, 0.0, 5.0, 7.0, 0.0])
    seen: list[Any] = []

    class Signals(dict[str, np.ndarray]):
        t = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
        names = ["tcu.fault_code", "car.v"]

    def run(rig: Path, spec: Any) -> Any:
        seen.append(spec)
        spec.out.mkdir(parents=True)
        signals = Signals({"tcu.fault_code": codes, "car.v": codes})
        report = SimpleNamespace(failures={}, run=SimpleNamespace(signals=signals), metrics={"duration_s": 5.25})
        return SimpleNamespace(report=report)

    monkeypatch.setattr(rd, "run_rig", run)
    drive = rd.Drive(DESK, ("pedal", "lever"), {"gates": {}}, CHECKS, True)
    made = rd.run_sequence(drive, 3, MOVES, tmp_path / "run", hills=((0.0, 5.0),))
    (spec,) = seen
    assert spec.duration_s == 5.375 == spec.overrides["rig.duration_s"]
    assert spec.overrides[rd.GRADES] == {"road.grade_percent": [[0.0, 5.0]]}
    assert made.failed == {"tcu.fault_code == 0": "tcu.fault_code = 5 at 0.300 s"} and made.duration_s == 5.25
    assert made.path == tmp_path / "run" and made.path.is_dir()
    codes[:] = 0.0
    passed = rd.run_sequence(drive, 3, MOVES, tmp_path / "run")
    assert passed.failed == {} and passed.path is None and not (tmp_path / "run").exists()
    assert [r.number for r in rd.run_random(drive, 4, 1, tmp_path)] == [1, 2, 3, 4]


def test_a_sequence_without_moves_that_do_not_matter_is_found_in_few_runs() -> None:
    """Of 16 moves the fifth alone fails: halves are tried before single moves, so some 2 log2(16) runs do."""
    moves = [replace(MOVES[0], hold_s=rd.SHORTEST_S, set=(("pedal", float(k == 4)),)) for k in range(16)]

    def run(tried: Sequence[rd.Move]) -> rd.SequenceResult:
        bad = any(dict(m.set)["pedal"] for m in tried)
        return rd.SequenceResult(1, tuple(tried), {"x": "y"} if bad else {})

    best, runs = rd.shrink(run(moves), run)
    assert [dict(m.set) for m in best.moves] == [{"pedal": 1.0}] and runs <= 12


@pytest.mark.parametrize(
    ("move", "simpler"),
    [
        (rd.Move((("pedal", 0.44),), 0.0, 0.1), [(0.0, 0.0, 0.1), (1.0, 0.0, 0.1), (0.4, 0.0, 0.1)]),
        (rd.Move((("pedal", 1.0),), 0.5, 2.0), [(1.0, 0.5, 0.1), (1.0, 0.5, 1.0), (1.0, 0.0, 2.0)]),
        (rd.Move((("pedal", 0.3),), 0.0, 0.15), [(0.3, 0.0, 0.1), (0.3, 0.0, 0.1), (0.0, 0.0, 0.15),
                                                 (1.0, 0.0, 0.15)]),
    ],
)  # fmt: skip
def test_simpler_moves_are_shorter_or_rounder(move: rd.Move, simpler: list[tuple[float, float, float]]) -> None:
    """(pedal, time to move it, hold): the shortest hold, half of it, at once, then pedals 0, 1 and in tenths."""
    assert [(dict(m.set)["pedal"], m.over_s, m.hold_s) for m in rd._simpler(move)] == simpler
    switched = rd.Move((("pedal", 0.44), ("kickdown", 0.0)), 0.0, 0.1)
    assert [dict(m.set)["kickdown"] for m in rd._simpler(switched)] == [0.0, 1.0, 0.0]


def test_a_move_is_told_by_what_is_set_within_which_time_and_for_how_long() -> None:
    assert [str(move) for move in MOVES] == [
        "lever D, brake 0.0, 1.25 s", "pedal 0.4, kickdown 1.0 within 0.3 s, 3 s", "lever R, 0.125 s",
    ]  # fmt: skip


def test_no_sequence_that_is_tried_has_more_moves_than_the_first_and_the_simplest_that_fails_is_kept() -> None:
    lengths: list[int] = []

    def run(moves: Sequence[rd.Move]) -> rd.SequenceResult:
        lengths.append(len(moves))
        # it fails while the pedal is moved somewhere after the lever
        words = [name for move in moves for name, _ in move.set]
        failed = "lever" in words and "pedal" in words[words.index("lever") :]
        return rd.SequenceResult(1, tuple(moves), {"gate": "no"} if failed else {})

    best, runs = rd.shrink(rd.SequenceResult(1, MOVES, {"gate": "no"}), run)
    assert runs == len(lengths) and max(lengths) <= len(MOVES)
    assert [dict(move.set) for move in best.moves] == [dict(MOVES[0].set), {"pedal": 0.0, "kickdown": 0.0}]
    assert [move.hold_s for move in best.moves] == [rd.SHORTEST_S] * 2 and best.moves[1].over_s == 0.0


def scenario(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "s.toml"
    path.write_text('kind = "scenario"\n[scenario]\nname = "s"\nrig = "desk_4hp22"\n' + text, encoding="utf-8")
    return path


def test_checks_and_steps_keep_their_times(tmp_path: Path) -> None:
    made = load_scenario(scenario(tmp_path, """
duration_s = 9.0
[[steps]]
name = "go"
when = "car.v > 1"
for_s = 0.25
within_s = 4.0
[[checks]]
name = "near"
signal = "car.v"
expected = 30.0
tolerance = 2.5
unit = "kmh"
during = "go"
from_s = 1.0
until_s = 1.0
[[checks]]
name = "quick"
shift = "3→2"
quality = "time < 1 s"
during = "go"
from_s = 0.5
until_s = 7.0
[[checks]]
name = "once"
eventually = "car.v > 3"
for_s = 0.125
from_s = 2.0
"""))  # fmt: skip
    assert made.info.steps == [StepSpec("go", "car.v > 1", 0.25, 4.0)]
    assert made.info.checks == [
        CheckSpec("near", "always", "car.v >= 27.5 kmh and car.v <= 32.5 kmh", "go", 1.0, 1.0),
        CheckSpec("quick", SHIFT, "time < 1 s", "go", 0.5, 7.0, shift="3-2"),
        CheckSpec("once", "eventually", "car.v > 3", from_s=2.0, for_s=0.125),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[parameters]\nv = { value = 5.0, min = 6.0, max = 9.0 }', "5.0 is out of its own range.*6 .. 9"),
        ('[parameters]\nv = { value = 5.0, max = 4.0 }', "5.0 is out of its own range.*-inf .. 4"),
        ('[[checks]]\nname = "c"\nalways = "car.v > 1"\nfor_s = 2.5', r"for_s = 2.5 is for eventually"),
        ('[[checks]]\nname = "c"\nalways = "car.v > 1"\nfrom_s = 3.0\nuntil_s = 2.0',
         r"until_s = 2.0 is before from_s.*>= 3"),
    ],
)  # fmt: skip
def test_a_refused_value_is_told_with_what_is_allowed(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        load_scenario(scenario(tmp_path, text))


def test_a_parameter_is_taken_within_its_range(tmp_path: Path) -> None:
    path = scenario(tmp_path, "[parameters]\nv = { value = 5.0, min = 2.0, max = 9.0 }\nfree = 1.0\n")
    assert load_scenario(path, {"v": 9.0, "free": -1e9}).info.parameters == {"v": 9.0, "free": -1e9}
    for v in (1.9, 9.1):
        with pytest.raises(ConfigError, match=rf"v = {v} is not allowed.*2 \.\. 9"):
            load_scenario(path, {"v": v})
