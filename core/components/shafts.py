"""Rotating bodies and rigid joints: housing, inertia, disc; and the sliding mass.

phi, w, a: angle, speed, acceleration of a flange, + in the sense of the axis. After Modelica.Mechanics.Rotational.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import TWO_SHAFTS, OfMotion, Sliding, start_position, start_speed
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import ANY, OPEN, Flange
from torqueloop.core.describe.motion import TRANSLATION
from torqueloop.core.describe.params import param, shared

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class FixedLaw(OfMotion):
    """A place that does not move."""

    def contribute(self, b: Builder) -> None:
        b.ground("flange", self.value("{phi}0"))


def place(what: str) -> Any:
    """Parameter: where that place is."""
    return shared(f"{what} in the housing", "angle", 0.0)


@dataclass(frozen=True, kw_only=True)
class BodyLaw(OfMotion):
    """A rigid body with its start values; without inertia a rigid joint."""

    #: the flange whose motion is that of the body
    middle: ClassVar[str] = "flange_a"

    def join(self, b: Builder) -> None:
        """The other flanges are fixed to the middle."""
        b.join("flange_a", "flange_b")

    def contribute(self, b: Builder) -> None:
        body = b.w(self.middle)
        self.join(b)
        inertia = self.value("{J}")
        if inertia > 0.0:
            b.inertia(self.middle, inertia)
        b.motion_outputs(body, self.motion.domain)
        self.start(b, "phi", body, "{phi}0")
        self.start(b, "w", body, "{w}0")


@dataclass(frozen=True, kw_only=True)
class JointLaw(OfMotion):
    """Two flanges at a fixed distance."""

    #: the parameter that says which
    distance: ClassVar[str]

    def contribute(self, b: Builder) -> None:
        b.join("flange_a", "flange_b", self.value(self.distance))
        b.motion_outputs(b.w("flange_a"), self.motion.domain)


@dataclass(frozen=True, kw_only=True)
class Fixed(FixedLaw):
    """A flange fixed in the housing: phi = phi0, w = 0. Takes any torque (in a translational driveline: any force)."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange": Flange(domain=ANY)}

    phi0: float = place("angle (position)")


@dataclass(frozen=True, kw_only=True)
class Inertia(BodyLaw):
    """A rigid shaft: phi_a = phi_b = phi, J*a = sum of the torques on it. J = 0 is a rigid joint."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": OPEN, "flange_b": OPEN}

    J: float = param("moment of inertia", "inertia", low=0.0)
    phi0: float | None = start_position()
    w0: float | None = start_speed()


@dataclass(frozen=True, kw_only=True)
class Disc(JointLaw):
    """A rigid joint without inertia, turned by a fixed angle: phi_b = phi_a + deltaPhi, w_b = w_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS
    distance: ClassVar[str] = "deltaPhi"

    deltaPhi: Fraction = param("angle of flange_b relative to flange_a", "angle", Fraction(0), form="exact")


#: of a body that slides, which has a length
OF_A_MASS = {"flange_a": TRANSLATION.open, "flange_b": TRANSLATION.open, "centre": TRANSLATION.open}


@dataclass(frozen=True, kw_only=True)
class LongBody(Sliding, BodyLaw):
    """A body that slides: its flanges are L/2 before and behind its centre."""

    middle: ClassVar[str] = "centre"

    def join(self, b: Builder) -> None:
        half = self.value("L") / 2
        b.join("centre", "flange_a", -half)
        b.join("centre", "flange_b", half)


def length() -> Any:
    """Parameter: how long such a body is."""
    return param("length between the flanges", "length", Fraction(0), low=0.0, form="exact")


@dataclass(frozen=True, kw_only=True)
class Mass(LongBody):
    """A sliding mass of length L: s_b = s_a + L, s is its centre; m*a = sum of the forces on it."""

    flanges: ClassVar[Mapping[str, Flange]] = OF_A_MASS

    m: float = param("mass", "mass", low=0.0)
    L: Fraction = length()
    s0: float | None = start_position(" of the centre")
    v0: float | None = start_speed()
