"""Fuel demand of the engine: overrun cut-off and rate limit."""

from __future__ import annotations

from typing import ClassVar

from torqueloop.core.controls.base import Compiled, positive
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError


@dataclass
class FuelFlowController(Compiled):
    """demand = (accelerator + idle demand), 0..1, limited in its rate, and 0 in overrun.

    Overrun cut-off: on when the accelerator is released (below `released`) for t_cut and w > w_cut; off when it is
    pressed or w < w_resume (< w_cut: hysteresis). In cut-off the demand is 0 at once and `fuel` is 0, afterwards the
    demand rises from 0 with the rate limit. Defaults: assumed.
    """

    kind: ClassVar[str] = "fuel_flow"
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

    def check(self) -> None:
        positive(self, "rise", "fall", "w_resume")
        if not self.w_resume < self.w_cut:
            raise RangeError("FuelFlowController: {key} = {value} is out of range", key="w_resume",
                             value=self.w_resume, allowed=f"< w_cut = {self.w_cut:g} rad/s")  # fmt: skip
