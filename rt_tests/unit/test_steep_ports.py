"""Torques of the speed so steep that a step with them at predicted speeds is unstable: resistances, engines at their
limiter, converters with a light turbine, drags of wet clutches, eddy-current brakes.

Reference: SciPy's Radau with tight tolerances on the same equations, written by hand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from torqueloop.core.components import (
    Clutch,
    EddyCurrentTorque,
    Engine,
    HeatCapacitor,
    Inertia,
    LockUpTC,
    LossyGear,
    QuadraticSpeedDependentTorque,
    SpringDamper,
    Torque,
    WetClutchDrag,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

H = 1e-3
orders = pytest.mark.parametrize("order", [2, 4])
Array = np.ndarray


def radau(rates: Callable[[float, Array], list[float]], start: list[float], t: Array) -> Array:
    """States at the times t."""
    return np.asarray(
        solve_ivp(rates, (0.0, t[-1]), start, method="Radau", rtol=1e-10, atol=1e-12, t_eval=t, max_step=H).y
    )


def solved(run: Result) -> None:
    assert run.counters["steep_unsolved"] == run.counters["fallbacks"] == 0
    assert run.energy().relative_residual <= 1e-8


@orders
@pytest.mark.parametrize("product", [1.0, 10.0, 100.0, 1000.0])
def test_a_shaft_that_a_resistance_brakes_comes_down_and_settles(product: float, order: int) -> None:
    """J w' = T - c w^2 from far above the speed of balance; product: h times the slope at the start times 1/J."""
    J, start, load = 0.01, 300.0, 0.2
    c = product * J / (2.0 * start * H)
    d = Driveline("resisted", order=order)
    d.add("J", Inertia(J=J, w0=start))
    d.add("R", QuadraticSpeedDependentTorque(tau_nominal=-c, w_nominal=1.0, TorqueDirection=False))
    d.add("T", Torque())
    d.connect("R.flange", "T.flange", "J.flange_a")
    run = Simulation(d, h=H).run(0.5, inputs={"T.tau": load})
    t = np.arange(501) * H
    w = radau(lambda _, y: [(load - c * y[0] * abs(y[0])) / J], [start], t)[0]
    error = np.abs(run["J.w"] - w)
    # the step in which most of the speed goes away, what is left of it 10 ms later, and the balance
    assert error.max() <= (0.07 if order == 2 else 0.02) * start
    assert error[10:].max() <= 1e-3 * start
    assert error[-1] <= 1e-5 * np.sqrt(load / c)
    assert abs(run["R.tau"][-1] + c * w[-1] ** 2) <= 3e-5 * load
    assert run["J.w"].min() >= -0.01 * start
    solved(run)


def limiter(w: Array) -> Array:
    return np.interp(w, [0.0, 600.0, 602.0, 700.0], [200.0, 200.0, -50.0, -50.0])


@orders
@pytest.mark.parametrize("J", [0.2, 0.02, 0.002])
def test_an_engine_runs_into_its_limiter(J: float, order: int) -> None:
    """Its torque falls by 250 Nm within 2 rad/s: h slope/J is 0.6, 6 and 62."""
    d = Driveline("limited", order=order)
    d.add("E", Engine(J=J, wot=[[0.0, 200.0], [600.0, 200.0], [602.0, -50.0], [700.0, -50.0]],
                      drag=[[0.0, -50.0], [700.0, -50.0]], w0=550.0))  # fmt: skip
    d.add("T", Torque())
    d.connect("T.flange", "E.flange")
    run = Simulation(d, h=H).run(0.4, inputs={"E.pedal": 1.0, "T.tau": Sine(amplitude=20.0, f=5.0)})
    t = np.arange(401) * H
    w = radau(lambda t, y: [(float(limiter(y[0])) + 20.0 * np.sin(10.0 * np.pi * t)) / J], [550.0], t)[0]
    error = np.abs(run["E.w"] - w)
    assert error[200:].max() <= (3e-3 if order == 2 else 2e-5)
    assert np.abs(run["E.tau"] - limiter(w))[200:].max() <= (0.4 if order == 2 else 3e-3)
    solved(run)


MP = [[0.0, 4e-3], [0.5, 3.4e-3], [0.8, 2.3e-3], [0.95, 1e-3], [1.0, 0.0]]
MU = [[0.0, 2.0], [0.85, 1.0], [1.0, 1.0]]
COAST = [[0.0, 4e-3], [0.9, 2.7e-3], [0.96, 4e-4], [1.0, 0.0]]


def converter(wp: float, wt: float) -> tuple[float, float]:
    """Torques on pump and turbine."""
    mp, mu, coast = (np.array(x).T for x in (MP, MU, COAST))
    if wt <= wp:
        nu = max(wt / wp, 0.0)
        tp = float(np.interp(nu, *mp)) * wp * wp
        return -tp, float(np.interp(nu, *mu)) * tp
    tt = -float(np.interp(max(wp / wt, 0.0), *coast)) * wt * wt
    return -0.9 * tt, tt


@orders
@pytest.mark.parametrize("J", [0.05, 5e-3, 5e-4])
def test_a_light_turbine_follows_its_pump(J: float, order: int) -> None:
    d = Driveline("converter", order=order)
    d.add("P", Inertia(J=0.3, w0=200.0))
    d.add("C", LockUpTC(mp=MP, mu=MU, coast=COAST, coast_ratio=0.9))
    d.add("T", Inertia(J=J, w0=20.0))
    d.add("load", Torque())
    d.connect("P.flange_b", "C.pump")
    d.connect("C.turbine", "T.flange_a")
    d.connect("T.flange_b", "load.flange")
    run = Simulation(d, h=H).run(0.4, inputs={"load.tau": Sine(amplitude=30.0, f=4.0)})

    def rates(t: float, y: Array) -> list[float]:
        pump, turbine = converter(y[0], y[1])
        return [pump / 0.3, (turbine + 30.0 * np.sin(8.0 * np.pi * t)) / J]

    t = np.arange(401) * H
    reference = radau(rates, [200.0, 20.0], t)
    for name, w, limit in zip("PT", reference, ((0.03, 0.015), (0.2, 0.025)), strict=True):
        assert np.abs(run[f"{name}.w"] - w)[20:].max() <= limit[order // 2 - 1]
    solved(run)


@orders
@pytest.mark.parametrize("J", [1e-2, 1e-3, 1e-4])
def test_the_drag_of_a_wet_clutch_takes_a_light_part_along(J: float, order: int) -> None:
    drag = WetClutchDrag(gaps=10, r_o=0.09, r_i=0.07, h=1.5e-4, Q=2e-5, mu=0.3)
    d = Driveline("drag", order=order)
    d.add("a", Inertia(J=0.5, w0=100.0))
    d.add("D", drag)
    d.add("b", Inertia(J=J))
    d.add("T", Torque())
    d.connect("a.flange_b", "D.flange_a")
    d.connect("D.flange_b", "b.flange_a")
    d.connect("b.flange_b", "T.flange")
    run = Simulation(d, h=H).run(0.3, inputs={"T.tau": Sine(amplitude=5.0, f=4.0)})

    def torque(w: float) -> float:
        if abs(w) <= drag.w_c:
            return drag.d * w
        x = drag.w_c / abs(w)
        b = (drag.r_o**2 - drag.r_i**2) / (drag.r_o**2 + drag.r_i**2)
        return float(np.sign(w) * drag.d * drag.w_c * ((1.0 - b) * x + b * x**3))

    t = np.arange(301) * H
    reference = radau(
        lambda t, y: [-torque(y[0] - y[1]) / 0.5, (torque(y[0] - y[1]) + 5.0 * np.sin(8.0 * np.pi * t)) / J],
        [100.0, 0.0], t,
    )  # fmt: skip
    for name, w, limit in zip("ab", reference, ((2e-3, 1e-5), (0.06, 4e-4)), strict=True):
        assert np.abs(run[f"{name}.w"] - w)[20:].max() <= limit[order // 2 - 1]
    solved(run)


@orders
def test_the_order_is_kept(order: int) -> None:
    """h slope/J from 4 (at 4 ms) down to 0.5, beside a spring, with a smooth load."""
    J, c = 0.05, 0.5

    def run(h: float) -> float:
        d = Driveline("ordered", order=order)
        d.add("a", Inertia(J=J, w0=50.0))
        d.add("R", QuadraticSpeedDependentTorque(tau_nominal=-c, w_nominal=1.0, TorqueDirection=False))
        d.add("T", Torque())
        d.add("k", SpringDamper(c=400.0, d=2.0))
        d.add("b", Inertia(J=0.3, w0=50.0))
        d.connect("R.flange", "T.flange", "a.flange_a")
        d.connect("a.flange_b", "k.flange_a")
        d.connect("k.flange_b", "b.flange_a")
        signal = Sine(amplitude=300.0, f=3.0, offset=1200.0)
        return float(Simulation(d, h=h).run(0.256, inputs={"T.tau": signal})["b.w"][-1])

    def rates(t: float, y: Array) -> list[float]:
        spring = 400.0 * (y[0] - y[2]) + 2.0 * (y[1] - y[3])
        load = 1200.0 + 300.0 * np.sin(6.0 * np.pi * t)
        return [y[1], (load - c * y[1] * abs(y[1]) - spring) / J, y[3], spring / 0.3]

    exact = solve_ivp(rates, (0.0, 0.256), [0.0, 50.0, 0.0, 50.0], method="DOP853", rtol=1e-13, atol=1e-13).y[3, -1]
    errors = np.array([abs(run(h) - exact) for h in (4e-3, 2e-3, 1e-3, 5e-4)])
    slopes = np.log2(errors[:-1] / errors[1:])
    assert (np.diff(slopes) > 0.0).all() and slopes[0] > 0.7 * order and slopes[-1] > 0.88 * order


@orders
@pytest.mark.parametrize("cap", [30.0, 400.0])
def test_a_clutch_locks_beside_a_steep_resistance(cap: float, order: int) -> None:
    """h slope/J is 8 where the clutch begins; behind the lock both go on together."""
    Ja, Jb, c, load = 0.02, 0.5, 0.8, 60.0
    d = Driveline("locks", order=order)
    d.add("a", Inertia(J=Ja, w0=100.0))
    d.add("R", QuadraticSpeedDependentTorque(tau_nominal=-c, w_nominal=1.0, TorqueDirection=False))
    d.add("T", Torque())
    d.add("C", Clutch(fn_max=cap, mue_pos=[[0.0, 1.0]]))
    d.add("b", Inertia(J=Jb))
    d.connect("R.flange", "T.flange", "a.flange_a")
    d.connect("a.flange_b", "C.flange_a")
    d.connect("C.flange_b", "b.flange_a")
    run = Simulation(d, h=H).run(0.3, inputs={"T.tau": load, "C.f_normalized": 1.0})

    def slides(_: float, y: Array) -> list[float]:
        return [(load - c * y[0] * abs(y[0]) - cap * np.sign(y[0] - y[1])) / Ja, cap * np.sign(y[0] - y[1]) / Jb]

    def meets(_: float, y: Array) -> float:
        return float(y[0] - y[1])

    meets.terminal = True  # type: ignore[attr-defined]
    first = solve_ivp(slides, (0.0, 0.3), [100.0, 0.0], "Radau", rtol=1e-10, atol=1e-12, events=meets, max_step=H)
    t = np.arange(301) * H
    locked = t > first.t[-1]
    w = first.y[0, -1]
    rest = solve_ivp(lambda _, y: [(load - c * y[0] * abs(y[0])) / (Ja + Jb)], (first.t[-1], 0.3), [w], "Radau",
                     rtol=1e-10, atol=1e-12, t_eval=t[locked]).y[0]  # fmt: skip
    error = np.abs(run["a.w"][locked] - rest)
    assert error.max() <= (1e-3 if order == 2 else 3e-7) * 100.0
    assert error[-1] <= (2e-4 if order == 2 else 1e-7)
    assert run["a.w"][locked] == pytest.approx(run["b.w"][locked], abs=1e-9)
    solved(run)


@orders
def test_an_engine_at_its_limiter_behind_a_gear_with_losses(order: int) -> None:
    """The loss answers the steep torque."""
    J, Jb, eta = 0.002, 0.3, 0.9
    d = Driveline("lossy", order=order)
    d.add("E", Engine(J=J, wot=[[0.0, 200.0], [600.0, 200.0], [602.0, -50.0], [700.0, -50.0]],
                      drag=[[0.0, -50.0], [700.0, -50.0]], w0=550.0))  # fmt: skip
    d.add("G", LossyGear(ratio=2.0, lossTable=[[0.0, eta, eta, 0.0, 0.0]]))
    d.add("b", Inertia(J=Jb, w0=275.0))
    d.add("T", Torque())
    d.connect("E.flange", "G.flange_a")
    d.connect("G.flange_b", "b.flange_a")
    d.connect("b.flange_b", "T.flange")
    run = Simulation(d, h=H).run(0.4, inputs={"E.pedal": 1.0, "T.tau": -100.0})
    t = np.arange(401) * H
    # 2 eta tau drives b, J counts as 4 eta J there
    w = radau(lambda _, y: [2.0 * (2.0 * eta * float(limiter(y[0])) - 100.0) / (Jb + 4.0 * eta * J)], [550.0], t)[0]
    error = np.abs(run["E.w"] - w)
    assert error[300:].max() <= 1e-9 and run["E.tau"][-1] == pytest.approx(100.0 / 2.0 / eta, rel=1e-9)
    solved(run)


@orders
@pytest.mark.parametrize("J", [1.0, 1e-2, 1e-4])
def test_a_strong_brake_that_heats_a_node_never_cools_it(J: float, order: int) -> None:
    d = Driveline("hot", order=order)
    d.add("J", Inertia(J=J, w0=200.0))
    d.add("E", EddyCurrentTorque(tau_nominal=100.0, w_nominal=10.0, alpha20=0.004))
    d.add("C", HeatCapacitor(C=5.0, T0=300.0))
    d.add("T", Torque())
    d.connect("J.flange_b", "E.flange", "T.flange")
    d.connect("E.heatPort", "C.port")
    run = Simulation(d, h=H).run(0.4, inputs={"T.tau": Sine(amplitude=80.0, f=7.0)})
    assert np.diff(run["E.heat"]).min() >= -1e-12 * abs(run["E.heat"]).max()
    assert (run["C.T"][-1] - 300.0) * 5.0 == pytest.approx(run["E.heat"][-1], rel=1e-9)
    solved(run)
