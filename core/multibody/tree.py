"""A tree of rigid bodies, each on one joint to its parent; mass matrix and bias forces from Pinocchio.

    M(q) dv/dt + h(q, v) = generalized forces

Velocities of a joint: rate about (along) its axis; of a ball joint the relative angular velocity, of a free body v of
its frame's origin and ω, both along the axes of the body (Featherstone, *Rigid Body Dynamics Algorithms*, 2008).
"""

from __future__ import annotations

import importlib
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import (
    DuplicateError,
    MissingLibraryError,
    RangeError,
    UnknownNameError,
    did_you_mean,
)

Floats = NDArray[np.float64]
Vector = tuple[float, float, float]
#: parent of a body on the ground
WORLD = "world"
KINDS = ("revolute", "prismatic", "spherical", "free")


def pinocchio() -> Any:
    """The library; MissingLibraryError names the extra that brings it."""
    try:
        return importlib.import_module("pinocchio")
    except ImportError:
        raise MissingLibraryError("trees of bodies need Pinocchio: pip install 'torqueloop[multibody]'") from None


def unit(vector: Vector, table: str, key: str) -> Floats:
    """A direction with length 1; RangeError for a vector without one."""
    n = np.array(vector, float)
    length = float(np.linalg.norm(n)) if n.shape == (3,) else 0.0
    if not (np.isfinite(length) and length > 0):
        raise RangeError("{key} = {value} has no direction", table=table, key=key, value=vector,
                         allowed="three numbers, not all 0")  # fmt: skip
    return n / length


def cross(a: Floats, b: Floats) -> Floats:
    """a x b of two vectors: numpy's, made for arrays of them, takes twenty times as long."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@dataclass(frozen=True)
class Body:
    """A rigid body and the joint that carries it; the joint has the name of the body."""

    name: str
    #: kg; what turns in it is part of it, at rest
    mass: float
    #: kg m2 about the mass centre, along the axes of the body: xx, yy, zz, xy, xz, yz of the matrix
    inertia: tuple[float, float, float, float, float, float]
    #: m, mass centre from the joint
    com: Vector = (0.0, 0.0, 0.0)
    #: name of the body that carries it
    parent: str = WORLD
    #: revolute | prismatic | spherical | free
    joint: str = "revolute"
    #: of a revolute or prismatic joint, along the axes of parent and body
    axis: Vector = (0.0, 0.0, 1.0)
    #: m, place of the joint on its parent, along the axes of the parent
    at: Vector = (0.0, 0.0, 0.0)

    def matrix(self) -> Floats:
        """Inertia about the mass centre, (3, 3)."""
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@dataclass(frozen=True)
class Tree:
    """Bodies, parents first, and gravity."""

    bodies: tuple[Body, ...]
    #: m/s2
    gravity: Vector = (0.0, 0.0, -9.81)


@dataclass(eq=False)
class BuiltTree:
    """Pinocchio's model of a tree; joint i of the library carries body i - 1."""

    tree: Tree
    pin: Any = field(init=False)
    model: Any = field(init=False)
    data: Any = field(init=False)

    def __post_init__(self) -> None:
        self.pin = pin = pinocchio()
        self.model = pin.Model()
        self.model.gravity.linear = np.array(self.tree.gravity, float)
        number = {WORLD: 0}
        for body in self.tree.bodies:
            _check(body, number)
            place = pin.SE3(np.eye(3), np.array(body.at, float))
            number[body.name] = self.model.addJoint(number[body.parent], self._joint(body), place, body.name)
            inertia = pin.Inertia(body.mass, np.array(body.com, float), body.matrix())
            self.model.appendBodyToJoint(number[body.name], inertia, pin.SE3.Identity())
        self.data = self.model.createData()
        self.number = number

    def _joint(self, body: Body) -> Any:
        if body.joint == "spherical":
            return self.pin.JointModelSpherical()
        if body.joint == "free":
            return self.pin.JointModelFreeFlyer()
        axis = unit(body.axis, body.name, "axis")
        revolute = body.joint == "revolute"
        return self.pin.JointModelRevoluteUnaligned(axis) if revolute else self.pin.JointModelPrismaticUnaligned(axis)

    def index(self, name: str, what: str) -> int:
        """Number of a body's joint; UnknownNameError names `what` asked for it."""
        if name not in self.number or name == WORLD:
            known = [b.name for b in self.tree.bodies]
            raise UnknownNameError(f"{what}: there is no body or joint {name!r}; there are {', '.join(known)}",
                                   hint=did_you_mean(name, known))  # fmt: skip
        return self.number[name]

    def coordinate(self, name: str, what: str) -> int:
        """Place in v of a joint of one degree of freedom; RangeError for one of several."""
        joint = self.model.joints[self.index(name, what)]
        if joint.nv != 1:
            raise RangeError("{key} = {value} has several degrees of freedom", table=what, key="joint", value=name,
                             allowed="a revolute or prismatic joint")  # fmt: skip
        return int(joint.idx_v)

    def rates(self, q: Floats, v: Floats) -> Floats:
        """dq/dt, coefficient by coefficient: quaternions (x, y, z, w) by q * (ω, 0) / 2."""
        rate = np.empty(len(q))
        for body, joint in zip(self.tree.bodies, list(self.model.joints)[1:], strict=True):
            i, k = joint.idx_q, joint.idx_v
            if joint.nv == 1:
                rate[i] = v[k]
                continue
            if body.joint == "free":
                turn = self.pin.Quaternion(q[i + 3 : i + 7]).matrix()
                rate[i : i + 3] = turn @ v[k : k + 3]
                i, k = i + 3, k + 3
            xyz, w, omega = q[i : i + 3], q[i + 3], v[k : k + 3]
            rate[i : i + 3] = 0.5 * (w * omega + cross(xyz, omega))
            rate[i + 3] = -0.5 * xyz @ omega
        return rate


def _check(body: Body, number: dict[str, int]) -> None:
    if body.name in number:
        raise DuplicateError(f"two bodies are called {body.name!r}")
    if body.parent not in number:
        raise UnknownNameError(f"body {body.name!r}: its parent {body.parent!r} is no body before it",
                               hint=did_you_mean(body.parent, number))  # fmt: skip
    if body.joint not in KINDS:
        raise RangeError("{key} = {value} is unknown", table=body.name, key="joint", value=body.joint,
                         allowed=" | ".join(KINDS))  # fmt: skip
    if not body.mass > 0:
        raise RangeError("{key} = {value}", table=body.name, key="mass", value=body.mass, allowed="> 0 kg")
    least = np.linalg.eigvalsh(body.matrix())
    if not (least[0] >= 0 and least[0] + least[1] >= least[2] * (1 - 1e-12)):
        raise RangeError("{key} = {value} is of no body", table=body.name, key="inertia", value=body.inertia,
                         allowed="principal inertias >= 0, none above the sum of the others")  # fmt: skip
