"""Hard stops: a range of motion whose ends are rigid, and a sliding mass with both and friction.

Law, with x the relative angle or position and w its speed:

    lo < x < hi:  no force
    x = hi:       w = 0 and f <= 0 (pushes back), or it leaves with f = 0;   x = lo: the mirror image

An end is met in a plastic impact at the located instant: w becomes 0 at once, momentum is kept, the energy lost is heat
(output `loss`). Friction of finite capacity has no part in an impact. Stiff or damped ends: ElastoGap, ElastoBacklash.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.friction import friction_outputs
from torqueloop.core.components.of_motion import (
    TWO_PARTS,
    TWO_SHAFTS,
    OfMotion,
    Sliding,
    start_position,
    start_speed,
)
from torqueloop.core.components.shafts import OF_A_MASS, LongBody, length
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    CONSTANT,
    HEAT_OF_FRICTION,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_STOPPED,
)
from torqueloop.core.describe.motion import Motion
from torqueloop.core.describe.params import param, require, require_given, shared
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: breakaway over sliding force of MassWithStopAndFriction (Modelica: f0_max = f0*1.001)
BREAKAWAY = 1.001
#: of the Stribeck force: how near the curve of friction over speed is to its exponential
STRIBECK_ERROR = 1e-7


def stop(b: Builder, relative: Form, lo: float, hi: float, motion: Motion, suffix: str = "") -> None:
    """Stops of `relative`, with outputs: tau (f) on the second part, end it is at, energy lost; and its heat."""
    index, friction = b.stop(relative, lo, hi)
    b.output(motion.text("{tau}") + suffix, motion.dimension("torque"), OUT_FRICTION, index=friction)
    b.output("stopped", "1", OUT_STOPPED, index=index)
    b.output("loss" + suffix, "energy", OUT_FRICTION_HEAT, index=friction)
    b.heat("heatPort", HEAT_OF_FRICTION, friction)


def check_range(lo: float | None, hi: float | None, low: str, high: str) -> None:
    """At least one end, and the lower one below the upper one."""
    require_given(lo is not None or hi is not None, "{key} is missing (or " + high + ")", low)
    if lo is not None and hi is not None:
        require(lo < hi, "{key} = {value} is out of range", key=high, value=hi, allowed=f"> {low} = {lo:g}")


def ends(lo: float | None, hi: float | None) -> tuple[float, float]:
    """Numbers for both ends; infinite where there is none."""
    return -math.inf if lo is None else lo, math.inf if hi is None else hi


@dataclass(frozen=True, kw_only=True)
class HardStopLaw(OfMotion):
    """Two parts that move against each other within a range."""

    def check(self) -> None:
        lo, hi = self.motion.text("{phi}_min"), self.motion.text("{phi}_max")
        check_range(self.value(lo), self.value(hi), lo, hi)

    def contribute(self, b: Builder) -> None:
        stop(b, self.between(b), *ends(self.value("{phi}_min"), self.value("{phi}_max")), self.motion)


def end(which: str) -> Any:
    """Parameter: one end of the range."""
    return shared(which + " {relative angle}; none without it", "angle", None)


@dataclass(frozen=True, kw_only=True)
class HardStop(HardStopLaw):
    """Two shafts that turn against each other between phi_min and phi_max only: phi_rel = phi_b - phi_a.

    At an end w_rel = 0 and the torque tau on flange_b only pushes back (-tau on flange_a); reached in a plastic impact.
    `stopped`: -1 at phi_min, 1 at phi_max, else 0.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    phi_min: float | None = end("smallest")
    phi_max: float | None = end("largest")


@dataclass(frozen=True, kw_only=True)
class TranslationalHardStop(Sliding, HardStopLaw):
    """As HardStop between two sliding parts: s_min <= s_rel <= s_max, s_rel = s_b - s_a; force f on flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_PARTS, "heatPort": HEAT_PORT}

    s_min: float | None = end("smallest")
    s_max: float | None = end("largest")


def stribeck(F_Coulomb: float, F_prop: float, F_Stribeck: float, fexp: float) -> Table1D:
    """F_Coulomb + F_prop*v + F_Stribeck*exp(-fexp*v) over v >= 0, linear between nodes and beyond.

    Between nodes dx apart (x = fexp*v) the exponential is off by dx^2/8*exp(-x): nodes sqrt(8*error)*exp(x/2) apart.
    """
    nodes = [0.0]
    if F_Stribeck > 0.0 and fexp > 0.0:
        while math.exp(-nodes[-1]) > STRIBECK_ERROR:
            nodes.append(nodes[-1] + min(1.0, math.sqrt(8.0 * STRIBECK_ERROR) * math.exp(0.5 * nodes[-1])))
    speeds = [x / fexp for x in nodes] if len(nodes) > 1 else [0.0]
    # beyond the last node the exponential is gone: the line F_Coulomb + F_prop*v
    speeds.append(2.0 * speeds[-1] if speeds[-1] > 0.0 else 1.0)
    if len(nodes) > 1:
        speeds.append(3.0 * speeds[-2])
    values = [F_Coulomb + F_prop * v + (F_Stribeck * math.exp(-fexp * v) if F_Stribeck > 0.0 else 0.0) for v in speeds]
    return Table1D(tuple(speeds), tuple(values), extrapolation="linear")


@dataclass(frozen=True, kw_only=True)
class MassWithStopAndFriction(LongBody):
    """Sliding mass of length L between hard stops, with Coulomb, viscous and Stribeck friction against the housing.

    m*a = f_a + f_b - f + f_stop;  sliding: f = (F_Coulomb + F_prop*|v| + F_Stribeck*exp(-fexp*|v|))*sign(v), stuck: up
    to 1.001*(F_Coulomb + F_Stribeck). Its ends stay within smin and smax: smin + L/2 <= s <= smax - L/2, s its centre;
    at a stop v = 0 and f_stop only pushes back. `stopped`: -1 at smin, 1 at smax, else 0. The exponential is a curve
    within 1e-7 of F_Stribeck. After Modelica.Mechanics.Translational.Components.MassWithStopAndFriction.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**OF_A_MASS, "heatPort": HEAT_PORT}

    m: float = param("mass", "mass", low=0.0, above=True)
    L: Fraction = length()
    smin: float = param("position of the left stop", "length", -25.0)
    smax: float = param("position of the right stop", "length", 25.0)
    F_prop: float = param("speed-dependent friction", "damping", 0.0, low=0.0)
    F_Coulomb: float = param("constant friction", "force", 0.0, low=0.0)
    F_Stribeck: float = param("Stribeck effect", "force", 0.0, low=0.0)
    fexp: float = param("decay of the Stribeck effect over speed", "inverse_velocity", 0.0, low=0.0)
    s0: float | None = start_position(" of the centre")
    v0: float | None = start_speed()

    def check(self) -> None:
        require(
            self.smax - self.smin > float(self.L),
            "{key} = {value} is out of range", key="smax", value=self.smax,
            allowed=f"> smin + L = {self.smin + float(self.L):g}",
        )  # fmt: skip

    def contribute(self, b: Builder) -> None:
        super().contribute(b)
        centre = b.w("centre")
        if max(self.F_Coulomb, self.F_Stribeck, self.F_prop) > 0.0:
            curve = stribeck(self.F_Coulomb, self.F_prop, self.F_Stribeck, self.fexp)
            index = b.friction(centre, source=CONSTANT, gain=1.0, mu=curve, peak=BREAKAWAY)
            friction_outputs(b, centre, index, self.motion)
            b.heat("heatPort", HEAT_OF_FRICTION, index)
        half = float(self.L) / 2.0
        stop(b, centre, self.smin + half, self.smax - half, self.motion, "_stop")
