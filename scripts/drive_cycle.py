"""Drive-cycle fuel consumption of the example car (Otter, Dempsey, Schlegel 2000, application 1, fig. 8).

    python scripts/drive_cycle.py [--duration 1180] [--plot cycle.png]

Prints distance, following error, temperatures and fuel; the plot shows wanted and actual speed, litres per 100 km,
temperatures, engine speed and gear.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import torqueloop
from torqueloop.core.analyse.fuel import FuelConsumption, fuel_consumption
from torqueloop.core.components.files import load
from torqueloop.core.controls import ControlledRun, run_controlled
from torqueloop.core.controls.automatic_car import automatic_car, read_cycle
from torqueloop.core.signals import Table
from torqueloop.core.simulate.offline import Simulation

CONFIGS = Path(torqueloop.__file__).parent / "configs"
#: l/100 km are shown once the car has gone this far (before, they are meaninglessly large)
SHOWN_FROM_M = 100.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--car", type=Path, default=CONFIGS / "examples" / "drive_cycle_car.toml")
    parser.add_argument("--cycle", type=Path, default=CONFIGS / "cycles" / "nedc.csv")
    parser.add_argument("--duration", type=float, default=1180.0, help="s")
    parser.add_argument("--plot", type=Path, help="PNG or SVG to write")
    options = parser.parse_args()
    driveline, cycle = load(options.car), read_cycle(options.cycle)
    run = run_controlled(Simulation(driveline, h=1e-2, substeps=10), automatic_car(cycle), options.duration, 1e-2,
                         lambda done: print(f"\r{100 * done:3.0f} %", end="", file=sys.stderr))  # fmt: skip
    print(file=sys.stderr)
    fuel = fuel_consumption(run.result, driveline, "engine")
    report(run, cycle, fuel)
    if options.plot:
        plot(run, cycle, fuel, options.plot)


def report(run: ControlledRun, cycle: Table, fuel: FuelConsumption) -> None:
    r = run.result
    error = r["car.v"] - cycle.sample(r.time)
    distance = float(r["car.s"][-1])
    print(f"distance {distance / 1e3:.3f} km, following error at most {np.abs(error).max():.2f} m/s, "
          f"rms {np.sqrt(np.mean(error**2)):.2f} m/s")  # fmt: skip
    print(f"fuel {fuel.litres:.3f} l, {fuel.per_100km(distance):.2f} l/100 km")
    temperatures = (f"{n} {r[f'warm_up.T_{n}'][-1] - 273.15:.1f} degC" for n in ("block", "coolant", "radiator", "oil"))
    print("at the end: " + ", ".join(temperatures))
    balance = r.energy()
    print(f"energy residual {balance.relative_residual:.1e} of {balance.turned_over / 1e6:.2f} MJ turned over; "
          f"gear changes {np.count_nonzero(np.diff(run.commands['gearbox.gear']))}")  # fmt: skip


def plot(run: ControlledRun, cycle: Table, fuel: FuelConsumption, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    r = run.result
    figure, axes = plt.subplots(4, 1, figsize=(10, 11), sharex=True)
    axes[0].plot(r.time, 3.6 * cycle.sample(r.time), label="cycle", color="0.6", linewidth=2)
    axes[0].plot(r.time, 3.6 * r["car.v"], label="car", linewidth=0.8)
    axes[0].set_ylabel("speed [km/h]")
    going = r["car.s"] > SHOWN_FROM_M
    axes[1].plot(r.time[going], fuel.mass[going] / fuel.density / (r["car.s"][going] / 1e5))
    axes[1].set_ylabel("consumption [l/100 km]")
    for name in ("block", "coolant", "radiator", "oil"):
        axes[2].plot(r.time, r[f"warm_up.T_{name}"] - 273.15, label=name)
    axes[2].set_ylabel("temperature [degC]")
    axes[3].plot(r.time, r["engine.w"] * 30.0 / np.pi, label="engine [1/min]", linewidth=0.6)
    axes[3].plot(run.time, 1000.0 * run.commands["gearbox.gear"], label="gear x 1000", linewidth=0.8)
    axes[3].set_xlabel("time [s]")
    for axis in (axes[0], axes[2], axes[3]):
        axis.legend(loc="upper left", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
