"""The steps of a scenario in the tick against a model of their page (docstring of scenario.pyx) in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.cython_kernels.tick.scenario import RAMP_SIGNALS, SIGNALS, STATES, Scenario

#: slots 2, 3: read by conditions; 4, 5: moved
READ, MOVED, FIRST = [2, 3], [4, 5], 6
N_SIG = FIRST + len(SIGNALS) + len(MOVED) * len(RAMP_SIGNALS)
TICKS = 60


@dataclass
class Model:
    """What the page says, written down anew."""

    steps: list
    step: int = 0
    state: str = "running"
    begun: int = 0
    held: int | None = None
    repeats: int = 0
    value: dict = field(default_factory=lambda: dict.fromkeys(MOVED, 0.0))
    ramps: dict = field(default_factory=dict)

    def tick(self, k: int, read: list[float]) -> None:
        if self.state == "running":
            self.advance(k, read)
        for slot, (start, to, begun, ticks) in self.ramps.items():
            done = k - begun
            self.value[slot] = to if done >= ticks else start + (to - start) * (done / ticks)

    def advance(self, k: int, read: list[float]) -> None:
        hold = self.steps[self.step - 1][7] if self.step else 0
        waited = k - self.begun - hold
        if self.step == len(self.steps):
            if waited >= 0:
                self.state = "done"
            return
        code, _, _, _, for_ticks, at, within, _ = self.steps[self.step]
        truth = [eval(f"x {op} v", {}, {"x": read[slot - 2], "v": v}) for slot, op, v in compared(code)]
        met = (any(truth) if code[-1][0] == "or" else all(truth)) if truth else True
        self.held = (k if self.held is None else self.held) if met else None
        if waited >= 0 and k >= at and self.held is not None and k - self.held >= for_ticks:
            self.begin(self.step, k)
        elif waited >= within:
            self.state = "timed out"

    def begin(self, n: int, k: int) -> None:
        if self.steps[n][2] >= 0:
            if self.repeats < self.steps[n][3]:
                self.repeats += 1
                n = self.steps[n][2]
            else:
                self.repeats = 0
        self.step, self.begun, self.held = n + 1, k, None
        for signal, target, ticks in self.steps[n][1]:
            self.ramps[MOVED[signal]] = (self.value[MOVED[signal]], target, k, ticks)


VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0])
TERMS = st.tuples(st.sampled_from(READ), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), VALUES)
MOVES = st.lists(st.tuples(st.integers(0, 1), VALUES, st.integers(0, 6)), max_size=2, unique_by=lambda m: m[0])


def coded(terms: list, joint: str) -> tuple:
    """Comparisons of a signal with a number, joined by `and` or by `or`."""
    code = []
    for k, (slot, operator, value) in enumerate(terms):
        code += [("signal", slot, 0.0), ("number", 0, value), (operator, 0, 0.0), *([(joint, 0, 0.0)] if k else [])]
    return tuple(code)


def compared(code: tuple) -> list:
    """The comparisons of such code."""
    at = [k for k, (operation, *_) in enumerate(code) if operation == "signal"]
    return [(code[k][1], code[k + 2][0], code[k + 1][2]) for k in at]


@st.composite
def all_steps(draw: st.DrawFn) -> list:
    steps = []
    for k in range(draw(st.integers(1, 5))):
        back = draw(st.integers(-1, k - 1)) if k and draw(st.booleans()) else -1
        steps.append((
            coded(draw(st.lists(TERMS, max_size=3)), draw(st.sampled_from(["and", "or"]))), draw(MOVES), back,
            draw(st.integers(1, 3)), draw(st.integers(0, 3)),
            draw(st.integers(0, 8)), draw(st.integers(1, 25)), draw(st.integers(0, 4)),
        ))  # fmt: skip
    return steps


@settings(max_examples=300, deadline=None)
@given(steps=all_steps(), read=st.lists(st.tuples(VALUES, VALUES), min_size=TICKS, max_size=TICKS))
def test_steps_as_the_page_says(steps: list, read: list[tuple[float, float]]) -> None:
    rig = Rig(N_SIG, 1e-3)
    scenario = Scenario(N_SIG, FIRST, MOVED)
    scenario.set_steps(steps)
    times = [k * 1e-3 for k in range(TICKS)]
    drivers = []
    for slot in READ:
        # a step at each tick: two points at one time
        at = [t for time in times for t in (time, time)][1:]
        values = [v for k in range(TICKS) for v in (read[max(k - 1, 0)][slot - 2], read[k][slot - 2])][1:]
        drivers.append((slot, at, values))
    rig.set_wiring([], [], drivers)
    rig.set_scenario(scenario)
    rig.set_clock(n_ticks=TICKS)
    rig.begin(0)
    model = Model(steps)
    for k in range(TICKS):
        model.tick(k, list(read[k]))
        assert rig.ticks(1, k * 1_000_000) == 1
        step, state, begun, held, repeats = rig.values(list(range(FIRST, FIRST + len(SIGNALS))))
        assert (int(step), STATES[int(state)], int(begun), int(repeats)) == (
            model.step, model.state, model.begun, model.repeats), f"tick {k}"  # fmt: skip
        assert (None if held < 0 else int(held)) == model.held
        assert rig.values(MOVED) == [model.value[slot] for slot in MOVED]
        if model.state != "running":
            assert rig.finished and rig.ticks(1, 0) == 0, "the run is over with its scenario"
            break
