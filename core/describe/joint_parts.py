"""What components contribute for shafts with joints: joint shafts, rigid joints, and the bearings that direct shafts.

A joint is bent by its own value, or as the bearings of its two shafts say (core/compile/joints.py). Angles in rad.
"""

from __future__ import annotations

import math
from dataclasses import field

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.frame_parts import Vector
from torqueloop.core.describe.vocabulary import Form

#: the largest bend angle; at 90 deg a universal joint passes no torque
LARGEST_BEND = math.radians(80.0)


def ripple(x: float, beta: float) -> float:
    """y - x of a universal joint, y = atan2(sin x, cos x cos beta), smooth over any number of turns."""
    s, c = math.sin(x), math.cos(x)
    return math.atan((1.0 - math.cos(beta)) * s * c / (math.cos(beta) * c * c + s * s))


@dataclass(frozen=True)
class PosePart:
    """A joint shaft between bearings on carriers that move against each other (core/compile/poses.py).

    Vectors per end, along the axes of its carrier.
    """

    owner: str
    #: inputs: quaternion and place of the carrier; -1: at rest in the world, or a body
    pose_in: tuple[int, ...]
    #: per end: number of the body that is its carrier; -1: none
    body: tuple[int, int]
    #: axis of the bearing, pin of the fork at phi = 0, place of the joint
    n: tuple[float, ...]
    e1: tuple[float, ...]
    r: tuple[float, ...]
    #: direction of the shaft along the way from joint a to joint b; 0: one joint, along the axis of b
    sense: float
    #: rad: angle of the zero references of both bearings about the shaft, without force
    psi0: float


@dataclass(frozen=True)
class JointPart:
    """A shaft between two joints; its stiffness and damping along form_a - form_b are a Compliance besides."""

    owner: str
    form_a: Form
    form_b: Form
    #: index of that Compliance
    lin: int
    #: per end: 1 a universal joint, 0 one of constant velocity
    hooke: tuple[int, int]
    #: per end: input with the bend angle, -1: none
    bend_in: tuple[int, int]
    c: float
    d: float
    #: bend angles per end; None: by the bearings of the shafts
    given: tuple[float, float] | None
    #: angle of the fork of flange a from the plane of its joint at phi_a = 0
    fork: float = 0.0
    #: angles about the shaft: between its forks, between the planes of its joints
    phase: float = 0.0
    planes: float = 0.0
    #: distance of the joints, m; 0: not known
    length: float = 0.0
    #: 1: the shaft behind a single joint, in the direction of flange b; 2: the shaft between two joints
    joints: int = 2
    #: where its carriers move against each other; `given`, `planes`, `length` are then those it was put together with
    posed: PosePart | None = None

    @property
    def bend(self) -> tuple[float, float]:
        """Bend angles per end."""
        assert self.given is not None, f"{self.owner}: its joints were not settled"
        return self.given

    @property
    def theta(self) -> tuple[float, float]:
        """Angle of the fork of each flange from the plane of its joint at phi = 0, where the shaft bears nothing."""
        y = self.fork + self._first() + self.phase - self.planes
        # the inverse of y = x + ripple(x): the joint seen from its other side
        return self.fork, y + ripple(y + 0.5 * math.pi, self.bend[1]) if self.hooke[1] else y

    @property
    def D0(self) -> float:
        """Twist without force: that of phi = 0."""
        x = self.theta[1]
        return self._first() - (ripple(x, self.bend[1]) if self.hooke[1] else 0.0)

    def _first(self) -> float:
        return ripple(self.fork, self.bend[0]) if self.hooke[0] else 0.0


@dataclass(frozen=True)
class RigidJointPart:
    """A rigid joint of constant velocity whose bend the bearings of its shafts say."""

    owner: str
    #: bend angle; None: by the bearings
    given: float | None
    #: index of the reaction with the torque, and of the one that is its moment across the shafts
    tau: int
    moment: int


@dataclass(frozen=True)
class BearingPart:
    """The direction of a shaft along the axes of a carrier, and the place of the joint it ends in, m."""

    owner: str
    flange: str
    frame: str
    n: Vector
    r: Vector


@dataclass
class JointParts:
    """Joints and bearings, in the order of the sorted component names."""

    shafts: list[JointPart] = field(default_factory=list)
    rigid: list[RigidJointPart] = field(default_factory=list)
    bearings: list[BearingPart] = field(default_factory=list)
