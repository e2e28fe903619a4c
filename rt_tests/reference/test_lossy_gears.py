"""LossyGear against the dense reference: efficiency, stuck phases, reversal of power, self-locking, gears in series.

Reference: all constraint torques kept, the loss max/min of its two laws, modes and branches by trying all, SciPy
between located events. Where a number is known by hand it is checked as well.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
import pytest
from compare import Pair
from laws import Wave, flat
from neutral import Bearing, Gear, Lossy, SpringDamper, Torque, Train
from trajectory import Reference, Trajectory

from torqueloop.core import components as kinds
from torqueloop.core.components import ConstantTorque, Inertia, LossyGear
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

#: |w_a|, eta1, eta2, |tbf1|, |tbf2|
WITH_BEARINGS = ((0.0, 0.8, 0.7, 0.6, 0.9),)
MESH_ONLY = ((0.0, 0.9, 0.85, 0.0, 0.0),)
OVER_SPEED = ((0.0, 0.75, 0.7, 1.0, 1.2), (10.0, 0.85, 0.8, 1.5, 1.6), (200.0, 0.9, 0.88, 3.0, 3.1))
WORM = ((0.0, 0.4, -0.5, 0.3, 0.3),)

SYSTEMS = {
    "turning at the start, the load drives": (
        Train([0.2, 0.4], [Lossy(0, 1, Fraction(-3, 2), ((0.0, 0.8, 0.6, 0.3, 0.4),)),
                           Torque(0, Wave(-9.0, 10.0, 1.4, 0.6))], w0=np.array([30.0, -20.0])),
        0.5, {1},
    ),
    "efficiency and bearings, driven and braking": (
        Train([0.1, 0.4], [Lossy(0, 1, Fraction(3), WITH_BEARINGS), Torque(0, Wave(0.0, 6.0, 1.0)),
                           Torque(1, Wave(2.0))]),
        1.5, {0, 1, -1},
    ),
    "mesh only: no friction without load": (
        Train([0.1, 0.4], [Lossy(0, 1, Fraction(-2), MESH_ONLY), Torque(0, Wave(0.0, 8.0, 1.3, 0.4)),
                           Torque(1, Wave(0.0, 9.0, 0.6))]),
        1.5, {1, -1},
    ),
    "losses over speed": (
        Train([0.1, 0.4], [Lossy(0, 1, Fraction(3), OVER_SPEED), Torque(0, Wave(0.0, 9.0, 0.8)),
                           Torque(1, Wave(-3.0, 11.0, 1.7))], w0=np.array([12.0, 4.0])),
        1.5, {1, -1},
    ),
    "behind a spring: the load swings back": (
        Train([0.05, 0.1, 0.3], [Lossy(0, 1, Fraction(2), WITH_BEARINGS), SpringDamper(1, 2, 120.0, 0.1),
                                 Torque(0, Wave(0.0, 12.0, 1.1))]),
        1.5, {0, 1, -1},
    ),
    "two in series without inertia between": (
        Train([0.1, 0.0, 0.4], [Lossy(0, 1, Fraction(3), WITH_BEARINGS), Lossy(1, 2, Fraction(-2), MESH_ONLY),
                                Torque(0, Wave(0.0, 6.0, 1.0)), Torque(2, Wave(4.0))]),
        1.5, {0, 1, -1},
    ),
    "three in series without inertia between": (
        Train([0.1, 0.0, 0.0, 0.4], [Lossy(0, 1, Fraction(3), WITH_BEARINGS), Lossy(1, 2, Fraction(1, 2), MESH_ONLY),
                                     Lossy(2, 3, Fraction(-5, 3), WITH_BEARINGS), Torque(0, Wave(0.0, 8.0, 0.9)),
                                     Torque(3, Wave(0.0, 9.0, 0.5, 1.0))]),
        1.5, {0, 1, -1},
    ),
    "an ideal gear and a bearing between two": (
        Train([0.1, 0.0, 0.02, 0.4], [Lossy(0, 1, Fraction(3), WITH_BEARINGS), Gear(1, 2, Fraction(-2)),
                                      Bearing(2, flat(0.5)), Lossy(2, 3, Fraction(2), WITH_BEARINGS),
                                      Torque(0, Wave(0.0, 7.0, 0.9)), Torque(3, Wave(0.0, 30.0, 0.5, 1.0))]),
        1.5, {0, 1, -1},
    ),
    "self-locking": (
        Train([0.1, 0.05], [Lossy(0, 1, Fraction(10), WORM), Torque(0, Wave(0.0, 6.0, 0.7)), Torque(1, Wave(5.0))]),
        2.0, {0, 1, -1},
    ),
}  # fmt: skip


@functools.cache
def reference(name: str) -> Trajectory:
    train, T, _ = SYSTEMS[name]
    return Reference(train, series=True).run(T)


@pytest.mark.proof
@pytest.mark.parametrize(("n", "accuracy"), [(1, 1e-4), (8, 1e-5)])
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", SYSTEMS)
def test_motion_and_modes_are_those_of_the_full_equations(name: str, order: int, n: int, accuracy: float) -> None:
    train, T, ways = SYSTEMS[name]
    if order == 2 and any(e.word == "spring" for e in train.elements):
        n *= 4  # it oscillates
    expected = reference(name)
    pair = Pair(train, 1e-3, order, n=n)
    result = pair.sim.run(T)
    w, _ = expected(result.time)
    for k in range(len(train.J)):
        assert np.abs(result[f"s{k}.w"] - w[:, k]).max() <= accuracy * np.ptp(w[:, k])
    for i, element in enumerate(pair.dense.names):
        phases = expected.ways(i)
        assert not element.startswith("lossy") or {way for _, way in phases} == ways
        if len(pair.dense.names) == 1:
            seen = [(c.time_s, c.mode) for c in result.modes if c.element == element]
            assert [way for _, way in seen] == [way for _, way in phases]
            times = [[t for t, _ in changes] for changes in (seen, phases)]
            np.testing.assert_allclose(*times, rtol=0.0, atol=1e-4 if n == 1 else 1e-5)
        # several gears that stand still together share the load in more than one way: which of them lets go first is
        # open, when they all move is not
        else:
            moving = [np.abs(speeds) > 1e-9 for speeds in (result["s0.w"], w[:, 0])]
            assert (moving[0] != moving[1]).sum() <= 1
    branches = {mode.branch for phase in expected.phases for mode in phase.modes if mode.way in (-1, 1)}
    assert branches == {0, 1}, "the power reverses"


def gear_test(torque_a: float, torque_b: float, table: tuple[tuple[float, ...], ...], w0: float = 0.0) -> Simulation:
    """J_a = 0.1, ratio 10, J_b = 0.05; after one tick of 1 ms."""
    d = Driveline("gear")
    d.add("a", Inertia(J=0.1, w0=w0))
    d.add("b", Inertia(J=0.05))
    d.add("gear", LossyGear(ratio=10, lossTable=[list(row) for row in table]))
    d.add("ta", ConstantTorque(tau_constant=torque_a))
    d.add("tb", ConstantTorque(tau_constant=torque_b))
    d.connect("a.flange_b", "gear.flange_a", "ta.flange")
    d.connect("b.flange_a", "gear.flange_b", "tb.flange")
    sim = Simulation(d, h=1e-3)
    sim.step()
    return sim


def test_efficiency_by_hand_in_both_directions_of_power() -> None:
    # driven at a: 10*eta1*ta = J_b*a_b, a_a = 10*a_b, T - J_a*a_a = ta
    sim = gear_test(5.0, 0.0, ((0.0, 0.8, 0.7, 0.0, 0.0),))
    assert sim.output("a.a") == pytest.approx(5.0 / (0.1 + 0.05 / (100.0 * 0.8)), rel=1e-9)
    assert sim.output("gear.tau_b") == pytest.approx(-8.0 * sim.output("gear.tau_a"), rel=1e-9)
    # driven at b: ta = -eta2*tb/10
    sim = gear_test(0.0, 50.0, ((0.0, 0.8, 0.7, 0.0, 0.0),))
    assert sim.output("a.a") == pytest.approx(0.7 * 5.0 / (0.1 + 0.7 * 0.05 / 100.0), rel=1e-9)
    assert sim.output("gear.tau_a") == pytest.approx(-0.07 * sim.output("gear.tau_b"), rel=1e-9)


@pytest.mark.parametrize("load", [1.0, 100.0, 1e4, -1.0, -1e4])
def test_a_self_locking_gear_cannot_be_driven_back_by_any_load(load: float) -> None:
    sim = gear_test(0.0, load, WORM)
    for _ in range(50):
        sim.step()
    assert sim.output("a.w") == 0.0 and sim.output("gear.mode") == 0
    assert sim.output("gear.tau_b") == pytest.approx(load, rel=1e-12)


def test_a_self_locking_gear_is_driven_forward_by_the_motor_and_stops_without_it() -> None:
    sim = gear_test(5.0, -8.0, WORM)
    # load torque t = 0.8 + J_b/100*a referred to a; motor: 5 = J_a*a + t/eta1 + tbf1/eta1
    assert sim.output("gear.mode") == 1
    assert sim.output("a.a") == pytest.approx((5.0 - (0.8 + 0.3) / 0.4) / (0.1 + 5e-4 / 0.4), rel=1e-9)
    # without motor torque the load (still against the motion) stops it, and then it stays
    sim = gear_test(0.0, -8.0, WORM, w0=2.0)
    for _ in range(200):
        sim.step()
    assert sim.output("gear.mode") == 0 and sim.output("a.w") == 0.0
    assert sim.output("gear.tau_b") == pytest.approx(-8.0, rel=1e-12)


def test_losses_are_what_the_energy_lacks() -> None:
    train, T, _ = SYSTEMS["three in series without inertia between"]
    pair = Pair(train, 1e-3, order=4, n=4)
    result = pair.sim.run(T)
    balance = result.energy()
    assert balance.relative_residual < 1e-6
    for name in pair.dense.names:
        assert np.diff(result[f"{name}.heat"]).min() >= -1e-12 and result[f"{name}.heat"][-1] > 0.0


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize(("n", "d"), [(1.0, 0.0), (1.5, 0.0), (1.5, 10.0), (2.0, 10.0)])
@pytest.mark.parametrize("load", [-20.0, 20.0])
def test_the_loss_beside_a_gap_with_an_exponent_is_that_of_the_gears_own_torque(
    order: int, n: float, d: float, load: float
) -> None:
    """A rack on the shaft of flange_a, its mass against a buffer: max(A, B) of the torque on flange_a at every tick."""
    drive = Driveline("buffer", order=order)
    drive.add("a", Inertia(J=0.1, w0=50.0))
    drive.add("gear", LossyGear(ratio=2, lossTable=[[0, 0.8, 0.7, 0.5, 0.4]]))
    drive.add("b", Inertia(J=0.3))
    drive.add("T", kinds.Torque())
    drive.add("rack", kinds.IdealGearR2T(ratio=20))
    drive.add("m", kinds.Mass(m=5.0))
    drive.add("buffer", kinds.ElastoGap(c=2000.0, d=d, n=n))
    drive.add("wall", kinds.TranslationalFixed())
    drive.connect("T.flange", "a.flange_a", "gear.flange_a", "rack.flangeR")
    drive.connect("gear.flange_b", "b.flange_a")
    drive.connect("rack.flangeT", "m.flange_a")
    drive.connect("m.flange_b", "buffer.flange_a")
    drive.connect("buffer.flange_b", "wall.flange")
    r = Simulation(drive, h=1e-3).run(0.01, inputs={"T.tau": load})
    assert (r["buffer.regime"][1:] != 0.0).all()
    ta = r["gear.tau_a"]
    right = np.maximum(0.2 * ta + 0.5, (1.0 - 1.0 / 0.7) * ta + 0.4)
    np.testing.assert_allclose(r["gear.tauLoss"][1:], right[1:], rtol=1e-9)
