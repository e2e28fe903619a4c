"""A driver who follows a speed: PI control, one pedal at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torqueloop.core.controls.base import Clock, clip, not_negative, positive
from torqueloop.core.describe.errors import RangeError


@dataclass
class Driver2:
    """Accelerator and brake pedal, 0..1, from the wanted and the actual speed (Otter, Dempsey, Schlegel 2000).

        u = kp*e + x,   e = v_set - v        u > 0: accelerator = u,  u < 0: brake = -u,  |u| <= 1
        dx/dt = ki*e + (pedals - u)/T_track  (back-calculation: x cannot wind up while the pedals cannot follow)

    One foot: a pedal is pressed with at most `press`, released with at most `release` (1/s); the other one is touched
    only after the first is released fully and t_change has passed. At rest (v_set and v below v_rest) the brake is held
    at brake_rest and x is 0. Defaults: assumed, a calm driver of a passenger car.
    """

    reads: ClassVar[tuple[str, ...]] = ("v_set", "v")
    writes: ClassVar[tuple[str, ...]] = ("accelerator", "brake")

    #: pedal per m/s, and per m/s and s
    kp: float = 0.6
    ki: float = 0.15
    #: s; about the time in which x follows pedals at their limits
    T_track: float = 1.0
    #: 1/s
    press: float = 1.5
    release: float = 3.0
    #: s, the foot from one pedal to the other
    t_change: float = 0.2
    #: m/s
    v_rest: float = 0.5
    brake_rest: float = 0.5
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    #: integral part, and the pedals as one number: > 0 accelerator, < 0 brake
    _x: float = field(default=0.0, init=False, repr=False)
    _pedals: float = field(default=0.0, init=False, repr=False)
    #: which pedal the foot was on last (1, -1), and how long it has been off it
    _foot: int = field(default=0, init=False, repr=False)
    _off: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        positive(self, "kp", "T_track", "press", "release")
        not_negative(self, "ki", "t_change", "v_rest", "brake_rest")
        if self.brake_rest > 1.0:
            raise RangeError("Driver2: {key} = {value} is out of range", key="brake_rest", value=self.brake_rest,
                             allowed="0 to 1")  # fmt: skip

    @property
    def integral(self) -> float:
        """The integral part x, for observation."""
        return self._x

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
