"""A driveline in neutral terms: numbered shafts, what joins them, and the torqueloop driveline of the same thing.

Shafts are numbers (GROUND: the housing). Every element gives its rows over the shafts and its law in numbers, which is
all the dense reference (dense.py) uses; `part` gives the component and the flanges it is joined by, for torqueloop.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from laws import BLOCKED, CAPPED, GROUND, NOTHING, Array, Curve, Friction, Law, Loss, Row, Wave, flat, row

from torqueloop.core import components as kinds
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Signal

#: unpressed one-way clutch: breakaway torque relative to that of full pressure; least breakaway/sliding ratio
ONE_WAY_HOLD, ONE_WAY_PEAK = 1e-4, 1.0001
#: component, its flanges by shaft, its inputs
Part = tuple[kinds.Component, dict[str, int], dict[str, Wave]]


@dataclass(frozen=True)
class Gear:
    """w_a - w_s = ratio*(w_b - w_s)."""

    a: int
    b: int
    ratio: Fraction
    support: int = GROUND
    word: ClassVar[str] = "gear"

    def constraints(self) -> list[Row]:
        return [row(_sum({self.a: 1}, {self.support: -1}, {self.b: -self.ratio}, {self.support: self.ratio}))]

    def part(self) -> Part:
        flanges = {"flange_a": self.a, "flange_b": self.b, "support": self.support}
        return kinds.IdealGear(ratio=self.ratio), flanges, {}


@dataclass(frozen=True)
class Planetary:
    """w_sun + ratio*w_ring = (1 + ratio)*w_carrier."""

    sun: int
    carrier: int
    ring: int
    ratio: Fraction
    word: ClassVar[str] = "planetary"

    def constraints(self) -> list[Row]:
        return [row(_sum({self.sun: 1}, {self.ring: self.ratio}, {self.carrier: -(1 + self.ratio)}))]

    def part(self) -> Part:
        flanges = {"sun": self.sun, "carrier": self.carrier, "ring": self.ring}
        return kinds.IdealPlanetary(ratio=self.ratio), flanges, {}


def _sum(*terms: Mapping[int, float | Fraction]) -> dict[int, Fraction]:
    total: dict[int, Fraction] = {}
    for one in terms:
        for shaft, c in one.items():
            total[shaft] = total.get(shaft, Fraction(0)) + Fraction(c)
    return total


@dataclass(frozen=True)
class Clutch:
    """Friction between shafts b and a; with a = GROUND, or `brake`, a brake of b against a."""

    a: int
    b: int
    fn_max: float
    f: Wave
    mue: Curve = flat(1.0)
    cgeo: float = 1.0
    peak: float = 1.0
    word: ClassVar[str] = "clutch"

    def laws(self, first: int) -> list[Law]:
        return [Friction(row(_sum({self.b: 1}, {self.a: -1})), self.f, self.fn_max * self.cgeo, self.mue, self.peak)]

    def part(self) -> Part:
        values = {"fn_max": self.fn_max, "cgeo": self.cgeo, "mue_pos": self.mue.table(), "peak": self.peak}
        if self.a == GROUND:
            return kinds.Brake(**values), {"flange_a": self.b}, {"f_normalized": self.f}
        return kinds.Clutch(**values), {"flange_a": self.a, "flange_b": self.b}, {"f_normalized": self.f}


@dataclass(frozen=True)
class OneWayClutch:
    """Clutch and free wheel in one: w_b < w_a is blocked."""

    a: int
    b: int
    fn_max: float
    f: Wave
    mue: Curve = flat(1.0)
    cgeo: float = 1.0
    peak: float = 1.0
    word: ClassVar[str] = "oneway"

    def laws(self, first: int) -> list[Law]:
        gain = self.fn_max * self.cgeo
        return [Friction(
            row(_sum({self.b: 1}, {self.a: -1})), self.f, gain, self.mue, max(self.peak, ONE_WAY_PEAK),
            CAPPED, BLOCKED, ONE_WAY_HOLD * gain * self.mue(0.0),
        )]  # fmt: skip

    def part(self) -> Part:
        values = {"fn_max": self.fn_max, "cgeo": self.cgeo, "mue_pos": self.mue.table(), "peak": self.peak}
        return kinds.OneWayClutch(**values), {"flange_a": self.a, "flange_b": self.b}, {"f_normalized": self.f}


@dataclass(frozen=True)
class FreeWheel:
    """w_b < w_a is blocked, w_b > w_a goes without torque."""

    a: int
    b: int
    word: ClassVar[str] = "wheel"

    def laws(self, first: int) -> list[Law]:
        return [Friction(row(_sum({self.b: 1}, {self.a: -1})), None, 0.0, flat(0.0), 1.0, NOTHING, BLOCKED)]

    def part(self) -> Part:
        return kinds.FreeWheel(), {"flange_a": self.a, "flange_b": self.b}, {}


@dataclass(frozen=True)
class Bearing:
    """Always pressed friction tau(|w|) of a shaft against its support."""

    a: int
    tau: Curve
    peak: float = 1.0
    support: int = GROUND
    word: ClassVar[str] = "bearing"

    def laws(self, first: int) -> list[Law]:
        return [Friction(row(_sum({self.a: 1}, {self.support: -1})), None, 1.0, self.tau, self.peak)]

    def part(self) -> Part:
        flanges = {"flange_a": self.a, "support": self.support}
        return kinds.BearingFriction(tau_pos=self.tau.table(), peak=self.peak), flanges, {}


@dataclass(frozen=True)
class Lossy:
    """LossyGear: w_a = ratio*w_b and tb = -ratio*(ta - loss), both torques those of the drive on the gear.

    Rows of `table`: |w_a|, eta1, eta2, tbf1, tbf2. Where a drives, -tb = ratio*(eta1*ta - tbf1); where b drives,
    -tb = ratio*(ta/eta2 - tbf2): the larger of the two losses for w > 0, the mirror image for w < 0. With eta2 <= 0
    (self-locking) the losses are taken over the load torque ta - loss instead of ta.
    """

    a: int
    b: int
    ratio: Fraction
    table: tuple[tuple[float, float, float, float, float], ...]
    support: int = GROUND
    word: ClassVar[str] = "lossy"

    def constraints(self) -> list[Row]:
        return Gear(self.a, self.b, self.ratio, self.support).constraints()

    def laws(self, first: int) -> list[Law]:
        w, *columns = (tuple(column) for column in zip(*self.table, strict=True))
        eta1, eta2, tbf1, tbf2 = (Curve(w, column) for column in columns)
        locking = min(eta2.y) <= 0.0

        def coefficients(v: float) -> tuple[float, float, float, float]:
            e1, e2, t1, t2 = eta1(v), eta2(v), tbf1(v), tbf2(v)
            if locking:
                return 1.0 / e1 - 1.0, e2 - 1.0, t1 / e1, abs(e2) * t2
            return 1.0 - e1, 1.0 - 1.0 / e2, t1, t2

        # torque of the drive on flange_a: -(multiplier + torque along the row)
        return [Loss(row(_sum({self.a: 1}, {self.support: -1})), first, -1.0, 0.0 if locking else -1.0, coefficients)]

    def part(self) -> Part:
        flanges = {"flange_a": self.a, "flange_b": self.b, "support": self.support}
        return kinds.LossyGear(ratio=self.ratio, lossTable=[list(line) for line in self.table]), flanges, {}


@dataclass(frozen=True)
class Mesh:
    """External gear mesh on a carrier: R_in*W_in + R_out*W_out = 0, loss torque dR*|F| against W_in - W_out."""

    inner: int
    outer: int
    carrier: int
    R_in: Fraction
    R_out: Fraction
    dR: Fraction
    word: ClassVar[str] = "mesh"

    def constraints(self) -> list[Row]:
        terms = {self.inner: self.R_in}, {self.outer: self.R_out}, {self.carrier: -(self.R_in + self.R_out)}
        return [row(_sum(*terms))]

    def laws(self, first: int) -> list[Law]:
        dR = float(self.dR)
        return [Loss(row(_sum({self.inner: 1}, {self.outer: -1})), first, -1.0, 0.0, lambda v: (dR, -dR, 0.0, 0.0))]

    def part(self) -> Part:
        flanges = {"in": self.inner, "out": self.outer, "carrier": self.carrier}
        return kinds.GearMesh(R_in=self.R_in, R_out=self.R_out, deltaR=self.dR), flanges, {}


@dataclass(frozen=True)
class Backlash:
    """ElastoBacklash: no torque within +-gap/2; beyond, tc + min(tc, td) >= 0 with tc = c*(x - gap/2), td = d*w."""

    a: int
    b: int
    c: float
    d: float
    gap: float
    word: ClassVar[str] = "backlash"

    @property
    def row(self) -> Row:
        return row(_sum({self.b: 1}, {self.a: -1}))

    def regime(self, x: float, w: float) -> int:
        """0 in the gap; on the upper side 1 spring and damper, 2 doubled spring, 3 no torque; lower side negative."""
        side = 1 if x > 0.0 else -1
        tc, td = self.c * (side * x - 0.5 * self.gap), self.d * side * w
        if tc <= 0.0:
            return 0
        if tc + td <= 0.0:
            return 3 * side
        return side if td <= tc else 2 * side

    def force(self, regime: int, x: float, w: float) -> float:
        """Torque along the row."""
        if regime in (0, 3, -3):
            return 0.0
        side = 1 if regime > 0 else -1
        tc, td = self.c * (side * x - 0.5 * self.gap), self.d * side * w
        return -side * (tc + td if abs(regime) == 1 else 2.0 * tc)

    def part(self) -> Part:
        return kinds.ElastoBacklash(c=self.c, d=self.d, b=self.gap), {"flange_a": self.a, "flange_b": self.b}, {}


@dataclass(frozen=True)
class SpringDamper:
    """Torque c*(phi_b - phi_a - phi0) + d*(w_b - w_a) on a, minus that on b."""

    a: int
    b: int
    c: float
    d: float = 0.0
    phi0: float = 0.0
    word: ClassVar[str] = "spring"

    @property
    def row(self) -> Row:
        return row(_sum({self.b: 1}, {self.a: -1}))

    def part(self) -> Part:
        flanges = {"flange_a": self.a, "flange_b": self.b}
        if self.c == 0.0:
            return kinds.Damper(d=self.d), flanges, {}
        return kinds.SpringDamper(c=self.c, d=self.d, phi_rel0=self.phi0), flanges, {}


@dataclass(frozen=True)
class Torque:
    """tau(t) on the shaft, -tau(t) on the support."""

    a: int
    tau: Wave
    support: int = GROUND
    word: ClassVar[str] = "torque"

    @property
    def row(self) -> Row:
        return row(_sum({self.a: 1}, {self.support: -1}))

    def part(self) -> Part:
        return kinds.Torque(), {"flange": self.a, "support": self.support}, {"tau": self.tau}


Element = (
    Gear | Planetary | Clutch | OneWayClutch | FreeWheel | Bearing | Lossy | Mesh | Backlash | SpringDamper | Torque
)


@dataclass
class Train:
    """Shafts (moments of inertia, start speeds and angles) and elements."""

    J: list[float]
    elements: list[Element]
    w0: Array = field(default_factory=lambda: np.zeros(0))
    phi0: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        n = len(self.J)
        self.w0 = np.asarray(self.w0, dtype=float) if len(self.w0) else np.zeros(n)
        self.phi0 = np.asarray(self.phi0, dtype=float) if len(self.phi0) else np.zeros(n)

    # --- as rows ----------------------------------------------------------------------------------------------
    def constraints(self) -> list[Row]:
        """Gear rows, in the order of the elements."""
        return [r for e in self.elements if hasattr(e, "constraints") for r in e.constraints()]

    def laws(self) -> list[tuple[str, Law]]:
        """Friction and losses by the name of their component, in the order of the elements."""
        found: list[tuple[str, Law]] = []
        rows = 0
        for name, element in self.named():
            if hasattr(element, "laws"):
                found += [(name, law) for law in element.laws(rows)]
            if hasattr(element, "constraints"):
                rows += len(element.constraints())
        return found

    def named(self) -> list[tuple[str, Element]]:
        """Elements with the names of their components."""
        return [(f"{e.word}{k}", e) for k, e in enumerate(self.elements)]

    # --- as a torqueloop driveline ----------------------------------------------------------------------------
    def driveline(self, order: int | str = "auto", shuffle: int | None = None) -> Driveline:
        """The same as a torqueloop driveline that starts at w0, phi0; shuffle: seed of another order of listing."""
        adds: list[tuple[str, kinds.Component]] = [(f"s{k}", kinds.Inertia(J=J)) for k, J in enumerate(self.J)]
        joints: list[tuple[str, ...]] = []
        for name, element in self.named():
            component, flanges, _ = element.part()
            adds.append((name, component))
            for flange, shaft in flanges.items():
                if shaft != GROUND:
                    joints.append((f"{name}.{flange}", f"s{shaft}.flange_a"))
                elif not component.flanges[flange].support:
                    adds.append((f"{name}_{flange}_ground", kinds.Fixed()))
                    joints.append((f"{name}.{flange}", f"{name}_{flange}_ground.flange"))
        if shuffle is not None:
            g = random.Random(shuffle)
            g.shuffle(adds)
            g.shuffle(joints)
            joints = [tuple(g.sample(j, len(j))) for j in joints]
        d = Driveline("random", order=order)
        for name, component in adds:
            d.add(name, component)
        for joint in joints:
            d.connect(*joint)
        if self.w0.any() or self.phi0.any():
            for k in independent_shafts(d):
                d.set_start(f"s{k}.w", float(self.w0[k]))
                d.set_start(f"s{k}.phi", float(self.phi0[k]))
        return d

    def inputs(self) -> dict[str, Signal]:
        """Signals of all inputs of the driveline."""
        return {
            f"{name}.{short}": wave.signal() for name, e in self.named() for short, wave in e.part()[2].items()
        }  # fmt: skip

    def steps(self) -> list[float]:
        """Times at which an input jumps."""
        return sorted({time for _, e in self.named() for wave in e.part()[2].values() for time, _ in wave.steps})


def independent_shafts(d: Driveline) -> list[int]:
    """Shafts whose speeds torqueloop takes as independent: those that start values can be given for freely."""
    return [int(name[1:]) for name in compile_driveline(d).coordinates]
