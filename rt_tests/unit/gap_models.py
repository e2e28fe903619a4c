"""Masses that bounce on ElastoGaps with an exponent: as a driveline, and integrated by SciPy phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from torqueloop.core.components import ElastoGap, Force, Mass, TranslationalFixed
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]
TOL = 1e-12


@dataclass(frozen=True)
class Bounce:
    """Two masses, one above the other, that fall on a floor: gaps floor-lower and lower-upper with the force c*x^n."""

    n: float
    #: N.s/m
    d: float
    #: N/m^n
    c: tuple[float, float]
    #: kg
    m: tuple[float, float] = (1.0, 0.3)
    #: N, on each
    weight: tuple[float, float] = (-9.81, -0.3 * 9.81)
    #: m: where they touch is 0 and 0
    s: tuple[float, float] = (0.02, 0.05)
    v: tuple[float, float] = (-1.0, -0.5)

    def driveline(self, order: int) -> Driveline:
        d = Driveline("bounce", order=order)
        d.add("floor", TranslationalFixed())
        d.add("E0", ElastoGap(c=self.c[0], d=self.d, n=self.n))
        d.add("M0", Mass(m=self.m[0], s0=self.s[0], v0=self.v[0]))
        d.add("E1", ElastoGap(c=self.c[1], d=self.d, n=self.n))
        d.add("M1", Mass(m=self.m[1], s0=self.s[1], v0=self.v[1]))
        for k in range(2):
            d.add(f"F{k}", Force())
            d.connect(f"F{k}.flange", f"M{k}.flange_a")
        d.connect("floor.flange", "E0.flange_a")
        d.connect("E0.flange_b", "M0.flange_a")
        d.connect("M0.flange_b", "E1.flange_a")
        d.connect("E1.flange_b", "M1.flange_a")
        return d

    def run(self, order: int, h: float, stop: float, kernel: str = "generic") -> Result:
        inputs = {f"F{k}.f": self.weight[k] for k in range(2)}
        return Simulation(self.driveline(order), h=h, kernel=kernel).run(stop, inputs=inputs)

    # --- the law, once more ------------------------------------------------------------------------------------------
    def gap(self, k: int, y: Array) -> tuple[float, float]:
        """Length of gap k (< 0 in contact) and its rate."""
        return (y[0], y[2]) if k == 0 else (y[1] - y[0], y[3] - y[2])

    def push(self, k: int, y: Array, phase: int) -> float:
        """Force that drives the flanges of gap k apart; phase 0 apart, 1 spring and damper, 2 limited, 3 no force."""
        x, w = self.gap(k, y)
        spring = self.c[k] * np.sign(-x) * abs(x) ** self.n
        return (0.0, spring - self.d * w, 2.0 * spring, 0.0)[phase]

    def ends(self, k: int, y: Array, phase: int) -> list[tuple[float, int]]:
        """What falls to 0 at the ends of a phase of gap k, and the phase that follows."""
        x, w = self.gap(k, y)
        spring, damper = self.c[k] * np.sign(-x) * abs(x) ** self.n, -self.d * w
        if phase == 0:
            return [(x, 2 if self.d > 0.0 else 1)]
        if self.d == 0.0:
            return [(-x, 0)]
        if phase == 1:
            return [(-x, 0), (spring - damper, 2), (spring + damper, 3)]
        return [(damper - spring, 1), (-x, 0)] if phase == 2 else [(-x, 0), (-spring - damper, 1)]

    def reference(self, times: Sequence[float]) -> tuple[Array, int]:
        """[s0, s1, v0, v1] at the times, and how many phases that took."""
        y, t, phases, out, changes = np.array([*self.s, *self.v]), 0.0, [0, 0], [], 0
        times = list(times)

        def rate(_t: float, y: Array) -> Array:
            p0, p1 = self.push(0, y, phases[0]), self.push(1, y, phases[1])
            return np.array([y[2], y[3], (p0 - p1 + self.weight[0]) / self.m[0], (p1 + self.weight[1]) / self.m[1]])

        while times:
            events, follows = [], []
            for k in range(2):
                for j, (_, then) in enumerate(self.ends(k, y, phases[k])):

                    def event(_t: float, y: Array, k: int = k, j: int = j) -> float:
                        return self.ends(k, y, phases[k])[j][0]

                    event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
                    events.append(event)
                    follows.append((k, then))
            end = times[-1]
            sol = solve_ivp(
                rate,
                (t, end),
                y,
                method="DOP853",
                rtol=TOL,
                atol=1e-14,
                events=events,
                dense_output=True,
                max_step=2e-3,
            )
            t = sol.t[-1]
            while times and times[0] <= t:
                out.append(sol.sol(times.pop(0)))
            y = sol.y[:, -1]
            hit = [j for j, found in enumerate(sol.t_events) if len(found)]
            if not hit:
                break
            changes += 1
            for j in hit:
                k, then = follows[j]
                phases[k] = then
        return np.array(out), changes
