"""Simulation without a rig: the same kernel and the same step, inputs as signals, as fast as the processor.

    sim = Simulation(driveline, h=1e-3)
    result = sim.run(1.5, inputs={"torque.tau": Sine(amplitude=10.0, f=5.0), "clutch.f_normalized": 1.0})

Each tick is `substeps` steps of h/substeps. A step in which an input jumps or has a kink is split there, so that the
kernel only ever sees smooth inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, RangeError, SimulationError
from torqueloop.core.describe.kernel_numbers import OUT_CONTACT_LOSS, OUT_DISSIPATION, OUT_FRICTION_HEAT, RATIO_INPUT
from torqueloop.core.signals import Constant, Formula, Signal, SignalLike, as_signal, foreseeable
from torqueloop.core.signals.pieces import parabola
from torqueloop.core.simulate import remarks as checks
from torqueloop.core.simulate.joint_steps import check_joint_steps
from torqueloop.core.simulate.progress import reporter
from torqueloop.core.simulate.remarks import Remark
from torqueloop.core.simulate.results import ModeChange, Result, Start
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.kernel.stepper import Stepper

Array = NDArray[np.float64]
#: ticks per call of the kernel: bounds the memory for inputs and the mode log (which is read after each call)
CHUNK = 512
#: ticks for which step() looks for events of signals that are formulas; steps up to the first that make it worth while
FORESIGHT, ENOUGH = 2048, 64
#: how many times more ticks the next sampling of step() reaches, as long as no input is changed
FASTER = 8
#: events nearer to the end of a step than this part of it count as on it (1e-9 s at 1 ms, far below any time given)
SNAP = 1e-6


def make_kernel(model: CompiledModel, h: float, kernel: str) -> KernelModel:
    """The kernel of a model for steps of h; ConfigError for a precompiled one that does not exist or does not fit,
    RangeError for a step that does not carry the joints of its shafts."""
    check_joint_steps(model, h)
    try:
        return KernelModel(model.arrays, h, kernel)
    except ValueError as error:
        if kernel in ("auto", "generic"):
            raise
        raise ConfigError(str(error), key="kernel", value=kernel, allowed="auto, generic, or one that fits") from None


class Simulation(Stepper):
    """A model, its state, and its input signals. `step()` makes one tick, `run()` many with all their outputs."""

    def __init__(
        self,
        driveline: Driveline | CompiledModel | str | Path,
        h: float = 1e-3,
        kernel: str = "auto",
        substeps: int = 1,
    ) -> None:
        if not h > 0.0:
            raise RangeError("Simulation: {key} = {value} is out of range", key="h", value=h, allowed="> 0 s")
        if substeps < 1 or int(substeps) != substeps:
            raise RangeError("Simulation: {key} = {value} is out of range", key="substeps", value=substeps,
                             allowed="whole number >= 1")  # fmt: skip
        if isinstance(driveline, (str, Path)):
            driveline = load(driveline)
        #: the compiled model
        self.model: CompiledModel = compile_driveline(driveline) if isinstance(driveline, Driveline) else driveline
        #: tick, s
        self.h = h
        #: steps per tick
        self.substeps: int = int(substeps)
        self._h = h / self.substeps
        self._kernel = make_kernel(self.model, self._h, kernel)
        # the state of the kernel (u, z, modes, copy() ...) is `state` of the stepper
        self._begin(KernelState(self._kernel), self.substeps)
        self._start_over()
        #: component -> sign of its ratio, where an input gives it
        self._ratio_sign: dict[str, float] = {}
        #: converters that have been warned of
        self._warned: set[str] = set()
        self._signals: list[Signal] = []
        #: what the inputs that are numbers are; the numbers of those that are not; of these, those not known beforehand
        self._levels = np.zeros(len(self.model.input_names))
        self._moving: set[int] = set()
        self._unknown: set[int] = set()
        for k, name in enumerate(self.model.input_names):
            self._signals.append(Constant(0.0))
            self._put(k, as_signal(self.model.default_inputs.get(name, Constant(0.0))))
        for name in {source for source, _ in self.model.derived_inputs.values()}:
            self._derive(name)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the model, the signals and the values of the state. A signal made of a Python function goes along
        as far as pickle can take functions: those of a module, by name."""
        made = {k: v for k, v in self.__dict__.items() if k != "_kernel"}
        return {**made, "kernel": self.kernel_name, "values": self.state.to_bytes()}

    def __setstate__(self, made: dict[str, Any]) -> None:
        kernel, values = made.pop("kernel"), made.pop("values")
        self.__dict__.update(made)
        self._kernel = make_kernel(self.model, self._h, kernel)
        self._begin(KernelState(self._kernel), self.substeps)
        self.state.from_bytes(values)

    @property
    def kernel_name(self) -> str:
        """ "generic" or the name of the precompiled topology in use."""
        return str(self._kernel.kernel_name)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """What feeds the inputs, in the order of model.input_names."""
        return tuple(self._signals)

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return float(self.state.time)

    @property
    def _place(self) -> float:
        """The present instant in steps since 0: a whole number but after a part of a step (KernelModel.advance)."""
        return float(self.state.step_no + self.state.fraction)

    def set_input(self, name: str, value: SignalLike) -> None:
        """Give an input a number, a function of time or a Signal. Inputs that are derivatives of it (of the reference
        of a driven flange) follow; one that has no known derivative is an error unless they are given too, afterwards.
        """
        self._put(self.model.input_index(name), as_signal(value))
        self._derive(name)
        self._start_over()

    def _start_over(self) -> None:
        """Inputs have changed: nothing is prepared for step()."""
        self._forget()
        #: how many ticks the next sampling reaches; whether all signals may be formulas
        self._reach, self._all_formulas = 1, True

    def _put(self, k: int, signal: Signal) -> None:
        """Feed input number k. Most inputs are numbers most of the time, and those are not asked again every step."""
        self._signals[k] = signal
        (self._moving.discard if type(signal) is Constant else self._moving.add)(k)
        (self._unknown.discard if foreseeable(signal) else self._unknown.add)(k)
        if isinstance(signal, Constant):
            self._levels[k] = signal.k

    def _derive(self, name: str) -> None:
        """Signals of the inputs that are derivatives of input `name`."""
        for derived, (source, order) in self.model.derived_inputs.items():
            if source == name:
                signal = self._signals[self.model.input_index(name)]
                for _ in range(order):
                    signal = signal.derivative()
                self._put(self.model.input_index(derived), signal)

    def prepare(self) -> None:
        """Accelerations, modes and torques of the present instant, with the inputs as they are now (before the first
        step the outputs know only speeds and angles); start speeds that follow from the ratio of a variable gear."""
        model, now = self.model, self.time
        if self.state.step_no == 0 and model.ratio_inputs and np.array_equal(self.state.u, model.arrays.u0):
            at_start = {name: self._signals[model.input_index(name)].after(0.0) for name in model.ratio_inputs}
            self.state.u = model.start_speeds(at_start)
        part = self._sample(np.array([now, now + self._h]))[0]
        self._check(int(self._kernel.advance(self.state, part, 0.0) == 0), 1, part[None])

    def restore(self, state: KernelState) -> None:
        """Go back to a state that was copied from `state` before; the input signals stay as they are."""
        self.state.restore(state)

    def hash(self) -> int:
        """64-bit hash of the state: equal runs have equal hashes."""
        return int(self.state.hash())

    def outputs(self) -> Array:
        """All outputs now, in the order of model.output_names."""
        return np.asarray(self._kernel.outputs(self.state), dtype=np.float64)

    def output(self, name: str) -> float:
        """One output now."""
        return float(self.outputs()[self.model.output_index(name)])

    def _further(self) -> None:
        """A tick of step() for which no inputs are prepared, and the inputs of the ticks to come."""
        if self.state.step_no == 0:
            self.prepare()
        first, now = self.state.step_no, self.time
        if not self._moving:
            self._hold(self._sample(np.array([now, now + self._h]))[0, 0].copy())
        else:
            self._look_ahead(first)
        if not self._tick():
            self._advance(1, np.zeros((1, len(self.model.output_names))))
        # a Python function may look at what the simulation has done until then; a ratio that would turn round is an
        # error of its own tick
        if self._unknown or (self._moving and self.model.parts.variable_gears):
            self._forget()

    def _look_ahead(self, first: int) -> None:
        """Inputs of the ticks to come: formulas up to the next event; where there are none, or events lie close to each
        other, samples up to the next event inside a step."""
        n, h = self.substeps, self._h
        self._forget()
        known = not self._unknown and not self.model.parts.variable_gears
        if known and self._all_formulas and self._follow_formulas(first):
            return
        grid = (first + np.arange((self._reach if known else 1) * n + 1, dtype=np.float64)) * h
        inside, ends = self._place_events(grid, first)
        steps = min([len(grid) - 1, *inside]) // n * n
        if steps > 0:
            self._ahead(self._sample(grid[: steps + 1], ends[: steps + 1]), first)
        self._reach = min(FASTER * self._reach, CHUNK)

    def _follow_formulas(self, first: int) -> bool:
        """Prepare formulas of all signals from step number first on up to their next event; False: it is near, or not
        all have one."""
        h, steps = self._h, FORESIGHT * self.substeps
        begins, ends = first * h, (first + steps) * h
        found: int | None = None
        for event, nearest, place in self._events(first, steps):
            if nearest == 0:
                begins = event
                continue
            if found is not None:
                if nearest == found:
                    # two events on one point: the step before it sees the first of them
                    steps, ends = steps - 1, (first + steps - 1) * h
                break
            steps, ends = (int(place), (first + int(place)) * h) if nearest is None else (nearest, event)
            found = steps
        if steps < ENOUGH:
            return False
        formulas: dict[int, Formula] = {}
        for k in self._moving:
            formula = self._signals[k].formula(begins)
            if formula is None:
                self._all_formulas = False
                return False
            formulas[k] = formula
        return self._follow(formulas, self._levels, first, first + steps, begins, ends)

    def run(
        self,
        duration: float,
        inputs: Mapping[str, SignalLike] | None = None,
        progress: bool | Callable[[float], None] = False,
        each: Callable[[], bool | None] | None = None,
    ) -> Result:
        """Simulate for `duration` seconds (a whole number of ticks) and return all outputs at every tick. `each` is
        called after every tick and may change inputs; the simulation ends when it returns True."""
        ticks = self.ticks(duration)
        for name, value in (inputs or {}).items():
            self.set_input(name, value)
        start = self.begin()
        values, modes = self.stretch(ticks, reporter(progress), each)
        return self.result(start, values, modes)

    def ticks(self, duration: float) -> int:
        """Number of ticks in a duration [s]. RangeError unless it is a whole number."""
        ticks = round(duration / self.h)
        if ticks < 1 or abs(ticks * self.h - duration) > 1e-6 * self.h * max(1, ticks):
            raise RangeError("Simulation.run: {key} = {value} is out of range", key="duration", value=duration,
                             allowed=f"a whole number (>= 1) of ticks of {self.h:g} s")  # fmt: skip
        return ticks

    def begin(self) -> Start:
        """The counts of the state at the present time; `result` subtracts them."""
        return Start(self._place, self.state.counters, self._heat())

    def result(self, start: Start, values: Array, modes: list[ModeChange], reported: int = 0) -> Result:
        """The result of the ticks since `start`; values: their outputs, the first row those of `start`; reported: ticks
        that an earlier result has reported what it did not resolve of."""
        self.warn_of_converters(values[reported:])
        time = (start.place + self.substeps * np.arange(len(values), dtype=np.float64)) * self._h
        dissipated = {kind: after - start.heat[kind] for kind, after in self._heat().items()}
        remarks = self._remarks(start.counters, modes, values[reported:], int(start.place) + reported * self.substeps)
        result = Result(self.model, time, values, modes, self.state.counters, dissipated, remarks)
        result.remarks += checks.of_energy(result.energy().relative_residual)
        for remark in result.remarks:
            warnings.warn(f"{self.model.name}: {remark}", RuntimeWarning, stacklevel=3)
        return result

    def _remarks(
        self, before: Mapping[str, int], modes: Sequence[ModeChange], values: Array, first: int
    ) -> list[Remark]:
        """What the steps since number `first` did not resolve."""
        model, steps = self.model, self.substeps * (len(values) - 1)
        known = [k for k in range(len(self._signals)) if k not in self._unknown]
        column = {name: k for k, name in enumerate(model.output_names)}
        elements = [n for n in (*model.compliance_names, *model.friction_names) if f"{n}.tau" in column]
        changes = ((change.step, change.element) for change in modes)
        names, signals = [model.input_names[k] for k in known], [self._signals[k] for k in known]
        return [
            *checks.of_counters(before, self.state.counters, changes, checks.sought(model)),
            *checks.ringing({n: values[:, column[f"{n}.tau"]] for n in dict.fromkeys(elements)}),
            *checks.reversals(names, signals, first, steps, self._h),
            *checks.oscillations(model, self._h, steps),
        ]

    def _heat(self) -> dict[int, Array]:
        """Heat of all friction elements, dampers and contacts so far, J, whether an output shows it or not."""
        books = self.state.energies
        kinds = ((OUT_FRICTION_HEAT, "friction"), (OUT_DISSIPATION, "damper"), (OUT_CONTACT_LOSS, "contact"))
        return {kind: np.asarray(books[name]) for kind, name in kinds}

    def stretch(
        self,
        ticks: int,
        report: Callable[[float], None] | None = None,
        each: Callable[[], bool | None] | None = None,
    ) -> tuple[Array, list[ModeChange]]:
        """Some ticks with the inputs as they are: (outputs now and after each tick, mode changes). What `run` gives,
        without being made a Result: for controllers that change inputs every few ticks. `each` is called after every
        tick; the stretch ends when it returns True."""
        values = np.zeros((ticks + 1, len(self.model.output_names)))
        self.prepare()
        values[0] = self.outputs()
        modes = self._new_modes()
        most = CHUNK if each is None else 1
        for start in range(0, ticks, most):
            count = min(most, ticks - start)
            modes += self.advance(values[start + 1 : start + 1 + count])
            if each is not None and each():
                return values[: start + count + 1], modes
            if report is not None:
                report((start + count) / ticks)
        return values, modes

    def advance(self, out: Array) -> list[ModeChange]:
        """Make one tick for each row of `out` and write its outputs there. Returns the mode changes."""
        modes: list[ModeChange] = []
        for first in range(0, len(out), CHUNK):
            part = out[first : first + CHUNK]
            self._advance(len(part), part)
            modes += self._new_modes()
        return modes

    # --- inside ---------------------------------------------------------------------------------------------------
    def _new_modes(self) -> list[ModeChange]:
        names = self.model.friction_names
        return [
            ModeChange(int(row["step_no"]), float(row["time_s"]), names[int(row["element"])], int(row["mode"]))
            for row in self._kernel.mode_log(self.state)
        ]

    def _advance(self, ticks: int, out: Array) -> None:
        """Some ticks; out: their outputs, one row per tick."""
        done = 0
        while done < ticks:
            made = self._follow_ticks(out[done:ticks])
            if not made:
                made = min(ENOUGH, ticks - done) if self._all_formulas and not self._unknown else ticks - done
                self._sampled_ticks(made, out[done : done + made])
            done += made

    def _follow_ticks(self, out: Array) -> int:
        """Ticks up to the next event of the inputs where all of these are formulas; how many."""
        if self._unknown or not self._all_formulas or self.model.parts.variable_gears or len(out) < ENOUGH:
            return 0
        if self._prepared < self.substeps and not self._follow_formulas(self.state.step_no):
            return 0
        return self._ticks(out)

    def _sampled_ticks(self, ticks: int, out: Array) -> None:
        """Ticks with all inputs sampled, in parts between events inside steps."""
        n, first = self.substeps, self._place
        grid = (first + np.arange(ticks * n + 1, dtype=np.float64)) * self._h
        inside, ends = self._place_events(grid, first)
        samples = self._sample(grid, ends)
        # runs of ticks without an event inside a step go to the kernel in one call
        done = 0
        for tick in sorted({step // n for step in inside}):
            self._plain(samples[done * n : tick * n], out[done:tick])
            for step in range(tick * n, tick * n + n):
                if step in inside:
                    self._split(float(grid[step]), [*inside[step], (float(ends[step + 1]), 1.0)])
                else:
                    part = samples[step : step + 1]
                    self._check(self._kernel.run(self.state, part, None), 1, part)
            out[tick] = self.outputs()
            done = tick + 1
        self._plain(samples[done * n :], out[done:])

    def warn_of_converters(self, values: Array) -> None:
        """A converter outside of its curves is simulated as a fluid coupling: say so once a simulation."""
        for name, text in checks.backward(self.model, values):
            if name not in self._warned:
                self._warned.add(name)
                warnings.warn(f"{self.model.name}: {text}", RuntimeWarning, stacklevel=3)

    def _plain(self, samples: Array, out: Array) -> None:
        if len(samples):
            self._check(self._kernel.run(self.state, samples, out, self.substeps), len(samples), samples)

    def _check(self, done: int, wanted: int, samples: Array | None = None) -> None:
        if done == wanted:
            return
        if samples is not None and not np.isfinite(samples[done]).all():
            row = samples[done]
            k = int(np.flatnonzero(~np.isfinite(row).all(axis=0))[0])
            value = row[:, k][~np.isfinite(row[:, k])][0]
            raise SimulationError(
                f"{self.model.name}: input {self.model.input_names[k]} is {value} at t = {self.time:g} s "
                f"(step {self.state.step_no})", self.time, self.state.step_no,
            )  # fmt: skip
        raise SimulationError(
            f"{self.model.name}: the state is not finite after t = {self.time:g} s (step {self.state.step_no})",
                self.time, self.state.step_no,
            )  # fmt: skip

    def _events(self, first: float, steps: int) -> Iterator[tuple[float, int | None, float]]:
        """Events of the inputs within some steps from a step on: (time, grid point or None, place in steps)."""
        h = self._h
        moving = [self._signals[k] for k in self._moving]
        for event in sorted({e for s in moving for e in s.event_times((first - 0.5) * h, (first + steps + 0.5) * h)}):
            # the difference is exact: the place of an event within its step is the same wherever a run begins
            place = event / h - first
            nearest = round(place)
            if abs(place - nearest) > SNAP:
                if 0.0 < place < steps:
                    yield event, None, place
            elif 0 <= nearest <= steps:
                yield event, nearest, place

    def _place_events(self, grid: Array, first: float) -> tuple[dict[int, list[tuple[float, float]]], Array]:
        """Events on the grid move the grid point onto them; the others by step: (time, its fraction). And the grid
        points as ends of steps: of several events on one point, which rounding has left apart, a step ends at the first
        and the next one begins at the last."""
        inside: dict[int, list[tuple[float, float]]] = {}
        ends, met = grid.copy(), -1
        for event, nearest, place in self._events(first, len(grid) - 1):
            if nearest is None:
                inside.setdefault(int(place), []).append((event, place - int(place)))
            else:
                grid[nearest] = event
                if nearest != met:
                    ends[nearest], met = event, nearest
        return inside, ends

    def _sample(self, grid: Array, ends: Array | None = None) -> Array:
        """Inputs at start (limit from the right), middle and end (limit from the left) of every step; ends: the grid as
        ends of steps."""
        samples = np.empty((len(grid) - 1, 3, len(self._signals)))
        middle = 0.5 * (grid[:-1] + grid[1:])
        samples[:] = self._levels
        for k in self._moving:
            signal = self._signals[k]
            samples[:, 0, k] = signal.sample(grid[:-1], +1)
            samples[:, 1, k] = signal.sample(middle, 0)
            samples[:, 2, k] = signal.sample((grid if ends is None else ends)[1:], -1)
        if self.model.parts.variable_gears:
            self._check_ratios(grid, samples)
        return samples

    def _check_ratios(self, grid: Array, samples: Array) -> None:
        """A ratio given by an input must keep its sign: at 0 it would block one side of its gear."""
        if self.state.step_no == 0:
            self._ratio_sign.clear()
        for gear in self.model.parts.variable_gears:
            if gear.kind != RATIO_INPUT:
                continue
            values = samples[:, :, gear.input]
            sign = self._ratio_sign.setdefault(gear.owner, float(np.sign(values[0, 0])))
            wrong = np.argwhere(values * sign <= 0.0)  # a value that is no number is reported by the step
            if len(wrong):
                step, part = wrong[0]
                time = grid[step] + 0.5 * part * (grid[step + 1] - grid[step])
                raise RangeError(
                    f"the ratio of {gear.owner!r} must not be 0 or change its sign: input {{key}} = {{value}} at t = "
                    f"{time:g} s", key=self.model.input_names[gear.input], value=round(float(values[step, part]), 12),
                    allowed="> 0" if sign > 0.0 else "< 0" if sign < 0.0 else "not 0",
                )  # fmt: skip

    def _split(self, begin: float, ends: list[tuple[float, float]]) -> None:
        """One step in parts between events: (time, fraction of the step) at which each part ends.

        The kernel wants the inputs at 0, h/2 and h of the branch valid now, even for a part of a step: the parabola
        through start, middle and end of the part is continued.
        """
        done = 0.0
        for end, fraction in ends:
            part = self._sample(np.array([begin, end]))[0]
            reach = 1.0 / (fraction - done)
            wanted = [parabola(part, x * reach) if reach > 1.0 else part[k] for k, x in enumerate((0.0, 0.5, 1.0))]
            status = self._kernel.advance(self.state, np.array(wanted), (fraction - done) * self._h)
            self._check(int(status == 0), 1, np.array([wanted]))
            begin, done = end, fraction
