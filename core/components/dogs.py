"""Dog clutches: teeth that couple two shafts rigidly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.friction import CLUTCH_FLANGES
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import HEAT_OF_FRICTION, OUT_FRICTION, OUT_FRICTION_HEAT, OUT_STOPPED
from torqueloop.core.describe.params import param

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class DogClutch(Component):
    """Teeth that couple two shafts: input engage >= 0.5 asks for them.

    They engage where |w_b - w_a| falls to w_sync, in a plastic impact that keeps the momentum (0: only at equal speeds,
    without one), and are rigid then. Not asked for any more, they let go where |tau| falls to tau_release: friction
    between flanks holds them under load. These times are located within the step. tau acts on flange_a, -tau on
    flange_b, as of a Clutch; `engaged` is 1 while they hold; `loss` is the energy lost in impacts.
    """

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    w_sync: float = param("difference of speeds up to which the teeth engage", "angular_velocity", 0.0, low=0.0)
    tau_release: float = param("torque up to which the teeth let go", "torque", 0.0, low=0.0)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        teeth = (b.input("engage", "1", (0.0, 1.0)), self.w_sync, self.tau_release)
        index, friction = b.stop(relative, teeth=teeth)
        b.relative_outputs(relative)
        b.output("tau", "torque", OUT_FRICTION, index=friction, gain=-1.0)
        b.output("engaged", "1", OUT_STOPPED, index=index)
        b.output("loss", "energy", OUT_FRICTION_HEAT, index=friction)
        b.heat("heatPort", HEAT_OF_FRICTION, friction)
