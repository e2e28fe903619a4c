"""Torques and forces from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.base import SUPPORT, TRANSLATIONAL, Component, Flange, param
from torqueloop.core.signals import Signal, Step
from torqueloop.core.vocabulary import OUT_POLY, OUT_POLY_WORK, OUT_TORQUE, OUT_TORQUE_WORK, Form

if TYPE_CHECKING:
    from torqueloop.core.builder import Builder

ROTATIONAL_FLANGES = {"flange": Flange(), "support": SUPPORT}
TRANSLATIONAL_FLANGES = {
    "flange": Flange(domain=TRANSLATIONAL),
    "support": Flange(domain=TRANSLATIONAL, required=False, support=True),
}


def torque_outputs(b: Builder, index: int, dimension: str = "torque", short: str = "tau") -> None:
    """Torque (force) on the flange and its work."""
    b.output(short, dimension, OUT_TORQUE, index=index)
    b.output("work", "energy", OUT_TORQUE_WORK, index=index)


@dataclass(frozen=True, kw_only=True)
class Torque(Component):
    """Torque +tau on the flange, -tau on the support; input tau in Nm."""

    flanges: ClassVar = ROTATIONAL_FLANGES

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), input=b.input("tau", "torque"))
        torque_outputs(b, index)


@dataclass(frozen=True, kw_only=True)
class TorqueStep(Component):
    """tau = offsetTorque before startTime, then offsetTorque + stepTorque. Its input `tau` carries this step."""

    flanges: ClassVar = ROTATIONAL_FLANGES

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

    flanges: ClassVar = ROTATIONAL_FLANGES

    tau_constant: float = param("torque on the flange", "torque")

    def contribute(self, b: Builder) -> None:
        index = b.torque(b.w("flange") - b.w("support"), const=self.tau_constant)
        torque_outputs(b, index)


def _quadratic(b: Builder, speed: Form, nominal: float, at: float, one_sense: bool) -> int:
    """nominal*(w/at)^2, times sign(w) unless the sense of the torque is independent of that of the speed."""
    k = nominal / (at * at)
    return b.polynomial(speed, k2=k) if one_sense else b.polynomial(speed, k3=k)


@dataclass(frozen=True, kw_only=True)
class QuadraticSpeedDependentTorque(Component):
    """tau = tau_nominal*(w/w_nominal)^2 on the flange (negative tau_nominal brakes for w > 0).

    TorqueDirection = true: the sense does not change with that of the speed; false: multiplied by sign(w).
    """

    flanges: ClassVar = ROTATIONAL_FLANGES

    tau_nominal: float = param("torque at w_nominal", "torque")
    w_nominal: float = param("nominal speed", "angular_velocity", low=0.0, above=True)
    TorqueDirection: bool = param("same sense of torque at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        index = _quadratic(b, speed, self.tau_nominal, self.w_nominal, self.TorqueDirection)
        b.output("tau", "torque", OUT_POLY, index=index)
        b.output("work", "energy", OUT_POLY_WORK, index=index)


@dataclass(frozen=True, kw_only=True)
class QuadraticSpeedDependentForce(Component):
    """f = f_nominal*(v/v_nominal)^2 on the flange; ForceDirection as TorqueDirection of the rotational one."""

    flanges: ClassVar = TRANSLATIONAL_FLANGES

    f_nominal: float = param("force at v_nominal", "force")
    v_nominal: float = param("nominal speed", "velocity", low=0.0, above=True)
    ForceDirection: bool = param("same sense of force at both senses of speed", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        index = _quadratic(b, speed, self.f_nominal, self.v_nominal, self.ForceDirection)
        b.output("f", "force", OUT_POLY, index=index)
        b.output("work", "energy", OUT_POLY_WORK, index=index)
