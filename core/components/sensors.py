"""Sensors: ideal, without inertia, friction or delay; what they measure is an output.

Absolute sensors look at one flange, relative ones at flange_b minus flange_a. TorqueSensor, PowerSensor and MultiSensor
sit in a shaft: phi_a = phi_b as a constraint; tau is the torque that goes through it, + from flange_a to flange_b (the
torque the left side exerts on flange_a), power = tau*w. Names with `Translational` in front measure s, v, a, f.
After Modelica.Mechanics.Rotational.Sensors and Translational.Sensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.compliances import TWO_SHAFTS
from torqueloop.core.components.kinematic import EFFORT, MOTION
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import ROTATIONAL, TRANSLATIONAL, Flange
from torqueloop.core.describe.vocabulary import OUT_ACCELERATION, OUT_ANGLE, OUT_REACTION, OUT_REACTION_POWER, OUT_SPEED

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

ONE_SHAFT = {"flange": Flange()}
ONE_PART = {"flange": Flange(domain=TRANSLATIONAL)}
TWO_PARTS = {"flange_a": Flange(domain=TRANSLATIONAL), "flange_b": Flange(domain=TRANSLATIONAL)}
KINDS_OF_MOTION = (OUT_ANGLE, OUT_SPEED, OUT_ACCELERATION)


def _absolute(b: Builder, short: str, order: int, domain: str = ROTATIONAL) -> None:
    b.output(short, MOTION[domain][order], KINDS_OF_MOTION[order], form=b.w("flange"))


def _relative(b: Builder, short: str, order: int, domain: str = ROTATIONAL) -> None:
    form = b.w("flange_b") - b.w("flange_a")
    b.output(short, MOTION[domain][order], KINDS_OF_MOTION[order], form=form)


def _through(b: Builder, domain: str = ROTATIONAL, *, speed: str | None = None) -> None:
    """A rigid joint whose torque is an output; with `speed` also that and the power. lambda acts as +lambda on side a:
    tau = -lambda."""
    joint = b.constraint(b.w("flange_a") - b.w("flange_b"))
    short, dimension = EFFORT[domain]
    torque = b.reaction(joint, gain=-1.0)
    b.output(short, dimension, OUT_REACTION, index=torque)
    if speed is not None:
        w = b.w("flange_a")
        b.output(speed, MOTION[domain][1], OUT_SPEED, form=w)
        b.output("power", "power", OUT_REACTION_POWER, form=w, index=torque)


@dataclass(frozen=True, kw_only=True)
class AngleSensor(Component):
    """Output phi: angle of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT

    def contribute(self, b: Builder) -> None:
        _absolute(b, "phi", 0)


@dataclass(frozen=True, kw_only=True)
class SpeedSensor(Component):
    """Output w: speed of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT

    def contribute(self, b: Builder) -> None:
        _absolute(b, "w", 1)


@dataclass(frozen=True, kw_only=True)
class AccSensor(Component):
    """Output a: acceleration of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT

    def contribute(self, b: Builder) -> None:
        _absolute(b, "a", 2)


@dataclass(frozen=True, kw_only=True)
class RelAngleSensor(Component):
    """Output phi_rel = phi_b - phi_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        _relative(b, "phi_rel", 0)


@dataclass(frozen=True, kw_only=True)
class RelSpeedSensor(Component):
    """Output w_rel = w_b - w_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        _relative(b, "w_rel", 1)


@dataclass(frozen=True, kw_only=True)
class RelAccSensor(Component):
    """Output a_rel = a_b - a_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        _relative(b, "a_rel", 2)


@dataclass(frozen=True, kw_only=True)
class TorqueSensor(Component):
    """Output tau: torque that goes through the sensor from flange_a to flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        _through(b)


@dataclass(frozen=True, kw_only=True)
class PowerSensor(Component):
    """Output power: tau*w, what goes from flange_a to flange_b; and its factors tau and w."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        _through(b, speed="w")


@dataclass(frozen=True, kw_only=True)
class MultiSensor(PowerSensor):
    """Speed w and torque tau of a shaft, and the power tau*w that goes from flange_a to flange_b."""


@dataclass(frozen=True, kw_only=True)
class PositionSensor(Component):
    """Output s: position of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART

    def contribute(self, b: Builder) -> None:
        _absolute(b, "s", 0, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class TranslationalSpeedSensor(Component):
    """Output v: speed of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART

    def contribute(self, b: Builder) -> None:
        _absolute(b, "v", 1, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class TranslationalAccSensor(Component):
    """Output a: acceleration of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART

    def contribute(self, b: Builder) -> None:
        _absolute(b, "a", 2, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class RelPositionSensor(Component):
    """Output s_rel = s_b - s_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    def contribute(self, b: Builder) -> None:
        _relative(b, "s_rel", 0, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class TranslationalRelSpeedSensor(Component):
    """Output v_rel = v_b - v_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    def contribute(self, b: Builder) -> None:
        _relative(b, "v_rel", 1, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class TranslationalRelAccSensor(Component):
    """Output a_rel = a_b - a_a."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    def contribute(self, b: Builder) -> None:
        _relative(b, "a_rel", 2, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class ForceSensor(Component):
    """Output f: force that goes through the sensor from flange_a to flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    def contribute(self, b: Builder) -> None:
        _through(b, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class TranslationalPowerSensor(Component):
    """Output power: f*v, what goes from flange_a to flange_b; and its factors f and v."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    def contribute(self, b: Builder) -> None:
        _through(b, TRANSLATIONAL, speed="v")


@dataclass(frozen=True, kw_only=True)
class TranslationalMultiSensor(TranslationalPowerSensor):
    """Speed v and force f of a rod, and the power f*v that goes from flange_a to flange_b."""
