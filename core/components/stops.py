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
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.compliances import TWO_SHAFTS, relative_motion
from torqueloop.core.components.friction import friction_outputs
from torqueloop.core.components.sensors import TWO_PARTS
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, TRANSLATIONAL, Flange
from torqueloop.core.describe.params import param, require, require_given
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.describe.vocabulary import (
    CONSTANT,
    HEAT_OF_FRICTION,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_STOPPED,
    Form,
)

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: breakaway over sliding force of MassWithStopAndFriction (Modelica: f0_max = f0*1.001)
BREAKAWAY = 1.001
#: of the Stribeck force: how near the curve of friction over speed is to its exponential
STRIBECK_ERROR = 1e-7


def stop(b: Builder, relative: Form, lo: float, hi: float, dimension: str, names: tuple[str, str, str]) -> None:
    """Stops of `relative`, with outputs by name: force on the second part, end it is at, energy lost; and its heat."""
    index, friction = b.stop(relative, lo, hi)
    b.output(names[0], dimension, OUT_FRICTION, index=friction)
    b.output(names[1], "1", OUT_STOPPED, index=index)
    b.output(names[2], "energy", OUT_FRICTION_HEAT, index=friction)
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
class HardStop(Component):
    """Two shafts that turn against each other between phi_min and phi_max only: phi_rel = phi_b - phi_a.

    At an end w_rel = 0 and the torque tau on flange_b only pushes back (-tau on flange_a); reached in a plastic impact.
    `stopped`: -1 at phi_min, 1 at phi_max, else 0.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    phi_min: float | None = param("smallest relative angle; none without it", "angle", None)
    phi_max: float | None = param("largest relative angle; none without it", "angle", None)

    def check(self) -> None:
        check_range(self.phi_min, self.phi_max, "phi_min", "phi_max")

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative)
        stop(b, relative, *ends(self.phi_min, self.phi_max), "torque", ("tau", "stopped", "loss"))


@dataclass(frozen=True, kw_only=True)
class TranslationalHardStop(Component):
    """As HardStop between two sliding parts: s_min <= s_rel <= s_max, s_rel = s_b - s_a; force f on flange_b."""

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_PARTS, "heatPort": HEAT_PORT}

    s_min: float | None = param("smallest distance; none without it", "length", None)
    s_max: float | None = param("largest distance; none without it", "length", None)

    def check(self) -> None:
        check_range(self.s_min, self.s_max, "s_min", "s_max")

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        relative_motion(b, relative)
        stop(b, relative, *ends(self.s_min, self.s_max), "force", ("f", "stopped", "loss"))


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
class MassWithStopAndFriction(Component):
    """Sliding mass of length L between hard stops, with Coulomb, viscous and Stribeck friction against the housing.

    m*a = f_a + f_b - f + f_stop;  sliding: f = (F_Coulomb + F_prop*|v| + F_Stribeck*exp(-fexp*|v|))*sign(v), stuck: up
    to 1.001*(F_Coulomb + F_Stribeck). Its ends stay within smin and smax: smin + L/2 <= s <= smax - L/2, s its centre;
    at a stop v = 0 and f_stop only pushes back. `stopped`: -1 at smin, 1 at smax, else 0. The exponential is a curve
    within 1e-7 of F_Stribeck. After Modelica.Mechanics.Translational.Components.MassWithStopAndFriction.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange_a": Flange(domain=TRANSLATIONAL, required=False),
        "flange_b": Flange(domain=TRANSLATIONAL, required=False),
        "centre": Flange(domain=TRANSLATIONAL, required=False),
        "heatPort": HEAT_PORT,
    }

    m: float = param("mass", "mass", low=0.0, above=True)
    L: Fraction = param("length between the flanges", "length", Fraction(0), low=0.0, form="exact")
    smin: float = param("position of the left stop", "length", -25.0)
    smax: float = param("position of the right stop", "length", 25.0)
    F_prop: float = param("speed-dependent friction", "damping", 0.0, low=0.0)
    F_Coulomb: float = param("constant friction", "force", 0.0, low=0.0)
    F_Stribeck: float = param("Stribeck effect", "force", 0.0, low=0.0)
    fexp: float = param("decay of the Stribeck effect over speed", "inverse_velocity", 0.0, low=0.0)
    s0: float | None = param("start position of the centre", "length", None)
    v0: float | None = param("start speed", "velocity", None)

    def check(self) -> None:
        require(
            self.smax - self.smin > float(self.L),
            "{key} = {value} is out of range", key="smax", value=self.smax,
            allowed=f"> smin + L = {self.smin + float(self.L):g}",
        )  # fmt: skip

    def contribute(self, b: Builder) -> None:
        centre = b.w("centre")
        b.join("centre", "flange_a", -self.L / 2)
        b.join("centre", "flange_b", self.L / 2)
        b.inertia("centre", self.m)
        b.motion_outputs(centre, TRANSLATIONAL)
        if max(self.F_Coulomb, self.F_Stribeck, self.F_prop) > 0.0:
            curve = stribeck(self.F_Coulomb, self.F_prop, self.F_Stribeck, self.fexp)
            index = b.friction(centre, source=CONSTANT, gain=1.0, mu=curve, peak=BREAKAWAY)
            friction_outputs(b, centre, index, "force")
            b.heat("heatPort", HEAT_OF_FRICTION, index)
        half = float(self.L) / 2.0
        stop(b, centre, self.smin + half, self.smax - half, "force", ("f_stop", "stopped", "loss_stop"))
        b.initial("phi", centre, self.s0, "s0")
        b.initial("w", centre, self.v0, "v0")
