"""A tracked vehicle steered by a planetary gear train, its four cases: Maegi, Jacobson, Resev 1998, part C.

    python examples/figures/tracked_vehicle.py [--seconds S] [--tyre printed|meant] [--case NAME ...] [--out DIR]

Full pedal from standstill, straight ahead; at 5 s the right brake is pressed. Draws tracked_trajectories.png (fig. 11)
and tracked_train.png (fig. 12), prints lock-up time, speeds, radius, and by how much losses and inertia of the train
change them. Train: configs/examples/tracked_vehicle.toml; chassis: core/controls/tracked_chassis.py; what the paper
leaves open and what is found: docs/tracked_vehicle.md. The four cases run in processes of their own.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import torqueloop
from torqueloop.core.components import KINDS
from torqueloop.core.controls.loop import ControlledRun, Wired, run_controlled
from torqueloop.core.controls.tracked_chassis import TrackedChassis, TrackedVehicle, Tyre
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.variants import Variants
from torqueloop.core.signals import Ramp

EXAMPLE = Path(torqueloop.__file__).parent / "configs" / "examples" / "tracked_vehicle.toml"
#: tick of the train and period in which train and chassis exchange, s
TICK, PERIOD = 1e-3, 2e-3
#: begin of braking, s (section 16), and the pedal, which the paper does not name
BRAKE_AT, PEDAL = 5.0, 1.0
SHAFTS = ("carrier", "H", "A_L", "A_R", "C_L", "C_R", "F_L", "F_R", "D_L", "D_R")
MESHES = tuple(f"mesh{k}" for k in range(1, 9))
#: instead of none at all, which leaves a spring without a body beside a brake, kg m2
SIMPLE_J = 1e-4


@dataclass(frozen=True)
class Case:
    """One line of table 4."""

    name: str
    #: times the reference's inertias and losses
    train: float
    rise_s: float


CASES = (Case("Reference", 1.0, 1.0), Case("Simple", 0.0, 1.0), Case("Exaggerated", 10.0, 1.0), Case("Slow", 1.0, 5.0))


def train_of(case: Case) -> Driveline:
    """The train with the inertias and losses of the case."""
    base = torqueloop.load(EXAMPLE)
    values: dict[str, float] = {}
    for shaft in SHAFTS:
        values[f"components.{shaft}.J_kgm2"] = max(0.1 * case.train, SIMPLE_J)
    for mesh in MESHES:
        values[f"components.{mesh}.deltaR_mm"] = 1e3 * float(base.components[mesh].deltaR) * case.train
    return Variants(base, KINDS).of(values)


def drive(case: Case, tyre: Tyre, seconds: float, period: float = PERIOD, tick: float = TICK) -> ControlledRun:
    """The motion; commands car.vx ... are those at the end of their period."""
    sim = torqueloop.Simulation(train_of(case), h=tick)
    sim.set_input("engine.pedal", PEDAL)
    sim.set_input("brake_L.f_normalized", 0.0)
    sim.set_input("brake_R.f_normalized", Ramp(duration=case.rise_s, startTime=BRAKE_AT))
    chassis = TrackedChassis(TrackedVehicle(tyre=tyre), period)
    car = Wired("car", chassis, {"torque_L": "shaft_L.tau", "torque_R": "shaft_R.tau"},
                {"w_L": "wheel_L.w_ref", "w_R": "wheel_R.w_ref"}, frozenset({"w_L", "w_R"}),
                frozenset({"torque_L", "torque_R"}))  # fmt: skip
    return run_controlled(sim, [car], seconds, period)


@dataclass(frozen=True)
class Drive:
    """What is kept of a drive."""

    case: Case
    #: at the end of each period: time, and the commands of the chassis
    time: NDArray[np.float64]
    car: dict[str, NDArray[np.float64]]
    #: s after the brake is pressed; None: it never locks
    lock_s: float | None
    #: signals of the train over its first seconds, at every tick
    train: dict[str, NDArray[np.float64]]
    #: work lost in the meshes to the end, J
    mesh_loss: float
    energy_residual: float


#: signals for fig. 12
KEPT = (
    "engine.w",
    "engine.tau",
    "A_L.w",
    "A_R.w",
    "C_L.w",
    "C_R.w",
    "shaft_L.tau",
    "shaft_R.tau",
    "brake_R.tau",
    "brake_R.mode",
)


def one(case: Case, tyre: Tyre, seconds: float) -> Drive:
    """Drive a case and keep what is looked at."""
    run = drive(case, tyre, seconds)
    r = run.result
    locked = np.flatnonzero((r["brake_R.mode"] == 0) & (r.time > BRAKE_AT + 0.01))
    short = r.time <= 10.0
    lossy = case.train > 0.0
    balance = r.energy()
    return Drive(
        case,
        run.time + PERIOD,
        {name.removeprefix("car."): values for name, values in run.commands.items()},
        float(r.time[locked[0]] - BRAKE_AT) if len(locked) else None,
        {"time": r.time[short], **{name: r[name][short] for name in KEPT}},
        sum(float(r[f"{mesh}.loss"][-1]) for mesh in MESHES) if lossy else 0.0,
        abs(balance.residual) / balance.turned_over,
    )


def radius(car: dict[str, NDArray[np.float64]], at: int) -> tuple[float, float]:
    """Of the mass centre's path, and of a vehicle whose wheels do not slip (inner wheel), m."""
    speed = float(np.hypot(car["vx"][at], car["vy"][at]))
    track = TrackedVehicle().track
    ratio = car["w_L"][at] / car["w_R"][at]
    turn = float(car["yaw_rate"][at])
    return speed / turn if abs(turn) > 1e-9 else float("inf"), float(track / (ratio - 1.0)) if ratio > 1.0 else float(
        "inf"
    )


def table(drives: list[Drive]) -> None:
    """The four cases, and what they have over the Simple one."""
    print(f"{'case':12} {'locks after':>11} {'v(5 s)':>7} {'v end':>7} {'yaw rate':>9} {'radius':>7} {'no slip':>8} "
          f"{'ratio':>9} {'mesh loss':>10} {'energy':>8}")  # fmt: skip
    print(f"{'':12} {'s':>11} {'m/s':>7} {'m/s':>7} {'deg/s':>9} {'m':>7} {'m':>8} {'':>9} {'kJ':>10} {'':>8}")
    for d in drives:
        car, five = d.car, int(np.searchsorted(d.time, 5.0 - 1e-9))
        real, inner = radius(car, -1)
        locks = "never" if d.lock_s is None else f"{d.lock_s:.3f}"
        print(f"{d.case.name:12} {locks:>11} {car['vx'][five]:7.3f} {np.hypot(car['vx'][-1], car['vy'][-1]):7.3f} "
              f"{np.degrees(car['yaw_rate'][-1]):9.3f} {real:7.2f} {inner:8.4f} {car['w_L'][-1] / car['w_R'][-1]:9.6f} "
              f"{1e-3 * d.mesh_loss:10.2f} {d.energy_residual:8.1e}")  # fmt: skip
    plain = next((d for d in drives if d.case.name == "Simple"), None)
    if plain is None:
        return
    print("against Simple, greatest over the first 10 s and at the end:")
    for d in drives:
        if d is plain:
            continue
        first = int(np.searchsorted(d.time, min(10.0, d.time[-1]) - 1e-9)) + 1
        gap = np.hypot(d.car["x"] - plain.car["x"], d.car["y"] - plain.car["y"])
        print(f"  {d.case.name:12} speed {np.abs(d.car['vx'] - plain.car['vx'])[:first].max():.3f} m/s, yaw rate "
              f"{np.degrees(np.abs(d.car['yaw_rate'] - plain.car['yaw_rate']))[:first].max():.2f} deg/s, place "
              f"{gap[:first].max():.2f} m (end: {gap[-1]:.1f} m)")  # fmt: skip


def plotter() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_trajectories(drives: list[Drive], tyre: Tyre, out: Path) -> Path:
    """Fig. 11: forward up, right to the right."""
    figure, axes = plotter().subplots(
        1, len(drives), figsize=(4 * len(drives), 4.4), layout="constrained", squeeze=False
    )
    for axis, d in zip(axes[0], drives, strict=True):
        axis.plot(d.car["y"], d.car["x"], linewidth=0.7)
        for t in (5.0, 10.0):
            k = min(int(np.searchsorted(d.time, t)), len(d.time) - 1)
            axis.plot(d.car["y"][k], d.car["x"][k], "o", markersize=4, label=f"{t:g} s")
        axis.set_aspect("equal", "datalim")
        axis.set_title(d.case.name)
        axis.set_xlabel("to the right [m]")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("forward [m]")
    axes[0][0].legend(fontsize="small")
    figure.suptitle(
        f"Trajectories over {drives[0].time[-1]:.0f} s, tyre as {tyre.form} (Maegi, Jacobson, Resev 1998, fig. 11)"
    )
    file = out / "tracked_trajectories.png"
    figure.savefig(file, dpi=90)
    return file


def draw_train(d: Drive, out: Path) -> Path:
    """Fig. 12: speeds and torques of the train, with the phases free, slip, lock of the right brake."""
    r = d.train
    figure, axes = plotter().subplots(3, 1, figsize=(8, 9), sharex=True, layout="constrained")
    for name, label in (("engine.w", "engine"), ("A_L.w", "left wheel shaft"), ("A_R.w", "right wheel shaft"),
                        ("C_L.w", "left brake rotor"), ("C_R.w", "right brake rotor")):  # fmt: skip
        axes[0].plot(r["time"], r[name], label=label)
    for name, label in (("engine.tau", "engine"), ("shaft_L.tau", "left wheel"), ("shaft_R.tau", "right wheel")):
        axes[1].plot(r["time"], r[name], label=label)
    axes[2].plot(r["time"], r["brake_R.tau"], label="right brake")
    axes[2].plot(
        r["time"], 400.0 * np.clip((r["time"] - BRAKE_AT) / d.case.rise_s, 0.0, 1.0), "--", label="its capacity"
    )
    locked = (r["brake_R.mode"] == 0) & (r["time"] > BRAKE_AT + 0.01)
    for axis, label in zip(axes, ("speed [rad/s]", "torque [Nm]", "torque [Nm]"), strict=True):
        axis.axvline(BRAKE_AT, color="0.6", linewidth=0.8)
        axis.fill_between(
            r["time"], 0, 1, where=locked, transform=axis.get_xaxis_transform(), color="0.9", label="locked"
        )
        axis.set_ylabel(label)
        axis.legend(loc="upper left", fontsize="small", ncols=2)
    axes[-1].set_xlabel("time [s]")
    figure.suptitle(f"Steering train, case {d.case.name}: free, slip from {BRAKE_AT:g} s on, lock")
    file = out / "tracked_train.png"
    figure.savefig(file, dpi=90)
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in CASES]
    parser.add_argument("--seconds", type=float, default=300.0, help="length of each drive (default 300)")
    parser.add_argument("--tyre", choices=("printed", "meant"), default="printed", help="reading of the paper's tyre")
    parser.add_argument("--case", choices=names, nargs="+", default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder (default figures)")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    tyre = Tyre(form=chosen.tyre)
    with ProcessPoolExecutor(max_workers=min(len(chosen.case), os.cpu_count() or 1)) as pool:
        waiting = [pool.submit(one, case, tyre, chosen.seconds) for case in CASES if case.name in chosen.case]
        drives = []
        for future in waiting:
            drives.append(future.result())
            print(f"{drives[-1].case.name} driven", file=sys.stderr)
    table(drives)
    print(draw_trajectories(drives, tyre, chosen.out))
    print(draw_train(drives[0], chosen.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
