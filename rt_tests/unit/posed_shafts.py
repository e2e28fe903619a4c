"""A shaft with two universal joints between carriers that move, and its geometry from vectors alone: pins square to
their shafts, crosses square to both of their pins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.components import Inertia, JointShaft, MovingCarrier, ShaftBearing, Torque
from torqueloop.core.components.carriers import POSE
from torqueloop.core.components.joint_shafts import CONSTANT_VELOCITY
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Function

Array = NDArray[np.float64]
#: t -> quaternion (scalar first) and place
Pose = Callable[[float], Array]
BEARINGS = (
    ShaftBearing(n_x=1.0, n_y=0.2, n_z=-0.1, r_x=0.1, r_y=0.02, r_z=0.05),
    ShaftBearing(n_x=1.0, n_y=-0.3, n_z=0.15, r_x=-0.15, r_y=0.03, r_z=-0.02),
)
JA, JB = 0.02, 0.05


def matrix(q: Array) -> Array:
    """Axes turned by a quaternion, scalar first: q v conj(q) for each of them."""
    w, v = q[0], q[1:4]
    return np.array([e * (w * w - v @ v) + 2.0 * v * v[k] + 2.0 * w * cross(v, e) for k, e in enumerate(np.eye(3))]).T


def cross(a: Array, b: Array) -> Array:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def about(n: Array, angle: float, v: Array) -> Array:
    """v turned about n (Rodrigues)."""
    return math.cos(angle) * v + math.sin(angle) * cross(n, v) + (1.0 - math.cos(angle)) * (n @ v) * n


def turned(vector: Array) -> Array:
    """Quaternion of a rotation vector, scalar first."""
    angle = math.sqrt(vector @ vector)
    return np.array([math.cos(0.5 * angle), *(vector * (math.sin(0.5 * angle) / angle if angle else 0.5))])


def swing(t: float) -> Array:
    """Pose of carrier a."""
    v = np.array([0.3 * math.sin(5.0 * t), 0.2 * math.sin(7.0 * t + 0.3), 0.15 * math.cos(6.0 * t) - 0.15])
    return np.concatenate([turned(v), 0.02 * np.sin([9.0 * t, 8.0 * t, 11.0 * t])])


def sway(t: float) -> Array:
    """Pose of carrier b, 0.8 m along."""
    v = np.array([0.25 * math.cos(4.0 * t), 0.1 * math.sin(9.0 * t), 0.2 * math.sin(3.0 * t)])
    return np.concatenate(
        [turned(v), [0.8 + 0.03 * math.sin(6.0 * t), 0.05 * math.sin(10.0 * t), 0.04 * math.cos(5.0 * t)]]
    )


def carrier(attitude: bool = True, place: float = 0.0) -> MovingCarrier:
    return MovingCarrier(use_z=True, attitude=attitude, x0=place)


def shaft_of(shaft: Component, order: int | str = "auto", ends: tuple[Component, Component] | None = None,
             bearings: tuple[Component, ...] = BEARINGS, drive: Component | None = None, Ja: float = JA, Jb: float = JB,
             w: float = 30.0) -> Driveline:  # fmt: skip
    """A torque (or another drive) on an inertia, the shaft from carrier A to carrier B, an inertia."""
    d = Driveline("posed", order=order)
    first, second = ends or (carrier(), carrier(place=0.8))
    for name, part in (("A", first), ("B", second), ("p", bearings[0]), ("s", bearings[1]), ("u", shaft),
                       ("b", Inertia(J=Jb, phi0=0.0, w0=w))):  # fmt: skip
        d.add(name, part)
    d.add("t", drive or Torque())
    if drive is None:
        d.add("a", Inertia(J=Ja, phi0=0.0, w0=w))
        d.connect("t.flange", "a.flange_a")
        d.connect("a.flange_b", "u.flange_a", "p.flange")
    else:
        d.connect("t.flange", "u.flange_a", "p.flange")
    d.connect("u.flange_b", "s.flange", "b.flange_a")
    d.connect("A.frame_b", "p.frame_a")
    d.connect("B.frame_b", "s.frame_a")
    return d


def moved(**poses: Pose) -> dict[str, Any]:
    """Inputs of carriers with these poses."""
    poses = {name: lru_cache(maxsize=8)(pose) for name, pose in poses.items()}
    return {f"{c}.{name}": Function(lambda t, p=p, k=k: float(p(t)[k])) for c, p in poses.items()
            for k, name in enumerate(POSE)}  # fmt: skip


class Geometry:
    """The shaft from vectors alone: pins square to their shafts, crosses square to both of their pins."""

    def __init__(self, shaft: JointShaft, a: Pose, b: Pose, assembled: tuple[Array, Array],
                 bearings: Sequence[ShaftBearing] = BEARINGS) -> None:  # fmt: skip
        self.shaft, self.poses = shaft, (a, b)
        self.n = [np.array([c.n_x, c.n_y, c.n_z]) / np.linalg.norm([c.n_x, c.n_y, c.n_z]) for c in bearings]
        self.r = [np.array([c.r_x, c.r_y, c.r_z]) for c in bearings]
        n, x, s = self.at(*assembled)
        plane = np.cross(n[0], s)
        if plane @ plane < 1e-12:  # straight: the plane of the other joint, or one with the axis least along it
            plane = np.cross(s, n[1])
        if plane @ plane < 1e-12:
            plane = np.cross(s, np.eye(3)[int(np.argmin(np.abs(s)))])
        across = np.cross(n[0], plane / np.linalg.norm(plane))
        pin_a = about(n[0], shaft.theta, across)
        pin_b = np.cross(self.fork(pin_a, n[0], s), n[1])
        turns = [matrix(p) for p in assembled]
        self.pins = [R.T @ (pin / np.linalg.norm(pin)) for R, pin in zip(turns, (pin_a, pin_b), strict=True)]

    def fork(self, pin_a: Array, n_a: Array, s: Array) -> Array:
        """Fork of the shaft at joint b. A joint of constant velocity turns the pin with the axis, the shortest way."""
        if self.shaft.joint_a == CONSTANT_VELOCITY:
            axis = cross(n_a, s)
            pin_a = about(axis / np.linalg.norm(axis), math.atan2(np.linalg.norm(axis), n_a @ s), pin_a)
        return about(s, self.shaft.phase, cross(s, pin_a))

    def at(self, a: Array, b: Array) -> tuple[list[Array], list[Array], Array]:
        turns = [matrix(p) for p in (a, b)]
        n = [R @ v for R, v in zip(turns, self.n, strict=True)]
        x = [p[4:] + R @ v for p, R, v in zip((a, b), turns, self.r, strict=True)]
        return n, x, (x[1] - x[0]) / math.sqrt((x[1] - x[0]) @ (x[1] - x[0]))

    def pin(self, t: float, end: int, phi: float) -> Array:
        return np.asarray(matrix(self.poses[end](t)) @ about(self.n[end], phi, self.pins[end]))

    def twist(self, t: float, phi_a: float, phi_b: float) -> float:
        """Angle about the shaft between its own two forks, within a quarter turn."""
        n, _, s = self.at(self.poses[0](t), self.poses[1](t))
        one, other = self.fork(self.pin(t, 0, phi_a), n[0], s), cross(s, self.pin(t, 1, phi_b))
        return math.remainder(math.atan2(cross(other, one) @ s, one @ other), math.pi)

    def forces(self, t: float, phi_a: float, phi_b: float, tau: float) -> tuple[list[Array], Array, list[Array]]:
        """Couples of both joints on the shaft between them and the force on it at joint b, from statics."""
        n, x, s = self.at(self.poses[0](t), self.poses[1](t))
        couples = []
        for end, (phi, sign) in enumerate(((phi_a, 1.0), (phi_b, -1.0))):
            pin = self.pin(t, end, phi)
            plane = s - (pin @ s) * pin
            couples.append(sign * tau * plane / (plane @ s))
        way = x[1] - x[0]
        return couples, np.cross(way, couples[0] + couples[1]) / (way @ way), x


SHAFT = JointShaft(c=2000.0, d=0.5, theta=0.4, phase=0.3)
#: poses in which it is put together
ASSEMBLED = (np.array([1.0, 0, 0, 0, 0, 0, 0]), np.array([1.0, 0, 0, 0, 0.8, 0, 0]))
