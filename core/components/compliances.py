"""Springs and dampers between two shafts (or a shaft and the housing).

Law, with phi_rel = phi_b - phi_a and w_rel = w_b - w_a:

    tau = c*(phi_rel - phi_rel0) + d*w_rel          -tau acts on flange_b, +tau on flange_a

Loss power d*w_rel^2 >= 0 goes to heatPort. Linear for any twist. After Modelica.Mechanics.Rotational.Components.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import TWO_SHAFTS, OfMotion
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import HEAT_OF_DAMPER, OUT_COMPLIANCE, OUT_DAMPER_POWER, OUT_DISSIPATION
from torqueloop.core.describe.motion import ROTATION, Motion
from torqueloop.core.describe.params import shared
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


def spring_damper(
    b: Builder, relative: Form, c: float, d: float, relaxed: float, motion: Motion = ROTATION, suffix: str = ""
) -> None:
    """Spring and damper along `relative`, with outputs tau (f), loss, lossPower, and the heat of the damper."""
    index = spring(b, relative, c, d, relaxed, motion, suffix)
    b.output("lossPower" + suffix, "power", OUT_DAMPER_POWER, index=index)
    b.heat("heatPort", HEAT_OF_DAMPER, index)


def spring(
    b: Builder, relative: Form, c: float, d: float, relaxed: float, motion: Motion = ROTATION, suffix: str = ""
) -> int:
    """Compliance along `relative` with outputs tau (f) and loss; its index."""
    index = b.compliance(relative, c, d, relaxed)
    b.output(motion.text("{tau}"), motion.dimension("torque"), OUT_COMPLIANCE, index=index, gain=-1.0)
    b.output("loss" + suffix, "energy", OUT_DISSIPATION, index=index)
    return index


def relaxed() -> Any:
    """Parameter: where a spring has no torque."""
    return shared("{relative angle} at which the spring is relaxed", "angle", 0.0)


@dataclass(frozen=True, kw_only=True)
class SpringLaw(OfMotion):
    """A spring alone."""

    c: float = shared("stiffness", "rotational_stiffness", low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        spring(b, self.between(b), self.c, 0.0, self.value("{phi}_rel0"), self.motion)


@dataclass(frozen=True, kw_only=True)
class DamperLaw(OfMotion):
    """A damper alone."""

    d: float = shared("damping", "rotational_damping", low=0.0)

    def contribute(self, b: Builder) -> None:
        spring_damper(b, self.between(b), 0.0, self.d, 0.0, self.motion)


@dataclass(frozen=True, kw_only=True)
class SpringDamperLaw(OfMotion):
    """Both in parallel."""

    c: float = shared("stiffness", "rotational_stiffness", low=0.0, above=True)
    d: float = shared("damping", "rotational_damping", low=0.0)

    def contribute(self, b: Builder) -> None:
        spring_damper(b, self.between(b), self.c, self.d, self.value("{phi}_rel0"), self.motion)


@dataclass(frozen=True, kw_only=True)
class Spring(SpringLaw):
    """Linear torsion spring: tau = c*(phi_rel - phi_rel0), phi_rel = phi_b - phi_a; -tau on flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    phi_rel0: float = relaxed()


@dataclass(frozen=True, kw_only=True)
class Damper(DamperLaw):
    """Linear torsion damper: tau = d*w_rel, w_rel = w_b - w_a; -tau on flange_b. Loss power d*w_rel^2."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}


@dataclass(frozen=True, kw_only=True)
class SpringDamper(SpringDamperLaw):
    """Spring and damper in parallel: tau = c*(phi_rel - phi_rel0) + d*w_rel; -tau on flange_b. Loss d*w_rel^2."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    phi_rel0: float = relaxed()
