"""Draw three figures of the literature from our own simulation.

    python examples/figures/paper_figures.py [--out DIR]

two_blocks.png        two blocks with friction, stick-slip: Otter, Dempsey, Schlegel 2000, section 5, fig. 6
mesh_oscillator.png   oscillator damped by mesh losses only: Maegi, Jacobson, Resev 1998, section 11, fig. 7

yawing_gearbox.png    gearbox on a yawing carrier, its moments on it: Schweiger, Otter 2003, section 6, fig. 17

Drivelines: configs/examples/two_blocks.toml, mesh_oscillator.toml, yawing_6hp26.toml (what the papers leave open is
stated there).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import torqueloop
from torqueloop.core.signals import Ramp, Sine, Step

EXAMPLES = Path(torqueloop.__file__).parent / "configs" / "examples"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder (default figures)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for draw in (two_blocks, mesh_oscillator, yawing_gearbox):
        print(draw(out))
    return 0


def plotter() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def two_blocks(out: Path) -> Path:
    """Forces and speeds; stuck faces are shaded."""
    sim = torqueloop.Simulation(torqueloop.load(EXAMPLES / "two_blocks.toml"), h=1e-3)
    r = sim.run(4.0, inputs={"u1.f": Sine(amplitude=0.8, f=0.4), "u2.f": Sine(amplitude=1.8, f=1.1)})
    figure, axes = plotter().subplots(4, 1, figsize=(8, 8), sharex=True, layout="constrained")
    axes[0].plot(r.time, r["u1.f"], label="u1")
    axes[0].plot(r.time, r["u2.f"], label="u2")
    axes[1].plot(r.time, r["face1.v_rel"], label="v1: block 1")
    axes[1].plot(r.time, r["face2.v_rel"], label="v2: block 2 on block 1")
    for axis, face in zip(axes[2:], ("face1", "face2"), strict=True):
        axis.plot(r.time, r[f"{face}.f"], label=f"friction of {face}")
        axis.fill_between(r.time, 0, 1, where=r[f"{face}.mode"] == 0, transform=axis.get_xaxis_transform(),
                          color="0.88", label="stuck")  # fmt: skip
        axis.axhline(1.25, color="0.7", linewidth=0.6)
        axis.axhline(-1.25, color="0.7", linewidth=0.6)
    for axis, label in zip(axes, ("force [N]", "speed [m/s]", "force [N]", "force [N]"), strict=True):
        axis.set_ylabel(label)
        axis.legend(loc="upper right", fontsize="small")
    axes[-1].set_xlabel("time [s]")
    figure.suptitle("Two blocks, breakaway/sliding force 1.25: stick-slip (1 ms steps)")
    return save(figure, out / "two_blocks.png")


def mesh_oscillator(out: Path) -> Path:
    """Speeds; loss power and relative power; force-pole offset; energy."""
    sim = torqueloop.Simulation(torqueloop.load(EXAMPLES / "mesh_oscillator.toml"), h=1e-3)
    r = sim.run(4.0)
    figure, axes = plotter().subplots(4, 1, figsize=(8, 9), sharex=True, layout="constrained")
    for k in (1, 2, 3, 4):
        axes[0].plot(r.time, r[f"FW{k}.w"], label=f"FW{k}", linewidth=0.9)
    relative = r["mesh.F"] * 0.04 * (r["FW1.w"] - r["FW3.w"])
    axes[1].plot(r.time, r["mesh.lossPower"], label="loss power")
    axes[1].plot(r.time, relative, label="relative power F*R_in*(w_in - w_c)", linewidth=0.6)
    # f = deltaR while F and the slip agree in sign, else -deltaR; 0 while the mesh holds
    offset = 3.0 * r["mesh.mode"] * (2.0 * (r["mesh.F"] >= 0.0) - 1.0)
    axes[2].plot(r.time, offset, label="force-pole offset f", linewidth=0.9)
    axes[3].plot(r.time, r["energy.kinetic"] + r["energy.potential"], label="energy")
    for axis, label in zip(axes, ("speed [rad/s]", "power [W]", "f [mm]", "energy [J]"), strict=True):
        axis.set_ylabel(label)
        axis.legend(loc="upper right", fontsize="small", ncols=4)
    axes[-1].set_xlabel("time [s]")
    figure.suptitle("Damped by the losses of one gear mesh only (1 ms steps)")
    return save(figure, out / "mesh_oscillator.png")


def yaw(exact: bool = True, roll: float = 0.0) -> torqueloop.Result:
    """The run of fig. 17: it begins in third gear, 10 Nm, yaw rate up to 2 rad/s, gear 3 to 4 at 4 s. Assumed: the
    rise within 2 s from the start, 10 bar, the change of pressures (B empties at 4 s while E fills). roll: rad/s about
    the shafts besides, which the paper has not.
    """
    driveline = torqueloop.load(EXAMPLES / "yawing_6hp26.toml")
    for name in ("rotor_in", "rotor_out", "mount"):
        driveline.replace(name, exact=exact)
    inputs = {
        "motor.tau": 10.0, "A.p": 10e5, "B.p": Step(offset=10e5, height=-10e5, startTime=4.0),
        "E.p": Step(height=3e5, startTime=4.0), "C.p": 0.0, "D.p": 0.0,
        "carrier.w_x": Sine(amplitude=roll, f=0.5), "carrier.w_y": Ramp(height=2.0, duration=2.0), "carrier.w_z": 0.0,
    }  # fmt: skip
    return torqueloop.Simulation(driveline, h=1e-3).run(8.0, inputs=inputs)


def yawing_gearbox(out: Path) -> Path:
    """Speeds; moment on the carrier in axes of the carrier and of the world."""
    r = yaw()
    t = r.time
    figure, axes = plotter().subplots(3, 1, figsize=(8, 8), sharex=True, layout="constrained")
    axes[0].plot(t, r["rotor_in.w"], label="rotor at the input")
    axes[0].plot(t, r["rotor_out.w"], label="rotor at the output")
    for axis in "xyz":
        axes[1].plot(t, r[f"carrier.t_{axis}"], label=f"{axis} of the carrier")
    # yaw angle: 0.5 t^2 up to 2 s, then at 2 rad/s
    angle = np.where(t < 2.0, 0.5 * t * t, 2.0 + 2.0 * (t - 2.0))
    axes[2].plot(t, np.cos(angle) * r["carrier.t_x"] + np.sin(angle) * r["carrier.t_z"], label="x of the world")
    axes[2].plot(t, np.cos(angle) * r["carrier.t_z"] - np.sin(angle) * r["carrier.t_x"], label="z of the world")
    for axis, label in zip(axes, ("speed [rad/s]", "moment [Nm]", "moment [Nm]"), strict=True):
        axis.set_ylabel(label)
        axis.legend(loc="upper left", fontsize="small", ncols=3)
    axes[-1].set_xlabel("time [s]")
    figure.suptitle("Lepelletier gearbox on a carrier yawing up to 2 rad/s, gear 3 to 4 at 4 s (1 ms steps)")
    return save(figure, out / "yawing_gearbox.png")


def save(figure: Any, file: Path) -> Path:
    figure.savefig(file, dpi=90)
    return file


if __name__ == "__main__":
    sys.exit(main())
