"""Start values where the driveline wants them: at one flange, or relative between two. No forces.

What is not given follows from gears and joints, or is as small as possible (sum of squares). Contradictions are errors.
A start acceleration cannot be given: it follows from the torques.
After Modelica.Mechanics.Rotational.Components.InitializeFlange and RelativeStates (and the translational ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import (
    ONE_PART,
    ONE_SHAFT,
    TWO_PARTS,
    TWO_SHAFTS,
    OfMotion,
    Sliding,
    start_position,
    start_speed,
)
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import OUT_ACCELERATION
from torqueloop.core.describe.params import shared

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


class InitializeLaw(OfMotion):
    """Start values of one flange."""

    def contribute(self, b: Builder) -> None:
        form = b.w("flange")
        self.start(b, "phi", form, "{phi}_start")
        self.start(b, "w", form, "{w}_start")
        b.motion_outputs(form, self.motion.domain)


class RelativeStatesLaw(OfMotion):
    """Start values of flange_b against flange_a."""

    def contribute(self, b: Builder) -> None:
        form = self.between(b)
        self.start(b, "phi", form, "{phi}_rel0")
        self.start(b, "w", form, "{w}_rel0")
        b.output("a_rel", self.motion.dimension("angular_acceleration"), OUT_ACCELERATION, form=form)


def start_distance(what: str) -> Any:
    """Parameter: where flange_b is at the start, seen from flange_a."""
    return shared(f"start {what} {{phi}}_b - {{phi}}_a", "angle", None)


@dataclass(frozen=True, kw_only=True)
class InitializeFlange(InitializeLaw):
    """phi = phi_start and w = w_start at the start (each only if given); outputs phi, w, a."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_SHAFT

    phi_start: float | None = start_position()
    w_start: float | None = start_speed()


@dataclass(frozen=True, kw_only=True)
class RelativeStates(RelativeStatesLaw):
    """At the start phi_b - phi_a = phi_rel0 and w_b - w_a = w_rel0 (each only if given); outputs phi_rel, w_rel, a_rel.

    Nothing is chosen as a state here: only the start values count.
    """

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    phi_rel0: float | None = start_distance("angle")
    w_rel0: float | None = start_speed(" {w}_b - {w}_a")


@dataclass(frozen=True, kw_only=True)
class TranslationalInitializeFlange(Sliding, InitializeLaw):
    """s = s_start and v = v_start at the start (each only if given); outputs s, v, a."""

    flanges: ClassVar[Mapping[str, Flange]] = ONE_PART

    s_start: float | None = start_position()
    v_start: float | None = start_speed()


@dataclass(frozen=True, kw_only=True)
class TranslationalRelativeStates(Sliding, RelativeStatesLaw):
    """At the start s_b - s_a = s_rel0 and v_b - v_a = v_rel0 (each only if given); outputs s_rel, v_rel, a_rel."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_PARTS

    s_rel0: float | None = start_distance("distance")
    v_rel0: float | None = start_speed(" {w}_b - {w}_a")
