"""Torques from outside: given by an input, constant, or a function of speed.

Sign: +tau acts on the flange in the sense of the axis, -tau on the support; w is the speed relative to the support. A
negative nominal torque brakes for w > 0. `work` is the energy put into the driveline. Any speed, any torque.
After Modelica.Mechanics.Rotational.Sources; the same for forces in forces.py, driven motions in kinematic.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.compliances import TWO_SHAFTS
from torqueloop.core.components.laws import REGULARIZATIONS, absolute, hyperbola, sign
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import SUPPORT, TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.describe.vocabulary import (
    OUT_POLY,
    OUT_POLY_WORK,
    OUT_PORT,
    OUT_PORT_WORK,
    OUT_TORQUE,
    OUT_TORQUE_WORK,
    Form,
)
from torqueloop.core.signals import Signal, Step

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

ROTATIONAL_FLANGES = {"flange": Flange(), "support": SUPPORT}
TRANSLATIONAL_FLANGES = {
    "flange": Flange(domain=TRANSLATIONAL),
    "support": Flange(domain=TRANSLATIONAL, required=False, support=True),
}


def torque_outputs(b: Builder, index: int, dimension: str = "torque", short: str = "tau") -> None:
    """Torque (force) on the flange and its work."""
    b.output(short, dimension, OUT_TORQUE, index=index)
    b.output("work", "energy", OUT_TORQUE_WORK, index=index)


def polynomial_source(
    b: Builder, speed: Form, dimension: str, *, k1: float = 0.0, k2: float = 0.0, k3: float = 0.0
) -> None:
    """Force k1*w + k2*w^2 + k3*w*|w| with outputs tau (f) and work."""
    index = b.polynomial(speed, k1=k1, k2=k2, k3=k3)
    b.output("tau" if dimension == "torque" else "f", dimension, OUT_POLY, index=index)
    b.output("work", "energy", OUT_POLY_WORK, index=index)


def curve_source(b: Builder, speed: Form, dimension: str, gain: float, table: Table1D) -> None:
    """Force gain*table(w) with outputs tau (f) and work."""
    port = ("curve", b.curve_force(speed, tab1=table, gain=gain))
    b.output("tau" if dimension == "torque" else "f", dimension, OUT_PORT, port=port)
    b.output("work", "energy", OUT_PORT_WORK, port=port)


def quadratic(b: Builder, speed: Form, dimension: str, nominal: float, at: float, one_sense: bool) -> None:
    """nominal*(w/at)^2, times sign(w) unless the sense of the force is independent of that of the speed."""
    k = nominal / (at * at)
    polynomial_source(b, speed, dimension, **({"k2": k} if one_sense else {"k3": k}))


def linear(b: Builder, speed: Form, dimension: str, nominal: float, at: float, one_sense: bool) -> None:
    """nominal*w/at, or nominal*|w|/at."""
    if one_sense:
        curve_source(b, speed, dimension, nominal, absolute(at))
    else:
        polynomial_source(b, speed, dimension, k1=nominal / at)


def inverse(b: Builder, speed: Form, dimension: str, nominal: float, at: float, w0: float, one_sense: bool) -> None:
    """nominal*at/|w| or nominal*at/w for |w| >= w0."""
    curve_source(b, speed, dimension, nominal, hyperbola(at, w0, one_sense))


@dataclass(frozen=True, kw_only=True)
class Torque(Component):
    """Torque +tau on the flange, -tau on the support; input tau in Nm."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), input=b.input("tau", "torque"))
        torque_outputs(b, index)


@dataclass(frozen=True, kw_only=True)
class Torque2(Component):
    """Torque between two shafts: +tau on flange_b, -tau on flange_a; input tau in Nm."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange_b") - b.w("flange_a"), input=b.input("tau", "torque"))
        torque_outputs(b, index)


@dataclass(frozen=True, kw_only=True)
class TorqueStep(Component):
    """tau = offsetTorque before startTime, then offsetTorque + stepTorque. Its input `tau` carries this step."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    stepTorque: float = param("height of the step", "torque")
    offsetTorque: float = param("torque before the step", "torque", 0.0)
    startTime: float = param("time of the step", "time", 0.0)

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), input=b.input("tau", "torque"))
        torque_outputs(b, index)

    def default_inputs(self) -> dict[str, Signal]:
        return {"tau": Step(height=self.stepTorque, offset=self.offsetTorque, startTime=self.startTime)}


@dataclass(frozen=True, kw_only=True)
class ConstantTorque(Component):
    """Constant torque +tau_constant on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    tau_constant: float = param("torque on the flange", "torque")

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), const=self.tau_constant)
        torque_outputs(b, index)


@dataclass(frozen=True, kw_only=True)
class LinearSpeedDependentTorque(Component):
    """tau = tau_nominal*w/w_nominal (TorqueDirection = false) or tau_nominal*|w|/w_nominal (true) on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    tau_nominal: float = param("torque at w_nominal", "torque")
    w_nominal: float = param("nominal speed", "angular_velocity", low=0.0, above=True)
    TorqueDirection: bool = param("same sense of torque at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        linear(b, speed, "torque", self.tau_nominal, self.w_nominal, self.TorqueDirection)


@dataclass(frozen=True, kw_only=True)
class QuadraticSpeedDependentTorque(Component):
    """tau = tau_nominal*(w/w_nominal)^2 on the flange (negative tau_nominal brakes for w > 0).

    TorqueDirection = true: the sense does not change with that of the speed; false: multiplied by sign(w).
    """

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    tau_nominal: float = param("torque at w_nominal", "torque")
    w_nominal: float = param("nominal speed", "angular_velocity", low=0.0, above=True)
    TorqueDirection: bool = param("same sense of torque at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        quadratic(b, speed, "torque", self.tau_nominal, self.w_nominal, self.TorqueDirection)


@dataclass(frozen=True, kw_only=True)
class InverseSpeedDependentTorque(Component):
    """tau = tau_nominal*w_nominal/|w| for |w| >= w0, constant below (TorqueDirection = true).

    TorqueDirection = false: tau_nominal*w_nominal/w, and tau_nominal*w/w0 below w0, which jumps at w0 unless
    w0 = w_nominal (so in Modelica; here within 1e-6 of w0). The hyperbola is a polygon within 1e-6 of its value up to
    1000 times max(w_nominal, w0), constant beyond.
    """

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    tau_nominal: float = param("torque at w_nominal", "torque")
    w_nominal: float = param("nominal speed", "angular_velocity", low=0.0, above=True)
    w0: float = param("speed below which the law is cut off", "angular_velocity", 0.1, low=0.0, above=True)
    TorqueDirection: bool = param("same sense of torque at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        inverse(b, speed, "torque", self.tau_nominal, self.w_nominal, self.w0, self.TorqueDirection)


@dataclass(frozen=True, kw_only=True)
class SignTorque(Component):
    """tau = tau_nominal*sign(w), made continuous near w = 0 by `reg`; it cannot hold a shaft (BearingFriction can).

    Exp: 2/(1 + exp(-w/(0.01*w0))) - 1. Below w0: sin(pi/2*w/w0) (Sine), w/w0 (Linear), 1 - cos(pi/2*w/w0) (CoSine).
    Smooth laws are polygons within 1e-6 of tau_nominal.
    """

    flanges: ClassVar[Mapping[str, Flange]] = ROTATIONAL_FLANGES

    tau_nominal: float = param("torque at high speed (negative: brakes)", "torque")
    reg: str = param("law near zero speed", default="Exp", form="choice", choices=REGULARIZATIONS)
    w0: float = param("speed below which the law is continuous", "angular_velocity", 0.1, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        curve_source(b, speed, "torque", self.tau_nominal, sign(self.reg, self.w0))
