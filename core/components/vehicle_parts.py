"""A car as a mass with the resistance of its coast-down curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.base import HEAT_PORT, TRANSLATIONAL, Component, Flange, param
from torqueloop.core.components.road import driving_resistance

if TYPE_CHECKING:
    from torqueloop.core.builder import Builder


@dataclass(frozen=True, kw_only=True)
class CarCoastDown(Component):
    """m*a = f_drive - (f0*sign(v) + f1*v + f2*v*|v|) - m*g*grade: a lumped car with its coast-down polynomial.

    Otter, Dempsey, Schlegel 2000: the polynomial of a coast-down test holds all resistances (air, rolling, losses of
    transmission and bearings); do not model them a second time. m must include the rotating parts that are not part of
    the driveline. f0 sticks exactly at standstill. `grade`: sine of the slope, + uphill, a constant plus the input.
    All outputs of forces are forces on the car, + forward. f1 may be negative (fitted polynomials have it): valid where
    the sum of the three is not negative.
    """

    flanges: ClassVar = {"flange": Flange(domain=TRANSLATIONAL, required=False), "heatPort": HEAT_PORT}

    m: float = param("mass of the car", "mass", low=0.0, above=True)
    f0: float = param("resistance at standstill", "force", 0.0, low=0.0)
    f1: float = param("resistance proportional to speed", "damping", 0.0)
    f2: float = param("resistance proportional to its square", "quadratic_damping", 0.0, low=0.0)
    grade: float = param("sine of the slope angle, + uphill", default=0.0, low=-1.0, high=1.0)
    s0: float | None = param("start position", "length", None)
    v0: float | None = param("start speed", "velocity", None)

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange")
        b.inertia("flange", self.m)
        b.motion_outputs(speed, TRANSLATIONAL)
        driving_resistance(b, speed, f0=self.f0, f1=self.f1, f2=self.f2, m=self.m, grade=self.grade)
        b.initial("phi", speed, self.s0, "s0")
        b.initial("w", speed, self.v0, "v0")
