"""Ideal gears: exact rational rows between shaft speeds (and angles), no losses, no inertia, any speed.

The support takes minus the sum of the torques on the other flanges; unconnected it is the housing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import SUPPORT, TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param, require, require_given

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class IdealGear(Component):
    """phi_a = ratio*phi_b (angles relative to the support); torque on flange_b = -ratio * torque on flange_a.

    Give `ratio`, or the tooth numbers of a spur pair: ratio = -z_b/z_a (outer teeth: the sense turns round).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": Flange(), "support": SUPPORT}

    ratio: Fraction | None = param("transmission ratio phi_a/phi_b", default=None, form="exact", quantity="ratio")
    z_a: int | None = param("teeth of the wheel on flange_a", default=None, form="integer", low=1)
    z_b: int | None = param("teeth of the wheel on flange_b", default=None, form="integer", low=1)

    def check(self) -> None:
        teeth = self.z_a is not None and self.z_b is not None
        if self.z_a is not None or self.z_b is not None:
            require_given(teeth, "z_a and z_b belong together: {key} is missing", "z_a" if self.z_a is None else "z_b")
            require(self.ratio is None, "give ratio or z_a and z_b, not both", key="ratio")
        else:
            require_given(self.ratio is not None, "{key} is missing (or z_a and z_b)", "ratio")
        require(self.ratio != 0, "{key} = {value} is out of range", key="ratio", value=0, allowed="not 0")

    @property
    def i(self) -> Fraction:
        """The ratio, from wherever it was given."""
        if self.ratio is not None:
            return self.ratio
        assert self.z_a is not None and self.z_b is not None
        return Fraction(-self.z_b, self.z_a)

    def contribute(self, b: Builder) -> None:
        support = b.w("support")
        b.constraint((b.w("flange_a") - support) - self.i * (b.w("flange_b") - support))


@dataclass(frozen=True, kw_only=True)
class FinalDrive(Component):
    """Axle gear: phi_a = ratio*phi_b; flange_a is the propeller shaft, flange_b the crown wheel."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": Flange(), "support": SUPPORT}

    ratio: Fraction = param("transmission ratio phi_a/phi_b", form="exact", quantity="ratio")

    def check(self) -> None:
        require(self.ratio != 0, "{key} = {value} is out of range", key="ratio", value=0, allowed="not 0")

    def contribute(self, b: Builder) -> None:
        support = b.w("support")
        b.constraint((b.w("flange_a") - support) - self.ratio * (b.w("flange_b") - support))


@dataclass(frozen=True, kw_only=True)
class Differential(Component):
    """Bevel differential with final drive: 2*w_in/ratio = w_left + w_right (relative to the support); equal torques."""

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange_in": Flange(), "flange_left": Flange(), "flange_right": Flange(), "support": SUPPORT,
    }  # fmt: skip

    ratio: Fraction = param(
        "ratio of the final drive, w_in/mean wheel speed", default=Fraction(1), form="exact", quantity="ratio"
    )

    def check(self) -> None:
        require(self.ratio != 0, "{key} = {value} is out of range", key="ratio", value=0, allowed="not 0")

    def contribute(self, b: Builder) -> None:
        support = b.w("support")
        left, right = b.w("flange_left") - support, b.w("flange_right") - support
        b.constraint(2 / self.ratio * (b.w("flange_in") - support) - left - right)


@dataclass(frozen=True, kw_only=True)
class IdealPlanetary(Component):
    """Planetary set: (1 + ratio)*w_carrier = w_sun + ratio*w_ring.

    Torques sun : ring : carrier = 1 : ratio : -(1 + ratio). ratio = z_ring/z_sun; a plus set (two planets in series)
    has ratio = -z_ring/z_sun (`plus_set`, or a negative ratio).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"sun": Flange(), "carrier": Flange(), "ring": Flange()}

    ratio: Fraction | None = param(
        "z_ring/z_sun, negative for a plus set", default=None, form="exact", quantity="ratio"
    )
    z_sun: int | None = param("teeth of the sun", default=None, form="integer", low=1)
    z_ring: int | None = param("teeth of the ring", default=None, form="integer", low=1)
    plus_set: bool = param("two planets in series between sun and ring", default=False, form="flag")

    def check(self) -> None:
        teeth = self.z_sun is not None and self.z_ring is not None
        if self.z_sun is not None or self.z_ring is not None:
            missing = "z_sun" if self.z_sun is None else "z_ring"
            require_given(teeth, "z_sun and z_ring belong together: {key} is missing", missing)
            require(self.ratio is None, "give ratio or z_sun and z_ring, not both", key="ratio")
            assert self.z_sun is not None and self.z_ring is not None
            require(
                self.z_ring > self.z_sun,
                "{key} = {value} is out of range", key="z_ring", value=self.z_ring, allowed=f"> z_sun = {self.z_sun}",
            )  # fmt: skip
        else:
            require_given(self.ratio is not None, "{key} is missing (or z_sun and z_ring)", "ratio")
            require(
                not self.plus_set, "plus_set goes with z_sun and z_ring; a ratio carries its own sign", key="plus_set"
            )
        require(
            self.i not in (0, -1),
            "{key} = {value} is out of range", key="ratio", value=self.ratio, allowed="not 0 and not -1",
        )  # fmt: skip

    @property
    def i(self) -> Fraction:
        """The ratio, from wherever it was given."""
        if self.ratio is not None:
            return self.ratio
        assert self.z_sun is not None and self.z_ring is not None
        return Fraction(self.z_ring, self.z_sun) * (-1 if self.plus_set else 1)

    def contribute(self, b: Builder) -> None:
        b.constraint(b.w("sun") + self.i * b.w("ring") - (1 + self.i) * b.w("carrier"))


#: between a shaft and a rod, each with its support
ROTATION_TO_TRANSLATION = {
    "flangeR": Flange(), "flangeT": Flange(domain=TRANSLATIONAL),
    "supportR": SUPPORT, "supportT": Flange(domain=TRANSLATIONAL, required=False, support=True),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IdealGearR2T(Component):
    """Rack or spindle: phi = ratio*s, relative to the supports; force on flangeT = -ratio * torque on flangeR."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATION_TO_TRANSLATION

    ratio: Fraction = param("transmission ratio phi/s", "angle_per_length", form="exact")

    def check(self) -> None:
        require(self.ratio != 0, "{key} = {value} is out of range", key="ratio", value=0, allowed="not 0")

    def contribute(self, b: Builder) -> None:
        b.constraint((b.w("flangeR") - b.w("supportR")) - self.ratio * (b.w("flangeT") - b.w("supportT")))


@dataclass(frozen=True, kw_only=True)
class IdealRollingWheel(Component):
    """Rolling without slip: s = radius*phi (to the supports); torque on flangeR = -radius * force on flangeT."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATION_TO_TRANSLATION

    radius: Fraction = param("rolling radius", "length", low=0.0, above=True, form="exact")

    def contribute(self, b: Builder) -> None:
        turning = b.w("flangeR") - b.w("supportR")
        b.constraint((b.w("flangeT") - b.w("supportT")) - self.radius * turning)


@dataclass(frozen=True, kw_only=True)
class Wheel(IdealRollingWheel):
    """Rolling wheel with inertia: s = radius*phi, J about its axle."""

    J: float = param("moment of inertia of the wheels", "inertia", 0.0, low=0.0)

    def contribute(self, b: Builder) -> None:
        super().contribute(b)
        if self.J > 0.0:
            b.inertia("flangeR", self.J)
        b.motion_outputs(b.w("flangeR"))
