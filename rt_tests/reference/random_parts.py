"""Parts of random drivelines for independent.py, each written from its definition: every body is a coordinate, gears
and driven flanges are constraints with a force of their own, oil and curves have modes whose ends are located."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from independent import LATER, REST, TIED, Array, At, Contact, Element, Loss

from torqueloop.core.signals import Constant, Signal, Sine, Step, Table

#: Pa: a pressure so near to a level has not passed it
SLACK = 1e-3
#: of a piston: so full it is full
FULL = 1.0 - 1e-9


@dataclass(frozen=True)
class Course:
    """An input over time, its slope, the instants at which either jumps, and the same for torqueloop."""

    value: Callable[[float], float]
    rate: Callable[[float], float]
    breaks: tuple[float, ...]
    signal: Signal


def constant(y: float) -> Course:
    return Course(lambda t: y, lambda t: 0.0, (), Constant(y))


def wave(offset: float, amplitude: float, f: float, phase: float) -> Course:
    w = 2.0 * math.pi * f
    return Course(
        lambda t: offset + amplitude * math.sin(w * t + phase), lambda t: amplitude * w * math.cos(w * t + phase), (),
        Sine(amplitude=amplitude, f=f, phase=phase, offset=offset),
    )  # fmt: skip


def held(offset: float, steps: Sequence[tuple[float, float]]) -> Course:
    """A command that takes a new value at each (time, value)."""

    def value(t: float) -> float:
        return next((y for at, y in reversed(steps) if t >= at), offset)

    signal: Signal = Constant(offset)
    before = offset
    for at, y in steps:
        signal, before = signal + Step(height=y - before, startTime=at), y
    return Course(value, lambda t: 0.0, tuple(at for at, _ in steps), signal)


def lines(points: Sequence[tuple[float, float]]) -> Course:
    """Straight lines through (time, value), constant outside."""
    x, y = (list(column) for column in zip(*points, strict=True))

    def rate(t: float) -> float:
        k = int(np.searchsorted(x, t, side="right")) - 1
        return (y[k + 1] - y[k]) / (x[k + 1] - x[k]) if 0 <= k < len(x) - 1 else 0.0

    return Course(lambda t: float(np.interp(t, x, y)), rate, tuple(x), Table([list(p) for p in points]))


class Tie(Element):
    """A speed along a row that is given: row(t).u = speed(t); `pull`: what row.a is for that."""

    def __init__(
        self, row: Callable[[float], Array], pull: Callable[[At], float] = lambda at: 0.0,
        given: Callable[[float], float] | None = lambda t: 0.0,
    ) -> None:  # fmt: skip
        """given: None: the speed is what has become of its slope."""
        self._row, self._pull, self._given = row, pull, given

    def along(self, at: At) -> Array:
        return self._row(at.t)

    def speed(self, at: At) -> float:
        return float(self.along(at) @ at.u) if self._given is None else self._given(at.t)

    def modes(self, at: At) -> Sequence[str]:
        return TIED

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        return 0.0, 1.0, None, self._pull(at)

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        return []


class Watch(Element):
    """No force: a value whose passage through one of the levels is located."""

    def __init__(self, n: int, value: Callable[[At], float], levels: Sequence[float]) -> None:
        self.row, self.value = np.zeros(n), value
        self.levels = [-math.inf, *levels, math.inf]

    def modes(self, at: At) -> Sequence[str]:
        v = self.value(at)
        near = REST * (1.0 + abs(v))
        pairs = zip(self.levels[:-1], self.levels[1:], strict=True)
        return [str(k) for k, (lo, hi) in enumerate(pairs) if lo - near <= v <= hi + near]

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        return 1.0, 0.0, None, 0.0

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        v, k = self.value(at), int(mode)
        # a value may stay at a level, but for rounding
        near = 1e-8 * (1.0 + abs(v))
        return [x + near for x in (v - self.levels[k], self.levels[k + 1] - v) if math.isfinite(x)]


@dataclass(frozen=True)
class Oil:
    """Parameters of an actuator: Pa, s; no lag: the pressure is the command; no time to fill: the piston is full."""

    p_return: float
    rise: float = 0.0
    fall: float = 0.0
    fill: float = 0.0
    empty: float = 0.0


class Actuator(Element):
    """No force: the pressure of a piston.

    The piston fills while the command is above p_return and empties below; until it is full the pressure goes to
    p_return instead of the command. Modes: f full, i filling, e emptying, z empty; + or - the pressure rises, falls.
    """

    def __init__(self, n: int, command: Course, oil: Oil, p: int, level: int) -> None:
        """p, level: places of pressure and fill level among the extra states."""
        self.row, self.command, self.oil, self.p, self.level = np.zeros(n), command, oil, p, level

    def target(self, mode: str, t: float) -> float:
        return self.oil.p_return if mode[0] == "i" else self.command.value(t)

    def pressure(self, mode: str, at: At) -> float:
        return float(at.x[self.p]) if self.oil.rise > 0.0 else self.target(mode, at.t)

    def modes(self, at: At) -> Sequence[str]:
        soon, level = at.t + LATER, float(at.x[self.level])
        way = "f"
        if self.oil.fill > 0.0 and self.command.value(soon) > self.oil.p_return:
            way = "f" if level >= FULL else "i"
        elif self.oil.fill > 0.0:
            way = "e" if level > 1e-9 else "z"
        return [way + ("+" if self.target(way, soon) >= at.x[self.p] else "-")]

    def rates(self, mode: str, at: At) -> tuple[float, float]:
        """Of pressure and fill level."""
        oil = self.oil
        lag = oil.rise if mode[1] == "+" else oil.fall
        p = (self.target(mode, at.t) - float(at.x[self.p])) / lag if lag > 0.0 else 0.0
        return p, {
            "i": 1.0 / oil.fill if oil.fill > 0.0 else 0.0,
            "e": -1.0 / oil.empty if oil.empty > 0.0 else 0.0,
        }.get(mode[0], 0.0)

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        return 1.0, 0.0, None, 0.0

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        found = []
        if self.oil.fill > 0.0:
            above = self.command.value(at.t) - self.oil.p_return
            found.append((above if mode[0] in "fi" else -above) + SLACK)
            if mode[0] == "i":
                found.append(1.0 - float(at.x[self.level]))
            elif mode[0] == "e":
                found.append(float(at.x[self.level]))
        if self.oil.rise > 0.0:
            behind = self.target(mode, at.t) - float(at.x[self.p])
            found.append((behind if mode[1] == "+" else -behind) + SLACK)
        return found


class Plates(Element):
    """Friction pressed by an actuator: slides with gain*mue(|w|)*(p - p_return), holds peak*gain*mue(0)*(p - p_return).

    one_way: no force for w > 0, nothing that is held against it.
    """

    can_hold = True

    def __init__(
        self, row: Array, actuator: int, part: Actuator, gain: float, mue: Callable[[float], float], peak: float,
        one_way: bool = False,
    ) -> None:  # fmt: skip
        """actuator: its place among the elements."""
        self.row, self.actuator, self.part = row, actuator, part
        self.gain, self.mue, self.peak, self.one_way = gain, mue, peak, one_way

    def over(self, at: At) -> float:
        """Pressure above that of the return spring."""
        mode = at.modes[self.actuator] if at.modes else self.part.modes(at)[0]
        return self.part.pressure(mode, at) - self.part.oil.p_return

    def modes(self, at: At) -> Sequence[str]:
        soon = At(at.t + LATER, at.q, at.u, at.x, at.a, at.F)
        w = float(self.row @ at.u)
        rates = self.part.rates(self.part.modes(at)[0], at)[0] * LATER if self.part.oil.rise > 0.0 else 0.0
        if self.over(soon) + rates <= SLACK * 1e-3:
            return "N"
        if abs(w) > REST:
            return "F" if w > 0.0 else "B"
        return "SFB"

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        if mode == "S":
            return 0.0, 1.0, None, 0.0
        sense = {"N": 0.0, "F": 0.0 if self.one_way else -1.0, "B": 1.0}[mode]
        return 1.0, 0.0, None, sense * self.gain * self.mue(abs(float(self.row @ at.u))) * max(self.over(at), 0.0)

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        over = self.over(at)
        if mode == "N":
            return [SLACK - over]
        w, hold = float(self.row @ at.u), self.peak * self.gain * self.mue(0.0) * max(over, 0.0)
        if mode == "S":
            return [F if self.one_way else F + hold, hold - F, over + SLACK]
        return [w if mode == "F" else -w, over + SLACK]


class GearLoss(Loss):
    """Loss at flange_a of a gear whose constraint is the element `gear`; the drive's torque there: -(its force + F)."""

    can_hold = True

    def __init__(self, row: Array, gear: int, table: Sequence[Sequence[float]]) -> None:
        super().__init__(row.tolist(), lambda t, q, u, x: 0.0, np.zeros(len(row)).tolist(), table)
        self.gear = gear

    def reaction(self, at: At, F: float) -> float:
        return -(float(at.F[self.gear]) + F)

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        if mode == "S":
            return 0.0, 1.0, None, 0.0
        # -F = k*reaction + c; the part of the gear's force is in `others`
        k, c, _, _ = self.branches(mode, at)
        return 1.0 - k, 0.0, None, -c

    def others(self, mode: str, at: At) -> Array | None:
        if mode == "S":
            return None
        row = np.zeros(len(at.F))
        row[self.gear] = -self.branches(mode, at)[0]
        return row


class Gap(Contact):
    """A contact whose spring force grows with the depth to the power n."""

    def __init__(self, row: Array, c: float, d: float, lo: float, hi: float, n: float) -> None:
        super().__init__(row.tolist(), c, d, lo, hi)
        self.n = n

    def _torques(self, at: At, side: float) -> tuple[float, float, float]:
        depth, _, td = super()._torques(at, side)
        return depth, self.c * max(depth, 0.0) ** self.n, td
