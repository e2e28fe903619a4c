"""Shafts whose dampers the step does not resolve (d h/J > 2): what is read of them is right one step after a jump.

Torques and accelerations are compared with the matrix exponential of the linear equations with constant or sinusoidal
torque, by numpy and scipy. Speeds are those of the method: they are compared with its stability function of that
matrix.
"""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the matrix exponential needs SciPy (extra `dev`)")
from rot_drive import drive
from scipy.linalg import expm

from torqueloop.core.components import (
    Brake,
    Component,
    ConstantTorque,
    ElastoBacklash,
    Fixed,
    HardStop,
    Inertia,
    SpringDamper,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = np.ndarray
H = 1e-3
#: relative: of the trial's accelerations, with room
ROUNDING = 1e-15
#: of the energy turned over: rounding
CLOSES = 5e-11
orders = pytest.mark.parametrize("order", [2, 4])
#: three shafts between four inertias: two dampers that no step of 1 ms resolves beside one that it does
INERTIAS = (2e-3, 0.5, 3e-4, 1.2)
SHAFTS = ((2e4, 28.0), (3e3, 2.0), (8e3, 45.0))


def line(
    inertias: tuple[float, ...], shafts: tuple[tuple[float, float], ...], order: int, source: Component
) -> Driveline:
    """A source of torque on the first of some inertias with shafts between them: t, J0, s0, J1, s1, ..."""
    parts: dict[str, Component] = {"t": source}
    joined = [("t.flange", "J0.flange_a")]
    parts |= {f"J{k}": Inertia(J=J) for k, J in enumerate(inertias)}
    for k, (c, d) in enumerate(shafts):
        parts[f"s{k}"] = SpringDamper(c=c, d=d)
        joined += [(f"J{k}.flange_b", f"s{k}.flange_a"), (f"s{k}.flange_b", f"J{k + 1}.flange_a")]
    return drive(*joined, order=order, **parts)


class Exact:
    """The same by its matrix exponential: state (angles, speeds, torque of the source and its derivative)."""

    def __init__(
        self, inertias: tuple[float, ...], shafts: tuple[tuple[float, float], ...], omega: float = 0.0
    ) -> None:
        n = len(inertias)
        K, D = np.zeros((n, n)), np.zeros((n, n))
        for k, (c, d) in enumerate(shafts):
            row = np.zeros(n)
            row[k], row[k + 1] = -1.0, 1.0
            K += c * np.outer(row, row)
            D += d * np.outer(row, row)
        M = np.array(inertias)[:, None]
        self.A = np.zeros((2 * n + 2, 2 * n + 2))
        self.A[:n, n : 2 * n] = np.eye(n)
        self.A[n : 2 * n, :n], self.A[n : 2 * n, n : 2 * n] = -K / M, -D / M
        self.A[n, 2 * n] = 1.0 / inertias[0]
        self.A[2 * n, 2 * n + 1], self.A[2 * n + 1, 2 * n] = 1.0, -(omega**2)
        self.n, self.shafts = n, shafts

    def after(self, t: float, x: Array) -> Array:
        return np.asarray(expm(self.A * t) @ x)

    def by_the_method(self, t: float, x: Array, order: int) -> Array:
        """A step of the length t as Lobatto IIIA makes it: the Pade approximation of the exponential, (1, 1) or (2, 2),
        the latter by its factors (1 + z/r)/(1 - z/r), r = 3 +- i sqrt(3), which do without z^2."""
        z, one = self.A * t, np.eye(len(self.A))
        for r in (2.0,) if order == 2 else (3.0 + 1j * np.sqrt(3.0), 3.0 - 1j * np.sqrt(3.0)):
            x = np.linalg.solve(one - z / r, x + z @ x / r)
        return np.asarray(np.real(x))

    def torques(self, x: Array) -> Array:
        """As SpringDamper says them: tau = c phi_rel + d w_rel."""
        z, u = x[: self.n], x[self.n : 2 * self.n]
        return np.array([c * (z[k + 1] - z[k]) + d * (u[k + 1] - u[k]) for k, (c, d) in enumerate(self.shafts)])

    def accelerations(self, x: Array) -> Array:
        return np.asarray((self.A @ x)[self.n : 2 * self.n])

    def start(self, torque: float = 0.0, rate: float = 0.0) -> Array:
        return np.concatenate([np.zeros(2 * self.n), [torque, rate]])


def read(r: Result, k: int, n: int) -> tuple[Array, Array, Array]:
    """Torques of the shafts, accelerations and speeds in sample k."""
    return (
        np.array([r[f"s{i}.tau"][k] for i in range(n - 1)]),
        np.array([r[f"J{i}.a"][k] for i in range(n)]),
        np.array([r[f"J{i}.w"][k] for i in range(n)]),
    )


#: d h/J up to 1e9; the last three but one swing as well, faster than the step
PAIRS = [
    (1e-4, 5e3, 20.0), (2e-3, 5e3, 28.0), (2e-3, 2e4, 28.0), (1e-3, 5e3, 3.0), (1e-4, 5e3, 2e5), (1e-6, 5e3, 1e6),
    (1e-4, 5e3, 0.3), (1e-4, 5e7, 20.0), (1e-4, 1e5, 20.0), (1e-3, 1.0, 3.0),
]  # fmt: skip


@orders
@pytest.mark.parametrize(("J", "c", "d"), PAIRS)
def test_torque_and_acceleration_are_right_one_step_after_a_jump(J: float, c: float, d: float, order: int) -> None:
    """10 Nm on J, the shaft behind it, and 1 kg m2."""
    exact = Exact((J, 1.0), ((c, d),))
    r = Simulation(line((J, 1.0), ((c, d),), order, ConstantTorque(tau_constant=10.0)), h=H).run(0.02)
    own = exact.start(10.0)
    for k in range(1, 21):
        x = exact.after(k * H, exact.start(10.0))
        own = exact.by_the_method(H, own, order)
        tau, a, w = read(r, k, 2)
        # behind it to rounding: of an acceleration, which is that of J alone at the jump
        limit = 1e-6 if k < 3 else max(1e-9, ROUNDING * d * H / J)
        assert tau == pytest.approx(exact.torques(x), abs=limit * 10.0)
        assert a[0] == pytest.approx(exact.accelerations(x)[0], abs=limit * 10.0 / J)
        assert a[1] == pytest.approx(exact.accelerations(x)[1], abs=limit * 10.0)
        assert w == pytest.approx(own[2:4], abs=1e-7)
    assert abs(r.energy().relative_residual) < CLOSES


@orders
def test_coupled_shafts_answer_jumps_between_ticks(order: int) -> None:
    """Torques that jump at a tick, and within one: parts of a step have their own lengths."""
    exact = Exact(INERTIAS, SHAFTS)
    torque = Step(height=30.0, offset=10.0, startTime=0.0074)
    r = Simulation(line(INERTIAS, SHAFTS, order, Torque()), h=H).run(0.03, inputs={"t.tau": torque})
    scale = np.array([40.0 / J for J in INERTIAS])
    own = exact.start(10.0)
    for k in range(1, 31):
        x = exact.after(min(k * H, 0.0074), exact.start(10.0))
        if k > 7:
            x[8] = 40.0
            x = exact.after(k * H - 0.0074, x)
        if k == 8:
            own = exact.by_the_method(0.0004, own, order)
            own[8] = 40.0
            own = exact.by_the_method(0.0006, own, order)
        else:
            own = exact.by_the_method(H, own, order)
        tau, a, w = read(r, k, 4)
        # the shaft in the middle is resolved: what is left is the order of the step in it
        limit = 1e-3 if order == 2 else 1e-7
        assert np.abs(tau - exact.torques(x)).max() <= limit * 40.0
        assert (np.abs(a - exact.accelerations(x)) / scale).max() <= limit
        assert np.abs(w - own[4:8]).max() <= 1e-9
    assert abs(r.energy().relative_residual) < CLOSES


@pytest.mark.parametrize(("order", "slope"), [(2, 1.8), (4, 3.6)])
def test_the_order_holds_where_a_damper_is_not_resolved(order: int, slope: float) -> None:
    """A sine of 20 Hz: errors of speeds and of the resolved shaft's torque fall with the order of the step."""
    omega = 40.0 * np.pi
    exact = Exact(INERTIAS, SHAFTS, omega)
    x = exact.after(0.2, exact.start(0.0, 25.0 * omega))
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        inputs = {"t.tau": Sine(amplitude=25.0, f=20.0)}
        r = Simulation(line(INERTIAS, SHAFTS, order, Torque()), h=h).run(0.2, inputs=inputs)
        tau, _, w = read(r, -1, 4)
        assert np.abs(tau - exact.torques(x)).max() <= 25.0 * (0.04 if order == 2 else 2e-4) * (h / 1e-3) ** 2
        errors.append(max(np.abs(w[[1, 3]] - x[[5, 7]]).max(), 0.1 * abs(tau[1] - exact.torques(x)[1])))
    assert all(np.log2(a / b) >= slope for a, b in pairwise(errors)), errors


@orders
def test_a_clutch_at_rest_behind_such_a_shaft_is_not_torn_loose(order: int) -> None:
    """10 Nm jump on the small inertia; the clutch holds 12 Nm and is meant to carry 10 at most."""
    parts = {
        "t": ConstantTorque(tau_constant=10.0), "a": Inertia(J=1e-4), "s": SpringDamper(c=5e3, d=20.0),
        "b": Inertia(J=1e-3), "C": Brake(fn_max=12.0, mue_pos=1.0),
    }  # fmt: skip
    ends = [("t.flange", "a.flange_a"), ("a.flange_b", "s.flange_a"), ("s.flange_b", "b.flange_a")]
    d = drive(*ends, ("b.flange_b", "C.flange_a"), order=order, **parts)
    r = Simulation(d, h=H).run(0.02, inputs={"C.f_normalized": 1.0})
    assert np.abs(r["b.w"]).max() == 0.0
    # of the shaft alone, beside the brake at rest: J w' = 10 - c q - d w
    A = np.array([[0.0, 1.0, 0.0], [-5e3 / 1e-4, -20.0 / 1e-4, 10.0 / 1e-4], [0.0, 0.0, 0.0]])
    for k in (1, 2, 3, 20):
        q, w, _ = expm(A * k * H) @ [0.0, 0.0, 1.0]
        assert r["s.tau"][k] == pytest.approx(-5e3 * q - 20.0 * w, abs=1e-8)
        assert abs(r["C.tau"][k]) == pytest.approx(5e3 * q + 20.0 * w, abs=1e-8)


@orders
def test_a_clutch_at_rest_is_not_torn_loose_when_another_element_comes_to_rest(order: int) -> None:
    """The same beside a drum that its brake stops at any time: who sticks from there on is decided for all elements."""
    ends = [("t.flange", "a.flange_a"), ("a.flange_b", "s.flange_a"), ("s.flange_b", "b.flange_a")]
    for limit, speed in itertools.product((10.05, 11.0, 15.0), np.linspace(1.2, 9.9, 48).tolist()):
        parts = {
            "t": ConstantTorque(tau_constant=10.0), "a": Inertia(J=1e-4), "s": SpringDamper(c=5e3, d=20.0),
            "b": Inertia(J=1e-3), "C": Brake(fn_max=limit, mue_pos=1.0),
            "drum": Inertia(J=0.01, w0=speed), "B": Brake(fn_max=10.0, mue_pos=1.0),
        }  # fmt: skip
        d = drive(*ends, ("b.flange_b", "C.flange_a"), ("drum.flange_a", "B.flange_a"), order=order, **parts)
        r = Simulation(d, h=H).run(0.015, inputs={"C.f_normalized": 1.0, "B.f_normalized": 1.0})
        assert r["B.mode"][[1, -1]].tolist() == [1.0, 0.0]
        assert np.abs(r["b.w"]).max() == 0.0, (limit, speed)


@orders
def test_a_closed_gap_whose_damper_is_not_resolved(order: int) -> None:
    """A gap that carries 20 Nm, between a small inertia and a shaft of the same kind: the torque rises to 30 Nm."""
    inertias, shafts, carried, gap = (2e-3, 0.5, 1.2), ((2e4, 28.0), (8e3, 900.0)), 20.0, 0.1
    exact = Exact(inertias, shafts)
    d = line(inertias, shafts, order, ConstantTorque(tau_constant=30.0))
    (c, damping), _ = shafts
    parts = dict(d.components) | {"s0": ElastoBacklash(c=c, d=damping, b=gap, phi_rel0=gap / 2.0 + carried / c)}
    r = Simulation(drive(*d.connections, order=order, **parts), h=H).run(0.02)
    own = exact.start(30.0)
    own[0] = carried / c
    start = own
    for k in range(1, 21):
        x = exact.after(k * H, start)
        own = exact.by_the_method(H, own, order)
        tau, a, w = read(r, k, 3)
        limit = 1e-3 if order == 2 else 1e-6
        assert tau == pytest.approx(exact.torques(x), abs=limit * 30.0)
        assert a[0] == pytest.approx(exact.accelerations(x)[0], abs=limit * 30.0 / inertias[0])
        assert w == pytest.approx(own[3:6], abs=1e-9)
    assert r["s0.regime"].tolist() == [-1.0] * 21
    assert abs(r.energy().relative_residual) < CLOSES


@orders
def test_a_hard_stop_behind_such_a_shaft(order: int) -> None:
    """A jump of 10 Nm on the small inertia presses a large one on a stop, which carries what the shaft carries."""
    parts = {
        "t": ConstantTorque(tau_constant=10.0), "a": Inertia(J=1e-4), "s": SpringDamper(c=5e3, d=20.0),
        "b": Inertia(J=0.3), "stop": HardStop(phi_max=0.0, phi_min=-1.0), "wall": Fixed(),
    }  # fmt: skip
    ends = [("t.flange", "a.flange_a"), ("a.flange_b", "s.flange_a"), ("s.flange_b", "b.flange_a")]
    d = drive(*ends, ("wall.flange", "stop.flange_a"), ("b.flange_b", "stop.flange_b"), order=order, **parts)
    r = Simulation(d, h=H).run(0.02)
    A = np.array([[0.0, 1.0, 0.0], [-5e3 / 1e-4, -20.0 / 1e-4, 10.0 / 1e-4], [0.0, 0.0, 0.0]])
    assert np.abs(r["b.w"]).max() == 0.0
    for k in (1, 2, 3, 20):
        q, w, _ = expm(A * k * H) @ [0.0, 0.0, 1.0]
        assert r["s.tau"][k] == pytest.approx(-5e3 * q - 20.0 * w, abs=1e-8)
        assert abs(r["stop.tau"][k]) == pytest.approx(5e3 * q + 20.0 * w, abs=1e-8)
    assert abs(r.energy().relative_residual) < CLOSES
