"""A shaft that may break."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.friction import CLUTCH_FLANGES, friction_outputs
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import CAPACITY, HEAT_OF_FRICTION
from torqueloop.core.describe.params import param
from torqueloop.core.signals import Constant, Signal

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class BreakableShaft(Component):
    """A rigid shaft without inertia that holds up to a torque: w_b = w_a as long as |tau| <= hold, beyond that it
    slides with that torque (a press fit, a spline that shears).

    Input: hold [Nm], tau_hold unless something else is wired to it. At 0 it is broken: both ends turn freely. A fault
    of kind "broken" does that in a rig.
    """

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    tau_hold: float = param("torque it holds", "torque", low=0.0)

    def default_inputs(self) -> dict[str, Signal]:
        return {"hold": Constant(self.tau_hold)}

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        index = b.friction(relative, source=CAPACITY, source_index=b.input("hold", "torque"))
        friction_outputs(b, relative, index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)
