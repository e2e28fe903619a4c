"""Losses of the PowerTrain library: gear efficiency that depends on the gear, friction torque given as an input.

GearEfficiency2 (ratio 1, w = w_a = w_b; tau_a enters at flange_a, T_b leaves at flange_b):

    flange_a drives (tau_a*w > 0):  T_b = eta(gear)*tau_a
    flange_b drives (tau_a*w < 0):  tau_a = eta_b(gear)*T_b

At standstill the loss is dry friction: as long as T_b lies between the two values, nothing turns. The support takes
tau_a - T_b. It is the law of LossyGear with ratio 1 and without bearing friction. 0 < eta <= 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.friction import friction_outputs
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, OPEN, SUPPORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    CAPACITY,
    HEAT_OF_FRICTION,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_FRICTION_POWER,
    OUT_INPUT,
    OUT_MODE,
    OUT_REACTION,
)
from torqueloop.core.describe.params import curve, param
from torqueloop.core.describe.tables import Table1D

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class GearEfficiency2(Component):
    """Ratio 1 with an efficiency over the gear number, which is an input; between whole gears it is interpolated.

    Outputs tau_a: torque that enters at flange_a; tauLoss: the part of it that is lost. Otter, Dempsey, Schlegel 2000.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange_a": Flange(),
        "flange_b": Flange(),
        "support": SUPPORT,
        "heatPort": HEAT_PORT,
    }

    eta: Any = curve("efficiency over the gear number, flange_a drives", "1", "1", low=0.0, above=True, high=1.0)
    eta_b: Any = curve(
        "efficiency over the gear number, flange_b drives; default: eta", "1", "1", None, low=0.0, above=True, high=1.0
    )

    def contribute(self, b: Builder) -> None:
        turning = b.w("flange_a") - b.w("support")
        constraint = b.constraint(turning - (b.w("flange_b") - b.w("support")))
        gear = b.input("gear", "1")
        zero = Table1D.constant(0.0)
        index = b.loss(
            turning, constraint=constraint, gain=-1.0, own_gain=-1.0, input=gear,
            eta1=b.table1("eta"), eta2=b.table1("eta" if self.eta_b is None else "eta_b"), tbf1=zero, tbf2=zero,
        )  # fmt: skip
        b.output("tau_a", "torque", OUT_REACTION, index=b.loss_of(index)[1])
        b.output("tauLoss", "torque", OUT_FRICTION, index=index, gain=-1.0)
        b.output("gear", "1", OUT_INPUT, index=gear)
        b.output("mode", "1", OUT_MODE, index=index)
        b.output("loss", "energy", OUT_FRICTION_HEAT, index=index)
        b.output("lossPower", "power", OUT_FRICTION_POWER, index=index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)


@dataclass(frozen=True, kw_only=True)
class TorqueLoss(Component):
    """Friction of a shaft (phi_a = phi_b) whose magnitude is an input: |tau| = tau_loss against the motion, exactly
    stuck at w = 0 up to peak*tau_loss.

    Any dependence (on speed, temperature, gear) can be put into the signal of the input `tau_loss` [Nm, >= 0].
    Otter, Dempsey, Schlegel 2000. tau > 0 for w > 0: the torque against the shaft.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange_a": OPEN,
        "flange_b": OPEN,
        "support": SUPPORT,
        "heatPort": HEAT_PORT,
    }

    peak: float = param("breakaway over sliding torque at standstill", default=1.0, low=1.0)

    def contribute(self, b: Builder) -> None:
        b.join("flange_a", "flange_b")
        relative = b.w("flange_a") - b.w("support")
        index = b.friction(relative, source=CAPACITY, source_index=b.input("tau_loss", "torque"), peak=self.peak)
        friction_outputs(b, relative, index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)
