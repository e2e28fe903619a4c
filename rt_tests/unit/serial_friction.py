"""Friction in series with springs and dampers, no inertia between: drivelines, and their solution by SciPy.

a (J 0.5) - clutch - m - spring, damper - b (J 1.2)        m has no inertia; torques from outside act on a and b

stuck:    x' = w_a - w_m = 0,   y = phi_m - phi_b,   tau = c y + d y'
sliding:  tau = s cap, s = sign(w_a - w_m):   d > 0: y' = (s cap - c y)/d      d = 0: y = s cap/c
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from torqueloop.core.components import Brake, Clutch, IdealGear, Inertia, LaminarClutch, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Sine
from torqueloop.core.simulate.results import Result

Array = np.ndarray
J_A, J_B = 0.5, 1.2
FREQUENCY = 3.1


@dataclass(frozen=True)
class Case:
    c: float = 200.0
    d: float = 0.0
    peak: float = 1.0
    #: N.m: amplitude of the torque on a, capacity in the mean, amplitude of the capacity
    drive: float = 30.0
    capacity: float = 12.0
    swing: float = 0.0
    w0: float = 0.0

    def torque(self, t: float) -> float:
        return self.drive * math.sin(2.0 * math.pi * FREQUENCY * t)

    def cap(self, t: float) -> float:
        return self.capacity + self.swing * math.sin(2.0 * math.pi * 2.3 * t)

    def rate(self, t: float) -> float:
        return self.swing * 2.0 * math.pi * 2.3 * math.cos(2.0 * math.pi * 2.3 * t)


def driveline(case: Case, order: int, turned: bool = False) -> Driveline:
    """turned: the spring is on the side of a."""
    d = Driveline("clutch with torsion damper", order=order)
    d.add("a", Inertia(J=J_A, w0=case.w0, phi0=0.0))
    d.add("b", Inertia(J=J_B, w0=0.0, phi0=0.0))
    d.add("k", Clutch(fn_max=1.0, mue_pos=1.0, peak=case.peak))
    d.add("s", SpringDamper(c=case.c, d=case.d))
    d.add("t", Torque())
    first, second = ("s", "k") if turned else ("k", "s")
    d.connect("t.flange", "a.flange_a")
    d.connect("a.flange_b", f"{first}.flange_a")
    d.connect(f"{first}.flange_b", f"{second}.flange_a")
    d.connect(f"{second}.flange_b", "b.flange_a")
    return d


def inputs(case: Case) -> dict[str, object]:
    capacity = Sine(amplitude=case.swing, f=2.3, offset=case.capacity)
    return {
        "t.tau": Sine(amplitude=case.drive, f=FREQUENCY),
        "k.f_normalized": capacity if case.swing else case.capacity,
    }


class Reference:
    """The motion at the times asked for: w_a, w_b, torque of the clutch, mode; and its heat."""

    def __init__(self, case: Case, times: Array) -> None:
        self.case = case
        y = np.array([0.0, case.w0, 0.0, 0.0, 0.0, 0.0])  # phi_a, w_a, phi_b, w_b, twist of the spring, heat
        mode = 0
        if case.d > 0.0 and abs(case.d * case.w0) > case.peak * case.cap(0.0):
            mode = 1 if case.w0 > 0.0 else -1
        t, end = 0.0, float(times[-1])
        rows: list[Array] = [self._row(0.0, y, mode)]
        self.events = 0
        while t < end:
            guards = self._guards(mode)
            found = solve_ivp(
                lambda t, y, mode=mode: self._rates(t, y, mode), (t, end), y, method="DOP853", rtol=1e-12, atol=1e-13,
                events=guards, t_eval=None, dense_output=True, max_step=2e-3,
            )  # fmt: skip
            last = float(found.t[-1])
            rows += [self._row(at, found.sol(at), mode) for at in times if t < at <= last]
            t, y = last, found.y[:, -1].copy()
            if found.status == 1:
                self.events += 1
                mode, y = self._after(t, y, mode)
        self.w_a, self.w_b, self.tau, self.heat, self.mode = np.array(rows).T

    def _slip(self, t: float, y: Array, mode: int) -> float:
        c = self.case
        twisting = (mode * c.cap(t) - c.c * y[4]) / c.d if c.d else mode * c.rate(t) / c.c
        return y[1] - y[3] - twisting

    def _torque(self, t: float, y: Array, mode: int) -> float:
        return mode * self.case.cap(t) if mode else self.case.c * y[4] + self.case.d * (y[1] - y[3])

    def _rates(self, t: float, y: Array, mode: int) -> list[float]:
        tau, slip = self._torque(t, y, mode), self._slip(t, y, mode) if mode else 0.0
        return [y[1], (self.case.torque(t) - tau) / J_A, y[3], tau / J_B, y[1] - y[3] - slip, tau * slip]

    def _guards(self, mode: int) -> list[Callable[[float, Array], float]]:
        def limit(t: float, y: Array) -> float:
            return self.case.peak * self.case.cap(t) - abs(self._torque(t, y, 0))

        def slip(t: float, y: Array) -> float:
            return mode * self._slip(t, y, mode)

        guard = slip if mode else limit
        guard.terminal, guard.direction = True, -1.0  # type: ignore[attr-defined]
        return [guard]

    def _after(self, t: float, y: Array, mode: int) -> tuple[int, Array]:
        if mode:
            return 0, y
        mode = 1 if self._torque(t, y, 0) > 0.0 else -1
        if not self.case.d:
            new = mode * self.case.cap(t) / self.case.c
            y[5] += 0.5 * self.case.c * (y[4] ** 2 - new**2)
            y[4] = new
        return mode, y

    def _row(self, t: float, y: Array, mode: int) -> Array:
        return np.array([y[1], y[3], self._torque(t, y, mode), y[5], mode])


def energy_left_open(run: Result) -> float:
    """Range of stored energy, heat and minus the work from outside, of all that has been turned over."""
    heat = [run[name] for name in run.model.output_names if name.endswith((".heat", ".loss"))]
    stored = run["energy.kinetic"] + run["energy.potential"]
    return float(np.ptp(stored + np.sum(heat, axis=0) - run["t.work"]) / (stored.max() + sum(h[-1] for h in heat)))


def stepped(order: int, d: float, J_m: float = 0.0) -> tuple[Driveline, dict[str, object]]:
    """a - laminar clutch whose pressure jumps - gear - m - spring, damper - b - spring, damper - e with a brake."""
    line = Driveline("stepped", order=order)
    line.add("a", Inertia(J=J_A, w0=8.0, phi0=0.0))
    line.add("b", Inertia(J=J_B, phi0=0.0))
    line.add("e", Inertia(J=0.1))
    line.add("k", LaminarClutch(cgeo=0.1, mue_pos=0.1, area=0.01, p_return=1e5, tau_rise=0.01, tau_fall=0.01, peak=1.1))
    line.add("g", IdealGear(ratio=1.5))
    line.add("s", SpringDamper(c=200.0, d=d))
    line.add("r", SpringDamper(c=300.0, d=0.5))
    line.add("h", Brake(fn_max=1.0, mue_pos=1.0, peak=1.1))
    line.add("t", Torque())
    line.connect("t.flange", "a.flange_a")
    line.connect("a.flange_b", "k.flange_a")
    line.connect("k.flange_b", "g.flange_a")
    line.connect("g.flange_b", "s.flange_a")
    line.connect("s.flange_b", "b.flange_a")
    line.connect("b.flange_b", "r.flange_a")
    line.connect("r.flange_b", "h.flange_a", "e.flange_a")
    if J_m:
        line.add("m", Inertia(J=J_m))
        line.connect("m.flange_a", "g.flange_b")
    return line, {
        "t.tau": Sine(amplitude=30.0, f=FREQUENCY),
        "k.p": Pulse(amplitude=3e5, width=50.0, period=0.3, startTime=0.05),
        "h.f_normalized": Pulse(amplitude=20.0, width=30.0, period=0.4, startTime=0.1),
    }
