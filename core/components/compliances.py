"""Springs and dampers between two shafts (or a shaft and the housing).

Law, with phi_rel = phi_b - phi_a and w_rel = w_b - w_a:

    tau = c*(phi_rel - phi_rel0) + d*w_rel          -tau acts on flange_b, +tau on flange_a

Loss power d*w_rel^2 >= 0 goes to heatPort. Linear for any twist. After Modelica.Mechanics.Rotational.Components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.params import param
from torqueloop.core.describe.vocabulary import (
    HEAT_OF_DAMPER,
    OUT_ANGLE,
    OUT_COMPLIANCE,
    OUT_DAMPER_POWER,
    OUT_DISSIPATION,
    OUT_SPEED,
    Form,
)

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

TWO_SHAFTS = {"flange_a": Flange(), "flange_b": Flange()}


def relative_motion(b: Builder, relative: Form) -> None:
    """s_rel and v_rel of an element between two sliding parts."""
    b.output("s_rel", "length", OUT_ANGLE, form=relative)
    b.output("v_rel", "velocity", OUT_SPEED, form=relative)


def spring_damper(
    b: Builder, relative: Form, c: float, d: float, relaxed: float, dimension: str = "torque", suffix: str = ""
) -> None:
    """Spring and damper along `relative`, with outputs tau (f), loss, lossPower, and the heat of the damper."""
    index = spring(b, relative, c, d, relaxed, dimension, suffix)
    b.output("lossPower" + suffix, "power", OUT_DAMPER_POWER, index=index)
    b.heat("heatPort", HEAT_OF_DAMPER, index)


def spring(
    b: Builder, relative: Form, c: float, d: float, relaxed: float, dimension: str = "torque", suffix: str = ""
) -> int:
    """Compliance along `relative` with outputs tau (f) and loss; its index."""
    index = b.compliance(relative, c, d, relaxed)
    b.output("tau" if dimension == "torque" else "f", dimension, OUT_COMPLIANCE, index=index, gain=-1.0)
    b.output("loss" + suffix, "energy", OUT_DISSIPATION, index=index)
    return index


@dataclass(frozen=True, kw_only=True)
class Spring(Component):
    """Linear torsion spring: tau = c*(phi_rel - phi_rel0), phi_rel = phi_b - phi_a; -tau on flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    c: float = param("stiffness", "rotational_stiffness", low=0.0, above=True)
    phi_rel0: float = param("relative angle at which the spring is relaxed", "angle", 0.0)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative)
        spring(b, relative, self.c, 0.0, self.phi_rel0)


@dataclass(frozen=True, kw_only=True)
class Damper(Component):
    """Linear torsion damper: tau = d*w_rel, w_rel = w_b - w_a; -tau on flange_b. Loss power d*w_rel^2."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    d: float = param("damping", "rotational_damping", low=0.0)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative)
        spring_damper(b, relative, 0.0, self.d, 0.0)


@dataclass(frozen=True, kw_only=True)
class SpringDamper(Component):
    """Spring and damper in parallel: tau = c*(phi_rel - phi_rel0) + d*w_rel; -tau on flange_b. Loss d*w_rel^2."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    c: float = param("stiffness", "rotational_stiffness", low=0.0, above=True)
    d: float = param("damping", "rotational_damping", low=0.0)
    phi_rel0: float = param("relative angle at which the spring is relaxed", "angle", 0.0)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative)
        spring_damper(b, relative, self.c, self.d, self.phi_rel0)
