"""Inputs that are not numbers, far too large, of the wrong sign, or not there at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torqueloop.core.components import Brake, Clutch, Inertia, LaminarClutch, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import SimulationError
from torqueloop.core.simulate.offline import Simulation

orders = pytest.mark.parametrize("order", [2, 4])
PACK: dict[str, Any] = {
    "faces": 4, "r_o": 0.1, "r_i": 0.08, "mue_pos": 0.1, "area": 0.01, "p_return": 5e4, "p_max": 2e6,
}  # fmt: skip
MU_CGEO_AREA = 0.1 * 4 * 0.09 * 0.01


def pair(order: int = 2) -> Driveline:
    """J1 (1 kg.m2, 10 rad/s) - clutch c (50 N.m) and plate pack k side by side - J2 (2 kg.m2); torque T on J1."""
    d = Driveline("pair", order=order)
    d.add("J1", Inertia(J=1.0, w0=10.0))
    d.add("J2", Inertia(J=2.0))
    d.add("c", Clutch(fn_max=100.0, mue_pos=0.5))
    d.add("k", LaminarClutch(tau_rise=0.01, tau_fall=0.01, **PACK))
    d.add("T", Torque())
    d.connect("J1.flange_b", "c.flange_a", "k.flange_a")
    d.connect("c.flange_b", "k.flange_b", "J2.flange_a")
    d.connect("T.flange", "J1.flange_a")
    return d


# --- not a number ---------------------------------------------------------------------------------------------------
def broken_at(when: float, value: float) -> Callable[[float], float]:
    """0 before `when`, then `value`."""
    return lambda t: 0.0 if t < when - 1e-9 else value


@orders
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["T.tau", "c.f_normalized", "k.p"])
@pytest.mark.parametrize("when", [0.0, 0.01])
def test_input_that_is_not_finite_stops_the_run_and_is_named(name: str, value: float, when: float, order: int) -> None:
    """Also while the element is not pressed and the value would have no effect on any speed."""
    with pytest.raises(SimulationError) as caught:
        Simulation(pair(order)).run(0.05, inputs={name: broken_at(when, value)})
    error = caught.value
    assert "pair" in str(error) and name in str(error)
    # the last good step is the one before the step whose inputs are broken
    last = max(0, round(when / 1e-3) - 1)
    assert error.step == last and error.time_s == pytest.approx(last * 1e-3)


@pytest.mark.parametrize("name", ["c.f_normalized", "k.p"])
def test_nan_while_the_element_is_closed_stops_the_run(name: str) -> None:
    closed: dict[str, Any] = {"c.f_normalized": 1.0, "k.p": 1e6}
    closed[name] = lambda t: (1.0 if name[0] == "c" else 1e6) if t < 0.02 - 1e-9 else np.nan
    with pytest.raises(SimulationError) as caught:
        Simulation(pair()).run(0.05, inputs=closed)
    assert caught.value.step == 19 and "pair" in str(caught.value)


def test_state_before_the_broken_step_can_be_gone_back_to() -> None:
    sim = Simulation(pair())
    sim.run(0.01, inputs={"c.f_normalized": 1.0})
    good, before = sim.state.copy(), sim.hash()
    with pytest.raises(SimulationError):
        sim.run(0.01, inputs={"T.tau": lambda t: np.nan})
    sim.restore(good)
    assert sim.hash() == before
    x = sim.run(0.5, inputs={"T.tau": 0.0})
    assert x["J1.w"][-1] + 2.0 * x["J2.w"][-1] == pytest.approx(10.0, rel=1e-12)
    assert x["J1.w"][-1] == pytest.approx(10.0 / 3.0, rel=1e-12)


# --- far too large --------------------------------------------------------------------------------------------------
@orders
def test_torque_of_1e30_accelerates_its_shaft_and_the_clutch_carries_what_it_can(order: int) -> None:
    x = Simulation(pair(order)).run(0.05, inputs={"T.tau": 1e30, "c.f_normalized": 1.0})
    assert x["J1.w"] == pytest.approx(10.0 + 1e30 * x.time, rel=1e-12)
    assert x["J2.w"] == pytest.approx(50.0 / 2.0 * x.time, rel=1e-12)
    assert x["c.heat"][-1] == pytest.approx(50.0 * 0.5 * 1e30 * 0.05**2, rel=1e-9)
    assert x.energy().relative_residual < 1e-12


@orders
def test_normal_force_of_1e30_locks(order: int) -> None:
    x = Simulation(pair(order)).run(0.05, inputs={"T.tau": 6.0, "c.f_normalized": 1e30})
    momentum = x["J1.w"] + 2.0 * x["J2.w"]
    assert np.abs(momentum - (10.0 + 6.0 * x.time)).max() < 1e-9
    assert x["J1.w"][1:] == pytest.approx(momentum[1:] / 3.0, rel=1e-9)
    assert -x["c.tau"][-1] == pytest.approx(4.0, rel=1e-9)
    # an impact: the two shafts come together inelastically
    assert x["c.heat"][-1] == pytest.approx(0.5 * 100.0 - 0.5 * 100.0 / 3.0, rel=1e-9)


@orders
def test_1e30_on_both_sides(order: int) -> None:
    x = Simulation(pair(order)).run(0.05, inputs={"T.tau": 1e30, "c.f_normalized": 1e30})
    assert x["J1.w"][-1] == pytest.approx(1e30 * 0.05 / 3.0, rel=1e-12)
    assert x["J2.w"][-1] == pytest.approx(1e30 * 0.05 / 3.0, rel=1e-12)
    assert -x["c.tau"][-1] == pytest.approx(2e30 / 3.0, rel=1e-9)


@orders
def test_pressure_of_1e30_is_the_supply_pressure(order: int) -> None:
    x = Simulation(pair(order)).run(0.2, inputs={"T.tau": 200.0, "k.p": 1e30})
    assert x["k.p"][-1] == pytest.approx(2e6, rel=1e-6)
    assert np.all(x["k.p"] <= 2e6)
    assert x["k.capacity"][-1] == pytest.approx(MU_CGEO_AREA * (2e6 - 5e4), rel=1e-6)


@orders
@pytest.mark.parametrize("name", ["c.f_normalized", "k.p"])
def test_negative_1e30_is_open(name: str, order: int) -> None:
    x = Simulation(pair(order)).run(0.05, inputs={name: -1e30})
    assert np.all(x["J1.w"] == 10.0) and not x["J2.w"].any()
    assert not x[f"{name[0]}.tau"].any() and np.all(x["k.p"] == 0.0)


# --- capacity zero --------------------------------------------------------------------------------------------------
@orders
def test_capacity_that_goes_to_zero_and_back(order: int) -> None:
    """cos over a whole period: 50, 0, less than 0 (open), 0, 50 N.m; J1 gives J2 what it loses."""
    x = Simulation(pair(order)).run(0.4, inputs={"c.f_normalized": lambda t: 0.1 * np.cos(2.0 * np.pi * t / 0.4)})
    assert np.abs(x["J1.w"] + 2.0 * x["J2.w"] - 10.0).max() < 1e-11
    open_now = (x.time > 0.1005) & (x.time < 0.2995)
    assert np.ptp(x["J1.w"][open_now]) == 0.0 and not x["c.capacity"][open_now].any()
    # integral of 5 cos over a quarter: 5*0.4/(2 pi); the same again in the last quarter
    passed = 2.0 * 5.0 * 0.4 / (2.0 * np.pi)
    assert 2.0 * x["J2.w"][-1] == pytest.approx(passed, rel=1e-4)


@orders
def test_brake_of_zero_force_under_torque(order: int) -> None:
    d = Driveline("zero", order=order)
    d.add("J", Inertia(J=0.5))
    d.add("b", Brake(fn_max=100.0, mue_pos=0.5))
    d.add("T", Torque())
    d.connect("J.flange_a", "b.flange_a", "T.flange")
    x = Simulation(d).run(0.1, inputs={"T.tau": 1e-9, "b.f_normalized": 0.0})
    assert x["J.w"][-1] == pytest.approx(1e-9 * 0.1 / 0.5, rel=1e-12)
    assert not x["b.heat"].any() and not x["b.tau"].any()
    # the smallest positive force there is holds up to its own limit only
    x = Simulation(d).run(0.1, inputs={"T.tau": 1e-9, "b.f_normalized": 5e-324})
    assert x["J.w"][-1] == pytest.approx(1e-9 * 0.1 / 0.5, rel=1e-12)
