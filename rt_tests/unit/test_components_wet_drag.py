"""Drag torque of an open wet clutch over its slip: the film's equations, its peak, runs against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rot_drive import drive

from torqueloop.core.components import ConstantSpeed, FixedTemperature, HeatCapacitor, Inertia, WetClutchDrag
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.simulate.offline import Simulation

integrate = pytest.importorskip("scipy.integrate", reason="the reference needs SciPy (extra `dev`)")

#: a pack of an automatic transmission: peak about 1 Nm at some 100 rad/s
PACK = {"gaps": 10, "r_o": 0.09, "r_i": 0.07, "h": 2e-4, "Q": 4e-5, "mu": 0.02}


def torque_at(slip: float, T: float = 313.15, **more: float) -> float:
    """Torque on flange_a at a constant slip, from the kernel."""
    d = drive(("a.flange", "x.flange_a"), ("x.flange_b", "b.flange"), ("x.heatPort", "oil.port"),
              a=ConstantSpeed(w_fixed=0.0), b=ConstantSpeed(w_fixed=slip), x=WetClutchDrag(**PACK, **more),
              oil=FixedTemperature(T=T))  # fmt: skip
    sim = Simulation(d)
    sim.step()
    return sim.output("x.tau")


def film(slip: float, T: float = 313.15, beta: float = 0.0) -> float:
    """The same by quadrature of the film's equations: radial flow by integrating the momentum over the gap."""
    p = PACK
    mu = p["mu"] * math.exp(-beta * (T - 313.15))
    # the centrifugal term (r*w*z/h)^2/r, weighted over the gap by the flow it drives: 3/10 of w^2*r
    z = np.linspace(0.0, 1.0, 2001)
    share = integrate.simpson(z**2 * _influence(z), x=z) / integrate.simpson(_influence(z), x=z)
    inertia, _ = integrate.quad(lambda r: 850.0 * share * r * slip**2, p["r_i"], p["r_o"])
    resistance, _ = integrate.quad(lambda r: 6.0 * mu / (math.pi * p["h"] ** 3 * r), p["r_i"], p["r_o"])
    full = inertia / resistance if slip else 0.0
    part = min(1.0, p["Q"] / p["gaps"] / full) if full else 1.0
    edge = math.sqrt(p["r_i"] ** 2 + part * (p["r_o"] ** 2 - p["r_i"] ** 2))
    sheared, _ = integrate.quad(lambda r: 2.0 * math.pi * r**3 * mu * slip / p["h"], p["r_i"], edge)
    return float(p["gaps"] * sheared)


def _influence(z: np.ndarray) -> np.ndarray:
    """Flow through the gap that a unit force at height z drives (no slip at both plates)."""
    return 0.5 * z * (1.0 - z)


@pytest.mark.parametrize("slip", [0.0, 1e-3, 5.0, -30.0, 60.0, 90.0, 120.0, -200.0, 800.0])
def test_drag_torque_is_that_of_the_film(slip: float) -> None:
    assert torque_at(slip) == pytest.approx(film(slip), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("T", [293.15, 363.15])
def test_warm_oil_drags_less_and_breaks_off_earlier(T: float) -> None:
    for slip in (40.0, 300.0):
        assert torque_at(slip, T=T, beta=0.03) == pytest.approx(film(slip, T, 0.03), rel=1e-6)


def test_the_peak_is_at_the_slip_the_feed_can_fill() -> None:
    part = WetClutchDrag(**PACK)
    top = torque_at(part.w_c)
    assert top == pytest.approx(part.d * part.w_c, rel=1e-12)
    assert torque_at(0.99 * part.w_c) == pytest.approx(0.99 * top, rel=1e-12)
    assert torque_at(1.01 * part.w_c) < top and torque_at(3.0 * part.w_c) < 0.4 * top
    # twice the feed: the peak moves by sqrt(2)
    assert WetClutchDrag(**{**PACK, "Q": 8e-5}).w_c == pytest.approx(math.sqrt(2.0) * part.w_c)


def coasting(order: int, **more: float | bool) -> Driveline:
    d = drive(("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), ("x.heatPort", "oil.port"),
              a=Inertia(J=0.02), b=Inertia(J=0.01, w0=300.0), x=WetClutchDrag(**PACK, **more),
              oil=HeatCapacitor(C=20.0, T0=313.15))  # fmt: skip
    d.order = order
    return d


@pytest.mark.parametrize("order", [2, 4])
def test_two_shafts_are_dragged_together_through_the_peak_as_scipy_says(order: int) -> None:
    result = Simulation(coasting(order), h=2.5e-4).run(3.0)
    part = WetClutchDrag(**PACK)
    b = (PACK["r_o"] ** 2 - PACK["r_i"] ** 2) / (PACK["r_o"] ** 2 + PACK["r_i"] ** 2)

    def slope(t: float, w: list[float]) -> list[float]:
        slip, x = w[1] - w[0], part.w_c / max(abs(w[1] - w[0]), 1e-9)
        tau = part.d * slip if x >= 1.0 else math.copysign(part.d * part.w_c * ((1.0 - b) * x + b * x**3), slip)
        return [tau / 0.02, -tau / 0.01]

    found = integrate.solve_ivp(slope, (0.0, 3.0), [0.0, 300.0], method="DOP853", rtol=1e-11, atol=1e-11,
                                t_eval=result.time[::100], max_step=2e-3)  # fmt: skip
    assert result["x.w_rel"][0] > 2.0 * part.w_c and result["x.w_rel"][-1] < 0.5 * part.w_c, "it goes over the peak"
    # of a range of 200 rad/s; the peak is a kink that no step is cut at: second order there
    assert np.abs(result["b.w"][::100] - found.y[1]).max() < 1e-4
    assert np.abs(result["a.w"][::100] - found.y[0]).max() < 1e-4
    assert abs(result.energy().relative_residual) < 1e-9
    assert result["oil.T"][-1] == pytest.approx(313.15 + result["x.heat"][-1] / 20.0, abs=1e-6)
    assert np.diff(result["x.heat"]).min() >= 0.0


def test_the_input_open_scales_the_torque() -> None:
    sim = Simulation(coasting(2, openInput=True))
    assert sim.model.input_names == ("x.open",)
    result = sim.run(0.2, inputs={"x.open": lambda t: 0.0 if t < 0.1 else 0.5})
    assert result["x.tau"][50] == 0.0 and result["b.w"][99] == 300.0
    assert result["x.tau"][-1] == pytest.approx(0.5 * film(float(result["x.w_rel"][-1])), rel=1e-6)


def test_radii_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RangeError, match=r"r_o = 0\.06 is out of range in \[WetClutchDrag\]; allowed: > r_i = 0\.07 m"):
        WetClutchDrag(**{**PACK, "r_o": 0.06})
