"""Tables, engine, idle controller, converter and actuators of the kernel against numpy and closed forms."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from kernel_models import CLUTCH, Array, Run, Sketch, observed_order, sampled
from scipy.interpolate import RegularGridInterpolator

from torqueloop.core.components import Inertia, LockUpTC
from torqueloop.core.describe import kernel_numbers as v
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.model_arrays import given


# --- tables -----------------------------------------------------------------------------------------------------------
def engine_torques(sketch: Sketch, speeds: Array, pedal: float) -> Array:
    """Torque of every engine with the shafts at `speeds`; twice, in another order: search hints must not matter."""
    for i in range(len(speeds)):
        sketch.output(v.OUT_ENGINE, i)
    m = KernelModel(sketch.arrays(), 1e-12)
    s = KernelState(m)
    found = []
    for order in (np.arange(len(speeds)), np.random.default_rng(5).permutation(len(speeds))):
        s.u = speeds[order]
        m.run(s, np.array([[pedal]]))
        tau = np.empty(len(speeds))
        tau[order] = m.outputs(s)
        found.append(tau)
    np.testing.assert_array_equal(found[0], found[1])
    return found[0]


SPEEDS = np.r_[np.linspace(-50.0, 700.0, 97), 0.0, 100.0, 250.0, 600.0]
CURVE = np.array([[0.0, 50.0], [100.0, 180.0], [250.0, 240.0], [600.0, 90.0]])


def many_engines(**options: int) -> Sketch:
    sketch = Sketch(np.full((1, len(SPEEDS)), 1e3), nin=1)
    for i in range(len(SPEEDS)):
        sketch.engine(i, 0, **options)
    return sketch


@pytest.mark.parametrize("linear", [False, True])
def test_curves_against_numpy_interp(linear: bool) -> None:
    sketch = many_engines(wot=0, drag=1)
    sketch.curve(CURVE[:, 0], CURVE[:, 1], linear)
    sketch.curve([0.0, 300.0], [-5.0, -25.0])
    found = engine_torques(sketch, SPEEDS, 0.7)
    wot = np.interp(SPEEDS, CURVE[:, 0], CURVE[:, 1])
    if linear:
        slope = np.diff(CURVE[:, 1]) / np.diff(CURVE[:, 0])
        wot = np.where(SPEEDS < 0.0, CURVE[0, 1] + slope[0] * SPEEDS, wot)
        wot = np.where(SPEEDS > 600.0, CURVE[-1, 1] + slope[-1] * (SPEEDS - 600.0), wot)
    drag = np.interp(SPEEDS, [0.0, 300.0], [-5.0, -25.0])
    np.testing.assert_allclose(found, drag + 0.7 * (wot - drag), rtol=1e-9, atol=1e-7)


def test_a_curve_of_one_point_is_a_constant() -> None:
    sketch = many_engines(wot=0, drag=0)
    sketch.curve([3.0], [42.0])
    np.testing.assert_array_equal(engine_torques(sketch, SPEEDS, 0.4), 42.0)


@pytest.mark.parametrize("pedal", [-0.5, 0.0, 0.13, 0.5, 0.77, 1.0, 1.5])
def test_maps_against_bilinear_interpolation_and_clipped_at_the_edges(pedal: float) -> None:
    x, y = CURVE[:, 0], np.array([0.1, 0.4, 0.9])
    z = np.random.default_rng(6).normal(size=(4, 3)) * 100.0
    sketch = many_engines(chart=0)
    sketch.chart(x, y, z)
    at = np.stack([np.clip(SPEEDS, x[0], x[-1]), np.full(len(SPEEDS), np.clip(pedal, y[0], y[-1]))], axis=1)
    expected = RegularGridInterpolator((x, y), z)(at)
    np.testing.assert_allclose(engine_torques(sketch, SPEEDS, pedal), expected, rtol=1e-9, atol=1e-7)


# --- engine, converter, actuators -------------------------------------------------------------------------------------
def idle_errors(h: float) -> tuple[float, float, Run]:
    """J w' = kp (w0 - w) + xi - load, xi' = ki (w0 - w): damped, about the idle speed; errors of w and xi."""
    J, kp, ki, w_idle, load_torque = 0.28, 2.0, 3.0, 80.0, 6.0
    sketch = Sketch([J], [w_idle + 2.0], nin=1)
    zero = sketch.curve([0.0], [-load_torque])
    sketch.engine(0, 0, wot=zero, drag=zero, w_idle=w_idle, kp=kp, ki=ki, tau_idle_max=60.0)
    run = Run(sketch, 8.0, [0.0], h=h)
    # at the start kp*(w_idle - w) + xi < 0: the controller gives nothing (and xi stays 0) until the speed is below idle
    free = 2.0 * J / load_torque
    roots = np.roots([J, kp, ki])
    t = run.t[run.t >= free] - free
    # x = w - w_idle: x(0) = 0, x'(0) = -load/J
    x = ((np.exp(roots[0] * t) - np.exp(roots[1] * t)) * (-load_torque / J) / (roots[0] - roots[1])).real
    error = np.abs(run.u[run.t >= free, 0] - w_idle - x).max() / np.ptp(x)
    return float(error), abs(float(run.state.idle_integral[0]) - load_torque), run


def test_the_idle_controller_follows_its_closed_form_and_ends_at_idle_with_the_load_in_its_integrator() -> None:
    coarse, _, _ = idle_errors(4e-3)
    fine, integral, run = idle_errors(1e-3)
    assert fine < 2e-3
    assert observed_order([4e-3, 1e-3], [coarse, fine]) > 0.9
    assert run.u[-1, 0] == pytest.approx(80.0, abs=1e-6)
    assert integral < 1e-5


def test_the_idle_controller_stays_within_its_torque() -> None:
    for load_torque, expected in ((100.0, 60.0), (-20.0, 0.0)):
        sketch = Sketch([0.28], [80.0], nin=1)
        zero = sketch.curve([0.0], [-load_torque])
        sketch.engine(0, 0, wot=zero, drag=zero, w_idle=80.0, kp=2.0, ki=3.0, tau_idle_max=60.0)
        engine = sketch.output(v.OUT_ENGINE, 0)
        run = Run(sketch, 20.0, [0.0])
        assert run.out[-1, engine] == pytest.approx(expected - load_torque)
        assert (run.out[:, engine] >= -load_torque - 1e-12).all()
        assert (run.out[:, engine] <= 60.0 - load_torque + 1e-12).all()
        assert 0.0 <= run.state.idle_integral[0] <= 60.0


def converter_grid() -> tuple[Sketch, Array, Array]:
    wp, wt = (g.ravel() for g in np.meshgrid(np.r_[0.0, np.linspace(5.0, 500.0, 9)], np.linspace(-60.0, 550.0, 12)))
    sketch = Sketch(np.full((1, 2 * len(wp)), 1e6), np.r_[wp, wt])
    nu = np.linspace(0.0, 1.0, 11)
    mp = sketch.curve(nu, 3e-3 * (1.0 - nu**3))
    mu = sketch.curve(nu, np.maximum(2.1 - 1.3 * nu, 0.96))
    coast = sketch.curve(nu, 2e-3 * (1.0 - nu))
    for k in range(len(wp)):
        sketch.converter(k, len(wp) + k, mp, mu, coast, 0.987)
        sketch.output(v.OUT_PUMP, k)
        sketch.output(v.OUT_TURBINE, k)
    return sketch, wp, wt


def test_converter_torques_in_drive_and_coast_and_their_loss() -> None:
    sketch, wp, wt = converter_grid()
    m = KernelModel(sketch.arrays(), 1e-9)
    s = KernelState(m)
    m.run(s, np.zeros((1, 0)))
    pump, turbine = m.outputs(s).reshape(-1, 2).T
    grid = np.linspace(0.0, 1.0, 11)
    for k in range(len(wp)):
        if wt[k] <= wp[k]:
            nu = np.clip(wt[k] / wp[k], 0.0, 1.0) if wp[k] > 0.0 else 0.0
            expected = np.interp(nu, grid, 3e-3 * (1.0 - grid**3)) * wp[k] * abs(wp[k])
            other = np.interp(nu, grid, np.maximum(2.1 - 1.3 * grid, 0.96)) * expected
        else:
            nu = np.clip(wp[k] / wt[k], 0.0, 1.0) if wt[k] > 0.0 else 0.0
            other = -np.interp(nu, grid, 2e-3 * (1.0 - grid)) * wt[k] * abs(wt[k])
            expected = 0.987 * other
        assert pump[k] == pytest.approx(expected, rel=1e-9, abs=1e-9), (wp[k], wt[k])
        assert turbine[k] == pytest.approx(other, rel=1e-9, abs=1e-9), (wp[k], wt[k])
    loss = pump * wp - turbine * wt
    assert loss.min() >= -1e-9, "a converter only ever turns work into heat"
    assert np.count_nonzero(loss > 1.0) > len(loss) / 2


def converter_torques(wp: Array, wt: Array) -> tuple[Array, Array]:
    """Torques on pump and turbine at these speeds."""
    sketch = Sketch(np.full((1, 2 * len(wp)), 1e6), np.r_[wp, wt])
    nu = np.linspace(0.0, 1.0, 11)
    curves = (3e-3 * (1.0 - nu**3), np.maximum(2.1 - 1.3 * nu, 0.96), 2e-3 * (1.0 - nu))
    numbers = [sketch.curve(nu, y) for y in curves]
    for k in range(len(wp)):
        sketch.converter(k, len(wp) + k, *numbers, 0.987)
        sketch.output(v.OUT_PUMP, k)
        sketch.output(v.OUT_TURBINE, k)
    m = KernelModel(sketch.arrays(), 1e-9)
    s = KernelState(m)
    m.run(s, np.zeros((1, 0)))
    pump, turbine = m.outputs(s).reshape(-1, 2).T
    return pump, turbine


def test_a_converter_that_turns_backward_only_ever_turns_work_into_heat_and_its_torques_do_not_jump() -> None:
    wp, wt = (g.ravel() for g in np.meshgrid(np.linspace(-300.0, 300.0, 13), np.linspace(-310.0, 290.0, 13)))
    pump, turbine = converter_torques(wp, wt)
    assert (pump * wp - turbine * wt).min() >= -1e-9
    back = (wp < 0.0) & (wt < 0.0)
    assert np.abs(pump[back]).max() > 10.0, "it couples the two, too"
    # across the borders of the quadrant, and across equal speeds in it
    away = np.linspace(-300.0, -20.0, 8)
    for low, high in (((away, away * 0.0 - 1e-7), (away, away * 0.0 + 1e-7)), ((away * 0.0 - 1e-7, away),
                      (away * 0.0 + 1e-7, away)), ((away, away - 1e-7), (away, away + 1e-7))):  # fmt: skip
        for one, other in zip(converter_torques(*low), converter_torques(*high), strict=True):
            assert np.abs(one - other).max() < 1e-6


def test_an_offline_run_with_a_converter_turning_backward_says_so() -> None:
    d = Driveline("backward")
    for name, w in (("p", -100.0), ("t", -40.0)):
        d.add(name, Inertia(J=1.0, w0=w))
    curves = {"mp": Table1D((0.0, 1.0), (3e-3, 0.0)), "mu": Table1D((0.0, 1.0), (2.0, 1.0))}
    d.add("tc", LockUpTC(**curves))
    d.connect("p.flange_a", "tc.pump")
    d.connect("t.flange_a", "tc.turbine")
    with pytest.warns(RuntimeWarning, match=r"of 'tc' both turn backward \(first at -100 and -40 rad/s"):
        sim = Simulation(d)
        result = sim.run(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.run(0.1)  # once is enough
    assert np.diff(result["tc.loss"]).min() >= 0.0
    assert abs(result.energy().relative_residual) < 1e-9


def test_first_order_actuators_follow_their_exponential_to_rounding() -> None:
    rise, fall, command = 0.02, 0.05, 8e5
    sketch = Sketch([1.0], nin=3)
    for i, options in enumerate(({}, {"p_max": 5e5}, {"p_return": 1e5})):
        sketch.actuator(i, tau_rise=rise, tau_fall=fall, **options)
        sketch.output(v.OUT_PRESSURE, i)
    on, off = Run(sketch, 0.1, [command, command, -command]), None
    np.testing.assert_allclose(on.out[:, 0], command * -np.expm1(-on.t / rise), rtol=1e-12)
    np.testing.assert_allclose(on.out[:, 1], 5e5 * -np.expm1(-on.t / rise), rtol=1e-12)
    assert not on.out[:, 2].any(), "a negative command is none"
    start = on.out[-1, 0]
    off = np.zeros((100, on.out.shape[1]))
    on.model.run(on.state, np.zeros((100, 3)), off)
    np.testing.assert_allclose(off[:, 0], start * np.exp(-on.t[:100] / fall), rtol=1e-12)


def test_an_actuator_without_lag_gives_the_command() -> None:
    sketch = Sketch([1.0], nin=1)
    sketch.actuator(0)
    sketch.output(v.OUT_PRESSURE, 0)
    assert Run(sketch, 1e-3, [7e5]).out[-1, 0] == pytest.approx(7e5, rel=1e-12)


def test_a_clutch_fills_before_its_pressure_rises_and_half_emptied_it_fills_in_half_the_time() -> None:
    """Fill time 40.37 ms: p creeps to the return pressure while the piston travels, then rises to the command."""
    p_return, command, tau, t_fill, t_empty = 1e5, 8e5, 0.01, 0.04037, 0.1
    sketch = Sketch([1.0], [10.0], nin=1)
    act = sketch.actuator(0, fill=True, p_return=p_return, tau_rise=tau, tau_fall=tau, t_fill=t_fill, t_empty=t_empty)
    sketch.friction(0, actuator=act, gain=1e-9, **CLUTCH)
    p, mode = sketch.output(v.OUT_PRESSURE, 0), sketch.output(v.OUT_MODE, 0)
    run = Run(sketch, 0.1, [command])
    creep = p_return * -np.expm1(-np.minimum(run.t, t_fill) / tau)
    rise = command + (creep[-1] - command) * np.exp(-np.clip(run.t - t_fill, 0.0, None) / tau)
    np.testing.assert_allclose(run.out[:, p], np.where(run.t < t_fill, creep, rise), rtol=1e-9)
    assert (run.out[run.t < t_fill, mode] == 2.0).all(), "no capacity before the piston is there"
    # the pressure has a kink where the piston arrives, and the moment of contact is interpolated across it
    pressed = t_fill + tau * np.log((command - creep[-1]) / (command - p_return))
    (at, _), *_ = run.changes(0)
    assert at == pytest.approx(pressed, abs=run.model.h)
    # half emptied, and filled again
    m, s = run.model, run.state
    m.run(s, np.zeros((50, 1)))
    again = np.zeros((60, m.sizes["outputs"]))
    before = m.outputs(s)[p]
    m.run(s, np.full((60, 1), command), again)
    t = run.t[:60]
    creep = p_return + (before - p_return) * np.exp(-np.minimum(t, 0.5 * t_fill) / tau)
    rise = command + (creep[-1] - command) * np.exp(-np.clip(t - 0.5 * t_fill, 0.0, None) / tau)
    np.testing.assert_allclose(again[:, p], np.where(t < 0.5 * t_fill, creep, rise), rtol=1e-9)


def test_sampled_inputs_are_followed_as_parabolas() -> None:
    sketch = Sketch([2.0], nin=1, order=4)
    sketch.torque(0, 0)
    m = KernelModel(sketch.arrays(), 0.01)
    s = KernelState(m)
    m.run(s, sampled(lambda t: (3.0 * t**2 - t)[:, None], 0.0, 0.01, 100))
    assert s.u[0] == pytest.approx((1.0 - 0.5) / 2.0, rel=1e-12)
    assert s.z[0] == pytest.approx((0.25 - 1.0 / 6.0) / 2.0, rel=1e-12)


def test_the_place_in_one_table_is_no_place_in_another() -> None:
    """Two conductances over a temperature share the place where the search begins; their curves differ in length."""
    long, short = np.linspace(200.0, 500.0, 40), np.array([300.0, 310.0])
    sketch = Sketch([1.0])
    curves = [sketch.curve(long, np.ones(40)), sketch.curve(short, [0.0, 1.0]), sketch.curve(long, 2.0 * np.ones(40))]
    nodes = given("th", input=[-1, -1, -1], C=[10.0, 0.0, 10.0], T0=[490.0, 250.0, 305.0])
    links = given("thg", a=[0, 2], b=[1, 1], tab=curves[:2], arg=[0, 2], input=[-1, -1], G=[0.1, 0.1])
    model = KernelModel(replace(sketch.arrays(), elements={"th": nodes, "thg": links}), 1e-3, "generic")
    state = KernelState(model)
    model.run(state, np.zeros((1, 0)))
    assert state.temperatures[0] == pytest.approx(490.0 - 1e-3 * 0.1 * 240.0 / 10.0, abs=1e-6)
    assert state.temperatures[2] == pytest.approx(305.0 - 1e-3 * 0.1 * 0.5 * 55.0 / 10.0, abs=1e-6)
