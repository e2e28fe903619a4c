"""Ports over which a driveline is coupled to another simulator (FMU, vehicle model, test bench).

A connection is replaced by signals: one side receives the motion and returns the torque, and the other side receives
the torque and returns the motion. If the outputs of each side are the inputs of the other, both behave as if joined:

    AngleToTorque   in: phi, w, a     out: tau    the torque needed to move the flange so; +tau acts on the flange
    TorqueToAngle   in: tau           out: phi, w, a of the flange; -tau acts on the flange (tau drives the other side)

`work` is the energy put into the driveline, `tau_flange` (`f_flange`) the torque on the flange, -tau. phi, w, a must be
derivatives of each other. Inputs that are left out (use_w, use_a) are derivatives of the given ones. This works for
signals that are known as functions of time, and not for values that arrive one by one. Sampled values add the delay of
one exchange.
After Modelica.Mechanics.Rotational.Components, with its signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.kinematic import position_inputs
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import SUPPORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    DRIVEN_POSITION,
    OUT_ACCELERATION,
    OUT_ANGLE,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_SPEED,
    OUT_TORQUE,
    OUT_TORQUE_WORK,
)
from torqueloop.core.describe.motion import OF_A_PART, ROTATION
from torqueloop.core.describe.params import param, require

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

ONE_FLANGE = {"flange": Flange(), "support": SUPPORT}


def _fit(first: bool, second: bool, names: tuple[str, str]) -> None:
    require(first or not second, f"{names[1]} needs {names[0]}", key=names[1], value=True, allowed=f"{names[0]} = true")


def motion_to_torque(b: Builder, names: tuple[str, str | None, str | None], torque: str) -> None:
    """The flange moves with inputs; the torque on it as an output."""
    index = b.driven(b.w("flange") - b.w("support"), DRIVEN_POSITION, position_inputs(b, ROTATION, names))
    b.output(torque, "torque", OUT_FRICTION, index=index)
    b.output("work", "energy", OUT_FRICTION_HEAT, index=index, gain=-1.0)


def torque_to_motion(b: Builder, torque: str, names: tuple[str, ...]) -> None:
    """-tau on the flange, from an input; its motion as outputs under `names`."""
    form = b.w("flange") - b.w("support")
    index = b.torque(form, input=b.input(torque, "torque"), gain=-1.0)
    b.output(f"{torque}_flange", "torque", OUT_TORQUE, index=index)
    b.output("work", "energy", OUT_TORQUE_WORK, index=index)
    kinds = (OUT_ANGLE, OUT_SPEED, OUT_ACCELERATION)
    for name, (_, dimension), kind in zip(names, OF_A_PART, kinds, strict=False):
        b.output(name, dimension, kind, form=form)


@dataclass(frozen=True, kw_only=True)
class AngleToTorqueAdaptor(Component):
    """The flange moves with the inputs phi, w, a; output tau is the torque on the flange that this takes."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_FLANGE

    use_w: bool = param("the speed is an input, too", default=True, form="flag")
    use_a: bool = param("the acceleration is an input, too (with use_w)", default=True, form="flag")

    def check(self) -> None:
        _fit(self.use_w, self.use_a, ("use_w", "use_a"))

    def contribute(self, b: Builder) -> None:
        names = ("phi", "w" if self.use_w else None, "a" if self.use_a else None)
        motion_to_torque(b, names, "tau")


@dataclass(frozen=True, kw_only=True)
class TorqueToAngleAdaptor(Component):
    """-tau (input) acts on the flange, as on the near side of such a connection; outputs phi, w, a of the flange."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_FLANGE

    use_w: bool = param("give the speed out", default=True, form="flag")
    use_a: bool = param("give the acceleration out (with use_w)", default=True, form="flag")

    def check(self) -> None:
        _fit(self.use_w, self.use_a, ("use_w", "use_a"))

    def contribute(self, b: Builder) -> None:
        torque_to_motion(b, "tau", ("phi", "w", "a")[: 1 + self.use_w + self.use_a])


@dataclass(frozen=True, kw_only=True)
class GeneralAngleToTorqueAdaptor(Component):
    """As AngleToTorqueAdaptor with general names: p = phi, pder = w, pder2 = a in; f = torque on the flange out."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_FLANGE

    use_pder: bool = param("the speed is an input, too", default=True, form="flag")
    use_pder2: bool = param("the acceleration is an input, too (with use_pder)", default=True, form="flag")

    def check(self) -> None:
        _fit(self.use_pder, self.use_pder2, ("use_pder", "use_pder2"))

    def contribute(self, b: Builder) -> None:
        names = ("p", "pder" if self.use_pder else None, "pder2" if self.use_pder2 else None)
        motion_to_torque(b, names, "f")


@dataclass(frozen=True, kw_only=True)
class GeneralTorqueToAngleAdaptor(Component):
    """As TorqueToAngleAdaptor with general names: f = tau in; p = phi, pder = w, pder2 = a out."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_FLANGE

    use_pder: bool = param("give the speed out", default=True, form="flag")
    use_pder2: bool = param("give the acceleration out (with use_pder)", default=True, form="flag")

    def check(self) -> None:
        _fit(self.use_pder, self.use_pder2, ("use_pder", "use_pder2"))

    def contribute(self, b: Builder) -> None:
        torque_to_motion(b, "f", ("p", "pder", "pder2")[: 1 + self.use_pder + self.use_pder2])
