"""Torques over the speed that the step does not resolve bring a shaft to rest and hold it there, without ringing.

Reference: SciPy's Radau with tight tolerances on the same equations, written by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from torqueloop.core.components import Brake, Inertia, SignTorque, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

H, J, TAU, START = 1e-3, 0.2, 20.0, 3.0
orders = pytest.mark.parametrize("order", [2, 4])
Array = np.ndarray


def radau(rates: object, start: list[float], steps: int) -> Array:
    t = np.arange(steps + 1) * H
    return np.asarray(
        solve_ivp(rates, (0.0, t[-1]), start, method="Radau", rtol=1e-10, atol=1e-12, t_eval=t, max_step=H).y
    )


def stop(law: object, steps: int = 100) -> Array:
    """phi, w of a shaft that the torque -law(w) stops."""
    return radau(lambda t, y: [y[1], -law(y[1]) / J], [0.0, START], steps)  # type: ignore[operator]


#: laws near zero speed of the Modelica library, with the default w0 = 0.1 rad/s
LAWS = {
    "Exp": lambda w: TAU * np.tanh(w / 0.002),
    "Sine": lambda w: TAU * np.sin(0.5 * np.pi * np.clip(w / 0.1, -1.0, 1.0)),
    "Linear": lambda w: TAU * np.clip(w / 0.1, -1.0, 1.0),
}


@orders
@pytest.mark.parametrize("reg", sorted(LAWS))
def test_a_shaft_that_a_torque_of_the_speed_alone_stops_rests(reg: str, order: int) -> None:
    """The speed has no event at zero: explicit evaluation rings with +-h tau/J there."""
    d = Driveline("stop", order=order)
    d.add("J", Inertia(J=J, w0=START))
    d.add("S", SignTorque(tau_nominal=-TAU, reg=reg))
    d.connect("S.flange", "J.flange_a")
    run = Simulation(d, h=H).run(0.1)
    phi, w = stop(LAWS[reg])
    # 5 ms after the stop at J w/tau = 30 ms; in the step of the stop the torque acts with the value of its end
    rest = slice(35, None)
    if reg == "Exp":
        assert np.abs(run["J.w"][rest]).max() <= 1e-6 * START
        assert np.abs(run["S.tau"][rest]).max() <= 1e-6 * TAU
    assert np.abs(run["J.w"] - w)[rest].max() <= (1e-6 if reg == "Exp" else 1e-4) * START
    assert np.abs(run["J.w"] - w).max() <= 2e-3 * START
    assert np.abs(run["J.phi"] - phi).max() <= 3e-5
    assert run.energy().relative_residual <= 1e-12
    assert run.counters["steep_unsolved"] == run.counters["fallbacks"] == 0


@orders
def test_friction_with_a_sharp_breakpoint_through_zero_comes_to_rest(order: int) -> None:
    d = Driveline("stop", order=order)
    d.add("J", Inertia(J=J, w0=START))
    d.add("B", Brake(fn_max=TAU, mue_pos=[[0.0, 0.0], [1e-3, 1.0], [2e-3, 1.0]]))
    d.connect("B.flange_a", "J.flange_a")
    run = Simulation(d, h=H).run(0.1, inputs={"B.f_normalized": 1.0})
    phi, w = stop(lambda w: TAU * np.clip(w / 1e-3, -1.0, 1.0))
    assert np.abs(run["J.w"][35:]).max() <= 1e-6 * START
    assert np.abs(run["B.tau"][35:]).max() <= 1e-6 * TAU
    assert np.abs(run["J.w"] - w).max() <= 1e-3 * START and np.abs(run["J.phi"] - phi).max() <= 3e-5
    assert run.energy().relative_residual <= 1e-12


def two_shafts(order: int) -> Driveline:
    """a, with a steep torque and one from outside that it outweighs, on a spring to b with a steeper torque."""
    d = Driveline("two", order=order)
    d.add("a", Inertia(J=0.2, w0=3.0))
    d.add("b", Inertia(J=0.1, w0=-1.0))
    d.add("k", SpringDamper(c=300.0, d=0.5))
    d.add("S", SignTorque(tau_nominal=-20.0))
    d.add("Q", SignTorque(tau_nominal=-8.0, reg="Sine", w0=0.01))
    d.add("T", Torque())
    d.connect("S.flange", "T.flange", "a.flange_a")
    d.connect("a.flange_b", "k.flange_a")
    d.connect("k.flange_b", "b.flange_a")
    d.connect("Q.flange", "b.flange_b")
    return d


@orders
def test_shafts_creep_along_the_steep_part_under_a_load(order: int) -> None:
    def rates(t: float, y: Array) -> list[float]:
        k = 300.0 * (y[0] - y[2]) + 0.5 * (y[1] - y[3])
        S, Q = 20.0 * np.tanh(y[1] / 0.002), 8.0 * np.sin(0.5 * np.pi * np.clip(y[3] / 0.01, -1.0, 1.0))
        return [y[1], (15.0 * np.sin(6.0 * np.pi * t) - S - k) / 0.2, y[3], (k - Q) / 0.1]

    run = Simulation(two_shafts(order), h=H).run(0.5, inputs={"T.tau": Sine(amplitude=15.0, f=3.0)})
    reference = radau(rates, [0.0, 3.0, 0.0, -1.0], 500)
    for row, name in ((1, "a.w"), (3, "b.w")):
        # h tau'/(2 slope) behind the load, of which tau' is 283 Nm/s
        assert np.abs(run[name] - reference[row])[100:].max() <= 6e-5
    assert np.abs(run["a.phi"] - reference[0]).max() <= 3e-5
    assert run.energy().relative_residual <= 1e-12
    assert run.counters["steep_unsolved"] == run.counters["fallbacks"] == 0
