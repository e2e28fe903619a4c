"""Idle controllers: both orders are kept, also where their torque or their integral meets a limit.

Reference: DOP853 with every switch of the controller located by its own event; it shares nothing with the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import Engine, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

Array = NDArray[np.float64]
J, W_IDLE, DRAG = 0.28, 80.0, (-6.0, -0.05)
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4)
T = 0.8


@dataclass(frozen=True)
class Idle:
    """Gains and largest torque of a controller, speed at the start, load: mean, amplitude (N.m), frequency (Hz)."""

    kp: float
    ki: float
    most: float
    w0: float
    load: tuple[float, float, float]


CASES = {
    "within its limits": Idle(2.0, 40.0, 60.0, W_IDLE - 2.0, (8.0, 5.0, 3.0)),
    "from above idle": Idle(2.0, 40.0, 60.0, W_IDLE + 12.0, (8.0, 5.0, 3.0)),
    "to its largest torque and back": Idle(0.8, 40.0, 16.0, W_IDLE + 5.0, (8.0, 20.0, 2.0)),
    "without a proportional part": Idle(0.0, 60.0, 12.0, W_IDLE - 2.0, (8.0, 20.0, 2.0)),
}


def load(idle: Idle, t: float) -> float:
    mean, amplitude, f = idle.load
    return mean + amplitude * math.sin(2.0 * math.pi * f * t)


def expected(idle: Idle, times: Array) -> Array:
    """Speed at the times, from one switch of the controller to the next."""
    out = np.empty(len(times))
    out[0] = idle.w0
    x, t = np.array([idle.w0, 0.0]), 0.0

    def wanted(x: Array) -> float:
        return float(idle.kp * (W_IDLE - x[0]) + x[1])

    while t < times[-1]:
        # regimes behind t, from a point a little later: the torque is clipped there or not, the integral held or not
        later = x + 1e-7 * rates_of(idle, t, x)
        torque = -1 if wanted(later) < 0.0 else (1 if wanted(later) > idle.most else 0)
        error = W_IDLE - later[0]
        held = (x[1] <= 0.0 and error < 0.0) or (x[1] >= idle.most and error > 0.0)

        def rates(t: float, x: Array, torque: int = torque, held: bool = held) -> Array:
            tau = (0.0, wanted(x), idle.most)[torque + 1]
            drag = DRAG[0] + DRAG[1] * (x[0] - W_IDLE)
            return np.array([(drag + tau - load(idle, t)) / J, 0.0 if held else idle.ki * (W_IDLE - x[0])])

        guards: list[Callable[[float, Array], float]] = [wanted_of(wanted, 0.0), wanted_of(wanted, idle.most)]
        guards += [lambda t, x: x[0] - W_IDLE] if held else [lambda t, x: x[1], lambda t, x: x[1] - idle.most]
        for guard in guards:
            setattr(guard, "terminal", True)  # noqa: B010
        # (a point behind the last switch: what has just passed 0 is not found again)
        k1 = rates(t, x)
        start, x = t + 1e-7, x + 1e-7 * rates(t + 5e-8, x + 5e-8 * k1)
        live = [g for g in guards if abs(g(start, x)) > 1e-13]
        run = solve_ivp(rates, (start, times[-1]), x, method="DOP853", rtol=1e-13, atol=1e-12, events=live,
                        dense_output=True, max_step=5e-3)  # fmt: skip
        inside = (times > t) & (times <= run.t[-1])
        if inside.any():
            out[inside] = run.sol(np.maximum(times[inside], start))[0]
        t, x = float(run.t[-1]), run.y[:, -1].copy()
        x[1] = 0.0 if abs(x[1]) < 1e-9 else (idle.most if abs(x[1] - idle.most) < 1e-9 else x[1])
    return out


def wanted_of(wanted: Callable[[Array], float], level: float) -> Any:
    return lambda t, x: wanted(x) - level


def rates_of(idle: Idle, t: float, x: Array) -> Array:
    """Rates with the controller as it is here and now."""
    tau = min(max(idle.kp * (W_IDLE - x[0]) + x[1], 0.0), idle.most)
    error = W_IDLE - x[0]
    held = (x[1] <= 0.0 and error < 0.0) or (x[1] >= idle.most and error > 0.0)
    drag = DRAG[0] + DRAG[1] * (x[0] - W_IDLE)
    return np.array([(drag + tau - load(idle, t)) / J, 0.0 if held else idle.ki * error])


def simulated(idle: Idle, order: int, h: float) -> Array:
    driveline = Driveline("idling", order=order)
    drag = tuple((w, DRAG[0] + DRAG[1] * (w - W_IDLE)) for w in (0.0, 400.0))
    driveline.add(
        "engine",
        Engine(J=J, drag=drag, wot=drag, w_idle=W_IDLE, kp=idle.kp, ki=idle.ki, tau_idle_max=idle.most, w0=idle.w0),
    )
    driveline.add("load", Torque())
    driveline.connect("engine.flange", "load.flange")
    mean, amplitude, f = idle.load
    signal = Sine(offset=-mean, amplitude=-amplitude, f=f)
    result = Simulation(driveline, h=h).run(T, {"engine.pedal": 0.0, "load.tau": signal})
    assert result.counters["fallbacks"] == 0
    return np.asarray(result["engine.w"])


def errors(idle: Idle, order: int) -> list[float]:
    """Largest error of the speed at the steps of 4 ms, rad/s."""
    times = np.arange(round(T / STEPS[0]) + 1) * STEPS[0]
    reference = expected(idle, times)
    return [float(np.abs(simulated(idle, order, h)[:: round(STEPS[0] / h)] - reference).max()) for h in STEPS]


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_the_order_is_kept_across_the_limits_of_an_idle_controller(name: str, order: int) -> None:
    found = errors(CASES[name], order)
    slope = math.log2(found[0] / found[-1]) / (len(STEPS) - 1)
    assert slope >= (1.9 if order == 2 else 3.8), (name, order, found)
    assert found[STEPS.index(1e-3)] < (3e-4 if order == 2 else 1e-8), found
