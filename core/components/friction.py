"""Dry friction with a normal force, and free wheels.

Sign: w_rel = w_b - w_a (shaft minus support for a brake); `tau` is Modelica's: the torque on the first shaft
(flange_a) of a clutch, the torque against the shaft of a brake (tau > 0 for w > 0).

    sliding:  |tau| = cgeo*mue(|w_rel|)*fn against w_rel       fn = fn_max*max(0, f_normalized)
    stuck:    whatever keeps w_rel = 0, up to peak*cgeo*mue(0)*fn

Loss power |tau*w_rel| goes to heatPort. Rate-independent but for mue: no presliding, no hysteresis. Beyond its last
point a table holds its value; with extrapolation = "linear" it goes on as Modelica's tables do.
After Modelica.Mechanics.Rotational.Components; Otter, Elmqvist, Mattsson, CACSD 1999.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.of_motion import SHAFT_IN_SUPPORT, TWO_SHAFTS, OfMotion
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    BLOCKED,
    CAPPED,
    CONSTANT,
    HEAT_OF_FRICTION,
    NORMALIZED,
    NOTHING,
    OUT_CAPACITY,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_FRICTION_POWER,
    OUT_MODE,
)
from torqueloop.core.describe.motion import ROTATION, Motion
from torqueloop.core.describe.params import curve, param, shared
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

CLUTCH_FLANGES = {**TWO_SHAFTS, "heatPort": HEAT_PORT}
BRAKE_FLANGES = SHAFT_IN_SUPPORT

#: breakaway torque of an unpressed OneWayClutch relative to cgeo*mue(0)*fn_max (Modelica: fn_max*1e-4)
ONE_WAY_HOLD = 1e-4
#: smallest breakaway/sliding ratio of a OneWayClutch (Modelica)
ONE_WAY_PEAK = 1.0001


def friction_outputs(b: Builder, relative: Form, index: int, motion: Motion = ROTATION) -> None:
    """tau, mode, capacity, heat, lossPower of friction element `index`, with its relative motion (s_rel, v_rel, f)."""
    dimension = motion.dimension("torque")
    b.relative_outputs(relative, motion.domain)
    b.output(motion.text("{tau}"), dimension, OUT_FRICTION, index=index, gain=-1.0)
    b.output("mode", "1", OUT_MODE, index=index)
    b.output("capacity", dimension, OUT_CAPACITY, index=index)
    b.output("heat", "energy", OUT_FRICTION_HEAT, index=index)
    b.output("lossPower", "power", OUT_FRICTION_POWER, index=index)


@dataclass(frozen=True, kw_only=True)
class Pressed(OfMotion):
    """Parameters of elements pressed by a normalized input: fn = fn_max*max(0, f_normalized)."""

    fn_max: float = param("normal force at f_normalized = 1", "force", low=0.0, above=True)
    cgeo: float = param("geometry constant N*(r_o + r_i)/2, N friction faces", "length", 1.0, low=0.0, above=True)
    mue_pos: Any = curve("friction coefficient over |w_rel|", "angular_velocity", "1", low=0.0)
    peak: float = param("breakaway over sliding coefficient at standstill", default=1.0, low=1.0)

    def _friction(self, b: Builder, relative: Form, **directions: Any) -> None:
        index = b.friction(
            relative,
            source=NORMALIZED,
            source_index=b.input("f_normalized", "1"),
            gain=self.fn_max,
            cgeo=self.cgeo,
            mu=b.table1("mue_pos"),
            **{"peak": self.peak, **directions},
        )
        friction_outputs(b, relative, index, self.motion)
        b.heat("heatPort", HEAT_OF_FRICTION, index)


class BrakeLaw(Pressed):
    """Pressed friction between a part and the support it passes through."""

    def contribute(self, b: Builder) -> None:
        b.join("flange_a", "flange_b")
        self._friction(b, b.w("flange_a") - b.w("support"))


class BearingLaw(OfMotion):
    """Friction between a part and its support over the speed, always pressed."""

    peak: float

    def contribute(self, b: Builder) -> None:
        b.join("flange_a", "flange_b")
        relative = b.w("flange_a") - b.w("support")
        curve = b.table1(self.motion.text("{tau}_pos"))
        index = b.friction(relative, source=CONSTANT, gain=1.0, mu=curve, peak=self.peak)
        friction_outputs(b, relative, index, self.motion)
        b.heat("heatPort", HEAT_OF_FRICTION, index)


def over_speed() -> Any:
    """Parameter: that friction."""
    columns = ("angular_velocity", "torque")
    return shared("friction {torque} over |{w}|", "torque", form="curve", columns=columns, low=0.0)


def breakaway() -> Any:
    """Parameter: how much more it holds than it takes sliding."""
    return shared("breakaway over sliding {torque} at standstill", default=1.0, low=1.0)


@dataclass(frozen=True, kw_only=True)
class Clutch(Pressed):
    """Friction between two shafts: |tau| = cgeo*mue_pos(|w_rel|)*fn sliding, up to peak*cgeo*mue_pos(0)*fn stuck."""

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    w_rel0: float | None = param("start slip w_b - w_a", "angular_velocity", None)
    phi_rel0: float | None = param("start angle phi_b - phi_a", "angle", None)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        self._friction(b, relative)
        b.initial("w", relative, self.w_rel0, "w_rel0")
        b.initial("phi", relative, self.phi_rel0, "phi_rel0")


@dataclass(frozen=True, kw_only=True)
class Brake(BrakeLaw):
    """Friction between a shaft (phi_a = phi_b) and the support; torques as of a Clutch, with w = w_a - w_support."""

    flanges: ClassVar[Mapping[str, Flange]] = BRAKE_FLANGES


@dataclass(frozen=True, kw_only=True)
class OneWayClutch(Pressed):
    """Free wheel (w_rel < 0 blocked) in parallel with a clutch, as one element: the torque is unique when stuck.

    Start speeds need w_rel = w_b - w_a >= 0. Breakaway torque max(peak, 1.0001)*cgeo*mue_pos(0)*fn, unpressed 1e-4 of
    cgeo*mue_pos(0)*fn_max.
    """

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    def contribute(self, b: Builder) -> None:
        mu0 = b.table1("mue_pos")(0.0)
        self._friction(
            b,
            b.w("flange_b") - b.w("flange_a"),
            peak=max(self.peak, ONE_WAY_PEAK),
            forward=CAPPED,
            backward=BLOCKED,
            hold=ONE_WAY_HOLD * self.cgeo * mu0 * self.fn_max,
        )


@dataclass(frozen=True, kw_only=True)
class FreeWheel(Component):
    """Pure free wheel between two shafts: w_b < w_a is blocked, w_b > w_a overruns without torque.

    Join flange_a to a Fixed for a free wheel that only lets flange_b turn forward. It takes no power but that of the
    impact when it is made to block at w_rel < 0 (wrong start values, a jump of a forced motion).
    """

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        index = b.friction(relative, source=CONSTANT, gain=0.0, forward=NOTHING, backward=BLOCKED)
        friction_outputs(b, relative, index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)


@dataclass(frozen=True, kw_only=True)
class BearingFriction(BearingLaw):
    """Always pressed: sliding torque tau_pos(|w|), breakaway torque peak*tau_pos(0), between shaft and support."""

    flanges: ClassVar[Mapping[str, Flange]] = BRAKE_FLANGES

    tau_pos: Any = over_speed()
    peak: float = breakaway()
