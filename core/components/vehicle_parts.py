"""A car as a mass: with the resistance of its coast-down curve, or with wheels, air drag, rolling resistance, slope."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.laws import sign
from torqueloop.core.components.road import GRAVITY, driving_resistance
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, OPEN, TRANSLATIONAL, Flange
from torqueloop.core.describe.kernel_numbers import HEAT_OF_PORT, OUT_POLY, OUT_POLY_WORK, OUT_PORT, OUT_PORT_WORK
from torqueloop.core.describe.params import param, require
from torqueloop.core.describe.tables import Table2D
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class CarCoastDown(Component):
    """m*a = f_drive - (f0*sign(v) + f1*v + f2*v*|v|) - m*g*grade: a lumped car with its coast-down polynomial.

    Otter, Dempsey, Schlegel 2000: the polynomial of a coast-down test holds all resistances (air, rolling, losses of
    transmission and bearings); do not model them a second time. m must include the rotating parts that are not part of
    the driveline. f0 sticks exactly at standstill. `grade`: sine of the slope, + uphill, a constant plus the input.
    All outputs of forces are forces on the car, + forward. f1 may be negative (fitted polynomials have it): valid where
    the sum of the three is not negative.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange": Flange(domain=TRANSLATIONAL, required=False),
        "heatPort": HEAT_PORT,
    }

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


#: steepest slope an input may give, as tan(angle): 45 degrees; beyond it counts as this one
STEEPEST = 1.0
#: nodes of sin and cos of the slope between 0 and STEEPEST: the polygon is within 1/8/NODES^2 = 5e-7 of them
NODES = 500


@dataclass(frozen=True, kw_only=True)
class Vehicle(Component):
    """A car with wheels: m*a + J*a/R^2 = tau/R + f - drag - rolling - grade; v = R*w, the wheels do not slip.

    drag = Cd*A*rho/2*(v - v_air)*|v - v_air|, rolling = Cr*m*g*cos(alpha)*S(v), grade = m*g*sin(alpha). S is sign(v)
    made continuous: v/vReg for |v| < vReg; so a car on a slope creeps at a part of vReg (CarResistance sticks instead).
    The slope is tan(alpha), + uphill: inclinationConstant, or with useInclinationInput an input `inclination` (up to 45
    degrees); Cr is CrConstant, or with useCrInput an input `cr` (0 to 1). The air is at rest unless its flange is
    joined to something that moves (TranslationalSpeed: wind, + in the sense of v). A trailer hangs on flangeT, and is a
    Vehicle whose flangeR is open. Outputs of forces are forces on the car, + forward. After
    Modelica.Mechanics.Translational.Components.Vehicle.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flangeR": OPEN,
        "flangeT": Flange(domain=TRANSLATIONAL, required=False),
        "air": Flange(domain=TRANSLATIONAL, required=False, support=True),
        "heatPort": HEAT_PORT,
    }

    m: float = param("total mass", "mass", low=0.0, above=True)
    J: float = param("inertia of all wheels", "inertia", 0.0, low=0.0)
    R: Fraction = param("wheel radius", "length", low=0.0, above=True, form="exact")
    A: float = param("cross section", "area", 1.0, low=0.0)
    Cd: float = param("drag coefficient", default=0.5, low=0.0)
    rho: float = param("density of the air", "density", 1.2, low=0.0)
    CrConstant: float = param("rolling resistance coefficient", default=0.015, low=0.0)
    vReg: float = param("speed below which rolling resistance goes to 0", "velocity", 1e-3, low=0.0, above=True)
    inclinationConstant: float = param("tan of the slope angle, + uphill", default=0.0)
    useCrInput: bool = param("is the rolling resistance coefficient an input?", default=False, form="flag")
    useInclinationInput: bool = param("is the slope an input?", default=False, form="flag")
    g: float = param("gravity", "acceleration", GRAVITY, low=0.0)
    s0: float | None = param("start position", "length", None)
    v0: float | None = param("start speed", "velocity", None)

    def check(self) -> None:
        require(
            not (self.useCrInput and self.useInclinationInput),
            "{key} = {value}: the slope is an input already, and a product of two inputs has no map; give CrConstant",
            key="useCrInput", value=True, allowed="false",
        )  # fmt: skip

    def contribute(self, b: Builder) -> None:
        speed = b.w("flangeT")
        b.inertia("flangeT", self.m)
        if self.J > 0.0:
            b.inertia("flangeR", self.J)
        b.constraint(speed - self.R * b.w("flangeR"))
        b.motion_outputs(speed, TRANSLATIONAL)
        drag = b.polynomial(speed - b.w("air"), k3=-0.5 * self.Cd * self.A * self.rho)
        b.output("f_drag", "force", OUT_POLY, index=drag)
        b.output("work_drag", "energy", OUT_POLY_WORK, index=drag)
        b.heat("heatPort", HEAT_OF_PORT, ("polynomial", drag))
        self._weight(b, speed)
        b.initial("phi", speed, self.s0, "s0")
        b.initial("w", speed, self.v0, "v0")

    def _weight(self, b: Builder, speed: Form) -> None:
        """Rolling resistance and grade."""
        weight, alpha = self.m * self.g, math.atan(self.inclinationConstant)
        ends = (-self.vReg, self.vReg)
        if self.useInclinationInput:
            slope = ("input", b.input("inclination", "1"))
            rolling = ("curve", b.curve_force(speed, tab2=_over_slope(ends, (-1.0, 1.0), math.cos), arg=slope,
                                              gain=-self.CrConstant * weight))  # fmt: skip
            grade = ("curve", b.curve_force(speed, tab2=_over_slope(ends, (1.0, 1.0), math.sin), arg=slope,
                                            gain=-weight))  # fmt: skip
            forces = {"roll": rolling, "grade": grade}
        else:
            if self.useCrInput:
                both = Table2D(ends, (0.0, 1.0), ((0.0, -1.0), (0.0, 1.0)))
                number = b.curve_force(speed, tab2=both, arg=("input", b.input("cr", "1")),
                                       gain=-weight * math.cos(alpha))  # fmt: skip
            else:
                number = b.curve_force(speed, tab1=sign("Linear", self.vReg),
                                       gain=-self.CrConstant * weight * math.cos(alpha))  # fmt: skip
            constant = b.torque(speed, const=-weight * math.sin(alpha))
            forces = {"roll": ("curve", number), "grade": ("torque", constant)}
        for name, port in forces.items():
            b.output(f"f_{name}", "force", OUT_PORT, port=port)
            b.output(f"work_{name}", "energy", OUT_PORT_WORK, port=port)
        b.heat("heatPort", HEAT_OF_PORT, forces["roll"])


def _over_slope(speeds: tuple[float, float], values: tuple[float, float], law: Callable[[float], float]) -> Table2D:
    """value(speed)*law(alpha) over the speed and tan(alpha)."""
    tangents = tuple(STEEPEST * k / NODES for k in range(-NODES, NODES + 1))
    return Table2D(speeds, tangents, tuple(tuple(v * law(math.atan(x)) for x in tangents) for v in values))
