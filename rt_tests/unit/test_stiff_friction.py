"""Friction where the step does not resolve the springs, at the limit, and against flanges without inertia."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from torqueloop.core.components import (
    Brake,
    Clutch,
    ConstantSpeed,
    Damper,
    ElastoBacklash,
    Fixed,
    HardStop,
    Inertia,
    SpringDamper,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Ramp
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

orders = pytest.mark.parametrize("order", [2, 4])


def assert_passive(r: Result, tolerance: float) -> None:
    """Stored energy and heat are the work put in; friction never gives heat back."""
    heats = [r[n] for n in r.names if n.endswith((".heat", ".loss"))]
    stored = r["energy.kinetic"] + r["energy.potential"]
    work = sum((r[n] for n in r.names if n.endswith(".work")), np.zeros(len(r)))
    turned = stored.max() + np.abs(np.diff(work)).sum()
    total = stored + sum(heats) - work
    assert np.isfinite(total).all()
    assert np.abs(total - total[0]).max() <= tolerance * turned
    assert all(np.diff(r[n]).min() >= 0.0 for n in r.names if n.endswith(".heat"))
    assert r.counters["negative_heat"] == 0


def clearance(c: float, d: float, order: int, fn: float = 30.0) -> Driveline:
    """A torque on a small inertia that hits another one, which a clutch joins to a large one."""
    train = Driveline("clearance", order=order)
    for name, J in (("A", 0.1), ("M", 0.05), ("N", 1.0)):
        train.add(name, Inertia(J=J))
    train.add("E", ElastoBacklash(c=c, d=d, b=0.001))
    train.add("K", Clutch(fn_max=fn, mue_pos=1.0))
    train.add("T", Torque())
    train.connect("T.flange", "A.flange_a")
    train.connect("A.flange_b", "E.flange_a")
    train.connect("E.flange_b", "M.flange_a")
    train.connect("M.flange_b", "K.flange_a")
    train.connect("K.flange_b", "N.flange_a")
    return train


def braked_spring(J: float, c: float, d: float, w0: float, fn: float, order: int) -> Driveline:
    """A drum on a spring to the ground, with a brake."""
    train = Driveline("drum", order=order)
    train.add("J", Inertia(J=J, w0=w0))
    train.add("S", SpringDamper(c=c, d=d))
    train.add("F", Fixed())
    train.add("B", Brake(fn_max=fn, mue_pos=1.0))
    train.connect("J.flange_a", "S.flange_a", "B.flange_a")
    train.connect("S.flange_b", "F.flange")
    return train


@orders
@pytest.mark.parametrize(("c", "d"), [(1e7, 100.0), (2e6, 0.0), (5e6, 10.0), (3e7, 0.0), (1e9, 1e4)])
def test_a_clearance_harder_than_the_step_resolves_in_front_of_a_clutch(c: float, d: float, order: int) -> None:
    r = Simulation(clearance(c, d, order), h=1e-3).run(0.3, inputs={"T.tau": 10.0, "K.f_normalized": 1.0})
    assert_passive(r, 1e-4)
    # the whole turns as one in the mean: 10 N.m on 1.15 kg.m2
    momentum = 0.1 * r["A.w"] + 0.05 * r["M.w"] + 1.0 * r["N.w"]
    np.testing.assert_allclose(momentum, 10.0 * r.time, atol=1e-6)
    assert r.counters["fallbacks"] <= 0.4 * len(r)


@orders
@pytest.mark.parametrize("case", [
    (1e-4, 1e5, 100.0, 10.0, 1000.0), (1e-4, 3e3, 10.0, 100.0, 2000.0), (1e-3, 3e3, 10.0, 100.0, 2000.0),
    (1e-2, 3e3, 10.0, 100.0, 2000.0),
])  # fmt: skip
def test_a_brake_on_a_spring_takes_energy_only(case: tuple[float, ...], order: int) -> None:
    J, c, d, w0, fn = case
    held = Simulation(braked_spring(J, c, d, w0, fn, order), h=1e-3).run(0.2, inputs={"B.f_normalized": 1.0})
    assert_passive(held, 2e-4)
    pulses = Pulse(amplitude=1.0, width=50.0, period=0.0073)
    pulsed = Simulation(braked_spring(J, c, d, w0, fn, order), h=1e-3).run(0.2, inputs={"B.f_normalized": pulses})
    assert_passive(pulsed, 2e-4)
    stored = pulsed["energy.kinetic"] + pulsed["energy.potential"]
    assert np.diff(stored).max() <= 1e-6 * stored[0]


@orders
@pytest.mark.parametrize("swing", [0.3, 0.4, 0.5, 0.55, 0.65, 0.75, 0.85, 0.95, 1.0, 1.5, 3.0])
def test_energy_of_a_braked_drum_closes_from_the_limit_of_what_is_resolved_on(swing: float, order: int) -> None:
    """h*omega = swing. Trials cut on their polynomial and dampers by the cubic of the speed lost 1e-3 below 1."""
    for J, damping in itertools.product((1e-4, 1e-2, 1e-1), (0.0, 0.003, 0.01, 0.03, 0.1, 1.0)):
        c = J * (swing / 1e-3) ** 2
        drum = braked_spring(J, c, 2.0 * damping * np.sqrt(c * J), 20.0, 5.0 * np.sqrt(J / 1e-2), order)
        pulses = Pulse(amplitude=1.0, width=40.0, period=0.0117 if damping == 0.01 else 0.0073)
        r = Simulation(drum, h=1e-3).run(0.3, inputs={"B.f_normalized": pulses})
        assert_passive(r, 1e-12)
        assert r.counters["refused"] == 0
        assert np.diff(r["S.loss"]).min() >= 0.0


@orders
def test_heat_of_a_damper_the_step_does_not_resolve_is_the_energy_lost(order: int) -> None:
    d = Driveline("damper", order=order)
    d.add("A", Inertia(J=1.0, w0=10.0))
    d.add("B", Inertia(J=1e-3))
    d.add("D", Damper(d=100.0))
    d.connect("A.flange_b", "D.flange_a")
    d.connect("D.flange_b", "B.flange_a")
    r = Simulation(d, h=1e-3).run(0.5)
    lost = 0.5 * 1.0 * 100.0 - 0.5 * 1.001 * (10.0 / 1.001) ** 2
    assert r["D.loss"][-1] == pytest.approx(lost, rel=1e-6)
    assert_passive(r, 1e-12)


@orders
@pytest.mark.parametrize("late", [0.0, 0.1e-3, 0.37e-3, 0.8e-3])
def test_break_away_against_a_driven_flange_is_located(order: int, late: float) -> None:
    """10 N.m hold; the load grows by 20 N.m/s: they let go at 0.5 s + late, whatever the grid."""
    d = Driveline("held by a speed", order=order)
    d.add("W", ConstantSpeed(w_fixed=10.0))
    d.add("K", Clutch(fn_max=10.0, mue_pos=1.0))
    d.add("J", Inertia(J=1.0, w0=10.0))
    d.add("T", Torque())
    d.connect("W.flange", "K.flange_a")
    d.connect("K.flange_b", "J.flange_a")
    d.connect("T.flange", "J.flange_b")
    load = Ramp(height=40.0, duration=2.0, startTime=late)
    r = Simulation(d, h=1e-3).run(1.0, inputs={"T.tau": load, "K.f_normalized": 1.0})
    assert r.counters["fallbacks"] == 0
    assert [change.mode for change in r.modes] == [0, 1]
    assert r.modes[1].time_s == pytest.approx(0.5 + late, abs=1e-8)
    assert r["J.w"][-1] == pytest.approx(10.0 + 10.0 * (0.5 - late) ** 2, rel=1e-9)


@orders
def test_an_element_at_its_limit_keeps_its_peak_until_it_slides(order: int) -> None:
    """10 N.m with peak 1.5 beside 20 N.m with peak 1.2: together they hold 39 N.m, and slide with 30."""
    d = Driveline("two brakes", order=order)
    d.add("J", Inertia(J=1.0))
    d.add("B1", Brake(fn_max=10.0, mue_pos=1.0, peak=1.5))
    d.add("B2", Brake(fn_max=20.0, mue_pos=1.0, peak=1.2))
    d.add("T", Torque())
    d.connect("T.flange", "J.flange_a", "B1.flange_a", "B2.flange_a")
    load = Ramp(height=45.0, duration=1.0, startTime=0.0003)
    r = Simulation(d, h=1e-3).run(1.0, inputs={"T.tau": load, "B1.f_normalized": 1.0, "B2.f_normalized": 1.0})
    away = 39.0 / 45.0 + 0.0003
    assert sorted((c.element, c.mode) for c in r.modes if c.time_s > 0.1) == [("B1", 1), ("B2", 1)]
    assert all(c.time_s == pytest.approx(away, abs=1e-9) for c in r.modes if c.time_s > 0.1)
    rest = r.time < away
    held = r["B1.tau"] + r["B2.tau"]
    np.testing.assert_allclose(held[1:][rest[1:]], load.sample(r.time, -1)[1:][rest[1:]], atol=1e-9)
    dt = 1.0 - away
    assert r["J.w"][-1] == pytest.approx(9.0 * dt + 22.5 * dt**2, rel=1e-6)


@orders
def test_a_stuck_clutch_never_shows_more_than_its_capacity(order: int) -> None:
    d = clearance(1e8, 100.0, order, fn=10.0)
    r = Simulation(d, h=1e-3).run(0.5, inputs={"T.tau": 10.0, "K.f_normalized": 1.0})
    assert np.abs(r["K.tau"]).max() <= 10.0 * (1.0 + 1e-9)
    assert_passive(r, 1e-4)


@orders
@pytest.mark.parametrize("seed", range(3))
def test_a_chain_of_springs_and_clutches_gives_no_heat_back(seed: int, order: int) -> None:
    d, inputs = Driveline("chain", order=order), {}
    g = np.random.default_rng(seed)
    for k in range(21):
        d.add(f"J{k}", Inertia(J=0.01, w0=float(g.uniform(-10.0, 10.0))))
    for k in range(20):
        if k % 2:
            d.add(f"c{k}", Clutch(fn_max=30.0, mue_pos=1.0))
            inputs[f"c{k}.f_normalized"] = 1.0
        else:
            d.add(f"c{k}", SpringDamper(c=1e5, d=1.0))
        d.connect(f"J{k}.flange_b", f"c{k}.flange_a")
        d.connect(f"c{k}.flange_b", f"J{k + 1}.flange_a")
    r = Simulation(d, h=1e-3).run(0.5, inputs=inputs)
    assert_passive(r, 1e-6)
    # ten clutches stop in the first steps, more of them in one step than are located one by one
    assert r.counters["fallbacks"] <= 6


@pytest.mark.parametrize("product, error", [(2.0, 0.02), (5.0, 0.06)])
def test_a_brake_that_lets_go_within_a_step_is_steep_in_its_middle_only(product: float, error: float) -> None:
    """J w' = T - g p(t) w, p from 1 to 0.004 in one step; product: h g/J. With the torque of the middle at a predicted
    speed the step would be in error by ten times as much. Reference: the integral of the linear equation."""
    h, J, T, least = 1e-3, 0.01, 2.0, 0.004
    g = product * J / h
    drum = Driveline("drum", order=4)
    # (beside a stop no step is quiet)
    parts = {"J": Inertia(J=J, w0=T / g), "S": HardStop(phi_min=-100.0, phi_max=100.0), "wall": Fixed(), "T": Torque(),
             "B": Brake(fn_max=50.0 * g, mue_pos=[[0.0, 0.0], [50.0, 1.0], [100.0, 1.0]])}  # fmt: skip
    for name, part in parts.items():
        drum.add(name, part)
    drum.connect("B.flange_a", "T.flange", "J.flange_a")
    drum.connect("J.flange_b", "S.flange_a")
    drum.connect("S.flange_b", "wall.flange")
    letting_go = Ramp(height=least - 1.0, duration=h, offset=1.0, startTime=h)
    r = Simulation(drum, h=h).run(0.002, inputs={"T.tau": T, "B.f_normalized": letting_go})
    x = np.linspace(0.0, 1.0, 100_001)
    grown = np.exp(product * (x + 0.5 * (least - 1.0) * x * x))
    exact = (T / g + T * h / J * np.trapezoid(grown, x)) / grown[-1]
    assert r["J.w"][-2] == pytest.approx(T / g, rel=1e-9)
    assert r["J.w"][-1] == pytest.approx(exact, rel=error)
    assert r.counters["steep_unsolved"] == r.counters["fallbacks"] == 0
