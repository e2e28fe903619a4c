"""The controllers in plain Python, as they were before their laws were compiled: what those are held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torqueloop.core.describe.tables import Table1D


class KernelCurve(Table1D):
    """The same curve, rounded as the kernel does: with slopes computed once (cython_kernels/model/tables.pxd)."""

    def __call__(self, x: float) -> float:
        xs, ys = self.x, self.y
        if len(xs) == 1 or x <= xs[0]:
            return ys[0]
        if x >= xs[-1]:
            return ys[-1]
        k = max(i for i in range(len(xs) - 1) if x >= xs[i])
        return ys[k] + (x - xs[k]) * ((ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k]))


class Clock:
    """Time since the last call; 0 at the first."""

    def __init__(self) -> None:
        self._last: float | None = None

    def passed(self, t: float) -> float:
        """Seconds since the last call."""
        dt = 0.0 if self._last is None else t - self._last
        self._last = t
        return dt


def clip(value: float, low: float, high: float) -> float:
    """value within low and high."""
    return low if value < low else high if value > high else value


def toward(value: float, target: float, rise: float, fall: float, dt: float) -> float:
    """value moved to the target by no more than rise*dt up or fall*dt down (rates per second, > 0)."""
    return clip(target, value - fall * dt, value + rise * dt)


@dataclass
class CoolingFan:
    v_ref: float = 20.0
    still: float = 0.05
    fan_air: float = 0.6
    most: float = 2.0
    T_on: float = 372.15
    T_off: float = 367.15
    _on: bool = field(default=False, init=False, repr=False)

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        T = measured["T_coolant"]
        self._on = T > (self.T_off if self._on else self.T_on)
        wind = self.still + (abs(measured["v"]) / self.v_ref) ** 0.8
        return {"air": min(self.most, max(wind, self.fan_air if self._on else 0.0)), "fan": float(self._on)}


@dataclass
class Driver2:
    kp: float = 0.6
    ki: float = 0.15
    T_track: float = 1.0
    press: float = 1.5
    release: float = 3.0
    t_change: float = 0.2
    v_rest: float = 0.5
    brake_rest: float = 0.5
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    _x: float = field(default=0.0, init=False, repr=False)
    _pedals: float = field(default=0.0, init=False, repr=False)
    _foot: int = field(default=0, init=False, repr=False)
    _off: float = field(default=0.0, init=False, repr=False)

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        dt = self._clock.passed(t)
        v_set, v = measured["v_set"], measured["v"]
        resting = v_set < self.v_rest and abs(v) < self.v_rest
        wanted = -self.brake_rest if resting else self.kp * (v_set - v) + self._x
        self._move(clip(wanted, -1.0, 1.0), dt)
        if resting:
            self._x = 0.0
        else:
            self._x += dt * self.ki * (v_set - v) + min(1.0, dt / self.T_track) * (self._pedals - wanted)
        return {"accelerator": max(0.0, self._pedals), "brake": max(0.0, -self._pedals)}

    def _move(self, wanted: float, dt: float) -> None:
        """The pedals one period further."""
        if self._pedals == 0.0:
            side = 1 if wanted > 0.0 else -1
            self._off += dt
            if wanted == 0.0 or (self._foot == -side and self._off < self.t_change):
                return
            self._foot = side
        self._off = 0.0
        side = self._foot
        depth, target = abs(self._pedals), max(0.0, wanted * side)
        depth = clip(target, depth - self.release * dt, depth + self.press * dt)
        self._pedals = side * max(0.0, depth)


@dataclass
class FuelFlowController:
    w_cut: float = 167.6
    w_resume: float = 125.7
    released: float = 0.01
    t_cut: float = 0.3
    rise: float = 5.0
    fall: float = 10.0
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    _demand: float = field(default=0.0, init=False, repr=False)
    _released_for: float = field(default=0.0, init=False, repr=False)
    _cut: bool = field(default=False, init=False, repr=False)

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        dt = self._clock.passed(t)
        accelerator, w = measured["accelerator"], measured["w"]
        off = accelerator < self.released
        self._released_for = self._released_for + dt if off else 0.0
        if self._cut:
            self._cut = off and w > self.w_resume
        else:
            self._cut = off and w > self.w_cut and self._released_for >= self.t_cut
        wanted = clip(accelerator + measured["idle"], 0.0, 1.0)
        self._demand = 0.0 if self._cut else toward(self._demand, wanted, self.rise, self.fall, dt)
        return {"demand": self._demand, "fuel": float(not self._cut)}


@dataclass
class GearboxController:
    up: Sequence[Table1D]
    down: Sequence[Table1D]
    t_dwell: float = 1.5
    t_shift: float = 0.4
    lockup_gear: int = 0
    v_lockup: float = 15.0
    lockup_band: float = 2.0
    p_closed: float = 8.0e5
    first: int = 1
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    _gear: int = field(default=1, init=False, repr=False)
    _actual: float = field(default=1.0, init=False, repr=False)
    _since: float = field(default=float("inf"), init=False, repr=False)
    _locked: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self._gear, self._actual = self.first, float(self.first)

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        dt = self._clock.passed(t)
        self._since += dt
        throttle, v = measured["throttle"], measured["v"]
        g = self._gear
        if self._since >= self.t_dwell:
            if g <= len(self.up) and v > self.up[g - 1](throttle):
                self._gear, self._since = g + 1, 0.0
            elif g > 1 and v < self.down[g - 2](throttle):
                self._gear, self._since = g - 1, 0.0
        self._actual = toward(self._actual, self._gear, 1.0 / self.t_shift, 1.0 / self.t_shift, dt)
        self._locked = (
            0 < self.lockup_gear <= self._gear
            and self._actual == self._gear
            and v > self.v_lockup - (self.lockup_band if self._locked else 0.0)
        )
        locked = float(self._locked)
        return {"gear": float(self._gear), "gear_actual": self._actual, "lockup": locked,
                "p_lockup": locked * self.p_closed}  # fmt: skip


@dataclass
class IdleController:
    w_idle: Table1D
    kp: float = 0.006
    ki: float = 0.008
    limit: float = 0.5
    released: float = 0.01
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    _x: float = field(default=0.0, init=False, repr=False)

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        dt = self._clock.passed(t)
        target = self.w_idle(measured["T_coolant"])
        error = target - measured["w"]
        demand = self.kp * error + self._x
        saturated = (demand > self.limit and error > 0.0) or (demand < 0.0 and error < 0.0)
        if not saturated and measured["accelerator"] <= self.released:
            self._x = clip(self._x + dt * self.ki * error, 0.0, self.limit)
        return {"demand": clip(demand, 0.0, self.limit), "w_idle": target}
