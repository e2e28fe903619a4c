"""The kernel, its inputs and the main trajectory of a reference case, with values at any time on the way.

The main trajectory is advanced at a fixed step, split only at the events of the input signals. Rows that lie between
two steps are evaluated on a copy of the state, advanced from the last step to the row's time: the main trajectory is
the same whatever rows are asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.core.reference import ImportedCase
from torqueloop.core.signals import Signal, as_signal

Array = NDArray[np.float64]
#: two instants closer than this are the same, s
SAME_TIME = 1e-9
#: most steps per call of the kernel: bounds the memory for inputs
BULK = 4096
#: whole steps whose inputs are sampled at once where the steps themselves are made one by one
SAMPLED = 512


class Trajectory:
    """A case on the kernel at one step size."""

    def __init__(self, imported: ImportedCase, h: float, order: str | int, kernel: str) -> None:
        from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

        compiled = compile_driveline(imported.driveline)
        arrays = compiled.arrays if str(order) == "auto" else replace(compiled.arrays, order=int(order))
        self.output_index: dict[str, int] = {name: k for k, name in enumerate(compiled.output_names)}
        self.model: KernelModel = KernelModel(arrays, h, kernel)
        self.state: KernelState = KernelState(self.model)
        #: state at the start of a step, and the copy advanced to a time inside it
        self.before: KernelState = KernelState(self.model)
        self.probe: KernelState = KernelState(self.model)
        self.order: int = arrays.order
        self.kernel: str = str(self.model.kernel_name)
        self.h = h
        self.t_start: float = imported.case.t_start
        #: events of all inputs, sorted
        self._events: list[float] = []
        #: inputs of whole steps from a first one on, sampled together
        self._block: tuple[int, Array] = (0, np.empty((0, 3, 0)))
        self.signals: list[Signal] = []
        for name in compiled.input_names:
            # an input that is the derivative of another one
            of, order = compiled.derived_inputs.get(name, (name, 0))
            given = imported.inputs.get(of, compiled.default_inputs.get(of))
            if given is None:
                raise TorqueloopError(f"input {of} of case {imported.case.name} is not connected")
            signal = as_signal(given)
            for _ in range(order):
                signal = signal.derivative()
            self.signals.append(signal)

    def counters(self) -> dict[str, int]:
        return {name: int(value) for name, value in dict(self.state.counters).items()}

    def cuts(self, step: int) -> list[float]:
        """Ends of a step and the events of all inputs inside it; an event on a grid point replaces that point."""
        ends = [self.t_start + k * self.h for k in (step, step + 1)]
        events = self._events_between(ends[0] - SAME_TIME, ends[1] + SAME_TIME)
        ends = [min([t for t in events if abs(t - end) <= SAME_TIME], default=end) for end in ends]
        cuts = [ends[0]]
        for t in events:
            if t - cuts[-1] > SAME_TIME and ends[1] - t > SAME_TIME:
                cuts.append(t)
        return [*cuts, ends[1]]

    def _events_between(self, t0: float, t1: float) -> list[float]:
        return self._events[bisect_right(self._events, t0) : bisect_left(self._events, t1)]

    def _find_events(self, until: float) -> None:
        """Events of all inputs up to a time."""
        self._events = sorted({t for s in self.signals for t in s.event_times(self.t_start - 1.0, until)})

    def step_inputs(self, step: int, cuts: Sequence[float]) -> Array:
        """Inputs of a whole step between its events; between grid points from a block that is sampled at once."""
        if (cuts[0], cuts[1]) != (self.t_start + step * self.h, self.t_start + (step + 1) * self.h):
            return self.inputs(cuts[0], cuts[1], True)
        first, block = self._block
        if not first <= step < first + len(block):
            first, block = self._block = step, self._samples(step, SAMPLED)
        return np.ascontiguousarray(block[step - first])

    def inputs(self, t0: float, t1: float, whole: bool) -> Array:
        """Inputs at 0, h/2, h after t0 on the branch valid between t0 and t1.

        A whole step takes the values at its start (from the right), middle and end (from the left); a part of a step
        continues the parabola through those of the part.
        """
        middle = 0.5 * (t0 + t1)
        values = np.array([
            [s.after(t0) for s in self.signals],
            [s.value(middle) for s in self.signals],
            [s.before(t1) for s in self.signals],
        ])  # fmt: skip
        if whole:
            return values
        x = np.array([0.0, 0.5, 1.0]) * self.h / (t1 - t0)
        weights = np.stack([(2.0 * x - 1.0) * (x - 1.0), 4.0 * x * (1.0 - x), x * (2.0 * x - 1.0)], axis=1)
        return np.ascontiguousarray(weights @ values)

    def values(self, times: Sequence[float]) -> Array:
        """Outputs at the given (sorted) times; advances the main trajectory as far as needed."""
        rows = np.empty((len(times), len(self.output_index)))
        done, step = 0, 0
        self._find_events(times[-1] + 2.0 * self.h)
        while done < len(times) and times[done] <= self.t_start + SAME_TIME:
            rows[done] = self.model.outputs(self.state)
            done += 1
        while done < len(times):
            step = self._walk(step, times[done])
            cuts = self.cuts(step)
            whole = len(cuts) == 2
            for t0, t1 in zip(cuts[:-1], cuts[1:], strict=True):
                in3 = self.step_inputs(step, cuts) if whole else self.inputs(t0, t1, False)
                self.before.restore(self.state)
                while done < len(times) and times[done] < t1 - SAME_TIME:
                    self.probe.restore(self.before)
                    self._advance(self.probe, in3, times[done] - t0)
                    rows[done] = self.model.outputs(self.probe)
                    done += 1
                # a whole step is exactly h, whatever the rounding of its ends
                self._advance(self.state, in3, self.h if whole else t1 - t0)
                while done < len(times) and times[done] <= t1 + SAME_TIME:
                    rows[done] = self.model.outputs(self.state)
                    done += 1
            step += 1
        return rows

    def _walk(self, step: int, until: float) -> int:
        """Whole steps that end before `until` and touch no event, in one call; the next step."""
        begin = self.t_start + step * self.h
        events = self._events_between(begin - SAME_TIME, until)
        last = math.floor((min([until, *events[:1]]) - SAME_TIME - self.t_start) / self.h)
        count = min(last - step, BULK)
        if count < 2:
            return step
        if self.model.run(self.state, self._samples(step, count), None) != count:
            raise TorqueloopError(f"the state is not finite any more after step {self.state.step_no}")
        return step + count

    def _samples(self, step: int, count: int) -> Array:
        """Inputs at start, middle and end of whole steps without events."""
        grid: Array = self.t_start + np.arange(step, step + count + 1, dtype=np.float64) * self.h
        middle: Array = 0.5 * (grid[:-1] + grid[1:])
        samples = np.empty((count, 3, len(self.signals)))
        for k, signal in enumerate(self.signals):
            for at, (t, side) in enumerate(((grid[:-1], +1), (middle, +1), (grid[1:], -1))):
                samples[:, at, k] = signal.sample(t, side)
        return samples

    def operations(self, until: float) -> list[tuple[Array, float]]:
        """All inputs of the main trajectory up to a time, sampled: (inputs, dt) per call of the kernel, to be timed.

        dt > 0: one part of a step; dt = 0: whole steps, inputs of shape (steps, 3, inputs).
        """
        self._find_events(until + 2.0 * self.h)
        calls: list[tuple[Array, float]] = []
        steps = math.ceil((until - self.t_start) / self.h - 1e-9)
        step = 0
        while step < steps:
            cuts = self.cuts(step)
            if len(cuts) == 2:
                # the ends of steps lie on events where these are within SAME_TIME of the grid
                whole: list[Array] = []
                while step < steps and len(whole) < BULK and len(cuts) == 2:
                    whole.append(self.step_inputs(step, cuts))
                    step += 1
                    cuts = self.cuts(step)
                calls.append((np.array(whole), 0.0))
                continue
            calls += [(self.inputs(a, b, False), b - a) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
            step += 1
        return calls

    def replay(self, calls: list[tuple[Array, float]]) -> Any:
        """Carry out the calls from the start; the state at the end."""
        from torqueloop.cython_kernels.kernel.kernel import KernelState

        state = KernelState(self.model)
        for inputs, dt in calls:
            if dt > 0.0:
                self.model.advance(state, inputs, dt)
            else:
                self.model.run(state, inputs, None)
        return state

    def _advance(self, state: Any, in3: Array, dt: float) -> None:
        if self.model.advance(state, in3, min(dt, self.h)) != 0:
            raise TorqueloopError(f"the state is not finite any more after step {state.step_no}")
