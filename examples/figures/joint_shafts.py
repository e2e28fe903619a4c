"""Shafts with joints in numbers and pictures (docs/joint_shafts.md).

    python examples/figures/joint_shafts.py table            accuracy over stiffness, bend angle and step
    python examples/figures/joint_shafts.py figures [--out DIR]
                                                    steering_column.png, propeller_shaft.png, bevel_gear.png
    python examples/figures/joint_shafts.py cost         our shaft with two joints against MuJoCo's bodies, in one run

Drivelines: configs/examples/steering_column.toml, propeller_shaft.toml, bevel_gear.toml (what is assumed stands there).
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import torqueloop
from torqueloop.core.components import Damper, Fixed, Inertia, JointShaft, Torque, UniversalJoint
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Ramp, Sine
from torqueloop.core.simulate.offline import Simulation

EXAMPLES = Path(torqueloop.__file__).parent / "configs" / "examples"
Array = NDArray[np.float64]
#: of the accuracy table: inertias, kg.m2, speed at the start, rad/s
JA, JB, W0 = 0.02, 0.05, 40.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "figures", "cost"))
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder (default figures)")
    args = parser.parse_args()
    if args.what == "figures":
        args.out.mkdir(parents=True, exist_ok=True)
        for draw in (steering_column, propeller_shaft, bevel_gear):
            print(draw(args.out))
        return 0
    return table() if args.what == "table" else cost()


# --- accuracy -----------------------------------------------------------------------------------------------------
def one_joint(beta: float, c: float, order: int) -> Driveline:
    """A torque on an inertia, a universal joint with the shaft behind it, an inertia; damping a tenth of critical."""
    d = Driveline("one_joint", order=order)
    damping = 0.2 * math.sqrt(c * JA * JB / (JA + JB))
    parts = {"t": Torque(), "a": Inertia(J=JA, phi0=0.0, w0=W0), "u": UniversalJoint(c=c, d=damping, beta=beta),
             "b": Inertia(J=JB, phi0=0.0, w0=W0 / math.cos(beta))}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for pair in (("t.flange", "a.flange_a"), ("a.flange_b", "u.flange_a"), ("u.flange_b", "b.flange_a")):
        d.connect(*pair)
    return d


def rigid(beta: float, t: Array) -> Array:
    """Speed of a with a rigid joint: (J_a + J_b g^2) phi'' + J_b g g' phi'^2 = torque, DOP853 at 1e-12."""
    from scipy.integrate import solve_ivp

    cos, sin2 = math.cos(beta), math.sin(beta) ** 2

    def rates(now: float, y: Array) -> list[float]:
        s, c = math.sin(y[0]), math.cos(y[0])
        size = 1.0 - sin2 * c * c
        g, dg = cos / size, -2.0 * cos * sin2 * s * c / size**2
        torque = 3.0 * math.sin(2.0 * math.pi * 1.3 * now)
        return [y[1], (torque - JB * g * dg * y[1] ** 2) / (JA + JB * g * g)]

    found = solve_ivp(rates, (0.0, t[-1]), [0.0, W0], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=t)
    return np.asarray(found.y[1])


def table() -> int:
    """Largest error of the speed over 0.5 s against the rigid joint, of its ripple; and what the books miss."""
    print("| bend | range of the speed | c, Nm/rad | omega h | order 2 | order 4 | energy, order 4 |")
    print("|---|---|---|---|---|---|---|")
    for degrees in (5, 15, 30):
        beta = math.radians(degrees)
        reference: Array | None = None
        for c in (1e4, 1e5, 1e6, 1e7, 1e8):
            found, books = [], 0.0
            for order in (2, 4):
                sim = Simulation(one_joint(beta, c, order), h=1e-3)
                start = sim.state.energies["kinetic"]
                run = sim.run(0.5, {"t.tau": Sine(amplitude=3.0, f=1.3)})
                if reference is None:
                    reference = rigid(beta, np.asarray(run.time))
                found.append(float(np.abs(run["a.w"] - reference).max() / np.ptp(reference)))
                e = sim.state.energies
                books = e["kinetic"] + e["potential"] + e["damper"].sum() - e["torque"].sum() - start
                books /= start
            assert reference is not None
            resolved = 1e-3 * math.sqrt(c * (JA + JB) / (JA * JB))
            print(f"| {degrees}° | {np.ptp(reference):.3g} rad/s | {c:.0e} | {resolved:.1f} "
                  f"| {found[0]:.1e} | {found[1]:.1e} | {books:+.0e} |")  # fmt: skip
    return 0


# --- pictures -----------------------------------------------------------------------------------------------------
def plotter() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=110)
    plotter().close(figure)
    return path


CONSTANT = {"components.shaft.joint_a": "constant_velocity", "components.shaft.joint_b": "constant_velocity"}


def steering_column(out: Path) -> Path:
    """Two turns of the wheel in 8 s: difference in rack position to joints of constant velocity, for three phases."""
    figure, axes = plotter().subplots(2, 1, figsize=(8, 6.5), sharex=True, layout="constrained")
    turn = {"hand.w_ref": Ramp(height=0.0, duration=1.0, offset=math.pi / 2)}
    path = EXAMPLES / "steering_column.toml"
    plain = Simulation(torqueloop.load(path, CONSTANT), h=1e-3).run(8.0, turn)
    for phase in (0.0, 30.0, 90.0):
        sim = Simulation(torqueloop.load(path, {"components.shaft.phase_deg": phase}), h=1e-3)
        run = sim.run(8.0, turn)
        angle = np.degrees(run["wheel.phi"])
        ahead = 1e3 * (np.asarray(run["rack.s"]) - np.asarray(plain["rack.s"]))
        ratio = np.asarray(run["shaft.ratio_a"]) * np.asarray(run["shaft.ratio_b"])
        axes[0].plot(angle, ahead, label=f"forks {phase:g}° apart")
        axes[1].plot(angle, ratio, label=f"forks {phase:g}° apart")
        if phase == 0.0:
            joint = sim.model.parts.joints.shafts[0]
            print(f"bend {math.degrees(joint.bend[0]):.2f}, {math.degrees(joint.bend[1]):.2f} deg, planes "
                  f"{math.degrees(joint.planes):.2f} deg, {joint.length * 1e3:.1f} mm")  # fmt: skip
        print(f"phase {phase:g} deg: rack {ahead.min():+.3f} .. {ahead.max():+.3f} mm, ratio {ratio.min():.4f} .. "
              f"{ratio.max():.4f}")  # fmt: skip
    axes[0].set_ylabel("rack against constant velocity [mm]")
    axes[1].set_ylabel("speed of the pinion over the wheel's")
    axes[1].set_xlabel("steering wheel [deg]")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.suptitle("Steering column with two universal joints")
    return save(figure, out / "steering_column.png")


def propeller_shaft(out: Path) -> Path:
    """The same start with forks in line and across: speed of the axle, torque of the shaft, moment on its bearing."""
    figure, axes = plotter().subplots(3, 1, figsize=(8, 8), sharex=True, layout="constrained")
    for phase, label in ((0, "forks in line"), (90, "forks across")):
        drive = torqueloop.load(EXAMPLES / "propeller_shaft.toml", {"components.shaft.phase_deg": phase})
        run = Simulation(drive, h=1e-3).run(0.6, {"gearbox.tau": Ramp(height=300.0, duration=0.2, startTime=0.05)})
        late = np.asarray(run.time) > 0.4
        moment = np.hypot(run["shaft.ma_n"], run["shaft.ma_p"])
        speed = np.asarray(run["axle.w"]) - np.asarray(run["car.w"])
        force = np.hypot(run["shaft.f_n"], run["shaft.f_p"])
        axes[0].plot(run.time, speed, label=label)
        axes[1].plot(run.time, run["shaft.tau"], label=label)
        axes[2].plot(run.time, moment, label=label)
        print(f"{label}: axle {np.ptp(speed[late]):.3f} rad/s, torque {run['shaft.tau'][late].min():.1f} .. "
              f"{run['shaft.tau'][late].max():.1f} Nm, moment on the bearing up to {moment[late].max():.1f} Nm, "
              f"force at the joints up to {force[late].max():.1f} N")  # fmt: skip
    for axis, text in zip(axes, ("axle - car [rad/s]", "shaft [Nm]", "moment on the front bearing [Nm]"), strict=True):
        axis.set_ylabel(text)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    axes[-1].set_xlabel("time [s]")
    figure.suptitle("Propeller shaft, 6° at each joint")
    return save(figure, out / "propeller_shaft.png")


def bevel_gear(out: Path) -> Path:
    """10 Nm at rest, then the housing yaws: moments on it."""
    run = Simulation(torqueloop.load(EXAMPLES / "bevel_gear.toml"), h=1e-3).run(
        3.0, {"motor.tau": Ramp(height=10.0, duration=0.2), "housing.w_x": 0.0, "housing.w_z": 0.0,
              "housing.w_y": Ramp(height=1.0, duration=0.5, startTime=1.5)},
    )  # fmt: skip
    figure, axes = plotter().subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for name in ("first.w", "second.w"):
        axes[0].plot(run.time, run[name], label=name)
    for axis in "xyz":
        axes[1].plot(run.time, run[f"housing.t_{axis}"], label=f"t_{axis}")
    for k in (1400, 3000):
        found = ", ".join(f"t_{axis} {run[f'housing.t_{axis}'][k]:+.3f}" for axis in "xyz")
        print(f"{run.time[k]:g} s: first {run['first.w'][k]:.3f} rad/s, {found} Nm")
    axes[0].set_ylabel("speed [rad/s]")
    axes[1].set_ylabel("moment on the housing [Nm]")
    axes[1].set_xlabel("time [s]")
    for part in axes:
        part.grid(alpha=0.3)
        part.legend(fontsize="small")
    figure.suptitle("Bevel gear, 10 Nm; from 1.5 s on its housing yaws up to 1 rad/s")
    return save(figure, out / "bevel_gear.png")


# --- cost ---------------------------------------------------------------------------------------------------------
#: of the comparison: bends in one plane, length m, torque Nm, damping of the load Nm.s/rad
BENDS, LENGTH, TORQUE, LOAD = (math.radians(20.0), math.radians(12.0)), 0.6, 3.0, 0.1
#: s in which the torque rises
RISE = 0.05


def two_joints(order: int = 4) -> Driveline:
    """The shaft of the comparison: from rest under a torque, against a damper."""
    d = Driveline("two_joints", order=order)
    parts = {"t": Torque(), "a": Inertia(J=JA, phi0=0.0, w0=0.0), "b": Inertia(J=JB, phi0=0.0, w0=0.0),
             "u": JointShaft(c=1e6, d=20.0, beta_a=BENDS[0], beta_b=BENDS[1], length=LENGTH), "load": Damper(d=LOAD),
             "wall": Fixed()}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for pair in (("t.flange", "a.flange_a"), ("a.flange_b", "u.flange_a"), ("u.flange_b", "b.flange_a"),
                 ("b.flange_b", "load.flange_a"), ("load.flange_b", "wall.flange")):  # fmt: skip
        d.connect(*pair)
    return d


def rigid_shaft(t: Array) -> Array:
    """Speed of b with rigid joints: y_b(phi_b) = y_a(phi_a), phi_b = f(phi_a), r = f':
    (J_a + J_b r^2) phi'' + J_b r r' phi'^2 = torque - load r^2 phi', DOP853 at 1e-12."""
    from scipy.integrate import solve_ivp

    def ratio(x: float) -> tuple[float, float]:
        # forks in line, one plane: fork b of the shaft is square to its fork a, so joint b sees y + 90 deg from outside
        g, dg, at = 1.0, 0.0, x
        for beta, turned in ((BENDS[0], 0.0), (BENDS[1], 0.5 * math.pi)):
            s, c = math.sin(at + turned), math.cos(at + turned)
            cos, sin2 = math.cos(beta), math.sin(beta) ** 2
            size = 1.0 - sin2 * c * c
            own, slope = cos / size, -2.0 * cos * sin2 * s * c / size**2
            g, dg = own * g, slope * g * g + own * dg
            at += math.atan((1.0 - cos) * s * c / (cos * c * c + s * s))
        return g, dg

    def rates(now: float, y: Array) -> list[float]:
        r, dr = ratio(y[0])
        torque = TORQUE * min(1.0, now / RISE)
        return [y[1], (torque - LOAD * r * r * y[1] - JB * r * dr * y[1] ** 2) / (JA + JB * r * r)]

    found = solve_ivp(rates, (0.0, t[-1]), [0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=t, max_step=RISE)
    return np.array([w * ratio(x)[0] for x, w in found.y.T])


def text(v: Array) -> str:
    return " ".join(f"{x:.17g}" for x in v)


def mujoco_model(h: float) -> Any:
    """Bodies on hinges, R-U-P-U-R: each pin a hinge, the shaft a slide, the bearing of b closes the loop."""
    mujoco = importlib.import_module("mujoco")
    n_s = np.array([1.0, 0.0, 0.0])
    n_a = np.array([math.cos(BENDS[0]), math.sin(BENDS[0]), 0.0])
    n_b = np.array([math.cos(BENDS[1]), -math.sin(BENDS[1]), 0.0])
    normal = np.cross(n_a, n_s) / np.linalg.norm(np.cross(n_a, n_s))
    pin_a = np.cross(n_a, normal)  # theta = 0: in the plane of the joint
    pin_s = np.cross(n_s, pin_a) / np.linalg.norm(np.cross(n_s, pin_a))
    pin_b = np.cross(n_b, pin_s)  # forks of the shaft in line
    end = LENGTH * n_s
    tiny = 'mass="0.01" diaginertia="1e-6 1e-6 1e-6" pos="0 0 0"'
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{h}" gravity="0 0 0" integrator="RK4"
      tolerance="1e-12" iterations="50"/><worldbody>
      <body name="a"><inertial mass="1" diaginertia="{JA} {JA} {JA}" pos="0 0 0"/>
       <joint name="a" type="hinge" axis="{text(n_a)}"/>
       <body name="s"><inertial {tiny}/>
        <joint type="hinge" axis="{text(pin_a)}"/><joint type="hinge" axis="{text(pin_s)}"/>
        <body name="tube" pos="{text(end)}"><inertial {tiny}/><joint type="slide" axis="{text(n_s)}"/>
         <body name="b"><inertial mass="1" diaginertia="{JB} {JB} {JB}" pos="0 0 0"/>
          <joint type="hinge" axis="{text(pin_s)}"/><joint type="hinge" axis="{text(pin_b)}"/>
      </body></body></body></body></worldbody>
      <equality>
       <connect body1="b" anchor="0 0 0" solref="{2.0 * h} 1" solimp="0.9999 0.9999 0.001"/>
       <connect body1="b" anchor="{text(0.2 * n_b)}" solref="{2.0 * h} 1" solimp="0.9999 0.9999 0.001"/>
      </equality></mujoco>"""), n_a, n_b  # fmt: skip


def run_mujoco(h: float, duration: float) -> tuple[Array, Array, float]:
    """Speeds of a and b every 10 ms, and the processor time."""
    mujoco = importlib.import_module("mujoco")
    model, n_a, n_b = mujoco_model(h)
    data = mujoco.MjData(model)
    b = model.body("b").id
    every, ticks = round(0.01 / h), round(duration / 0.01)
    speeds = np.zeros((2, ticks + 1))
    spent = 0.0
    for k in range(1, ticks + 1):
        start = time.process_time()
        for _ in range(every):
            # cvel is that of the last evaluation: the load lags by one stage
            turning = data.cvel[b, :3]
            data.qfrc_applied[0] = TORQUE * min(1.0, data.time / RISE)
            data.xfrc_applied[b, 3:] = -LOAD * (turning @ n_b) * n_b
            mujoco.mj_step(model, data)
        spent += time.process_time() - start
        mujoco.mj_forward(model, data)
        speeds[:, k] = data.qvel[0], data.cvel[b, :3] @ n_b
    return speeds[0], speeds[1], spent


def cost(duration: float = 2.0) -> int:
    """Processor time per simulated second at the same step, and at the same accuracy, against a rigid shaft."""
    if importlib.util.find_spec("mujoco") is None:
        print("skipped: MuJoCo is not installed (pip install mujoco)")
        return 0
    reference = rigid_shaft(np.linspace(0.0, duration, round(duration / 0.01) + 1))
    motor = Ramp(height=TORQUE, duration=RISE)
    print(f"speed of b at the end {reference[-1]:.6f} rad/s; errors are the largest from 0.1 s on")
    ours = {}
    for h in (1e-3, 5e-3):
        sim = Simulation(two_joints(), h=h)
        sim.set_input("t.tau", motor)
        start = time.process_time()
        run = sim.run(duration)
        ours[h] = (time.process_time() - start) / duration
        error = np.abs(np.asarray(run["b.w"])[:: round(0.01 / h)] - reference)[10:].max()
        print(f"ours, {h * 1e3:g} ms: {ours[h] * 1e3:.2f} ms a second, error {error:.1e} rad/s")
    for h in (1e-3, 5e-4, 1e-4, 2e-5):
        _, found, spent = run_mujoco(h, duration)
        error = np.abs(found - reference)[10:].max()
        spent /= duration
        print(f"MuJoCo, {h * 1e3:g} ms: {spent * 1e3:.2f} ms a second, error {error:.1e} rad/s, "
              f"{spent / ours[1e-3]:.0f} times ours at 1 ms")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
