"""Random drivelines whose springs a step of 1 ms resolves or not, with friction everywhere: chains and trees of
inertias joined by springs, clearances, clutches and dampers, with brakes, in pulses; h*omega from 0.01 to 1000.

    python rt_tests/property/stiff_trains.py [--count 500] [--first 0] [--split]

runs that many different ones with both orders and prints what the property test holds, and how often a step fell back.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.components import Brake, Clutch, Damper, ElastoBacklash, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Component, Driveline
from torqueloop.core.signals import Pulse, Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]
#: s
H = 1e-3
#: decades of h*omega of the springs
SWINGS = (-2.0, 3.0)


@dataclass(frozen=True)
class Books:
    """Energy of a run over time, J."""

    stored: Array
    #: by element: friction only
    friction: dict[str, Array]
    #: dampers and contacts
    dampers: Array
    work: Array
    counters: dict[str, int]

    @property
    def turned_over(self) -> float:
        """All energy that was stored or put in."""
        return float(self.stored.max() + np.abs(np.diff(self.work)).sum())

    @property
    def residual(self) -> float:
        """Largest energy that is missing, or too much."""
        total = self.stored + self.dampers + sum(self.friction.values(), np.zeros_like(self.stored)) - self.work
        return float(np.abs(total - total[0]).max())

    @property
    def given_back(self) -> float:
        """Largest heat that an element of friction has given back in one step."""
        return max((float(-np.diff(heat).min()) for heat in self.friction.values()), default=0.0)


def books(result: Result) -> Books:
    """The energy of a run."""
    names = result.names
    components = {name.rpartition(".")[0] for name in names}
    friction = {c: result[f"{c}.heat"] for c in components if f"{c}.heat" in result}
    dampers = sum((result[n] for n in names if n.endswith(".loss")), np.zeros(len(result)))
    work = sum((result[n] for n in names if n.endswith(".work")), np.zeros(len(result)))
    stored = result["energy.kinetic"] + result["energy.potential"]
    return Books(stored, friction, dampers, work, dict(result.counters))


def stiff_train(seed: int, order: int, split: bool = False) -> tuple[Driveline, dict[str, Any]]:
    """One random driveline and its inputs; start speeds up to 30 rad/s. split: each spring and damper is one of two in
    series, without an inertia between them."""
    g = np.random.default_rng(seed)
    more = np.random.default_rng([seed, 1])
    d = Driveline(f"stiff {seed}", order=order)
    n = int(g.integers(2, 9))
    J = 10.0 ** g.uniform(-3.0, 0.5, n)
    inputs: dict[str, Any] = {}
    for k in range(n):
        d.add(f"J{k}", Inertia(J=float(J[k]), w0=float(g.uniform(-30.0, 30.0))))
    for k in range(1, n):
        other = k - 1 if g.random() < 0.7 else int(g.integers(0, k))
        name = f"e{k}"
        d.add(name, _between(g, float(J[k] * J[other] / (J[k] + J[other]))))
        d.connect(f"J{other}.flange_b", f"{name}.flange_a")
        if split and isinstance(d.components[name], SpringDamper | Damper):
            name = _second(d, name, more)
        d.connect(f"{name}.flange_b", f"J{k}.flange_a")
    for k in range(n):
        if g.random() < 0.4:
            d.add(f"b{k}", Brake(fn_max=float(10.0 ** g.uniform(-1.0, 3.0)), mue_pos=1.0, peak=_peak(g)))
            d.connect(f"J{k}.flange_a", f"b{k}.flange_a")
    d.add("T", Torque())
    d.connect("T.flange", "J0.flange_a")
    inputs["T.tau"] = Sine(amplitude=float(10.0 ** g.uniform(-1.0, 2.0)), f=float(g.uniform(0.5, 20.0)))
    for name, component in d.components.items():
        if component.kind in ("Clutch", "Brake"):
            inputs[f"{name}.f_normalized"] = pressed_somehow(g)
    return d, inputs


def _peak(g: np.random.Generator) -> float:
    return 1.0 if g.random() < 0.6 else float(g.uniform(1.05, 1.5))


def _between(g: np.random.Generator, J: float) -> Component:
    """Spring, clearance, clutch or damper between two shafts with the reduced inertia J."""
    kind = g.choice(["spring", "clearance", "clutch", "damper"], p=[0.35, 0.2, 0.35, 0.1])
    swing = 10.0 ** g.uniform(*SWINGS) / H
    c = float(J * swing**2)
    # none, a damping ratio up to 1, or so much that the decay is far beyond the step
    d = float(g.choice([0.0, g.uniform(0.0, 2.0) * J * swing, J / H * 10.0 ** g.uniform(0.0, 2.5)], p=[0.3, 0.5, 0.2]))
    if kind == "clutch":
        return Clutch(fn_max=float(10.0 ** g.uniform(-1.0, 3.0)), mue_pos=1.0, peak=_peak(g))
    if kind == "damper":
        return Damper(d=d if d > 0.0 else J / H)
    if kind == "clearance":
        return ElastoBacklash(c=c, d=d, b=float(10.0 ** g.uniform(-4.0, -1.0)))
    return SpringDamper(c=c, d=d)


def _second(d: Driveline, first: str, g: np.random.Generator) -> str:
    """Another spring and damper behind one: up to a hundred times as stiff, or as soft; its name."""
    one = d.components[first]
    c, damping = (getattr(one, name, 0.0) for name in ("c", "d"))
    size = max(c * H, damping)
    name = f"{first}x"
    d.add(name, SpringDamper(c=size / H * 10.0 ** g.uniform(-2.0, 2.0), d=size * 10.0 ** g.uniform(-2.0, 2.0)))
    d.connect(f"{first}.flange_b", f"{name}.flange_a")
    return name


def pressed_somehow(g: np.random.Generator) -> Any:
    """Always, in pulses, or as a wave."""
    kind = int(g.integers(0, 3))
    if kind == 0:
        return float(g.uniform(0.2, 1.0))
    if kind == 1:
        return Pulse(amplitude=1.0, width=float(g.uniform(20.0, 80.0)), period=float(g.uniform(0.005, 0.05)))
    return Sine(amplitude=0.6, f=float(g.uniform(1.0, 30.0)), offset=0.3)


def run(seed: int, order: int, steps: int, split: bool = False) -> Books:
    """The energy of one random driveline over some steps."""
    d, inputs = stiff_train(seed, order, split)
    return books(Simulation(d, h=H, kernel="generic").run(steps * H, inputs=inputs))


def main() -> None:
    """The table of the two orders."""
    parser = argparse.ArgumentParser(description="random drivelines with springs a step resolves or not")
    parser.add_argument("--count", type=int, default=500, help="how many different ones")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--split", action="store_true", help="springs in two, without an inertia between them")
    options = parser.parse_args()
    seeds, steps = range(options.first, options.first + options.count), 100
    for order in (2, 4):
        runs = [run(seed, order, steps, options.split) for seed in seeds]
        total = {name: sum(r.counters[name] for r in runs) for name in ("events", "fallbacks", "refused")}
        finite = sum(bool(np.isfinite(r.stored).all()) for r in runs)
        closing = sorted(r.residual / r.turned_over for r in runs)
        back = max(r.given_back / r.turned_over for r in runs)
        print(
            f"order {order}: {len(runs)} drivelines, {finite} finite, {total['events']} events; "
            f"energy closes to {closing[-1]:.1e} at worst, {closing[len(runs) // 2]:.1e} in the middle; "
            f"friction gives back {max(back, 0.0):.1e} at most; {total['fallbacks']} of {len(runs) * steps} steps fell "
            f"back ({100.0 * total['fallbacks'] / (len(runs) * steps):.1f} %), {total['refused']} trials refused; "
            f"{sum(r.counters['fallbacks'] == 0 for r in runs)} drivelines without any"
        )


if __name__ == "__main__":
    main()
