"""Controllers beside a simulation: measured at the start of a period, commands held (or joined by lines) during it.

    run = run_controlled(sim, [
        Wired("driver", Driver2(), {"v_set": cycle, "v": "car.v"}, {"brake": "brake.f_normalized"}),
        Wired("engine", FuelFlowController(), {"accelerator": "driver.accelerator", ...}, {"demand": "engine.pedal"}),
    ], T=195.0, period=0.01)

Controllers are stepped in the order given; each sees the outputs of the simulation now and the commands the ones before
it have just given, like the tasks of one control unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.controls.base import Controller
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError, UnknownNameError, did_you_mean
from torqueloop.core.signals import Constant, Ramp, Signal
from torqueloop.core.simulate.means import IntervalMeans
from torqueloop.core.simulate.results import Result

if TYPE_CHECKING:
    from torqueloop.core.simulate.offline import Simulation
    from torqueloop.core.simulate.results import ModeChange

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Wired:
    """A controller and what its short names stand for."""

    name: str
    controller: Controller
    #: short name -> output of the model, "<name>.<command>" of a controller before this one, a signal, or a number
    reads: Mapping[str, str | Signal | float]
    #: command -> input of the model; commands that are not listed are seen by later controllers only
    writes: Mapping[str, str] = field(default_factory=dict)
    #: commands whose values are joined by straight lines (one period late) instead of held
    lines: frozenset[str] = frozenset()
    #: outputs that are read as their mean over the period that has passed (impulse/period), not as a sample at its end
    means: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ControlledRun:
    """Signals of the model at every tick, and the commands at the start of every period."""

    result: Result
    #: s
    time: Array
    #: "<name>.<command>" -> values
    commands: Mapping[str, Array]


def run_controlled(
    simulation: Simulation,
    controllers: Sequence[Wired],
    T: float,
    period: float,
    progress: Callable[[float], None] | None = None,
) -> ControlledRun:
    """Run for T seconds; the controllers are stepped every `period` (both whole numbers of ticks resp. periods)."""
    ticks, periods = round(period / simulation.h), round(T / period)
    if ticks < 1 or abs(ticks * simulation.h - period) > 1e-6 * simulation.h:
        raise RangeError("run_controlled: {key} = {value} is out of range", key="period", value=period,
                         allowed=f"a whole number of ticks of {simulation.h:g} s")  # fmt: skip
    if periods < 1 or abs(periods * period - T) > 1e-6 * period * periods:
        raise RangeError("run_controlled: {key} = {value} is out of range", key="T", value=T,
                         allowed=f"a whole number of periods of {period:g} s")  # fmt: skip
    bus = _Bus(simulation, controllers)
    values = [simulation.outputs()[None, :]]
    first, starts = simulation.time, np.empty(periods)
    log: dict[str, Array] = {name: np.empty(periods) for name in bus.names}
    modes: list[ModeChange] = []
    for k in range(periods):
        starts[k] = t = simulation.time
        for name, value in bus.step(t, values[-1][-1], period).items():
            log[name][k] = value
        part, changes = simulation.stretch(ticks, each=bus.each)
        values.append(part[1:])
        modes += changes
        if progress is not None and (k + 1) % 100 == 0:
            progress((k + 1) / periods)
    every = np.concatenate(values)
    simulation.warn_of_converters(every)
    time: Array = first + simulation.h * np.arange(len(every), dtype=np.float64)
    return ControlledRun(Result(simulation.model, time, every, modes, simulation.state.counters), starts, log)


class _Bus:
    """The wiring, resolved once."""

    def __init__(self, simulation: Simulation, controllers: Sequence[Wired]) -> None:
        self._simulation = simulation
        #: (wired, [(short, column | name of a command | signal)])
        self._plan: list[tuple[Wired, list[tuple[str, int | str | Signal]]]] = []
        self.names: list[str] = []
        self._last: dict[str, float] = {}
        self._means: IntervalMeans | None = None
        outputs = {name: k for k, name in enumerate(simulation.model.output_names)}
        for wired in controllers:
            self._check(wired)
            sources: list[tuple[str, int | str | Signal]] = []
            for short in wired.controller.reads:
                source = wired.reads[short]
                if isinstance(source, Signal):
                    sources.append((short, source))
                elif not isinstance(source, str):
                    sources.append((short, Constant(float(source))))
                elif source in self.names:
                    sources.append((short, source))
                elif source in outputs:
                    sources.append((short, outputs[source]))
                else:
                    raise UnknownNameError(f"{wired.name}: there is no output or command {source!r} for {short}",
                                           hint=did_you_mean(source, [*outputs, *self.names]))  # fmt: skip
                if short in wired.means and not isinstance(sources[-1][1], int):
                    raise UnknownNameError(f"{wired.name}: {short!r} reads no output of the model, so it has no mean")
            self._plan.append((wired, sources))
            self.names += [f"{wired.name}.{short}" for short in wired.controller.writes]
        #: outputs whose means are read
        self._mean_of: tuple[str, ...] = tuple(sorted({str(w.reads[n]) for w in controllers for n in w.means}))

    def _check(self, wired: Wired) -> None:
        reads, writes = wired.controller.reads, wired.controller.writes
        for given, known, what in ((wired.reads, reads, "reads"), (wired.writes, writes, "commands")):
            for short in given:
                if short not in known:
                    raise UnknownNameError(f"{wired.name} {what} no {short!r}", hint=did_you_mean(short, known))
        for short in reads:
            if short not in wired.reads:
                raise UnknownNameError(f"{wired.name}: nothing is wired to {short!r}")
        for short in wired.lines:
            if short not in wired.writes:
                raise UnknownNameError(f"{wired.name}: {short!r} is not wired to an input")
        for short in wired.means:
            if short not in wired.reads:
                raise UnknownNameError(f"{wired.name}: {short!r} of means is not read", hint=did_you_mean(short, reads))
        for target in wired.writes.values():
            self._simulation.model.input_index(target)

    @property
    def each(self) -> Callable[[], None] | None:
        """What is called after every tick; None: nothing needs it."""
        return None if self._means is None else self._means.tick

    def step(self, t: float, outputs: Array, period: float) -> dict[str, float]:
        """All controllers once; sets the inputs for the coming period."""
        commands: dict[str, float] = {}
        means = self._means_now()
        for wired, sources in self._plan:
            measured = {}
            for short, source in sources:
                if short in wired.means:
                    measured[short] = means[str(wired.reads[short])]
                elif isinstance(source, Signal):
                    measured[short] = source.value(t)
                else:
                    measured[short] = commands[source] if isinstance(source, str) else float(outputs[source])
            given = wired.controller.step(t, measured)
            for short in wired.controller.writes:
                commands[f"{wired.name}.{short}"] = given[short]
            for short, target in wired.writes.items():
                value, before = given[short], self._last.get(target, given[short])
                changed = target not in self._last or value != before
                if short in wired.lines and value != before:
                    line = Ramp(height=value - before, duration=period, offset=before, startTime=t)
                    self._simulation.set_input(target, line)
                elif changed or short in wired.lines:
                    self._simulation.set_input(target, value)
                self._last[target] = value
        return commands

    def _means_now(self) -> dict[str, float]:
        """Means over the period that has passed, at the start the values themselves; the next one begins."""
        if not self._mean_of:
            return {}
        if self._means is None:
            self._means = IntervalMeans(self._simulation, self._mean_of)
            self._means.begin()
        found = dict(zip(self._mean_of, self._means.means().tolist(), strict=True))
        self._means.begin()
        return found
