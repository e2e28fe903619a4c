"""Runs of one simulation that differ in their inputs: what they have in common is simulated once.

A study of a shift at 18 s drives to it in each of its runs. Here the second run leaves its state every EVERY ticks, and
each later one begins at the last of them before its inputs differ from those of the second; it has the bits of a run
from the start (rt_tests/unit/test_branches.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.signals import Signal, equal_until
from torqueloop.core.simulate.offline import Array, Simulation
from torqueloop.core.simulate.results import ModeChange, Result, Start

#: ticks from one kept state to the next
EVERY = 256


@dataclass
class _Trunk:
    """What later runs begin with."""

    signals: tuple[Signal, ...]
    begin: Start
    values: Array
    modes: list[ModeChange]
    #: every EVERY ticks, the first at 0: the state and the number of mode changes until then
    kept: list[tuple[bytes, int]]
    #: the values of the latest run, which are those of the trunk up to and with row `same`
    latest: Array
    same: int


class Branches:
    """Runs of a simulation from its present state on."""

    def __init__(self, simulation: Simulation) -> None:
        #: the simulation; its state is that of the end of the latest run
        self.simulation = simulation
        self._start = simulation.state.copy()
        self._runs = 0
        self._trunk: _Trunk | None = None

    def restart(self) -> None:
        """Go back to the state of the beginning."""
        self.simulation.restore(self._start)

    def forget(self) -> None:
        """Give back the memory of the common part; the next runs begin at the start."""
        self._runs, self._trunk = 0, None

    def run(self, duration: float, inputs: Mapping[str, Signal]) -> Result:
        """As `Simulation.run` from the beginning. The values of the result are overwritten by the next run."""
        simulation = self.simulation
        self._runs += 1
        if self._runs == 1:
            # one run alone needs no memory for others
            self.restart()
            return simulation.run(duration, inputs)
        ticks = simulation.ticks(duration)
        for name, signal in inputs.items():
            simulation.set_input(name, signal)
        trunk = self._trunk
        if trunk is None or len(trunk.values) != ticks + 1:
            return self._grow(ticks)
        place, state, changes = self._branch(trunk, ticks)
        if not place:
            # the inputs differ from the beginning on
            self.restart()
            return simulation.run(duration)
        if place > trunk.same:
            trunk.latest[trunk.same + 1 : place + 1] = trunk.values[trunk.same + 1 : place + 1]
        trunk.same = place
        simulation.state.from_bytes(state)
        modes = trunk.modes[:changes] + simulation.advance(trunk.latest[place + 1 :])
        return simulation.result(trunk.begin, trunk.latest, modes, reported=place)

    def _grow(self, ticks: int) -> Result:
        """A run from the start, which later ones branch from."""
        simulation = self.simulation
        self.restart()
        begin = simulation.begin()
        values = np.zeros((ticks + 1, len(simulation.model.output_names)))
        simulation.prepare()
        values[0] = simulation.outputs()
        modes = simulation.advance(values[:0])
        kept = []
        for tick in range(0, ticks, EVERY):
            kept.append((simulation.state.to_bytes(), len(modes)))
            modes += simulation.advance(values[tick + 1 : tick + 1 + EVERY])
        self._trunk = _Trunk(simulation.signals, begin, values, modes, kept, values.copy(), ticks)
        return simulation.result(begin, values, modes)

    def _branch(self, trunk: _Trunk, ticks: int) -> tuple[int, bytes, int]:
        """The last tick of the trunk with a kept state whose steps see the inputs that there are now, that state, and
        the mode changes before it."""
        h, end = self.simulation.h, ticks * self.simulation.h
        pairs = zip(trunk.signals, self.simulation.signals, strict=True)
        until = min((equal_until(a, b, end) for a, b in pairs), default=end)
        # an event near the end of a step moves its end: half a step is left between
        number = max(0, int(until / h - 0.5)) // EVERY
        return number * EVERY, *trunk.kept[number]
