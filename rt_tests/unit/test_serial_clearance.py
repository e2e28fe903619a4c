"""A clearance in series with a damped spring, without inertia between, in either order.

Reference: SciPy with located events. a (J 0.5) - clearance (c1, play b) - m - spring, damper - b (J 1.2):

    y = phi_m - phi_b,  x = phi_a - phi_m        f = c1 (x -+ b/2) where the play is used up, else 0
    d y' = f - c2 y      J_a w_a' = T - f        J_b w_b' = f
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from torqueloop.core.components import ElastoBacklash, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import NoInertiaError
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

Array = np.ndarray
J_A, J_B, C1, C2, D, PLAY = 0.5, 1.2, 900.0, 300.0, 10.0, 0.2
TIMES = np.arange(1001) * 1e-3


def torque(t: float) -> float:
    return 25.0 * math.sin(2.0 * math.pi * 2.1 * t)


def driveline(order: int, turned: bool = False, d: float = D, damping: float = 0.0) -> Driveline:
    line = Driveline("clearance and spring", order=order)
    line.add("a", Inertia(J=J_A, w0=2.0, phi0=0.0))
    line.add("b", Inertia(J=J_B, w0=0.0, phi0=0.0))
    line.add("g", ElastoBacklash(c=C1, d=damping, b=PLAY))
    line.add("s", SpringDamper(c=C2, d=d))
    line.add("t", Torque())
    first, second = ("s", "g") if turned else ("g", "s")
    line.connect("t.flange", "a.flange_a")
    line.connect("a.flange_b", f"{first}.flange_a")
    line.connect(f"{first}.flange_b", f"{second}.flange_a")
    line.connect(f"{second}.flange_b", "b.flange_a")
    return line


def force(y: Array, side: int) -> float:
    return C1 * (y[0] - y[2] - y[4] - side * PLAY / 2.0) if side else 0.0


def reference() -> tuple[Array, Array, Array, int]:
    """w_a, w_b, torque of the clearance at TIMES; how often it opens or closes; y = (phi_a, w_a, phi_b, w_b, twist)."""
    y, t, side, events = np.array([0.0, 2.0, 0.0, 0.0, 0.0]), 0.0, 0, 0
    rows = [np.array([2.0, 0.0, 0.0])]
    while t < TIMES[-1]:

        def rates(t: float, y: Array, side: int = side) -> list[float]:
            f = force(y, side)
            return [y[1], (torque(t) - f) / J_A, y[3], f / J_B, (f - C2 * y[4]) / D]

        def beyond(t: float, y: Array, side: int = side, at: int = 1) -> float:
            x = y[0] - y[2] - y[4]
            return float(side * x - PLAY / 2.0) if side else float(PLAY / 2.0 - at * x)

        guards = [beyond] if side else [beyond, lambda t, y: float(PLAY / 2.0 + y[0] - y[2] - y[4])]
        for guard in guards:
            guard.terminal, guard.direction = True, -1.0  # type: ignore[attr-defined]
        found = solve_ivp(rates, (t, float(TIMES[-1])), y, method="DOP853", rtol=1e-12, atol=1e-13, events=guards,
                          dense_output=True, max_step=2e-3)  # fmt: skip
        last = float(found.t[-1])
        for at in TIMES[(t < TIMES) & (last >= TIMES)]:
            z = found.sol(at)
            rows.append(np.array([z[1], z[3], force(z, side)]))
        t, y = last, found.y[:, -1]
        if found.status == 1:
            events += 1
            side = 0 if side else (1 if len(found.t_events[0]) else -1)
    return (*np.array(rows).T, events)


@pytest.mark.parametrize("turned", [False, True], ids=["clearance first", "spring first"])
@pytest.mark.parametrize(("order", "bound"), [(2, 2e-3), (4, 1e-6)])
def test_motion_and_torque_are_those_of_the_reference(order: int, bound: float, turned: bool) -> None:
    w_a, w_b, tau, events = reference()
    assert events >= 4
    run = Simulation(driveline(order, turned), h=1e-3).run(1.0, inputs={"t.tau": Sine(amplitude=25.0, f=2.1)})
    for found, right in ((run["a.w"], w_a), (run["b.w"], w_b), (abs(run["g.tau"]), abs(tau))):
        assert np.abs(found - right).max() < bound * np.ptp(right)
    assert run.counters["fallbacks"] == 0 and run.counters["negative_heat"] == 0
    assert run.energy().relative_residual < (1e-4 if order == 2 else 1e-7)


def test_order_4_holds_across_its_events() -> None:
    _, w_b, _, _ = reference()
    errors = []
    for h in (2e-3, 1e-3, 0.5e-3):
        run = Simulation(driveline(4), h=h).run(1.0, inputs={"t.tau": Sine(amplitude=25.0, f=2.1)})
        grid = slice(None, None, max(1, round(h / 1e-3)))
        errors.append(np.abs(run["b.w"][:: max(1, round(1e-3 / h))] - w_b[grid]).max())
    assert np.log2(errors[0] / errors[2]) / 2.0 > 3.4


@pytest.mark.parametrize("order", [2, 4])
def test_a_stiff_clearance_before_a_spring_makes_no_energy(order: int) -> None:
    line = driveline(order)
    line.components["g"] = ElastoBacklash(c=1e8, d=0.0, b=PLAY)
    run = Simulation(line, h=1e-3).run(1.0, inputs={"t.tau": Sine(amplitude=25.0, f=2.1)})
    assert run.counters["negative_heat"] == 0
    assert run.energy().relative_residual < 1e-4 and np.abs(run["b.w"]).max() < 50.0


@pytest.mark.parametrize(
    ("d", "damping", "words"),
    [
        (0.0, 0.0, r"make them one, 1/c = 1/c1 \+ 1/c2, or give the spring a damper"),
        (D, 1.0, r"leave the damping to the spring"),
    ],
)
def test_what_has_no_law_is_refused_with_its_remedy(d: float, damping: float, words: str) -> None:
    with pytest.raises(NoInertiaError, match=rf"clearance in series with a spring or damper \(g, s\).*{words}"):
        Simulation(driveline(4, d=d, damping=damping))
