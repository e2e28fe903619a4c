"""Quiet steps leave the bits alone: they are the general step without what could not have changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_models import CONFIGS, Sketch

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import SimulationError
from torqueloop.core.signals import Sine, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.structure import READERS, outputs_signature
from torqueloop.cython_kernels.step import topologies

H = 1e-3


def stairs(count: int, nin: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs that stand still for a while, then jump: pressures, pedals, torques."""
    values = np.zeros((count, nin))
    start = 0
    while start < count:
        length = int(rng.integers(1, 400))
        values[start : start + length] = np.where(rng.random(nin) < 0.5, rng.uniform(0.0, 1.2e6, nin), 0.0)
        values[start : start + length, rng.random(nin) < 0.3] = rng.uniform(0.0, 1.0)
        start += length
    return values


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("kernel", ["generic", "auto"])
@pytest.mark.parametrize("name", ["car_4hp22", "car_6hp26"])
def test_quiet_steps_give_the_bits_of_the_general_step(name: str, kernel: str, order: int) -> None:
    arrays = replace(compile_driveline(load(CONFIGS / "powertrains" / f"{name}.toml")).arrays, order=order)
    model = KernelModel(arrays, H, kernel)
    inputs = stairs(4000, arrays.nin, np.random.default_rng(order))
    plain, quiet = KernelState(model), KernelState(model)
    taken = 0
    for k in range(len(inputs)):
        assert model.run(plain, inputs[k : k + 1]) == model.run(quiet, inputs[k : k + 1]) == 1
        taken += quiet.quiet
        assert plain.hash() == quiet.hash(), k
        plain.from_bytes(plain.to_bytes())  # the step after it is a general one
        assert not plain.quiet
    assert taken > 500
    assert plain.counters["events"] == quiet.counters["events"] > 10


@pytest.mark.parametrize("kernel", ["generic", "auto"])
@pytest.mark.parametrize("order", [2, 4])
def test_a_torque_that_changes_every_step_leaves_the_quiet(order: int, kernel: str) -> None:
    """The force of the road on the rig's car shifts the instant, the same from a quiet step and from a general one."""
    compiled = compile_driveline(load(CONFIGS / "powertrains" / "car_4hp22_rig.toml"))
    model = KernelModel(replace(compiled.arrays, order=order), H, kernel)
    rng = np.random.default_rng(order)
    inputs = stairs(3000, model.sizes["inputs"], rng)
    inputs[:, compiled.input_index("road.F")] = np.cumsum(rng.normal(0.0, 5.0, len(inputs)))
    plain, quiet = KernelState(model), KernelState(model)
    taken = 0
    for k in range(len(inputs)):
        assert model.run(plain, inputs[k : k + 1]) == model.run(quiet, inputs[k : k + 1]) == 1
        taken += quiet.quiet
        assert plain.hash() == quiet.hash(), k
        plain.from_bytes(plain.to_bytes())
    assert taken > 500


@pytest.mark.parametrize("order", [2, 4])
def test_a_torque_that_jumps_shifts_what_a_fresh_start_finds(order: int) -> None:
    """Accelerations and torques at rest behind the jump are those of the instant found anew with all its forces."""
    compiled = compile_driveline(load(CONFIGS / "powertrains" / "car_4hp22_rig.toml"))
    model = KernelModel(replace(compiled.arrays, order=order), 1e-4, "generic")
    inputs = np.zeros((2000, model.sizes["inputs"]))
    for name in ("C4.p", "C11.p"):
        inputs[:, compiled.input_index(name)] = 15e5
    inputs[:, compiled.input_index("engine.pedal")] = 0.3
    shifted, anew = KernelState(model), KernelState(model)
    model.run(shifted, inputs)
    inputs[-1, compiled.input_index("road.F")] = -400.0
    anew.restore(shifted)
    anew.u = shifted.u
    for state in (shifted, anew):
        before = state.a.copy()
        model.advance(state, np.repeat(inputs[-1:], 3, axis=0), 0.0)
        assert np.abs(state.a - before).max() > 0.1
    # the trial's torques at predicted speeds are not quite those of its end: h^2 apart
    np.testing.assert_allclose(shifted.a, anew.a, rtol=1e-6, atol=2e-6 * np.abs(anew.a).max())
    np.testing.assert_allclose(shifted.tau, anew.tau, rtol=1e-6, atol=1e-6 * np.abs(anew.tau).max())


@pytest.mark.parametrize("name", ["car_4hp22", "car_6hp26", "car_4hp22_rig"])
def test_precompiled_outputs_have_the_bits_of_the_others(name: str) -> None:
    arrays = compile_driveline(load(CONFIGS / "powertrains" / f"{name}.toml")).arrays
    inputs = stairs(1500, arrays.nin, np.random.default_rng(1))
    found = []
    topologies.import_all()
    assert outputs_signature(arrays) in READERS
    for kernel in ("generic", "auto"):
        model = KernelModel(arrays, H, kernel)
        assert (model.kernel_name == "generic") == (kernel == "generic")
        found.append(np.empty((len(inputs), model.sizes["outputs"])))
        assert model.run(KernelState(model), inputs, found[-1]) == len(inputs)
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("gain", [20.0, 4.0])
def test_an_event_ends_the_quiet(gain: float) -> None:
    """A clutch comes to rest in the middle of a long run."""
    sketch = Sketch([1.0, 2.0, 0.5], [30.0, 0.0, 1.0], nin=1)
    sketch.friction(sketch.row({1: 1.0, 0: -1.0}), gain=gain, peak=1.2)
    sketch.resistance(0, k3=-1e-3)
    sketch.torque(1, 0)
    model = KernelModel(sketch.arrays(), H, "generic")
    bulk, single = KernelState(model), KernelState(model)
    inputs = np.full((6000, 1), 1.5)
    model.run(bulk, inputs)
    for k in range(len(inputs)):
        model.run(single, inputs[k : k + 1])
        single.from_bytes(single.to_bytes())
    assert bulk.quiet and not single.quiet
    assert bulk.hash() == single.hash()
    assert bulk.counters["events"] == single.counters["events"] >= 1


def test_what_is_set_by_hand_ends_the_quiet() -> None:
    sketch = Sketch([1.0, 2.0], [3.0, 0.0], nin=1)
    sketch.friction(sketch.row({1: 1.0, 0: -1.0}), gain=5.0)
    model = KernelModel(sketch.arrays(), H, "generic")
    state, fresh = KernelState(model), KernelState(model)
    model.run(state, np.zeros((1000, 1)))
    assert state.quiet
    state.u = [5.0, -1.0]
    fresh.restore(state)
    model.run(state, np.zeros((100, 1)))
    model.run(fresh, np.zeros((100, 1)))
    assert state.hash() == fresh.hash()


def test_stepping_with_numbers_for_inputs_equals_a_run() -> None:
    """Ticks one by one (without sampling signals again) and in one go; a number that changes in between is taken up."""
    line = load(CONFIGS / "powertrains" / "car_4hp22.toml")
    stepped, run = Simulation(line, substeps=2), Simulation(line, substeps=2)
    for value in (0.0, 0.4, 0.7):
        for sim in (stepped, run):
            sim.set_input("engine.pedal", value)
            sim.set_input("C4.p", 15e5)
            sim.set_input("C11.p", 15e5)
        for _ in range(200):
            stepped.step()
        run.run(0.2)
        assert stepped.hash() == run.hash()
    stepped.set_input("engine.pedal", float("nan"))
    with pytest.raises(SimulationError, match="input engine.pedal is nan"):
        stepped.step()
    back = run.state.copy()
    run.step()
    run.restore(back)
    run.state.u = np.full(run.model.n, np.nan)
    with pytest.raises(SimulationError, match="not finite"):
        run.step()


@pytest.mark.parametrize("order", [2, 4])
def test_inputs_that_are_not_held_leave_the_quiet_where_there_are_no_actuators(order: int) -> None:
    """Waves for a torque and a normal force, then numbers, then waves: capacities follow their input."""
    sketch = Sketch([1.0, 2.0, 0.5], [30.0, 0.0, 1.0], nin=2)
    sketch.friction(sketch.row({1: 1.0, 0: -1.0}), gain=20.0, source=1, peak=1.2)
    sketch.friction(sketch.row({2: 1.0, 1: -1.0}), gain=9.0, source=1)
    sketch.resistance(0, k3=-1e-3)
    sketch.torque(1, 0)
    model = KernelModel(replace(sketch.arrays(), order=order), H, "generic")
    t = (np.arange(6000)[:, None] + np.array([0.0, 0.5, 1.0])) * H
    inputs = np.stack([8.0 * np.sin(9.0 * t), 0.6 + 0.5 * np.cos(2.0 * t)], axis=2)
    inputs[2000:3000] = inputs[2000, 0]
    plain, quiet = KernelState(model), KernelState(model)
    taken = 0
    for k in range(len(inputs)):
        assert model.run(plain, inputs[k : k + 1]) == model.run(quiet, inputs[k : k + 1]) == 1
        taken += quiet.quiet
        assert plain.hash() == quiet.hash(), k
        plain.from_bytes(plain.to_bytes())
    assert taken > 4000
    assert plain.counters["events"] == quiet.counters["events"] > 3


def test_stepping_with_waves_sampled_ahead_or_not() -> None:
    """Ticks one by one sample ahead: jumps on the grid and between, a signal that changes, a function of the user's."""
    line = load(CONFIGS / "powertrains" / "car_4hp22.toml")
    asked: list[float] = []

    def pedal(t: float) -> float:
        asked.append(t)
        return 0.3

    stepped, plain = Simulation(line, substeps=2), Simulation(line, substeps=2)
    for signal in (Sine(0.2, 3.0, offset=0.4), Step(0.5, startTime=0.3) + Sine(0.1, 9.0, offset=0.2), pedal):
        for sim in (stepped, plain):
            sim.set_input("engine.pedal", signal)
            sim.set_input("C4.p", Step(15e5, startTime=0.12345))
        ahead = 0
        for _ in range(150):
            asked.clear()
            stepped.step()
            ahead = max(ahead, stepped._prepared)
            assert all(t <= stepped.time + 1e-9 for t in asked)
            plain._forget()
            plain.step()
            assert stepped.hash() == plain.hash()
        assert (ahead == 0) == (signal is pedal)
    back = stepped.state.copy()
    stepped.step()
    after = stepped.hash()
    stepped.restore(back)
    stepped.step()
    assert stepped.hash() == after
