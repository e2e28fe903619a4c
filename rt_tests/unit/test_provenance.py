"""How a number is known: read from `source`, its range and its derivation held; nothing but arithmetic is computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torqueloop.core.describe.errors import RangeError
from torqueloop.core.describe.provenance import Known, evaluate, statements
from torqueloop.hil import cli

PART = """
[components.shaft]
kind = "SpringDamper"
d_m = 0.03
l_m = 0.6
c_Nm_per_rad = 10600
[components.shaft.source]
d_m = "assumed: a forged half shaft; range 0.022..0.035"
l_m = "workshop manual, p. 12"
c_Nm_per_rad = "derived: G pi d^4/(32 l) of steel; = 8e10*pi*d_m**4/(32*l_m)"

[components.out]
kind = "Inertia"
J_kgm2 = 0.012
source = "assumed: ring and output shaft; range 0.003..0.02"

[rig]
period_s = 0.001
"""


def write(folder: Path, text: str = PART) -> Path:
    path = folder / "part.toml"
    path.write_text(text)
    return path


def test_numbers_are_told_apart_and_settings_are_left_out(tmp_path: Path) -> None:
    said = {s.key: s for s in statements(write(tmp_path))}
    assert {k: s.known for k, s in said.items()} == {
        "d_m": Known.ASSUMED, "l_m": Known.PUBLISHED, "c_Nm_per_rad": Known.DERIVED, "J_kgm2": Known.ASSUMED,
    }  # fmt: skip
    assert (said["J_kgm2"].low, said["J_kgm2"].high) == (0.003, 0.02)
    assert said["J_kgm2"].reason == "ring and output shaft" and said["J_kgm2"].table == "components.out"
    # 8e10 Pa * pi * (0.03 m)^4/(32 * 0.6 m), by hand
    assert said["c_Nm_per_rad"].computed == pytest.approx(10602.9, abs=0.1)
    assert not any(s.problem for s in said.values())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("J_kgm2 = 0.012", "J_kgm2 = 0.12", "outside of its own range 0.003 .. 0.02"),
        ("c_Nm_per_rad = 10600", "c_Nm_per_rad = 9000", "not what its derivation gives, 10603"),
        ("d_m = 0.03", "d_m = 0.024", "not what its derivation gives"),
    ],
)
def test_a_value_outside_of_what_its_source_says_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    problems = [s.problem for s in statements(write(tmp_path, PART.replace(old, new))) if s.problem]
    assert len(problems) == 1 and words in problems[0]


def test_only_arithmetic_is_computed() -> None:
    assert evaluate("2*(a + 1)**2/sqrt(4) - -1", {"a": 2.0}) == pytest.approx(10.0)
    for bad in ("__import__('os')", "a.real", "sqrt(1, 2)", "b", "1/0", "(" * 200, "9**9**9**9", "'a'"):
        with pytest.raises(RangeError, match="cannot be computed"):
            evaluate(bad, {"a": 1.0})


def test_a_derivation_that_cannot_be_computed_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(RangeError, match=r"part.toml: .*components.shaft"):
        statements(write(tmp_path, PART.replace("32*l_m", "32*length")))


def test_the_command_lists_what_is_assumed(tmp_path: Path) -> None:
    made = CliRunner().invoke(cli.app, ["list", "--assumed", str(write(tmp_path)), "--json"])
    assert made.exit_code == 0
    assert [(row["table"], row["key"], row["value"]) for row in json.loads(made.stdout)] == [
        ("components.shaft", "d_m", 0.03), ("components.out", "J_kgm2", 0.012),
    ]  # fmt: skip


LINE = """
connections = [["in.flange_a", "shaft.flange_a"], ["shaft.flange_b", "out.flange_a"]]
[components.in]
kind = "Inertia"
J_kgm2 = 1.0
[components.shaft]
kind = "SpringDamper"
c_Nm_per_rad = 10600
d_Nms_per_rad = 1.0
source.c_Nm_per_rad = "derived: G pi d^4/(32 l) of steel; = 8e10*pi*0.03**4/(32*0.6)"
[components.out]
kind = "Inertia"
J_kgm2 = 0.12
source = "assumed: ring and output shaft; range 0.003..0.02"
"""


def test_check_physics_warns_with_numbers(tmp_path: Path) -> None:
    made = CliRunner().invoke(cli.app, ["check", "--physics", str(write(tmp_path, LINE))])
    assert made.exit_code == 0, made.output
    said = " ".join(made.output.split())
    assert "warning" in said and "0.12 is outside of its own range 0.003 .. 0.02" in said
    assert "physics: 1 of 2 quantities are in their range" in said
