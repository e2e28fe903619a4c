"""Fuel demand of the engine: overrun cut-off and rate limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torqueloop.core.controls.base import Clock, clip, positive, toward
from torqueloop.core.describe.errors import RangeError


@dataclass
class FuelFlowController:
    """demand = (accelerator + idle demand), 0..1, limited in its rate, and 0 in overrun.

    Overrun cut-off: on when the accelerator is released (below `released`) for t_cut and w > w_cut; off when it is
    pressed or w < w_resume (< w_cut: hysteresis). In cut-off the demand is 0 at once and `fuel` is 0, afterwards the
    demand rises from 0 with the rate limit. Defaults: assumed.
    """

    reads: ClassVar[tuple[str, ...]] = ("accelerator", "idle", "w")
    writes: ClassVar[tuple[str, ...]] = ("demand", "fuel")

    #: rad/s (1600 and 1200 rpm)
    w_cut: float = 167.6
    w_resume: float = 125.7
    released: float = 0.01
    #: s
    t_cut: float = 0.3
    #: 1/s
    rise: float = 5.0
    fall: float = 10.0
    _clock: Clock = field(default_factory=Clock, init=False, repr=False)
    _demand: float = field(default=0.0, init=False, repr=False)
    _released_for: float = field(default=0.0, init=False, repr=False)
    _cut: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        positive(self, "rise", "fall", "w_resume")
        if not self.w_resume < self.w_cut:
            raise RangeError("FuelFlowController: {key} = {value} is out of range", key="w_resume",
                             value=self.w_resume, allowed=f"< w_cut = {self.w_cut:g} rad/s")  # fmt: skip

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
