"""Motions forced upon a flange from outside: acceleration, speed or position as an input.

The flange follows the motion whatever torque that takes; output tau (f) is that torque, + on the flange, and its
opposite acts on the support. Motions are relative to the support.

    Accelerate           a = a_ref;  w and phi are integrated from their start values
    Speed                exact: w = w_ref.        Else a first-order filter:  a = (w_ref - w)*wc,  wc = 2*pi*f_crit
    Position             exact: phi = phi_ref.    Else a Bessel filter:  a = ((phi_ref - phi)*wc - af*w)*wc/bf,
                         wc = 2*pi*f_crit, af = 1.3617, bf = 0.6180
    Move                 phi, w, a as three inputs that must fit each other
    ConstantSpeed        w = w_fixed

Exact motions need the derivatives of their input: the inputs `w_ref'` (and `phi_ref'`, `phi_ref''`), which a simulation
fills from the signal; a jump of w_ref or phi_ref has none and is met by an impact. Inputs are SI. A rig knows signals
only as they arrive: there use the filters, or Move.

Start: the flange is where the input is at t = 0, whatever start value it has: w = w_ref (Speed), phi = phi_ref
(Position), both for exact ones; the filter of Position takes its start speed from the flange. Accelerate starts from
the values of the flange. Two motions forced upon one shaft contradict each other.
After Modelica.Mechanics.Rotational.Sources and Translational.Sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import (
    PART_ON_SUPPORT,
    SHAFT_ON_SUPPORT,
    OnSupport,
    Sliding,
    start_position,
    start_speed,
)
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import (
    DRIVEN_ACCELERATION,
    DRIVEN_POSITION,
    DRIVEN_POSITION_FILTER,
    DRIVEN_SPEED,
    DRIVEN_SPEED_FILTER,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
)
from torqueloop.core.describe.motion import OF_A_PART, Motion
from torqueloop.core.describe.params import shared
from torqueloop.core.signals import Constant, Signal

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


def position_inputs(b: Builder, motion: Motion, names: tuple[str, str | None, str | None]) -> tuple[int, ...]:
    """Inputs for position, speed and acceleration; None: derived from the one before that is given."""
    indices: list[int] = []
    given, order = str(names[0]), 0
    for name, (_, of_rotation) in zip(names, OF_A_PART, strict=True):
        dimension = motion.dimension(of_rotation)
        if name is None:
            order += 1
            indices.append(b.derived_input(given, order, dimension))
        else:
            given, order = name, 0
            indices.append(b.input(name, dimension))
    return tuple(indices)


@dataclass(frozen=True, kw_only=True)
class DrivenLaw(OnSupport):
    """What all forced motions share."""

    def forced(self, b: Builder, kind: int, inputs: tuple[int, ...], p: tuple[float, ...] = ()) -> None:
        """A forced motion with the outputs tau (f), work, phi, w, a (s, v, a)."""
        index = b.driven(self.speed(b), kind, inputs, p)
        b.output(self.motion.text("{tau}"), self.motion.dimension("torque"), OUT_FRICTION, index=index)
        b.output("work", "energy", OUT_FRICTION_HEAT, index=index, gain=-1.0)
        b.motion_outputs(self.speed(b), self.motion.domain)

    def exact_speed(self, b: Builder, name: str) -> tuple[int, int]:
        """An input for the speed, and its derivative."""
        acceleration = self.motion.dimension("angular_acceleration")
        return self.input(b, name, "angular_velocity"), b.derived_input(self.motion.text(name), 1, acceleration)


@dataclass(frozen=True, kw_only=True)
class AccelerateLaw(DrivenLaw):
    """The acceleration is an input."""

    def contribute(self, b: Builder) -> None:
        self.forced(b, DRIVEN_ACCELERATION, (self.input(b, "a_ref", "angular_acceleration"),))
        self.start(b, "phi", self.speed(b), "{phi}0")
        self.start(b, "w", self.speed(b), "{w}0")


def _critical_frequency() -> Any:
    return shared("critical frequency of the filter", "frequency", 50.0, low=0.0, above=True)


@dataclass(frozen=True, kw_only=True)
class SpeedLaw(DrivenLaw):
    """The speed is an input, followed exactly or filtered."""

    exact: bool = shared("follow {w}_ref exactly", default=False, form="flag")
    f_crit: float = _critical_frequency()

    def contribute(self, b: Builder) -> None:
        if self.exact:
            self.forced(b, DRIVEN_SPEED, self.exact_speed(b, "{w}_ref"))
        else:
            w_ref = self.input(b, "{w}_ref", "angular_velocity")
            self.forced(b, DRIVEN_SPEED_FILTER, (w_ref,), (2.0 * math.pi * self.f_crit,))


@dataclass(frozen=True, kw_only=True)
class PositionLaw(DrivenLaw):
    """The position is an input, followed exactly or filtered."""

    exact: bool = shared("follow {phi}_ref exactly", default=False, form="flag")
    f_crit: float = _critical_frequency()

    def contribute(self, b: Builder) -> None:
        if self.exact:
            inputs = position_inputs(b, self.motion, (self.motion.text("{phi}_ref"), None, None))
            self.forced(b, DRIVEN_POSITION, inputs)
        else:
            reference = self.input(b, "{phi}_ref", "angle")
            self.forced(b, DRIVEN_POSITION_FILTER, (reference,), (2.0 * math.pi * self.f_crit,))


@dataclass(frozen=True, kw_only=True)
class MoveLaw(DrivenLaw):
    """Position, speed and acceleration are inputs."""

    def contribute(self, b: Builder) -> None:
        phi, w, a = (self.motion.text(short) for short, _ in OF_A_PART)
        self.forced(b, DRIVEN_POSITION, position_inputs(b, self.motion, (phi, w, a)))


@dataclass(frozen=True, kw_only=True)
class ConstantSpeedLaw(DrivenLaw):
    """An exact speed whose input has a default: the parameter."""

    def contribute(self, b: Builder) -> None:
        self.forced(b, DRIVEN_SPEED, self.exact_speed(b, "{w}_fixed"))
        self.start(b, "w", self.speed(b), "{w}_fixed")

    def default_inputs(self) -> dict[str, Signal]:
        return {self.motion.text("{w}_fixed"): Constant(self.value("{w}_fixed"))}


def fixed_speed() -> Any:
    """Parameter: a speed that does not change by itself."""
    return shared("speed relative to the support", "angular_velocity")


@dataclass(frozen=True, kw_only=True)
class Accelerate(AccelerateLaw):
    """a = a_ref (input, rad/s2); w and phi follow from their start values."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    phi0: float | None = start_position(" relative to the support")
    w0: float | None = start_speed(" relative to the support")


@dataclass(frozen=True, kw_only=True)
class Speed(SpeedLaw):
    """exact: w = w_ref (input, rad/s); else a = (w_ref - w)*2*pi*f_crit."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class Position(PositionLaw):
    """exact: phi = phi_ref (input, rad); else filtered with f_crit by a second-order Bessel filter."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class Move(MoveLaw):
    """phi, w and a of the flange are inputs (rad, rad/s, rad/s2), which must be derivatives of each other."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class ConstantSpeed(ConstantSpeedLaw):
    """w = w_fixed, whatever torque that takes. Its input `w_fixed` carries the parameter."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    w_fixed: float = fixed_speed()


@dataclass(frozen=True, kw_only=True)
class TranslationalAccelerate(Sliding, AccelerateLaw):
    """a = a_ref (input, m/s2); v and s follow from their start values."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    s0: float | None = start_position(" relative to the support")
    v0: float | None = start_speed(" relative to the support")


@dataclass(frozen=True, kw_only=True)
class TranslationalSpeed(Sliding, SpeedLaw):
    """exact: v = v_ref (input, m/s); else a = (v_ref - v)*2*pi*f_crit."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class TranslationalPosition(Sliding, PositionLaw):
    """exact: s = s_ref (input, m); else filtered with f_crit by a second-order Bessel filter."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class TranslationalMove(Sliding, MoveLaw):
    """s, v and a of the flange are inputs (m, m/s, m/s2), which must be derivatives of each other."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class TranslationalConstantSpeed(Sliding, ConstantSpeedLaw):
    """v = v_fixed, whatever force that takes. Its input `v_fixed` carries the parameter."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    v_fixed: float = fixed_speed()
