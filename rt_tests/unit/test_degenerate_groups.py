"""Degenerate clearances, lossy gears, forced motions and heat: laws at the edge of their range, checked as facts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hard_drivelines import Array

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Accelerate,
    BearingFriction,
    Clutch,
    Component,
    ConstantSpeed,
    EddyCurrentBrake,
    ElastoBacklash,
    ElastoBacklash2,
    FixedTemperature,
    HeatCapacitor,
    Inertia,
    LossyGear,
    Position,
    Speed,
    SpringDamper,
    ThermalConductor,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import OverconstrainedError
from torqueloop.core.describe.tables import Columns
from torqueloop.core.signals import Sine, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

orders = pytest.mark.parametrize("order", [2, 4])
kinds = pytest.mark.parametrize("kind", [ElastoBacklash, ElastoBacklash2])


# --- clearance ------------------------------------------------------------------------------------------------------
def two_shafts(joint: Component, order: int | str = "auto", clutch: float = 0.0) -> Driveline:
    """J1 = 1 kg.m2 with 10 rad/s - joint - J2 = 2 kg.m2 (- clutch - J3 = 1 kg.m2)."""
    d = Driveline("two shafts", order=order)
    d.add("J1", Inertia(J=1.0, w0=10.0))
    d.add("J2", Inertia(J=2.0))
    d.add("joint", joint)
    d.connect("J1.flange_b", "joint.flange_a")
    d.connect("joint.flange_b", "J2.flange_a")
    if clutch:
        d.add("J3", Inertia(J=1.0))
        d.add("c", Clutch(fn_max=clutch, mue_pos=1.0))
        d.connect("J2.flange_b", "c.flange_a")
        d.connect("c.flange_b", "J3.flange_a")
    return d


def momentum(x: Result) -> Array:
    """Angular momentum of two_shafts."""
    return np.asarray(x["J1.w"] + 2.0 * x["J2.w"] + (x["J3.w"] if "J3.w" in x else 0.0))


def stored(x: Result) -> Array:
    """Kinetic and potential energy."""
    return x["energy.kinetic"] + x["energy.potential"]


@orders
@kinds
@pytest.mark.parametrize("d", [0.0, 10.0, 1e3])
@pytest.mark.parametrize("c", [1e3, 1e5, 1e6, 1e7, 1e9])
def test_contact_of_any_stiffness_creates_no_energy(c: float, d: float, kind: Any, order: int) -> None:
    """h*omega of the contact from 0.04 to 39: two shafts knock against each other until they turn together."""
    x = Simulation(two_shafts(kind(c=c, d=d, b=0.02), order)).run(0.5)
    assert np.abs(momentum(x) - 10.0).max() < 1e-8
    assert stored(x).max() <= 50.0 * (1.0 + min(1e-2, 1.5e-8 * c))
    # inside the gap, or as deep in contact as the whole energy can press it
    assert np.abs(x["joint.phi_rel"]).max() <= 0.01 + np.sqrt(2.0 * 50.0 / c) * 1.01
    assert np.all(np.diff(x["joint.loss"]) >= -1e-9)


@orders
@kinds
@pytest.mark.parametrize("d", [0.0, 10.0, 1e3])
@pytest.mark.parametrize("c", [1e3, 1e4])
def test_energy_that_a_contact_takes_is_its_loss(c: float, d: float, kind: Any, order: int) -> None:
    """Resolved contacts (h*omega up to 0.12): nothing is taken that is not booked, without damping nothing at all."""
    x = Simulation(two_shafts(kind(c=c, d=d, b=0.02), order)).run(0.5)
    assert 50.0 - stored(x)[-1] == pytest.approx(x["joint.loss"][-1], abs=0.5)
    if d == 0.0:
        assert not x["joint.loss"].any()


@orders
@pytest.mark.parametrize("h", [1e-2, 1e-1])
def test_contact_at_steps_far_too_large_is_bounded(h: float, order: int) -> None:
    x = Simulation(two_shafts(ElastoBacklash(c=1e4, d=1.0, b=0.02), order), h=h).run(2.0)
    assert np.abs(momentum(x) - 10.0).max() < 1e-8
    assert stored(x).max() <= 50.0 * 1.01


@orders
# from 1e8 on an impact is over within a step: only a trial of its length shows that the clutch gives way
@pytest.mark.parametrize("c", [1e4, 1e6, 0.9999e8, 1e8, 1.0001e8, 1.01e8, 1e9])
def test_contact_and_clutch_together_create_no_energy(c: float, order: int) -> None:
    x = Simulation(two_shafts(ElastoBacklash(c=c, d=1.0, b=0.02), order, clutch=20.0)).run(
        0.5, inputs={"c.f_normalized": 1.0}
    )
    assert np.abs(momentum(x) - 10.0).max() < 1e-8
    assert stored(x).max() <= 50.0 * 1.01
    assert np.abs(np.diff(x["J3.w"])).max() <= 20.0 * 1e-3 * (1.0 + 1e-6)


@orders
def test_an_impact_within_a_step_gives_no_more_than_the_clutch_carries(order: int) -> None:
    """Stiffnesses between the round ones: where a trial ends inside the impact is a matter of the last digit."""
    for c in 10 ** np.random.default_rng(1).uniform(5.0, 10.0, 60):
        x = Simulation(two_shafts(ElastoBacklash(c=c, d=1.0, b=0.02), order, clutch=20.0)).run(
            0.5, inputs={"c.f_normalized": 1.0}
        )
        assert np.abs(np.diff(x["J3.w"])).max() <= 20.0 * 1e-3 * (1.0 + 1e-6), f"c = {c:g}"


@orders
@kinds
@pytest.mark.parametrize("b", [0.0, 1e-12])
def test_clearance_of_nothing_is_a_spring_and_damper(b: float, kind: Any, order: int) -> None:
    gap = Simulation(two_shafts(kind(c=1e4, d=1.0, b=b), order)).run(0.3)
    spring = Simulation(two_shafts(SpringDamper(c=1e4, d=1.0), order)).run(0.3)
    for name in ("J1.w", "J2.w", "joint.phi_rel", "joint.w_rel", "joint.tau", "joint.loss"):
        assert np.array_equal(gap[name], spring[name])


@orders
def test_tiny_clearance_is_nearly_a_spring(order: int) -> None:
    """b = 1e-9 rad crossed at 10 rad/s: no dwell in the gap that a step could see; only the damper may not pull."""
    gap = Simulation(two_shafts(ElastoBacklash(c=1e4, d=0.0, b=1e-9), order)).run(0.3)
    spring = Simulation(two_shafts(SpringDamper(c=1e4, d=0.0), order)).run(0.3)
    assert np.abs(gap["J1.w"] - spring["J1.w"]).max() < 0.05
    assert np.abs(momentum(gap) - 10.0).max() < 1e-9


@orders
def test_wide_clearance_is_never_reached(order: int) -> None:
    x = Simulation(two_shafts(ElastoBacklash(c=1e9, d=1e3, b=1e3), order)).run(1.0)
    assert np.all(x["J1.w"] == 10.0) and not x["J2.w"].any() and not x["joint.tau"].any()


@orders
def test_contact_at_rest_on_the_edge_of_the_gap_carries_nothing(order: int) -> None:
    d = two_shafts(ElastoBacklash(c=1e6, d=10.0, b=0.02), order)
    d.set_start("joint.phi_rel", 0.01)
    d.replace("J1", w0=0.0)
    x = Simulation(d).run(0.1)
    assert not x["J1.w"].any() and not x["joint.tau"].any()


# --- lossy gear -----------------------------------------------------------------------------------------------------
def lossy(eta1: float, eta2: float, bearing: float = 0.0) -> Columns:
    """A loss table that does not depend on the speed."""
    data = ((0.0,), (eta1,), (eta2,), (bearing,), (bearing,))
    return Columns(data, ("angular_velocity", "1", "1", "torque", "torque"))


def geared(losses: Columns, order: int, w0: float = 0.0) -> Driveline:
    """J1 = 0.5 - LossyGear, w_a = 3 w_b - J2 = 2; torques Ta on J1, Tb on J2."""
    d = Driveline("geared", order=order)
    d.add("J1", Inertia(J=0.5, w0=w0))
    d.add("J2", Inertia(J=2.0))
    d.add("g", LossyGear(ratio=Fraction(3), lossTable=losses))
    d.add("Ta", Torque())
    d.add("Tb", Torque())
    d.connect("J1.flange_b", "g.flange_a", "Ta.flange")
    d.connect("g.flange_b", "J2.flange_a", "Tb.flange")
    return d


def run_geared(losses: Columns, order: int, ta: float, tb: float, w0: float = 0.0, h: float = 1e-3) -> Result:
    x = Simulation(geared(losses, order, w0), h=h).run(0.5, inputs={"Ta.tau": ta, "Tb.tau": tb})
    assert np.abs(x["J1.w"] - 3.0 * x["J2.w"]).max() < 1e-9
    assert x.energy().residual == pytest.approx(0.0, abs=1e-9)
    return x


@orders
@pytest.mark.parametrize("eta", [1e-3, 0.05, 0.5, 0.99, 1.0 - 1e-9])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lossy_gear_driven_from_a(sign: float, eta: float, order: int) -> None:
    """J1 w' = Ta - ta,  J2 w'/3 = 3 eta ta  ->  w' = Ta/(J1 + J2/(9 eta))."""
    x = run_geared(lossy(eta, eta), order, 10.0 * sign, 0.0)
    acceleration = 10.0 * sign / (0.5 + 2.0 / (9.0 * eta))
    assert x["J1.w"][-1] == pytest.approx(0.5 * acceleration, rel=1e-9)
    ta = 10.0 * sign - 0.5 * acceleration
    assert x["g.tau_a"][-1] == pytest.approx(ta, rel=1e-9)
    assert x["g.tauLoss"][-1] == pytest.approx((1.0 - eta) * ta, rel=1e-6)
    assert x["g.heat"][-1] == pytest.approx((1.0 - eta) * ta * 0.5 * acceleration * 0.25, rel=1e-6)


@orders
@pytest.mark.parametrize("eta", [1e-3, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lossy_gear_driven_from_b(sign: float, eta: float, order: int) -> None:
    """The mesh passes eta times the power that J2 gives to J1: w_b' (J2 + 9 J1/eta) = Tb."""
    x = run_geared(lossy(eta, eta), order, 0.0, 10.0 * sign)
    acceleration = 10.0 * sign / (2.0 + 9.0 * 0.5 / eta)
    assert x["J2.w"][-1] == pytest.approx(0.5 * acceleration, rel=1e-9)
    assert x["g.tau_a"][-1] == pytest.approx(-0.5 * 3.0 * acceleration, rel=1e-9)
    assert x["g.heat"][-1] > 0.0


@orders
def test_lossless_gear_is_an_ideal_gear(order: int) -> None:
    x = run_geared(lossy(1.0, 1.0), order, 10.0, -3.0)
    acceleration = (10.0 - 1.0) / (0.5 + 2.0 / 9.0)
    assert x["J1.w"][-1] == pytest.approx(0.5 * acceleration, rel=1e-12)
    assert x["g.tau_b"][-1] == pytest.approx(-3.0 * x["g.tau_a"][-1], rel=1e-12)


@orders
@pytest.mark.parametrize("eta", [1e-3, 0.5, 1.0 - 1e-9])
@pytest.mark.parametrize("w0", [0.0, 30.0, -30.0])
def test_lossy_gear_without_torque_loses_nothing(w0: float, eta: float, order: int) -> None:
    """Which side drives is undecided at zero torque; either way there is no loss, and no event."""
    x = run_geared(lossy(eta, eta), order, 0.0, 0.0, w0)
    assert x["J1.w"] == pytest.approx(w0, rel=1e-12)
    assert np.abs(x["g.tauLoss"]).max() < 1e-9 and abs(x["g.heat"][-1]) < 1e-9
    assert x.counters["events"] == 0 and x.counters["fallbacks"] == 0


@orders
@pytest.mark.parametrize("h", [1e-3, 1e-1])
def test_bearing_torque_alone_stops_the_gear_and_holds_it(h: float, order: int) -> None:
    """1 N.m at flange_a: from 0.3 rad/s to rest in 0.3*(J1 + J2/9) s, then for ever."""
    x = run_geared(lossy(1.0, 1.0, 1.0), order, 0.0, 0.0, 0.3, h)
    assert x["J1.w"][-1] == 0.0 and x["J2.w"][-1] == 0.0
    assert x["g.heat"][-1] == pytest.approx(0.5 * (0.5 + 2.0 / 9.0) * 0.09, rel=1e-9)
    assert x["J1.phi"][-1] == pytest.approx(x["g.heat"][-1] / 1.0, rel=1e-9)


@orders
def test_lossy_gear_rests_between_the_torques_that_would_move_it(order: int) -> None:
    """eta = 0.5: Ta = 10 holds against every Tb from -30*0.5 to -30/0.5."""
    for tb in (-15.0, -29.0, -30.0, -59.0):
        x = run_geared(lossy(0.5, 0.5), order, 10.0, tb)
        assert np.abs(x["J1.w"]).max() < 1e-9
        assert x["g.tau_a"][-1] == pytest.approx(10.0, rel=1e-9)
        assert x["g.tau_b"][-1] == pytest.approx(tb, rel=1e-9)
    for tb, forward in ((-14.0, True), (-61.0, False)):
        assert (run_geared(lossy(0.5, 0.5), order, 10.0, tb)["J1.w"][-1] > 0.0) == forward


# --- forced motions -------------------------------------------------------------------------------------------------
def driven(motion: Component, order: int, inertia: float = 0.5) -> Driveline:
    """m forces J1 (or a shaft without inertia), which a clutch of 10 N.m joins to J2 = 2 kg.m2."""
    d = Driveline("driven", order=order)
    d.add("m", motion)
    d.add("c", Clutch(fn_max=10.0, mue_pos=1.0))
    d.add("J2", Inertia(J=2.0))
    d.connect("m.flange", "c.flange_a")
    d.connect("c.flange_b", "J2.flange_a")
    if inertia:
        d.add("J1", Inertia(J=inertia))
        d.connect("J1.flange_a", "m.flange")
    return d


def run_driven(
    motion: Component, order: int, inputs: dict[str, Any], duration: float = 0.5, h: float = 1e-3, inertia: float = 0.5
) -> Result:
    x = Simulation(driven(motion, order, inertia), h=h).run(duration, inputs={"c.f_normalized": 1.0, **inputs})
    assert np.all(np.isfinite(x.values))
    return x


@orders
@pytest.mark.parametrize("inertia", [0.0, 1e-6, 0.5, 1e6])
def test_constant_speed_does_the_work_the_clutch_takes(inertia: float, order: int) -> None:
    """Whatever turns with it, also nothing."""
    x = run_driven(ConstantSpeed(w_fixed=20.0), order, {}, inertia=inertia)
    assert np.all(x["m.w"] == 20.0)
    assert x["J2.w"] == pytest.approx(5.0 * x.time, rel=1e-9, abs=1e-12)
    assert x["m.tau"][1:] == pytest.approx(10.0, rel=1e-9)
    assert x["m.work"][-1] == pytest.approx(10.0 * 20.0 * 0.5, rel=1e-9)
    assert x["c.heat"][-1] == pytest.approx(100.0 - 0.5 * 2.0 * 2.5**2, rel=1e-9)


@orders
def test_speed_of_1e30(order: int) -> None:
    x = run_driven(Speed(exact=True), order, {"m.w_ref": 1e30})
    assert np.all(x["m.w"] == 1e30)
    assert x["J2.w"][-1] == pytest.approx(2.5, rel=1e-9)


@orders
def test_forced_standstill_holds_against_everything(order: int) -> None:
    d = driven(ConstantSpeed(w_fixed=0.0), order)
    d.replace("J2", w0=20.0)
    x = Simulation(d).run(5.0, inputs={"c.f_normalized": 1.0})
    assert not x["m.w"].any() and x["m.work"][-1] == pytest.approx(0.0, abs=1e-12)
    assert x["J2.w"][-1] == pytest.approx(0.0, abs=1e-12)
    assert x["c.heat"][-1] == pytest.approx(0.5 * 2.0 * 400.0, rel=1e-9)


@orders
def test_exact_speed_through_zero_and_back(order: int) -> None:
    x = run_driven(Speed(exact=True), order, {"m.w_ref": Sine(amplitude=10.0, f=2.0)}, 1.0)
    exact = 10.0 * np.sin(2.0 * np.pi * 2.0 * x.time)
    assert np.abs(x["m.w"] - exact).max() < 1e-9
    # the clutch passes 10 N.m at most
    assert np.abs(np.diff(x["J2.w"])).max() <= 10.0 / 2.0 * 1e-3 * (1.0 + 1e-9)
    assert x.energy().residual == pytest.approx(0.0, abs=1e-6 * x.energy().turned_over)


@orders
@pytest.mark.parametrize(("f_crit", "h"), [(50.0, 1e-3), (1e3, 1e-3), (1e6, 1e-3), (50.0, 0.1), (50.0, 1.0)])
def test_filtered_speed_settles_at_its_reference_at_any_step(f_crit: float, h: float, order: int) -> None:
    # the filter starts settled (Modelica's initial equation), so the reference steps up in the second tick
    x = run_driven(Speed(f_crit=f_crit), order, {"m.w_ref": Step(height=10.0, startTime=h)}, max(2.0, 10.0 * h), h)
    w = x["m.w"]
    assert w.min() >= -1e-9 and w.max() <= 10.5
    assert w[-1] == pytest.approx(10.0, rel=1e-3)
    if 2.0 * np.pi * f_crit * h < 0.5:
        since = np.maximum(x.time - h, 0.0)
        assert w == pytest.approx(10.0 * (1.0 - np.exp(-2.0 * np.pi * f_crit * since)), abs=0.05)


@orders
@pytest.mark.parametrize(("f_crit", "h"), [(50.0, 1e-3), (1e4, 1e-3), (50.0, 0.1), (50.0, 1.0)])
def test_filtered_position_settles_at_its_reference_at_any_step(f_crit: float, h: float, order: int) -> None:
    x = run_driven(Position(f_crit=f_crit), order, {"m.phi_ref": 1.0}, max(2.0, 10.0 * h), h)
    # a Bessel filter overshoots by less than one percent; some more is allowed where the step does not resolve it
    assert x["m.phi"].max() < 1.05 and x["m.phi"].min() > -0.05
    assert x["m.phi"][-1] == pytest.approx(1.0, rel=1e-3)


@orders
@pytest.mark.parametrize("name", ["speed", "position"])
def test_work_of_a_filtered_motion_is_what_it_leaves(name: str, order: int) -> None:
    """Work = heat of the clutch + kinetic energy, at the default filter and step."""
    if name == "speed":
        x = run_driven(Speed(), order, {"m.w_ref": 10.0})
    else:
        x = run_driven(Position(), order, {"m.phi_ref": 1.0})
    left = x["c.heat"][-1] + 0.25 * x["m.w"][-1] ** 2 + x["J2.w"][-1] ** 2
    assert x["m.work"][-1] == pytest.approx(left, rel=1e-3)


def test_two_forced_motions_on_one_shaft_contradict_each_other() -> None:
    d = driven(ConstantSpeed(w_fixed=1.0), 2)
    d.add("n", Accelerate())
    d.connect("n.flange", "J1.flange_b")
    with pytest.raises(OverconstrainedError, match="m, n"):
        compile_driveline(d)


# --- heat -----------------------------------------------------------------------------------------------------------
def heated(C: float, order: int, G: float | None = None, C2: float | None = None) -> Driveline:
    """J = 1 kg.m2 with 50 rad/s is braked by 50 N.m for 1 s: 1250 J into C, and on through G (to C2, or to 300 K)."""
    d = Driveline("heated", order=order)
    d.add("J", Inertia(J=1.0, w0=50.0))
    d.add("b", BearingFriction(tau_pos=50.0))
    d.add("C", HeatCapacitor(C=C, T0=300.0))
    d.connect("J.flange_a", "b.flange_a")
    d.connect("b.heatPort", "C.port")
    if G is not None:
        d.add("G", ThermalConductor(G=G))
        d.connect("G.port_a", "C.port")
        d.add("far", FixedTemperature(T=300.0) if C2 is None else HeatCapacitor(C=C2, T0=300.0))
        d.connect("G.port_b", "far.port")
    return d


@orders
@pytest.mark.parametrize("h", [1e-3, 1e-1, 1.0])
@pytest.mark.parametrize("C", [1e-9, 1e-3, 1e3])
def test_isolated_capacity_takes_all_heat(C: float, h: float, order: int) -> None:
    x = Simulation(heated(C, order), h=h).run(2.0)
    assert x["b.heat"][-1] == pytest.approx(1250.0, rel=1e-9)
    assert C * (x["C.T"][-1] - 300.0) == pytest.approx(1250.0, rel=1e-9)
    assert np.all(np.diff(x["C.T"]) >= 0.0)


@orders
@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("h", [1e-3, 1e-1])
def test_capacity_far_faster_than_the_step_follows_the_heat_flow(h: float, C: float, order: int) -> None:
    """C/G down to 1e-13 s: T = 300 K + P/G with P = 50 N.m * w, of some instant of the last step; never below 300 K."""
    x = Simulation(heated(C, order, G=10.0), h=h).run(2.0)
    T, power = x["C.T"], 50.0 * x["J.w"]
    assert T.min() >= 300.0 - 1e-9 and T.max() <= 300.0 + 2500.0 / 10.0 + 1e-9
    settled = x.time > 0.05
    low, high = 300.0 + power[1:] / 10.0, 300.0 + power[:-1] / 10.0
    lag = 2500.0 / 10.0 * 10.0 * C / 10.0
    assert np.all((T[1:] >= low - 1e-6)[settled[1:]]) and np.all((T[1:] <= high + lag + 1e-6)[settled[1:]])
    assert T[-1] == pytest.approx(300.0, abs=1e-6)


@orders
@pytest.mark.parametrize("G", [0.0, 1.0, 1e9])
def test_two_capacities_keep_the_heat_between_them(G: float, order: int) -> None:
    x = Simulation(heated(2.0, order, G=G, C2=3.0)).run(2.0)
    assert 2.0 * (x["C.T"][-1] - 300.0) + 3.0 * (x["far.T"][-1] - 300.0) == pytest.approx(1250.0, rel=1e-6)
    assert np.all(x["C.T"] >= x["far.T"] - 1e-6)
    if G == 1e9:
        assert (x["C.T"][-1], x["far.T"][-1]) == pytest.approx((550.0, 550.0), rel=1e-6)
    if G == 0.0:
        assert np.all(x["far.T"] == 300.0)


@orders
def test_capacities_over_seven_decades_in_a_row_even_out(order: int) -> None:
    d = Driveline("row", order=order)
    d.add("J", Inertia(J=1.0, w0=0.0))
    d.add("b", BearingFriction(tau_pos=1.0))
    d.connect("J.flange_a", "b.flange_a")
    C = 10.0 ** (np.arange(20) % 7 - 6.0)
    for k in range(20):
        d.add(f"C{k}", HeatCapacitor(C=float(C[k]), T0=300.0 + 10.0 * k))
    for k in range(19):
        d.add(f"G{k}", ThermalConductor(G=1e6))
        d.connect(f"G{k}.port_a", f"C{k}.port")
        d.connect(f"G{k}.port_b", f"C{k + 1}.port")
    x = Simulation(d).run(0.2)
    T = np.array([x[f"C{k}.T"] for k in range(20)])
    mean = C @ T[:, 0] / C.sum()
    assert np.abs(C @ T / C.sum() - mean).max() < 1e-6 * mean
    assert T[:, -1] == pytest.approx(np.full(20, mean), rel=1e-6)
    assert T.min() >= 300.0 - 1e-6 and T.max() <= 490.0 + 1e-6


@orders
@pytest.mark.parametrize("C", [1e-9, 1e-3, 10.0])
def test_eddy_brake_that_heats_itself_keeps_the_books(C: float, order: int) -> None:
    """The hotter, the weaker: with hardly any capacity it gives up at once; what J loses is in C."""
    d = Driveline("eddy", order=order)
    d.add("J", Inertia(J=1.0, w0=100.0))
    d.add("e", EddyCurrentBrake(tau_nominal=50.0, w_nominal=10.0, alpha20=4e-3))
    d.add("C", HeatCapacitor(C=C, T0=293.15))
    d.connect("J.flange_a", "e.flange")
    d.connect("e.heatPort", "C.port")
    x = Simulation(d).run(1.0)
    lost = 0.5 * (100.0**2 - x["J.w"] ** 2)
    assert np.all(np.diff(x["J.w"]) <= 0.0) and np.all(np.diff(x["C.T"]) >= 0.0)
    assert C * (x["C.T"][-1] - 293.15) == pytest.approx(lost[-1], rel=1e-2 if C == 1e-9 else 1e-5)
