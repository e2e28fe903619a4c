"""Inputs over time, with one-sided limits at jumps and the times of all jumps and kinks.

`sample(t, side)`: side < 0 the limit from the left, > 0 from the right (0: as from the right). `event_times(t0, t1)`:
sorted instants with t0 < t < t1 at which the signal or its slope is discontinuous; a simulation splits its steps there.
Names and parameters are those of Modelica.Blocks.Sources. Signals carry SI values of the input they feed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.errors import RangeError, TableError

Array = NDArray[np.float64]
#: what `Simulation.run` accepts as an input
SignalLike = Union[int, float, Callable[[float], float], "Signal"]


class Signal:
    """Base of all signals."""

    def sample(self, t: Array, side: int = 0) -> Array:
        """Values at the times t."""
        raise NotImplementedError

    def event_times(self, t0: float, t1: float) -> list[float]:
        """Discontinuities strictly inside (t0, t1)."""
        return []

    def value(self, t: float) -> float:
        """Value at t (at a jump: after it)."""
        return float(self.sample(np.array([t]), +1)[0])

    def before(self, t: float) -> float:
        """Limit from the left."""
        return float(self.sample(np.array([t]), -1)[0])

    def after(self, t: float) -> float:
        """Limit from the right."""
        return float(self.sample(np.array([t]), +1)[0])

    def __mul__(self, other: SignalLike) -> Product:
        return Product(self, as_signal(other))

    __rmul__ = __mul__

    def __sub__(self, other: SignalLike) -> Difference:
        return Difference(self, as_signal(other))

    def __rsub__(self, other: SignalLike) -> Difference:
        return Difference(as_signal(other), self)


def _reached(t: Array, instant: float, side: int) -> NDArray[np.bool_]:
    """True where the instant has passed; at the instant itself: only seen from the right."""
    return t > instant if side < 0 else t >= instant


def _inside(times: Sequence[float], t0: float, t1: float) -> list[float]:
    return sorted({t for t in times if t0 < t < t1})


@dataclass(frozen=True)
class Constant(Signal):
    """y = k."""

    k: float

    def sample(self, t: Array, side: int = 0) -> Array:
        return np.full(t.shape, float(self.k))


@dataclass(frozen=True)
class Step(Signal):
    """y = offset, from startTime on offset + height."""

    height: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0

    def sample(self, t: Array, side: int = 0) -> Array:
        value: Array = self.offset + self.height * _reached(t, self.startTime, side).astype(np.float64)
        return value

    def event_times(self, t0: float, t1: float) -> list[float]:
        return _inside([self.startTime], t0, t1)


@dataclass(frozen=True)
class Ramp(Signal):
    """y = offset, rising by height during duration from startTime on, then constant."""

    height: float = 1.0
    duration: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0

    def __post_init__(self) -> None:
        if not self.duration > 0.0:
            raise RangeError("Ramp: {key} = {value}", key="duration", value=self.duration, allowed="> 0 s")

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.offset + self.height * np.clip((t - self.startTime) / self.duration, 0.0, 1.0)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return _inside([self.startTime, self.startTime + self.duration], t0, t1)


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
        return self.offset + np.where(_reached(t, self.startTime, side), wave, 0.0)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return _inside([self.startTime], t0, t1)


@dataclass(frozen=True)
class Pulse(Signal):
    """y = offset + amplitude during the first `width` percent of each period, else offset; nperiod = -1: for ever."""

    amplitude: float = 1.0
    width: float = 50.0
    period: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0
    nperiod: int = -1

    def __post_init__(self) -> None:
        if not self.period > 0.0:
            raise RangeError("Pulse: {key} = {value}", key="period", value=self.period, allowed="> 0 s")
        if not 0.0 < self.width < 100.0:
            raise RangeError("Pulse: {key} = {value}", key="width", value=self.width, allowed="> 0 and < 100 %")

    def _edge(self, k: float, falling: bool) -> float:
        return self.startTime + k * self.period + (self.period * self.width / 100.0 if falling else 0.0)

    def sample(self, t: Array, side: int = 0) -> Array:
        y = np.full(t.shape, float(self.offset))
        # the same expressions for the edges as in event_times: a grid time put on an edge is on it here, too
        guess = np.floor((t - self.startTime) / self.period)
        for shift in (-1.0, 0.0, 1.0):
            k = guess + shift
            valid = (k >= 0) & ((k < self.nperiod) | (self.nperiod < 0))
            rise = self.startTime + k * self.period
            fall = self.startTime + k * self.period + self.period * self.width / 100.0
            on = (t > rise) & (t <= fall) if side < 0 else (t >= rise) & (t < fall)
            y[valid & on] = self.offset + self.amplitude
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        first = max(0, math.floor((t0 - self.startTime) / self.period) - 1)
        last = math.ceil((t1 - self.startTime) / self.period) + 1
        if self.nperiod >= 0:
            last = min(last, self.nperiod - 1)
        times = [self._edge(k, falling) for k in range(first, last + 1) for falling in (False, True)]
        return _inside(times, t0, t1)


class Table(Signal):
    """Piecewise linear through points (t, y), constant outside; the same time twice is a jump."""

    def __init__(self, points: Sequence[Sequence[float]]) -> None:
        for i, point in enumerate(points):
            if len(point) != 2 or not all(math.isfinite(v) for v in point):
                raise TableError(f"Table signal: row {i + 1} is not a pair of numbers: {point!r}")
            if i and point[0] < points[i - 1][0]:
                before = points[i - 1][0]
                raise TableError(f"Table signal: time goes back at row {i + 1}: {point[0]:g} after {before:g}")
            if i > 1 and point[0] == points[i - 2][0]:
                raise TableError(f"Table signal: time {point[0]:g} is given three times (row {i + 1})")
        if not points:
            raise TableError("Table signal: no rows")
        #: times and values, as given
        self.t: Array = np.array([p[0] for p in points], dtype=np.float64)
        self.y: Array = np.array([p[1] for p in points], dtype=np.float64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return np.array_equal(self.t, other.t) and np.array_equal(self.y, other.y)

    def __hash__(self) -> int:
        return hash((self.t.tobytes(), self.y.tobytes()))

    def sample(self, t: Array, side: int = 0) -> Array:
        # index of the last point before t (a point at t itself counts when seen from the right)
        k = np.searchsorted(self.t, t, side="left" if side < 0 else "right") - 1
        low, high = np.clip(k, 0, None), np.clip(k + 1, None, len(self.t) - 1)
        span = self.t[high] - self.t[low]
        share = np.where(span > 0.0, (t - self.t[low]) / np.where(span > 0.0, span, 1.0), 0.0)
        inside = self.y[low] + (self.y[high] - self.y[low]) * share
        return np.where(k < 0, self.y[0], np.where(k >= len(self.t) - 1, self.y[-1], inside))

    def event_times(self, t0: float, t1: float) -> list[float]:
        return _inside(self.t.tolist(), t0, t1)


@dataclass(frozen=True)
class _Pair(Signal):
    u1: Signal
    u2: Signal

    def event_times(self, t0: float, t1: float) -> list[float]:
        return sorted({*self.u1.event_times(t0, t1), *self.u2.event_times(t0, t1)})


@dataclass(frozen=True)
class Product(_Pair):
    """y = u1*u2."""

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.u1.sample(t, side) * self.u2.sample(t, side)


@dataclass(frozen=True)
class Difference(_Pair):
    """y = u1 - u2 (Modelica: Feedback)."""

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.u1.sample(t, side) - self.u2.sample(t, side)


class Function(Signal):
    """A Python function of time; taken as smooth (no events) unless their times are given."""

    def __init__(self, function: Callable[[float], float], events: Sequence[float] = ()) -> None:
        self.function = function
        self.events = tuple(events)

    def sample(self, t: Array, side: int = 0) -> Array:
        return np.array([float(self.function(float(v))) for v in t], dtype=np.float64)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return _inside(self.events, t0, t1)


def as_signal(value: Any) -> Signal:
    """A Signal from a Signal, a number or a function of time."""
    if isinstance(value, Signal):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Constant(float(value))
    if callable(value):
        return Function(value)
    raise RangeError("input {value} is not a signal", value=value, allowed="a number, a function of time, or a Signal")
