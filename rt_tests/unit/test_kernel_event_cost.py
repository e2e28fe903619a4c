"""What a step with an event costs, in evaluations of the forces: exact, since a run repeats to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hard_drivelines import Array, full_throttle, run_chain
from kernel_models import CONFIGS

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components import Clutch, ElastoBacklash, Inertia, SpringDamper
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

H = 1e-3


def evaluations(compiled: CompiledModel, inputs: Array, order: int, kernel: str) -> Array:
    """Of the forces, in each step."""
    model = KernelModel(replace(compiled.arrays, order=order), H, kernel)
    state = KernelState(model)
    found = [0]
    for k in range(len(inputs)):
        assert model.run(state, inputs[k : k + 1]) == 1
        found.append(state.counters["evals"])
    assert state.counters["events"] > 10 and state.counters["fallbacks"] == state.counters["refused"] == 0
    return np.diff(found)


@pytest.mark.parametrize("kernel", ["generic", "auto"])
@pytest.mark.parametrize(("order", "plain", "most", "steps"), [(2, 1, 7, 30), (4, 2, 19, 45)])
def test_no_step_of_a_drive_evaluates_the_forces_more_often(
    order: int, plain: int, most: int, steps: int, kernel: str
) -> None:
    """The slowest steps are those whose event lies where the half-shaft's spring still swings: the search for it makes
    four trials of one evaluation (16 of two where it went on to its cap). In one step two clutches begin to be pressed,
    with a capacity of 0, and behind that, at the same instant, the free wheel that they relieve lets go: two events. At
    order 4 the torques behind an event are evaluated once more, at the speeds that were found, and breakpoints of the
    friction coefficients over the slip are events."""
    compiled = compile_driveline(load(CONFIGS / "powertrains" / "car_4hp22.toml"))
    counted = evaluations(compiled, full_throttle(compiled, 14.0), order, kernel)
    assert counted.max() <= most
    assert np.median(counted) == plain
    assert np.count_nonzero(counted > plain) <= steps


def spring_and_clutch(swings: float, other: bool = False, last: float = 1.0) -> Driveline:
    """Two inertias on a spring that swings with h*omega = swings, a clutch to a third, `last`; other: an elastic stop
    to a fourth that it never meets."""
    d = Driveline("spring and clutch", order=2)
    for k, speed in enumerate((10.0, 0.0, 0.0, 0.0) if other else (10.0, 0.0, 0.0)):
        d.add(f"J{k}", Inertia(J=last if k == 2 else 1.0, w0=speed))
    d.add("spring", SpringDamper(c=0.5 * (swings / H) ** 2, d=1.0))
    d.add("c0", Clutch(fn_max=20.0, mue_pos=1.0))
    d.connect("J0.flange_b", "spring.flange_a")
    d.connect("spring.flange_b", "J1.flange_a")
    d.connect("J1.flange_b", "c0.flange_a")
    d.connect("c0.flange_b", "J2.flange_a")
    if other:
        d.add("stop", ElastoBacklash(c=1.0, d=0.0, b=1e6))
        d.connect("J2.flange_b", "stop.flange_a")
        d.connect("stop.flange_b", "J3.flange_a")
    return d


@pytest.mark.parametrize("swings", [0.5, 10.0, 100.0])
def test_search_for_the_length_of_a_trial_ends_before_its_cap(swings: float) -> None:
    """Unresolved springs: trials are made with the length that ends at the event, and there are many in a step."""
    compiled = compile_driveline(spring_and_clutch(swings))
    model = KernelModel(compiled.arrays, H, "generic")
    state = KernelState(model)
    inputs = np.ones((1, len(compiled.input_names)))
    per_event = []
    for _ in range(300):
        before = dict(state.counters)
        model.run(state, inputs)
        after = state.counters
        if after["events"] > before["events"] and after["fallbacks"] == before["fallbacks"]:
            per_event.append((after["evals"] - before["evals"]) / (after["events"] - before["events"]))
    assert len(per_event) > 20
    # 2 for each of its trials, and 2 for the one before and the one after: 36 where it goes on to its cap of 16
    assert max(per_event) <= 24 and np.mean(per_event) <= 17


def test_end_of_a_slip_beside_a_resolved_spring_takes_one_trial_of_its_length() -> None:
    """One trial over the whole step, one that ends where the slip is zero, and one of two evaluations for the rest."""
    compiled = compile_driveline(spring_and_clutch(0.15))
    model = KernelModel(replace(compiled.arrays, order=2), H, "generic")
    state = KernelState(model)
    cost = []
    for k in range(400):
        before = dict(state.counters)
        model.run(state, np.full((1, len(compiled.input_names)), 0.4 + 0.3 * np.sin(0.05 * k)))
        if k > 0 and state.counters["events"] > before["events"]:
            cost.append(state.counters["evals"] - before["evals"])
    assert len(cost) > 15 and max(cost) == 4


@pytest.mark.parametrize("slipping", [True, False])
@pytest.mark.parametrize("part", [0.03, 0.37, 0.9])
@pytest.mark.parametrize("swings", [10.0, 100.0])
def test_trial_of_another_length_is_the_step_of_a_model_of_it(swings: float, part: float, slipping: bool) -> None:
    """Where one spring acts, a trial of another length has its matrices from those of the whole step: the same motion
    and torques, to rounding, as where they are built for that length."""
    compiled = compile_driveline(spring_and_clutch(swings, last=2.0))
    inputs = np.ones((3, len(compiled.input_names)))
    stiffness = 0.5 * (swings / H) ** 2
    found = []
    for h in (H, part * H):
        model = KernelModel(compiled.arrays, h, "generic")
        state = KernelState(model)
        state.u = [3.0 + 5.0 / (stiffness * H), 3.0, 1.0 if slipping else 3.0]
        state.z = [4.0 / stiffness, 0.0, 0.0]
        model.advance(state, inputs, part * H)
        assert state.counters["events"] == 0 and (state.modes[0] == 0) != slipping
        found.append(np.concatenate([state.u, state.z, state.a, state.tau]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-12 * np.abs(found[1]).max())


@pytest.mark.parametrize("swings", [1.0, 10.0])
def test_matrices_of_another_length_are_those_that_are_built(swings: float) -> None:
    """The same over many events: beside a contact, even one that is never met, matrices are built from the masses and
    springs."""
    runs = [run_chain(spring_and_clutch(swings, other), 0.3) for other in (False, True)]
    # rounding grows from one event to the next where the spring swings often in a step
    assert np.abs(runs[0].w - runs[1].w[:3]).max() <= (1e-11 if swings <= 1.0 else 1e-6)
