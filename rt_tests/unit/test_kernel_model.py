"""Models and states of the kernel: what they refuse, what they compute (tables, engine, converter, actuators), memory."""

from __future__ import annotations

import ctypes
import gc
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_models import CLUTCH, CONFIGS, Array, Run, Sketch, observed_order, sampled
from scipy.interpolate import RegularGridInterpolator

from torqueloop.core import vocabulary as v
from torqueloop.core.driveline import load
from torqueloop.cython_kernels.model import COUNTER_NAMES, KernelModel, KernelState

H = 1e-3


def plain(order: int = 2) -> Sketch:
    """Two shafts, a torque (input 0), a clutch (input 1), a spring to the housing."""
    sketch = Sketch([1.0, 2.0], [3.0, 0.0], nin=2, order=order)
    sketch.torque(0, 0)
    sketch.friction(sketch.row({1: 1.0, 0: -1.0}), 1, gain=20.0)
    sketch.spring(1, 100.0, 0.5)
    for kind in (v.OUT_SPEED, v.OUT_ANGLE):
        for i in range(2):
            sketch.output(kind, i)
    return sketch


# --- what is refused --------------------------------------------------------------------------------------------------
def without(a: dict[str, Any], name: str) -> dict[str, Any]:
    return {k: x for k, x in a.items() if k != name}


def with_(a: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**a, **values}


def empty_row(a: dict[str, Any]) -> dict[str, Any]:
    pointer = a["row_ptr"].copy()
    pointer[1:] -= 1
    return {**a, "row_ptr": pointer, "row_idx": a["row_idx"][1:], "row_val": a["row_val"][1:]}


def with_curve(a: dict[str, Any], x: list[float]) -> dict[str, Any]:
    return {**a, "tab1_ptr": np.array([0, len(x)]), "tab1_x": np.array(x), "tab1_y": np.zeros(len(x)),
            "tab1_extrap": np.array([0])}  # fmt: skip


def with_map(a: dict[str, Any], nx: int, ny: int) -> dict[str, Any]:
    return {**a, "tab2_nx": np.array([nx]), "tab2_ny": np.array([ny]), "tab2_xptr": np.array([0]),
            "tab2_yptr": np.array([0]), "tab2_zptr": np.array([0]), "tab2_x": np.arange(float(nx)),
            "tab2_y": np.arange(float(ny)), "tab2_z": np.zeros(nx * ny)}  # fmt: skip


REFUSED: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]], str]] = [
    ("a missing array", lambda a: without(a, "fr_peak"), r"lack \['fr_peak'\]"),
    ("order", lambda a: with_(a, order=3), "order must be 2 or 4, got 3"),
    ("M", lambda a: with_(a, M=np.eye(3)), r"M has shape \(3, 3\), expected \(2, 2\)"),
    ("empty row", empty_row, "row 0 used by a force element is empty"),
    ("friction row", lambda a: with_(a, fr_row=np.array([3])), "fr_row outside the 3 rows"),
    ("compliance row", lambda a: with_(a, n_hot=1, fr_row=np.array([0])), "lin_row outside the 1 rows"),
    ("source row", lambda a: with_(a, tq_row=np.array([-1])), "port_row outside the 3 rows"),
    ("curve", lambda a: with_curve(a, [0.0, 1.0, 1.0]), "1-D table 0: x must increase strictly"),
    ("falling curve", lambda a: with_curve(a, [1.0, 0.0]), "1-D table 0: x must increase strictly"),
    ("empty curve", lambda a: with_curve(a, []), "1-D table 0"),
    ("map", lambda a: with_map(a, 1, 2), "2-D table 0 needs at least 2 x 2 points"),
    ("map", lambda a: with_map(a, 2, 1), "2-D table 0 needs at least 2 x 2 points"),
]


@pytest.mark.parametrize(("what", "spoil", "message"), REFUSED, ids=[f"{k} {r[0]}" for k, r in enumerate(REFUSED)])
def test_arrays_that_do_not_fit_are_refused(
    what: str, spoil: Callable[[dict[str, Any]], dict[str, Any]], message: str
) -> None:
    good = plain().arrays()
    KernelModel(good, H)
    with pytest.raises(ValueError, match=message):
        KernelModel(spoil(good), H)


@pytest.mark.parametrize("h", [0.0, -1e-3, float("nan")])
def test_the_step_must_be_positive(h: float) -> None:
    with pytest.raises(ValueError, match="h must be positive"):
        KernelModel(plain().arrays(), h)


def test_a_kernel_that_does_not_fit_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"kernel 'zf_4hp22' does not fit this driveline; precompiled here: \[.*zf_4hp22"
    ):
        KernelModel(plain().arrays(), H, "zf_4hp22")
    with pytest.raises(ValueError, match="kernel 'fast' does not fit"):
        KernelModel(plain().arrays(), H, "fast")
    assert KernelModel(plain().arrays(), H, "auto").kernel_name == "generic"
    car = load(CONFIGS / "powertrains" / "car_4hp22.toml").compile().arrays
    assert KernelModel(car, H).kernel_name == KernelModel(car, H, "zf_4hp22").kernel_name == "zf_4hp22"


def test_inputs_and_outputs_of_the_wrong_shape_are_refused() -> None:
    m = KernelModel(plain().arrays(), H)
    s = KernelState(m)
    start = s.hash()
    for shape in ((4,), (4, 3), (4, 2, 2), (4, 3, 1), (1, 4, 3, 2)):
        with pytest.raises(ValueError, match=r"inputs: shape .* expected \(K, 2\) or \(K, 3, 2\)"):
            m.run(s, np.zeros(shape))
    good = np.zeros((4, 2))
    wrong = [np.zeros((4, 4), dtype=np.float32), np.zeros((4, 4)).T, np.zeros((4, 3)), np.zeros((3, 4)), np.zeros(16)]
    for outputs in [wrong[0], np.asfortranarray(np.zeros((4, 4))), *wrong[2:]]:
        with pytest.raises(ValueError, match=r"outputs: need a contiguous float64 array \(4, 4\)"):
            m.run(s, good, outputs)
    with pytest.raises(ValueError, match=r"need a contiguous float64 array \(2, 4\)"):
        m.run(s, good, np.zeros((1, 4)), 2)
    for shape in ((2,), (2, 2), (3, 3), (1, 3, 2)):
        with pytest.raises(ValueError, match=r"in3: shape .* expected \(3, 2\)"):
            m.advance(s, np.zeros(shape), H)
    for dt in (0.0, -1e-4, 1.1e-3, float("nan")):
        with pytest.raises(ValueError, match="allowed 0 < dt <= h"):
            m.advance(s, np.zeros((3, 2)), dt)
    for call in (
        lambda: m.run(None, good),
        lambda: KernelState(None),
        lambda: m.outputs(None),
        lambda: s.restore(None),
    ):
        with pytest.raises(TypeError):
            call()
    assert s.hash() == start, "a refused call changes nothing"


def test_outputs_are_written_after_every_nth_step() -> None:
    m = KernelModel(plain().arrays(), H)
    values = np.random.default_rng(1).normal(size=(10, 2))
    every, third = np.zeros((10, 4)), np.full((4, 4), -1.0)
    m.run(KernelState(m), values, every)
    m.run(KernelState(m), values, third, 3)
    np.testing.assert_array_equal(third[:3], every[2::3])
    assert (third[3] == -1.0).all(), "ten steps have three thirds"


def test_values_of_the_wrong_shape_and_states_of_another_model_are_refused() -> None:
    m = KernelModel(plain().arrays(), H)
    s, other = KernelState(m), KernelState(KernelModel(Sketch([1.0]).arrays(), H))
    for name in ("u", "z"):
        with pytest.raises(ValueError, match=rf"{name}: shape \(3,\), expected \(2,\)"):
            setattr(s, name, np.zeros(3))
    with pytest.raises(ValueError, match="models of different structure"):
        s.restore(other)
    with pytest.raises(ValueError, match=r"state of 3 bytes, this model needs \d+"):
        s.from_bytes(b"123")


# --- not finite, reset, warm, log -------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("held", [True, False])
def test_an_input_that_is_not_finite_stops_the_run_before_it_reaches_the_state(
    order: int, bad: float, held: bool
) -> None:
    m = KernelModel(plain(order).arrays(), H)
    s, clean = KernelState(m), KernelState(m)
    values = np.zeros((20, 2)) if held else np.zeros((20, 3, 2))
    values[..., 1] = 0.3
    values[7, ..., 0] = bad
    outputs = np.full((20, 4), -7.0)
    assert m.run(s, values, outputs) == 7
    assert s.status == 1
    m.run(clean, values[:7])
    assert np.isfinite(s.u).all() and np.array_equal(s.u, clean.u) and np.array_equal(s.z, clean.z)
    assert s.step_no == 7
    assert (outputs[7:] == -7.0).all()
    # part of a step says so too
    assert m.advance(clean, np.full((3, 2), bad), 0.5 * H) == 1
    s.reset()
    assert s.status == 0
    assert m.run(s, values[:7]) == 7


def test_reset_is_the_start() -> None:
    m = KernelModel(plain().arrays(), H)
    s, new = KernelState(m), KernelState(m)
    values = np.random.default_rng(2).normal(size=(300, 2))
    m.run(s, values)
    assert s.hash() != new.hash()
    s.reset()
    assert s.hash() == new.hash() and s.time == 0.0 and s.step_no == 0
    assert not len(m.mode_log(s))
    assert set(s.counters) == set(COUNTER_NAMES) and not any(s.counters.values())
    m.run(s, values)
    m.run(new, values)
    assert s.hash() == new.hash()


def test_speeds_and_angles_set_by_hand_are_where_the_next_step_starts() -> None:
    m = KernelModel(plain().arrays(), H)
    s, t = KernelState(m), KernelState(m)
    m.run(s, np.zeros((50, 2)))
    s.u, s.z = [1.5, -2.0], [0.25, 0.5]
    np.testing.assert_array_equal(m.outputs(s), [1.5, -2.0, 0.25, 0.5])
    t.u, t.z = [1.5, -2.0], [0.25, 0.5]
    m.run(s, np.zeros((50, 2)))
    m.run(t, np.zeros((50, 2)))
    np.testing.assert_array_equal(s.u, t.u)


@pytest.mark.parametrize("nf", [3, 14])
def test_warming_builds_all_lock_patterns_and_changes_no_result(nf: int) -> None:
    sketch = Sketch(np.ones((1, 3)), [5.0, -3.0, 1.0], nin=nf)
    for f in range(nf):
        sketch.friction(f % 3, f, gain=1.0 + f)
    m = KernelModel(sketch.arrays(), H)
    warm, cold = KernelState(m), KernelState(m)
    before = warm.hash()
    assert warm.warm() == (1 << nf if nf <= 12 else 0)
    assert warm.hash() == before
    values = np.random.default_rng(3).normal(size=(2000, nf))
    m.run(warm, values)
    m.run(cold, values)
    assert warm.hash() == cold.hash()


def test_lock_matrices_hold_the_stuck_rows_and_move_the_rest() -> None:
    sketch = Sketch([[2.0, 0.3], [0.3, 1.0]], nin=1)
    row = sketch.row({0: 1.0, 1: -1.0})
    for _ in range(2):
        sketch.friction(row, 0, gain=10.0)
    m = KernelModel(sketch.arrays(), H)
    s = KernelState(m)
    m.run(s, np.ones((1, 1)))
    assert not s.modes.any()
    P, T = s.lock_matrices()
    g = np.array([1.0, 4.0])
    a, tau = P @ g, T @ g
    np.testing.assert_allclose(a, [5.0 / 3.6] * 2, rtol=1e-14)
    np.testing.assert_allclose(sketch.M @ a, g + (tau.sum()) * np.array([1.0, -1.0]), rtol=1e-13)
    assert tau[0] == pytest.approx(tau[1], rel=1e-14), "two equal locks share the torque"


def test_the_mode_log_keeps_the_newest_entries_and_is_emptied_by_reading() -> None:
    sketch = Sketch([1.0], [1.0], nin=1)
    sketch.friction(0, 0, gain=1e-9)
    m = KernelModel(sketch.arrays(), H)
    s = KernelState(m)
    steps = (1 << 16) + 1000
    # pressed in odd steps, free in even ones: one change a step
    values = np.where(np.arange(steps) % 2 == 1, 1.0, -1.0)[:, None]
    assert m.run(s, values) == steps
    log = m.mode_log(s)
    assert len(log) == 1 << 16
    assert log["step_no"][-1] == steps - 1
    np.testing.assert_array_equal(np.diff(log["step_no"]), 1)
    np.testing.assert_allclose(log["time_s"], log["step_no"] * H, rtol=1e-9)
    np.testing.assert_array_equal(log["mode"], np.where(log["step_no"] % 2 == 1, 1, 2))
    assert set(log["element"]) == {0}
    assert not len(m.mode_log(s))
    m.run(s, values[:3])
    assert len(m.mode_log(s)) == 3


# --- outputs ----------------------------------------------------------------------------------------------------------
def test_every_kind_of_output_against_numpy() -> None:
    """One step of 1 us, so that torques at predicted speeds equal those at the speeds of the outputs to rounding."""
    n, h = 4, 1e-6
    rng = np.random.default_rng(4)
    A = rng.normal(size=(n, n))
    sketch = Sketch(A @ A.T + 5.0 * np.eye(n), [120.0, 80.0, -6.0, 3.0], nin=5)
    sketch.z0 = np.array([0.1, 0.2, 0.3, 0.4])
    slip = sketch.row({2: 1.0, 3: -0.5}, offset=0.25)
    wot, drag = sketch.curve([0.0, 200.0], [100.0, 200.0]), sketch.curve([0.0, 200.0], [-10.0, -30.0])
    mp, mu = sketch.curve([0.0, 1.0], [2e-3, 0.0]), sketch.curve([0.0, 1.0], [2.0, 1.0])
    coast = sketch.curve([0.0, 1.0], [1e-3, 0.0])
    sketch.torque(3, 0, gain=2.0, const=1.0)
    sketch.resistance(2, 0.5, -0.1, 0.02, -0.03)
    sketch.engine(0, 1, wot=wot, drag=drag)
    sketch.converter(0, 1, mp, mu, coast)
    sketch.spring(slip, 40.0, 0.7, phi0=0.05)
    act = sketch.actuator(2, area=0.01, p_return=1e4, tau_rise=0.01, tau_fall=0.02)
    sketch.friction(slip, actuator=act, cgeo=0.5, mu=sketch.curve([0.0, 10.0], [0.1, 0.2]))
    index = {kind: sketch.output(kind, 0) for kind in range(22)}
    row, scaled = sketch.output(v.OUT_ANGLE, slip), sketch.output(v.OUT_INPUT, 3, gain=-2.0, offset=5.0)
    m = KernelModel(sketch.arrays(), h)
    s = KernelState(m)
    s.p = 5e5
    inputs = np.array([4.0, 0.3, 5e5, 1.5, 0.0])
    m.run(s, inputs[None, :])
    out = dict(zip(index, m.outputs(s)[list(index.values())], strict=True))
    u, z = s.u, s.z
    r = np.array([0.0, 0.0, 1.0, -0.5])
    w = r @ u
    phi = r @ z + 0.25
    cap = 0.5 * np.interp(abs(w), [0.0, 10.0], [0.1, 0.2]) * 0.01 * (5e5 - 1e4)
    low, high = np.interp(u[0], [0, 200], [-10, -30]), np.interp(u[0], [0, 200], [100, 200])
    nu = u[1] / u[0]
    pump = 2e-3 * (1.0 - nu) * u[0] ** 2
    turbine = (2.0 - nu) * pump
    poly = 0.5 - 0.1 * u[2] + 0.02 * u[2] ** 2 - 0.03 * u[2] * abs(u[2])
    spring = -(40.0 * (phi - 0.05) + 0.7 * w)
    engine = low + 0.3 * (high - low)
    assert s.modes[0] == -1
    friction = cap
    force = np.array([engine - pump, turbine, poly, 9.0]) + r * (spring + friction)
    expected = {
        v.OUT_SPEED: u[0],
        v.OUT_ANGLE: z[0],
        v.OUT_ACCELERATION: np.linalg.solve(sketch.M, force)[0],
        v.OUT_FRICTION: friction,
        v.OUT_MODE: -1.0,
        v.OUT_CAPACITY: cap,
        v.OUT_TORQUE: 9.0,
        v.OUT_PRESSURE: 5e5,
        v.OUT_INPUT: 4.0,
        v.OUT_COMPLIANCE: spring,
        v.OUT_ENGINE: engine,
        v.OUT_PUMP: pump,
        v.OUT_TURBINE: turbine,
        v.OUT_POLY: poly,
        v.OUT_FRICTION_HEAT: h * abs(w) * cap,
        v.OUT_DISSIPATION: h * 0.7 * w**2,
        v.OUT_TORQUE_WORK: h * 9.0 * u[3],
        v.OUT_POLY_WORK: h * poly * u[2],
        v.OUT_ENGINE_WORK: h * engine * u[0],
        v.OUT_CONVERTER_LOSS: h * (pump * u[0] - turbine * u[1]),
        v.OUT_KINETIC: 0.5 * u @ sketch.M @ u,
        v.OUT_POTENTIAL: 0.5 * 40.0 * (phi - 0.05) ** 2,
    }
    assert set(expected) == set(out)
    for kind, value in expected.items():
        assert out[kind] == pytest.approx(value, rel=1e-4 if v.OUT_FRICTION_HEAT <= kind < v.OUT_KINETIC else 1e-7), (
            kind
        )
    assert m.outputs(s)[row] == pytest.approx(phi, rel=1e-14)
    assert m.outputs(s)[scaled] == pytest.approx(2.0)
    # inputs given at start, middle, end: the output shows the end
    m.run(s, np.stack([inputs, inputs, inputs + 1.0])[None])
    assert m.outputs(s)[index[v.OUT_INPUT]] == 5.0


# --- tables -----------------------------------------------------------------------------------------------------------
def engine_torques(sketch: Sketch, speeds: Array, pedal: float) -> Array:
    """Torque of every engine with the shafts at `speeds`; twice, in another order, so that search hints are put to work."""
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
    """J w' = kp (w0 - w) + xi - load, xi' = ki (w0 - w): a damped oscillation about the idle speed; errors of w and xi."""
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
    pressed = t_fill + tau * np.log((command - creep[-1]) / (command - p_return))
    (at, _), *_ = run.changes(0)
    assert at == pytest.approx(pressed, abs=1e-6)
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


# --- memory -----------------------------------------------------------------------------------------------------------
class Mallinfo2(ctypes.Structure):
    """struct mallinfo2 of glibc; uordblks = bytes in use."""

    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip


@pytest.mark.parametrize("name", ["car_4hp22", "car_6hp26"])
@pytest.mark.parametrize("kernel", ["generic", "auto"])
def test_warm_steps_allocate_nothing(name: str, kernel: str) -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs mallinfo2 of glibc 2.33 or newer")
    libc.mallinfo2.restype = Mallinfo2
    model = load(CONFIGS / "powertrains" / f"{name}.toml").compile()
    m = KernelModel(model.arrays, H, kernel)
    s = KernelState(m)
    s.warm()
    rng = np.random.default_rng(7)
    inputs = np.zeros((10_000, len(model.input_names)))
    for k, input_name in enumerate(model.input_names):
        level = rng.choice([0.0, 0.5e6, 1.0e6], 100) if input_name.endswith(".p") else rng.uniform(0.0, 1.0, 100)
        inputs[:, k] = np.repeat(level, 100)
    outputs = np.zeros((10_000, m.sizes["outputs"]))
    m.run(s, inputs, outputs)
    gc.collect()
    gc.disable()
    try:
        usage, blocks = resource.getrusage(resource.RUSAGE_SELF), sys.getallocatedblocks()
        heap = libc.mallinfo2().uordblks
        m.run(s, inputs, outputs)
        heap_after = libc.mallinfo2().uordblks
        blocks_after, usage_after = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF)
    finally:
        gc.enable()
    assert s.counters["events"] > 100, "the run was not an idle one"
    assert heap_after == heap
    # a few objects of the measurement itself
    assert abs(blocks_after - blocks) < 20
    assert usage_after.ru_minflt - usage.ru_minflt < 5


def test_sampled_inputs_are_followed_as_parabolas() -> None:
    sketch = Sketch([2.0], nin=1, order=4)
    sketch.torque(0, 0)
    m = KernelModel(sketch.arrays(), 0.01)
    s = KernelState(m)
    m.run(s, sampled(lambda t: (3.0 * t**2 - t)[:, None], 0.0, 0.01, 100))
    assert s.u[0] == pytest.approx((1.0 - 0.5) / 2.0, rel=1e-12)
    assert s.z[0] == pytest.approx((0.25 - 1.0 / 6.0) / 2.0, rel=1e-12)


def test_outputs_for_every_zeroth_step_are_refused() -> None:
    """In a process of its own: a division by zero would end it."""
    code = (
        "import numpy as np\n"
        "from torqueloop.cython_kernels.model import KernelModel, KernelState\n"
        "from kernel_models import Sketch\n"
        "sketch = Sketch([1.0]); sketch.output(0, 0)\n"
        "m = KernelModel(sketch.arrays(), 1e-3)\n"
        "try:\n"
        "    m.run(KernelState(m), np.zeros((2, 0)), np.zeros((2, 1)), 0)\n"
        "except ValueError as error:\n"
        "    print('refused', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.returncode == 0 and "refused" in done.stdout, (done.returncode, done.stderr)
