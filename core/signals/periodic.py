"""Signals that repeat: any polynomial pieces over one period, and the pulses of Modelica made of them."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.signals.base import Array, Formula, Signal, inside, joined, refuse_jump
from torqueloop.core.signals.pieces import formula_of, polynomial, slope


@dataclass(frozen=True)
class Periodic(Signal):
    """y = offset + piece(t - begin of the piece), repeated every `period` from startTime on, offset outside.

    `knots`: begins of the pieces within a period, the first 0; nperiod = -1: for ever. Period k begins at
    startTime + k*period; edges are computed by the same expression here and in event_times, so that a grid time put
    on an edge is on it.
    """

    knots: tuple[float, ...]
    pieces: tuple[tuple[float, ...], ...]
    period: float
    offset: float = 0.0
    startTime: float = 0.0
    nperiod: int = -1

    def sample(self, t: Array, side: int = 0) -> Array:
        if t.size == 1:
            return np.full(t.shape, self._at(float(t.ravel()[0]), side))
        y = np.full(t.shape, float(self.offset))
        guess = np.floor((t - self.startTime) / self.period)
        for shift in (-1.0, 0.0, 1.0):
            k = guess + shift
            valid = (k >= 0) & ((k < self.nperiod) | (self.nperiod < 0))
            begin = self.startTime + k * self.period
            end = self.startTime + (k + 1.0) * self.period
            for j, piece in enumerate(self.pieces):
                low = begin + self.knots[j]
                high = begin + self.knots[j + 1] if j + 1 < len(self.knots) else end
                on = (t > low) & (t <= high) if side < 0 else (t >= low) & (t < high)
                at = valid & on
                y[at] = self.offset + polynomial(piece, t[at] - low[at])
        return y

    def _at(self, t: float, side: int) -> float:
        """`sample` at one time: the same arithmetic without arrays (a step that ends at an event needs single
        times)."""
        y = float(self.offset)
        if not math.isfinite(t):
            return y
        guess = math.floor((t - self.startTime) / self.period)
        for k in (guess - 1, guess, guess + 1):
            if k < 0 or 0 <= self.nperiod <= k:
                continue
            begin = self.startTime + k * self.period
            lows = [begin + knot for knot in self.knots]
            highs = [*lows[1:], self.startTime + (k + 1.0) * self.period]
            for piece, low, high in zip(self.pieces, lows, highs, strict=True):
                if low < t <= high if side < 0 else low <= t < high:
                    value = 0.0
                    for c in reversed(piece):
                        value = value * (t - low) + c
                    y = self.offset + value
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        first = max(0, math.floor((t0 - self.startTime) / self.period) - 1)
        last = math.ceil((t1 - self.startTime) / self.period) + 1
        if self.nperiod >= 0:
            last = min(last, self.nperiod - 1)
        begins = [self.startTime + k * self.period for k in range(first, last + 1)]
        # a shape that ends at rest leaves without an event
        rests = not any(self.pieces[-1])
        end = [] if rests or self.nperiod <= 0 else [self.startTime + self.nperiod * self.period]
        return inside([*(b + knot for b in begins for knot in self.knots), *end], t0, t1)

    def formula(self, t0: float) -> Formula | None:
        for shift in (1.0, 0.0, -1.0):  # of several that hold, `sample` keeps the last
            k = math.floor((t0 - self.startTime) / self.period) + shift
            if k < 0 or 0 <= self.nperiod <= k:
                continue
            begin = self.startTime + k * self.period
            lows = [begin + knot for knot in self.knots]
            ends = [*lows[1:], self.startTime + (k + 1.0) * self.period]
            for j in reversed(range(len(self.pieces))):
                if lows[j] <= t0 < ends[j]:
                    return joined([formula_of(self.pieces[j], lows[j])], ("offset", (float(self.offset),)))
        return (("constant", (float(self.offset),)),)

    def derivative(self) -> Signal:
        ends = [self.startTime, self.startTime + self.nperiod * self.period] if self.nperiod >= 0 else [self.startTime]
        second = [self.startTime + self.period + knot for knot in self.knots] if self.nperiod not in (0, 1) else []
        first = [self.startTime + knot for knot in self.knots[1:]] if self.nperiod != 0 else []
        scale = max(abs(c) * self.period**k for piece in self.pieces for k, c in enumerate(piece))
        for instant in (*ends, *first, *second):
            refuse_jump("periodic", instant, self.before(instant), self.after(instant), scale)
        pieces = tuple(slope(p) for p in self.pieces)
        return Periodic(self.knots, pieces, self.period, 0.0, self.startTime, self.nperiod)


@dataclass(frozen=True)
class _Train(Signal):
    """Common part of the sources below: their shape is a Periodic."""

    @cached_property
    def shape(self) -> Periodic:
        raise NotImplementedError

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.shape.sample(t, side)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return self.shape.event_times(t0, t1)

    def formula(self, t0: float) -> Formula | None:
        return self.shape.formula(t0)

    def derivative(self) -> Signal:
        return self.shape.derivative()

    def _check_period(self, period: float) -> None:
        if not period > 0.0:
            raise RangeError(f"{type(self).__name__}: {{key}} = {{value}}", key="period", value=period, allowed="> 0 s")


@dataclass(frozen=True)
class Pulse(_Train):
    """y = offset + amplitude during the first `width` percent of each period, else offset; nperiod = -1: for ever."""

    amplitude: float = 1.0
    width: float = 50.0
    period: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0
    nperiod: int = -1

    def __post_init__(self) -> None:
        self._check_period(self.period)
        if not 0.0 < self.width < 100.0:
            raise RangeError("Pulse: {key} = {value}", key="width", value=self.width, allowed="> 0 and < 100 %")

    @cached_property
    def shape(self) -> Periodic:
        edges = (0.0, self.period * self.width / 100.0)
        pieces = ((float(self.amplitude),), (0.0,))
        return Periodic(edges, pieces, self.period, self.offset, self.startTime, self.nperiod)


@dataclass(frozen=True)
class SawTooth(_Train):
    """y = offset + amplitude*(time since the begin of the period)/period, falling back at its end."""

    amplitude: float = 1.0
    period: float = 1.0
    nperiod: int = -1
    offset: float = 0.0
    startTime: float = 0.0

    def __post_init__(self) -> None:
        self._check_period(self.period)

    @cached_property
    def shape(self) -> Periodic:
        pieces = ((0.0, self.amplitude / self.period),)
        return Periodic((0.0,), pieces, self.period, self.offset, self.startTime, self.nperiod)


@dataclass(frozen=True)
class Trapezoid(_Train):
    """y = offset, in each period rising to + amplitude during `rising`, held for `width`, falling during `falling`."""

    amplitude: float = 1.0
    rising: float = 0.0
    width: float = 0.5
    falling: float = 0.0
    period: float = 1.0
    nperiod: int = -1
    offset: float = 0.0
    startTime: float = 0.0

    def __post_init__(self) -> None:
        self._check_period(self.period)
        if min(self.rising, self.width, self.falling) < 0.0:
            raise RangeError("Trapezoid: rising, width or falling is negative", allowed=">= 0 s")
        if self.rising + self.width + self.falling > self.period * (1.0 + 1e-12):
            raise RangeError("Trapezoid: rising + width + falling is longer than {key} = {value}", key="period",
                             value=self.period)  # fmt: skip

    @cached_property
    def shape(self) -> Periodic:
        high = float(self.amplitude)
        parts = [(self.rising, (0.0, high / self.rising) if self.rising else (0.0,)), (self.width, (high,)),
                 (self.falling, (high, -high / self.falling) if self.falling else (0.0,))]  # fmt: skip
        parts.append((self.period - self.rising - self.width - self.falling, (0.0,)))
        knots, pieces, at = [], [], 0.0
        for duration, piece in parts:
            if duration > 1e-12 * self.period:
                knots.append(at)
                pieces.append(piece)
                at += duration
        return Periodic(tuple(knots), tuple(pieces), self.period, self.offset, self.startTime, self.nperiod)
