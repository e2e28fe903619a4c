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
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.sources import ROTATIONAL_FLANGES, TRANSLATIONAL_FLANGES
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import ROTATIONAL, TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param
from torqueloop.core.describe.vocabulary import (
    DRIVEN_ACCELERATION,
    DRIVEN_POSITION,
    DRIVEN_POSITION_FILTER,
    DRIVEN_SPEED,
    DRIVEN_SPEED_FILTER,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    Form,
)
from torqueloop.core.signals import Constant, Signal

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: domain -> dimensions of position, speed, acceleration, and of the torque with its name
MOTION = {
    ROTATIONAL: ("angle", "angular_velocity", "angular_acceleration"),
    TRANSLATIONAL: ("length", "velocity", "acceleration"),
}
EFFORT = {ROTATIONAL: ("tau", "torque"), TRANSLATIONAL: ("f", "force")}


def forced(b: Builder, speed: Form, domain: str, kind: int, inputs: tuple[int, ...], p: tuple[float, ...] = ()) -> None:
    """A forced motion with the outputs tau (f), work, phi, w, a (s, v, a)."""
    index = b.driven(speed, kind, inputs, p)
    short, dimension = EFFORT[domain]
    b.output(short, dimension, OUT_FRICTION, index=index)
    b.output("work", "energy", OUT_FRICTION_HEAT, index=index, gain=-1.0)
    b.motion_outputs(speed, domain)


def position_inputs(b: Builder, domain: str, names: tuple[str, str | None, str | None]) -> tuple[int, ...]:
    """Inputs for position, speed and acceleration; None: derived from the one before that is given."""
    dimensions = MOTION[domain]
    indices: list[int] = []
    given, order = str(names[0]), 0
    for name, dimension in zip(names, dimensions, strict=True):
        if name is None:
            order += 1
            indices.append(b.derived_input(given, order, dimension))
        else:
            given, order = name, 0
            indices.append(b.input(name, dimension))
    return tuple(indices)


@dataclass(frozen=True, kw_only=True)
class _Driven(Component):
    """What the motions of both domains share."""

    domain: ClassVar[str] = ROTATIONAL
    #: names of the reference inputs for position and speed
    references: ClassVar[tuple[str, str]] = ("phi_ref", "w_ref")
    #: names of position and speed
    motion: ClassVar[tuple[str, str]] = ("phi", "w")

    def speed(self, b: Builder) -> Form:
        """Relative to the support."""
        return b.w("flange") - b.w("support")

    def accelerate(self, b: Builder) -> None:
        a_ref = b.input("a_ref", MOTION[self.domain][2])
        forced(b, self.speed(b), self.domain, DRIVEN_ACCELERATION, (a_ref,))

    def follow_speed(self, b: Builder, exact: bool, f_crit: float) -> None:
        name = self.references[1]
        _, w, a = MOTION[self.domain]
        w_ref = b.input(name, w)
        if exact:
            forced(b, self.speed(b), self.domain, DRIVEN_SPEED, (w_ref, b.derived_input(name, 1, a)))
        else:
            forced(b, self.speed(b), self.domain, DRIVEN_SPEED_FILTER, (w_ref,), (2.0 * math.pi * f_crit,))

    def follow_position(self, b: Builder, exact: bool, f_crit: float) -> None:
        name = self.references[0]
        if exact:
            inputs = position_inputs(b, self.domain, (name, None, None))
            forced(b, self.speed(b), self.domain, DRIVEN_POSITION, inputs)
        else:
            reference = b.input(name, MOTION[self.domain][0])
            wc = 2.0 * math.pi * f_crit
            forced(b, self.speed(b), self.domain, DRIVEN_POSITION_FILTER, (reference,), (wc,))

    def constant_speed(self, b: Builder, speed: float, param: str) -> None:
        """An exact speed whose input has a default: the parameter."""
        _, w, a = MOTION[self.domain]
        inputs = (b.input(param, w), b.derived_input(param, 1, a))
        forced(b, self.speed(b), self.domain, DRIVEN_SPEED, inputs)
        b.initial("w", self.speed(b), speed, param)


@dataclass(frozen=True, kw_only=True)
class _Translated(_Driven):
    """The same for a sliding flange."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES
    domain: ClassVar[str] = TRANSLATIONAL
    references: ClassVar[tuple[str, str]] = ("s_ref", "v_ref")
    motion: ClassVar[tuple[str, str]] = ("s", "v")


@dataclass(frozen=True, kw_only=True)
class Accelerate(_Driven):
    """a = a_ref (input, rad/s2); w and phi follow from their start values."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    phi0: float | None = param("start angle relative to the support", "angle", None)
    w0: float | None = param("start speed relative to the support", "angular_velocity", None)

    def contribute(self, b: Builder) -> None:
        self.accelerate(b)
        b.initial("phi", self.speed(b), self.phi0, "phi0")
        b.initial("w", self.speed(b), self.w0, "w0")


@dataclass(frozen=True, kw_only=True)
class Speed(_Driven):
    """exact: w = w_ref (input, rad/s); else a = (w_ref - w)*2*pi*f_crit."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    exact: bool = param("follow w_ref exactly", default=False, form="flag")
    f_crit: float = param("critical frequency of the filter", "frequency", 50.0, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        self.follow_speed(b, self.exact, self.f_crit)


@dataclass(frozen=True, kw_only=True)
class Position(_Driven):
    """exact: phi = phi_ref (input, rad); else filtered with f_crit by a second-order Bessel filter."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    exact: bool = param("follow phi_ref exactly", default=False, form="flag")
    f_crit: float = param("critical frequency of the filter", "frequency", 50.0, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        self.follow_position(b, self.exact, self.f_crit)


@dataclass(frozen=True, kw_only=True)
class Move(_Driven):
    """phi, w and a of the flange are inputs (rad, rad/s, rad/s2), which must be derivatives of each other."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    def contribute(self, b: Builder) -> None:
        inputs = position_inputs(b, self.domain, (*self.motion, "a"))
        forced(b, self.speed(b), self.domain, DRIVEN_POSITION, inputs)


@dataclass(frozen=True, kw_only=True)
class ConstantSpeed(_Driven):
    """w = w_fixed, whatever torque that takes. Its input `w_fixed` carries the parameter."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    w_fixed: float = param("speed relative to the support", "angular_velocity")

    def contribute(self, b: Builder) -> None:
        self.constant_speed(b, self.w_fixed, "w_fixed")

    def default_inputs(self) -> dict[str, Signal]:
        return {"w_fixed": Constant(self.w_fixed)}


@dataclass(frozen=True, kw_only=True)
class TranslationalAccelerate(_Translated):
    """a = a_ref (input, m/s2); v and s follow from their start values."""

    s0: float | None = param("start position relative to the support", "length", None)
    v0: float | None = param("start speed relative to the support", "velocity", None)

    def contribute(self, b: Builder) -> None:
        self.accelerate(b)
        b.initial("phi", self.speed(b), self.s0, "s0")
        b.initial("w", self.speed(b), self.v0, "v0")


@dataclass(frozen=True, kw_only=True)
class TranslationalSpeed(_Translated):
    """exact: v = v_ref (input, m/s); else a = (v_ref - v)*2*pi*f_crit."""

    exact: bool = param("follow v_ref exactly", default=False, form="flag")
    f_crit: float = param("critical frequency of the filter", "frequency", 50.0, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        self.follow_speed(b, self.exact, self.f_crit)


@dataclass(frozen=True, kw_only=True)
class TranslationalPosition(_Translated):
    """exact: s = s_ref (input, m); else filtered with f_crit by a second-order Bessel filter."""

    exact: bool = param("follow s_ref exactly", default=False, form="flag")
    f_crit: float = param("critical frequency of the filter", "frequency", 50.0, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        self.follow_position(b, self.exact, self.f_crit)


@dataclass(frozen=True, kw_only=True)
class TranslationalMove(_Translated):
    """s, v and a of the flange are inputs (m, m/s, m/s2), which must be derivatives of each other."""

    def contribute(self, b: Builder) -> None:
        inputs = position_inputs(b, self.domain, (*self.motion, "a"))
        forced(b, self.speed(b), self.domain, DRIVEN_POSITION, inputs)


@dataclass(frozen=True, kw_only=True)
class TranslationalConstantSpeed(_Translated):
    """v = v_fixed, whatever force that takes. Its input `v_fixed` carries the parameter."""

    v_fixed: float = param("speed relative to the support", "velocity")

    def contribute(self, b: Builder) -> None:
        self.constant_speed(b, self.v_fixed, "v_fixed")

    def default_inputs(self) -> dict[str, Signal]:
        return {"v_fixed": Constant(self.v_fixed)}
