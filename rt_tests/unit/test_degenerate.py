"""Degenerate drivelines: everything locked, open, redundant, all at the limit, without inertia, next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hard_drivelines import Array, braked_shafts, chain, pressed, run_chain

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Brake,
    Clutch,
    Damper,
    FreeWheel,
    Inertia,
    LaminarBrake,
    LaminarClutch,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

orders = pytest.mark.parametrize("order", [2, 4])
#: rounding of some hundred steps, relative
ROUNDING = 1e-12


# --- everything locked, everything open -----------------------------------------------------------------------------
@orders
def test_all_clutches_locked_is_one_body(order: int) -> None:
    J = np.array([0.3, 0.02, 1.7, 0.5, 0.5, 2.0, 0.01, 0.4, 0.9, 1.1, 0.2, 0.6])
    torque, seconds = 3.0, 0.5
    run = run_chain(chain(J, order=order), seconds, T_tau=torque)
    total = J.sum()
    assert run.w[:, -1] == pytest.approx(np.full(len(J), torque * seconds / total), rel=ROUNDING)
    assert np.ptp(run.w, axis=0).max() < ROUNDING
    # each clutch carries what the inertia behind it takes; tau is the torque on its first shaft
    for k in range(len(J) - 1):
        behind = J[k + 1 :].sum()
        assert run.result[f"c{k}.tau"][2:] == pytest.approx(-torque * behind / total, rel=1e-10)
        assert run.result[f"c{k}.heat"][-1] == pytest.approx(0.0, abs=1e-15)
    assert run.result.energy().residual == pytest.approx(0.0, abs=1e-12)


@orders
def test_everything_locked_to_the_housing_stays_at_rest(order: int) -> None:
    """More stuck elements than speeds; their torques must still balance every shaft."""
    d = chain([1.0] * 6, order=order)
    for k in range(6):
        d.add(f"b{k}", Brake(fn_max=1000.0, mue_pos=1.0))
        d.connect(f"b{k}.flange_a", f"J{k}.flange_b")
    run = run_chain(d, 0.1, T_tau=40.0)
    assert not run.w.any()
    x = run.result
    for k in range(6):
        from_left = 40.0 if k == 0 else -x[f"c{k - 1}.tau"][-1]
        from_right = x[f"c{k}.tau"][-1] if k < 5 else 0.0
        assert from_left + from_right - x[f"b{k}.tau"][-1] == pytest.approx(0.0, abs=1e-9)
    assert sum(x[f"b{k}.tau"][-1] for k in range(6)) == pytest.approx(40.0, rel=1e-10)


def open_driveline() -> Driveline:
    """Shafts with every kind of pressed element between them, and none pressed."""
    pack: dict[str, Any] = {"faces": 8, "r_o": 0.09, "r_i": 0.07, "mue_pos": 0.12, "area": 0.008, "p_return": 5e4}
    d = Driveline("open")
    for k, speed in enumerate((100.0, -40.0, 7.0)):
        d.add(f"J{k}", Inertia(J=0.5 + k, w0=speed))
    d.add("clutch", Clutch(fn_max=1e4, mue_pos=0.5))
    d.add("pack", LaminarClutch(tau_rise=0.05, **pack))
    d.add("brake", Brake(fn_max=1e4, mue_pos=0.5))
    d.add("pack_brake", LaminarBrake(**pack))
    d.add("T", Torque())
    d.connect("J0.flange_b", "clutch.flange_a")
    d.connect("clutch.flange_b", "J1.flange_a")
    d.connect("J1.flange_b", "pack.flange_a")
    d.connect("pack.flange_b", "J2.flange_a", "T.flange")
    d.connect("brake.flange_a", "J0.flange_a")
    d.connect("pack_brake.flange_a", "J2.flange_b")
    return d


def test_zero_pressure_everywhere_leaves_every_shaft_alone() -> None:
    x = Simulation(open_driveline()).run(0.3, inputs={"T.tau": 5.0})
    assert np.all(x["J0.w"] == 100.0) and np.all(x["J1.w"] == -40.0)
    assert x["J2.w"][-1] == pytest.approx(7.0 + 5.0 * 0.3 / 2.5, rel=ROUNDING)
    for name in ("clutch", "pack", "brake", "pack_brake"):
        assert np.all(x[f"{name}.mode"] == 2) and not x[f"{name}.tau"].any() and not x[f"{name}.heat"].any()
    assert x.modes == [] and x.counters["events"] == 0
    assert x.energy().residual == pytest.approx(0.0, abs=1e-9)


# --- redundant elements ---------------------------------------------------------------------------------------------
def parallel(capacities: list[float], order: int) -> Driveline:
    """J1 - clutches c0, c1, ... side by side - J2, which is held by a brake; torque on J1."""
    d = Driveline("parallel", order=order)
    d.add("J1", Inertia(J=0.4))
    d.add("J2", Inertia(J=2.0))
    d.add("T", Torque())
    d.add("hold", Brake(fn_max=1e6, mue_pos=1.0))
    d.connect("T.flange", "J1.flange_a")
    d.connect("hold.flange_a", "J2.flange_b")
    for k, capacity in enumerate(capacities):
        d.add(f"c{k}", Clutch(fn_max=capacity, mue_pos=1.0))
        d.connect(f"c{k}.flange_a", "J1.flange_b")
        d.connect(f"c{k}.flange_b", "J2.flange_a")
    return d


def run_parallel(capacities: list[float], load: float, order: int) -> tuple[Array, Array, float]:
    """Torques of the clutches, speed of J1 over time, torque of the brake; all brought to positive."""
    d = parallel(capacities, order)
    x = Simulation(d).run(0.1, inputs=pressed(d) | {"T.tau": load})
    assert x.energy().residual == pytest.approx(0.0, abs=1e-11)
    return np.array([-x[f"c{k}.tau"][-1] for k in range(len(capacities))]), x["J1.w"], float(x["hold.tau"][-1])


@orders
def test_ten_equal_clutches_side_by_side_share_equally(order: int) -> None:
    share, w, held = run_parallel([10.0] * 10, 50.0, order)
    assert share == pytest.approx(np.full(10, 5.0), rel=1e-9)
    assert held == pytest.approx(50.0, rel=1e-9)
    assert np.abs(w).max() < ROUNDING


@orders
@pytest.mark.parametrize("load", [1.0, 20.0, 50.0, 54.9])
def test_unequal_clutches_side_by_side_hold_up_to_the_sum_of_their_limits(order: int, load: float) -> None:
    limits = np.arange(1.0, 11.0)
    share, w, held = run_parallel([float(x) for x in limits], load, order)
    assert np.all(share <= limits * (1.0 + 1e-9)) and np.all(share > 0.0)
    assert share.sum() == pytest.approx(load, rel=1e-9) and held == pytest.approx(load, rel=1e-9)
    assert np.abs(w).max() < 1e-9


@orders
def test_clutches_side_by_side_slide_with_the_sum_of_their_capacities(order: int) -> None:
    share, w, held = run_parallel([float(k) for k in range(1, 11)], 60.0, order)
    assert share == pytest.approx(np.arange(1.0, 11.0), rel=ROUNDING)
    assert held == pytest.approx(55.0, rel=1e-9)
    assert w[-1] == pytest.approx((60.0 - 55.0) / 0.4 * 0.1, rel=1e-9)


@orders
def test_two_free_wheels_against_each_other_are_a_rigid_joint(order: int) -> None:
    d = Driveline("rigid", order=order)
    d.add("J1", Inertia(J=1.0))
    d.add("J2", Inertia(J=3.0))
    d.add("T", Torque())
    for name, a, b in (("f1", "J1", "J2"), ("f2", "J2", "J1")):
        d.add(name, FreeWheel())
        d.connect(f"{name}.flange_a", f"{a}.flange_b")
        d.connect(f"{name}.flange_b", f"{b}.flange_a" if b == "J2" else "J1.flange_b")
    d.connect("T.flange", "J1.flange_a")
    x = Simulation(d).run(1.0, inputs={"T.tau": lambda t: 8.0 * np.sin(2.0 * np.pi * t)})
    assert np.abs(x["J1.w"] - x["J2.w"]).max() < 1e-9
    # w = 8/4 (1 - cos(2 pi t))/(2 pi): the torque is given at start, middle and end of a step
    exact = 2.0 * (1.0 - np.cos(2.0 * np.pi * x.time)) / (2.0 * np.pi)
    assert np.abs(x["J1.w"] - exact).max() < 1e-5
    assert x["f1.heat"][-1] + x["f2.heat"][-1] == pytest.approx(0.0, abs=1e-9)


# --- all at the limit at once ---------------------------------------------------------------------------------------
@orders
def test_hundred_elements_reach_their_limit_in_the_same_instant(order: int) -> None:
    d = braked_shafts([0.0] * 100, J=0.5, fn=10.0, order=order)
    ramp = {f"t{k}.tau": (lambda t: 1000.0 * t) for k in range(100)}
    x = Simulation(d).run(0.06, inputs=pressed(d) | ramp)
    w = np.array([x[f"J{k}.w"] for k in range(100)])
    assert np.ptp(w, axis=0).max() == 0.0
    # they break away at 10 ms; then w' = (1000 t - 10)/0.5
    exact = np.maximum(0.0, x.time - 0.01) ** 2 * 1000.0
    assert np.abs(w[0] - exact).max() < 1e-12
    assert x.counters["fallbacks"] == 0 and x.counters["events"] == 1
    assert sorted((m.element, m.mode) for m in x.modes if m.mode == 1) == sorted((f"b{k}", 1) for k in range(100))
    assert x.energy().relative_residual < 1e-9


@orders
@pytest.mark.parametrize("h", [1e-3, 0.1])
def test_hundred_elements_come_to_rest_in_the_same_instant(order: int, h: float) -> None:
    d = braked_shafts([1.0] * 100, J=0.5, fn=10.0, order=order)
    x = Simulation(d, h=h).run(0.2, inputs=pressed(d))
    assert all(x[f"J{k}.w"][-1] == 0.0 for k in range(100))
    assert all(x[f"b{k}.heat"][-1] == pytest.approx(0.25, rel=ROUNDING) for k in range(100))
    assert all(x[f"J{k}.phi"][-1] == pytest.approx(0.5 * 1.0 * 0.05, rel=1e-9) for k in range(100))
    assert [m.time_s for m in x.modes if m.mode == 0] == pytest.approx([0.05] * 100, rel=1e-9)
    assert x.counters["fallbacks"] == 0 and x.counters["splits_max"] == 1


@orders
def test_hundred_elements_loaded_to_exactly_their_limit_do_not_move(order: int) -> None:
    d = braked_shafts([0.0] * 100, fn=10.0, order=order)
    loads = {f"t{k}.tau": (10.0 if k % 2 else -10.0) for k in range(100)}
    x = Simulation(d).run(0.1, inputs=pressed(d) | loads)
    for k in range(100):
        assert np.abs(x[f"J{k}.w"]).max() < 1e-9
        assert x[f"b{k}.tau"][1:] == pytest.approx(10.0 if k % 2 else -10.0, rel=ROUNDING)
    assert x.counters["fallbacks"] == 0


@orders
def test_a_chain_loaded_to_exactly_the_limit_of_every_clutch(order: int) -> None:
    """Capacities equal to what each clutch has to carry: nothing may slip more than rounding."""
    J, torque = np.full(21, 0.5), 21.0
    carried = torque * np.array([J[k + 1 :].sum() / J.sum() for k in range(20)])
    d = chain(J, fn=list(carried), mue=1.0, order=order)
    run = run_chain(d, 0.2, T_tau=torque)
    assert run.momentum[-1] == pytest.approx(torque * 0.2, rel=ROUNDING)
    assert np.ptp(run.w[:, -1]) < 1e-9
    assert run.w[0, -1] == pytest.approx(torque * 0.2 / J.sum(), rel=1e-9)


# --- no inertia -----------------------------------------------------------------------------------------------------
def clutches_in_series(order: int) -> Driveline:
    """J1 - clutch a (50 N.m) - nothing - clutch b (20 N.m) - J2."""
    d = Driveline("series", order=order)
    d.add("J1", Inertia(J=1.0, w0=60.0))
    d.add("J2", Inertia(J=2.0))
    d.add("a", Clutch(fn_max=50.0, mue_pos=1.0))
    d.add("b", Clutch(fn_max=20.0, mue_pos=1.0))
    d.connect("J1.flange_b", "a.flange_a")
    d.connect("a.flange_b", "b.flange_a")
    d.connect("b.flange_b", "J2.flange_a")
    return d


@orders
def test_massless_shaft_between_two_clutches_carries_the_weaker_torque(order: int) -> None:
    sim = Simulation(clutches_in_series(order))
    assert any("a.flange_b = b.flange_a" in note for note in sim.model.notes)
    x = sim.run(3.0, inputs={"a.f_normalized": 1.0, "b.f_normalized": 1.0})
    momentum = x["J1.w"] + 2.0 * x["J2.w"]
    assert np.abs(momentum - 60.0).max() < 60.0 * 1e-9
    # b slides: 60 rad/s go with 20 (1/1 + 1/2) rad/s^2, then all turn with 20 rad/s
    sliding = (x.time > 0.01) & (x.time < 1.99)
    assert np.abs(x["J1.w"] - (60.0 - 20.0 * x.time))[sliding].max() < 1e-6
    assert np.abs(x["a.tau"] - x["b.tau"])[sliding].max() < 20.0 * 1e-6
    assert x["a.tau"][sliding] == pytest.approx(-20.0, rel=1e-6)
    assert x["J1.w"][-1] == pytest.approx(20.0, rel=1e-9) and x["J2.w"][-1] == pytest.approx(20.0, rel=1e-9)
    assert np.abs(x["a.w_rel"][sliding]).max() < 1e-6
    # the lost kinetic energy is the heat of b
    lost = 0.5 * 60.0**2 - 0.5 * 3.0 * 20.0**2
    assert x["b.heat"][-1] == pytest.approx(lost, rel=1e-6)
    assert x["a.heat"][-1] == pytest.approx(0.0, abs=lost * 1e-6)


@orders
def test_massless_shaft_with_both_clutches_open_stays_finite(order: int) -> None:
    x = Simulation(clutches_in_series(order)).run(
        1.0, inputs={"a.f_normalized": lambda t: 1.0 * (t < 0.3), "b.f_normalized": lambda t: 1.0 * (t < 0.6)}
    )
    assert np.all(np.isfinite(x.values))
    assert np.abs(x["J1.w"] + 2.0 * x["J2.w"] - 60.0).max() < 60.0 * 1e-9
    # with a open nothing is carried any more, though b is still closed
    after = x.time > 0.305
    assert np.ptp(x["J1.w"][after]) < 1e-6 and np.ptp(x["J2.w"][after]) < 1e-6


@orders
def test_massless_shaft_between_a_damper_and_a_clutch(order: int) -> None:
    """The clutch slides with 1 Nm while the damper alone would give more; then the damper slows the slip down."""
    d = Driveline("no inertia", order=order)
    d.add("J1", Inertia(J=1.0, w0=10.0))
    d.add("soft", Damper(d=1.0))
    d.add("c", Clutch(fn_max=1.0, mue_pos=1.0))
    d.add("J2", Inertia(J=1.0, w0=0.0))
    d.connect("J1.flange_b", "soft.flange_a")
    d.connect("soft.flange_b", "c.flange_a")
    d.connect("c.flange_b", "J2.flange_a")
    x = Simulation(d).run(6.0, inputs={"c.f_normalized": 1.0})
    apart = np.where(x.time < 4.5, 10.0 - 2.0 * x.time, np.exp(-2.0 * (x.time - 4.5)))
    np.testing.assert_allclose(x["J1.w"] - x["J2.w"], apart, atol=1e-6 if order == 2 else 1e-9)
    assert x["c.heat"][-1] == pytest.approx(1.0 * 9.0**2 / 4.0, rel=1e-6)


# --- next to nothing ------------------------------------------------------------------------------------------------
@orders
def test_one_shaft_without_inputs_coasts(order: int) -> None:
    d = Driveline("one", order=order)
    d.add("J", Inertia(J=3.0, w0=7.0))
    sim = Simulation(d)
    assert sim.model.input_names == ()
    x = sim.run(0.25)
    assert np.all(x["J.w"] == 7.0)
    assert x["J.phi"] == pytest.approx(7.0 * x.time, rel=ROUNDING, abs=1e-15)
    assert np.all(x["energy.kinetic"] == 0.5 * 3.0 * 49.0)
    sim.step()
    assert sim.time == pytest.approx(0.251)


@orders
def test_one_braked_shaft(order: int) -> None:
    d = braked_shafts([8.0], J=0.25, fn=10.0, order=order)
    x = Simulation(d, h=7e-3).run(0.35, inputs=pressed(d))
    assert x["J0.w"][-1] == 0.0
    assert x["b0.heat"][-1] == pytest.approx(0.5 * 0.25 * 64.0, rel=ROUNDING)
    assert x["J0.phi"][-1] == pytest.approx(0.25 * 64.0 / (2.0 * 10.0), rel=1e-9)
    assert [m.time_s for m in x.modes if m.mode == 0] == pytest.approx([0.2], rel=1e-9)


def test_numpy_scalars_are_numbers() -> None:
    """Parameters taken out of an array mean the same as those typed in."""
    plain, taken = Driveline("same"), Driveline("same")
    plain.add("J", Inertia(J=0.1, w0=3.0))
    taken.add("J", Inertia(J=np.array([0.1])[0], w0=np.float64(3.0)))
    assert plain == taken and compile_driveline(plain).digest() == compile_driveline(taken).digest()


def test_driveline_without_inputs_but_with_friction() -> None:
    """Only free wheels: J2 is faster, so nothing happens; J1 faster: an impact at once, momentum conserved."""
    for w1, w2 in ((5.0, 10.0), (10.0, 5.0)):
        d = Driveline("free wheel")
        d.add("J1", Inertia(J=1.0, w0=w1))
        d.add("J2", Inertia(J=3.0, w0=w2))
        d.add("f", FreeWheel())
        d.connect("J1.flange_b", "f.flange_a")
        d.connect("f.flange_b", "J2.flange_a")
        x = Simulation(d).run(0.1)
        common = (w1 + 3.0 * w2) / 4.0
        expected = (w1, w2) if w2 > w1 else (common, common)
        assert (x["J1.w"][-1], x["J2.w"][-1]) == pytest.approx(expected, rel=ROUNDING)
        lost = 0.5 * w1**2 + 1.5 * w2**2 - 0.5 * expected[0] ** 2 - 1.5 * expected[1] ** 2
        assert x["f.heat"][-1] == pytest.approx(lost, rel=ROUNDING, abs=1e-15)
