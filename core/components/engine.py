"""Mapped combustion engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import OPEN, SUPPORT, Flange
from torqueloop.core.describe.kernel_numbers import OUT_ENGINE, OUT_ENGINE_WORK, OUT_INPUT
from torqueloop.core.describe.params import Param, curve, param, require, require_given

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

_MAP = Param(
    "torque over speed and pedal, instead of wot",
    "torque", None, form="map", columns=("angular_velocity", "1", "torque"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Engine(Component):
    """Crankshaft with inertia J driven by tau = drag(w) + pedal*(wot(w) - drag(w)), or tau = map(w, pedal).

    An idle controller adds a torque in [0, tau_idle_max]: kp*(w_idle - w) + ki * integral of (w_idle - w).
    drag is negative: the closed-throttle torque that brakes the crankshaft. Input: pedal 0..1.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange": OPEN, "support": SUPPORT}

    J: float = param("inertia of crankshaft and flywheel; that of a model aeroplane has 1e-6", "inertia", low=1e-7)
    wot: Any = curve("torque at full pedal over speed", "angular_velocity", "torque", None)
    drag: Any = curve("torque at closed throttle over speed, negative", "angular_velocity", "torque", 0.0, high=0.0)
    map: Any = field(default=None, metadata={"param": _MAP})
    w_idle: float = param("idle speed", "angular_velocity", 0.0, low=0.0)
    kp: float = param("idle controller, proportional", "rotational_damping", 0.0, low=0.0)
    ki: float = param("idle controller, integral", "rotational_stiffness", 0.0, low=0.0)
    tau_idle_max: float = param("largest torque of the idle controller", "torque", 0.0, low=0.0)
    w0: float | None = param("start speed", "angular_velocity", None)
    phi0: float | None = param("start angle", "angle", None)

    def check(self) -> None:
        require_given(self.wot is not None or self.map is not None, "{key} is missing (or map)", "wot")
        require(self.wot is None or self.map is None, "give wot or map, not both", key="map")

    def contribute(self, b: Builder) -> None:
        shaft = b.w("flange")
        b.inertia("flange", self.J)
        pedal = b.input("pedal", "1", (0.0, 1.0))
        index = b.engine(
            form=shaft - b.w("support"),
            pedal=pedal,
            wot=b.table1("wot") if self.wot is not None else None,
            drag=b.table1("drag"),
            map=b.table2("map") if self.map is not None else None,
            w_idle=self.w_idle,
            kp=self.kp,
            ki=self.ki,
            tau_idle_max=self.tau_idle_max,
        )
        b.motion_outputs(shaft)
        b.output("tau", "torque", OUT_ENGINE, index=index)
        b.output("work", "energy", OUT_ENGINE_WORK, index=index)
        b.output("pedal", "1", OUT_INPUT, index=pedal)
        b.initial("w", shaft, self.w0, "w0")
        b.initial("phi", shaft, self.phi0, "phi0")
