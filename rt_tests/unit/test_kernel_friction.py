"""Friction of the kernel against closed forms: stops, break-away, reversal, free wheels, capacity, redundant locks."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_models import CONFIGS, FREE_WHEEL, ONE_WAY, ONE_WAY_CLUTCH, Run, Sketch

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import CarResistance, Mass
from torqueloop.core.components.files import load
from torqueloop.core.components.road import GRAVITY
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.kernel_numbers import OUT_ANGLE, OUT_CAPACITY, OUT_FRICTION, OUT_FRICTION_HEAT, OUT_MODE
from torqueloop.core.signals import Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

both_orders = pytest.mark.parametrize("order", [2, 4])


@both_orders
@pytest.mark.parametrize("h", [1e-3, 3.3e-3])
def test_a_braked_shaft_stops_after_momentum_over_torque_and_stays(order: int, h: float) -> None:
    J, w0, tau = 2.0, 10.00037, 5.0
    sketch = Sketch([J], [w0], order=order)
    sketch.friction(0, gain=tau)
    run = Run(sketch, 1818 * 3.3e-3, h=h) if h > 2e-3 else Run(sketch, 6.0, h=h)
    ((stop, mode),) = run.changes(0)
    assert mode == 0
    assert stop == pytest.approx(w0 * J / tau, abs=1e-9)
    resting = run.t > stop
    assert not run.u[resting].any(), "a stuck shaft has no speed at all"
    assert set(run.z[resting, 0]) == {run.z[-1, 0]}
    assert run.z[-1, 0] == pytest.approx(0.5 * w0**2 * J / tau, rel=1e-9)
    np.testing.assert_allclose(run.u[~resting, 0], w0 - tau / J * run.t[~resting], rtol=1e-9, atol=1e-9)
    assert run.state.energies["friction"][0] == pytest.approx(0.5 * J * w0**2, rel=1e-12)


@both_orders
@pytest.mark.parametrize("peak", [1.0, 1.25])
def test_break_away_happens_when_the_ramp_reaches_the_static_limit(order: int, peak: float) -> None:
    J, capacity, rate = 2.0, 5.0, 7.3
    sketch = Sketch([J], nin=1, order=order)
    sketch.torque(0, 0)
    sketch.friction(0, gain=capacity, peak=peak)
    friction = sketch.output(OUT_FRICTION, 0)
    run = Run(sketch, 2.0, lambda t: rate * t[:, None])
    ((away, mode),) = run.changes(0)
    assert mode == 1
    assert away == pytest.approx(peak * capacity / rate, abs=1e-9)
    held = run.t < away
    np.testing.assert_allclose(run.out[held, friction], -rate * run.t[held], rtol=1e-12)
    # from the static limit the torque jumps to the sliding one
    np.testing.assert_allclose(run.out[~held, friction], -capacity, rtol=1e-12)
    t = run.t[~held]
    expected = (0.5 * rate * (t**2 - away**2) - capacity * (t - away)) / J
    np.testing.assert_allclose(run.u[~held, 0], expected, rtol=1e-9, atol=1e-9)
    assert not run.u[held].any()


@both_orders
def test_slip_reverses_without_sticking_when_the_load_exceeds_the_capacity(order: int) -> None:
    J, w0, load_torque, capacity = 2.0, -10.0, 12.0, 5.0
    sketch = Sketch([J], [w0], order=order)
    sketch.torque(0, const=load_torque)
    sketch.friction(0, gain=capacity)
    run = Run(sketch, 3.0)
    ((turn, mode),) = run.changes(0)
    assert mode == 1, "straight from backward to forward sliding"
    assert turn == pytest.approx(-w0 * J / (load_torque + capacity), abs=1e-9)
    after = np.clip(run.t - turn, 0.0, None)
    before = np.minimum(run.t, turn)
    expected = w0 + (load_torque + capacity) / J * before + (load_torque - capacity) / J * after
    np.testing.assert_allclose(run.u[:, 0], expected, rtol=1e-9, atol=1e-9)


@both_orders
def test_free_wheel_engages_and_overruns_at_the_times_of_the_closed_form(order: int) -> None:
    # shaft 0 drives shaft 1 through a free wheel that blocks w1 < w0; the torque on shaft 0 falls with time
    J0, J1, w1, k, t0, load_torque = 1.0, 3.0, 5.0, 2.0, 9.03, -3.0
    sketch = Sketch([J0, J1], [0.0, w1], nin=2, order=order)
    slip = sketch.row({1: 1.0, 0: -1.0})
    sketch.torque(0, 0)
    sketch.torque(1, 1)
    sketch.free_wheel(slip)
    friction = sketch.output(OUT_FRICTION, 0)
    run = Run(sketch, 7.0, lambda t: np.stack([t0 - k * t, np.full_like(t, load_torque)], axis=1))
    (engaged, first), (overrun, second) = run.changes(0)
    assert (first, second) == (0, 1)
    # w1 - w0 = w1(0) - (t0 - load/J1) t + k/2 t^2 comes to zero
    rate = t0 / J0 - load_torque / J1
    assert engaged == pytest.approx((rate - np.sqrt(rate**2 - 2.0 * k / J0 * w1)) / (k / J0), abs=1e-9)
    # shaft 1 would run away from shaft 0 from where (t0 - k t)/J0 = load/J1 on
    assert overrun == pytest.approx((t0 - load_torque * J0 / J1) / k, abs=1e-9)
    together = (run.t > engaged) & (run.t < overrun)
    np.testing.assert_allclose(run.u[together, 0], run.u[together, 1], rtol=1e-13)
    expected = -load_torque + J1 * (t0 - k * run.t[together] + load_torque) / (J0 + J1)
    np.testing.assert_allclose(run.out[together, friction], expected, rtol=1e-9, atol=1e-9)
    free = (run.t < engaged) | (run.t > overrun)
    assert not run.out[free, friction].any(), "an overrunning free wheel has no torque"
    momentum = J1 * w1 + t0 * run.t - 0.5 * k * run.t**2 + load_torque * run.t
    np.testing.assert_allclose(J0 * run.u[:, 0] + J1 * run.u[:, 1], momentum, rtol=1e-9, atol=1e-9)


def test_a_free_wheel_turning_the_blocked_way_at_the_start_stops_in_an_impact_and_the_loss_is_its_heat() -> None:
    sketch = Sketch([1.0, 3.0], [8.0, 0.0])
    sketch.free_wheel(sketch.row({1: 1.0, 0: -1.0}))
    run = Run(sketch, 0.01)
    np.testing.assert_allclose(run.u, 2.0, rtol=1e-14)
    assert run.state.energies["friction"][0] == pytest.approx(0.5 * 64.0 - 0.5 * 4.0 * 4.0, rel=1e-14)


@both_orders
@pytest.mark.parametrize("as_capacity", [False, True])
def test_normal_force_that_vanishes_in_mid_step_frees_the_shaft_at_its_own_time(order: int, as_capacity: bool) -> None:
    J, w0, capacity, end = 2.0, 10.0, 5.0, 0.73456
    sketch = Sketch([J], [w0], nin=1, order=order)
    sketch.friction(0, 0, gain=capacity, force=as_capacity)
    shown = sketch.output(OUT_CAPACITY, 0)
    run = Run(sketch, 1.0, lambda t: (1.0 - t / end)[:, None])
    ((free, mode),) = run.changes(0)
    assert mode == 2
    assert free == pytest.approx(end, abs=1e-9)
    t = np.minimum(run.t, end)
    expected = np.clip(capacity * (1.0 - run.t / end), 0.0, None)
    np.testing.assert_allclose(run.out[:, shown], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.u[:, 0], w0 - capacity / J * (t - 0.5 * t**2 / end), rtol=1e-9, atol=1e-9)
    assert len(set(run.u[run.t > end, 0])) == 1, "free and unloaded: the speed does not change"


@both_orders
def test_normal_force_that_appears_in_mid_step_brakes_from_its_own_time_on(order: int) -> None:
    J, w0, capacity, start = 2.0, 10.0, 5.0, 0.73456
    sketch = Sketch([J], [w0], nin=1, order=order)
    sketch.friction(0, 0, gain=capacity)
    run = Run(sketch, 1.0, lambda t: (t - start)[:, None])
    ((pressed, mode),) = run.changes(0)
    assert mode == 1
    assert pressed == pytest.approx(start, abs=1e-9)
    expected = w0 - 0.5 * capacity / J * np.clip(run.t - start, 0.0, None) ** 2
    np.testing.assert_allclose(run.u[:, 0], expected, rtol=1e-9, atol=1e-9)
    assert set(run.u[run.t < start, 0]) == {w0}


@both_orders
def test_a_stuck_shaft_breaks_away_where_its_falling_capacity_meets_the_load(order: int) -> None:
    J, load_torque, capacity, end = 2.0, 2.0, 5.0, 0.73456
    sketch = Sketch([J], nin=1, order=order)
    sketch.friction(0, 0, gain=capacity)
    sketch.torque(0, const=load_torque)
    run = Run(sketch, 1.0, lambda t: (1.0 - t / end)[:, None])
    (away, first), (free, second) = run.changes(0)
    assert (first, second) == (1, 2)
    assert away == pytest.approx(end * (1.0 - load_torque / capacity), abs=1e-9)
    assert free == pytest.approx(end, abs=1e-9)
    falling = np.clip(np.minimum(run.t, end) - away, 0.0, None)
    expected = 0.5 * capacity / (J * end) * falling**2 + load_torque / J * np.clip(run.t - end, 0.0, None)
    np.testing.assert_allclose(run.u[:, 0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("peak", [1.0, 1.25])
@pytest.mark.parametrize("order", [2, 4])
def test_two_blocks_on_each_other_the_lower_slides_and_the_upper_sticks_to_it(peak: float, order: int) -> None:
    """Otter, Schlegel, Elmqvist 2000, section 5: m1 = m2 = 1, u1 = 0.9 f0, u2 = 0 and 1.1 f0 from 0.1 s on.

    With both assumed stuck both forces exceed f0, with both sliding block 2 would have to slide backward on block 1:
    the answer is that block 1 slides and block 2 sticks to it, both with (u1 + u2 - f0)/(m1 + m2) = f0/2.
    """
    f0, start = 8.0, 0.1
    sketch = Sketch([1.0, 1.0], nin=2, order=order)
    relative = sketch.row({1: 1.0, 0: -1.0})
    sketch.torque(0, 0)
    sketch.torque(1, 1)
    for row in (0, relative):
        sketch.friction(row, gain=f0, peak=peak)
    forces = [sketch.output(OUT_FRICTION, i) for i in range(2)]
    run = Run(sketch, 0.5, lambda t: np.stack([0.9 * f0 + 0.0 * t, 1.1 * f0 * (t >= start)], axis=1), jumps=[start])
    before = run.t < start - 1e-9
    assert not run.u[before].any()
    # at rest block 2 needs no force, block 1 the whole of u1 (sign: force along the row)
    np.testing.assert_allclose(run.out[before][:, forces], [[-0.9 * f0, 0.0]] * int(before.sum()), atol=1e-12)
    after = run.t > start + 1e-9
    moving = 0.5 * f0 * np.clip(run.t - start, 0.0, None)
    np.testing.assert_allclose(run.u, np.stack([moving, moving], axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.out[after][:, forces], [[-f0, -0.6 * f0]] * int(after.sum()), rtol=1e-12)
    assert [(e, mode) for t, e, mode in run.log if t > 0.0] == [(0, 1)]


def test_two_blocks_as_components_give_the_same() -> None:
    # the forces u1, u2 come in as slopes of a mass of 1 kg each: force = -g*grade
    d = Driveline("two blocks")
    f0, jump = 8.0, 0.1003
    d.add("lower", Mass(m=1.0))
    d.add("upper", Mass(m=1.0))
    d.add("ground", CarResistance(f0=f0, m=1.0))
    d.add("between", CarResistance(f0=f0))
    d.add("push", CarResistance(m=1.0))
    d.connect("lower.flange_b", "ground.flange")
    d.connect("upper.flange_b", "between.flange", "push.flange")
    d.connect("lower.flange_a", "between.support")
    inputs = {"ground.grade": -0.9 * f0 / GRAVITY, "push.grade": Step(height=-1.1 * f0 / GRAVITY, startTime=jump)}
    result = Simulation(d).run(0.5, inputs)
    expected = 0.5 * f0 * np.clip(result.time - jump, 0.0, None)
    for name in ("lower", "upper"):
        np.testing.assert_allclose(result[f"{name}.v"], expected, rtol=1e-9, atol=1e-12)
    assert result["between.f_rolling"][-1] == pytest.approx(-0.6 * f0, rel=1e-9)
    assert result["ground.f_rolling"][-1] == pytest.approx(-f0, rel=1e-12)


@both_orders
def test_a_lock_that_turns_under_load_does_not_creep(order: int) -> None:
    sketch = Sketch([0.3, 1.7, 0.09], [50.0, 50.0, 50.0], nin=1, order=order)
    slips = [sketch.row({1: 1.0, 0: -1.0}), sketch.row({2: 1.48, 1: -0.48, 0: -1.0})]
    for row in slips:
        sketch.friction(row, gain=1e4)
    sketch.torque(0, 0)
    outputs = [sketch.output(OUT_ANGLE, row) for row in slips]
    run = Run(sketch, 100.0, lambda t: 40.0 * np.sin(5.0 * t)[:, None])
    assert not run.state.modes.any()
    assert np.ptp(run.u[:, 0]) > 5.0
    assert np.abs(run.out[:, outputs]).max() < 1e-9, "rad of relative angle in 100 s"


@both_orders
def test_redundant_locks_share_the_load_by_the_least_norm_and_do_so_again(order: int) -> None:
    arms = np.array([1.0, 2.0, 3.0])

    def once() -> Run:
        sketch = Sketch([2.0], nin=1, order=order)
        for arm in arms:
            sketch.friction(sketch.row({0: float(arm)}), gain=100.0)
        sketch.torque(0, 0)
        for i in range(3):
            sketch.output(OUT_FRICTION, i)
        return Run(sketch, 0.5, lambda t: np.sin(20.0 * t)[:, None])

    first, second = once(), once()
    expected = -np.outer(np.sin(20.0 * first.t), arms / (arms @ arms))
    np.testing.assert_allclose(first.out[:, :3], expected, atol=1e-14)
    assert not first.u.any()
    assert np.array_equal(first.out, second.out)
    assert first.state.hash() == second.state.hash()


@both_orders
def test_redundant_locks_hold_together_what_none_of_them_could_hold_alone(order: int) -> None:
    sketch = Sketch([2.0], nin=1, order=order)
    sketch.torque(0, 0)
    for capacity in (1.0, 2.0, 4.0):
        sketch.friction(0, gain=capacity)
    outputs = [sketch.output(OUT_FRICTION, i) for i in range(3)]
    run = Run(sketch, 1.0, lambda t: 8.0 * t[:, None])
    moving = run.u[:, 0] != 0.0
    # they give way together when the load reaches the sum of their capacities, 7 N.m at 0.875 s
    assert run.t[moving][0] == pytest.approx(0.876, abs=1e-9)
    np.testing.assert_allclose(run.u[moving, 0], 4.0 / 2.0 * (run.t[moving] - 0.875) ** 2, rtol=1e-6, atol=1e-9)
    held = run.out[~moving][:, outputs]
    np.testing.assert_allclose(held.sum(axis=1), -8.0 * run.t[~moving], rtol=1e-9)
    assert (np.abs(held) <= np.array([1.0, 2.0, 4.0]) * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("name", ["car_4hp22", "car_6hp26"])
@pytest.mark.parametrize("kernel", ["generic", "auto"])
def test_a_gearbox_tied_up_by_all_its_clutches_does_not_creep(name: str, kernel: str) -> None:
    model = compile_driveline(load(CONFIGS / "powertrains" / f"{name}.toml"))
    m = KernelModel(model.arrays, 1e-3, kernel)
    s = KernelState(m)
    inputs = np.array([10e5 if n.endswith(".p") else 0.3 for n in model.input_names])
    settle = np.tile(inputs, (3000, 1))
    m.run(s, settle)
    packs = [i for i, n in enumerate(model.friction_names) if n not in ("F14", "F15", "lockup", "resistance", "C7")]
    assert not s.modes[packs].any(), "all plate packs stick"
    assert len(packs) > 3
    angle = [model.output_index(f"{model.friction_names[i]}.phi_rel") for i in packs]
    start = m.outputs(s)[angle]
    heat = s.energies["friction"].copy()
    assert m.run(s, np.tile(inputs, (100_000, 1))) == 100_000
    drift = m.outputs(s)[angle] - start
    assert np.abs(drift).max() < 1e-9, "rad in 100 s"
    assert not drift.any(), "a lock has no speed at all, so its angle stays to the bit"
    np.testing.assert_array_equal(s.energies["friction"][packs], heat[packs])


@both_orders
@pytest.mark.parametrize("load_torque", [3.0, -3.0, -7.0])
def test_a_one_way_series_element_brakes_backward_motion_only(order: int, load_torque: float) -> None:
    J, w0, capacity = 2.0, -10.0, 5.0
    sketch = Sketch([J], [w0], nin=1, order=order)
    sketch.friction(0, 0, gain=capacity, **ONE_WAY)
    sketch.torque(0, const=load_torque)
    friction, mode, heat = (
        sketch.output(OUT_FRICTION, 0),
        sketch.output(OUT_MODE, 0),
        sketch.output(OUT_FRICTION_HEAT, 0),
    )
    run = Run(sketch, 12.0, [1.0])
    if load_torque < -capacity:
        assert not run.changes(0), "the pack slips backward for ever"
        np.testing.assert_allclose(run.u[:, 0], w0 + (load_torque + capacity) / J * run.t, rtol=1e-9)
        return
    stop = -w0 * J / (capacity + load_torque)
    ((at, then),) = run.changes(0)
    assert at == pytest.approx(stop, abs=1e-9)
    after = run.t > stop
    np.testing.assert_allclose(run.out[run.t < stop, friction], capacity, rtol=1e-12)
    np.testing.assert_allclose(run.out[-1, heat], 0.5 * J * w0**2 + load_torque * w0 * stop / 2.0, rtol=1e-9)
    if load_torque > 0.0:
        assert then == 1
        assert not run.out[after, friction].any(), "the free wheel overruns"
        np.testing.assert_allclose(run.u[after, 0], load_torque / J * (run.t[after] - stop), rtol=1e-9, atol=1e-9)
    else:
        assert then == 0
        assert not run.u[after].any()
        np.testing.assert_allclose(run.out[after, friction], -load_torque, rtol=1e-12)
        assert set(run.out[after, mode]) == {0.0}


@both_orders
def test_an_unpressed_one_way_clutch_is_a_free_wheel_and_a_pressed_one_drags_forward(order: int) -> None:
    J, w0, capacity = 2.0, 10.0, 5.0
    for pressed, w_end in ((0.0, 10.0), (1.0, 10.0 - capacity / J * 2.0)):
        sketch = Sketch([J], [w0], nin=1, order=order)
        sketch.friction(0, 0, gain=capacity, peak=1.0001, **ONE_WAY_CLUTCH)
        assert Run(sketch, 2.0, [pressed]).u[-1, 0] == pytest.approx(w_end, rel=1e-12)
    # backward it holds any load, pressed or not
    for pressed in (0.0, 1.0):
        sketch = Sketch([J], nin=1, order=order)
        sketch.friction(0, 0, gain=capacity, peak=1.0001, **ONE_WAY_CLUTCH)
        sketch.torque(0, const=-1e6)
        assert not Run(sketch, 0.1, [pressed]).u.any()


@both_orders
@pytest.mark.parametrize("width", [0.15, 0.4, 4.0, 40.0])
def test_a_clutch_held_at_its_limit_settles_at_the_slip_of_its_friction_curve(order: int, width: float) -> None:
    """mu rises from 0.1 to 0.15 over `width` rad/s; the load asks for 0.12: the slip ends at 0.4*width.

    h/2 * d tau/dw / J is 16.7, 6.25, 0.625, 0.0625: beyond 1 an explicit evaluation of the torque diverges.
    """
    J, fn = 0.01, 1000.0
    sketch = Sketch([J], [0.2 * width], order=order)
    sketch.friction(0, gain=fn, mu=sketch.curve([0.0, width, 100.0 * width], [0.1, 0.15, 0.15]))
    sketch.torque(0, const=0.12 * fn)
    friction = sketch.output(OUT_FRICTION, 0)
    run = Run(sketch, 0.5)
    assert run.u[-1, 0] == pytest.approx(0.4 * width, rel=1e-9)
    np.testing.assert_allclose(run.out[-50:, friction], -0.12 * fn, rtol=1e-6)
    assert not run.changes(0)
    assert run.state.counters["fallbacks"] == 0
    assert (run.u > 0.0).all()


def test_free_wheels_in_a_ring_pass_an_impact_on() -> None:
    # three shafts in a row, each may overrun the one before: an impact at the last runs through to the first
    sketch = Sketch([1.0, 1.0, 1.0], [6.0, 3.0, 0.0])
    for i in range(2):
        sketch.friction(sketch.row({i + 1: 1.0, i: -1.0}), gain=0.0, **FREE_WHEEL)
    run = Run(sketch, 0.01)
    np.testing.assert_allclose(run.u[-1], 3.0, rtol=1e-12)
    assert run.state.energies["friction"].sum() == pytest.approx(0.5 * 45.0 - 1.5 * 9.0, rel=1e-12)
