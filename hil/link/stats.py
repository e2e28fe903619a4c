"""Statistics of the link between rig and vehicle model: stamps, ages, coupling residual."""

from __future__ import annotations

import math

from torqueloop.cython_kernels.link.coupling import CouplingSums
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.results.links import Age, Coupling


class StampChecker:
    """Checks the step numbers of arriving messages: each is new, a duplicate, late (out of order) or follows a gap.

    `expected_stride` is the distance of consecutive stamps when nothing is lost; None: any increase is fine (no gaps
    counted).
    """

    def __init__(self, expected_stride: int | None = 1) -> None:
        self.stride = expected_stride
        self.newest: int | None = None
        #: largest step ahead that is believed; None: any
        self.jump_max: int | None = None
        self.accepted: int = 0
        self.duplicate: int = 0
        self.out_of_order: int = 0
        self.gap: int = 0
        self.lost: int = 0

    def forget(self) -> None:
        """The sender is a new one, or began anew: any number is the first one again."""
        self.newest = None

    def believed(self, step: int) -> bool:
        """False for a number so far ahead that it would lock out all that follow; from the first one on, which counts
        from 0."""
        return self.jump_max is None or step - (self.newest or 0) <= self.jump_max

    def check(self, step: int) -> bool:
        """True if the message is newer than all before and may be used."""
        if self.newest is not None:
            if step == self.newest:
                self.duplicate += 1
                return False
            if step < self.newest:
                self.out_of_order += 1
                return False
            if self.stride is not None and step - self.newest > self.stride:
                self.gap += 1
                self.lost += (step - self.newest) // self.stride - 1
        self.newest = step
        self.accepted += 1
        return True

    def counters(self) -> dict[str, int]:
        """Counts for the report."""
        return {
            "accepted": self.accepted,
            "duplicate": self.duplicate,
            "out_of_order": self.out_of_order,
            "gap": self.gap,
            "lost": self.lost,
        }


class CouplingResidual(CouplingSums):
    """The difference between the rig's car and the vehicle model's car (cython_kernels/link/coupling.pyx says how it is
    summed), also where an answer comes later than the next question."""

    def __init__(self, history: int = 1024) -> None:
        self._history = history
        self._sent: dict[int, tuple[float, float]] = {}

    def sent(self, message: StepMessage) -> None:
        """Remember the rig's own speed and impulse at this stamp."""
        self._sent[message.step] = (message.speed, message.I_wheel)
        while len(self._sent) > self._history:
            del self._sent[next(iter(self._sent))]

    def received(self, message: StateMessage) -> float | None:
        """Compare the vehicle's speed with the rig's at the echoed stamp; None if that stamp is unknown."""
        found = self._sent.get(message.step)
        if found is None:
            return None
        speed, impulse = found
        return self.add(message.step, speed, impulse, message.speed)

    def report(self) -> Coupling:
        """Numbers for the report."""
        rms_mps = math.sqrt(self.sum_sq / self.count) if self.count else 0.0
        return Coupling(self.count, self.max_mps, self.max_step, rms_mps, self.energy_J, self.turned_over_J)


class AgeStatistics:
    """Histogram of ages in bins that grow by 2^(1/4) from 1 us; quantiles are upper bin edges."""

    _BINS = 120

    def __init__(self) -> None:
        self._counts = [0] * self._BINS
        self.count: int = 0
        self.max_s: float = 0.0

    def add(self, age_s: float) -> None:
        us = max(age_s, 0.0) * 1e6
        index = 0
        edge = 1.0
        while us > edge and index < self._BINS - 1:
            edge *= 2**0.25
            index += 1
        self._counts[index] += 1
        self.count += 1
        self.max_s = max(self.max_s, age_s)

    def quantile_ms(self, q: float) -> float:
        wanted, seen = q * self.count, 0
        for index, n in enumerate(self._counts):
            seen += n
            if seen >= wanted and seen:
                return min(1e-3 * 2 ** (index / 4), 1e3 * self.max_s)
        return 0.0

    def report(self) -> Age:
        """Numbers for the report."""
        return Age(self.count, self.quantile_ms(0.5), self.quantile_ms(0.99), 1e3 * self.max_s)
