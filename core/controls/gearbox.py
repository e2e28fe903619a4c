"""Choice of the gear from throttle and speed, and of the converter's lock-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torqueloop.core.controls.base import Compiled, not_negative, positive
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.describe.tables import Table1D


@dataclass
class GearboxController(Compiled):
    """Shift map with hysteresis and a least time between shifts, for gears 1..n.

    Gear g goes to g+1 when v > up[g-1](throttle), and g+1 back to g when v < down[g-1](throttle); one gear at a time,
    no sooner than t_dwell after the last change. Each down curve must lie below its up curve everywhere: in between
    the gear stays. `gear` is the gear chosen, `gear_actual` follows it in t_shift per gear (for a ratio that is
    blended). Lock-up: from gear lockup_gear on, on above v_lockup, off below v_lockup - lockup_band and during a shift;
    p_lockup is the pressure for its plate pack.
    """

    kind: ClassVar[str] = "gearbox"
    reads: ClassVar[tuple[str, ...]] = ("throttle", "v")
    writes: ClassVar[tuple[str, ...]] = ("gear", "gear_actual", "lockup", "p_lockup")

    #: speeds in m/s over the throttle 0..1
    up: Sequence[Table1D]
    down: Sequence[Table1D]
    #: s
    t_dwell: float = 1.5
    t_shift: float = 0.4
    #: 0: no lock-up
    lockup_gear: int = 0
    #: m/s
    v_lockup: float = 15.0
    lockup_band: float = 2.0
    #: Pa, pressure of the closed lock-up
    p_closed: float = 8.0e5
    #: gear at the start
    first: int = 1

    def check(self) -> None:
        positive(self, "t_shift")
        not_negative(self, "t_dwell", "lockup_band", "p_closed")
        if len(self.up) != len(self.down):
            raise RangeError("GearboxController: as many down as up curves are needed", key="down",
                             value=len(self.down), allowed=str(len(self.up)))  # fmt: skip
        if not 1 <= self.first <= len(self.up) + 1:
            raise RangeError("GearboxController: {key} = {value} is out of range", key="first", value=self.first,
                             allowed=f"1 to {len(self.up) + 1}")  # fmt: skip
        for k, (up, down) in enumerate(zip(self.up, self.down, strict=True), 1):
            for throttle in sorted({*up.x, *down.x, 0.0, 1.0}):
                if not down(throttle) < up(throttle):
                    raise RangeError(
                        f"GearboxController: no hysteresis between gears {k} and {k + 1} at throttle {throttle:g}: "
                        f"down {down(throttle):g} m/s, up {up(throttle):g} m/s", key="down", value=down(throttle),
                        allowed=f"< {up(throttle):g} m/s",
                    )  # fmt: skip

    def start(self) -> tuple[float, ...]:
        # gear, gear_actual, lockup, p_lockup, since: the first change waits for nothing
        return (float(self.first), float(self.first), 0.0, 0.0, self.t_dwell)
