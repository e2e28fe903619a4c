"""Rotating bodies and rigid joints: housing, inertia, disc; and the sliding mass.

phi, w, a: angle, speed, acceleration of a flange, + in the sense of the axis. After Modelica.Mechanics.Rotational.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import ANY, OPEN, TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class Fixed(Component):
    """A place in the housing: phi = phi0, w = 0. Takes any torque (in a translational driveline: any force)."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange": Flange(domain=ANY)}

    phi0: float = param("angle (position) in the housing", "angle", 0.0)

    def contribute(self, b: Builder) -> None:
        b.ground("flange", self.phi0)


@dataclass(frozen=True, kw_only=True)
class Inertia(Component):
    """A rigid shaft: phi_a = phi_b = phi, J*a = sum of the torques on it. J = 0 is a rigid joint."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": OPEN, "flange_b": OPEN}

    J: float = param("moment of inertia", "inertia", low=0.0)
    phi0: float | None = param("start angle", "angle", None)
    w0: float | None = param("start speed", "angular_velocity", None)

    def contribute(self, b: Builder) -> None:
        shaft = b.w("flange_a")
        b.join("flange_a", "flange_b")
        if self.J > 0.0:
            b.inertia("flange_a", self.J)
        b.motion_outputs(shaft)
        b.initial("phi", shaft, self.phi0, "phi0")
        b.initial("w", shaft, self.w0, "w0")


@dataclass(frozen=True, kw_only=True)
class Disc(Component):
    """A rigid joint without inertia, turned by a fixed angle: phi_b = phi_a + deltaPhi, w_b = w_a."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": Flange()}

    deltaPhi: Fraction = param("angle of flange_b relative to flange_a", "angle", Fraction(0), form="exact")

    def contribute(self, b: Builder) -> None:
        b.join("flange_a", "flange_b", self.deltaPhi)
        b.motion_outputs(b.w("flange_a"))


@dataclass(frozen=True, kw_only=True)
class Mass(Component):
    """A sliding mass of length L: s_b = s_a + L, s is its centre; m*a = sum of the forces on it."""

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange_a": Flange(domain=TRANSLATIONAL, required=False),
        "flange_b": Flange(domain=TRANSLATIONAL, required=False),
        "centre": Flange(domain=TRANSLATIONAL, required=False),
    }

    m: float = param("mass", "mass", low=0.0)
    L: Fraction = param("length between the flanges", "length", Fraction(0), low=0.0, form="exact")
    s0: float | None = param("start position of the centre", "length", None)
    v0: float | None = param("start speed", "velocity", None)

    def contribute(self, b: Builder) -> None:
        centre = b.w("centre")
        b.join("centre", "flange_a", -self.L / 2)
        b.join("centre", "flange_b", self.L / 2)
        if self.m > 0.0:
            b.inertia("centre", self.m)
        b.motion_outputs(centre, TRANSLATIONAL)
        b.initial("phi", centre, self.s0, "s0")
        b.initial("w", centre, self.v0, "v0")
