"""Forces from outside: given by an input, constant, or a function of speed. The translational side of sources.py.

Sign: +f acts on the flange, -f on the support; v is the speed relative to the support. A negative nominal force brakes
for v > 0. `work` is the energy put into the driveline. After Modelica.Mechanics.Translational.Sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.laws import REGULARIZATIONS, sign
from torqueloop.core.components.sources import (
    TRANSLATIONAL_FLANGES,
    curve_source,
    inverse,
    linear,
    quadratic,
    torque_outputs,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param
from torqueloop.core.signals import Signal, Step

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class Force(Component):
    """Force +f on the flange, -f on the support; input f in N."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), input=b.input("f", "force"))
        torque_outputs(b, index, "force", "f")


@dataclass(frozen=True, kw_only=True)
class Force2(Component):
    """Force between two parts: +f on flange_b, -f on flange_a; input f in N."""

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange_a": Flange(domain=TRANSLATIONAL),
        "flange_b": Flange(domain=TRANSLATIONAL),
    }

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange_b") - b.w("flange_a"), input=b.input("f", "force"))
        torque_outputs(b, index, "force", "f")


@dataclass(frozen=True, kw_only=True)
class ForceStep(Component):
    """f = offsetForce before startTime, then offsetForce + stepForce. Its input `f` carries this step."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    stepForce: float = param("height of the step", "force")
    offsetForce: float = param("force before the step", "force", 0.0)
    startTime: float = param("time of the step", "time", 0.0)

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), input=b.input("f", "force"))
        torque_outputs(b, index, "force", "f")

    def default_inputs(self) -> dict[str, Signal]:
        return {"f": Step(height=self.stepForce, offset=self.offsetForce, startTime=self.startTime)}


@dataclass(frozen=True, kw_only=True)
class ConstantForce(Component):
    """Constant force +f_constant on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    f_constant: float = param("force on the flange", "force")

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), const=self.f_constant)
        torque_outputs(b, index, "force", "f")


@dataclass(frozen=True, kw_only=True)
class LinearSpeedDependentForce(Component):
    """f = f_nominal*v/v_nominal (ForceDirection = false) or f_nominal*|v|/v_nominal (true) on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    f_nominal: float = param("force at v_nominal", "force")
    v_nominal: float = param("nominal speed", "velocity", low=0.0, above=True)
    ForceDirection: bool = param("same sense of force at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        linear(b, speed, "force", self.f_nominal, self.v_nominal, self.ForceDirection)


@dataclass(frozen=True, kw_only=True)
class QuadraticSpeedDependentForce(Component):
    """f = f_nominal*(v/v_nominal)^2 on the flange; multiplied by sign(v) if ForceDirection is false."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    f_nominal: float = param("force at v_nominal", "force")
    v_nominal: float = param("nominal speed", "velocity", low=0.0, above=True)
    ForceDirection: bool = param("same sense of force at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        quadratic(b, speed, "force", self.f_nominal, self.v_nominal, self.ForceDirection)


@dataclass(frozen=True, kw_only=True)
class InverseSpeedDependentForce(Component):
    """f = f_nominal*v_nominal/|v| for |v| >= v0, constant below (ForceDirection = true).

    ForceDirection = false: f_nominal*v_nominal/v, and f_nominal*v/v0 below v0. As InverseSpeedDependentTorque: a
    polygon within 1e-6 of its value up to 1000 times max(v_nominal, v0).
    """

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    f_nominal: float = param("force at v_nominal", "force")
    v_nominal: float = param("nominal speed", "velocity", low=0.0, above=True)
    v0: float = param("speed below which the law is cut off", "velocity", 0.1, low=0.0, above=True)
    ForceDirection: bool = param("same sense of force at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        inverse(b, speed, "force", self.f_nominal, self.v_nominal, self.v0, self.ForceDirection)


@dataclass(frozen=True, kw_only=True)
class SignForce(Component):
    """f = f_nominal*sign(v), made continuous near v = 0 by `reg` as in SignTorque; it cannot hold a part at rest."""

    flanges: ClassVar[Mapping[str, Flange]] = TRANSLATIONAL_FLANGES

    f_nominal: float = param("force at high speed (negative: brakes)", "force")
    reg: str = param("law near zero speed", default="Exp", form="choice", choices=REGULARIZATIONS)
    v0: float = param("speed below which the law is continuous", "velocity", 0.1, low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        curve_source(b, speed, "force", self.f_nominal, sign(self.reg, self.v0))
