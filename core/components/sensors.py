"""Sensors: ideal, without inertia, friction or delay; what they measure is an output.

Absolute sensors look at one flange, relative ones at flange_b minus flange_a. TorqueSensor, PowerSensor and MultiSensor
sit in a shaft: phi_a = phi_b as a constraint; tau is the torque that goes through it, + from flange_a to flange_b (the
torque the left side exerts on flange_a), power = tau*w. Names with `Translational` in front measure s, v, a, f.
After Modelica.Mechanics.Rotational.Sensors and Translational.Sensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.of_motion import ONE_PART, ONE_SHAFT, TWO_PARTS, TWO_SHAFTS, OfMotion, Sliding
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import (
    OUT_ACCELERATION,
    OUT_ANGLE,
    OUT_REACTION,
    OUT_REACTION_POWER,
    OUT_SPEED,
)
from torqueloop.core.describe.motion import OF_A_PART

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

KINDS_OF_MOTION = (OUT_ANGLE, OUT_SPEED, OUT_ACCELERATION)


class OrderOfMotion(OfMotion):
    """Which quantity of a motion is measured."""

    #: 0: position, 1: speed, 2: acceleration
    order: ClassVar[int]


class AbsoluteLaw(OrderOfMotion):
    """Motion of one flange."""

    def contribute(self, b: Builder) -> None:
        short, dimension = OF_A_PART[self.order]
        kind = KINDS_OF_MOTION[self.order]
        b.output(self.motion.text(short), self.motion.dimension(dimension), kind, form=b.w("flange"))


class RelativeLaw(OrderOfMotion):
    """Motion of flange_b against flange_a."""

    def contribute(self, b: Builder) -> None:
        short, dimension = OF_A_PART[self.order]
        form = b.w("flange_b") - b.w("flange_a")
        kind = KINDS_OF_MOTION[self.order]
        b.output(self.motion.text(short) + "_rel", self.motion.dimension(dimension), kind, form=form)


class ThroughLaw(OfMotion):
    """A rigid joint whose torque is an output. lambda acts as +lambda on side a: tau = -lambda."""

    def torque(self, b: Builder) -> int:
        """The output; its reaction."""
        torque = b.reaction(b.constraint(b.w("flange_a") - b.w("flange_b")), gain=-1.0)
        b.output(self.motion.text("{tau}"), self.motion.dimension("torque"), OUT_REACTION, index=torque)
        return torque

    def contribute(self, b: Builder) -> None:
        self.torque(b)


class PowerLaw(ThroughLaw):
    """The same with speed and power."""

    def contribute(self, b: Builder) -> None:
        torque, w = self.torque(b), b.w("flange_a")
        b.output(self.motion.text("{w}"), self.motion.dimension("angular_velocity"), OUT_SPEED, form=w)
        b.output("power", "power", OUT_REACTION_POWER, form=w, index=torque)


@dataclass(frozen=True, kw_only=True)
class AngleSensor(AbsoluteLaw):
    """Output phi: angle of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT
    order: ClassVar[int] = 0


@dataclass(frozen=True, kw_only=True)
class SpeedSensor(AbsoluteLaw):
    """Output w: speed of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT
    order: ClassVar[int] = 1


@dataclass(frozen=True, kw_only=True)
class AccSensor(AbsoluteLaw):
    """Output a: acceleration of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT
    order: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class RelAngleSensor(RelativeLaw):
    """Output phi_rel = phi_b - phi_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS
    order: ClassVar[int] = 0


@dataclass(frozen=True, kw_only=True)
class RelSpeedSensor(RelativeLaw):
    """Output w_rel = w_b - w_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS
    order: ClassVar[int] = 1


@dataclass(frozen=True, kw_only=True)
class RelAccSensor(RelativeLaw):
    """Output a_rel = a_b - a_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS
    order: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class TorqueSensor(ThroughLaw):
    """Output tau: torque that goes through the sensor from flange_a to flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS


@dataclass(frozen=True, kw_only=True)
class PowerSensor(PowerLaw):
    """Output power: tau*w, what goes from flange_a to flange_b; and its factors tau and w."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS


@dataclass(frozen=True, kw_only=True)
class MultiSensor(PowerSensor):
    """Speed w and torque tau of a shaft, and the power tau*w that goes from flange_a to flange_b."""


@dataclass(frozen=True, kw_only=True)
class PositionSensor(Sliding, AbsoluteLaw):
    """Output s: position of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART
    order: ClassVar[int] = 0


@dataclass(frozen=True, kw_only=True)
class TranslationalSpeedSensor(Sliding, AbsoluteLaw):
    """Output v: speed of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART
    order: ClassVar[int] = 1


@dataclass(frozen=True, kw_only=True)
class TranslationalAccSensor(Sliding, AbsoluteLaw):
    """Output a: acceleration of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART
    order: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class RelPositionSensor(Sliding, RelativeLaw):
    """Output s_rel = s_b - s_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS
    order: ClassVar[int] = 0


@dataclass(frozen=True, kw_only=True)
class TranslationalRelSpeedSensor(Sliding, RelativeLaw):
    """Output v_rel = v_b - v_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS
    order: ClassVar[int] = 1


@dataclass(frozen=True, kw_only=True)
class TranslationalRelAccSensor(Sliding, RelativeLaw):
    """Output a_rel = a_b - a_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS
    order: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class ForceSensor(Sliding, ThroughLaw):
    """Output f: force that goes through the sensor from flange_a to flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS


@dataclass(frozen=True, kw_only=True)
class TranslationalPowerSensor(Sliding, PowerLaw):
    """Output power: f*v, what goes from flange_a to flange_b; and its factors f and v."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS


@dataclass(frozen=True, kw_only=True)
class TranslationalMultiSensor(TranslationalPowerSensor):
    """Speed v and force f of a rod, and the power f*v that goes from flange_a to flange_b."""
