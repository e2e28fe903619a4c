"""Sliding parts: housing, rod, springs and dampers, contact, brake, support friction. Mass is in shafts.py.

s, v, f in place of phi, w, tau; s_rel = s_b - s_a, v_rel = v_b - v_a. Laws, signs and heat are those of the rotational
components of the same name. A kind whose name exists for rotation too has `Translational` in front
(TranslationalSpring); names that say it themselves (Mass, Rod, ElastoGap, Force ...) are those of
Modelica.Mechanics.Translational, the source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.backlash import contact
from torqueloop.core.components.compliances import DamperLaw, SpringDamperLaw, SpringLaw, relaxed
from torqueloop.core.components.friction import BearingLaw, BrakeLaw, breakaway, over_speed
from torqueloop.core.components.of_motion import ONE_PART, PART_IN_SUPPORT, TWO_PARTS, Sliding
from torqueloop.core.components.shafts import FixedLaw, JointLaw, place
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import ELASTO_BACKLASH
from torqueloop.core.describe.params import curve, param

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class TranslationalFixed(Sliding, FixedLaw):
    """A flange fixed in the housing: s = s0, v = 0. Takes any force."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART

    s0: float = place("position")


@dataclass(frozen=True, kw_only=True)
class Rod(Sliding, JointLaw):
    """A rigid joint of length L without mass: s_b = s_a + L, v_b = v_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS
    distance: ClassVar[str] = "L"

    L: Fraction = param("length between the flanges", "length", form="exact")


@dataclass(frozen=True, kw_only=True)
class TranslationalSpring(Sliding, SpringLaw):
    """Linear spring: f = c*(s_rel - s_rel0), s_rel = s_b - s_a; -f on flange_b, +f on flange_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    s_rel0: float = relaxed()


@dataclass(frozen=True, kw_only=True)
class TranslationalDamper(Sliding, DamperLaw):
    """Linear damper: f = d*v_rel, v_rel = v_b - v_a; -f on flange_b. Loss power d*v_rel^2."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_PARTS, "heatPort": HEAT_PORT}


@dataclass(frozen=True, kw_only=True)
class TranslationalSpringDamper(Sliding, SpringDamperLaw):
    """Spring and damper in parallel: f = c*(s_rel - s_rel0) + d*v_rel; -f on flange_b. Loss power d*v_rel^2."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_PARTS, "heatPort": HEAT_PORT}

    s_rel0: float = relaxed()


@dataclass(frozen=True, kw_only=True)
class ElastoGap(Sliding):
    """A spring-damper that can lift off: no force for s_rel > s_rel0, pushing only below (a buffer, a stop).

    s_rel < s_rel0: fc = -c*|s_rel - s_rel0|^n, f = fc + d*v_rel with the damping force limited to |fc|: 2*fc <= f <= 0;
    -f acts on flange_b, +f on flange_a. n = 1.5: two balls (Hertz); c is in N/m^n. The law is solved for to rounding in
    every step. With n > 1, order 2 keeps elastic energy to rounding, order 4 to 1e-6 of the energy of a hit each step
    (its error falls with h^2.5 to h^4: the touch is no smooth function for 1 < n < 2).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_PARTS, "heatPort": HEAT_PORT}

    c: float = param("stiffness", "stiffness", low=0.0, above=True)
    d: float = param("damping", "damping", low=0.0)
    s_rel0: float = param("distance s_b - s_a at which the parts touch", "length", 0.0)
    n: float = param("exponent of the spring force", default=1.0, low=1.0)

    def contribute(self, b: Builder) -> None:
        contact(b, self.between(b), self.c, self.d, self.s_rel0, math.inf, ELASTO_BACKLASH, self.motion, n=self.n)


@dataclass(frozen=True, kw_only=True)
class TranslationalBrake(Sliding, BrakeLaw):
    """Friction between a rod (s_a = s_b) and the support: |f| = cgeo*mue_pos(|v|)*fn, fn = fn_max*f_normalized.

    Stuck up to peak*cgeo*mue_pos(0)*fn; output f > 0 against v > 0.
    """

    flanges: ClassVar[Mapping[str, Flange]] = PART_IN_SUPPORT

    cgeo: float = param("number of friction faces", default=1.0, low=0.0, above=True)
    mue_pos: Any = curve("friction coefficient over |v|", "velocity", "1", low=0.0)


@dataclass(frozen=True, kw_only=True)
class SupportFriction(Sliding, BearingLaw):
    """Always pressed: sliding force f_pos(|v|) against v, breakaway force peak*f_pos(0), between rod and support."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_IN_SUPPORT

    f_pos: Any = over_speed()
    peak: float = breakaway()
