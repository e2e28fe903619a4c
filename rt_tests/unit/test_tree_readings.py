"""What is read of a tree of bodies from a file, against closed forms: attitude, speeds, accelerations and forces of a
body that spins and falls, a joint that carries a weight, an input between its values, what the command prints."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest

import torqueloop
from torqueloop.core.multibody import integrate
from torqueloop.hil.multibody.__main__ import main
from torqueloop.hil.multibody.build import BuiltFile, Told, load_tree

with_pinocchio = pytest.mark.skipif(
    importlib.util.find_spec("pinocchio") is None, reason="Pinocchio is not installed (pip install pin)"
)
TREES = Path(torqueloop.__file__).parent / "configs" / "trees"
#: a body that flies from an attitude of 40 deg about x and turns about its own z; a table with a weight beside its axis
FILE = """
kind = "tree"
[tree]
name = "readings"
[body.wheel]
mass_kg = 2.0
I_kgm2 = [0.3, 0.3, 0.5, 0.0, 0.0, 0.0]
joint = "free"
quaternion = [0.9396926207859084, 0.3420201433256687, 0.0, 0.0]
omega_radps = [0.0, 0.0, 1.5]
[body.table]
mass_kg = 3.0
I_kgm2 = [0.2, 0.3, 0.4, 0.0, 0.0, 0.0]
com_m = [0.25, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]
angle_rad = 0.7
w_radps = 2.0
[body.slide]
mass_kg = 1.0
I_kgm2 = [0.1, 0.1, 0.1, 0.0, 0.0, 0.0]
joint = "prismatic"
axis = [0.0, 0.0, 1.0]
place_m = 0.5
v_mps = -0.25
[driveline.drive]
body = "table"
axes = [0.0, 0.0, 1.0]
connections = [["motor.flange", "rotor.flange_a"]]
[driveline.drive.components]
motor = { kind = "Torque" }
rotor = { kind = "Inertia", J_kgm2 = 0.02, w0_radps = 30 }
[driveline.far]
body = "slide"
axes = [0.0, 0.0, 1.0]
connections = [["hub.flange_b", "load.flange"]]
[driveline.far.components]
hub = { kind = "Inertia", J_kgm2 = 0.03 }
load = { kind = "Torque" }
[inputs]
"drive.motor.tau_Nm" = 0.0
"far.load.tau_Nm" = 0.0
"""
SHAFT = """
[shaft.between]
flange_a = "drive.rotor.flange_b"
flange_b = "far.hub.flange_a"
n_a = [0.0, 0.6, 0.8]
n_b = [0.0, 0.8, 0.6]
at_a_m = [0.1, 0.0, 0.2]
at_b_m = [0.3, 0.0, 0.9]
c_Nm_per_rad = 500.0
d_Nms_per_rad = 2.5
joint_b = "constant_velocity"
theta_deg = 30.0
phase_deg = 12.0
"""


def read(built: BuiltFile, t: float) -> dict[str, float]:
    from torqueloop.hil.multibody.__main__ import signals

    told = signals(built, integrate(built.system, t, 5e-3, q=built.q, v=built.v))
    return {name: float(x[-1]) for name, x in told.items()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "readings.toml").write_text(FILE, encoding="utf-8")
    return tmp_path / "readings.toml"


@with_pinocchio
def test_a_body_that_spins_and_falls_is_read_in_its_own_axes(tree: Path) -> None:
    """The attitude goes from 40 deg about x by 1.5 rad/s about its z; free fall is g downwards in the world."""
    t, g = 0.2, 9.81
    found = read(load_tree(tree), t)
    a, b = math.radians(20.0), 1.5 * t / 2.0
    wanted = [
        math.cos(a) * math.cos(b),
        math.sin(a) * math.cos(b),
        -math.sin(a) * math.sin(b),
        math.cos(a) * math.sin(b),
    ]
    assert [found[f"wheel.q{k}"] for k in range(4)] == pytest.approx(wanted, abs=1e-9)
    assert [found[f"wheel.w_{x}"] for x in "xyz"] == pytest.approx([0.0, 0.0, 1.5], abs=1e-9)
    # world's -z along the axes of the body: Rz(-1.5 t) Rx(-40 deg) (0, 0, -g)
    down = -g * math.sin(2 * a), -g * math.cos(2 * a)
    spun = [down[0] * math.sin(2 * b), down[0] * math.cos(2 * b), down[1]]
    assert [found[f"wheel.a_{x}"] for x in "xyz"] == pytest.approx(spun, abs=1e-8)
    forces = [found[f"wheel.{kind}_{x}"] for kind in "ft" for x in "xyz"]
    assert forces == pytest.approx([0.0] * 6, abs=1e-9), "nothing holds it"


@with_pinocchio
def test_a_joint_carries_weight_and_centripetal_force(tree: Path) -> None:
    """Uniform rotation about the vertical: m g upwards, m w2 r inwards, and the moment of the weight about the axis."""
    t, m, r, w = 0.25, 3.0, 0.25, 2.0
    found = read(load_tree(tree), t)
    assert (found["table.phi"], found["table.w"]) == (pytest.approx(0.7 + w * t), pytest.approx(w))
    forces = [found[f"table.{kind}_{x}"] for kind in "ft" for x in "xyz"]
    assert forces == pytest.approx([-m * w**2 * r, 0.0, m * 9.81, 0.0, -m * 9.81 * r, 0.0], abs=1e-9)
    # the rotor turns beside the table at its own speed
    assert found["drive.rotor.w"] == pytest.approx(30.0) and found["far.hub.w"] == pytest.approx(0.0, abs=1e-9)
    assert found["slide.s"] == pytest.approx(0.5 - 0.25 * t - 0.5 * 9.81 * t**2)
    assert found["slide.v"] == pytest.approx(-0.25 - 9.81 * t)


@with_pinocchio
def test_every_number_of_a_shaft_is_taken_from_its_line(tree: Path) -> None:
    tree.write_text(FILE + SHAFT, encoding="utf-8")
    [geometry] = load_tree(tree).system.shafts
    shaft = vars(geometry.shaft)
    assert {key: tuple(x) if isinstance(x, list | np.ndarray) else x for key, x in shaft.items()} == {
        "name": "between", "flange_a": "drive.rotor.flange_b", "flange_b": "far.hub.flange_a",
        "n_a": (0.0, 0.6, 0.8), "n_b": (0.0, 0.8, 0.6), "at_a": (0.1, 0.0, 0.2), "at_b": (0.3, 0.0, 0.9),
        "c": 500.0, "d": 2.5, "joint_a": "universal", "joint_b": "constant_velocity",
        "theta": pytest.approx(math.pi / 6.0), "phase": pytest.approx(math.pi / 15.0),
    }  # fmt: skip


def test_a_told_input_is_linear_from_one_value_to_the_next_and_constant_outside() -> None:
    told = Told()
    assert told.value(3.0) == 0.0
    told.tell(0.0, 5.0)
    assert [told.value(t) for t in (0.0, 1.0)] == [5.0, 5.0]
    told.tell(0.5, 9.0)
    told.tell(0.75, 1.0)
    assert told.sample(np.array([0.0, 0.5, 0.5625, 0.75, 2.0])).tolist() == [9.0, 9.0, 7.0, 1.0, 1.0]
    assert (told.before(0.6875), told.after(0.6875)) == (3.0, 3.0)


@with_pinocchio
def test_the_command_prints_the_numbers_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["body_mounted_actuator", "--set", "tree.duration_s=0.12", "--set", "tree.step_s=0.01"]) == 0
    said = capsys.readouterr().out
    built = load_tree(TREES / "body_mounted_actuator.toml")
    run = integrate(built.system, 0.12, 0.01, q=built.q, v=built.v)
    assert said.startswith("body_mounted_actuator: 12 steps of 0.01 s, 2 joint and 2 shaft speeds, 1 rows\n"), said
    numbers = [float(x) for x in re.findall(r"-?\d[\d.]*(?:e[+-]\d+)?(?= J| ->)", said)]
    assert numbers[:4] == pytest.approx([run.energy[0], run.energy[12], run.work[12], run.loss[12]], rel=1e-5)
    rows_left, points_left = run.residual
    assert said.rstrip().endswith(f"rows left by {rows_left:.1e}") and rows_left > points_left
