"""Forces from outside: given by an input, constant, or a function of speed. The translational side of sources.py.

Sign: +f acts on the flange, -f on the support; v is the speed relative to the support. A negative nominal force brakes
for v > 0. `work` is the energy put into the driveline. After Modelica.Mechanics.Translational.Sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torqueloop.core.components.of_motion import PART_ON_SUPPORT, TWO_PARTS, Sliding
from torqueloop.core.components.sources import (
    ConstantLaw,
    InverseLaw,
    LinearLaw,
    QuadraticLaw,
    SignLaw,
    StepLaw,
    Torque2Law,
    TorqueLaw,
    before_step,
    below,
    constant_torque,
    direction,
    nominal_speed,
    nominal_torque,
    regularization,
    step_height,
    step_time,
    torque_of_sign,
)
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import Flange


@dataclass(frozen=True, kw_only=True)
class Force(Sliding, TorqueLaw):
    """Force +f on the flange, -f on the support; input f in N."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT


@dataclass(frozen=True, kw_only=True)
class Force2(Sliding, Torque2Law):
    """Force between two parts: +f on flange_b, -f on flange_a; input f in N."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS


@dataclass(frozen=True, kw_only=True)
class ForceStep(Sliding, StepLaw):
    """f = offsetForce before startTime, then offsetForce + stepForce. Its input `f` carries this step."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    stepForce: float = step_height()
    offsetForce: float = before_step()
    startTime: float = step_time()


@dataclass(frozen=True, kw_only=True)
class ConstantForce(Sliding, ConstantLaw):
    """Constant force +f_constant on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    f_constant: float = constant_torque()


@dataclass(frozen=True, kw_only=True)
class LinearSpeedDependentForce(Sliding, LinearLaw):
    """f = f_nominal*v/v_nominal (ForceDirection = false) or f_nominal*|v|/v_nominal (true) on the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    f_nominal: float = nominal_torque()
    v_nominal: float = nominal_speed()
    ForceDirection: bool = direction()


@dataclass(frozen=True, kw_only=True)
class QuadraticSpeedDependentForce(Sliding, QuadraticLaw):
    """f = f_nominal*(v/v_nominal)^2 on the flange; multiplied by sign(v) if ForceDirection is false."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    f_nominal: float = nominal_torque()
    v_nominal: float = nominal_speed()
    ForceDirection: bool = direction()


@dataclass(frozen=True, kw_only=True)
class InverseSpeedDependentForce(Sliding, InverseLaw):
    """f = f_nominal*v_nominal/|v| for |v| >= v0, constant below (ForceDirection = true).

    ForceDirection = false: f_nominal*v_nominal/v, and f_nominal*v/v0 below v0. As InverseSpeedDependentTorque: a
    polygon within 1e-6 of its value up to 1000 times max(v_nominal, v0).
    """

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    f_nominal: float = nominal_torque()
    v_nominal: float = nominal_speed()
    v0: float = below("cut off")
    ForceDirection: bool = direction()


@dataclass(frozen=True, kw_only=True)
class SignForce(Sliding, SignLaw):
    """f = f_nominal*sign(v), made continuous near v = 0 by `reg` as in SignTorque; it cannot hold a part at rest."""

    flanges: ClassVar[Mapping[str, Flange]] = PART_ON_SUPPORT

    f_nominal: float = torque_of_sign()
    reg: str = regularization()
    v0: float = below("continuous")
