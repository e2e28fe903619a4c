"""`Simulation.step` is a run tick by tick: the same bits, whatever feeds the inputs, however the ticks are prepared.

The runs that it is compared with sample their inputs with NumPy; a run as users make it follows formulas, too.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import Clutch, Fixed, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import SimulationError
from torqueloop.core.signals import (
    Applied,
    Array,
    Exponentials,
    ExpSine,
    Integral,
    Pulse,
    Ramp,
    SawTooth,
    Signal,
    SignalLike,
    Sine,
    Step,
    Table,
    Trapezoid,
    clock,
    kinematic_ptp,
    time_table,
)
from torqueloop.core.simulate.offline import FORESIGHT, Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelState
from torqueloop.cython_kernels.kernel.stepper import Stepper

SPEED = kinematic_ptp([3.0], [2.0], [5.0], startTime=0.05)[0][1]
#: signals that are formulas between their events, and some that are not
FORMULAS: dict[str, Signal] = {
    "sine": Sine(amplitude=3.0, f=7.3, phase=0.4, offset=0.2),
    "sine that begins between grid points": Sine(amplitude=3.0, f=40.0, phase=1.0, startTime=0.1003),
    "steps on and off the grid": Step(2.0, startTime=0.2) + Step(-3.0, offset=1.0, startTime=0.30021),
    "two steps on one grid point": Step(2.0, startTime=0.2) + 3.0 * Step(1.0, startTime=0.2 + 3e-10),
    "ramp": Ramp(4.0, duration=0.17, offset=-1.0, startTime=0.1),
    "ramp with two steps on one grid point": Ramp(4.0, 0.3)
    + Step(2.0, startTime=0.2)
    + Step(3.0, startTime=0.2 + 3e-10),
    "table with a jump": Table([(0.0, 1.0), (0.1, 3.0), (0.1, -2.0), (0.25, 1.7), (0.30033, 0.0)]),
    "time table": time_table([(0.0, 0.3), (0.11, 2.0), (0.4, -1.0)], offset=0.1, startTime=0.02),
    "parabolas": SPEED,
    "trapezoids": Trapezoid(3.0, rising=0.031, width=0.07, falling=0.02, period=0.15, startTime=0.01),
    "saw teeth that end": SawTooth(2.0, period=0.1, nperiod=3, offset=0.5, startTime=0.04),
    "computed": (Sine(1.0, 3.0) - 0.5 * Ramp(1.0, 0.3)) * clock(0.5, 0.1) + 2.0,
}
OTHERS: dict[str, SignalLike] = {
    "number": 1.7,
    "pulses of seven steps": Pulse(3.0, 40.0, period=7e-3, startTime=1e-3),
    "exponentials": Exponentials(2.0, riseTime=0.1, riseTimeConst=0.03),
    "damped sine": ExpSine(2.0, 9.0, damping=3.0),
    "integral": Integral(Sine(3.0, 4.0), k=2.0),
    "applied": Applied("Tanh", Sine(3.0, 5.0)),
    "function": lambda t: 3.0 * t,
}
ALL: dict[str, SignalLike] = {**FORMULAS, **OTHERS}


class SampledRun(Simulation):
    """A simulation whose run samples all inputs with NumPy."""

    def _follow_ticks(self, out: Array) -> int:
        return 0


def shafts() -> Driveline:
    """Two shafts with a spring between (order 4: the middles of the steps count), the second on a clutch."""
    line = Driveline("two shafts")
    line.add("housing", Fixed())
    line.add("drive", Torque())
    line.add("J1", Inertia(J=0.3))
    line.add("shaft", SpringDamper(c=200.0, d=1.0))
    line.add("J2", Inertia(J=0.5, w0=4.0))
    line.add("clutch", Clutch(fn_max=5.0, mue_pos=0.5))
    line.connect("drive.flange", "J1.flange_a")
    line.connect("J1.flange_b", "shaft.flange_a")
    line.connect("shaft.flange_b", "J2.flange_a")
    line.connect("J2.flange_b", "clutch.flange_a")
    line.connect("clutch.flange_b", "housing.flange")
    return line


def pair(signal: SignalLike, h: float = 1e-3, substeps: int = 1) -> tuple[Simulation, Simulation]:
    """The same simulation twice, with this torque; the clutch slips and sticks."""
    sims = Simulation(shafts(), h, substeps=substeps), SampledRun(shafts(), h, substeps=substeps)
    for sim in sims:
        sim.set_input("drive.tau", signal)
        sim.set_input("clutch.f_normalized", 0.6)
    return sims


def step_all(sim: Simulation, ticks: int) -> None:
    for _ in range(ticks):
        sim.step()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("h", "substeps"), [(1e-3, 1), (1e-3, 3), (0.7e-3, 1)])
def test_steps_have_the_bits_of_a_run(name: str, h: float, substeps: int) -> None:
    stepped, run = pair(ALL[name], h, substeps)
    for ticks in (1, 7, 392):
        step_all(stepped, ticks)
        run.run(ticks * h)
        assert stepped.hash() == run.hash(), stepped.time
    assert stepped.state.counters == run.state.counters


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("h", "substeps"), [(1e-3, 1), (0.7e-3, 3)])
def test_runs_that_follow_formulas_have_the_bits_of_sampled_ones(name: str, h: float, substeps: int) -> None:
    followed, sampled = pair(ALL[name], h, substeps)
    for ticks in (1, 90, 309):
        a, b = followed.run(ticks * h), sampled.run(ticks * h)
        assert np.array_equal(a.values, b.values)
        assert a.modes == b.modes
    assert followed.hash() == sampled.hash()
    assert followed.state.counters == sampled.state.counters


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_reach_to_the_next_event(name: str) -> None:
    """Not sampled in between: no call of `sample` while a formula holds."""
    sim, _ = pair(FORMULAS[name])
    reached = 0
    for _ in range(400):
        sim.step()
        reached = max(reached, sim._prepared)
    assert reached > 50
    quiet, _ = pair(Sine(3.0, 5.0))
    quiet.step()
    assert quiet._prepared == FORESIGHT - 1


def test_inputs_changed_in_between_are_taken_up_at_once() -> None:
    """Numbers, formulas, samples and functions in turn, in the middle of what was prepared."""
    stepped, run = pair(0.0)
    for k, (torque, force) in enumerate(zip([*ALL.values()], reversed([*ALL.values()]), strict=True)):
        for sim in (stepped, run):
            sim.set_input("drive.tau", torque)
            sim.set_input("clutch.f_normalized", force if k % 2 else 0.3)
        step_all(stepped, 5 + 3 * k)
        run.run((5 + 3 * k) * 1e-3)
        assert stepped.hash() == run.hash(), k


def test_a_state_set_by_hand_or_put_back_is_stepped_from_there() -> None:
    stepped, run = pair(FORMULAS["sine"])
    step_all(stepped, 100)
    run.run(0.1)
    kept = stepped.state.copy()
    for sim in (stepped, run):
        sim.state.u = [1.0, -2.0]
    step_all(stepped, 50)
    run.run(0.05)
    assert stepped.hash() == run.hash()
    stepped.restore(kept)
    run.restore(kept)
    step_all(stepped, 30)
    run.run(0.03)
    assert stepped.hash() == run.hash()
    # behind the end of what was prepared, and back to its beginning
    stepped.state.reset()
    run.state.reset()
    step_all(stepped, 30)
    run.run(0.03)
    assert stepped.hash() == run.hash()
    # a state of one's own in its place
    stepped.state = kept
    step_all(stepped, 30)
    run.restore(kept)
    assert stepped.state is kept and stepped.time == pytest.approx(0.13)
    with pytest.raises(ValueError, match="another model"):
        stepped.state = KernelState(run.state.model)


def test_stepping_and_runs_take_turns() -> None:
    mixed, run = pair(FORMULAS["computed"])
    for ticks in (3, 40, 100):
        step_all(mixed, ticks)
        mixed.run(0.01)
        run.run(ticks * 1e-3)
        run.run(0.01)
        assert mixed.hash() == run.hash()


def test_a_copy_goes_on_by_itself() -> None:
    first, _ = pair(FORMULAS["table with a jump"])
    step_all(first, 150)
    second = copy.deepcopy(first)
    step_all(first, 150)
    step_all(second, 150)
    assert first.hash() == second.hash()


@pytest.mark.parametrize("signal", [2.0, Sine(3.0, 5.0), lambda t: 3.0 * t])
def test_a_state_that_stops_being_finite_is_an_error_of_its_step(signal: SignalLike) -> None:
    sim, _ = pair(signal)
    step_all(sim, 20)
    sim.state.u = [float("nan"), 0.0]
    with pytest.raises(SimulationError, match="not finite after t = 0.02 s"):
        sim.step()
    sim.set_input("drive.tau", Sine(float("inf"), 5.0))
    with pytest.raises(SimulationError, match="input drive.tau is (inf|nan)"):
        sim.step()


def test_a_sine_of_the_users_own_is_asked() -> None:
    class Own(Sine):
        def sample(self, t: Array, side: int = 0) -> Array:
            return 2.0 * super().sample(t, side)

    stepped, run = pair(Own(1.0, 3.0))
    step_all(stepped, 60)
    run.run(0.06)
    assert stepped.hash() == run.hash()
    assert stepped._prepared == 0


def test_what_no_formula_can_be_is_refused() -> None:
    sim, _ = pair(1.0)
    levels = np.zeros(len(sim.model.input_names))
    for wrong in ([("sine", (1.0,))], [("add", ())], [("constant", (1.0,))] * 2, []):
        with pytest.raises(ValueError, match="input 0"):
            sim._follow({0: wrong}, levels, 0, 10, 0.0, 0.01)
    with pytest.raises(KeyError):
        sim._follow({0: [("cosine", (1.0,))]}, levels, 0, 10, 0.0, 0.01)
    with pytest.raises(ValueError, match="input 7"):
        sim._follow({7: [("constant", (1.0,))]}, levels, 0, 10, 0.0, 0.01)
    with pytest.raises(ValueError, match="levels"):
        sim._follow({}, levels[:1], 0, 10, 0.0, 0.01)
    with pytest.raises(ValueError, match="inputs"):
        sim._ahead(np.zeros((4, 2, len(levels))), 0)
    # more values than there is room for: it is sampled
    deep = [("constant", (1.0,))] * 40 + [("add", ())] * 39
    assert not sim._follow({0: deep}, levels, 0, 10, 0.0, 0.01)
    with pytest.raises(RuntimeError, match="without a state"):
        Stepper().step()
