"""Carriers, bodies and joints as a file may have them wrong: each mistake is an error that names what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import torqueloop as tl
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.core.signals import Step, Table

FLYWHEEL = """
name = "flywheel"
connections = [
  ["motor.flange", "rotor.flange_a"],
  ["motor.support", "mount.flange_b"],
  ["carrier.frame_b", "rotor.frame_a", "mount.frame_a"],
]
[components.motor]
kind = "Torque"
[components.carrier]
kind = "MovingCarrier"
[components.rotor]
kind = "Rotor1D"
J_kgm2 = 0.25
[components.mount]
kind = "Mounting1D"
"""
GYROSTAT = """
name = "gyrostat"
connections = [["body.frame_b", "rotor.frame_a"], ["motor.flange", "rotor.flange_a"]]
[components.body]
kind = "RigidBody"
m_kg = 10
I_11_kgm2 = 1
I_22_kgm2 = 1
I_33_kgm2 = 1
[components.motor]
kind = "Torque"
[components.rotor]
kind = "Rotor1D"
J_kgm2 = 0.1
"""
SHAFT = """
name = "shaft"
connections = [
  ["motor.flange", "rotor.flange_a"],
  ["rotor.flange_b", "front.flange", "shaft.flange_a"],
  ["shaft.flange_b", "rear.flange", "load.flange_a"],
  ["body.frame_b", "front.frame_a", "rear.frame_a"],
]
[components.body]
kind = "World"
[components.motor]
kind = "Torque"
[components.rotor]
kind = "Inertia"
J_kgm2 = 0.1
[components.load]
kind = "Inertia"
J_kgm2 = 0.1
[components.front]
kind = "ShaftBearing"
[components.rear]
kind = "ShaftBearing"
n_x = 0.9
n_y = 0.3
[components.shaft]
kind = "UniversalJoint"
c_Nm_per_rad = 1e4
d_Nms_per_rad = 1
"""


def compiled(path: Path, text: str) -> str:
    """ "" when it compiles, else what the error says."""
    path.write_text(text, encoding="utf-8")
    try:
        compile_driveline(tl.load(path))
    except TorqueloopError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("text", "old", "new", "words"), [
    (FLYWHEEL, '"carrier.frame_b", ', "", ["rotor.frame_a", "mount.frame_a"]),
    (FLYWHEEL, '"carrier.frame_b", "rotor', '"carrier.frame_b", "other.frame_b", "rotor', ["carrier", "other"]),
    (GYROSTAT, "m_kg = 10", "m_kg = 10\nq0 = 1\nq1 = 0.1", ["bad.toml", "components.body", "1, 0.1, 0, 0", "1.00499"]),
    (GYROSTAT, "m_kg = 10", "m_kg = 10\nq0 = 0", ["bad.toml", "components.body", "q0 .. q3 = 0, 0, 0, 0", "length 0"]),
    (SHAFT, "n_x = 0.9\nn_y = 0.3", "n_x = 0\nn_y = 1", ["'shaft'", "90 deg", "front", "rear"]),
    (SHAFT, "d_Nms_per_rad = 1", "d_Nms_per_rad = 1\nbeta_deg = 90", ["bad.toml", "components.shaft", "beta", "90"]),
    (SHAFT, '"front.flange", ', "", ["shaft.flange_a has no direction", "ShaftBearing"]),
    (SHAFT, '"body.frame_b", ', "", ["front.frame_a", "rear.frame_a"]),
])  # fmt: skip
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, old: str, new: str, words: list[str]) -> None:
    assert compiled(tmp_path / "good.toml", text) == "", "without the mistake it compiles"
    assert old in text
    changed = text.replace(old, new)
    if "other.frame_b" in changed:
        changed += '[components.other]\nkind = "World"\n'
    said = compiled(tmp_path / "bad.toml", changed)
    assert said and all(word in said for word in words), said


#: the same jump, twice
JUMPS = (Step(height=2.0, startTime=0.5), Table([[0.0, 0.0], [0.5, 0.0], [0.5, 2.0], [1.0, 2.0]]))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_motion_that_jumps_is_named_or_does_what_the_page_says(tmp_path: Path, jump: Step | Table) -> None:
    path = tmp_path / "flywheel.toml"
    path.write_text(FLYWHEEL, encoding="utf-8")
    motion = {"carrier.w_x": jump, "carrier.w_y": 0.0, "carrier.w_z": jump, "motor.tau": 0.0}
    with pytest.raises(TorqueloopError, match=r"jumps at t = 0\.5 s .* has no derivative"):
        tl.Simulation(tl.load(path)).run(1.0, inputs=motion)
    # with an acceleration of its own only that turns the rotor; the gyroscopic moment follows the jump at once
    path.write_text(FLYWHEEL.replace('"MovingCarrier"', '"MovingCarrier"\nuse_z = true')
                    + '[initial]\n"rotor.w_radps" = 100\n', encoding="utf-8")  # fmt: skip
    told = {**motion, **{f"carrier.z_{axis}": 0.0 for axis in "xyz"}}
    r = tl.Simulation(tl.load(path)).run(1.0, inputs=told)
    assert (r["rotor.w"] == 100.0).all()
    before, after = r.time < 0.4995, r.time > 0.5005
    assert (r["carrier.t_y"][before] == 0.0).all()
    # -omega x J w n = -(0, omega_z, 0) J w
    assert r["carrier.t_y"][after] == pytest.approx(-2.0 * 0.25 * 100.0, rel=1e-12)
