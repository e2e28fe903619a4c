"""Air through the radiator: speed of the car and fan."""

from __future__ import annotations

from typing import ClassVar

from torqueloop.core.controls.base import Compiled, positive
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError


@dataclass
class CoolingFan(Compiled):
    """Factor of the radiator's conductance: air = max(still + (|v|/v_ref)^0.8, fan on: fan_air), at most `most`.

    The exponent is that of forced turbulent convection. The fan is switched on above T_on and off below T_off by the
    temperature of the coolant. Defaults: assumed.
    """

    kind: ClassVar[str] = "cooling_fan"
    reads: ClassVar[tuple[str, ...]] = ("v", "T_coolant")
    writes: ClassVar[tuple[str, ...]] = ("air", "fan")

    #: m/s at which air = 1 (+ still)
    v_ref: float = 20.0
    still: float = 0.05
    fan_air: float = 0.6
    most: float = 2.0
    #: K
    T_on: float = 372.15
    T_off: float = 367.15

    def check(self) -> None:
        positive(self, "v_ref", "still", "fan_air", "most")
        if not self.T_off < self.T_on:
            raise RangeError("CoolingFan: {key} = {value} is out of range", key="T_off", value=self.T_off,
                             allowed=f"< T_on = {self.T_on:g} K")  # fmt: skip
