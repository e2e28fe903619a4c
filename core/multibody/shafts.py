"""Shafts with joints between drivelines on bodies of a tree: an elastic twist, and all forces by its virtual work.

    D = phi_a + r_a - phi_b - r_b + psi - D0        (cython_kernels/model/poses.pxd, docs/joint_shafts.md)

with the bearings where forward kinematics puts them. tau = c D + d D', and every coordinate gets -tau dD/dx: the shaft
keeps momentum, and energy but for d D'^2. phi: angles of the flanges against the bodies of their drivelines, psi: angle
of the zero references of both bearings about the shaft, followed over any number of turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from torqueloop.core.compile.poses import carried, pins
from torqueloop.core.describe.errors import CompileError, RangeError
from torqueloop.core.describe.joint_parts import LARGEST_BEND
from torqueloop.core.multibody.tree import Floats, Vector, cross, unit

UNIVERSAL, CONSTANT_VELOCITY = "universal", "constant_velocity"
LEAST_COS, LARGEST_SIN = math.cos(LARGEST_BEND), math.sin(LARGEST_BEND)


@dataclass(frozen=True)
class BodyShaft:
    """A shaft between two joints, its ends on drivelines of two bodies; the joints are at places of these bodies.

    Without force where all joints of the tree and both flanges are at 0. theta: angle of the fork of flange a from the
    plane of its joint there, phase: between the forks of the shaft.
    """

    name: str
    #: "DRIVELINE.COMPONENT.FLANGE" of each end
    flange_a: str
    flange_b: str
    #: directions, in the sense in which the shafts turn, and places of the joints [m], along the axes of the bodies
    n_a: Vector
    n_b: Vector
    at_a: Vector
    at_b: Vector
    #: Nm/rad, Nms/rad
    c: float
    d: float = 0.0
    #: universal | constant_velocity
    joint_a: str = UNIVERSAL
    joint_b: str = UNIVERSAL
    #: rad
    theta: float = 0.0
    phase: float = 0.0


@dataclass(frozen=True, eq=False)
class Side:
    """Where the carrier of an end is: axes to the world's, place of its origin."""

    turn: Floats
    place: Floats


@dataclass(frozen=True, eq=False)
class Twist:
    """D, dD over phi_a and phi_b, over the turning of both bodies (world axes) and over the place of joint b."""

    D: float
    psi: float
    over_angle: tuple[float, float]
    over_turn: tuple[Floats, Floats]
    over_place: Floats
    arms: tuple[Floats, Floats]


class ShaftGeometry:
    """The constants of one shaft, and its twist from where its bodies are.

    RangeError, CompileError: a shaft that has no direction, or a joint bent beyond 80 deg, where it is put together.
    """

    def __init__(self, shaft: BodyShaft, a: Side, b: Side) -> None:
        self.shaft = shaft
        for key in ("c", "d"):
            if not getattr(shaft, key) >= 0.0:
                raise RangeError("{key} = {value} is out of range", table=f"shaft.{shaft.name}", key=key,
                                 value=getattr(shaft, key), allowed=">= 0")  # fmt: skip
        self.hooke = tuple(self._kind(key) for key in ("joint_a", "joint_b"))
        self.n = unit(shaft.n_a, f"shaft.{shaft.name}", "n_a"), unit(shaft.n_b, f"shaft.{shaft.name}", "n_b")
        self.at = np.array(shaft.at_a, float), np.array(shaft.at_b, float)
        way = b.place + b.turn @ self.at[1] - a.place - a.turn @ self.at[0]
        if not np.linalg.norm(way) > 0.0:
            raise CompileError(f"shaft {shaft.name!r}: both of its joints are at one place", [shaft.name])
        n_a, n_b = a.turn @ self.n[0], b.turn @ self.n[1]
        self.sense = math.copysign(1.0, float(way @ n_a))
        s = self.sense * way / np.linalg.norm(way)
        for key, n in (("n_a", n_a), ("n_b", n_b)):
            bend = math.atan2(float(np.linalg.norm(cross(n, s))), float(n @ s))
            if bend > LARGEST_BEND:
                raise RangeError(f"{{key}} = {{value}}: the joint is bent by {math.degrees(bend):.6g} deg",
                                 table=f"shaft.{shaft.name}", key=key, value=list(getattr(shaft, key)),
                                 allowed="up to 80 deg, in the sense in which the shaft turns")  # fmt: skip
        found = pins(shaft.theta, shaft.phase, (self.hooke[0], self.hooke[1]), n_a, n_b, s)
        self.pins = a.turn.T @ found[0], b.turn.T @ found[1]
        self.D0, self.psi0 = 0.0, 0.0
        at_rest = self.twist(a, b, 0.0, 0.0, 0.0)
        self.psi0 = at_rest.psi
        self.D0 = at_rest.D - at_rest.psi

    def _kind(self, key: str) -> int:
        value = getattr(self.shaft, key)
        if value not in (UNIVERSAL, CONSTANT_VELOCITY):
            raise RangeError("{key} = {value}", table=f"shaft.{self.shaft.name}", key=key, value=value,
                             allowed=f"{UNIVERSAL} | {CONSTANT_VELOCITY}")  # fmt: skip
        return int(value == UNIVERSAL)

    def twist(self, a: Side, b: Side, phi_a: float, phi_b: float, near: float) -> Twist:
        """The twist with psi next to `near`."""
        sides = a, b
        arms = a.turn @ self.at[0], b.turn @ self.at[1]
        way = b.place + arms[1] - a.place - arms[0]
        length = math.sqrt(way @ way)
        s = self.sense * way / length
        r, ratio, slopes, turns, references = [], [], [], [], []
        over_direction = np.zeros(3)
        for end, (side, phi) in enumerate(zip(sides, (phi_a, phi_b), strict=True)):
            n, e1 = side.turn @ self.n[end], side.turn @ self.pins[end]
            along = 1.0 + float(n @ s)
            ripple, g, slope = _joint(self.hooke[end], n, e1, s, phi)
            over_direction += (1.0 if end == 0 else -1.0) * (slope - cross(n, s) / along)
            turns.append((1.0 if end == 0 else -1.0) * ((n + s) / along - cross(s, slope)))
            references.append(carried(e1, n, s))
            r.append(ripple)
            ratio.append(g)
            slopes.append(slope)
        one, other = references
        psi = math.atan2(float(cross(other, one) @ s), float(one @ other)) - self.psi0
        psi = near + math.remainder(psi - near, 2.0 * math.pi)
        across = over_direction - (over_direction @ s) * s
        return Twist(
            phi_a + r[0] - phi_b - r[1] + psi - self.D0, psi, (ratio[0], -ratio[1]), (turns[0], turns[1]),
            self.sense * across / length, arms,
        )  # fmt: skip


def _joint(hooke: int, n: Floats, e1: Floats, s: Floats, phi: float) -> tuple[float, float, Floats]:
    """Ripple of a joint, dy/dphi, and its slope over the direction s of the shaft; held beyond 80 deg."""
    if not hooke:
        return 0.0, 1.0, np.zeros(3)
    e2 = cross(n, e1)
    P = math.cos(phi) * e1 + math.sin(phi) * e2
    Q = math.sin(phi) * e1 - math.cos(phi) * e2
    p, q, k = float(P @ s), float(Q @ s), float(n @ s)
    size = p * p + q * q
    held = k < LEAST_COS
    if held:
        by = LARGEST_SIN / math.sqrt(size) if size > 0.0 else 0.0
        p, q, k = p * by, q * by, LEAST_COS
    num, den = p * q, 1.0 + k - p * p
    by = 1.0 / (num * num + den * den)
    rp, rq, rk = (den * q + 2.0 * p * num) * by, den * p * by, -num * by
    if held:
        turn = (rq * p - rp * q) / (size or 1.0)
        rp, rq, rk = -turn * float(Q @ s), turn * float(P @ s), 0.0
    return math.atan(num / den), k / (1.0 - p * p), rp * P + rq * Q + rk * n
