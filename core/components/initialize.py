"""Start values where the driveline wants them: at one flange, or relative between two. No forces.

What is not given follows from gears and joints, or is as small as possible (sum of squares). Contradictions are errors.
A start acceleration cannot be given: it follows from the torques.
After Modelica.Mechanics.Rotational.Components.InitializeFlange and RelativeStates (and the translational ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.compliances import TWO_SHAFTS, relative_motion
from torqueloop.core.components.sensors import ONE_PART, ONE_SHAFT, TWO_PARTS
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param
from torqueloop.core.describe.vocabulary import OUT_ACCELERATION

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class InitializeFlange(Component):
    """phi = phi_start and w = w_start at the start (each only if given); outputs phi, w, a."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT

    phi_start: float | None = param("start angle", "angle", None)
    w_start: float | None = param("start speed", "angular_velocity", None)

    def contribute(self, b: Builder) -> None:
        form = b.w("flange")
        b.initial("phi", form, self.phi_start, "phi_start")
        b.initial("w", form, self.w_start, "w_start")
        b.motion_outputs(form)


@dataclass(frozen=True, kw_only=True)
class RelativeStates(Component):
    """At the start phi_b - phi_a = phi_rel0 and w_b - w_a = w_rel0 (each only if given); outputs phi_rel, w_rel, a_rel.

    Nothing is chosen as a state here: only the start values count.
    """

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    phi_rel0: float | None = param("start angle phi_b - phi_a", "angle", None)
    w_rel0: float | None = param("start speed w_b - w_a", "angular_velocity", None)

    def contribute(self, b: Builder) -> None:
        form = b.w("flange_b") - b.w("flange_a")
        b.initial("phi", form, self.phi_rel0, "phi_rel0")
        b.initial("w", form, self.w_rel0, "w_rel0")
        b.relative_outputs(form)
        b.output("a_rel", "angular_acceleration", OUT_ACCELERATION, form=form)


@dataclass(frozen=True, kw_only=True)
class TranslationalInitializeFlange(Component):
    """s = s_start and v = v_start at the start (each only if given); outputs s, v, a."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART

    s_start: float | None = param("start position", "length", None)
    v_start: float | None = param("start speed", "velocity", None)

    def contribute(self, b: Builder) -> None:
        form = b.w("flange")
        b.initial("phi", form, self.s_start, "s_start")
        b.initial("w", form, self.v_start, "v_start")
        b.motion_outputs(form, TRANSLATIONAL)


@dataclass(frozen=True, kw_only=True)
class TranslationalRelativeStates(Component):
    """At the start s_b - s_a = s_rel0 and v_b - v_a = v_rel0 (each only if given); outputs s_rel, v_rel, a_rel."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    s_rel0: float | None = param("start distance s_b - s_a", "length", None)
    v_rel0: float | None = param("start speed v_b - v_a", "velocity", None)

    def contribute(self, b: Builder) -> None:
        form = b.w("flange_b") - b.w("flange_a")
        b.initial("phi", form, self.s_rel0, "s_rel0")
        b.initial("w", form, self.v_rel0, "v_rel0")
        relative_motion(b, form)
        b.output("a_rel", "acceleration", OUT_ACCELERATION, form=form)
