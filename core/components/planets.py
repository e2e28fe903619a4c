"""Planetary trains from two building blocks: two outer wheels on one carrier, and a planet inside a ring.

Otter, Dempsey, Schlegel 2000, table 1. With tooth numbers z (counted, so exact) and no inertia, no losses:

    planet-planet   (z1 + z2)*w_0 = z1*w_1 + z2*w_2      torques t_1 : t_2 : t_0 = z1 : z2 : -(z1 + z2)
    planet-ring     (z2 - z1)*w_0 = z2*w_2 - z1*w_1      torques t_1 : t_2 : t_0 = -z1 : z2 : -(z2 - z1)

w_0 is the speed of the carrier; t_k is the torque the set puts on its shaft k, apart from one common factor.
Valid for parallel axes. The angles hold as the speeds do. z may be any positive number (rolling radii in one unit):
only quotients count.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import OPEN, Flange
from torqueloop.core.describe.kernel_numbers import OUT_SPEED
from torqueloop.core.describe.params import param, require
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


def planet_planet(carrier: Form, first: Form, second: Form, z1: Fraction, z2: Fraction) -> Form:
    """The form that is 0 for two wheels with outer teeth in mesh."""
    return z1 * first + z2 * second - (z1 + z2) * carrier


def planet_ring(carrier: Form, planet: Form, ring: Form, z1: Fraction, z2: Fraction) -> Form:
    """The form that is 0 for a wheel (z1) in mesh with the inner teeth of a ring (z2)."""
    return z2 * ring - z1 * planet - (z2 - z1) * carrier


def teeth(doc: str) -> Any:
    """A tooth number or, in one unit for all wheels of the set, a rolling radius."""
    return param(doc, form="exact", low=0.0, above=True)


def inside(planet: str, z1: Fraction, ring: str, z2: Fraction) -> None:
    """A planet must be smaller than the ring it turns in."""
    allowed = f"> {planet} = {float(z1):g}"
    require(z2 > z1, "{key} = {value} is out of range", key=ring, value=float(z2), allowed=allowed)


@dataclass(frozen=True, kw_only=True)
class PlanetPlanet(Component):
    """Two wheels with outer teeth in mesh on one carrier: (z1 + z2)*w_carrier = z1*w_planet1 + z2*w_planet2."""

    flanges: ClassVar[Mapping[str, Flange]] = {"carrier": Flange(), "planet1": Flange(), "planet2": Flange()}

    z1: Fraction = teeth("teeth of wheel 1")
    z2: Fraction = teeth("teeth of wheel 2")

    def contribute(self, b: Builder) -> None:
        b.constraint(planet_planet(b.w("carrier"), b.w("planet1"), b.w("planet2"), self.z1, self.z2))


@dataclass(frozen=True, kw_only=True)
class PlanetRing(Component):
    """A planet inside a ring, on one carrier: (z2 - z1)*w_carrier = z2*w_ring - z1*w_planet."""

    flanges: ClassVar[Mapping[str, Flange]] = {"carrier": Flange(), "planet": Flange(), "ring": Flange()}

    z1: Fraction = teeth("teeth of the planet")
    z2: Fraction = teeth("teeth of the ring")

    def check(self) -> None:
        inside("z1", self.z1, "z2", self.z2)

    def contribute(self, b: Builder) -> None:
        b.constraint(planet_ring(b.w("carrier"), b.w("planet"), b.w("ring"), self.z1, self.z2))


@dataclass(frozen=True, kw_only=True)
class Planetary(Component):
    """Sun, carrier and ring with a stepped planet: its wheel z_planet_sun meets the sun, z_planet_ring the ring.

    A planet-planet and a planet-ring set that share the planet. Between the shafts that gives, as IdealPlanetary with

        ratio = (z_planet_sun*z_ring)/(z_sun*z_planet_ring),   (1 + ratio)*w_carrier = w_sun + ratio*w_ring

    With equal planet wheels (the default) it is z_ring/z_sun. J_planet: inertia of all planets together about their own
    axes (their mass on the carrier's radius belongs to the carrier). The flange `planet` may stay open.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"sun": Flange(), "carrier": Flange(), "ring": Flange(), "planet": OPEN}

    z_sun: Fraction = teeth("teeth of the sun")
    z_planet_sun: Fraction = teeth("teeth of the planet's wheel that meets the sun")
    z_planet_ring: Fraction | None = param(
        "teeth of the planet's wheel that meets the ring, default: z_planet_sun",
        default=None, form="exact", low=0.0, above=True,
    )  # fmt: skip
    z_ring: Fraction = teeth("teeth of the ring")
    J_planet: float = param("inertia of all planets about their own axes", "inertia", 0.0, low=0.0)

    def check(self) -> None:
        inside("z_planet_ring", self.outer_wheel, "z_ring", self.z_ring)

    @property
    def outer_wheel(self) -> Fraction:
        """Teeth that meet the ring."""
        return self.z_planet_sun if self.z_planet_ring is None else self.z_planet_ring

    @property
    def i(self) -> Fraction:
        """The ratio of the IdealPlanetary with the same shaft speeds."""
        return self.z_planet_sun * self.z_ring / (self.z_sun * self.outer_wheel)

    def contribute(self, b: Builder) -> None:
        carrier, planet = b.w("carrier"), b.w("planet")
        b.constraint(planet_planet(carrier, b.w("sun"), planet, self.z_sun, self.z_planet_sun))
        b.constraint(planet_ring(carrier, planet, b.w("ring"), self.outer_wheel, self.z_ring))
        if self.J_planet > 0.0:
            b.inertia("planet", self.J_planet)
        b.output("w_planet", "angular_velocity", OUT_SPEED, form=planet)


@dataclass(frozen=True, kw_only=True)
class Ravigneaux(Component):
    """Two suns, short and long planets, one ring, one carrier: three planet-planet sets and one planet-ring set.

        sun1 - planet1 (short) - planet2 (long) - ring         w_sun1 - w_c = +z_ring/z_sun1 * (w_ring - w_c)
        sun2                   - planet2 (long) - ring         w_sun2 - w_c = -z_ring/z_sun2 * (w_ring - w_c)

    The tooth numbers of the planets only set the planets' own speeds, unless the long planet is stepped: its wheel
    z_planet2_sun meets sun2 (default: z_planet2). sun1 is usually the smaller one. The planets' flanges may stay open.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "sun1": Flange(), "sun2": Flange(), "carrier": Flange(), "ring": Flange(), "planet1": OPEN, "planet2": OPEN,
    }  # fmt: skip

    z_sun1: Fraction = teeth("teeth of the sun that meets the short planets")
    z_sun2: Fraction = teeth("teeth of the sun that meets the long planets")
    z_planet1: Fraction = teeth("teeth of the short planets")
    z_planet2: Fraction = teeth("teeth of the long planets")
    z_planet2_sun: Fraction | None = param(
        "teeth of the long planets' wheel that meets sun2, default: z_planet2",
        default=None, form="exact", low=0.0, above=True,
    )  # fmt: skip
    z_ring: Fraction = teeth("teeth of the ring")
    J_planet1: float = param("inertia of all short planets about their own axes", "inertia", 0.0, low=0.0)
    J_planet2: float = param("inertia of all long planets about their own axes", "inertia", 0.0, low=0.0)

    def check(self) -> None:
        inside("z_planet2", self.z_planet2, "z_ring", self.z_ring)

    def contribute(self, b: Builder) -> None:
        carrier, short, long = b.w("carrier"), b.w("planet1"), b.w("planet2")
        wheel2 = self.z_planet2 if self.z_planet2_sun is None else self.z_planet2_sun
        b.constraint(planet_planet(carrier, b.w("sun1"), short, self.z_sun1, self.z_planet1))
        b.constraint(planet_planet(carrier, short, long, self.z_planet1, self.z_planet2))
        b.constraint(planet_planet(carrier, b.w("sun2"), long, self.z_sun2, wheel2))
        b.constraint(planet_ring(carrier, long, b.w("ring"), self.z_planet2, self.z_ring))
        for flange, J in (("planet1", self.J_planet1), ("planet2", self.J_planet2)):
            if J > 0.0:
                b.inertia(flange, J)
            b.output(f"w_{flange}", "angular_velocity", OUT_SPEED, form=b.w(flange))
