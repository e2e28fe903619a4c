"""Signals that follow one of two others: larger, smaller, absolute value, limits, sign."""

from __future__ import annotations

import math

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.signals.base import Array, Constant, Scaled, Signal

#: spacing at which a change of sign is looked for, s: zeros of a signal must be farther apart than this
RASTER = 1e-4
#: largest number of points looked at between two events
POINTS = 200_000
#: s: width of the cells in which a zero is looked for to the last bit
CELL = 2.0**-30
#: a one-sided limit at a switching time is that of the choice this much beside it, s
BESIDE = 1e-9


@dataclass(frozen=True)
class Choice(Signal):
    """y = a where u1 >= u2, else b."""

    u1: Signal
    u2: Signal
    a: Signal
    b: Signal

    def sample(self, t: Array, side: int = 0) -> Array:
        beside = t + BESIDE * np.sign(side)
        first = self.u1.sample(beside, side) >= self.u2.sample(beside, side)
        return np.where(first, self.a.sample(t, side), self.b.sample(t, side))

    def event_times(self, t0: float, t1: float) -> list[float]:
        known = sorted({e for s in (self.u1, self.u2, self.a, self.b) for e in s.event_times(t0, t1)})
        found = set(known)
        ends = [t0, *known, t1]
        for begin, end in zip(ends[:-1], ends[1:], strict=True):
            found.update(z for z in self._zeros(begin, end) if t0 < z < t1)
        return sorted(found)

    def _zeros(self, t0: float, t1: float) -> list[float]:
        """Where u1 - u2 changes its sign, between two events."""
        count = min(POINTS, max(8, math.ceil((t1 - t0) / RASTER)))
        t = np.linspace(t0, t1, count + 1)
        # the ends are limits from inside
        d = np.concatenate([self._gap(t[:1], +1), self._gap(t[1:-1], 0), self._gap(t[-1:], -1)])
        return [self._zero(t[k], t[k + 1], d[k] < 0.0) for k in np.flatnonzero((d[:-1] < 0.0) != (d[1:] < 0.0))]

    def _gap(self, t: Array, side: int) -> Array:
        return self.u1.sample(t, side) - self.u2.sample(t, side)

    def _zero(self, low: float, high: float, rising: bool) -> float:
        """The zero between low and high, the same bits from wherever it was found: where rounding lets the sign change
        more than once, it depends on where a search begins, so the last part of it begins on a raster that is fixed."""
        low, high = self._bisected(low, high, rising, CELL / 64.0)
        cell = round(0.5 * (low + high) / CELL)
        begin, end = (cell - 1) * CELL, (cell + 1) * CELL
        if self._before(begin, rising) and not self._before(end, rising):
            low, high = begin, end
        return self._bisected(low, high, rising, 0.0)[1]

    def _before(self, t: float, rising: bool) -> bool:
        """Whether the gap has at t the sign it has before the zero."""
        return (float(self._gap(np.array([t]), 0)[0]) < 0.0) == rising

    def _bisected(self, low: float, high: float, rising: bool, width: float) -> tuple[float, float]:
        """Both sides of the zero, at most `width` apart or neighbours."""
        while high - low > width:
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            if self._before(middle, rising):
                low = middle
            else:
                high = middle
        return low, high

    def derivative(self) -> Signal:
        """Derivative of whichever is followed; the choice must not make the signal jump."""
        return Choice(self.u1, self.u2, self.a.derivative(), self.b.derivative())


def larger(u1: Signal, u2: Signal) -> Choice:
    """max(u1, u2)."""
    return Choice(u1, u2, u1, u2)


def smaller(u1: Signal, u2: Signal) -> Choice:
    """min(u1, u2)."""
    return Choice(u2, u1, u1, u2)


def absolute(u: Signal) -> Choice:
    """|u|."""
    return larger(u, Scaled(u, -1.0))


def limited(u: Signal, low: float, high: float) -> Choice:
    """u between low and high (Modelica: Limiter)."""
    return smaller(larger(u, Constant(low)), Constant(high))


def sign(u: Signal) -> Choice:
    """+1 for u >= 0, else -1."""
    return Choice(u, Constant(0.0), Constant(1.0), Constant(-1.0))
