"""Idle speed of the engine."""

from __future__ import annotations

from typing import ClassVar

from torqueloop.core.controls.base import Compiled, not_negative, positive
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.tables import Table1D

#: idle speed in rad/s over the coolant's temperature in K: 1200 rpm cold, 800 rpm warm (assumed)
COLD_IDLE = Table1D((273.15, 333.15), (125.7, 83.8), ("temperature", "angular_velocity"))


@dataclass
class IdleController(Compiled):
    """Demand 0..limit that holds the idle speed: kp*e + x, e = w_idle(T_coolant) - w, dx/dt = ki*e.

    x is integrated only while the demand is inside its limits or moves back into them, and never while the accelerator
    is pressed (above `released`): no windup when the car drives the engine. Defaults: assumed.
    """

    kind: ClassVar[str] = "idle"
    reads: ClassVar[tuple[str, ...]] = ("w", "accelerator", "T_coolant")
    writes: ClassVar[tuple[str, ...]] = ("demand", "w_idle")

    w_idle: Table1D = COLD_IDLE
    #: demand per rad/s, and per rad/s and s
    kp: float = 0.006
    ki: float = 0.008
    #: largest demand
    limit: float = 0.5
    released: float = 0.01

    def check(self) -> None:
        positive(self, "kp", "limit")
        not_negative(self, "ki", "released")

    @property
    def integral(self) -> float:
        """The integral part x, for observation."""
        return self.kept("integral")
