"""Bodies in space that carry rotors: against independent integrations of the whole 3-D body, momentum and energy, order
of convergence, forces in their joints; against MuJoCo; what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from torqueloop.core.components import (
    BodyMount,
    CardanMount,
    Clutch,
    Fixed,
    FixedMount,
    LeavingShaft,
    Mounting1D,
    MovingCarrier,
    RevoluteMount,
    RigidBody,
    Rotor1D,
    SphericalMount,
    SpringDamper,
    Torque,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    NoInertiaError,
    OverconstrainedError,
    RangeError,
    SimulationError,
    UnknownNameError,
)
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

integrate = pytest.importorskip("scipy.integrate", reason="the reference needs SciPy (extra `dev`)")
Rotation = pytest.importorskip("scipy.spatial.transform", reason="the reference needs SciPy").Rotation

#: a body with all products of inertia, and a rotor across its axes
TENSOR = np.array([[0.8, 0.1, -0.15], [0.1, 1.3, 0.2], [-0.15, 0.2, 1.7]])
SIX = {"I_11": 0.8, "I_22": 1.3, "I_33": 1.7, "I_21": 0.1, "I_31": -0.15, "I_32": 0.2}
N = np.array([1.0, 2.0, 2.0]) / 3.0
AXIS = {"n_x": 1.0, "n_y": 2.0, "n_z": 2.0}
J, M, G = 0.2, 3.0, 9.81
RATE = np.array([0.5, -0.8, 0.3])
SPIN = 5.0
#: hinge, from the mass centre
POINT = np.array([-0.2, 0.05, 0.3])
MOTOR = Sine(amplitude=2.0, f=0.7)


def gyrostat(*mounts: tuple[str, Component], order: int | str = "auto", **body: float) -> Driveline:
    """The body with its rotor and motor, and what holds it."""
    d = Driveline("gyrostat", order=order)
    rates = {f"w0_{axis}": float(w) for axis, w in zip("xyz", RATE, strict=True)}
    d.add("body", RigidBody(**{"m": M, **SIX, **rates, **body}))
    d.add("rotor", Rotor1D(J=J, w0=SPIN, **AXIS))
    d.add("motor", Torque())
    d.connect("motor.flange", "rotor.flange_a")
    frames = ["body.frame_b", "rotor.frame_a"]
    for name, mount in mounts:
        d.add(name, mount)
        frames.append(f"{name}.frame_a")
    d.connect(*frames)
    return d


def pendulum(order: int | str = "auto") -> Driveline:
    """The same on a ball joint, under gravity."""
    mount = SphericalMount(**{f"r_{axis}": float(x) for axis, x in zip("xyz", POINT, strict=True)})
    velocity = -np.cross(RATE, POINT)
    start = {f"v0_{axis}": float(v) for axis, v in zip("xyz", velocity, strict=True)}
    return gyrostat(("ball", mount), order=order, g_z=-G, **start)


def rotations(q: np.ndarray) -> Any:
    """Scalar-first quaternions (samples, 4)."""
    return Rotation.from_quat(q[:, [1, 2, 3, 0]])


class Independent:
    """The gyrostat by its momenta in space: L' = moment, p' = motor, the quaternion; Runge-Kutta of order 8 at 1e-13.

    L: angular momentum in world axes about the mass centre, or about the fixed point; p = J (w + n.omega): spin of the
    rotor in space. R^T L = I omega + J n w, so (I - J n n^T) omega = R^T L - n p.
    """

    def __init__(self, t: np.ndarray, hinged: bool) -> None:
        self.t, self.hinged = t, hinged
        arm = -POINT
        self.arm = arm if hinged else np.zeros(3)
        self.inertia = TENSOR + M * (self.arm @ self.arm * np.eye(3) - np.outer(self.arm, self.arm))
        self.inverse = np.linalg.inv(self.inertia - J * np.outer(N, N))
        start = [1.0, 0.0, 0.0, 0.0, *(self.inertia @ RATE + J * N * SPIN), J * (SPIN + N @ RATE)]
        solved = integrate.solve_ivp(
            self.rates, (0.0, float(t[-1])), start, method="DOP853", rtol=1e-13, atol=1e-14, t_eval=t
        )  # fmt: skip
        self.q, self.L, self.p = solved.y[:4].T, solved.y[4:7].T, solved.y[7]
        self.R = rotations(self.q)
        self.omega = (self.R.inv().apply(self.L) - np.outer(self.p, N)) @ self.inverse.T
        self.w = self.p / J - self.omega @ N

    def rates(self, t: float, y: np.ndarray) -> list[float]:
        q0, qv, L, p = y[0], y[1:4], y[4:7], y[7]
        R = Rotation.from_quat([*qv, q0]).as_matrix()
        omega = self.inverse @ (R.T @ L - N * p)
        moment = np.cross(R @ self.arm, [0.0, 0.0, -M * G]) if self.hinged else np.zeros(3)
        turning = 0.5 * np.array([-qv @ omega, *(q0 * omega + np.cross(qv, omega))])
        return [*turning, *moment, float(MOTOR.value(t))]

    def joint_force(self) -> np.ndarray:
        """Of the ball joint on the body, along the axes of the body: m (a - g) of the mass centre, a by differences."""
        place = self.R.apply(self.arm)
        dt = self.t[1] - self.t[0]
        a = np.full_like(place, np.nan)
        c = (-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
        n = len(place)
        a[4 : n - 4] = sum(c[k] * place[k : n - 8 + k] for k in range(9)) / dt**2
        found: np.ndarray = self.R.inv().apply(M * (a + np.array([0.0, 0.0, G])))
        return found


def shown(r: Result, name: str, letters: str = "xyz") -> np.ndarray:
    return np.stack([r[f"{name}{k}"] for k in letters], axis=1)


def errors(r: Result, exact: Independent) -> tuple[float, float, float]:
    """Of rates, quaternion, rotor speed, relative to their ranges."""
    return (
        float(np.abs(shown(r, "body.w_") - exact.omega).max() / np.abs(exact.omega).max()),
        float(np.abs(shown(r, "body.q", "0123") - exact.q).max()),
        float(np.abs(r["rotor.w"] - exact.w).max() / np.abs(exact.w).max()),
    )


@pytest.mark.parametrize("make", [gyrostat, pendulum], ids=["free", "on a ball joint"])
@pytest.mark.parametrize("order", [2, 4])
def test_gyrostat_follows_the_whole_body_with_the_order_of_the_step(make: Any, order: int) -> None:
    exact = Independent(np.arange(0.0, 2.0 + 1e-9, 8e-3), make is pendulum)
    found = []
    for h in (8e-3, 4e-3, 1e-3):
        r = Simulation(make(order=order), h=h).run(2.0, inputs={"motor.tau": MOTOR})
        every = round(8e-3 / h)
        thinned = Result(r.model, r.time[::every], r.values[::every], r.modes, r.counters)
        found.append(max(errors(thinned, exact)))
    assert found[2] < {2: 1e-5, 4: 1e-9}[order]
    assert math.log2(found[0] / found[1]) > order - 0.35


def test_free_gyrostat_keeps_momentum_and_energy() -> None:
    """No moment from outside: R (I omega + J n w) and m R v stay, energy is what it was; 60 s at order 4."""
    r = Simulation(gyrostat(order=4, v0_x=1.0, v0_y=-0.4, v0_z=0.2), h=1e-3).run(60.0)
    R = rotations(shown(r, "body.q", "0123"))
    L = R.apply(shown(r, "body.w_") @ TENSOR + J * r["rotor.w"][:, None] * N)
    v = R.apply(shown(r, "body.v_"))
    assert np.abs(L - L[0]).max() < 1e-10 * np.linalg.norm(L[0])
    assert np.abs(v - v[0]).max() < 1e-10 * np.linalg.norm(v[0])
    assert np.abs(r["energy.kinetic"] / r["energy.kinetic"][0] - 1.0).max() < 1e-10
    place = shown(r, "body.")
    np.testing.assert_allclose(place, np.outer(r.time, v[0]), atol=1e-8)
    balance = r.energy()
    assert abs(balance.residual) < 1e-10 * r["energy.kinetic"][0]


@pytest.mark.parametrize("order", [2, 4])
def test_attitude_is_part_of_the_state(order: int) -> None:
    """Saved and restored, a run goes on as it did; another attitude has another hash."""
    sim = Simulation(pendulum(order), h=1e-3)
    sim.set_input("motor.tau", MOTOR)
    for _ in range(50):
        sim.step()
    kept, there = sim.state.copy(), sim.state.to_bytes()
    for _ in range(50):
        sim.step()
    end = sim.hash()
    sim.restore(kept)
    assert sim.hash() != end
    for _ in range(50):
        sim.step()
    assert sim.hash() == end
    other = Simulation(pendulum(order), h=1e-3)
    other.set_input("motor.tau", MOTOR)
    other.state.from_bytes(there)
    assert other.output("body.q1") == pytest.approx(float(rotations(shown(Simulation(pendulum(order), h=1e-3).run(
        0.05, inputs={"motor.tau": MOTOR}), "body.q", "0123"))[-1].as_quat()[0]), abs=1e-12)  # fmt: skip


def test_force_of_a_ball_joint_is_that_of_the_whole_body() -> None:
    exact = Independent(np.arange(0.0, 1.0 + 1e-9, 1e-3), hinged=True)
    r = Simulation(pendulum(), h=1e-3).run(1.0, inputs={"motor.tau": MOTOR})
    wanted = exact.joint_force()[4:-4]
    assert np.abs(shown(r, "ball.f_")[4:-4] - wanted).max() < 1e-6 * np.abs(wanted).max()
    # books: kinetic energy is the work of motor and gravity
    balance = r.energy()
    assert abs(balance.residual) < 1e-9 * balance.turned_over


def test_against_mujoco() -> None:
    """The pendulum as two bodies of MuJoCo, the rotor on a hinge: its RK4 at a tenth of our step."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install mujoco)")
    # a disc of any thickness: the rotor's own moments across its axis belong to the body in both
    across = 0.6 * J
    rest = TENSOR - (across * np.eye(3) + (J - across) * np.outer(N, N))
    arm = -POINT
    full = " ".join(repr(float(x)) for x in (rest[0, 0], rest[1, 1], rest[2, 2], rest[0, 1], rest[0, 2], rest[1, 2]))
    turned, _ = Rotation.align_vectors([N], [[0.0, 0.0, 1.0]])
    x, y, z, w = turned.as_quat()
    place = " ".join(repr(float(v)) for v in arm)
    xml = f"""<mujoco><option timestep="1e-4" integrator="RK4" gravity="0 0 {-G}"><flag contact="disable"/></option>
      <worldbody><body><joint name="ball" type="ball"/>
        <inertial pos="{place}" mass="{M - 1e-9}" fullinertia="{full}"/>
        <body pos="{place}" quat="{w} {x} {y} {z}"><joint name="spin" type="hinge" axis="0 0 1"/>
          <inertial pos="0 0 0" mass="1e-9" diaginertia="{across} {across} {J}"/></body>
      </body></worldbody><actuator><motor joint="spin"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:3], data.qvel[3] = RATE, SPIN
    r = Simulation(pendulum(), h=1e-3).run(0.5, inputs={"motor.tau": MOTOR})
    theirs = []
    for k in range(5001):
        if k % 10 == 0:
            theirs.append([*data.qpos[:4], *data.qvel])
        # the mean of the torque over the step: RK4 holds it
        data.ctrl[0] = MOTOR.value((k + 0.5) * 1e-4)
        mujoco.mj_step(model, data)
    found = np.array(theirs)
    np.testing.assert_allclose(shown(r, "body.q", "0123"), found[:, :4], atol=2e-8)
    np.testing.assert_allclose(shown(r, "body.w_"), found[:, 4:7], atol=1e-6 * np.abs(found[:, 4:7]).max())
    np.testing.assert_allclose(r["rotor.w"], found[:, 7], rtol=1e-6)


def test_a_body_on_a_hinge_is_a_pendulum_and_bears_the_gyroscopic_moment() -> None:
    d = Driveline()
    d.add("body", RigidBody(m=2.0, I_11=0.1, I_22=0.2, I_33=0.3, g_z=-G))
    d.add("hinge", RevoluteMount(r_z=0.5, n_x=1.0))
    d.add("rotor", Rotor1D(J=0.05, n_x=0.0, n_y=1.0, w0=100.0))
    d.connect("body.frame_b", "hinge.frame_a", "rotor.frame_a")
    d.set_start("body.w_x", 1.5)
    r = Simulation(d, h=1e-3).run(2.0)
    total = 0.1 + 2.0 * 0.25
    solved = integrate.solve_ivp(
        lambda _, y: [y[1], -2.0 * G * 0.5 * math.sin(y[0]) / total], (0.0, 2.0), [0.0, 1.5], rtol=1e-12, atol=1e-12,
        t_eval=r.time,
    )  # fmt: skip
    np.testing.assert_allclose(r["body.w_x"], solved.y[1], atol=1e-8)
    np.testing.assert_allclose(2.0 * np.arctan2(r["body.q1"], r["body.q0"]), solved.y[0], atol=1e-8)
    # on the body: the change of the rotor's spin, omega x J w n = w_x J w along z; u is y, n x u is z
    np.testing.assert_allclose(r["hinge.t_v"], r["body.w_x"] * 0.05 * r["rotor.w"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r["hinge.t_u"], 0.0, atol=1e-12)


def test_engine_block_on_mounts_rolls_against_the_torque_of_its_shaft() -> None:
    """Three rubber mounts: roll angle and mount forces are those of statics; the motor takes the shaft up."""
    d = Driveline()
    d.add("block", RigidBody(m=150.0, I_11=5.0, I_22=10.0, I_33=11.0))
    d.add("shaft", Rotor1D(J=0.2))
    d.add("motor", Torque())
    d.add("mount", Mounting1D())
    d.connect("motor.flange", "shaft.flange_a")
    d.connect("motor.support", "mount.flange_b")
    frames = ["block.frame_b", "shaft.frame_a", "mount.frame_a"]
    places = {"left": (0.1, 0.3, 0.0), "right": (0.1, -0.3, 0.0), "rear": (-0.5, 0.0, 0.0)}
    stiff = {"c_x": 2e5, "c_y": 2e5, "c_z": 3e5, "d_x": 2e3, "d_y": 2e3, "d_z": 3e3}
    for name, (x, y, z) in places.items():
        d.add(name, BodyMount(r_x=x, r_y=y, r_z=z, **stiff))
        frames.append(f"{name}.frame_a")
    d.connect(*frames)
    r = Simulation(d, h=1e-3).run(4.0, inputs={"motor.tau": 200.0})
    # the rotor takes 200 Nm up: J (dw/dt + dw_x/dt) = 200, the block bears -200
    assert r["shaft.a"][-1] == pytest.approx(1000.0, rel=1e-6)
    roll = 2.0 * r["block.q1"][-1]
    assert roll == pytest.approx(-200.0 / (2.0 * 3e5 * 0.3**2), rel=1e-3)
    assert r["left.f_z"][-1] == pytest.approx(200.0 / 0.6, rel=1e-3)
    assert r["right.f_z"][-1] == pytest.approx(-200.0 / 0.6, rel=1e-3)
    assert r["block.y"][-1] == pytest.approx(0.0, abs=1e-9)


def test_a_shaft_that_leaves_the_body_brings_its_torque_from_outside() -> None:
    """Motor on the body, its shaft held in the world by a spring: at rest the mounts bear minus the motor's torque.
    Held on the body itself nothing would reach them."""
    rolls = {}
    for outside in (True, False):
        d = Driveline()
        d.add("block", RigidBody(m=150.0, I_11=5.0, I_22=10.0, I_33=11.0))
        d.add("shaft", Rotor1D(J=0.2))
        d.add("motor", Torque())
        d.add("bush", BodyMount(crot_x=4e4, drot_x=400.0, c_x=1e5, c_y=1e5, c_z=1e5, crot_y=1e5, crot_z=1e5))
        d.add("hold", SpringDamper(c=5e3, d=40.0))
        d.add("wall", Fixed())
        d.connect("motor.flange", "shaft.flange_a")
        d.connect("wall.flange", "hold.flange_b")
        frames = ["block.frame_b", "shaft.frame_a", "bush.frame_a"]
        if outside:
            d.add("out", LeavingShaft())
            d.connect("shaft.flange_b", "out.flange_a")
            d.connect("out.flange_b", "hold.flange_a")
            frames.append("out.frame_a")
        else:
            d.connect("shaft.flange_b", "hold.flange_a")
        d.connect(*frames)
        r = Simulation(d, h=1e-3).run(3.0, inputs={"motor.tau": 200.0})
        assert abs(r["shaft.a"][-1]) < 1e-3
        if outside:
            assert r["out.tau"][-1] == pytest.approx(200.0, rel=1e-5)
        balance = r.energy()
        assert abs(balance.residual) < 1e-5 * balance.turned_over
        rolls[outside] = r["block.q1"][-1] * 2.0
        assert r["bush.t_x"][-1] == pytest.approx(-4e4 * rolls[outside], rel=1e-4, abs=1e-3)
    assert rolls[True] == pytest.approx(-200.0 / 4e4, rel=1e-4) and abs(rolls[False]) < 1e-6


def test_cardan_suspension_turns_by_its_torques() -> None:
    """A body without spin, from rest: a torque in one hinge turns it about that axis alone."""
    for k, axis in enumerate("xyz"):
        d = Driveline()
        d.add("body", RigidBody(m=1.0, I_11=0.5, I_22=0.6, I_33=0.7))
        d.add("joint", CardanMount())
        d.connect("body.frame_b", "joint.frame_a")
        r = Simulation(d, h=1e-3).run(1.0, inputs={f"joint.tau_{k + 1}": 0.3})
        assert r[f"body.w_{axis}"][-1] == pytest.approx(0.3 / (0.5 + 0.1 * k), rel=1e-9)


def test_cardan_suspension_at_90_degrees_is_an_error() -> None:
    half = math.sqrt(0.5)
    d = Driveline()
    d.add("body", RigidBody(m=1.0, I_11=0.5, I_22=0.6, I_33=0.7, q0=half, q2=half))
    d.add("joint", CardanMount())
    d.connect("body.frame_b", "joint.frame_a")
    with pytest.raises(SimulationError, match="not finite"):
        Simulation(d, h=1e-3).run(0.1, inputs={"joint.tau_1": 1.0, "joint.tau_2": 0.1})


def test_clutches_on_a_body_keep_its_momentum() -> None:
    """A clutch that closes between two rotors of a free body: events and locks inside, nothing from outside."""
    d = Driveline("clutch", order=2)
    d.add("body", RigidBody(m=M, **SIX, w0_x=0.2, w0_y=0.1, w0_z=-0.3))
    d.add("fast", Rotor1D(J=0.1, w0=40.0, **AXIS))
    d.add("slow", Rotor1D(J=0.15, w0=-5.0, **AXIS))
    d.add("clutch", Clutch(fn_max=100.0, mue_pos=0.4, cgeo=0.1))
    d.connect("fast.flange_b", "clutch.flange_a")
    d.connect("clutch.flange_b", "slow.flange_a")
    d.connect("body.frame_b", "fast.frame_a", "slow.frame_a")
    r = Simulation(d, h=1e-3).run(3.0, inputs={"clutch.f_normalized": 1.0})
    assert r["clutch.mode"][-1] == 0 and r["clutch.mode"][1] != 0
    spin = 0.1 * r["fast.w"] + 0.15 * r["slow.w"]
    L = rotations(shown(r, "body.q", "0123")).apply(shown(r, "body.w_") @ TENSOR + spin[:, None] * N)
    assert np.abs(L - L[0]).max() < 1e-6 * np.linalg.norm(L[0])
    balance = r.energy()
    assert abs(balance.residual) < 1e-9 * r["energy.kinetic"][0]


def bolted(*more: tuple[str, Component]) -> Driveline:
    d = Driveline("bolted")
    d.add("body", RigidBody(m=10.0, I_11=1.0, I_22=1.0, I_33=1.0, g_z=-9.81))
    d.add("rotor", Rotor1D(J=0.2, n_x=0.0, n_z=1.0, w0=50.0))
    for name, part in (("motor", Torque()), ("mount", FixedMount(r_x=0.3)), *more):
        d.add(name, part)
    d.connect("motor.flange", "rotor.flange_a")
    d.connect("body.frame_b", "rotor.frame_a", "mount.frame_a", *(f"{name}.frame_a" for name, _ in more))
    return d


def test_a_body_that_is_bolted_bears_weight_and_torque_in_its_mount() -> None:
    r = Simulation(bolted(), h=1e-3).run(0.5, inputs={"motor.tau": 4.0})
    assert r["rotor.w"][-1] == pytest.approx(50.0 + 4.0 / 0.2 * 0.5, rel=1e-9)
    assert max(np.abs(r[f"body.{k}_{axis}"]).max() for k in "wv" for axis in "xyz") == 0.0
    # the weight acts 0.3 m beside the bolts; the motor turns the rotor against the body about z
    wanted = {"f_x": 0.0, "f_y": 0.0, "f_z": 98.1, "t_u": 0.0, "t_v": 0.3 * 98.1, "t_w": 4.0}
    for name, value in wanted.items():
        assert r[f"mount.{name}"][-1] == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("other", [FixedMount(), SphericalMount(r_y=0.2), RevoluteMount()])
def test_a_body_that_is_held_twice_is_named(other: Component) -> None:
    with pytest.raises(OverconstrainedError, match="components: mount, other"):
        Simulation(bolted(("other", other)))


def test_what_no_body_can_be_is_refused() -> None:
    with pytest.raises(RangeError, match=r"q0 .. q3 = 1, 0.1, 0, 0: a quaternion of length 1.00499"):
        RigidBody(m=1.0, I_11=1.0, I_22=1.0, I_33=1.0, q1=0.1)
    with pytest.raises(RangeError, match="principal moment -0.49"):
        RigidBody(m=1.0, I_11=1.0, I_22=1.0, I_33=1.0, I_21=1.5)
    d = gyrostat()
    d.replace("rotor", exact=False)
    with pytest.raises(CompileError, match=r"'rotor' is on 'body', a body of the model: exact = false"):
        Simulation(d)
    d = gyrostat()
    d.replace("rotor", J=2.0)
    d.add("clutch", Clutch(fn_max=1.0, mue_pos=0.1))
    d.add("wall", Fixed())
    d.connect("rotor.flange_b", "clutch.flange_a")
    d.connect("clutch.flange_b", "wall.flange")
    with pytest.raises(NoInertiaError, match=r"body: its inertia is to hold that of its rotors at rest, but rotor"):
        Simulation(d)
    d = Driveline()
    d.add("car", MovingCarrier())
    d.add("ball", SphericalMount())
    d.connect("car.frame_b", "ball.frame_a")
    with pytest.raises(CompileError, match=r"'ball' goes with a RigidBody; the motion of 'car' is given"):
        Simulation(d)


def test_a_connection_is_taken_apart_so_that_a_part_fits_in() -> None:
    d = Driveline()
    d.add("motor", Torque())
    d.add("shaft", Rotor1D(J=1.0))
    d.add("wall", Fixed())
    d.connect("motor.flange", "shaft.flange_a")
    d.connect("motor.support", "wall.flange")
    d.disconnect("motor.flange")
    assert d.connections == (("motor.support", "wall.flange"),)
    with pytest.raises(UnknownNameError, match=r"shaft\.flange_a is joined to nothing"):
        d.disconnect("shaft.flange_a")
