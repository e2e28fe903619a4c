"""Parts of drivelines for the tests of the compiler: a component that contributes whatever a test wants, heat parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.components import (
    Inertia,
)
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.flange import HEAT_PORT, SUPPORT, THERMAL, Flange
from torqueloop.core.describe.kernel_numbers import (
    DRIVEN_POSITION,
    HEAT_FROM_INPUT,
    HEAT_OF_FRICTION,
    OUT_RATIO,
    OUT_REACTION,
    RATIO_INPUT,
)
from torqueloop.core.describe.params import param
from torqueloop.cython_kernels.model.records import PORTS


@dataclass(frozen=True, kw_only=True)
class Probe(Component):
    """Whatever a test wants: `law` contributes; b and support are in the housing unless joined."""

    flanges: ClassVar = {"a": Flange(), "b": SUPPORT, "support": SUPPORT, "heatPort": HEAT_PORT}

    law: Callable[[Builder], Any] = field(kw_only=False)

    def contribute(self, b: Builder) -> None:
        self.law(b)


@dataclass(frozen=True, kw_only=True)
class Reservoir(Component):
    """A heat capacity, or a given temperature (C = 0)."""

    flanges: ClassVar = {"port": Flange(domain=THERMAL)}

    C: float = param("heat capacity", "heat_capacity", 0.0)
    T: float = param("temperature", "temperature", 300.0)

    def contribute(self, b: Builder) -> None:
        if self.C > 0.0:
            b.heat_capacity("port", self.C, self.T)
        else:
            b.fixed_temperature("port", self.T)
        b.temperature_output("T", "port")


@dataclass(frozen=True, kw_only=True)
class Conductor(Component):
    """Heat conduction."""

    flanges: ClassVar = {"port_a": Flange(domain=THERMAL), "port_b": Flange(domain=THERMAL)}

    G: float = param("conductance", "thermal_conductance")

    def contribute(self, b: Builder) -> None:
        b.conductance("port_a", "port_b", self.G)


def drive(*connections: tuple[str, ...], **components: Component) -> Driveline:
    d = Driveline("test")
    for name, component in components.items():
        d.add(name, component)
    for group in connections:
        d.connect(*group)
    return d


def gear(ratio: int) -> Probe:
    """An ideal gear that tells the force along w_a - ratio*w_b."""

    def law(b: Builder) -> None:
        support = b.w("support")
        row = b.constraint((b.w("a") - support) - ratio * (b.w("b") - support))
        b.output("force", "torque", OUT_REACTION, index=b.reaction(row))

    return Probe(law)


def dense(model: CompiledModel, kind: str, field: str = "row") -> np.ndarray:
    """Rows of elements as a matrix over the coordinates."""
    a = model.arrays
    numbers = a.elements[kind][field]
    rows = np.zeros((len(numbers), model.n))
    for i, k in enumerate(numbers):
        for q in range(a.row_ptr[k], a.row_ptr[k + 1]):
            rows[i, a.row_idx[q]] += a.row_val[q]
    return rows


def ports(model: CompiledModel) -> np.ndarray:
    return np.vstack([dense(model, kind, field) for kind, field in PORTS])


def forces(model: CompiledModel, **given: list[float]) -> np.ndarray:
    """Reactions under given element forces (port, fr, lin, con), the accelerations taken from M."""
    a = model.arrays
    rows = {
        "port": ports(model), "fr": dense(model, "fr"), "lin": dense(model, "lin"), "con": dense(model, "con"),
    }  # fmt: skip
    values = {key: np.array(given.get(key, np.zeros(len(rows[key])))) for key in rows}
    acceleration = np.linalg.solve(a.M, sum(rows[key].T @ values[key] for key in rows))
    return a.re_A @ acceleration + sum(getattr(a, f"re_{key}") @ values[key] for key in rows)


def moved(b: Builder) -> None:
    inputs = (
        b.input("phi_ref", "angle"),
        b.derived_input("phi_ref", 1, "angular_velocity"),
        b.derived_input("phi_ref", 2, "angular_acceleration"),
    )
    b.driven(b.w("a"), DRIVEN_POSITION, inputs)


def changing(b: Builder) -> None:
    index = b.variable_gear(b.w("a"), b.w("b"), RATIO_INPUT, input=b.input("ratio", "1"))
    b.output("i", "1", OUT_RATIO, index=index)
    assert b.gear_friction(index) >= 0


def hot_brake() -> Driveline:
    def law(b: Builder) -> None:
        b.heat("heatPort", HEAT_OF_FRICTION, b.friction(b.w("a"), source=0, gain=2.0))
        b.heat("heatPort", HEAT_FROM_INPUT, b.input("P", "power"))

    return drive(("j.flange_a", "p.a"), j=Inertia(J=1), p=Probe(law))


def relative(value: float) -> Probe:
    """Prescribes w_b - w_a and phi_b - phi_a."""

    def law(b: Builder) -> None:
        form = b.w("b") - b.w("a")
        b.initial("w", form, value, "w_rel0")
        b.initial("phi", form, value / 2, "phi_rel0")

    return Probe(law)
