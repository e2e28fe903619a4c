"""The grip of the tyres of a driven axle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.friction import CLUTCH_FLANGES, friction_outputs
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import CONSTANT, HEAT_OF_FRICTION
from torqueloop.core.describe.params import param, require

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class TyreGrip(Component):
    """Slip of driven tyres at the limit of their grip: between the wheels (flange_a) and the rolling wheel (flange_b).

    The load of the driven axle grows with the acceleration of the car, N = load + m*a*h/l. At the limit the force is
    F = m*a = mue*N, so the largest torque of the axle is

        tau_max = radius*mue*load/(1 - mue*transfer),   transfer = h/l: rear axle, -h/l: front axle, 0: no transfer

    h: height of the centre of gravity, l: wheelbase. Below the limit the tyres do not slip; the few per cent of a tyre
    that grips, air and grade in the load are left out. The limit is the same for both directions, and `mue` is the peak
    value, at which traction control holds the tyre. Source: equilibrium of moments about the other axle's contact.
    """

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    radius: float = param("rolling radius", "length", low=0.0, above=True)
    mue: float = param("peak friction coefficient of the tyres", low=0.0, above=True, high=2.0)
    load: float = param("load on the driven axle at rest", "force", low=0.0, above=True)
    transfer: float = param("height of the centre of gravity over wheelbase; negative: front axle is driven",
                            default=0.0, low=-1.0, high=1.0)  # fmt: skip

    def check(self) -> None:
        require(self.mue * self.transfer < 1.0, "{key} = {value} is out of range: the car tips over", key="transfer",
                value=self.transfer, allowed="mue*transfer < 1")  # fmt: skip

    @property
    def tau_max(self) -> float:
        """Largest torque of the axle [Nm]."""
        return self.radius * self.mue * self.load / (1.0 - self.mue * self.transfer)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        index = b.friction(relative, source=CONSTANT, gain=self.tau_max)
        friction_outputs(b, relative, index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)
