"""Random masses on ElastoGaps with exponents from 1 to 4, which a step of 1 ms resolves or not, masses up to 1e6:1,
with brakes on them and racks that drive clutches.

    python rt_tests/property/gap_trains.py [--count 300] [--first 0]

runs that many different ones with both orders and prints what the property test holds, and how often a step fell back.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from stiff_trains import Books, books, pressed_somehow

from torqueloop.core.components import (
    Clutch,
    ElastoGap,
    Force,
    IdealGearR2T,
    Inertia,
    Mass,
    TranslationalBrake,
    TranslationalFixed,
    TranslationalSpringDamper,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

#: s
H = 1e-3
#: decades of h*omega of the gaps, at the depth a hit would take them to
SWINGS = (-2.0, 3.0)


def gap_train(seed: int, order: int) -> tuple[Driveline, dict[str, Any]]:
    """One random driveline and its inputs; speeds up to 3 m/s, gaps of a few mm."""
    g = np.random.default_rng(seed)
    d = Driveline(f"gaps {seed}", order=order)
    n = int(g.integers(1, 5))
    m = 10.0 ** (g.uniform(-4.0, 2.0, n) if g.random() < 0.5 else g.uniform(-1.0, 1.0, n))
    inputs: dict[str, Any] = {}
    d.add("wall", TranslationalFixed())
    place = 0.0
    for k in range(n):
        reduced = float(m[k]) if k == 0 else float(m[k] * m[k - 1] / (m[k] + m[k - 1]))
        swing = 10.0 ** g.uniform(*SWINGS) / H
        # as deep as a hit with 1 m/s takes it, or some mm apart
        place += float(g.uniform(-min(1.0 / swing, 2e-3), 5e-3))
        d.add(f"M{k}", Mass(m=float(m[k]), s0=place, v0=float(g.uniform(-3.0, 3.0))))
        before = "wall.flange" if k == 0 else f"M{k - 1}.flange_b"
        if k == 0 or g.random() < 0.75:
            d.add(f"E{k}", _gap(g, reduced, swing))
        else:
            c = reduced * swing**2
            d.add(f"E{k}", TranslationalSpringDamper(c=c, d=float(g.uniform(0.0, 0.1)) * float(np.sqrt(c * reduced))))
        d.connect(before, f"E{k}.flange_a")
        d.connect(f"E{k}.flange_b", f"M{k}.flange_a")
        if g.random() < 0.4:
            d.add(f"b{k}", TranslationalBrake(fn_max=float(10.0 ** g.uniform(-1.0, 3.0)), mue_pos=1.0, peak=_peak(g)))
            d.connect(f"M{k}.flange_a", f"b{k}.flange_a")
            inputs[f"b{k}.f_normalized"] = pressed_somehow(g)
        if g.random() < 0.4:
            _rack(g, d, inputs, k)
    d.add("F", Force())
    d.connect("F.flange", f"M{n - 1}.flange_b")
    inputs["F.f"] = Sine(amplitude=float(10.0 ** g.uniform(-1.0, 3.0)), f=float(g.uniform(0.5, 20.0)),
                         offset=-float(10.0 ** g.uniform(-1.0, 3.0)))  # fmt: skip
    return d, inputs


def _rack(g: np.random.Generator, d: Driveline, inputs: dict[str, Any], k: int) -> None:
    """A pinion on mass k, and behind a clutch a wheel of any inertia."""
    d.add(f"R{k}", IdealGearR2T(ratio=10))
    d.add(f"P{k}", Inertia(J=float(10.0 ** g.uniform(-4.0, -1.0))))
    d.add(f"c{k}", Clutch(fn_max=float(10.0 ** g.uniform(-2.0, 2.0)), mue_pos=1.0, peak=_peak(g)))
    d.add(f"W{k}", Inertia(J=float(10.0 ** g.uniform(-5.0, 0.0)), w0=float(g.uniform(-30.0, 30.0))))
    d.connect(f"P{k}.flange_b", f"R{k}.flangeR")
    d.connect(f"R{k}.flangeT", f"M{k}.flange_b")
    d.connect(f"W{k}.flange_b", f"c{k}.flange_a")
    d.connect(f"c{k}.flange_b", f"P{k}.flange_a")
    inputs[f"c{k}.f_normalized"] = pressed_somehow(g)


def _gap(g: np.random.Generator, m: float, swing: float) -> ElastoGap:
    """A gap between parts of the reduced mass m, which swing with that angular frequency after a hit with 1 m/s."""
    n = float(g.choice([1.0, 1.5, 2.0, 3.0, g.uniform(1.01, 4.0)], p=[0.1, 0.3, 0.15, 0.2, 0.25]))
    # stiffness n*c*x^(n-1) at the depth that it goes to then
    c = m * swing**2 / n * swing ** (n - 1.0)
    d = float(g.choice([0.0, g.uniform(0.0, 2.0) * m * swing, m / H * 10.0 ** g.uniform(0.0, 2.5)], p=[0.3, 0.5, 0.2]))
    return ElastoGap(c=min(c, 1e13), d=d, n=n)


def _peak(g: np.random.Generator) -> float:
    return 1.0 if g.random() < 0.6 else float(g.uniform(1.05, 1.5))


def run(seed: int, order: int, steps: int) -> Books:
    """The energy of one random driveline over some steps."""
    d, inputs = gap_train(seed, order)
    return books(Simulation(d, h=H, kernel="generic").run(steps * H, inputs=inputs))


def main() -> None:
    """The table of the two orders."""
    parser = argparse.ArgumentParser(description="random masses on gaps with exponents")
    parser.add_argument("--count", type=int, default=300, help="how many different ones")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    options = parser.parse_args()
    seeds, steps = range(options.first, options.first + options.count), 100
    for order in (2, 4):
        runs = [run(seed, order, steps) for seed in seeds]
        total = {
            name: sum(r.counters[name] for r in runs) for name in ("events", "fallbacks", "refused", "negative_heat")
        }
        closing = sorted((r.residual / r.turned_over, seed) for r, seed in zip(runs, seeds, strict=True))
        print(
            f"order {order}: {len(runs)} drivelines, {sum(bool(np.isfinite(r.stored).all()) for r in runs)} finite; "
            f"{total['events']} events; energy closes to {closing[-1][0]:.1e} at worst (driveline {closing[-1][1]}), "
            f"{closing[len(runs) // 2][0]:.1e} in the middle; friction gives back "
            f"{max(0.0, *(r.given_back / r.turned_over for r in runs)):.1e} at most, {total['negative_heat']} counted; "
            f"{total['fallbacks']} of {len(runs) * steps} steps fell back, {total['refused']} trials refused"
        )


if __name__ == "__main__":
    main()
