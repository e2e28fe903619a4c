"""Springs and dampers between two shafts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.base import Component, Flange, param
from torqueloop.core.vocabulary import OUT_COMPLIANCE, OUT_DISSIPATION

if TYPE_CHECKING:
    from torqueloop.core.builder import Builder


@dataclass(frozen=True, kw_only=True)
class _Compliant(Component):
    """tau = c*(phi_rel - phi_rel0) + d*w_rel with phi_rel = phi_b - phi_a; -tau acts on flange_b, +tau on flange_a."""

    flanges: ClassVar = {"flange_a": Flange(), "flange_b": Flange()}

    def _contribute(self, b: Builder, c: float, d: float, phi_rel0: float) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        index = b.compliance(relative, c, d, phi_rel0)
        b.relative_outputs(relative)
        b.output("tau", "torque", OUT_COMPLIANCE, index=index, gain=-1.0)
        b.output("loss", "energy", OUT_DISSIPATION, index=index)


@dataclass(frozen=True, kw_only=True)
class Spring(_Compliant):
    """Linear torsion spring."""

    c: float = param("stiffness", "rotational_stiffness", low=0.0, above=True)
    phi_rel0: float = param("relative angle at which the spring is relaxed", "angle", 0.0)

    def contribute(self, b: Builder) -> None:
        self._contribute(b, self.c, 0.0, self.phi_rel0)


@dataclass(frozen=True, kw_only=True)
class Damper(_Compliant):
    """Linear torsion damper."""

    d: float = param("damping", "rotational_damping", low=0.0)

    def contribute(self, b: Builder) -> None:
        self._contribute(b, 0.0, self.d, 0.0)


@dataclass(frozen=True, kw_only=True)
class SpringDamper(_Compliant):
    """Spring and damper in parallel (a shaft with material damping)."""

    c: float = param("stiffness", "rotational_stiffness", low=0.0, above=True)
    d: float = param("damping", "rotational_damping", low=0.0)
    phi_rel0: float = param("relative angle at which the spring is relaxed", "angle", 0.0)

    def contribute(self, b: Builder) -> None:
        self._contribute(b, self.c, self.d, self.phi_rel0)
