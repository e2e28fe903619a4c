"""Models and states of the kernel: what they refuse, reset and restore, what they put out, memory."""

from __future__ import annotations

import ctypes
import gc
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernel_models import CONFIGS, Sketch

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe import kernel_numbers as v
from torqueloop.cython_kernels.kernel.kernel import COUNTER_NAMES, KernelModel, KernelState
from torqueloop.cython_kernels.model.model_arrays import ModelArrays
from torqueloop.hil.rig.run.session import _prepare

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
def with_fields(a: ModelArrays, kind: str, **columns: Any) -> ModelArrays:
    """The same with other numbers in the fields of a kind."""
    elements = a.elements[kind].copy()
    for name, values in columns.items():
        elements[name] = values
    return replace(a, elements={**a.elements, kind: elements})


def empty_row(a: ModelArrays) -> ModelArrays:
    pointer = a.row_ptr.copy()
    pointer[1:] -= 1
    return replace(a, row_ptr=pointer, row_idx=a.row_idx[1:], row_val=a.row_val[1:])


def with_curve(a: ModelArrays, x: list[float]) -> ModelArrays:
    return replace(
        a, tab1_ptr=np.array([0, len(x)]), tab1_x=np.array(x), tab1_y=np.zeros(len(x)), tab1_extrap=np.array([0])
    )


def with_map(a: ModelArrays, nx: int, ny: int) -> ModelArrays:
    return replace(
        a, tab2_nx=np.array([nx]), tab2_ny=np.array([ny]), tab2_xptr=np.array([0]), tab2_yptr=np.array([0]),
        tab2_zptr=np.array([0]), tab2_x=np.arange(float(nx)), tab2_y=np.arange(float(ny)), tab2_z=np.zeros(nx * ny),
    )  # fmt: skip


REFUSED: list[tuple[str, Callable[[ModelArrays], ModelArrays], str]] = [
    ("order", lambda a: replace(a, order=3), "order must be 2 or 4, got 3"),
    ("M", lambda a: replace(a, M=np.eye(3)), r"M has shape \(3, 3\), expected \(2, 2\)"),
    ("empty row", empty_row, "row 0 used by a force element is empty"),
    ("friction row", lambda a: with_fields(a, "fr", row=3), "fr.row: values 3 .. 3, allowed 0 .. 2"),
    ("compliance row", lambda a: with_fields(replace(a, n_hot=1), "fr", row=0), "lin.row: values .*, allowed 0 .. 0"),
    ("source row", lambda a: with_fields(a, "tq", row=-1), "tq.row: values -1 .. -1, allowed 0 .. 2"),
    ("curve", lambda a: with_curve(a, [0.0, 1.0, 1.0]), "1-D table 0: x must increase strictly"),
    ("falling curve", lambda a: with_curve(a, [1.0, 0.0]), "1-D table 0: x must increase strictly"),
    ("empty curve", lambda a: with_curve(a, []), "1-D table 0"),
    ("map", lambda a: with_map(a, 1, 2), "2-D table 0 needs at least 2 x 2 points"),
    ("map", lambda a: with_map(a, 2, 1), "2-D table 0 needs at least 2 x 2 points"),
]


@pytest.mark.parametrize(("what", "spoil", "message"), REFUSED, ids=[f"{k} {r[0]}" for k, r in enumerate(REFUSED)])
def test_arrays_that_do_not_fit_are_refused(
    what: str, spoil: Callable[[ModelArrays], ModelArrays], message: str
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
    car = compile_driveline(load(CONFIGS / "powertrains" / "car_4hp22.toml")).arrays
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
    for dt in (-1e-9, -1e-4, 1.1e-3, float("nan")):
        with pytest.raises(ValueError, match="allowed 0 <= dt <= h"):
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
    row, scaled = sketch.output(v.OUT_ANGLE, slip), sketch.output(v.OUT_INPUT, 3, gain=-2.0)
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
    assert m.outputs(s)[scaled] == pytest.approx(-3.0)
    # inputs given at start, middle, end: the output shows the end
    m.run(s, np.stack([inputs, inputs, inputs + 1.0])[None])
    assert m.outputs(s)[index[v.OUT_INPUT]] == 5.0


# --- memory -----------------------------------------------------------------------------------------------------------
class Mallinfo2(ctypes.Structure):
    """struct mallinfo2 of glibc; uordblks = bytes in use."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


@pytest.mark.parametrize("name", ["car_4hp22", "car_6hp26"])
@pytest.mark.parametrize("kernel", ["generic", "auto"])
def test_warm_steps_allocate_nothing(name: str, kernel: str) -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs mallinfo2 of glibc 2.33 or newer")
    libc.mallinfo2.restype = Mallinfo2
    model = compile_driveline(load(CONFIGS / "powertrains" / f"{name}.toml"))
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
        usage, blocks = resource.getrusage(resource.RUSAGE_THREAD), sys.getallocatedblocks()
        heap = libc.mallinfo2().uordblks
        m.run(s, inputs, outputs)
        heap_after = libc.mallinfo2().uordblks
        blocks_after, usage_after = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_THREAD)
    finally:
        gc.enable()
    assert s.counters["events"] > 100, "the run was not an idle one"
    assert heap_after == heap
    # a few objects of the measurement itself
    assert abs(blocks_after - blocks) < 20
    assert usage_after.ru_minflt - usage.ru_minflt < 5


def test_outputs_for_every_zeroth_step_are_refused() -> None:
    """In a process of its own: a division by zero would end it."""
    code = (
        "import numpy as np\n"
        "from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState\n"
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


@pytest.mark.parametrize("real", [True, False])
def test_lock_patterns_are_built_before_a_run_on_the_real_clock_only(real: bool) -> None:
    built: list[bool] = []
    parts: Any = SimpleNamespace(state=SimpleNamespace(warm=lambda: built.append(True)))
    plan: Any = SimpleNamespace()
    # what comes behind it needs a plan
    with pytest.raises(AttributeError, match="config"):
        _prepare(plan, parts, plan, real, "generic")
    assert built == [True] * real
