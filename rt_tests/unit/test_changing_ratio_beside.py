"""Gears of changing ratio at order 4 beside losses by reactions, joint shafts and gaps with an exponent.

With losses: the equations in minimal coordinates (DOP853), piece by piece between the changes of branch. With the
others: a ratio that rests is an ideal gear, a ratio that changes gives what order 2 gives with a fine step, and energy
closes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from torqueloop.core.components import (
    ElastoGap,
    IdealGear,
    IdealRollingWheel,
    Inertia,
    JointShaft,
    LossyGear,
    Mass,
    SpringDamper,
    Torque,
    TranslationalFixed,
    VariableGear,
    Wheel2,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

Array = np.ndarray
EXACT = 1e-13
J_A, J_B, J_C, J_E = 0.4, 0.3, 2.0, 5.0
C, D, N = 400.0, 1.0, 2.0
#: efficiencies and bearing torques (N.m) of both directions of power
ETA_1, ETA_2, T_1, T_2 = 0.9, 0.85, 0.4, 0.7
CHAIN = (
    "T.flange a.flange_a|a.flange_b gear.flange_a|gear.flange_b b.flange_a|b.flange_b x.flange_a|x.flange_b c.flange_a"
)
TAIL = "|c.flange_b s.flange_a|s.flange_b e.flange_a"


def line(order: int, gear: Any, x: Any) -> Driveline:
    """Motor, gear, x, load on a spring."""
    d = Driveline("beside", order=order)
    parts = {"T": Torque(), "a": Inertia(J=J_A, w0=60.0), "gear": gear, "b": Inertia(J=J_B), "x": x,
             "c": Inertia(J=J_C), "s": SpringDamper(c=C, d=D), "e": Inertia(J=J_E, w0=14.0)}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for group in (CHAIN + TAIL).split("|"):
        d.connect(*group.split())
    return d


@dataclass(frozen=True)
class Ratio:
    """i = 2 + swing sin(f t)."""

    swing: float
    f: float

    def at(self, t: float) -> float:
        return 2.0 + self.swing * float(np.sin(self.f * t))

    def rate(self, t: float) -> float:
        return self.swing * self.f * float(np.cos(self.f * t))

    @property
    def signal(self) -> Sine:
        return Sine(amplitude=self.swing, f=self.f / (2.0 * np.pi), offset=2.0)


def tau(t: float) -> float:
    return 40.0 * float(np.sin(7.0 * t))


class Lossy:
    """T - a - i(t) - b - lossy gear - c - spring - e; y = (w_b, w_e, twist), w_b > 0.

    (J_b + i^2 J_a) w_b' = i (T - J_a i' w_b) - t_a,     J_c w_b'/n = n (t_a - loss) - spring
    loss = max((1 - eta1) t_a + t1, (1 - 1/eta2) t_a + t2)
    """

    LAWS = ((1.0 - ETA_1, T_1), (1.0 - 1.0 / ETA_2, T_2))

    def __init__(self, ratio: Ratio) -> None:
        self.ratio, self.changes = ratio, 0

    def transmitted(self, t: float, y: Array, branch: int) -> tuple[float, float, float]:
        """(t_a, w_b', torque of the spring)."""
        i, (k, c) = self.ratio.at(t), self.LAWS[branch]
        spring = C * y[2] + D * (y[0] / N - y[1])
        push, inertia = i * (tau(t) - J_A * self.ratio.rate(t) * y[0]), J_B + i * i * J_A
        t_a = (J_C * push / (N * inertia) + N * c + spring) / (N * (1.0 - k) + J_C / (N * inertia))
        return t_a, (push - t_a) / inertia, spring

    def margin(self, t: float, y: Array, branch: int) -> float:
        """>= 0 while the branch gives the larger loss."""
        t_a = self.transmitted(t, y, branch)[0]
        (k, c), (k_other, c_other) = self.LAWS[branch], self.LAWS[1 - branch]
        return (k - k_other) * t_a + c - c_other

    def end(self, until: float) -> Array:
        t, y = 0.0, np.array([30.0, 14.0, 0.0])
        branch = 0 if self.margin(0.0, y, 0) >= 0.0 else 1
        while t < until:

            def rates(t: float, y: Array, branch: int = branch) -> list[float]:
                _, acceleration, spring = self.transmitted(t, y, branch)
                return [acceleration, spring / J_E, y[0] / N - y[1]]

            def leaves(t: float, y: Array, branch: int = branch) -> float:
                return self.margin(t, y, branch)

            leaves.terminal, leaves.direction = True, -1.0  # type: ignore[attr-defined]
            found = solve_ivp(
                rates, (t, until), y, method="DOP853", rtol=EXACT, atol=EXACT, events=leaves, max_step=5e-3
            )
            t, y = float(found.t[-1]), found.y[:, -1]
            if found.status == 1:
                branch = 1 - branch
                self.changes += 1
        return y


@pytest.mark.parametrize("ratio", [Ratio(0.5, 5.0), Ratio(-0.8, 11.0)], ids=["slow", "fast"])
def test_beside_losses_order_4_is_kept(ratio: Ratio) -> None:
    right = Lossy(ratio)
    y = right.end(1.0)
    assert right.changes >= 3
    errors = []
    for h in (1.0 / 256.0, 1.0 / 512.0, 1.0 / 1024.0):
        losses = LossyGear(ratio=N, lossTable=[[0.0, ETA_1, ETA_2, T_1, T_2]])
        r = Simulation(line(4, VariableGear(), losses), h=h).run(1.0, inputs={"gear.ratio": ratio.signal, "T.tau": tau})
        errors.append(max(abs(r["b.w"][-1] - y[0]), abs(r["e.w"][-1] - y[1])))
        assert r.counters["fallbacks"] == 0 and r.counters["negative_heat"] == 0
        assert np.all(np.diff(r["x.heat"]) >= 0.0)
        np.testing.assert_allclose(r["a.w"], r["gear.ratio"] * r["b.w"], rtol=1e-11)
        assert r.energy().relative_residual < 1e-5
    assert errors[-1] < 1e-6
    assert errors[0] / errors[-1] > 100.0  # 256 for order 4


def made(kind: str) -> Any:
    if kind == "joint shaft":
        return JointShaft(c=2e3, d=2.0, beta_a=0.3, beta_b=0.25)
    return LossyGear(ratio=N, lossTable=[[0.0, ETA_1, ETA_2, T_1, T_2], [80.0, 0.8, 0.8, 0.8, 0.9]])


@pytest.mark.parametrize("kind", ["joint shaft", "losses"])
def test_a_ratio_that_rests_is_an_ideal_gear(kind: str) -> None:
    ends = []
    for gear, inputs in ((VariableGear(), {"gear.ratio": 2.0}), (IdealGear(ratio=2.0), {})):
        r = Simulation(line(4, gear, made(kind)), h=1e-3).run(0.5, inputs={"T.tau": tau, **inputs})
        ends.append([r["a.w"], r["b.w"], r["c.w"], r["e.w"]])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)


def bouncing(order: int) -> Driveline:
    """Motor, gear, rack with a load that hits a Hertzian stop on each side."""
    d = Driveline("bouncing", order=order)
    parts = {"T": Torque(), "a": Inertia(J=0.2, w0=8.0), "gear": VariableGear(), "b": Inertia(J=0.1),
             "x": IdealRollingWheel(radius=0.1), "c": Mass(m=20.0),
             "low": ElastoGap(c=4e6, d=20.0, n=1.5, s_rel0=-0.05), "ground": TranslationalFixed(),
             "other": TranslationalFixed(), "high": ElastoGap(c=4e6, d=20.0, n=1.5, s_rel0=-0.05)}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for group in (
        "T.flange a.flange_a|a.flange_b gear.flange_a|gear.flange_b b.flange_a|b.flange_b x.flangeR|"
        "x.flangeT c.flange_a|ground.flange low.flange_a|low.flange_b c.flange_b|c.flange_b high.flange_a|"
        "high.flange_b other.flange"
    ).split("|"):
        d.connect(*group.split())
    return d


def rolling(order: int) -> Driveline:
    """Motor, gear with losses, wheel whose radius is a curve over the speed, car."""
    d = Driveline("rolling", order=order)
    parts = {"T": Torque(), "a": Inertia(J=0.5, w0=25.0), "x": made("losses"), "c": Inertia(J=0.4),
             "s": SpringDamper(c=C, d=D), "gear": Wheel2(radius=[[0.0, 0.28], [3.0, 0.3], [8.0, 0.33]], J=2.0),
             "car": Mass(m=50.0, v0=3.6)}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for group in (
        "T.flange a.flange_a|a.flange_b x.flange_a|x.flange_b c.flange_a|c.flange_b s.flange_a|"
        "s.flange_b gear.flangeR|gear.flangeT car.flange_a"
    ).split("|"):
        d.connect(*group.split())
    return d


@pytest.mark.parametrize(
    "kind", ["joint shaft", "losses", "gaps with an exponent", "losses beside a radius over the speed"]
)
def test_order_4_comes_to_what_order_2_gives_with_fine_steps(kind: str) -> None:
    def made_with(order: int) -> Driveline:
        if kind.startswith("gaps"):
            return bouncing(order)
        return rolling(order) if "radius" in kind else line(order, VariableGear(), made(kind))

    inputs: dict[str, Any] = {"T.tau": tau} | ({} if "radius" in kind else {"gear.ratio": Ratio(0.5, 5.0).signal})
    run = Simulation(made_with(4), h=1e-3).run(0.4, inputs=inputs)
    fine = Simulation(made_with(2), h=1e-3, substeps=64).run(0.4, inputs=inputs)
    for name in [n for n in run.model.output_names if n.endswith((".w", ".v"))]:
        assert np.abs(run[name] - fine[name]).max() < (2e-5 if kind.startswith("gaps") else 2e-6) * np.ptp(
            fine[name]
        ), name
    assert run.energy().relative_residual < 1e-5 and run.counters["fallbacks"] == 0
    if kind in ("losses", "gaps with an exponent"):
        assert run.counters["events"] >= 1
    assert run.counters["steep_unsolved"] == 0 and run.counters["negative_heat"] == 0
