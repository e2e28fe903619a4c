"""The kernel's present instant in the terms of the dense reference."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from dense import Answer, Dense, Instant, Mode
from laws import Array, Loss
from neutral import Train

from torqueloop.core.simulate.offline import Simulation


@dataclass
class Seen:
    """What the kernel says about its present instant; w, phi, a of all shafts, the rest by friction element."""

    t: float
    w: Array
    phi: Array
    a: Array
    ways: list[int]
    tau: Array


class Pair:
    """A train in torqueloop and as dense equations."""

    def __init__(
        self, train: Train, h: float, order: int | str = "auto", shuffle: int | None = None, n: int = 1
    ) -> None:
        self.train = train
        self.sim = Simulation(train.driveline(order, shuffle), h=h, substeps=n, kernel="generic")
        for name, signal in train.inputs().items():
            self.sim.set_input(name, signal)
        self.dense = Dense(train)
        names = self.sim.model.friction_names
        assert sorted(names) == sorted(self.dense.names)
        self._place = [names.index(name) for name in self.dense.names]
        self._columns = {
            short: [self.sim.model.output_index(f"s{k}.{short}") for k in range(len(train.J))]
            for short in ("w", "phi", "a")
        }  # fmt: skip

    def seen(self) -> Seen:
        """After at least one step."""
        out = self.sim.outputs()
        state = self.sim.state
        return Seen(
            self.sim.time,
            *(out[self._columns[short]] for short in ("w", "phi", "a")),
            [int(state.modes[k]) for k in self._place],
            np.array([state.tau[k] for k in self._place]),
        )

    def instant(self, seen: Seen) -> Instant:
        """The instant at the kernel's own speeds and angles; what the kernel holds at rest counts as resting."""
        slip = self.dense.B @ seen.w
        return self.dense.instant(seen.t, seen.w, seen.phi, [abs(s) <= 1e-9 for s in slip])

    def answer_of(self, seen: Seen, now: Instant) -> Answer:
        """Accelerations that follow from the modes the kernel has chosen, with the branches of losses that fit best."""
        found: Answer | None = None
        fewest = 1_000_000
        losses = [i for i, law in enumerate(self.dense.laws) if isinstance(law, Loss)]
        for branches in itertools.product((0, 1), repeat=len(losses)):
            chosen = dict(zip(losses, branches, strict=True))
            modes = [Mode(way, chosen.get(i, 0) if way in (-1, 1) else 0) for i, way in enumerate(seen.ways)]
            answer = self.dense.solve(now, modes)
            wrong = len(self.dense.faults(now, answer)) if losses else 0
            if found is None or wrong < fewest:
                found, fewest = answer, wrong
        assert found is not None
        return found


def split_is_open(pair: Pair, seen: Seen, answer: Answer) -> bool:
    """More elements hold a slip at rest than it takes, or one at its limit is held at rest by others: it then carries
    up to its static limit, which is a little more than it has sliding, and the others carry the rest."""
    slip, rate = pair.dense.B @ seen.w, pair.dense.B @ answer.a
    at_limit = [
        way in (-1, 1) and abs(s) <= 1e-9 and abs(r) <= 1e-9 * (1.0 + largest(answer.a))
        for way, s, r in zip(seen.ways, slip, rate, strict=True)
    ]
    return pair.dense.redundant(answer.modes) or any(at_limit)


def largest(*arrays: Array) -> float:
    """Largest absolute value."""
    return max((float(np.abs(x).max(initial=0.0)) for x in arrays), default=0.0)
