"""What the road and the air do to a car."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.base import Component, param
from torqueloop.core.components.sources import TRANSLATIONAL_FLANGES
from torqueloop.core.vocabulary import (
    CAPACITY,
    CONSTANT,
    OUT_CAPACITY,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_MODE,
    OUT_POLY,
    OUT_POLY_WORK,
    OUT_TORQUE,
    OUT_TORQUE_WORK,
)

if TYPE_CHECKING:
    from torqueloop.core.builder import Builder

#: standard gravity, m/s2 (CGPM 1901)
GRAVITY = 9.80665


@dataclass(frozen=True, kw_only=True)
class CarResistance(Component):
    """Driving resistance f0*sign(v) + f1*v + f2*v*|v| against the motion, and the slope force -m*g*sin(slope).

    All its force outputs are forces on the car, + forward.

    f0 sticks exactly at standstill (a car does not creep on a slope that its rolling resistance holds). `m` is only
    used for the slope; the mass itself is a Mass. With m given there is an input `grade` (sine of the slope angle,
    + uphill) that adds to the constant `grade`.
    """

    flanges: ClassVar = TRANSLATIONAL_FLANGES

    f0: float = param("rolling resistance", "force", 0.0, low=0.0)
    f1: float = param("resistance proportional to speed", "damping", 0.0, low=0.0)
    f2: float = param("air resistance 0.5*rho*cw*A", "quadratic_damping", 0.0, low=0.0)
    m: float | None = param("mass of the car, for the slope force", "mass", None, low=0.0, above=True)
    grade: float = param("sine of the slope angle, + uphill", default=0.0, low=-1.0, high=1.0)

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        if self.f0 > 0.0:
            rolling = b.friction(speed, source=CONSTANT, gain=self.f0)
            b.output("f_rolling", "force", OUT_FRICTION, index=rolling)
            b.output("mode", "1", OUT_MODE, index=rolling)
            b.output("heat", "energy", OUT_FRICTION_HEAT, index=rolling)
        air = b.polynomial(speed, k1=-self.f1, k3=-self.f2)
        b.output("f", "force", OUT_POLY, index=air)
        b.output("work", "energy", OUT_POLY_WORK, index=air)
        if self.m is not None:
            weight = self.m * GRAVITY
            slope = b.torque(speed, input=b.input("grade", "1"), gain=-weight, const=-weight * self.grade)
            b.output("f_slope", "force", OUT_TORQUE, index=slope)
            b.output("slope_work", "energy", OUT_TORQUE_WORK, index=slope)


@dataclass(frozen=True, kw_only=True)
class RoadLoad(Component):
    """The road as seen by an external vehicle model: active force and holding capacity are inputs.

    F [N, + drives forward]: air, slope. F_hold [N, >= 0]: capacity of brakes and rolling resistance, acting as dry
    friction: it opposes the motion and holds the car at standstill. Outputs F and F_friction are forces on the car, +
    forward.
    """

    flanges: ClassVar = TRANSLATIONAL_FLANGES

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
