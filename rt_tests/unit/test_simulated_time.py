"""Simulated time is a step number and a fraction of a step: it does not depend on how many steps were summed, nor on
where a run begins."""

from __future__ import annotations

import numpy as np
import pytest
from core_examples import two_shafts

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import Inertia, Torque
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Ramp, SignalLike, Sine, Step
from torqueloop.core.simulate.offline import Simulation

#: s, late enough for the sum of steps of 1 ms to be off by more than 1e-9 s
LATE = 500.0


def one_shaft() -> Driveline:
    d = Driveline("one shaft")
    d.add("J", Inertia(J=2.0))
    d.add("torque", Torque())
    d.connect("torque.flange", "J.flange_a")
    return d


def test_a_step_that_is_cut_after_long_is_counted_once() -> None:
    """A torque of 3 N.m that sets in between two ticks, 500 s after the start: w = 3/2 (t - 500.0005)."""
    sim = Simulation(one_shaft())
    result = sim.run(600.0, {"torque.tau": Step(height=3.0, startTime=LATE + 5e-4)})
    assert sim.time == 600.0 and sim.state.time == 600.0 and sim.state.step_no == 600_000
    assert result["J.w"][-1] == pytest.approx(1.5 * (600.0 - LATE - 5e-4), rel=1e-10)


def test_a_run_that_begins_inside_a_step_ends_where_it_should() -> None:
    """Half a step by hand, ticks from there on, half a step: all of it is counted."""
    sim = Simulation(one_shaft())
    sim.set_input("torque.tau", 3.0)
    sim.run(1.0)
    half = np.full((3, 1), 3.0)
    assert sim._kernel.advance(sim.state, half, 5e-4) == 0
    assert (sim.state.step_no, sim.state.fraction, sim.time) == (1000, 0.5, 1.0005)
    result = sim.run(1.0)
    assert (result.time[0], result.time[-1]) == (1.0005, 2.0005)
    sim.step()
    assert sim.time == 2.0015
    assert sim._kernel.advance(sim.state, half, 5e-4) == 0
    assert (sim.state.step_no, sim.state.fraction) == (2002, 0.0)
    assert sim.output("J.w") == pytest.approx(1.5 * 2.002, rel=1e-12)


@pytest.mark.parametrize(("model", "inputs"), [
    ("one", {"torque.tau": Step(height=3.0, startTime=0.30013)}),
    ("one", {"torque.tau": Step(height=3.0, startTime=0.7123456)}),
    ("two", {"clutch.f_normalized": Sine(amplitude=1.0, f=3.3), "torque.tau": Step(height=5.0, startTime=0.5000007)}),
    ("two", {"clutch.f_normalized": Ramp(duration=0.3, startTime=0.4), "torque.tau": 4.0}),
    ("car_4hp22", {"engine.pedal": Ramp(duration=0.2, startTime=0.4003, height=0.6), "C4.p": 5e5, "C11.p": 5e5}),
])  # fmt: skip
def test_two_halves_of_a_run_are_the_run_to_the_bit(model: str, inputs: dict[str, SignalLike]) -> None:
    made = {"one": one_shaft, "two": two_shafts, "car_4hp22": lambda: load("car_4hp22")}[model]
    whole, halves = Simulation(made()), Simulation(made())
    one = whole.run(1.0, inputs)
    first, second = halves.run(0.5, inputs), halves.run(0.5)
    assert np.array_equal(np.vstack([first.values, second.values[1:]]), one.values)
    assert np.array_equal(np.concatenate([first.time, second.time[1:]]), one.time)
    assert halves.hash() == whole.hash() and first.modes + second.modes == one.modes
    assert np.array_equal(second.values[0], first.values[-1])


def test_mode_changes_are_logged_at_their_time_after_long() -> None:
    """A clutch that begins to close at 500.1003 s locks as late as one that begins at 0.1003 s, to rounding of t."""

    def locked_at(start: float) -> float:
        sim = Simulation(two_shafts())
        result = sim.run(start + 20.0, {"clutch.f_normalized": Step(height=0.7, startTime=start + 0.1003)})
        return next(change.time_s for change in result.modes if change.mode == 0) - start

    assert locked_at(LATE) == pytest.approx(locked_at(0.0), abs=1e-11 * LATE)
