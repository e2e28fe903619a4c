"""A drive shaft between two moving bodies: the case of Andreasson, Gaefvert 2008, 4.4 (docs/joint_shafts.md).

    python examples/figures/drive_shaft.py table          error over stiffness against rigid vectors, and against MuJoCo
    python examples/figures/drive_shaft.py figure [--out DIR]  drive_shaft.png: fig. 9

Driveline: configs/examples/drive_shaft.toml (what is assumed stands there); the motion of both bodies is assumed here.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import torqueloop
from torqueloop.core.components.carriers import POSE
from torqueloop.core.signals import Function
from torqueloop.core.simulate.offline import Simulation

EXAMPLE = Path(torqueloop.__file__).parent / "configs" / "examples" / "drive_shaft.toml"
Array = NDArray[np.float64]
#: of the example
W, J, LOAD = 60.0, 0.05, 0.5
N = (np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.1, -0.05]) / math.sqrt(1.0125))
PLACE = (np.zeros(3), np.array([0.7, 0.05, -0.06]))
#: of each body: amplitudes of x, y, z [m], yaw, pitch, roll [rad] (turned by in this order), and their frequencies [Hz]
AMPLITUDE = {
    "gearbox": np.array([0.004, 0.01, 0.008, 0.02, 0.03, 0.1]),
    "axle": np.array([0.02, 0.015, 0.09, 0.06, 0.12, 0.08]),
}
FREQUENCY = {
    "gearbox": np.array([3.0, 2.3, 2.9, 1.7, 2.1, 3.1]),
    "axle": np.array([1.2, 1.9, 1.5, 1.1, 1.7, 1.3]),
}


def wave(name: str, t: float, order: int = 0) -> Array:
    """Coordinates of a body, A (sin wt - 1/2 sin 2wt): from rest without acceleration; or a derivative."""
    w = 2.0 * math.pi * FREQUENCY[name]
    quarter = 0.5 * math.pi * order
    return np.asarray(AMPLITUDE[name] * (w**order * np.sin(w * t + quarter)
                                         - 0.5 * (2.0 * w) ** order * np.sin(2.0 * w * t + quarter)))  # fmt: skip


def axis_turn(axis: int, angle: float) -> Array:
    """Matrix of a turn about x, y or z."""
    c, s = math.cos(angle), math.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def attitude(name: str, t: float) -> tuple[Array, Array]:
    """Matrix of a body to the axes of the world, and the place of its origin."""
    x = wave(name, t)
    R = axis_turn(2, x[3]) @ axis_turn(1, x[4]) @ axis_turn(0, x[5])
    return R, PLACE[name == "axle"] + x[:3]


@lru_cache(maxsize=64)
def pose(name: str, t: float) -> Array:
    """Quaternion, scalar first, and place."""
    x = wave(name, t)
    q = np.array([1.0, 0.0, 0.0, 0.0])
    for angle, axis in ((x[3], 3), (x[4], 2), (x[5], 1)):
        w, v = q[0], q[1:]
        turn = np.zeros(3)
        turn[axis - 1] = math.sin(0.5 * angle)
        c = math.cos(0.5 * angle)
        q = np.array([w * c - v @ turn, *(w * turn + c * v + np.cross(v, turn))])
    return np.concatenate([q, PLACE[name == "axle"] + x[:3]])


@lru_cache(maxsize=64)
def rates(name: str, t: float) -> Array:
    """Angular velocity along the axes of the body."""
    x, v = wave(name, t), wave(name, t, 1)
    (sp, cp), (sr, cr) = ((math.sin(a), math.cos(a)) for a in (x[4], x[5]))
    return np.array([v[5] - v[3] * sp, v[4] * cr + v[3] * sr * cp, -v[4] * sr + v[3] * cr * cp])


@lru_cache(maxsize=64)
def accelerations(name: str, t: float, e: float = 1e-4) -> Array:
    """Their rates, by differences of order 4."""
    one, two = (rates(name, t + k * e) - rates(name, t - k * e) for k in (1.0, 2.0))
    return np.asarray((8.0 * one - two) / (12.0 * e))


def motion() -> dict[str, Function]:
    """All inputs of the example."""
    found = {}
    for name in AMPLITUDE:
        for k, short in enumerate(POSE):
            found[f"{name}.{short}"] = Function(lambda t, name=name, k=k: float(pose(name, t)[k]))
        for k, axis in enumerate("xyz"):
            found[f"{name}.w_{axis}"] = Function(lambda t, name=name, k=k: float(rates(name, t)[k]))
            found[f"{name}.z_{axis}"] = Function(lambda t, name=name, k=k: float(accelerations(name, t)[k]))
    return found


# --- rigid shaft: R-U-P-U-R by vectors ----------------------------------------------------------------------------
def pins() -> tuple[Array, Array]:
    """Pins of both outer forks at phi = 0 along the axes of their bodies: forks of the shaft in line, fork a in the
    plane of its joint."""
    s = PLACE[1] - PLACE[0]
    s /= math.sqrt(s @ s)
    normal = np.cross(N[0], s)
    pin_a = np.cross(N[0], normal / np.linalg.norm(normal))
    pin_b = np.cross(np.cross(s, pin_a), N[1])
    return pin_a, pin_b / np.linalg.norm(pin_b)


PINS = pins()


def turned(n: Array, angle: float, v: Array) -> Array:
    """v, square to n, turned about it."""
    return np.asarray(math.cos(angle) * v + math.sin(angle) * np.cross(n, v))


def second_angle(t: float, phi_a: float) -> float:
    """phi_b with a rigid shaft: the cross b is square to the fork of the shaft and to its own shaft."""
    (Ra, xa), (Rb, xb) = attitude("gearbox", t), attitude("axle", t)
    s = (xb - xa) / math.sqrt((xb - xa) @ (xb - xa))
    fork = np.cross(s, Ra @ turned(N[0], phi_a, PINS[0]))
    pin = Rb.T @ np.cross(fork, Rb @ N[1])
    found = math.atan2(np.cross(PINS[1], pin) @ N[1], PINS[1] @ pin)
    # both directions of the pin are one
    return phi_a + math.remainder(found - phi_a, math.pi)


def slope(f: Any, at: float, e: float) -> float:
    """Derivative by differences of order 6."""
    return float(sum(g * (f(at + k * e) - f(at - k * e)) for g, k in ((0.75, 1.0), (-0.15, 2.0), (1 / 60, 3.0))) / e)


def rigid(t: Array) -> tuple[Array, Array]:
    """Speed of the second end and drive torque with a rigid shaft, J (dw/dt + n.z) + LOAD w = its torque."""

    def angle(now: float) -> float:
        return second_angle(now, W * now)

    w = np.array([slope(angle, now, 4e-4) for now in t])
    # second derivative of the angle, by differences of order 6
    e = 1e-3
    weights = ((1.5, 1.0), (-0.15, 2.0), (1 / 90, 3.0))
    dw = np.array([sum(g * (angle(now + k * e) - 2.0 * angle(now) + angle(now - k * e)) for g, k in weights) / e**2
                   for now in t])  # fmt: skip
    ratio = np.array([slope(lambda p, now=now: second_angle(now, p), W * now, 0.02) for now in t])
    nz = np.array([N[1] @ accelerations("axle", now) for now in t])
    return w, (J * (dw + nz) + LOAD * w) * ratio


# --- ours and MuJoCo ----------------------------------------------------------------------------------------------
def ours(c: float, h: float, end: float, order: int = 4) -> Any:
    """The example with the stiffness c and a tenth of critical damping, from the speed of the rigid shaft."""
    changes = {"components.shaft.c_Nm_per_rad": c, "components.shaft.d_Nms_per_rad": 0.2 * math.sqrt(c * J),
               "components.second.w0_radps": float(rigid(np.zeros(1))[0][0])}  # fmt: skip
    drive = torqueloop.load(EXAMPLE, changes)
    drive.order = order
    return Simulation(drive, h=h).run(end, motion())


def text(v: Array) -> str:
    return " ".join(f"{x:.17g}" for x in v)


def mujoco_model(h: float) -> Any:
    """Both bodies on three slides and three hinges with an inertia that nothing moves; the shaft as bodies on hinges,
    its second cross on the pin of shaft b by two points."""
    mujoco = importlib.import_module("mujoco")
    s = (PLACE[1] - PLACE[0]) / np.linalg.norm(PLACE[1] - PLACE[0])
    pin_s = np.cross(s, PINS[0]) / np.linalg.norm(np.cross(s, PINS[0]))
    tiny = 'mass="0.001" diaginertia="1e-7 1e-7 1e-7" pos="0 0 0"'
    held = 'armature="1e8"'

    def body(name: str, inner: str, place: Array) -> str:
        slides = "".join(f'<joint type="slide" axis="{a}" {held}/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
        hinges = "".join(f'<joint type="hinge" axis="{a}" {held}/>' for a in ("0 0 1", "0 1 0", "1 0 0"))
        return f'<body name="{name}" pos="{text(place)}"><inertial {tiny}/>{slides}{hinges}{inner}</body>'

    shaft = f"""<body name="a"><inertial {tiny}/><joint name="a" type="hinge" axis="{text(N[0])}" {held}/>
      <body name="s"><inertial {tiny}/><joint type="hinge" axis="{text(PINS[0])}"/>
       <joint type="hinge" axis="{text(pin_s)}"/>
       <body name="tube" pos="{text(PLACE[1] - PLACE[0])}"><inertial {tiny}/><joint type="slide" axis="{text(s)}"/>
        <body name="cross"><inertial {tiny}/><joint type="hinge" axis="{text(pin_s)}"/></body>
     </body></body></body>"""
    second = f"""<body name="b"><inertial mass="1" diaginertia="{J} {J} {J}" pos="0 0 0"/>
      <joint name="b" type="hinge" axis="{text(N[1])}" damping="{LOAD}"/></body>"""
    soft = f'solref="{2.0 * h} 1" solimp="0.9999 0.9999 0.001"'
    points = "".join(f'<connect body1="cross" body2="b" anchor="{text(k * PINS[1])}" {soft}/>' for k in (0.1, -0.1))
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{h}" gravity="0 0 0" integrator="RK4"
      tolerance="1e-12" iterations="50"/><worldbody>{body("gearbox", shaft, PLACE[0])}{body("axle", second, PLACE[1])}
      </worldbody><equality>{points}</equality></mujoco>""")


def run_mujoco(h: float, end: float, every: int) -> tuple[Array, Array]:
    """Speed of the second end and drive torque, one sample every so many steps."""
    mujoco = importlib.import_module("mujoco")
    model = mujoco_model(h)
    data = mujoco.MjData(model)
    first, last = (int(model.joint(name).qposadr[0]) for name in "ab")
    places = {"gearbox": slice(0, 6), "axle": slice(last - 6, last)}
    data.qvel[last] = float(rigid(np.zeros(1))[0][0])
    found = []
    for k in range(round(end / h) + 1):
        t = k * h
        for name, part in places.items():
            data.qpos[part], data.qvel[part] = wave(name, t), wave(name, t, 1)
            # what the step needs at its middle: the force is held over it
            data.qfrc_applied[part] = 1e8 * wave(name, t + 0.5 * h, 2)
        data.qpos[first], data.qvel[first] = W * t, W
        if k % every == 0:
            mujoco.mj_forward(model, data)
            found.append((data.qvel[last], -data.qfrc_constraint[first]))
        mujoco.mj_step(model, data)
    w, torque = np.array(found).T
    return w, torque


def table(end: float = 1.0) -> int:
    """Largest errors of speed and drive torque from 0.1 s on against the rigid shaft."""
    t = np.arange(0.0, end + 5e-4, 1e-3)
    w, torque = rigid(t)
    print(f"rigid: speed {w.min():.3f} .. {w.max():.3f} rad/s, torque {torque.min():.3f} .. {torque.max():.3f} Nm")
    print("| | omega h | speed, rad/s | drive torque, Nm | energy |\n|---|---|---|---|---|")
    for order in (4, 2):
        for c in (1e4, 1e5, 1e6, 1e7, 1e8):
            run = ours(c, 1e-3, end, order)
            speed = np.abs(np.asarray(run["second.w"]) - w)[100:].max()
            off = np.abs(np.asarray(run["drive.tau"]) - torque)[100:].max()
            books = run.energy().relative_residual
            resolved = 1e-3 * math.sqrt(c / J)
            print(f"| c = {c:.0e}, order {order} | {resolved:.1f} | {speed:.1e} | {off:.1e} | {books:.0e} |")
    if importlib.util.find_spec("mujoco") is None:
        print("MuJoCo is not installed")
        return 0
    for h in (1e-4, 2e-5):
        speed, drive = run_mujoco(h, end, round(1e-2 / h))
        off = np.abs(speed - w[::10])[10:].max(), np.abs(drive - torque[::10])[10:].max()
        print(f"| MuJoCo, {h:g} s | | {off[0]:.1e} | {off[1]:.1e} | |")
    return 0


def figure(out: Path) -> Path:
    """Fig. 9: speed at the second end and required drive torque; below it what both bodies get."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    run = Simulation(torqueloop.load(EXAMPLE), h=1e-3).run(1.0, motion())
    t = np.asarray(run.time)
    w, torque = rigid(t)
    fig, axes = pyplot.subplots(4, 1, figsize=(8, 10), sharex=True, layout="constrained")
    axes[0].plot(t, run["second.w"], label="elastic, in the step")
    axes[0].plot(t, w, "--", label="rigid, by vectors")
    axes[0].set_ylabel("second end [rad/s]")
    axes[1].plot(t[5:], run["drive.tau"][5:], label="elastic, in the step")
    axes[1].plot(t, torque, "--", label="rigid, by vectors")
    axes[1].set_ylabel("drive torque [Nm]")
    for joint in "ab":
        axes[2].plot(t, np.degrees(run[f"shaft.bend_{joint}"]), label=f"bend of joint {joint}")
    axes[2].set_ylabel("bend [deg]")
    for name in AMPLITUDE:
        for kind, unit in (("f", "N"), ("t", "Nm")):
            size = np.sqrt(sum(np.asarray(run[f"{name}.{kind}_{axis}"]) ** 2 for axis in "xyz"))
            axes[3].plot(t[5:], size[5:], label=f"{'force' if kind == 'f' else 'moment'} on the {name} [{unit}]")
    axes[3].set_xlabel("time [s]")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small", loc="upper right")
    fig.suptitle("Drive shaft between a gearbox and an axle that move, first end at 60 rad/s")
    path = out / "drive_shaft.png"
    fig.savefig(path, dpi=110)
    pyplot.close(fig)
    late = t >= 0.1
    print(f"bends up to {np.degrees(run['shaft.bend_a'].max()):.1f}, {np.degrees(run['shaft.bend_b'].max()):.1f} deg; "
          f"speed {run['second.w'][late].min():.1f} .. {run['second.w'][late].max():.1f} rad/s, "
          f"torque {run['drive.tau'][late].min():.1f} .. {run['drive.tau'][late].max():.1f} Nm")  # fmt: skip
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "figure"))
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder (default figures)")
    args = parser.parse_args()
    if args.what == "table":
        return table()
    args.out.mkdir(parents=True, exist_ok=True)
    print(figure(args.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
