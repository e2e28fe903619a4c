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
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import PART_ON_SUPPORT, SHAFT_ON_SUPPORT, OnSupport, Sliding
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import HEAT_OF_PORT, OUT_PORT, OUT_PORT_POWER, OUT_PORT_WORK
from torqueloop.core.describe.params import param, require, shared

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: temperature that alpha20 refers to, K
T20 = 293.15


@dataclass(frozen=True, kw_only=True)
class EddyCurrentLaw(OnSupport):
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

    def contribute(self, b: Builder) -> None:
        peak, nominal = self.value("{tau}_nominal"), self.value("{w}_nominal")
        ar = self.alpha20 / (1.0 + self.alpha20 * (self.TRef - T20))
        port = ("eddy", b.eddy(self.speed(b), peak, nominal, ar, self.TRef, "heatPort", self.T))
        b.output(self.motion.text("{tau}"), self.motion.dimension("torque"), OUT_PORT, port=port, gain=-1.0)
        b.output("heat", "energy", OUT_PORT_WORK, port=port, gain=-1.0)
        b.output("lossPower", "power", OUT_PORT_POWER, port=port, gain=-1.0)
        b.heat("heatPort", HEAT_OF_PORT, port)


def greatest_torque() -> Any:
    """Parameter: the top of the curve."""
    return shared("greatest {torque}", "torque", low=0.0)


def its_speed() -> Any:
    """Parameter: where that is."""
    return shared("speed of the greatest {torque} at TRef", "angular_velocity", low=0.0, above=True)


@dataclass(frozen=True, kw_only=True)
class EddyCurrentTorque(EddyCurrentLaw):
    """Brakes with 2*tau_nominal*x/(1 + x^2), x = w/(w_nominal*(1 + ar*(T - TRef))); output tau > 0 brakes w > 0."""

    flanges: ClassVar[Mapping[str, Flange]] = {**SHAFT_ON_SUPPORT, "heatPort": HEAT_PORT}

    tau_nominal: float = greatest_torque()
    w_nominal: float = its_speed()


@dataclass(frozen=True, kw_only=True)
class EddyCurrentBrake(EddyCurrentTorque):
    """Another name of EddyCurrentTorque: tau = 2*tau_nominal*x/(1 + x^2) against w."""


@dataclass(frozen=True, kw_only=True)
class EddyCurrentForce(Sliding, EddyCurrentLaw):
    """Brakes with 2*f_nominal*x/(1 + x^2), x = v/(v_nominal*(1 + ar*(T - TRef))); output f > 0 brakes v > 0."""

    flanges: ClassVar[Mapping[str, Flange]] = {**PART_ON_SUPPORT, "heatPort": HEAT_PORT}

    f_nominal: float = greatest_torque()
    v_nominal: float = its_speed()
