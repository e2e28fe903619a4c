"""Fuel consumption of the example car on drive cycles (Otter, Dempsey, Schlegel 2000, application 1, fig. 8).

    python examples/figures/drive_cycle.py                             NEDC from a cold start
    python examples/figures/drive_cycle.py --cycle all --fastsim       all cycles, beside FASTSim 2.1.5 (docs/fuel.md)
    python examples/figures/drive_cycle.py --cycle wltc_class3b --plot cycle.png

Prints distance, following error, temperatures and fuel; the plot shows wanted and actual speed, litres per 100 km,
temperatures, engine speed and gear.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fastsim_check import Car, fastsim_python, run_fastsim

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.core.analyse.fuel import PETROL_LHV, FuelConsumption, fuel_consumption
from torqueloop.core.controls import ControlledRun, run_controlled
from torqueloop.core.controls.automatic_car import automatic_car, read_cycle
from torqueloop.core.signals import Table

CONFIGS = Path(tl.__file__).parent / "configs"
CYCLES = ("nedc", "wltc_class3b", "ftp75", "hwfet", "us06")
#: l/100 km are shown once the car has gone this far (before, they are meaninglessly large)
SHOWN_FROM_M = 100.0
#: oil, coolant and block of a warm start [K]
WARM_K = 363.15


@dataclass(frozen=True)
class Driven:
    """A cycle, driven."""

    name: str
    run: ControlledRun
    cycle: Table
    fuel: FuelConsumption
    took_s: float

    @property
    def distance_m(self) -> float:
        return float(self.run.result["car.s"][-1])

    @property
    def l_per_100km(self) -> float:
        return self.fuel.per_100km(self.distance_m)

    @property
    def shaft_J(self) -> float:
        """Work at the flange of the engine while it drives."""
        r = self.run.result
        power = r["engine.w"] * shaft_torque(r)
        return float(np.trapezoid(np.maximum(power, 0.0), r.time))


def shaft_torque(r: Any) -> Any:
    """Torque the engine gives to its flange and flywheel [Nm]."""
    return r["engine.tau_indicated"] + r["engine.tau_friction"] + r["engine.tau_auxiliaries"]


def drive(
    car: Path, path: Path, duration: float | None, warm: bool = False, quiet: bool = False, period: float = 0.01
) -> Driven:
    """Drive a cycle from a cold start (20 degC), or a warm one, in steps of 1 ms; period: of the controllers."""
    driveline, cycle = tl.load(car, {"components.warm_up.T0_K": WARM_K} if warm else None), read_cycle(path)
    seconds = duration if duration is not None else float(cycle.event_times(0.0, 1e6)[-1])
    told = None if quiet else lambda done: print(f"\r{path.stem} {100 * done:3.0f} %", end="", file=sys.stderr)
    begun = time.perf_counter()
    run = run_controlled(
        tl.Simulation(driveline, h=period, substeps=round(period / 1e-3)), automatic_car(cycle), seconds, period, told
    )
    took = time.perf_counter() - begun
    if not quiet:
        print(file=sys.stderr)
    return Driven(path.stem, run, cycle, fuel_consumption(run.result, driveline, "engine"), took)


def report(d: Driven) -> None:
    r = d.run.result
    error = r["car.v"] - d.cycle.sample(r.time)
    balance = r.energy()
    print(f"{d.name}: {d.distance_m / 1e3:.3f} km, following error at most {np.abs(error).max():.2f} m/s, "
          f"rms {np.sqrt(np.mean(error**2)):.2f} m/s")  # fmt: skip
    print(f"  fuel {d.fuel.litres:.3f} l, {d.l_per_100km:.2f} l/100 km, {d.took_s:.1f} s of computing")
    temperatures = (f"{n} {r[f'warm_up.T_{n}'][-1] - 273.15:.1f} degC" for n in ("block", "coolant", "radiator", "oil"))
    print("  at the end: " + ", ".join(temperatures))
    print(f"  energy residual {balance.relative_residual:.1e} of {balance.turned_over / 1e6:.2f} MJ turned over; "
          f"gear changes {np.count_nonzero(np.diff(d.run.commands['gearbox.gear']))}")  # fmt: skip


def compare(driven: list[Driven], car: Path, python: Path, out: Path | None, period: float) -> None:
    """Each cycle beside FASTSim with a matching car, differences by cause."""
    rows = []
    for d in driven:
        warm = drive(car, installed("cycles")[d.name], d.run.result.time[-1], warm=True, quiet=True,
                     period=period)  # fmt: skip
        theirs = run_fastsim(python, Car.of(tl.load(car), warm), installed("cycles")[d.name], d.run.result.time[-1])
        rows.append({
            "cycle": d.name, "km": round(d.distance_m / 1e3, 3),
            "cold_l_per_100km": round(d.l_per_100km, 3), "warm_l_per_100km": round(warm.l_per_100km, 3),
            "fastsim_l_per_100km": round(theirs["fuel_J"] / PETROL_LHV / 0.749 / (theirs["distance_m"] / 1e5), 3),
            "road_MJ": [round(road_work(warm) / 1e6, 3), round(theirs["road_J"] / 1e6, 3)],
            "brakes_MJ": [round(brake_work(warm) / 1e6, 3), round(theirs["brake_J"] / 1e6, 3)],
            "engine_out_MJ": [round(warm.shaft_J / 1e6, 3), round(theirs["engine_J"] / 1e6, 3)],
            "efficiency": [round(warm.shaft_J / (warm.fuel.mass[-1] * PETROL_LHV), 4),
                           round(theirs["engine_J"] / theirs["fuel_J"], 4)],
            "residual": float(f"{d.run.result.energy().relative_residual:.1e}"),
            "took_s": [round(d.took_s, 2), round(theirs["took_s"], 4)],
        })  # fmt: skip
        print(json.dumps(rows[-1]))
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def road_work(d: Driven) -> float:
    """Work of the resistances of the road and the air [J]."""
    r = d.run.result
    v = r["car.v"]
    return float(np.trapezoid((110.0 + 1.5 * v + 0.396 * v * v) * np.abs(v) * (v > 0.01), r.time))


def brake_work(d: Driven) -> float:
    """Heat of the wheel brakes [J]."""
    r = d.run.result
    return float(r["brake.heat"][-1] - r["brake.heat"][0])


def plot(d: Driven, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    r = d.run.result
    figure, axes = plt.subplots(4, 1, figsize=(10, 11), sharex=True)
    axes[0].plot(r.time, 3.6 * d.cycle.sample(r.time), label=d.name, color="0.6", linewidth=2)
    axes[0].plot(r.time, 3.6 * r["car.v"], label="car", linewidth=0.8)
    axes[0].set_ylabel("speed [km/h]")
    going = r["car.s"] > SHOWN_FROM_M
    axes[1].plot(r.time[going], d.fuel.mass[going] / d.fuel.density / (r["car.s"][going] / 1e5))
    axes[1].set_ylabel("consumption [l/100 km]")
    for name in ("block", "coolant", "radiator", "oil"):
        axes[2].plot(r.time, r[f"warm_up.T_{name}"] - 273.15, label=name)
    axes[2].set_ylabel("temperature [degC]")
    axes[3].plot(r.time, r["engine.w"] * 30.0 / np.pi, label="engine [1/min]", linewidth=0.6)
    axes[3].plot(d.run.time, 1000.0 * d.run.commands["gearbox.gear"], label="gear x 1000", linewidth=0.8)
    axes[3].set_xlabel("time [s]")
    for axis in (axes[0], axes[2], axes[3]):
        axis.legend(loc="upper left", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--car", type=Path, default=CONFIGS / "examples" / "drive_cycle_car.toml")
    parser.add_argument("--cycle", default="nedc", help=f"all, a file, or one of {', '.join(CYCLES)}")
    parser.add_argument("--duration", type=float, help="s; default: the whole cycle")
    parser.add_argument("--period", type=float, default=0.01, help="s between two looks of the controllers")
    parser.add_argument("--plot", type=Path, help="PNG or SVG to write (of several cycles: NAME is put into it)")
    parser.add_argument("--fastsim", nargs="?", const="", metavar="PYTHON", help="beside FASTSim, with its Python")
    parser.add_argument("--out", type=Path, help="JSON of the comparison")
    options = parser.parse_args()
    known = installed("cycles")
    names = CYCLES if options.cycle == "all" else (options.cycle,)
    driven = []
    for name in names:
        d = drive(options.car, known.get(name, Path(name)), options.duration, period=options.period)
        report(d)
        driven.append(d)
        if options.plot:
            target = options.plot
            plot(d, target if len(names) == 1 else target.with_stem(f"{target.stem}_{d.name}"))
    if options.fastsim is not None:
        compare(driven, options.car, fastsim_python(options.fastsim), options.out, options.period)


if __name__ == "__main__":
    main()
