"""Trees of bodies with drivelines on them: against full trees (Pinocchio with SciPy, MuJoCo), books, named errors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import ElastoBacklash, Inertia, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    InitialValueError,
    MissingLibraryError,
    OverconstrainedError,
    RangeError,
    UnknownNameError,
)
from torqueloop.core.multibody import WORLD, Body, Carried, Coupled, PointHeld, Row, Tree, integrate
from torqueloop.core.signals import Sine, Step

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "figures" / "body_mounted_actuator.py"
with_pinocchio = pytest.mark.skipif(
    importlib.util.find_spec("pinocchio") is None, reason="Pinocchio is not installed (pip install pin)"
)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("body_mounted_actuator", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


# against others


@pytest.mark.proof
@with_pinocchio
@pytest.mark.parametrize("name", ["PARALLEL", "SKEW"])
def test_the_actuator_is_the_full_tree_of_bodies_at_order_4(example: ModuleType, name: str) -> None:
    case = getattr(example, name)
    coarse_run, coarse = example.ours(case, 2e-3, 0.4)
    fine_run, fine = example.ours(case, 5e-4, 0.4)
    exact = example.pinocchio_3d(case, fine_run.t)
    assert max(example.errors(fine, exact)) < 1e-6
    thinned = example.Found(exact.places[::4], exact.speeds[::4], exact.wrenches[::4])
    for rough, close in zip(example.errors(coarse, thinned), example.errors(fine, exact), strict=True):
        assert 3.7 < np.log2(rough / close) / 2 < 4.6
    # energy: the books close at order 4 too; rows: rounding
    assert fine_run.books < 1e-8 * fine_run.work.max()
    assert coarse_run.books > 100 * fine_run.books
    assert max(fine_run.drift + fine_run.residual) < 1e-12


@pytest.mark.proof
@with_pinocchio
def test_the_actuator_against_mujoco(example: ModuleType) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install mujoco)")
    run, found = example.ours(example.SKEW, 5e-4, 0.2)
    soft = example.mujoco_3d(example.SKEW, run.t, 1e-4)
    late = round(example.SETTLED / 5e-4)
    assert max(example.errors(found.after(late), soft.after(late))) < 1e-6


# momentum, energy, forces of rows

HUB = Body("hub", 5.0, (0.3, 0.2, 0.25, 0.01, -0.02, 0.03), com=(0.02, 0.01, 0.0), joint="free")
BOOM = Body(
    "boom", 2.0, (0.02, 0.1, 0.09, 0.0, 0.01, 0.0), com=(0.3, 0.0, 0.1), parent="hub", axis=(0, 1, 0), at=(0.1, 0, 0.2)
)


def two_rotors(example: ModuleType, body: str = "hub") -> Carried:
    axes = {"rotor": (0.0, 0.6, 0.8), "pinion": (1.0, 0.0, 0.0)}
    return Carried("drive", example.driveline(), body, axes, {"motor.tau": example.torque()})


@with_pinocchio
def test_free_bodies_keep_their_momentum(example: ModuleType) -> None:
    """Rotors about two axes of the hub, a torque between hub and boom: momentum kept, energy in the books."""
    system = Coupled(
        Tree((HUB, BOOM), (0, 0, 0)), [two_rotors(example)], joint_torques={"boom": Sine(amplitude=0.5, f=2.0)}
    )
    v = np.array([0.1, -0.2, 0.3, 1.0, 0.7, -0.4, 2.0])
    runs = [integrate(system, 0.5, h, v=v, u=np.array([30.0, 30.0])) for h in (4e-3, 2e-3)]
    lost = [np.abs(run.momentum - run.momentum[0]).max() for run in runs]
    assert lost[1] < 1e-7 and 12 < lost[0] / lost[1] < 40
    assert runs[1].books < 1e-6 < 1e-2 < np.abs(runs[1].work).max()
    assert np.ptp(runs[1].u, axis=0).min() > 1.0, "the rotors have been driven"


@pytest.mark.proof
@with_pinocchio
def test_a_held_point_is_a_ball_joint(example: ModuleType) -> None:
    """A free body whose point is held by rows, and the same on a ball joint: motion, force of rows and joint."""
    point = np.array([0.1, -0.05, 0.3])
    free = Coupled(Tree((HUB,)), [two_rotors(example)], [PointHeld("ball", "hub", tuple(point))])
    com = tuple(np.array(HUB.com) - point)
    hub = Body("hub", HUB.mass, HUB.inertia, com=com, joint="spherical", at=tuple(point))
    ball = Coupled(Tree((hub,)), [two_rotors(example)])
    omega = np.array([1.0, 0.7, -0.4])
    u = np.array([30.0, 35.0])
    held = integrate(free, 0.4, 1e-3, v=np.concatenate([np.cross(point, omega), omega]), u=u)
    tree = integrate(ball, 0.4, 1e-3, v=omega, u=u)
    assert np.abs(held.q[:, 3:] - tree.q).max() < 1e-9
    turns = [free.built.pin.Quaternion(q[3:]).matrix() for q in held.q]
    along = np.array([turn.T @ f for turn, f in zip(turns, held.multipliers, strict=True)])
    assert np.abs(along - tree.wrenches[:, 0, :3]).max() < 1e-6 * np.abs(along).max()
    assert np.abs(held.wrenches).max() < 1e-9, "the joint of a free body carries nothing"


@with_pinocchio
def test_a_row_that_depends_on_the_joints_does_not_drift(example: ModuleType) -> None:
    """The tip of the boom held, the hub free behind it: its force changes the momentum; drift of order 4, none left."""
    tip = (0.6, 0.0, 0.0)
    system = Coupled(Tree((HUB, BOOM)), [two_rotors(example)], [PointHeld("tip", "boom", tip)])
    at_tip = np.array([0.1, 0.0, 0.2]) + tip
    hub, boom = np.array([1.0, 0.7, -0.4]), np.array([0.0, 2.0, 0.0])
    v = np.concatenate([-np.cross(hub, at_tip) - np.cross(boom, tip), hub, boom[1:2]])
    runs = [integrate(system, 0.4, h, v=v, u=np.array([30.0, 30.0])) for h in (4e-3, 2e-3)]
    for k in (0, 1):
        assert 14 < runs[0].drift[k] / runs[1].drift[k] < 70, "4 or more, one order more in a single step"
    assert runs[0].drift[0] > 1e-11 and max(runs[1].drift) < 1e-6
    assert max(runs[1].residual) < 1e-13
    assert runs[0].books > 10 * runs[1].books and runs[1].books < 1e-6
    weight = np.array([0, 0, -9.81]) * (HUB.mass + BOOM.mass)
    simpson = np.ones(201)
    simpson[1:-1:2], simpson[2:-1:2] = 4, 2
    impulse = (simpson[:, None] * (runs[1].multipliers + weight)).sum(axis=0) * 2e-3 / 3
    assert np.abs(runs[1].momentum[-1, :3] - runs[1].momentum[0, :3] - impulse).max() < 1e-6


@with_pinocchio
def test_a_row_over_angular_velocities_is_one_over_the_joint(example: ModuleType) -> None:
    """Arm less column about the joint's axis: the same motion and multiplier; its moment goes past the joint then."""
    arm, column = (0.0, -example.RATIO, 0.0), (0.0, example.RATIO, 0.0)
    by_joint = example.system(example.SKEW)
    row = Row("gear", {"drive.pinion.flange_a": 1.0}, rates={"arm": arm, "column": column})
    by_rates = Coupled(by_joint.built.tree, by_joint.carried, [row])
    a, b = (integrate(s, 0.1, 1e-3, speeds={"column": 1.5}) for s in (by_joint, by_rates))
    assert np.abs(a.v - b.v).max() < 1e-11
    assert np.abs(a.multipliers - b.multipliers).max() < 1e-9
    past = a.wrenches - b.wrenches
    assert np.abs(past[:, 1, 4] + example.RATIO * a.multipliers[:, 0]).max() < 1e-9
    assert np.abs(b.wrenches[:, 1, 4]).max() < 1e-9, "a hinge without friction"
    # across the joint's axis, where the row changes with the motion: a step leaves it by its own error only
    skew = Row("lock", {"drive.pinion.flange_a": 1.0}, rates={"arm": (0.9, -6.0, 1.2), "column": (0.0, 1.0, 0.4)})
    start = 1.5 * np.array([1.2 + 0.4, 1.2 + 0.4])
    c = integrate(Coupled(by_joint.built.tree, by_joint.carried, [skew]), 0.1, 1e-3, speeds={"column": 1.5}, u=-start)
    assert c.drift[1] < 1e-8 and c.books < 1e-6


@with_pinocchio
def test_torques_that_jump_inside_a_step(example: ModuleType) -> None:
    """A flywheel and, on it, a rotor: torques from 0.0123 s and 0.05 s on; steps of 10 ms. Closed form."""
    wheel = Body("wheel", 1.0, (1.0, 1.0, 1.5, 0, 0, 0))
    line = Driveline()
    line.add("motor", Torque())
    line.add("rotor", Inertia(J=0.5))
    line.connect("motor.flange", "rotor.flange_a")
    motor, brake = Step(height=3.0, startTime=0.0123), Step(height=-2.0, startTime=0.05)
    drive = Carried("drive", compile_driveline(line), "wheel", (0, 0, 1), {"motor.tau": motor})
    run = integrate(Coupled(Tree((wheel,)), [drive], joint_torques={"wheel": brake}), 0.1, 0.01)
    # rotor: 0.5 (dw/dt + z) = 3; both: 1.5 z + 0.5 dw/dt = -2, the inertia at rest is the wheel's
    spin, turn = 3.0 * (0.1 - 0.0123), -2.0 * 0.05
    assert run.v[-1, 0] == pytest.approx((turn - spin) / (1.5 - 0.5), abs=1e-13)
    assert run.u[-1, 0] == pytest.approx(spin / 0.5 - run.v[-1, 0], abs=1e-13)
    assert run.books < 1e-13


# bad input


@with_pinocchio
def test_names_that_do_not_exist(example: ModuleType) -> None:
    with pytest.raises(UnknownNameError, match=r"row 'gear': there is no body or joint 'amr'; there are column, arm"):
        example.system(example.SKEW, {"amr": -12.0})
    arm = example.loaded_arm(example.SKEW)
    with pytest.raises(UnknownNameError, match=r"body 'arm': its parent 'column' is no body before it"):
        Coupled(Tree((arm, example.COLUMN)))
    tree = Tree((example.COLUMN, arm))
    drive = two_rotors(example, "arm")
    with pytest.raises(UnknownNameError, match=r"row 'g': driveline 'drive' has no joined flange 'pinon.flange_a'"):
        Coupled(tree, [drive], [Row("g", {"drive.pinon.flange_a": 1.0})])
    with pytest.raises(UnknownNameError, match=r"row 'g': there is no driveline 'drvie'"):
        Coupled(tree, [drive], [Row("g", {"drvie.pinion.flange_a": 1.0})])
    with pytest.raises(UnknownNameError, match=r"driveline 'drive': there is no body or joint 'leg'"):
        Coupled(tree, [two_rotors(example, "leg")])
    with pytest.raises(UnknownNameError, match=r"axes name 'rotr'"):
        Carried("drive", example.driveline(), "arm", {"rotr": (1, 0, 0)}, {"motor.tau": example.torque()})
    with pytest.raises(CompileError, match=r"no signal for its inputs motor.tau"):
        Carried("drive", example.driveline(), "arm", (1, 0, 0))


@with_pinocchio
def test_rows_that_over_determine(example: ModuleType) -> None:
    system = example.system(example.SKEW)
    tree, carried = system.built.tree, system.carried
    gears = [
        Row(name, {"drive.pinion.flange_a": k}, {"arm": -k * example.RATIO}) for name, k in (("one", 1.0), ("two", 2.0))
    ]
    with pytest.raises(OverconstrainedError, match=r"row 'two' over-determines: at the start it follows from one"):
        integrate(Coupled(tree, carried, gears), 0.1, 1e-3)
    with pytest.raises(OverconstrainedError, match=r"row 'foot.f_.' over-determines"):
        integrate(Coupled(tree, carried, [PointHeld("foot", "column", (0.1, 0, 0))]), 0.1, 1e-3)


@with_pinocchio
def test_starts_and_values_that_cannot_be(example: ModuleType) -> None:
    system = example.system(example.SKEW)
    with pytest.raises(InitialValueError, match=r"row 'gear': its speeds at the start add up to -12"):
        integrate(system, 0.1, 1e-3, speeds={"arm": 1.0})
    # speeds of 12 000 rad/s are rounded to 2e-12 of it, in a file to fewer digits: 1e-9 of the fastest may remain
    fast = np.full(system.nu, example.RATIO * 1000.0)
    integrate(system, 1e-6, 1e-6, speeds={"arm": 1000.0}, u=fast + 1e-6)
    with pytest.raises(InitialValueError, match=r"add up to 0.0001"):
        integrate(system, 1e-6, 1e-6, speeds={"arm": 1000.0}, u=fast + 1e-4)
    with pytest.raises(RangeError, match="step"):
        integrate(system, 0.1, 0.0)
    with pytest.raises(RangeError, match="length is not 1"):
        integrate(Coupled(Tree((HUB,))), 0.1, 1e-3, q=np.array([0, 0, 0, 0, 0, 0, 1.1]))
    with pytest.raises(RangeError, match="several degrees of freedom"):
        Coupled(Tree((HUB,)), rows=[Row("r", joints={"hub": 1.0})])
    with pytest.raises(RangeError, match="principal inertias"):
        Coupled(Tree((Body("b", 1.0, (1.0, 1.0, 3.0, 0, 0, 0)),)))
    with pytest.raises(RangeError, match="no direction"):
        Coupled(Tree((Body("b", 1.0, (1, 1, 1, 0, 0, 0), axis=(0, 0, 0), parent=WORLD),)))


def test_elements_that_a_tree_cannot_carry() -> None:
    line = Driveline()
    line.add("a", Inertia(J=1.0))
    line.add("clutch", ElastoBacklash(c=100.0, d=1.0, b=0.1))
    line.add("b", Inertia(J=1.0))
    line.connect("a.flange_b", "clutch.flange_a")
    line.connect("clutch.flange_b", "b.flange_a")
    model = compile_driveline(line)
    with pytest.raises(CompileError, match=r"driveline 'd' has 1 elements of kind 'con'"):
        Carried("d", model, "body", (1, 0, 0), {})


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'torqueloop\[multibody\]'"):
        Coupled(Tree((HUB,)))
