"""The 528i at full throttle through its four gears with engine and gearbox on three rubber mounts: roll, mount forces.

    python scripts/mounted_4hp22.py [--out DIR]

Draws mounted_4hp22.png; prints roll angle and forces before, in and after each shift, the difference to the same car
with a block that is held, and the time of a step of both. Block and mounts: configs/examples/engine_mounts_528i.toml.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import torqueloop
from torqueloop.core.components import KINDS
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.toml_front import read_driveline
from torqueloop.core.signals import Signal, Table

CONFIGS = Path(torqueloop.__file__).parent / "configs"
#: begin of the shifts of configs/scenarios/wot_4hp22.toml, s
SHIFTS = {"1 to 2": 5.5, "2 to 3": 11.0, "3 to 4": 18.0}
BAR = 1e5


def inputs() -> dict[str, Signal | float]:
    """Those of configs/scenarios/wot_4hp22.toml."""
    profiles = {
        "C6.p": [[0, 0], [5.5, 0], [5.55, 1.5], [5.9, 7], [6.1, 10], [11.1, 10], [11.12, 0], [30, 0]],
        "C7.p": [[0, 0], [5.5, 0], [5.55, 1.5], [5.9, 7], [6.1, 10], [30, 10]],
        "C5.p": [[0, 0], [11, 0], [11.05, 1.5], [11.5, 6], [11.7, 10], [30, 10]],
        "C11.p": [[0, 12], [18, 12], [18.7, 0], [30, 0]],
        "C12.p": [[0, 0], [18, 0], [18.05, 1.5], [18.6, 6], [18.9, 10], [30, 10]],
    }
    found: dict[str, Signal | float] = {
        name: Table([[t, BAR * p] for t, p in points]) for name, points in profiles.items()
    }
    pedal = Table([[0.0, 0.0], [0.5, 0.0], [0.7, 1.0], [30.0, 1.0]])
    return {**found, "engine.pedal": pedal, "C4.p": 12.0 * BAR, "C8.p": 0.0, "lockup.p": 0.0}


def car(mounted: bool) -> Driveline:
    """The car, with its block on mounts or held."""
    driveline = torqueloop.load(CONFIGS / "powertrains" / "car_4hp22.toml")
    if mounted:
        block = read_driveline(CONFIGS / "examples" / "engine_mounts_528i.toml", KINDS)
        for name, component in block.components.items():
            driveline.add(name, component)
        for group in block.connections:
            driveline.connect(*group)
        driveline.disconnect("final_drive.flange_a")
        driveline.connect("out.flange_b", "propeller.flange_a")
        driveline.connect("propeller.flange_b", "final_drive.flange_a")
    return driveline


def run(mounted: bool) -> tuple[torqueloop.Result, float]:
    """The run, and seconds per step."""
    sim = torqueloop.Simulation(car(mounted), h=1e-3)
    begin = time.perf_counter()
    result = sim.run(25.0, inputs=inputs())
    return result, (time.perf_counter() - begin) / 25_000


def roll(r: torqueloop.Result) -> np.ndarray:
    """Angle about the crankshaft, deg."""
    angle: np.ndarray = np.degrees(2.0 * np.arctan2(r["block.q1"], r["block.q0"]))
    return angle


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder (default figures)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    (r, cost), (held, cost_held) = run(True), run(False)
    angle, t = roll(r), r.time
    print(f"{'':8} {'roll [deg]':>24} {'left f_z [N]':>24} {'right f_z [N]':>24}")
    print(f"{'shift':8} " + " ".join(f"{'before':>7} {'least':>8} {'most':>7}" for _ in range(3)))
    for name, begin in SHIFTS.items():
        inside = (t >= begin) & (t <= begin + 1.5)
        at = int(np.searchsorted(t, begin))
        columns = [(angle, 2), (r["left.f_z"], 0), (r["right.f_z"], 0)]
        print(f"{name:8} " + " ".join(f"{y[at]:7.{d}f} {y[inside].min():8.{d}f} {y[inside].max():7.{d}f}"
                                      for y, d in columns))  # fmt: skip
    balance = r.energy()
    print(f"speed at the end {3.6 * r['car.v'][-1]:.3f} km/h, block held: {3.6 * held['car.v'][-1]:.3f} km/h")
    print(f"energy that does not close: {abs(balance.residual) / balance.turned_over:.1e} of what is turned over")
    print(f"a step: {1e6 * cost:.2f} us ({r.model.n} speeds), block held: {1e6 * cost_held:.2f} us ({held.model.n})")
    print(draw(r, angle, out))
    return 0


def draw(r: torqueloop.Result, angle: np.ndarray, out: Path) -> Path:
    """Speeds, roll, mount forces."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 1, figsize=(8, 8), sharex=True, layout="constrained")
    for name, label in (("engine.w", "engine"), ("turbine.w", "turbine"), ("out.w", "output")):
        axes[0].plot(r.time, r[name], label=label)
    axes[1].plot(r.time, angle, label="roll")
    for name in ("left", "right", "rear"):
        axes[2].plot(r.time, r[f"{name}.f_z"], label=f"{name} mount, z", linewidth=0.9)
    for axis, label in zip(axes, ("speed [rad/s]", "roll [deg]", "force on the block [N]"), strict=True):
        axis.set_ylabel(label)
        axis.legend(loc="upper right", fontsize="small", ncols=3)
    axes[-1].set_xlabel("time [s]")
    figure.suptitle("528i, 4HP22: engine and gearbox on three mounts, full throttle (1 ms steps)")
    file = out / "mounted_4hp22.png"
    figure.savefig(file, dpi=90)
    return file


if __name__ == "__main__":
    sys.exit(main())
