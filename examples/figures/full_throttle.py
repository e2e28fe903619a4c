#!/usr/bin/env python
"""The automatic gearbox of Otter, Dempsey, Schlegel 2000, section 7: full throttle through all gears, and the 3 to 4
shift in detail (fig. 12), from our own simulation.

    python examples/figures/full_throttle.py [--plot docs/pictures/full_throttle.png]

Prints the moments of the shift that the paper names.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import torqueloop as tl
from torqueloop.core.simulate.results import Result
from torqueloop.hil.common.locate import locate
from torqueloop.hil.scenario.offline import compiled
from torqueloop.hil.scenario.scenario_tables import load_scenario

#: the part of the run that the right half of fig. 12 shows [s]
ZOOM = (17.8, 19.4)


@dataclass(frozen=True)
class Moments:
    """What the paper tells of C11 from 3rd to 4th gear [s]."""

    #: its pressure begins to fall, and has gone
    falls_s: float
    gone_s: float
    #: it begins to slide
    slides_s: float
    #: the slip of 4th gear is reached
    full_slip_s: float
    #: its torque changes sign for the first time after the shift began
    turns_s: float


def drive() -> Result:
    """The scenario wot_4hp22: pressures as functions of time, no control unit."""
    scenario = load_scenario(locate("wot_4hp22", "scenarios"))
    model, inputs = compiled(scenario)
    table = scenario.config.scenario
    return tl.Simulation(model, h=table.tick_s).run(table.duration_s, inputs=inputs)


def moments(r: Result) -> Moments:
    """Read off the recorded signals."""
    t, shift = r.time, r.time >= 17.9
    p, mode, slip, torque = (r[f"C11.{name}"] for name in ("p", "mode", "w_rel", "tau"))

    def first(there: Any) -> float:
        return float(t[np.flatnonzero(shift & there)[0]])

    sign = np.sign(torque[np.flatnonzero(shift)[0]])
    return Moments(
        falls_s=first(p < p[np.flatnonzero(shift)[0]] * (1.0 - 1e-9)),
        gone_s=first(p < 1e3),
        slides_s=first(mode != 0),
        # in 4th gear sun S3 stands and X turns with the input shaft
        full_slip_s=first(np.abs(slip) >= 0.99 * r["converter.w_turbine"]),
        turns_s=first(torque * sign < -1.0),
    )


def picture(r: Result, path: Path) -> Path:
    """Left the run, right C11 in detail, as fig. 12 is laid out."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 2, figsize=(11, 7.5), layout="constrained")
    rpm = 60.0 / (2.0 * np.pi)
    left = [([("engine.w", rpm, "engine"), ("converter.w_turbine", rpm, "turbine")], "speed [1/min]"),
            ([("car.a", 1.0, "car")], "acceleration [m/s²]"), ([("car.v", 3.6, "car")], "speed [km/h]"),
            ([(f"{n}.p", 1e-5, n) for n in ("C6", "C7", "C5", "C11", "C12")], "pressure [bar]")]  # fmt: skip
    right = [([(f"{n}.tau", 1.0, n) for n in ("C11", "C12", "F14")], "torque [Nm]"),
             ([("C11.w_rel", rpm, "slip of C11")], "slip [1/min]"), ([("car.a", 1.0, "car")], "acceleration [m/s²]"),
             ([("C11.p", 1e-5, "C11"), ("C12.p", 1e-5, "C12")], "pressure [bar]")]  # fmt: skip
    for column, rows in enumerate((left, right)):
        shown = (r.time >= ZOOM[0]) & (r.time <= ZOOM[1]) if column else np.full(len(r.time), True)
        for axis, (lines, label) in zip(axes[:, column], rows, strict=True):
            for name, factor, text in lines:
                axis.plot(r.time[shown], factor * r[name][shown], label=text, linewidth=1.2)
            axis.set_ylabel(label)
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8, loc="best")
        axes[1, column].sharex(axes[0, column])
    stuck = (r["C11.mode"] == 0) & (r.time >= ZOOM[0]) & (r.time <= ZOOM[1])
    axes[0, 1].fill_between(r.time, 0, 1, where=stuck, transform=axes[0, 1].get_xaxis_transform(), color="0.9")
    axes[0, 1].axhline(0.0, color="0.4", linewidth=0.8)
    axes[0, 0].set_title("full throttle from standstill through all gears")
    axes[0, 1].set_title("3 to 4 in detail (grey: C11 stuck)")
    for axis in axes[3]:
        axis.set_xlabel("time [s]")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    r = drive()
    found = moments(r)
    print(f"pressure of C11 falls from {found.falls_s:.3f} s and has gone at {found.gone_s:.3f} s; its torque turns at "
          f"{found.turns_s:.3f} s, it slides from {found.slides_s:.3f} s and has the slip of 4th gear at "
          f"{found.full_slip_s:.3f} s")  # fmt: skip
    top = r["car.v"][-1] * 3.6
    print(f"{top:.1f} km/h after {r.time[-1]:g} s; energy closes to {r.energy().relative_residual:.1e}")
    if options.plot:
        print(picture(r, options.plot))


if __name__ == "__main__":
    main()
