"""Eddy-current brakes that are strong for what they brake: heat never falls in any step, and the order is kept.

The reference is the closed form of J w' = -2 tau x/(1 + x^2), x = w/wn:

    ln(w/w0) + (w^2 - w0^2)/(2 wn^2) = -2 tau t/(J wn)
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from torqueloop.core.components import EddyCurrentTorque, FixedTemperature, HeatCapacitor, Inertia, ThermalConductor
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result


def braked(J: float, tau: float, wn: float, w0: float, order: int, h: float, duration: float) -> Result:
    d = Driveline("brake", order=order)
    d.add("a", Inertia(J=J, phi0=0.0, w0=w0))
    d.add("e", EddyCurrentTorque(tau_nominal=tau, w_nominal=wn))
    d.connect("a.flange_b", "e.flange")
    return Simulation(d, h=h).run(duration)


def speed(J: float, tau: float, wn: float, w0: float, t: float) -> float:
    def missing(w: float) -> float:
        return math.log(w / w0) + (w * w - w0 * w0) / (2.0 * wn * wn) + 2.0 * tau * t / (J * wn)

    return float(brentq(missing, 1e-12 * w0, w0, xtol=1e-14, rtol=1e-14))


@pytest.mark.parametrize("order", [2, 4])
def test_heat_never_falls_and_is_what_the_inertia_loses(order: int) -> None:
    """1e-4 .. 10 kg.m2, 1 .. 1000 N.m at 1 .. 300 rad/s: up to 1e5 times as strong as a step of 1 ms resolves."""
    rng = np.random.default_rng(0)
    unsolved = 0
    for _ in range(100):
        J, tau = 10.0 ** rng.uniform(-4, 1), 10.0 ** rng.uniform(0, 3)
        wn, w0 = 10.0 ** rng.uniform(0, 2.5), rng.uniform(1, 1000)
        run = braked(J, tau, wn, w0, order, 1e-3, 0.3)
        heat, energy = np.asarray(run["e.heat"]), 0.5 * J * np.asarray(run["a.w"]) ** 2
        assert np.diff(heat).min() >= -1e-13 * energy[0], (J, tau, wn, w0)
        np.testing.assert_allclose(heat + energy, energy[0], rtol=1e-10)
        unsolved += run.counters["fallbacks"]
    assert unsolved <= 1


@pytest.mark.parametrize("order", [2, 4])
def test_the_order_is_kept(order: int) -> None:
    J, tau, wn, w0, end = 0.5, 40.0, 60.0, 120.0, 0.64
    exact = speed(J, tau, wn, w0, end)
    errors = [abs(float(braked(J, tau, wn, w0, order, h, end)["a.w"][-1]) - exact) for h in (64e-3, 32e-3, 16e-3)]
    slopes = [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]
    assert min(slopes) > order - 0.2, errors


@pytest.mark.parametrize("order", [2, 4])
def test_a_brake_that_heats_itself_is_of_the_second_order(order: int) -> None:
    """Temperatures advance by the trapezoidal rule with the heat of a step, whatever the order of the motion: w_nominal
    follows the disc. Reference: DOP853 on w, T."""
    J, tau, wn, w0, alpha, C, G, T0, end = 0.5, 40.0, 60.0, 120.0, 0.004, 8.0, 20.0, 293.15, 0.64

    def rates(t: float, y: np.ndarray) -> list[float]:
        x = y[0] / (wn * (1.0 + alpha * (y[1] - T0)))
        brakes = 2.0 * tau * x / (1.0 + x * x)
        return [-brakes / J, (brakes * y[0] - G * (y[1] - T0)) / C]

    exact = solve_ivp(rates, (0.0, end), [w0, T0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for h in (16e-3, 8e-3, 4e-3):
        d = Driveline("brake", order=order)
        d.add("a", Inertia(J=J, w0=w0))
        d.add("e", EddyCurrentTorque(tau_nominal=tau, w_nominal=wn, TRef=T0, alpha20=alpha))
        d.add("disc", HeatCapacitor(C=C, T0=T0))
        d.add("air", FixedTemperature(T=T0))
        d.add("G", ThermalConductor(G=G))
        d.connect("a.flange_b", "e.flange")
        d.connect("e.heatPort", "disc.port", "G.port_a")
        d.connect("G.port_b", "air.port")
        run = Simulation(d, h=h).run(end)
        errors.append([abs(run["a.w"][-1] - exact[0]) / w0, abs(run["disc.T"][-1] - exact[1]) / (exact[1] - T0)])
    assert max(errors[2]) < 1e-4, errors
    for one in np.transpose(errors):
        assert math.log2(one[0] / one[2]) > 3.5, errors


@pytest.mark.parametrize("order", [2, 4])
def test_each_of_two_brakes_has_its_own_values(order: int) -> None:
    brakes = {"1": (0.5, 40.0, 60.0, 120.0), "2": (0.2, 9.0, 25.0, 70.0)}
    d = Driveline("brakes", order=order)
    for name, (J, tau, wn, w0) in brakes.items():
        d.add(f"a{name}", Inertia(J=J, phi0=0.0, w0=w0))
        d.add(f"e{name}", EddyCurrentTorque(tau_nominal=tau, w_nominal=wn))
        d.connect(f"a{name}.flange_b", f"e{name}.flange")
    run = Simulation(d, h=1e-4).run(0.3)
    for name, (J, tau, wn, w0) in brakes.items():
        assert float(run[f"a{name}.w"][-1]) == pytest.approx(speed(J, tau, wn, w0, 0.3), rel=1e-6)
