"""Drivelines for the tests of degenerate input, built through the public API, and the facts checked on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.components import Brake, Clutch, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]

#: friction coefficients over |w_rel| that are hard in one way each
CURVES: dict[str, float | Table1D] = {
    "constant": 0.5,
    "rising": Table1D((0.0, 0.5, 1.0, 400.0), (0.02, 0.4, 0.5, 0.5)),
    "falling": Table1D((0.0, 1.0, 50.0, 400.0), (0.5, 0.45, 0.1, 0.05)),
    "none at rest": Table1D((0.0, 1.0, 400.0), (0.0, 0.5, 0.5)),
    "wavy": Table1D((0.0, 5.0, 10.0, 20.0, 40.0, 400.0), (0.3, 0.5, 0.1, 0.6, 0.05, 0.5)),
}


def chain(
    J: Sequence[float] | Array,
    w0: Sequence[float] | Array | None = None,
    *,
    fn: float | Sequence[float] = 1e4,
    mue: float | Table1D = 0.5,
    peak: float = 1.0,
    springs: dict[int, tuple[float, float]] | None = None,
    order: int | str = "auto",
) -> Driveline:
    """Shafts J0, J1, ... joined by clutches c0, c1, ... (springs where `springs` gives c, d); torque T on J0."""
    d = Driveline("chain", order=order)
    forces = [fn] * (len(J) - 1) if isinstance(fn, float) else list(fn)
    for k, inertia in enumerate(J):
        d.add(f"J{k}", Inertia(J=float(inertia), w0=0.0 if w0 is None else float(w0[k])))
    for k, force in enumerate(forces):
        if springs is not None and k in springs:
            d.add(f"c{k}", SpringDamper(c=springs[k][0], d=springs[k][1]))
        else:
            d.add(f"c{k}", Clutch(fn_max=float(force), mue_pos=mue, peak=peak))
        d.connect(f"J{k}.flange_b", f"c{k}.flange_a")
        d.connect(f"c{k}.flange_b", f"J{k + 1}.flange_a")
    d.add("T", Torque())
    d.connect("T.flange", "J0.flange_a")
    return d


def braked_shafts(w0: Sequence[float], *, J: float = 1.0, fn: float = 100.0, order: int | str = "auto") -> Driveline:
    """Shafts J0, J1, ... that have nothing to do with each other, each with a brake b0, ... and a torque t0, ..."""
    d = Driveline("braked shafts", order=order)
    for k, speed in enumerate(w0):
        d.add(f"J{k}", Inertia(J=J, w0=float(speed)))
        d.add(f"b{k}", Brake(fn_max=fn, mue_pos=1.0))
        d.add(f"t{k}", Torque())
        d.connect(f"J{k}.flange_a", f"b{k}.flange_a", f"t{k}.flange")
    return d


def pressed(d: Driveline, value: float = 1.0) -> dict[str, Any]:
    """The same normalized force for every clutch and brake."""
    return {f"{name}.f_normalized": value for name, c in d.components.items() if c.kind in ("Clutch", "Brake")}


@dataclass(frozen=True)
class Motion:
    """A run of a chain and what is conserved in it."""

    result: Result
    J: Array
    #: speeds of the shafts, shafts x samples
    w: Array

    @property
    def momentum(self) -> Array:
        """Angular momentum over time."""
        return np.asarray(self.J @ self.w)

    @property
    def momentum_scale(self) -> float:
        """Sum of |J w| at the start."""
        return float(self.J @ np.abs(self.w[:, 0]))

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy over time, from the kernel's books."""
        return self.result["energy.kinetic"] + self.result["energy.potential"]

    @property
    def kinetic(self) -> Array:
        """Kinetic energy from the speeds."""
        return np.asarray(0.5 * self.J @ self.w**2)


def run_chain(d: Driveline, duration: float, h: float = 1e-3, **inputs: Any) -> Motion:
    """Run with every clutch pressed (unless `inputs` says else: names with _ for the dot)."""
    wanted = pressed(d) | {name.replace("_", ".", 1): value for name, value in inputs.items()}
    result = Simulation(d, h=h).run(duration, inputs=wanted)
    J = np.array([c.J for c in d.components.values() if isinstance(c, Inertia)])
    w = np.array([result[f"{name}.w"] for name, c in d.components.items() if isinstance(c, Inertia)])
    return Motion(result, J, w)


def full_throttle(model: CompiledModel, seconds: float) -> Array:
    """Standing start and the shifts 1-2 and 2-3 under full throttle, pressures in steps, in SI units."""
    t = np.arange(round(seconds / 1e-3)) * 1e-3
    inputs = np.zeros((len(t), len(model.input_names)))
    script = {
        "C4.p": [(0.1, 15)], "C11.p": [(0.1, 15)], "C7.p": [(6, 5), (7, 12)], "C6.p": [(6.5, 6), (11, 0)],
        "C5.p": [(11, 4), (12, 12)],
    }  # fmt: skip
    for name, points in script.items():
        for start, bar in points:
            inputs[t >= start, model.input_index(name)] = bar * 1e5
    inputs[t >= 1.0, model.input_index("engine.pedal")] = 1.0
    return inputs
