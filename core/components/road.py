"""What the road and the air do to a car."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import PART_ON_SUPPORT
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import TableError
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    CAPACITY,
    CONSTANT,
    HEAT_OF_FRICTION,
    HEAT_OF_PORT,
    OUT_CAPACITY,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_FRICTION_POWER,
    OUT_MODE,
    OUT_POLY,
    OUT_POLY_WORK,
    OUT_PORT,
    OUT_PORT_WORK,
    OUT_TORQUE,
    OUT_TORQUE_WORK,
)
from torqueloop.core.describe.params import curve, param, require

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder
    from torqueloop.core.describe.tables import Table1D
    from torqueloop.core.describe.vocabulary import Form

#: standard gravity, m/s2 (CGPM 1901)
GRAVITY = 9.80665


def driving_resistance(
    b: Builder,
    speed: Form,
    *,
    f0: float = 0.0,
    f1: float = 0.0,
    f2: float = 0.0,
    rolling: Table1D | None = None,
    wind: Table1D | None = None,
    m: float | None = None,
    grade: float = 0.0,
) -> None:
    """Force elements, outputs and heat of a driving resistance; see CarResistance."""
    if f0 > 0.0 or rolling is not None:
        index = b.friction(speed, source=CONSTANT, gain=f0 if rolling is None else 1.0, mu=rolling)
        b.output("f_rolling", "force", OUT_FRICTION, index=index)
        b.output("mode", "1", OUT_MODE, index=index)
        b.output("heat", "energy", OUT_FRICTION_HEAT, index=index)
        b.output("lossPower", "power", OUT_FRICTION_POWER, index=index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)
    if wind is None:
        port = "polynomial", b.polynomial(speed, k1=-f1, k3=-f2)
        b.output("f", "force", OUT_POLY, index=port[1])
        b.output("work", "energy", OUT_POLY_WORK, index=port[1])
    else:
        port = "curve", b.curve_force(speed, tab1=wind, gain=-1.0, absolute=True)
        b.output("f", "force", OUT_PORT, port=port)
        b.output("work", "energy", OUT_PORT_WORK, port=port)
    b.heat("heatPort", HEAT_OF_PORT, port)
    if m is not None:
        weight = m * GRAVITY
        slope = b.torque(speed, input=b.input("grade", "1"), gain=-weight, const=-weight * grade)
        b.output("f_slope", "force", OUT_TORQUE, index=slope)
        b.output("slope_work", "energy", OUT_TORQUE_WORK, index=slope)


@dataclass(frozen=True, kw_only=True)
class CarResistance(Component):
    """Driving resistance f0*sign(v) + f1*v + f2*v*|v| against the motion, and the slope force -m*g*sin(slope).

    Instead of numbers, tables over |v|: `rolling` (>= 0, also its value at 0: dry friction) for f0, `wind` (0 at v = 0)
    for f1 and f2. All its force outputs are forces on the car, + forward.

    f0 sticks exactly at standstill (a car does not creep on a slope that its rolling resistance holds). `m` is only
    used for the slope; the mass itself is a Mass. With m given there is an input `grade` (sine of the slope angle,
    + uphill) that adds to the constant `grade`.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**PART_ON_SUPPORT, "heatPort": HEAT_PORT}

    f0: float = param("rolling resistance", "force", 0.0, low=0.0)
    f1: float = param("resistance proportional to speed", "damping", 0.0, low=0.0)
    f2: float = param("air resistance 0.5*rho*cw*A", "quadratic_damping", 0.0, low=0.0)
    rolling: Any = curve("rolling resistance over |v|, instead of f0", "velocity", "force", None, low=0.0)
    wind: Any = curve("air resistance over |v|, instead of f1 and f2", "velocity", "force", None, low=0.0)
    m: float | None = param("mass of the car, for the slope force", "mass", None, low=0.0, above=True)
    grade: float = param("sine of the slope angle, + uphill", default=0.0, low=-1.0, high=1.0)

    def check(self) -> None:
        require(self.rolling is None or self.f0 == 0.0, "give f0 or rolling, not both", key="rolling")
        require(self.wind is None or self.f1 == self.f2 == 0.0, "give f1 and f2 or wind, not both", key="wind")

    def contribute(self, b: Builder) -> None:
        rolling = None if self.rolling is None else b.table1("rolling")
        wind = None if self.wind is None else b.table1("wind")
        if wind is not None and wind(0.0) != 0.0:
            raise TableError(
                f"wind must be 0 at standstill (it is {wind(0.0):g}): what acts at v = 0 is dry friction, see rolling",
                table=f"components.{b.name}", key="wind",
            )  # fmt: skip
        driving_resistance(
            b, b.w("flange") - b.w("support"),
            f0=self.f0, f1=self.f1, f2=self.f2, rolling=rolling, wind=wind, m=self.m, grade=self.grade,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RoadLoad(Component):
    """The road as seen by an external vehicle model: active force and holding capacity are inputs.

    F [N, + drives forward]: air, slope. F_hold [N, >= 0]: capacity of brakes and rolling resistance, acting as dry
    friction: it opposes the motion and holds the car at standstill. Outputs F and F_friction are forces on the car, +
    forward.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**PART_ON_SUPPORT, "heatPort": HEAT_PORT}

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        active = b.torque(speed, input=b.input("F", "force"))
        b.output("F", "force", OUT_TORQUE, index=active)
        b.output("F_work", "energy", OUT_TORQUE_WORK, index=active)
        hold = b.friction(speed, source=CAPACITY, source_index=b.input("F_hold", "force"))
        b.output("F_friction", "force", OUT_FRICTION, index=hold)
        b.output("F_hold", "force", OUT_CAPACITY, index=hold)
        b.output("mode", "1", OUT_MODE, index=hold)
        b.output("heat", "energy", OUT_FRICTION_HEAT, index=hold)
        b.output("lossPower", "power", OUT_FRICTION_POWER, index=hold)
        b.heat("heatPort", HEAT_OF_FRICTION, hold)
