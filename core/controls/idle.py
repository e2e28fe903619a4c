"""Idle speed of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torqueloop.core.controls.base import Clock, clip, not_negative, positive
from torqueloop.core.describe.tables import Table1D

#: idle speed in rad/s over the coolant's temperature in K: 1200 rpm cold, 800 rpm warm (assumed)
COLD_IDLE = Table1D((273.15, 333.15), (125.7, 83.8), ("temperature", "angular_velocity"))


@dataclass
class IdleController:
    """Demand 0..limit that holds the idle speed: kp*e + x, e = w_idle(T_coolant) - w, dx/dt = ki*e.

    x is integrated only while the demand is inside its limits or moves back into them, and never while the accelerator
    is pressed (above `released`): no windup when the car drives the engine. Defaults: assumed.
    """

    reads: ClassVar[tuple[str, ...]] = ("w", "accelerator", "T_coolant")
    writes: ClassVar[tuple[str, ...]] = ("demand", "w_idle")

    w_idle: Table1D = COLD_IDLE
    #: demand per rad/s, and per rad/s and s
    kp: float = 0.006
    ki: float = 0.008
    #: largest demand
    limit: float = 0.5
    released: float = 0.01
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    _x: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        positive(self, "kp", "limit")
        not_negative(self, "ki", "released")

    @property
    def integral(self) -> float:
        """The integral part x, for observation."""
        return self._x

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        dt = self._clock.passed(t)
        target = self.w_idle(measured["T_coolant"])
        error = target - measured["w"]
        demand = self.kp * error + self._x
        saturated = (demand > self.limit and error > 0.0) or (demand < 0.0 and error < 0.0)
        if not saturated and measured["accelerator"] <= self.released:
            self._x = clip(self._x + dt * self.ki * error, 0.0, self.limit)
        return {"demand": clip(demand, 0.0, self.limit), "w_idle": target}
