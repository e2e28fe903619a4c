"""A driver who follows a speed: PI control, one pedal at a time."""

from __future__ import annotations

from typing import ClassVar

from torqueloop.core.controls.base import Compiled, not_negative, positive
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError


@dataclass
class Driver2(Compiled):
    """Accelerator and brake pedal, 0..1, from the wanted and the actual speed (Otter, Dempsey, Schlegel 2000).

        u = kp*e + x,   e = v_set - v        u > 0: accelerator = u,  u < 0: brake = -u,  |u| <= 1
        dx/dt = ki*e + (pedals - u)/T_track  (back-calculation: x cannot wind up while the pedals cannot follow)

    One foot: a pedal is pressed with at most `press`, released with at most `release` (1/s); the other one is touched
    only after the first is released fully and t_change has passed. At rest (v_set and v below v_rest) the brake is held
    at brake_rest and x is 0. Defaults: assumed, a calm driver of a passenger car.
    """

    kind: ClassVar[str] = "driver"
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

    def check(self) -> None:
        positive(self, "kp", "T_track", "press", "release")
        not_negative(self, "ki", "t_change", "v_rest", "brake_rest")
        if self.brake_rest > 1.0:
            raise RangeError("Driver2: {key} = {value} is out of range", key="brake_rest", value=self.brake_rest,
                             allowed="0 to 1")  # fmt: skip

    @property
    def integral(self) -> float:
        """The integral part x, for observation."""
        return self.kept("integral")
