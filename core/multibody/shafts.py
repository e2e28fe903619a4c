"""Shafts with joints between drivelines on bodies of a tree: an elastic twist, and all forces by its virtual work.

    D = phi_a + r_a - phi_b - r_b + psi - D0        (cython_kernels/model/poses.pxd, docs/joint_shafts.md)

with the bearings where forward kinematics puts them. tau = c D + d D', and every coordinate gets -tau dD/dx: the shaft
keeps momentum, and energy but for d D'^2. phi: angles of the flanges against the bodies of their drivelines, psi: angle
of the zero references of both bearings about the shaft, followed over any number of turns.
"""

from __future__ import annotations

import math

import numpy as np

from torqueloop.core.compile.poses import pins
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import CompileError, RangeError
from torqueloop.core.describe.joint_parts import LARGEST_BEND
from torqueloop.core.multibody.tree import Floats, Vector, cross, unit
from torqueloop.cython_kernels.model.posed_shaft import PosedShaft

UNIVERSAL, CONSTANT_VELOCITY = "universal", "constant_velocity"


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
        self.hooke = self._kind("joint_a"), self._kind("joint_b")
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
        found = pins(shaft.theta, shaft.phase, self.hooke, n_a, n_b, s)
        own = self.hooke, self.n, (a.turn.T @ found[0], b.turn.T @ found[1]), self.at, self.sense
        angle, psi0, *_ = PosedShaft(*own).twist((a.turn, b.turn), (a.place, b.place), 0.0, 0.0, 0.0)
        self.D0 = angle - psi0
        self.law = PosedShaft(*own, psi0)

    def _kind(self, key: str) -> int:
        value = getattr(self.shaft, key)
        if value not in (UNIVERSAL, CONSTANT_VELOCITY):
            raise RangeError("{key} = {value}", table=f"shaft.{self.shaft.name}", key=key, value=value,
                             allowed=f"{UNIVERSAL} | {CONSTANT_VELOCITY}")  # fmt: skip
        return int(value == UNIVERSAL)

    def twist(self, a: Side, b: Side, phi_a: float, phi_b: float, near: float) -> Twist:
        """The twist with psi next to `near`."""
        angle, psi, over_angle, over_turn, over_place = self.law.twist(
            (a.turn, b.turn), (a.place, b.place), phi_a, phi_b, near
        )
        return Twist(angle - self.D0, psi, over_angle, (over_turn[0], over_turn[1]), over_place)
