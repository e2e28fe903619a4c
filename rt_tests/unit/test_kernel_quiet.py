"""Quiet steps leave the bits alone: they are the general step without what could not have changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_models import CONFIGS, Sketch

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import SimulationError
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

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
    assert taken > 500 or order == 4
    assert plain.counters["events"] == quiet.counters["events"] > 10


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
