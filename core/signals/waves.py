"""Waves and exponentials that start at startTime, and functions of signals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.signals.base import Array, Formula, Product, Signal, inside, reached, refuse_jump


@dataclass(frozen=True)
class Sine(Signal):
    """y = offset + amplitude*sin(2*pi*f*(t - startTime) + phase) from startTime on, offset before."""

    amplitude: float = 1.0
    f: float = 1.0
    phase: float = 0.0
    offset: float = 0.0
    startTime: float = 0.0

    def sample(self, t: Array, side: int = 0) -> Array:
        wave = self.amplitude * np.sin(2.0 * math.pi * self.f * (t - self.startTime) + self.phase)
        return self.offset + np.where(reached(t, self.startTime, side), wave, 0.0)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside([self.startTime], t0, t1)

    def formula(self, t0: float) -> Formula | None:
        if t0 < self.startTime:
            return (("constant", (self.offset + 0.0,)),)
        return (("sine", (self.offset, self.amplitude, 2.0 * math.pi * self.f, self.startTime, self.phase)),)

    def derivative(self) -> Signal:
        """amplitude*2*pi*f*sin(... + pi/2)."""
        refuse_jump("Sine", self.startTime, 0.0, self.amplitude * math.sin(self.phase), abs(self.amplitude))
        return Sine(2.0 * math.pi * self.f * self.amplitude, self.f, self.phase + 0.5 * math.pi, 0.0, self.startTime)


def cosine(
    amplitude: float = 1.0, f: float = 1.0, phase: float = 0.0, offset: float = 0.0, startTime: float = 0.0
) -> Sine:
    """y = offset + amplitude*cos(2*pi*f*(t - startTime) + phase) from startTime on."""
    return Sine(amplitude, f, phase + 0.5 * math.pi, offset, startTime)


@dataclass(frozen=True)
class ExpSine(Signal):
    """y = offset + amplitude*exp(-damping*(t - startTime))*sin(2*pi*f*(t - startTime) + phase) from startTime on."""

    amplitude: float = 1.0
    f: float = 1.0
    phase: float = 0.0
    damping: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0

    def sample(self, t: Array, side: int = 0) -> Array:
        x = np.maximum(t - self.startTime, 0.0)
        wave = self.amplitude * np.exp(-self.damping * x) * np.sin(2.0 * math.pi * self.f * x + self.phase)
        return self.offset + np.where(reached(t, self.startTime, side), wave, 0.0)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside([self.startTime], t0, t1)

    def derivative(self) -> Signal:
        """With w = 2*pi*f: amplitude*|(w, damping)|*exp(...)*sin(... + atan2(w, -damping))."""
        refuse_jump("ExpSine", self.startTime, 0.0, self.amplitude * math.sin(self.phase), abs(self.amplitude))
        w = 2.0 * math.pi * self.f
        amplitude = self.amplitude * math.hypot(w, self.damping)
        return ExpSine(amplitude, self.f, self.phase + math.atan2(w, -self.damping), self.damping, 0.0, self.startTime)


@dataclass(frozen=True)
class Decays(Signal):
    """Exponentials between knots: y = c + a*exp(-(t - knot)/T) from each knot (its c, a, T) to the next."""

    knots: tuple[float, ...]
    initial: float
    terms: tuple[tuple[float, float, float], ...]

    def sample(self, t: Array, side: int = 0) -> Array:
        k = np.searchsorted(self.knots, t, side="left" if side < 0 else "right")
        y = np.full(t.shape, self.initial)
        for j, (c, a, T) in enumerate(self.terms):
            at = k == j + 1
            y[at] = c + a * np.exp(-(t[at] - self.knots[j]) / T)
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside(self.knots, t0, t1)

    def derivative(self) -> Signal:
        for knot in self.knots:
            refuse_jump("exponential", knot, self.before(knot), self.after(knot))
        return Decays(self.knots, 0.0, tuple((0.0, -a / T, T) for _, a, T in self.terms))


@dataclass(frozen=True)
class Exponentials(Signal):
    """y = offset + outMax*(1 - exp(-x/riseTimeConst)), x = t - startTime, during riseTime; then decays to offset."""

    outMax: float = 1.0
    riseTime: float = 0.5
    riseTimeConst: float = 0.1
    fallTimeConst: float | None = None
    offset: float = 0.0
    startTime: float = 0.0

    def __post_init__(self) -> None:
        if self.riseTime < 0.0 or not self.riseTimeConst > 0.0 or not self._fall > 0.0:
            raise RangeError("Exponentials: riseTime is negative or a time constant is not positive", allowed="> 0 s")

    @property
    def _fall(self) -> float:
        return self.riseTimeConst if self.fallTimeConst is None else self.fallTimeConst

    def _decays(self) -> Decays:
        top = self.outMax * (1.0 - math.exp(-self.riseTime / self.riseTimeConst))
        rise = (self.offset + self.outMax, -self.outMax, self.riseTimeConst)
        return Decays(
            (self.startTime, self.startTime + self.riseTime), self.offset, (rise, (self.offset, top, self._fall))
        )

    def sample(self, t: Array, side: int = 0) -> Array:
        return self._decays().sample(t, side)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return self._decays().event_times(t0, t1)

    def derivative(self) -> Signal:
        return self._decays().derivative()


@dataclass(frozen=True)
class Sinc(Signal):
    """y = offset + amplitude*sin(x)/x with x = 2*pi*f*(t - startTime), from startTime on (there amplitude)."""

    amplitude: float = 1.0
    f: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0

    def sample(self, t: Array, side: int = 0) -> Array:
        wave = self.amplitude * np.sinc(2.0 * self.f * (t - self.startTime))
        return self.offset + np.where(reached(t, self.startTime, side), wave, 0.0)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside([self.startTime], t0, t1)


def _one(x: Array) -> Array:
    return np.ones(x.shape)


#: function -> (itself, its derivative): the smooth functions of Modelica.Blocks.Math
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "Sin": (np.sin, np.cos),
    "Cos": (np.cos, lambda x: -np.sin(x)),
    "Tan": (np.tan, lambda x: 1.0 / np.cos(x) ** 2),
    "Asin": (np.arcsin, lambda x: 1.0 / np.sqrt(1.0 - x * x)),
    "Acos": (np.arccos, lambda x: -1.0 / np.sqrt(1.0 - x * x)),
    "Atan": (np.arctan, lambda x: 1.0 / (1.0 + x * x)),
    "Sinh": (np.sinh, np.cosh),
    "Cosh": (np.cosh, np.sinh),
    "Tanh": (np.tanh, lambda x: 1.0 - np.tanh(x) ** 2),
    "Exp": (np.exp, np.exp),
    "Log": (np.log, lambda x: 1.0 / x),
    "Log10": (np.log10, lambda x: 1.0 / (math.log(10.0) * x)),
    "Sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "PassThrough": (np.positive, _one),
}


@dataclass(frozen=True)
class Applied(Signal):
    """y = function(u), a name of FUNCTIONS; `slope`: its derivative instead."""

    function: str
    u: Signal
    slope: bool = False

    def sample(self, t: Array, side: int = 0) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            y = FUNCTIONS[self.function][self.slope](self.u.sample(t, side))
        if not np.all(np.isfinite(y)):
            raise RangeError(f"{self.function} of a signal that leaves the range of this function")
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        return self.u.event_times(t0, t1)

    def derivative(self) -> Signal:
        """Chain rule; once (a slope has no further derivative here)."""
        if self.slope:
            return super().derivative()
        return Product(Applied(self.function, self.u, slope=True), self.u.derivative())
