"""Shafts with joints between drivelines on bodies of a tree: momentum and energy, order, the shaft of the tick between
carriers of the same motion, whole turns, what is refused."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from posed_shafts import Geometry, matrix

import torqueloop
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Inertia, JointShaft, ShaftBearing, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, ConfigError, RangeError, UnknownNameError
from torqueloop.core.multibody import Body, BodyShaft, Carried, Coupled, Stepper, Tree, integrate
from torqueloop.core.signals import Sine
from torqueloop.hil.multibody.build import load_tree
from torqueloop.hil.multibody.outputs import instant, readers

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pinocchio") is None, reason="Pinocchio is not installed (pip install pin)"
)
TREES = Path(torqueloop.__file__).parent / "configs" / "trees"
NO_WEIGHT = (0.0, 0.0, 0.0)
#: two bodies that fly, 0.8 m apart
FIRST = Body("first", 30.0, (1.0, 1.4, 1.2, 0.1, 0, 0.05), joint="free")
SECOND = Body("second", 20.0, (0.8, 0.9, 1.1, 0, -0.1, 0), com=(0.05, 0, 0.02), joint="free", at=(0.8, 0, 0))
SHAFT = BodyShaft("s", "a.rotor.flange_a", "b.rotor.flange_a", (1, 0.2, -0.1), (1, -0.3, 0.15), (0.1, 0.02, 0.05),
                  (-0.15, 0.03, -0.02), c=400.0, d=0.3, theta=0.4, phase=0.3)  # fmt: skip


def rotor(name: str, body: str, axis: Any, J: float, w0: float) -> Carried:
    line = Driveline(name)
    line.add("motor", Torque())
    line.add("rotor", Inertia(J=J, w0=w0, phi0=0.0))
    line.connect("motor.flange", "rotor.flange_a")
    motor = Sine(amplitude=4.0 if name == "a" else 0.0, f=2.0)
    return Carried(name, compile_driveline(line), body, axis, {"motor.tau": motor})


def flying(shaft: BodyShaft = SHAFT, bodies: tuple[Body, Body] = (FIRST, SECOND)) -> Coupled:
    lines = [rotor("a", "first", shaft.n_a, 0.02, 30.0), rotor("b", "second", shaft.n_b, 0.05, 30.0)]
    return Coupled(Tree(bodies, NO_WEIGHT), lines, shafts=[shaft])


#: velocities of both bodies at the start
V = np.array([0.0, 0.05, -0.02, 0.3, -0.4, 0.5, 0.03, 0.0, 0.04, -0.5, 0.3, 0.2])


def test_momentum_and_energy_are_kept_at_order_4() -> None:
    """Two bodies in space with a shaft between them: nothing from outside but the motor's power."""
    books, speeds = [], []
    for h, kept in ((4e-3, 2e-7), (2e-3, 1e-8), (1e-3, 1e-9)):
        run = integrate(flying(), 0.12, h, v=V)
        assert np.abs(run.momentum - run.momentum[0]).max() < kept
        books.append(run.books)
        speeds.append(run.u[-1])
    assert 3.6 < math.log2(books[0] / books[1]) and 3.6 < math.log2(books[1] / books[2]) and books[2] < 1e-5
    assert math.log2(np.abs(speeds[0] - speeds[1]).max() / np.abs(speeds[1] - speeds[2]).max()) > 3.6
    assert abs(float(np.ptp(run.twists))) > 1e-3 and np.abs(run.shaft_torques).max() > 3.0


def test_the_twist_is_that_of_the_crosses() -> None:
    run = integrate(flying(), 0.12, 2e-3, v=V)
    line = JointShaft(c=1.0, theta=SHAFT.theta, phase=SHAFT.phase)
    bearings = [ShaftBearing(n_x=n[0], n_y=n[1], n_z=n[2], r_x=r[0], r_y=r[1], r_z=r[2])
                for n, r in ((SHAFT.n_a, SHAFT.at_a), (SHAFT.n_b, SHAFT.at_b))]  # fmt: skip
    rest = [np.array([1.0, 0, 0, 0, x, 0, 0]) for x in (0.0, 0.8)]
    for k in range(0, len(run.t), 20):
        # the library: place, then quaternion x, y, z, w; the place against that of the joint
        parts = (run.q[k][:7], 0.0), (run.q[k][7:], 0.8)
        poses = [np.concatenate([q[[6, 3, 4, 5]], q[:3] + [x, 0, 0]]) for q, x in parts]
        geometry = Geometry(line, lambda t, p=poses: p[0], lambda t, p=poses: p[1], (rest[0], rest[1]), bearings)
        found = geometry.twist(0.0, float(run.z[k][0]), float(run.z[k][1]))
        assert abs(math.remainder(found - float(run.twists[k][0]), math.pi)) < 1e-12
        # force and moment of the joint on a body that flies are none but gravity's: all its shaft does is in its motion
        couples, force, x = geometry.forces(0.0, float(run.z[k][0]), float(run.z[k][1]), float(run.shaft_torques[k][0]))
        assert np.abs(run.wrenches[k]).max() < 1e-8
        R, omega, rate = matrix(poses[1]), run.v[k][9:12], run.dv[k][9:12]
        com = np.array(SECOND.com)
        a = run.dv[k][6:9] + np.cross(omega, run.v[k][6:9])
        total = SECOND.mass * (a + np.cross(rate, com) + np.cross(omega, np.cross(omega, com)))
        np.testing.assert_allclose(R @ total, -force, atol=1e-9 * (1.0 + np.abs(force).max()))
        assert couples[0] @ couples[0] > 0.0 and x[0][0] < x[1][0]


def test_a_body_that_turns_thrice_about_the_shaft_turns_it_thrice() -> None:
    """Psi is followed over turns, through a saved state as well."""
    hinge = replace(FIRST, joint="revolute", axis=(1, 0, 0))
    held = replace(SECOND, joint="revolute", axis=(0, 1, 0), mass=1e3, inertia=(1e4, 1e4, 1e4, 0, 0, 0))
    shaft = replace(SHAFT, n_a=(1, 0, 0), n_b=(1, 0, 0), at_a=(0, 0, 0), at_b=(0, 0, 0.05), c=4000.0, d=5.0)
    system = flying(shaft, (hinge, held))
    rate = 10.0 * math.pi
    speeds = np.array([rate, 0.0])
    stepper = Stepper(system, v=speeds, u=np.array([0.0, rate]))
    for k in range(6):
        stepper.advance(0.1 * k, 0.1, 20)
        if k == 3:
            kept = stepper.save()
            stepper = Stepper(flying(shaft, (hinge, held)), v=speeds, u=np.array([0.0, rate]))
            stepper.load(kept)
    s = stepper.state
    assert s.turned[0] == pytest.approx(s.q[0], abs=0.01) and s.turned[0] > 17.0
    assert abs(float(system.shaft_twists(s)[0])) < 0.02


@pytest.mark.parametrize(("change", "kind", "text"), [
    ({"flange_a": "c.rotor.flange_a"}, UnknownNameError, "shaft 's': there is no driveline 'c'"),
    ({"flange_b": "b.rotor.flange_c"}, UnknownNameError, "shaft 's': driveline 'b' has no joined flange"),
    ({"flange_b": "a.rotor.flange_b"}, CompileError, "both of its ends are on one body"),
    ({"n_b": (0, 1, 0)}, RangeError, "n_b = .*bent by .*shaft.s"),
    ({"at_a": (0.8, 0, 0), "at_b": (0, 0, 0)}, CompileError, "both of its joints are at one place"),
    ({"joint_a": "ball"}, RangeError, "joint_a = 'ball'.*universal"),
    ({"c": -1.0}, RangeError, "c = -1"),
])  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        flying(replace(SHAFT, **change))


def test_the_ready_tree_closes_its_books_and_tells_its_shaft() -> None:
    """Gearbox on mounts, axle on springs: the start of configs/trees/mounted_drive_shaft.toml."""
    built = load_tree(TREES / "mounted_drive_shaft.toml")
    system = built.system
    run = integrate(system, 0.04, 1e-3, q=built.q, v=built.v)
    assert run.books < 1e-3 and np.abs(run.shaft_torques).max() > 20.0
    stepper = Stepper(system, q=built.q, v=built.v)
    stepper.advance(0.0, 0.04, 40)
    now = instant(system, 0.04, stepper.state, stepper.solution(0.04), stepper.modes)
    told = readers(system)
    assert told["drive.tau"][0] == "Nm" and told["drive.tau"][1](now) == pytest.approx(run.shaft_torques[-1][0])
    assert told["drive.twist"][0] == "rad" and told["drive.twist"][1](now) == pytest.approx(run.twists[-1][0])
    # the torque of the shaft winds up the axle's bearing and rolls the gearbox: both bodies move
    places = dict(zip(("car", "gearbox", "bounce", "axle"), run.q[-1], strict=True))
    assert abs(places["gearbox"]) > 1e-4 and abs(places["axle"]) > 1e-7 and places["bounce"] > 1e-4


@pytest.mark.parametrize(("old", "new", "words"), [
    ('flange_b = "pinion.hub.flange_a"', 'flange_b = "pinion.huub.flange_a"', ["shaft 'drive'", "pinion"]),
    ("c_Nm_per_rad = 9e3", "c_Nm_per_rad = -9e3", ["[shaft.drive]", "c_Nm_per_rad"]),
    ("at_b_m = [-0.2, 0.0, 0.0]", "n_b = [0.0, 1.0, 0.0]", ["shaft.drive", "n_b", "80 deg"]),
])  # fmt: skip
def test_errors_name_the_file(old: str, new: str, words: list[str], tmp_path: Path) -> None:
    text = (TREES / "mounted_drive_shaft.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "tree.toml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_tree(tmp_path / "tree.toml")
    assert all(word in str(error.value) for word in ["tree.toml", *words]), str(error.value)
