"""Torques from outside: given by an input, constant, or a function of speed.

Sign: +tau acts on the flange in the sense of the axis, -tau on the support; w is the speed relative to the support. A
negative nominal torque brakes for w > 0. `work` is the energy put into the driveline. Any speed, any torque.
After Modelica.Mechanics.Rotational.Sources; the same for forces in forces.py, driven motions in kinematic.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.laws import REGULARIZATIONS, absolute, hyperbola, sign
from torqueloop.core.components.of_motion import SHAFT_ON_SUPPORT, TWO_SHAFTS, OfMotion, OnSupport
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import (
    OUT_POLY,
    OUT_POLY_WORK,
    OUT_PORT,
    OUT_PORT_WORK,
    OUT_TORQUE,
    OUT_TORQUE_WORK,
)
from torqueloop.core.describe.params import shared
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.describe.vocabulary import Form
from torqueloop.core.signals import Signal, Step

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


class SourceLaw(OfMotion):
    """Outputs of a torque from outside: tau (f) and its work."""

    def torque_of(self, b: Builder, speed: Form, *, input: int = -1, const: float = 0.0) -> None:
        """A torque that does not depend on the speed."""
        index = b.torque(speed, input=input, const=const)
        b.output(self.motion.text("{tau}"), self.motion.dimension("torque"), OUT_TORQUE, index=index)
        b.output("work", "energy", OUT_TORQUE_WORK, index=index)


class TorqueLaw(OnSupport, SourceLaw):
    """A torque from an input, on a flange against the support."""

    def contribute(self, b: Builder) -> None:
        self.torque_of(b, self.speed(b), input=self.input(b, "{tau}", "torque"))


class Torque2Law(SourceLaw):
    """A torque from an input, between two parts."""

    def contribute(self, b: Builder) -> None:
        self.torque_of(b, b.w("flange_b") - b.w("flange_a"), input=self.input(b, "{tau}", "torque"))


class StepLaw(TorqueLaw):
    """The input has a step of its own."""

    def default_inputs(self) -> dict[str, Signal]:
        height, offset, at = self.value("step{Torque}"), self.value("offset{Torque}"), self.value("startTime")
        return {self.motion.text("{tau}"): Step(height=height, offset=offset, startTime=at)}


class ConstantLaw(OnSupport, SourceLaw):
    """A constant torque."""

    def contribute(self, b: Builder) -> None:
        self.torque_of(b, self.speed(b), const=self.value("{tau}_constant"))


class OverSpeedLaw(OnSupport):
    """A torque over the speed, of which one point is given."""

    @property
    def nominal(self) -> float:
        """The torque of that point."""
        return float(self.value("{tau}_nominal"))

    @property
    def at(self) -> float:
        """The speed of that point."""
        return float(self.value("{w}_nominal"))

    @property
    def one_sense(self) -> bool:
        """The sense of the torque does not change with that of the speed."""
        return bool(self.value("{Torque}Direction"))

    def polynomial(self, b: Builder, *, k1: float = 0.0, k2: float = 0.0, k3: float = 0.0) -> None:
        """Torque k1*w + k2*w^2 + k3*w*|w|."""
        index = b.polynomial(self.speed(b), k1=k1, k2=k2, k3=k3)
        b.output(self.motion.text("{tau}"), self.motion.dimension("torque"), OUT_POLY, index=index)
        b.output("work", "energy", OUT_POLY_WORK, index=index)

    def curve(self, b: Builder, table: Table1D) -> None:
        """Torque nominal*table(w)."""
        port = ("curve", b.curve_force(self.speed(b), tab1=table, gain=self.nominal))
        b.output(self.motion.text("{tau}"), self.motion.dimension("torque"), OUT_PORT, port=port)
        b.output("work", "energy", OUT_PORT_WORK, port=port)


class LinearLaw(OverSpeedLaw):
    """nominal*w/at, or nominal*|w|/at."""

    def contribute(self, b: Builder) -> None:
        if self.one_sense:
            self.curve(b, absolute(self.at))
        else:
            self.polynomial(b, k1=self.nominal / self.at)


class QuadraticLaw(OverSpeedLaw):
    """nominal*(w/at)^2, times sign(w) unless the sense of the torque is independent of that of the speed."""

    def contribute(self, b: Builder) -> None:
        k = self.nominal / (self.at * self.at)
        self.polynomial(b, **({"k2": k} if self.one_sense else {"k3": k}))


class InverseLaw(OverSpeedLaw):
    """nominal*at/|w| or nominal*at/w for |w| >= w0."""

    def contribute(self, b: Builder) -> None:
        self.curve(b, hyperbola(self.at, self.value("{w}0"), self.one_sense))


class SignLaw(OverSpeedLaw):
    """nominal*sign(w), made continuous."""

    def contribute(self, b: Builder) -> None:
        self.curve(b, sign(self.value("reg"), self.value("{w}0")))


def step_height() -> Any:
    """Parameter of a step."""
    return shared("height of the step", "torque")


def before_step() -> Any:
    """Parameter of a step: what was before it."""
    return shared("{torque} before the step", "torque", 0.0)


def step_time() -> Any:
    """Parameter of a step: when."""
    return shared("time of the step", "time", 0.0)


def constant_torque() -> Any:
    """Parameter: a constant torque."""
    return shared("{torque} on the flange", "torque")


def nominal_torque() -> Any:
    """Parameter of a law over the speed: the torque of the point that is given."""
    return shared("{torque} at {w}_nominal", "torque")


def nominal_speed() -> Any:
    """Parameter of a law over the speed: the speed of that point."""
    return shared("nominal speed", "angular_velocity", low=0.0, above=True)


def direction() -> Any:
    """Parameter of a law over the speed: is its sense that of the speed?"""
    return shared("same sense of {torque} at both senses of speed", default=True, form="flag")


def torque_of_sign() -> Any:
    """Parameter of a torque by the sign of the speed."""
    return shared("{torque} at high speed (negative: brakes)", "torque")


def regularization() -> Any:
    """Parameter of a torque by the sign of the speed: what is done at 0."""
    return shared("law near zero speed", default="Exp", form="choice", choices=REGULARIZATIONS)


def below(which: str) -> Any:
    """Parameter: the speed below which a law is another."""
    return shared("speed below which the law is " + which, "angular_velocity", 0.1, low=0.0, above=True)


@dataclass(frozen=True, kw_only=True)
class Torque(TorqueLaw):
    """Torque +tau on the flange, -tau on the support; input tau in Nm."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class Torque2(Torque2Law):
    """Torque between two shafts: +tau on flange_b, -tau on flange_a; input tau in Nm."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS


@dataclass(frozen=True, kw_only=True)
class TorqueStep(StepLaw):
    """tau = offsetTorque before startTime, then offsetTorque + stepTorque. Its input `tau` carries this step."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    stepTorque: float = step_height()
    offsetTorque: float = before_step()
    startTime: float = step_time()


@dataclass(frozen=True, kw_only=True)
class ConstantTorque(ConstantLaw):
    """Constant torque +tau_constant on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    tau_constant: float = constant_torque()


@dataclass(frozen=True, kw_only=True)
class LinearSpeedDependentTorque(LinearLaw):
    """tau = tau_nominal*w/w_nominal (TorqueDirection = false) or tau_nominal*|w|/w_nominal (true) on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    tau_nominal: float = nominal_torque()
    w_nominal: float = nominal_speed()
    TorqueDirection: bool = direction()


@dataclass(frozen=True, kw_only=True)
class QuadraticSpeedDependentTorque(QuadraticLaw):
    """tau = tau_nominal*(w/w_nominal)^2 on the flange (negative tau_nominal brakes for w > 0).

    TorqueDirection = true: the sense does not change with that of the speed; false: multiplied by sign(w).
    """

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    tau_nominal: float = nominal_torque()
    w_nominal: float = nominal_speed()
    TorqueDirection: bool = direction()


@dataclass(frozen=True, kw_only=True)
class InverseSpeedDependentTorque(InverseLaw):
    """tau = tau_nominal*w_nominal/|w| for |w| >= w0, constant below (TorqueDirection = true).

    TorqueDirection = false: tau_nominal*w_nominal/w, and tau_nominal*w/w0 below w0, which jumps at w0 unless
    w0 = w_nominal (so in Modelica; here within 1e-6 of w0). The hyperbola is a polygon within 1e-6 of its value up to
    1000 times max(w_nominal, w0), constant beyond.
    """

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    tau_nominal: float = nominal_torque()
    w_nominal: float = nominal_speed()
    w0: float = below("cut off")
    TorqueDirection: bool = direction()


@dataclass(frozen=True, kw_only=True)
class SignTorque(SignLaw):
    """tau = tau_nominal*sign(w), made continuous near w = 0 by `reg`; it cannot hold a shaft (BearingFriction can).

    Exp: 2/(1 + exp(-w/(0.01*w0))) - 1. Below w0: sin(pi/2*w/w0) (Sine), w/w0 (Linear), 1 - cos(pi/2*w/w0) (CoSine).
    Smooth laws are polygons within 1e-6 of tau_nominal.
    """

    flanges: ClassVar[Mapping[str, Flange]] = SHAFT_ON_SUPPORT

    tau_nominal: float = torque_of_sign()
    reg: str = regularization()
    w0: float = below("continuous")
