"""Clearance in series with a spring-damper: no torque inside the gap, contact that can only push outside.

Law, with x = phi_b - phi_a - phi_rel0 and w_rel = w_b - w_a; the other side x < -b/2 is the mirror image:

    |x| <= b/2:  tau = 0
    x > b/2:     tc = c*(x - b/2), td = d*w_rel
                 ElastoBacklash    tau = 0 if tc + td <= 0 else tc + min(tc, td)    (continuous at the start of contact)
                 ElastoBacklash2   tau = max(0, tc + td)                            (jumps by d*w_rel there)

-tau acts on flange_b, +tau on flange_a. The damping part is dissipated: loss = integral of (tau - tc)*w_rel (with
tau = 0, -tc*w_rel). b <= 1e-10 rad is no clearance: spring and damper in parallel, linear.
Needs c > 0. After Modelica.Mechanics.Rotational.Components.ElastoBacklash and ElastoBacklash2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.compliances import spring_damper
from torqueloop.core.components.of_motion import TWO_SHAFTS
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    ELASTO_BACKLASH,
    ELASTO_BACKLASH2,
    HEAT_OF_CONTACT,
    OUT_CONTACT,
    OUT_CONTACT_LOSS,
    OUT_CONTACT_POWER,
    OUT_CONTACT_REGIME,
)
from torqueloop.core.describe.motion import ROTATION, Motion
from torqueloop.core.describe.params import param
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: a clearance up to this is none, rad (Modelica: bEps)
NO_CLEARANCE = 1e-10


def contact(
    b: Builder,
    relative: Form,
    c: float,
    d: float,
    lo: float,
    hi: float,
    kind: int,
    motion: Motion = ROTATION,
    suffix: str = "",
    n: float = 1.0,
) -> None:
    """A contact along `relative`, with outputs tau (f), regime, loss, lossPower, and its heat."""
    index = b.contact(relative, c, d, lo, hi, kind, n)
    b.output(motion.text("{tau}"), motion.dimension("torque"), OUT_CONTACT, index=index, gain=-1.0)
    b.output("regime", "1", OUT_CONTACT_REGIME, index=index)
    b.output("loss" + suffix, "energy", OUT_CONTACT_LOSS, index=index)
    b.output("lossPower" + suffix, "power", OUT_CONTACT_POWER, index=index)
    b.heat("heatPort", HEAT_OF_CONTACT, index)


def backlash(
    b: Builder, relative: Form, c: float, d: float, gap: float, phi_rel0: float, kind: int, suffix: str = ""
) -> None:
    """A contact on both sides of a gap; without a gap a spring and damper."""
    if gap <= NO_CLEARANCE:
        spring_damper(b, relative, c, d, phi_rel0, suffix=suffix)
    else:
        contact(b, relative, c, d, phi_rel0 - gap / 2.0, phi_rel0 + gap / 2.0, kind, suffix=suffix)


@dataclass(frozen=True, kw_only=True)
class ElastoBacklash(Component):
    """Gap b in series with a spring-damper; the torque is continuous: tc + min(tc, td), tc = c*(x - b/2), td = d*w_rel.

    x = phi_b - phi_a - phi_rel0. No torque for |x| <= b/2, none when the damper would pull (tc + td <= 0).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    c: float = param("stiffness", "rotational_stiffness", low=0.0, above=True)
    d: float = param("damping", "rotational_damping", low=0.0)
    b: float = param("total clearance", "angle", 0.0, low=0.0)
    phi_rel0: float = param("relative angle in the middle of the gap", "angle", 0.0)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative)
        backlash(b, relative, self.c, self.d, self.b, self.phi_rel0, ELASTO_BACKLASH)


@dataclass(frozen=True, kw_only=True)
class ElastoBacklash2(ElastoBacklash):
    """As ElastoBacklash with the full damping torque: max(0, tc + td); the torque jumps at the start of contact."""

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative)
        backlash(b, relative, self.c, self.d, self.b, self.phi_rel0, ELASTO_BACKLASH2)
