"""Gears with losses in parallel share the torque of their meshes equally.

Two equal gears are one gear with twice the bearing torque. Two different ones (i = 1, 2) carry the same mesh torque m:

    t_i - loss_i = m,   loss_i = max((1 - eta1_i) t_i + tbf1_i, (1 - 1/eta2_i) t_i + tbf2_i)   (w > 0)
    J_a w_a' = T - t_1 - t_2,   J_b w_a'/n = 2 n m + U
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from torqueloop.core.components import IdealGear, Inertia, LossyGear, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import OverconstrainedError
from torqueloop.core.signals import Pulse
from torqueloop.core.simulate.offline import Simulation

J_A, J_B, N, W0, U = 0.5, 2.0, 2.0, 20.0, -4.0
both_orders = pytest.mark.parametrize("order", [2, 4])


def line(order: int, w0: float, *gears: Any) -> Driveline:
    d = Driveline("parallel", order=order)
    for name, part in {"t": Torque(), "a": Inertia(J=J_A, w0=w0), "b": Inertia(J=J_B), "u": Torque()}.items():
        d.add(name, part)
    d.connect("t.flange", "a.flange_a")
    d.connect("u.flange", "b.flange_b")
    for k, gear in enumerate(gears, 1):
        d.add(f"g{k}", gear)
        d.connect("a.flange_b", f"g{k}.flange_a")
        d.connect(f"g{k}.flange_b", "b.flange_a")
    return d


def gear(*losses: float) -> LossyGear:
    return LossyGear(ratio=N, lossTable=[[0.0, *losses]])


@both_orders
def test_two_equal_gears_are_one_with_twice_the_bearing_torque(order: int) -> None:
    inputs = {"t.tau": Pulse(amplitude=-30.0, width=2.0, period=10.0), "u.tau": 0.0}
    one = Simulation(line(order, 2.0, gear(0.9, 0.85, 6.0, 8.0)), h=1e-3).run(5.0, inputs=inputs)
    two = Simulation(line(order, 2.0, gear(0.9, 0.85, 3.0, 4.0), gear(0.9, 0.85, 3.0, 4.0)), h=1e-3).run(
        5.0, inputs=inputs
    )
    # with a reversal, and a time at rest
    assert one["a.w"].min() < -1.0 < 1.0 < one["a.w"].max() and (np.abs(one["a.w"]) < 1e-9).any()
    np.testing.assert_allclose(two["a.w"], one["a.w"], atol=1e-9)
    for name in ("tau_a", "tau_b", "heat"):
        np.testing.assert_allclose(two[f"g1.{name}"] + two[f"g2.{name}"], one[f"g1.{name}"], atol=1e-8)
        np.testing.assert_allclose(two[f"g1.{name}"], two[f"g2.{name}"], atol=1e-8)
    assert two.counters["fallbacks"] == 0 and two.energy().relative_residual < 1e-6
    assert "g1, g2: gears in parallel share their torque equally" in two.model.notes


@pytest.mark.parametrize(("order", "bound"), [(2, 1e-5), (4, 1e-9)])
def test_two_different_gears_carry_the_same_mesh_torque(order: int, bound: float) -> None:
    losses = ((0.9, 0.85, 0.5, 0.7), (0.8, 0.7, 0.2, 0.3))

    def torque(t: float) -> float:
        return 30.0 * math.sin(2.0 * math.pi * 1.3 * t)

    def into(m: float, eta1: float, eta2: float, t1: float, t2: float) -> float:
        return max((m + t1) / eta1, eta2 * (m + t2))

    def mesh(t: float) -> float:
        def open_torque(m: float) -> float:
            return torque(t) - sum(into(m, *row) for row in losses) - J_A * N * (2.0 * N * m + U) / J_B

        return float(brentq(open_torque, -500.0, 500.0, xtol=1e-14))

    times = np.linspace(0.0, 1.0, 1001)
    found = solve_ivp(lambda t, w: [N * (2.0 * N * mesh(t) + U) / J_B], (0.0, 1.0), [W0], method="DOP853", rtol=1e-11,
                      atol=1e-12, max_step=1e-3, t_eval=times)  # fmt: skip
    assert found.y.min() > 1.0
    d = line(order, W0, *(gear(*row) for row in losses))
    run = Simulation(d, h=1e-3).run(1.0, inputs={"t.tau": torque, "u.tau": U})
    np.testing.assert_allclose(run["a.w"], found.y[0], rtol=bound)
    right = [[into(mesh(t), *row) for t in times[100::300]] for row in losses]
    np.testing.assert_allclose([run["g1.tau_a"][100::300], run["g2.tau_a"][100::300]], right, rtol=1e-6)


def test_a_gear_without_losses_in_parallel_is_refused() -> None:
    with pytest.raises(OverconstrainedError, match="the torques in it are undetermined; components: g1, g2"):
        Simulation(line(4, W0, IdealGear(ratio=N), gear(0.9, 0.9, 0.0, 0.0)))
