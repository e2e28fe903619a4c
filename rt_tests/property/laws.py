"""What acts, in numbers: inputs over time, curves, rows over shafts, and the laws of friction and of losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.tables import Table1D
from torqueloop.core.signals import Constant, Signal, Sine, Step

Array = NDArray[np.float64]
GROUND = -1
#: what friction does in one sense of slip
NOTHING, CAPPED, BLOCKED = "nothing", "capped", "blocked"


@dataclass(frozen=True)
class Wave:
    """offset + amplitude*sin(2 pi f t + phase) + height of every step (time, height) that has passed."""

    offset: float = 0.0
    amplitude: float = 0.0
    f: float = 1.0
    phase: float = 0.0
    steps: tuple[tuple[float, float], ...] = ()

    def __call__(self, t: float, after: bool = True) -> float:
        """Value at t; at a step itself the value after it (or before it)."""
        y = self.offset
        if self.amplitude:
            y += self.amplitude * math.sin(2.0 * math.pi * self.f * t + self.phase)
        for time, height in self.steps:
            if t > time or (after and t == time):
                y += height
        return y

    def signal(self) -> Signal:
        """The same for torqueloop."""
        signal: Signal = Constant(self.offset)
        if self.amplitude:
            signal = Sine(amplitude=self.amplitude, f=self.f, phase=self.phase, offset=self.offset)
        for time, height in self.steps:
            signal = signal - Step(height=-height, startTime=time)
        return signal


@dataclass(frozen=True)
class Curve:
    """y(x) by linear interpolation, the end values held outside."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, x: float) -> float:
        return float(np.interp(x, self.x, self.y))

    @property
    def constant(self) -> bool:
        return len(set(self.y)) == 1

    def table(self) -> Table1D:
        return Table1D(self.x, self.y)


def flat(value: float) -> Curve:
    """The same value everywhere."""
    return Curve((0.0,), (value,))


Row = Mapping[int, float]


def row(terms: Mapping[int, float | Fraction]) -> dict[int, float]:
    """A row over the shafts without the housing."""
    return {shaft: float(c) for shaft, c in terms.items() if shaft != GROUND and c != 0}


@dataclass(frozen=True)
class Friction:
    """Dry friction along a row: sliding capacity(t, |w|), breakaway limit(t), pressed while press(t) > 0."""

    row: Row
    press: Wave | None
    gain: float
    mu: Curve
    peak: float
    forward: str = CAPPED
    backward: str = CAPPED
    hold: float = 0.0

    def normal(self, t: float) -> float:
        """Normal force times geometry."""
        return self.gain if self.press is None else self.gain * max(0.0, self.press(t))

    def capacity(self, t: float, speed: float) -> float:
        return self.normal(t) * self.mu(abs(speed))

    def limit(self, t: float) -> float:
        normal = self.normal(t)
        return self.peak * normal * self.mu(0.0) if normal > 0.0 else self.hold

    @property
    def always(self) -> bool:
        """Can hold at any time, pressed or not (free wheels)."""
        return BLOCKED in (self.forward, self.backward)


@dataclass(frozen=True)
class Loss:
    """Loss that depends on a reaction: along `row` the torque is -loss, r = gain*multiplier + own*torque,

    w > 0: loss = max(kA r + cA, kB r + cB); w < 0: min(kA r - cA, kB r - cB); w = 0: anything between.
    `coefficients`: kA, kB, cA, cB at a speed, kA >= kB.
    """

    row: Row
    constraint: int
    gain: float
    own: float
    coefficients: Callable[[float], tuple[float, float, float, float]]

    def lines(self, speed: float, way: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """(k, c) of branch A and B for slip in the sense `way`: loss = k r + c."""
        kA, kB, cA, cB = self.coefficients(abs(speed))
        return (kA, way * cA), (kB, way * cB)


Law = Friction | Loss
