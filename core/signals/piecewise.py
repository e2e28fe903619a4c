"""Signals made of polynomials between knots: steps, ramps, tables, point-to-point movements."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError, TableError
from torqueloop.core.signals.base import Array, Constant, Formula, Signal, inside, reached, refuse_jump
from torqueloop.core.signals.periodic import Periodic
from torqueloop.core.signals.pieces import formula_of, polynomial, slope

#: what a table does outside its points (Modelica: Extrapolation)
HOLD, LAST_TWO, PERIODIC = "HoldLastPoint", "LastTwoPoints", "Periodic"


@dataclass(frozen=True)
class Piecewise(Signal):
    """Polynomials between knots: piece k holds from knot k-1 to knot k (the first before all, the last after all).

    Coefficients are ascending in (t - begin), begin = the knot on the left (for the first piece: the first knot).
    """

    knots: tuple[float, ...]
    pieces: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.knots) + 1 or not self.knots:
            raise TableError(f"Piecewise: {len(self.knots)} knots need {len(self.knots) + 1} pieces (and one knot)")
        if any(b <= a for a, b in zip(self.knots[:-1], self.knots[1:], strict=True)):
            raise TableError(f"Piecewise: the knots do not increase: {self.knots}")

    def sample(self, t: Array, side: int = 0) -> Array:
        k = np.searchsorted(self.knots, t, side="left" if side < 0 else "right")
        y = np.empty(t.shape)
        for piece in np.unique(k):
            at = k == piece
            y[at] = polynomial(self.pieces[piece], t[at] - self.knots[max(piece - 1, 0)])
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside(self.knots, t0, t1)

    def formula(self, t0: float) -> Formula | None:
        piece = int(np.searchsorted(self.knots, t0, side="right"))
        return formula_of(self.pieces[piece], self.knots[max(piece - 1, 0)])

    def derivative(self) -> Signal:
        scale = float(np.abs(self.sample(np.array(self.knots))).max())
        for knot in self.knots:
            refuse_jump("Piecewise", knot, self.before(knot), self.after(knot), scale)
        return Piecewise(self.knots, tuple(slope(p) for p in self.pieces))


@dataclass(frozen=True)
class Step(Signal):
    """y = offset, from startTime on offset + height."""

    height: float = 1.0
    offset: float = 0.0
    startTime: float = 0.0

    def sample(self, t: Array, side: int = 0) -> Array:
        value: Array = self.offset + self.height * reached(t, self.startTime, side).astype(np.float64)
        return value

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside([self.startTime], t0, t1)

    def formula(self, t0: float) -> Formula | None:
        return (("constant", (self.offset + self.height * float(t0 >= self.startTime),)),)

    def derivative(self) -> Signal:
        refuse_jump("Step", self.startTime, self.offset, self.offset + self.height)
        return Constant(0.0)


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
        return inside([self.startTime, self.startTime + self.duration], t0, t1)

    def formula(self, t0: float) -> Formula | None:
        return (("ramp", (self.offset, self.height, self.startTime, self.duration)),)

    def derivative(self) -> Signal:
        ends = (self.startTime, self.startTime + self.duration)
        return Piecewise(ends, ((0.0,), (self.height / self.duration,), (0.0,)))


class Table(Signal):
    """Piecewise linear through points (t, y), constant outside; the same time twice is a jump."""

    def __init__(self, points: Sequence[Sequence[float]]) -> None:
        check_points(points)
        #: times and values, as given
        self.t: Array = np.array([p[0] for p in points], dtype=np.float64)
        self.y: Array = np.array([p[1] for p in points], dtype=np.float64)
        self._times: list[float] = self.t.tolist()
        self._values: list[float] = self.y.tolist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return np.array_equal(self.t, other.t) and np.array_equal(self.y, other.y)

    def __hash__(self) -> int:
        return hash((self.t.tobytes(), self.y.tobytes()))

    def sample(self, t: Array, side: int = 0) -> Array:
        if t.size and self.t.size > 1:
            # most stretches of a run lie between two points, and parts of a step between events are one time: the same
            # arithmetic without a search for each time
            find = bisect_left if side < 0 else bisect_right
            if t.size == 1:
                time = t.item()
                return np.array(self._between(find(self._times, time) - 1, time)).reshape(t.shape)
            place = find(self._times, t.min())
            if place == find(self._times, t.max()):
                return np.full(t.shape, self._between(place - 1, t))
        # index of the last point before t (a point at t itself counts when seen from the right)
        k = np.searchsorted(self.t, t, side="left" if side < 0 else "right") - 1
        low, high = np.clip(k, 0, None), np.clip(k + 1, None, len(self.t) - 1)
        span = self.t[high] - self.t[low]
        share = np.where(span > 0.0, (t - self.t[low]) / np.where(span > 0.0, span, 1.0), 0.0)
        inner = self.y[low] + (self.y[high] - self.y[low]) * share
        return np.where(k < 0, self.y[0], np.where(k >= len(self.t) - 1, self.y[-1], inner))

    def _between(self, k: int, t: Any) -> Any:
        """Values at times, an array or a number, between points k and k + 1; before the first and after the last one
        number."""
        if k < 0 or k >= len(self._times) - 1:
            return self._values[max(k, 0)]
        t0, y0 = self._times[k], self._values[k]
        return y0 + (self._values[k + 1] - y0) * ((t - t0) / (self._times[k + 1] - t0))

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside(self._times, t0, t1)

    def formula(self, t0: float) -> Formula | None:
        k = int(np.searchsorted(self.t, t0, side="right")) - 1
        if k < 0 or k >= len(self.t) - 1:
            return (("constant", (float(self.y[max(k, 0)]),)),)
        rise, span = self.y[k + 1] - self.y[k], self.t[k + 1] - self.t[k]
        if rise == 0.0:
            return (("constant", (float(self.y[k]),)),)
        return (("line", (float(self.y[k]), float(rise), float(self.t[k]), float(span))),)

    def derivative(self) -> Signal:
        return _linear(list(zip(self.t.tolist(), self.y.tolist(), strict=True)), HOLD).derivative()


def check_points(points: Sequence[Sequence[float]]) -> None:
    """TableError unless the rows are pairs of numbers with times that do not go back."""
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


def _linear(points: Sequence[tuple[float, float]], outside: str) -> Piecewise:
    """Lines through the points; the same time twice is a jump."""
    knots: list[float] = [points[0][0]]
    pieces: list[tuple[float, ...]] = []
    for (t0, y0), (t1, y1) in zip(points[:-1], points[1:], strict=True):
        if t1 > t0:
            pieces.append((y0, (y1 - y0) / (t1 - t0)))
            knots.append(t1)
    before: tuple[float, ...] = (points[0][1],)
    after: tuple[float, ...] = (points[-1][1],)
    if outside == LAST_TWO and pieces:
        before = (points[0][1], pieces[0][1])
        after = (points[-1][1], pieces[-1][1] if points[-1][0] > points[-2][0] else 0.0)
    return Piecewise(tuple(knots), (before, *pieces, after))


def time_table(
    points: Sequence[Sequence[float]],
    offset: float = 0.0,
    startTime: float = 0.0,
    shiftTime: float | None = None,
    timeScale: float = 1.0,
    extrapolation: str = LAST_TWO,
    constant_segments: bool = False,
) -> Signal:
    """Modelica's TimeTable, and one column of CombiTimeTable.

    y = offset for t < startTime, then offset + table(t - shiftTime), shiftTime = startTime unless given. Outside its
    points the table goes on along its first and last line ("LastTwoPoints"), or holds ("HoldLastPoint"), or repeats
    ("Periodic"). constant_segments: every value holds until the next time.
    """
    check_points(points)
    if not timeScale > 0.0:
        raise RangeError("TimeTable: {key} = {value}", key="timeScale", value=timeScale, allowed="> 0")
    shift = startTime if shiftTime is None else shiftTime
    rows = [(t * timeScale + shift, y + offset) for t, y in points]
    if constant_segments:
        rows = [rows[0], *((t, y) for a, b in zip(rows[:-1], rows[1:], strict=True) for t, y in ((b[0], a[1]), b))]
    if extrapolation == PERIODIC:
        cycle = _linear(rows, HOLD)
        period = rows[-1][0] - rows[0][0]
        if not period > 0.0 or rows[0][0] > startTime:
            raise TableError("a periodic TimeTable needs two times, the first not after startTime")
        local = tuple(k - rows[0][0] for k in cycle.knots[:-1])
        return Periodic(local, cycle.pieces[1:-1], period, 0.0, rows[0][0])
    whole = _linear(rows, LAST_TWO if extrapolation == LAST_TWO and not constant_segments else HOLD)
    # a table that starts at startTime needs no piece of its own before it; one that starts later is extrapolated
    later = [(k, p) for k, p in zip(whole.knots, whole.pieces[1:], strict=True) if k > startTime]
    at_start = int(np.searchsorted(whole.knots, startTime, side="right"))
    begin = whole.knots[max(at_start - 1, 0)]
    moved = _moved(whole.pieces[at_start], startTime - begin)
    return Piecewise((startTime, *(k for k, _ in later)), ((offset,), moved, *(p for _, p in later)))


def _moved(line: tuple[float, ...], by: float) -> tuple[float, ...]:
    """The same line, written about a begin later by `by`."""
    return (line[0] + line[1] * by, line[1]) if len(line) > 1 else line


def clock(offset: float = 0.0, startTime: float = 0.0) -> Piecewise:
    """y = offset, from startTime on offset + t - startTime (Modelica: Clock, ContinuousClock)."""
    return Piecewise((startTime,), ((offset,), (offset, 1.0)))


def kinematic_ptp(
    deltaq: Sequence[float],
    qd_max: Sequence[float],
    qdd_max: Sequence[float],
    startTime: float = 0.0,
) -> list[tuple[Piecewise, Piecewise, Piecewise]]:
    """Fastest synchronous movement by deltaq within speed and acceleration limits: (q, qd, qdd) of every axis.

    With the path parameter s from 0 to 1: sd_max = 1/max|deltaq/qd_max|, sdd_max = 1/max|deltaq/qdd_max|;
    accelerate, go on at sd_max if it is reached, decelerate (Modelica: KinematicPTP gives qdd, KinematicPTP2 all).
    """
    n = max(len(deltaq), len(qd_max), len(qdd_max))
    q, v, a = ([*values] * n if len(values) == 1 else [*values] for values in (deltaq, qd_max, qdd_max))
    if not len(q) == len(v) == len(a) or min(*v, *a) <= 0.0:
        raise RangeError("KinematicPTP: deltaq, qd_max, qdd_max differ in length or a limit is not positive")
    if not any(q):
        still = Piecewise((startTime,), ((0.0,), (0.0,)))
        return [(still, still, still) for _ in q]
    sd = 1.0 / max(abs(x / y) for x, y in zip(q, v, strict=True))
    sdd = 1.0 / max(abs(x / y) for x, y in zip(q, a, strict=True))
    ramp, full = sd / sdd, 1.0 / sd
    if ramp >= math.sqrt(1.0 / sdd):
        ramp = full = math.sqrt(1.0 / sdd)
    times, accelerations = [startTime, startTime + ramp], [sdd]
    if full > ramp:
        times.append(startTime + full)
        accelerations.append(0.0)
    times.append(startTime + full + ramp)
    accelerations.append(-sdd)
    path: list[tuple[float, ...]] = []
    s, speed = 0.0, 0.0
    for t0, t1, acc in zip(times[:-1], times[1:], accelerations, strict=True):
        path.append((s, speed, 0.5 * acc))
        s, speed = s + (speed + 0.5 * acc * (t1 - t0)) * (t1 - t0), speed + acc * (t1 - t0)
    moves = []
    for distance in q:
        # the end is exact: what rounding left of s and speed is dropped
        pieces = ((0.0,), *(tuple(distance * c for c in p) for p in path), (distance,))
        position = Piecewise(tuple(times), pieces)
        speeds = Piecewise(position.knots, tuple(slope(p) for p in position.pieces))
        moves.append((position, speeds, Piecewise(speeds.knots, tuple(slope(p) for p in speeds.pieces))))
    return moves
