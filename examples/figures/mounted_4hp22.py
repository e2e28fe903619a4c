"""The 528i at full throttle through its four gears with engine and gearbox on three rubber mounts: roll, mount forces.

    python examples/figures/mounted_4hp22.py [--out DIR]     offline: table and mounted_4hp22.png
    python examples/figures/mounted_4hp22.py --run RUN       the same table of a run of the rig desk_4hp22_mounts
    python examples/figures/mounted_4hp22.py --cost          instructions of a step, mounted against held (valgrind)

Roll angle and forces before, in and after each shift; offline also the difference to the same car with a block that is
held. Block and mounts: configs/examples/engine_mounts_528i.toml.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import torqueloop
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Signal, Table

CONFIGS = Path(torqueloop.__file__).parent / "configs"
#: begin of the shifts of configs/scenarios/wot_4hp22.toml, s
SHIFTS = {"1 to 2": 5.5, "2 to 3": 11.0, "3 to 4": 18.0}
#: what a shift does is looked for as long after its begin [s]
AFTER_S = 1.5
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
    return torqueloop.load(CONFIGS / "powertrains" / ("car_4hp22_mounts.toml" if mounted else "car_4hp22.toml"))


def run(mounted: bool) -> torqueloop.Result:
    """The run, offline."""
    return torqueloop.Simulation(car(mounted), h=1e-3).run(25.0, inputs=inputs())


def roll(r: Mapping[str, np.ndarray]) -> np.ndarray:
    """Angle about the crankshaft, deg."""
    angle: np.ndarray = np.degrees(2.0 * np.arctan2(r["block.q1"], r["block.q0"]))
    return angle


def show(t: np.ndarray, r: Mapping[str, np.ndarray], shifts: Mapping[str, float]) -> None:
    """Table: each shift's begin [s], and what roll and mount forces do from there."""
    print(f"{'':14} {'roll [deg]':>24} {'left f_z [N]':>24} {'right f_z [N]':>24} {'rear f_y [N]':>24}")
    print(f"{'shift':14} " + " ".join(f"{'before':>7} {'least':>8} {'most':>7}" for _ in range(4)))
    columns = [(roll(r), 2), (r["left.f_z"], 0), (r["right.f_z"], 0), (r["rear.f_y"], 0)]
    for name, begin in shifts.items():
        inside = (t >= begin) & (t <= begin + AFTER_S)
        at = int(np.searchsorted(t, begin))
        numbers = (f"{y[at]:7.{d}f} {y[inside].min():8.{d}f} {y[inside].max():7.{d}f}" for y, d in columns)
        print(f"{name + f' {begin:.2f} s':14} " + " ".join(numbers))


def show_run(folder: Path) -> int:
    """The table of a run of the rig; its shifts are those its control unit has told."""
    run_dir = torqueloop.read_run(folder)
    unit = run_dir.stats.participants.get("tcu")
    told = unit.reported.get("shifts", []) if unit is not None else []
    if "block.q1" not in run_dir or not told:
        missing = "shifts of a control unit tcu" if told == [] else "block.q1 (a rig like desk_4hp22_mounts)"
        print(f"{folder}: the run has no {missing}", file=sys.stderr)
        return 2
    show(run_dir.t, run_dir, {s["shift"]: s["end_s"] - s["duration_s"] for s in told})
    return 0


def cost() -> int:
    """Instructions of a step in second gear at full throttle, nothing changing: mounted against held."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
    from bench_step import H, shift_inputs
    from instruction_counts import CountingError, Job, instruction_counts
    from step_baseline import stretches

    from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

    names, jobs = [], []
    for mounted in (True, False):
        # the rig's: both have a precompiled step
        name = "car_4hp22_mounts_rig.toml" if mounted else "car_4hp22_rig.toml"
        compiled = compile_driveline(torqueloop.load(CONFIGS / "powertrains" / name))
        given = shift_inputs(compiled, 25.0)
        for order in (2, 4):
            arrays = replace(compiled.arrays, order=order)
            # the stretch is found and led up to with the step the car has; the generic one gives the same bits
            model = KernelModel(arrays, H)
            for stretch, (first, behind) in stretches(model, given).items():
                if stretch == "run":
                    continue
                state = KernelState(model)
                state.warm()
                model.run(state, given[:first])
                start, part = state.to_bytes(), np.ascontiguousarray(given[first:behind])
                for kernel in dict.fromkeys((model.kernel_name, "generic")):
                    names.append((stretch, order, "generic" if kernel == "generic" else "precompiled",
                                  "mounted" if mounted else "held", compiled.n, behind - first))  # fmt: skip
                    jobs.append(Job(arrays, H, start, part, kernel))
    try:
        counted = instruction_counts(jobs, lambda: None)
    except CountingError as error:
        print(f"instructions cannot be counted here: {error}", file=sys.stderr)
        return 2
    print(f"{'stretch':8} {'order':>5} {'step':12} {'block':8} {'speeds':>6} {'instructions a step':>20}")
    for (name, order, kernel, block, speeds, steps), (once, twice) in zip(names, counted, strict=True):
        each = (sum(twice.values()) - sum(once.values())) / steps
        print(f"{name:8} {order:5d} {kernel:12} {block:8} {speeds:6d} {each:20.0f}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder (default figures)")
    parser.add_argument("--run", type=Path, metavar="RUN", help="folder of a run of the rig")
    parser.add_argument("--cost", action="store_true", help="count instructions")
    options = parser.parse_args()
    if options.run is not None:
        return show_run(options.run)
    if options.cost:
        return cost()
    options.out.mkdir(parents=True, exist_ok=True)
    r, held = run(True), run(False)
    show(r.time, r, SHIFTS)
    balance = r.energy()
    print(f"speed at the end {3.6 * r['car.v'][-1]:.3f} km/h, block held: {3.6 * held['car.v'][-1]:.3f} km/h")
    print(f"energy that does not close: {abs(balance.residual) / balance.turned_over:.1e} of what is turned over")
    print(draw(r, roll(r), options.out))
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
