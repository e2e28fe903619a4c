"""Eddy-current brakes: the braking torque rises with speed up to a maximum and falls beyond it.

    x = w/(w_nominal*(1 + ar*(T - TRef)))        ar = alpha20/(1 + alpha20*(TRef - 293.15 K))
    tau = 2*tau_nominal*x/(1 + x^2) against w    lossPower = tau*w

w is relative to the support; T is the temperature of heatPort, where the loss goes, or the parameter T while heatPort
is open. tau_nominal is the greatest torque, reached at w_nominal (at TRef); warmer, it is reached at a higher speed.
Steady-state characteristic, valid while w changes slowly against the decay of the currents; 1 + ar*(T - TRef) > 0.
After Modelica.Mechanics.Rotational.Sources.EddyCurrentTorque.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.sources import ROTATIONAL_FLANGES, TRANSLATIONAL_FLANGES
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.params import param, require
from torqueloop.core.describe.vocabulary import HEAT_OF_PORT, OUT_PORT, OUT_PORT_POWER, OUT_PORT_WORK, Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: temperature that alpha20 refers to, K
T20 = 293.15


@dataclass(frozen=True, kw_only=True)
class _EddyCurrent(Component):
    """Temperatures, and the law."""

    TRef: float = param("temperature of the nominal speed", "temperature", T20, low=0.0, above=True)
    alpha20: float = param("temperature coefficient of the resistance at 20 degC", "temperature_coefficient", 0.0)
    T: float = param("temperature while heatPort is open", "temperature", T20, low=0.0, above=True)

    def check(self) -> None:
        require(
            1.0 + self.alpha20 * (self.TRef - T20) > 0.0,
            "{key} = {value} makes the resistance negative at TRef", key="alpha20", value=self.alpha20,
            allowed=f"1 + alpha20*({self.TRef:g} - {T20:g}) > 0",
        )  # fmt: skip

    def _brake(self, b: Builder, speed: Form, peak: float, nominal: float, short: str, dimension: str) -> None:
        ar = self.alpha20 / (1.0 + self.alpha20 * (self.TRef - T20))
        port = ("eddy", b.eddy(speed, peak, nominal, ar, self.TRef, "heatPort", self.T))
        b.output(short, dimension, OUT_PORT, port=port, gain=-1.0)
        b.output("heat", "energy", OUT_PORT_WORK, port=port, gain=-1.0)
        b.output("lossPower", "power", OUT_PORT_POWER, port=port, gain=-1.0)
        b.heat("heatPort", HEAT_OF_PORT, port)


@dataclass(frozen=True, kw_only=True)
class EddyCurrentTorque(_EddyCurrent):
    """Brakes with 2*tau_nominal*x/(1 + x^2), x = w/(w_nominal*(1 + ar*(T - TRef))); output tau > 0 brakes w > 0."""

    flanges: ClassVar[Mapping[str, Flange]] = {**ROTATIONAL_FLANGES, "heatPort": HEAT_PORT}

    tau_nominal: float = param("greatest torque", "torque", low=0.0)
    w_nominal: float = param("speed of the greatest torque at TRef", "angular_velocity", low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        self._brake(b, speed, self.tau_nominal, self.w_nominal, "tau", "torque")


@dataclass(frozen=True, kw_only=True)
class EddyCurrentBrake(EddyCurrentTorque):
    """Another name of EddyCurrentTorque: tau = 2*tau_nominal*x/(1 + x^2) against w."""


@dataclass(frozen=True, kw_only=True)
class EddyCurrentForce(_EddyCurrent):
    """Brakes with 2*f_nominal*x/(1 + x^2), x = v/(v_nominal*(1 + ar*(T - TRef))); output f > 0 brakes v > 0."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TRANSLATIONAL_FLANGES, "heatPort": HEAT_PORT}

    f_nominal: float = param("greatest force", "force", low=0.0)
    v_nominal: float = param("speed of the greatest force at TRef", "velocity", low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        speed = b.w("flange") - b.w("support")
        self._brake(b, speed, self.f_nominal, self.v_nominal, "f", "force")
