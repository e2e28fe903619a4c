"""Directions of shafts and the bend of their joints: from bearings on a carrier, moments on it, what is refused; the
examples, against closed forms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torqueloop
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    ConstantVelocityJoint,
    Inertia,
    JointShaft,
    MountedDriveline,
    MovingCarrier,
    ShaftBearing,
    SpringDamper,
    Torque,
    UniversalJoint,
    World,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, NoReferenceError, OverconstrainedError, RangeError
from torqueloop.core.signals import Ramp
from torqueloop.core.simulate.offline import Simulation

EXAMPLES = Path(torqueloop.__file__).parent / "configs" / "examples"
#: two shafts bent by 60 deg, in any way
A, B = {"n_x": 1.0}, {"n_x": 0.5, "n_y": -0.6, "n_z": math.sqrt(0.75 - 0.36)}


def directed(joint: Component, **bearings: ShaftBearing) -> Driveline:
    """Inertias a, b with a joint between, bearings called a_.. and b_.. on their shafts, on one carrier."""
    d = Driveline("directed")
    parts: dict[str, Any] = {"t": Torque(), "a": Inertia(J=0.02), "u": joint, "b": Inertia(J=0.05), "body": World()}
    for name, part in {**parts, **bearings}.items():
        d.add(name, part)
    d.connect("t.flange", "a.flange_a", *(f"{n}.flange" for n in bearings if n.startswith("a_")))
    d.connect("a.flange_b", "u.flange_a")
    d.connect("u.flange_b", "b.flange_a", *(f"{n}.flange" for n in bearings if n.startswith("b_")))
    if bearings:
        d.connect("body.frame_b", *(f"{n}.frame_a" for n in bearings))
    return d


def test_a_joint_is_bent_as_its_bearings_say_and_its_moments_act_on_their_carrier() -> None:
    """The carrier gets tau_a n_a - tau_b n_b, the torques the shafts leave in it."""
    sim = Simulation(directed(UniversalJoint(c=1e5, d=5.0), a_1=ShaftBearing(**A), b_1=ShaftBearing(**B)), h=1e-3)
    assert sim.model.parts.joints.shafts[0].bend[0] == pytest.approx(math.radians(60.0))
    run = sim.run(0.2, {"t.tau": Ramp(height=5.0, duration=0.05)})
    on_a = np.asarray(run["u.mean"]) + np.asarray(run["u.ripple_a"])
    on_b = -np.asarray(run["u.mean"]) + np.asarray(run["u.ripple_b"])
    assert np.abs(on_a).max() > 1.0
    np.testing.assert_allclose(on_a, -np.asarray(run["u.tau"]) * np.asarray(run["u.ratio"]), rtol=1e-9)
    np.testing.assert_allclose(on_b, run["u.tau"], rtol=1e-9, atol=1e-9)
    for axis, n_a, n_b in (("x", 1.0, 0.5), ("y", 0.0, B["n_y"]), ("z", 0.0, B["n_z"])):
        np.testing.assert_allclose(run[f"body.t_{axis}"], -(on_a * n_a + on_b * n_b), atol=1e-9)


def test_the_geometry_of_a_joint_shaft_is_that_of_its_bearings() -> None:
    """Bends, planes, length; planes as the angle that turns the normal of the first into that of the second."""
    end = {"r_x": 0.3, "r_y": 0.1, "r_z": -0.2}
    d = directed(JointShaft(c=1e5), a_1=ShaftBearing(**A), b_1=ShaftBearing(n_x=0.8, n_y=0.6, **end))
    joint = compile_driveline(d).parts.joints.shafts[0]
    way = np.array([0.3, 0.1, -0.2])
    n_a, n_b, n = np.array([1.0, 0, 0]), np.array([0.8, 0.6, 0]), way / np.linalg.norm(way)
    assert joint.length == pytest.approx(np.linalg.norm(way))
    assert joint.bend == pytest.approx([math.acos(n_a @ n), math.acos(n @ n_b)])
    first, second = np.cross(n_a, n), np.cross(n, n_b)
    cos, sin = math.cos(joint.planes), math.sin(joint.planes)
    turned = cos * first + sin * np.cross(n, first)
    np.testing.assert_allclose(turned / np.linalg.norm(turned), second / np.linalg.norm(second), atol=1e-12)


def test_a_joint_of_constant_velocity_leaves_the_difference_of_its_shafts_in_the_carrier() -> None:
    d = directed(ConstantVelocityJoint(), a_1=ShaftBearing(**A), b_1=ShaftBearing(**B))
    run = Simulation(d, h=1e-3).run(0.05, {"t.tau": 7.0})
    tau = float(run["u.tau"][20])
    assert tau == pytest.approx(7.0 * 0.05 / 0.07) and run["u.m_p"][20] == pytest.approx(tau * math.tan(math.pi / 6))
    found = [run[f"body.t_{axis}"][20] for axis in "xyz"]
    assert found == pytest.approx([tau - 0.5 * tau, -B["n_y"] * tau, -B["n_z"] * tau])


SIDE = {"n_x": 0.0, "n_y": 1.0}
JOINT = UniversalJoint(c=1.0)
REFUSED: dict[str, tuple[Driveline, type[Exception], str]] = {
    "no reference": (directed(JOINT, a_1=ShaftBearing()), NoReferenceError,
                     "the shaft at u.flange_b has no direction: join a ShaftBearing"),
    "two references": (directed(JOINT, a_1=ShaftBearing(), a_2=ShaftBearing(), b_1=ShaftBearing()),
                       OverconstrainedError, "the direction of one shaft is given more than once, by a_1, a_2"),
    "bend given twice": (directed(UniversalJoint(c=1.0, beta=0.1), a_1=ShaftBearing(), b_1=ShaftBearing()),
                         OverconstrainedError, "the bend of 'u' is given twice: by its own value and by the bearings"),
    "joint at 90 deg": (directed(JOINT, a_1=ShaftBearing(), b_1=ShaftBearing(**SIDE)), CompileError,
                        "'u' is bent by 90 deg from a_1 to b_1: a joint at 90 deg passes no torque"),
    "shaft of no length": (directed(JointShaft(c=1.0), a_1=ShaftBearing(), b_1=ShaftBearing()), CompileError,
                           "the shaft 'u' has no direction: a_1 and b_1 are at one place"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_under_and_over_determined_references_are_refused_by_name(name: str) -> None:
    d, kind, problem = REFUSED[name]
    with pytest.raises(kind, match=problem.replace("(", r"\(")):
        compile_driveline(d)


def test_bearings_on_carriers_that_move_against_each_other_are_refused() -> None:
    d = directed(JOINT, a_1=ShaftBearing())
    d.add("other", MovingCarrier())
    d.add("b_1", ShaftBearing())
    d.connect("b.flange_b", "b_1.flange")
    d.connect("other.frame_b", "b_1.frame_a")
    with pytest.raises(CompileError, match=r"body - a_1 - u - b_1 - other: .* move against each other"):
        compile_driveline(d)


def chain(*bends: float, closed: tuple[float, float] | None = None) -> Driveline:
    """Shafts with a joint between each and the next; `closed`: directions of the first and the last on a carrier."""
    d = Driveline("chain")
    for k in range(len(bends) + 1):
        d.add(f"J{k}", Inertia(J=0.1))
    for k, bend in enumerate(bends):
        d.add(f"u{k}", UniversalJoint(c=1e3, beta=math.radians(bend)))
        d.connect(f"J{k}.flange_b", f"u{k}.flange_a")
        d.connect(f"u{k}.flange_b", f"J{k + 1}.flange_a")
    if closed is not None:
        d.add("body", World())
        for name, shaft, way in (("first", "J0.flange_a", closed[0]), ("last", f"J{len(bends)}.flange_b", closed[1])):
            d.add(name, ShaftBearing(n_x=math.cos(math.radians(way)), n_y=math.sin(math.radians(way))))
            d.connect(shaft, f"{name}.flange")
        d.connect("body.frame_b", "first.frame_a", "last.frame_a")
    return d


def test_a_loop_of_joints_that_does_not_close_is_named() -> None:
    compile_driveline(chain(20.0, 30.0, closed=(0.0, 40.0)))
    with pytest.raises(
        OverconstrainedError, match=r"loop of joints do not close: first, last - (u0 - u1|u1 - u0); 60 deg"
    ):
        compile_driveline(chain(20.0, 30.0, closed=(0.0, 60.0)))
    with pytest.raises(OverconstrainedError, match=r"u1 - .*first, last.*; 70 deg at the first, 35 deg"):
        compile_driveline(chain(20.0, 70.0, closed=(0.0, 15.0)))
    ring = chain(10.0, 10.0)
    ring.add("u2", UniversalJoint(c=1e3, beta=math.radians(25.0)))
    ring.connect("J0.flange_a", "u2.flange_a")
    ring.connect("J2.flange_b", "u2.flange_b")
    with pytest.raises(OverconstrainedError, match=r"u2 - (u0 - u1|u1 - u0); 25 deg at the first, 20 deg"):
        compile_driveline(ring)


def test_a_driveline_mounted_along_one_axis_has_no_bent_shafts() -> None:
    d = directed(UniversalJoint(c=1.0, beta=0.2))
    d.add("mount", MountedDriveline(parts="a b u"))
    d.connect("body.frame_b", "mount.frame_a")
    with pytest.raises(CompileError, match="the shafts of 'u' turn about different axes"):
        compile_driveline(d)


def test_values_that_follow_from_bearings_are_not_given_beside_them() -> None:
    with pytest.raises(RangeError, match="length follows from the bearings"):
        JointShaft(c=1.0, length=1.0)


def hooke(x: float, beta: float) -> float:
    y = math.atan2(math.sin(x), math.cos(x) * math.cos(beta))
    return y + 2.0 * math.pi * round((x - y) / (2.0 * math.pi))


def test_the_steering_column_leads_and_lags_as_its_joints_say() -> None:
    """Rack against joints of constant velocity over two turns, against the closed form of both joints: to 1 um."""
    path, turn = EXAMPLES / "steering_column.toml", {"hand.w_ref": math.pi / 2}
    constant = {f"components.shaft.joint_{k}": "constant_velocity" for k in "ab"}
    sims = [Simulation(torqueloop.load(path, values), h=1e-3) for values in ({}, constant)]
    runs = [sim.run(8.0, turn) for sim in sims]
    joint = sims[0].model.parts.joints.shafts[0]
    turned, plain = (np.asarray(run["rack.s"]) for run in runs)
    angles = [k for k in range(0, 8001, 250)]

    def pinion(phi: float) -> float:
        # the other way through the second joint: tan x = tan y cos beta
        y = hooke(phi, joint.bend[0]) - joint.planes
        return hooke(y + math.pi / 2, joint.bend[1]) - math.pi / 2

    ahead = np.array([pinion(math.pi / 2 * k * 1e-3) - pinion(0.0) - math.pi / 2 * k * 1e-3 for k in angles])
    # the shaft twists by up to 3 mrad under the load of the tyres, nearly alike in both
    twist = np.asarray(runs[0]["shaft.twist"]) - np.asarray(runs[1]["shaft.twist"])
    np.testing.assert_allclose((turned - plain)[angles], 0.008 * (ahead - twist[angles]), atol=2e-5)
    assert np.ptp(ahead) > math.radians(10.0)


def test_forks_across_shake_what_forks_in_line_leave_in_peace() -> None:
    ripple = {}
    for phase in (0, 90):
        d = torqueloop.load(EXAMPLES / "propeller_shaft.toml", {"components.shaft.phase_deg": phase})
        run = Simulation(d, h=1e-3).run(0.5, {"gearbox.tau": Ramp(height=300.0, duration=0.2)})
        ratio = (np.asarray(run["shaft.ratio_a"]) * np.asarray(run["shaft.ratio_b"]))[300:]
        ripple[phase] = float(np.ptp(ratio))
    cos = math.cos(math.atan2(0.157, 1.5))
    assert ripple[90] == pytest.approx(1.0 / cos**2 - cos**2, rel=0.02) and ripple[0] < 5e-4


def test_the_bevel_gear_leaves_the_torques_of_both_shafts_in_its_housing() -> None:
    """At constant speed 10 Nm go in about x and 20 Nm out about z; the load is outside, the motor inside."""
    d = torqueloop.load(EXAMPLES / "bevel_gear.toml")
    run = Simulation(d, h=1e-3).run(8.0, {"motor.tau": 10.0, **{f"housing.w_{k}": 0.0 for k in "xyz"}})
    assert [run[f"housing.t_{k}"][-1] for k in "xyz"] == pytest.approx([0.0, 0.0, -20.0], abs=1e-6)
    assert run["first.w"][-1] == pytest.approx(10.0 * 2 / 0.5 * 2, rel=1e-6)


def test_a_spring_begins_another_shaft() -> None:
    d = directed(JOINT, a_1=ShaftBearing())
    d.add("s", SpringDamper(c=10.0, d=1.0))
    d.add("b_1", ShaftBearing())
    d.add("c", Inertia(J=1.0))
    d.connect("b.flange_b", "s.flange_a")
    d.connect("s.flange_b", "c.flange_a", "b_1.flange")
    d.connect("body.frame_b", "b_1.frame_a")
    with pytest.raises(NoReferenceError, match=r"u\.flange_b has no direction"):
        compile_driveline(d)
