"""Body-mounted actuator against the same system as a full tree of bodies: printed comparison of docs/moving_bodies.md.

After Schweiger, Otter 2003, section 5.2, with a second joint below it: a column turns about the vertical, an arm on it
about a horizontal axis. Motor, shaft and gear sit on the arm, the gear's last wheel belongs to the column: the drive
turns the arm against it. The paper prints no values; all of them are assumed. The references know nothing of 1-D
drivelines: motor and pinion are bodies on hinges of the arm, once in Pinocchio with SciPy, once in MuJoCo with its own
integrator and its own gear constraint.

Usage: python examples/figures/body_mounted_actuator.py
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components.compliances import SpringDamper
from torqueloop.core.components.shafts import Inertia
from torqueloop.core.components.sources import Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.multibody import Body, Carried, Coupled, Row, Trajectory, Tree, integrate
from torqueloop.core.signals import Sine

ROTOR, PINION, SPRING, DAMPER = 0.004, 0.001, 40.0, 0.02
#: pinion over arm against the column
RATIO = 12.0
AMPLITUDE, FREQUENCY = 3.0, 0.8
YAW, GRAVITY = 1.5, 9.81
#: of motor and of pinion: mass, inertia across the axis, place of the mass centre on the arm
MASS, ACROSS = 0.5, 0.003
PLACE = np.array([0.25, 0.05, 0.02])
END = 1.0
#: s, in which MuJoCo's soft constraint takes up the force of the gear
SETTLED = 0.01

COLUMN = Body("column", 8.0, (0.2, 0.2, 0.1, 0.0, 0.0, 0.0), com=(0.02, 0.0, 0.2), axis=(0, 0, 1))
ARM = Body("arm", 3.0, (0.03, 0.12, 0.13, 0.004, -0.003, 0.002), com=(0.3, 0.01, -0.02), parent="column",
           axis=(0, 1, 0), at=(0.0, 0.0, 0.6))  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Axis of motor and pinion on the arm: along the joint's as in the paper, or across it with a bevel gear."""

    name: str
    axis: tuple[float, float, float]


PARALLEL = Case("parallel", (0.0, 1.0, 0.0))
SKEW = Case("skew", (0.6, 0.48, 0.64))
CASES = (PARALLEL, SKEW)


@dataclass(frozen=True, eq=False)
class Found:
    """At the times asked for: angles and speeds of column, arm, motor, pinion; joint forces (column, arm; 6 each)."""

    places: np.ndarray
    speeds: np.ndarray
    wrenches: np.ndarray

    def after(self, first: int) -> Found:
        """Without the times before this one."""
        return Found(self.places[first:], self.speeds[first:], self.wrenches[first:])


def torque() -> Sine:
    """Of the motor, Nm."""
    return Sine(amplitude=AMPLITUDE, f=FREQUENCY)


def driveline() -> CompiledModel:
    """Motor, rotor, elastic shaft, pinion."""
    line = Driveline("drive")
    line.add("motor", Torque())
    line.add("rotor", Inertia(J=ROTOR))
    line.add("shaft", SpringDamper(c=SPRING, d=DAMPER))
    line.add("pinion", Inertia(J=PINION))
    line.connect("motor.flange", "rotor.flange_a")
    line.connect("rotor.flange_b", "shaft.flange_a")
    line.connect("shaft.flange_b", "pinion.flange_a")
    return compile_driveline(line)


def across(axis: np.ndarray, along: float) -> np.ndarray:
    """Inertia of a rotor about its mass centre."""
    return ACROSS * (np.eye(3) - np.outer(axis, axis)) + along * np.outer(axis, axis)


def loaded_arm(case: Case) -> Body:
    """The arm with motor and pinion at rest on it."""
    axis = np.array(case.axis)
    mass = ARM.mass + 2 * MASS
    com = (ARM.mass * np.array(ARM.com) + 2 * MASS * PLACE) / mass

    def shifted(inertia: np.ndarray, m: float, place: np.ndarray) -> np.ndarray:
        r = place - com
        return inertia + m * (r @ r * np.eye(3) - np.outer(r, r))

    whole = shifted(ARM.matrix(), ARM.mass, np.array(ARM.com))
    whole = whole + shifted(across(axis, ROTOR) + across(axis, PINION), 2 * MASS, PLACE)
    xx, yy, zz = np.diag(whole)
    return replace(ARM, mass=mass, com=tuple(com), inertia=(xx, yy, zz, whole[0, 1], whole[0, 2], whole[1, 2]))


def system(case: Case, gear: dict[str, float] | None = None) -> Coupled:
    """Tree, drive and gear; `gear`: coefficients of the row over joints, for tests."""
    tree = Tree((COLUMN, loaded_arm(case)), (0.0, 0.0, -GRAVITY))
    carried = Carried("drive", driveline(), "arm", case.axis, {"motor.tau": torque()})
    row = Row("gear", {"drive.pinion.flange_a": 1.0}, gear or {"arm": -RATIO})
    return Coupled(tree, [carried], [row])


def ours(case: Case, step: float, end: float = END) -> tuple[Trajectory, Found]:
    """The 1-D drive on the tree of two bodies."""
    run = integrate(system(case), end, step, speeds={"column": YAW})
    pinion, rotor = driveline().coordinates.index("pinion"), driveline().coordinates.index("rotor")
    order = [rotor, pinion]
    return run, Found(np.hstack([run.q, run.z[:, order]]), np.hstack([run.v, run.u[:, order]]), run.wrenches)


def pinocchio_3d(case: Case, times: np.ndarray, tolerance: float = 1e-10) -> Found:
    """Four bodies on hinges, the gear taken out by w = ratio v; DOP853."""
    import pinocchio as pin
    from scipy.integrate import solve_ivp

    axis = np.array(case.axis)
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])

    def hinge(parent: int, n: Any, at: Any, name: str, inertia: Any) -> int:
        place = pin.SE3(np.eye(3), np.array(at, float))
        k = model.addJoint(parent, pin.JointModelRevoluteUnaligned(np.array(n, float)), place, name)
        model.appendBodyToJoint(k, inertia, pin.SE3.Identity())
        return int(k)

    column = hinge(0, COLUMN.axis, COLUMN.at, "column", pin.Inertia(COLUMN.mass, np.array(COLUMN.com), COLUMN.matrix()))
    arm = hinge(column, ARM.axis, ARM.at, "arm", pin.Inertia(ARM.mass, np.array(ARM.com), ARM.matrix()))
    hinge(arm, axis, PLACE, "motor", pin.Inertia(MASS, np.zeros(3), across(axis, ROTOR)))
    hinge(arm, axis, PLACE, "pinion", pin.Inertia(MASS, np.zeros(3), across(axis, PINION)))
    data = model.createData()
    free = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, RATIO, 0]], float)

    def accelerations(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        twist = SPRING * (q[2] - q[3]) + DAMPER * (v[2] - v[3])
        drive = np.array([0, 0, AMPLITUDE * np.sin(2 * np.pi * FREQUENCY * t) - twist, twist])
        mass = np.array(pin.crba(model, data, q))
        mass = np.triu(mass) + np.triu(mass, 1).T
        force = free.T @ (drive - pin.nonLinearEffects(model, data, q, v))
        return free @ np.linalg.solve(free.T @ mass @ free, force)

    def rates(t: float, x: np.ndarray) -> np.ndarray:
        v = free @ x[3:]
        return np.concatenate([x[3:], accelerations(t, free @ x[:3], v)[:3]])

    start = np.array([0, 0, 0, YAW, 0, 0], float)
    done = solve_ivp(rates, (0, times[-1]), start, "DOP853", times, rtol=tolerance, atol=tolerance * 1e-2)
    wrenches = []
    for t, x in zip(times, done.y.T, strict=True):
        q, v = free @ x[:3], free @ x[3:]
        pin.rnea(model, data, q, v, accelerations(t, q, v))
        wrenches.append([data.f[column].vector.copy(), data.f[arm].vector.copy()])
    return Found(done.y[:3].T @ free.T, done.y[3:].T @ free.T, np.array(wrenches))


def mujoco_3d(case: Case, times: np.ndarray, step: float = 1e-4) -> Found:
    """Four bodies on hinges; MuJoCo's Runge-Kutta, its tendon as the shaft, its (soft) joint constraint as the gear."""
    import mujoco

    axis = np.array(case.axis)

    def inertial(mass: float, com: Any, matrix: np.ndarray) -> str:
        full = [matrix[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        return f'<inertial mass="{mass}" pos="{text(com)}" fullinertia="{text(full)}"/>'

    def text(values: Any) -> str:
        return " ".join(repr(float(x)) for x in values)

    def wheel(name: str, along: float) -> str:
        return (f'<body name="{name}" pos="{text(PLACE)}"><joint name="{name}" axis="{text(axis)}"/>'
                f"{inertial(MASS, np.zeros(3), across(axis, along))}</body>")  # fmt: skip

    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{step}" integrator="RK4"
      gravity="0 0 {-GRAVITY}" tolerance="0" iterations="200"><flag contact="disable"/></option>
      <compiler balanceinertia="false" angle="radian"/>
      <worldbody><body name="column"><joint name="column" axis="0 0 1"/>
        {inertial(COLUMN.mass, COLUMN.com, COLUMN.matrix())}
        <body name="arm" pos="{text(ARM.at)}"><joint name="arm" axis="0 1 0"/>
          {inertial(ARM.mass, ARM.com, ARM.matrix())}
          {wheel("motor", ROTOR)}{wheel("pinion", PINION)}</body></body></worldbody>
      <tendon><fixed stiffness="{SPRING}" damping="{DAMPER}" springlength="0"><joint joint="motor" coef="1"/>
        <joint joint="pinion" coef="-1"/></fixed></tendon>
      <equality><joint joint1="pinion" joint2="arm" polycoef="0 {RATIO} 0 0 0" solref="{2 * step} 1"
        solimp="0.9999 0.9999 1"/></equality></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0] = YAW
    places, speeds, wrenches = [], [], []
    control = mujoco.set_mjcb_control
    control(lambda _, d: d.qfrc_applied.__setitem__(2, AMPLITUDE * np.sin(2 * np.pi * FREQUENCY * d.time)))
    try:
        for t in times:
            while data.time < t - step / 2:
                mujoco.mj_step(model, data)
            mujoco.mj_forward(model, data)
            mujoco.mj_rnePostConstraint(model, data)
            places.append(data.qpos.copy())
            speeds.append(data.qvel.copy())
            wrenches.append([_wrench(data, body) for body in (1, 2)])
    finally:
        control(None)
    return Found(np.array(places), np.array(speeds), np.array(wrenches))


def _wrench(data: Any, body: int) -> np.ndarray:
    """MuJoCo's interaction force (at the tree's mass centre, world axes) at the body's joint, along its axes."""
    turn = data.xmat[body].reshape(3, 3)
    moment, force = data.cfrc_int[body][:3], data.cfrc_int[body][3:]
    # taken from the centre of the tree to the joint
    moment = moment + np.cross(data.subtree_com[1] - data.xpos[body], force)
    return np.concatenate([turn.T @ force, turn.T @ moment])


def errors(found: Found, reference: Found) -> tuple[float, float, float, float]:
    """Of angles, speeds, joint forces, joint moments: each signal over its own largest value in the reference."""

    def each(a: np.ndarray, b: np.ndarray) -> float:
        scale = np.abs(b).max(axis=0)
        return float((np.abs(a - b).max(axis=0) / np.maximum(scale, 1e-2 * scale.max())).max())

    a, b = found.wrenches, reference.wrenches
    flat = len(a), -1
    return (each(found.places, reference.places), each(found.speeds, reference.speeds),
            each(a[:, :, :3].reshape(flat), b[:, :, :3].reshape(flat)),
            each(a[:, :, 3:].reshape(flat), b[:, :, 3:].reshape(flat)))  # fmt: skip


def show(what: str, values: tuple[float, ...]) -> None:
    """One line of the table."""
    print(f"{what:36}", "".join(f"{value:10.1e}" for value in values))


def main() -> None:
    """Print the comparison."""
    print(f"{'largest relative errors of':36}     angles    speeds    forces   moments")
    for case in CASES:
        for step in (2e-3, 1e-3, 5e-4):
            run, found = ours(case, step)
            exact = pinocchio_3d(case, run.t)
            show(f"{case.name:8} {step * 1e3:4g} ms, Pinocchio + SciPy", errors(found, exact))
            print(f"    energy books {run.books:.1e} J of {np.abs(run.work).max():.3g} J put in; rows: drift "
                  f"of a step {run.drift[0]:.0e} rad, {run.drift[1]:.0e} rad/s, "
                  f"left {run.residual[0]:.0e}, {run.residual[1]:.0e}")  # fmt: skip
        late = round(SETTLED / step)
        show(f"{case.name:8} {step * 1e3:4g} ms, MuJoCo", errors(found.after(late), mujoco_3d(case, run.t).after(late)))


if __name__ == "__main__":
    main()
