"""What components contribute that are fixed to a carrier: rotors, mountings, sensors; and the carriers themselves.

A frame is a place fixed to a carrier; frames are named as flanges are ("mounting.frame_a"). Vectors have their
components along the axes of the carrier. Whose frame is on which carrier: core/compile/frames.py.
"""

from __future__ import annotations

from dataclasses import field

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.vocabulary import Form

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class CarrierPart:
    """A carrier whose motion is given: its angular velocity and acceleration are inputs (none: it is at rest)."""

    owner: str
    frame: str
    #: indices of the inputs: angular velocity [rad/s] and acceleration [rad/s2] along x, y, z
    w: tuple[int, ...] = ()
    z: tuple[int, ...] = ()
    #: indices of the inputs: quaternion from its axes to those of the world (scalar first), place of its origin; none:
    #: not known where it is, unless it is at rest
    pose: tuple[int, ...] = ()
    #: the same as shafts with joints were put together
    q0: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    r0: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class BodyPart:
    """A carrier that is a rigid body of the model. Vectors along its own axes, but gravity and place: of the world."""

    owner: str
    frame: str
    #: angular velocity about x, y, z, and velocity of the mass centre
    w: tuple[Form, Form, Form]
    v: tuple[Form, Form, Form]
    #: kg, and kg.m2 about the mass centre, with the rotors at rest on it
    m: float
    tensor: tuple[Vector, Vector, Vector]
    g: Vector
    #: start: quaternion from its axes to the world's, place of the mass centre
    q: tuple[float, float, float, float]
    r: Vector


@dataclass(frozen=True)
class HingePart:
    """A point r of a body (from its mass centre) that stays where it is; and the body turns about `axes` only."""

    owner: str
    frame: str
    r: Vector
    #: directions the body cannot turn about
    blocked: tuple[Vector, ...] = ()
    #: inputs: torques about the axes of a Cardan suspension, in turn x, y, z; none: it turns freely
    tau: tuple[int, ...] = ()


@dataclass(frozen=True)
class BushingPart:
    """Springs and dampers between the world and the point r of a body, along and about the axes of the body."""

    owner: str
    frame: str
    r: Vector
    c: Vector
    d: Vector
    c_rot: Vector
    d_rot: Vector


@dataclass(frozen=True)
class LeavingPart:
    """form = n.omega of the body: a speed in the world less the same relative to the body."""

    owner: str
    frame: str
    form: Form
    n: Vector


@dataclass(frozen=True)
class RotorPart:
    """A rotor with the speed `form` relative to its carrier about the unit vector n.

    J*(dw/dt + n.z) = sum of the torques along the form; the carrier gets -(omega x J*w*n) + J*(n.z)*n, besides the
    reactions of these torques. exact = False: without both terms of J*(n.z).
    """

    owner: str
    frame: str
    form: Form
    J: float
    n: Vector
    exact: bool


@dataclass(frozen=True)
class MomentPart:
    """Moment reaction*direction on the carrier."""

    owner: str
    frame: str
    #: index of a reaction
    reaction: int
    direction: Vector


@dataclass(frozen=True)
class WrenchPart:
    """Moment and force of one end of a joint shaft between carriers that move against each other."""

    owner: str
    frame: str
    #: number of the joint shaft, and which end: 0 a, 1 b
    joint: int
    end: int


@dataclass(frozen=True)
class MountedPart:
    """Components whose inertias are all rotors about n on the carrier, and whose housing is part of it."""

    owner: str
    frame: str
    #: names with * and ?, blanks between them
    names: str
    n: Vector
    exact: bool


@dataclass(frozen=True)
class SpeedPart:
    """Output `name`: the speed of a form plus n.omega of the carrier."""

    owner: str
    frame: str
    name: str
    form: Form
    n: Vector


@dataclass
class FrameParts:
    """Everything fixed to carriers, in the order of the sorted component names."""

    carriers: list[CarrierPart] = field(default_factory=list)
    bodies: list[BodyPart] = field(default_factory=list)
    hinges: list[HingePart] = field(default_factory=list)
    bushings: list[BushingPart] = field(default_factory=list)
    leaving: list[LeavingPart] = field(default_factory=list)
    rotors: list[RotorPart] = field(default_factory=list)
    moments: list[MomentPart] = field(default_factory=list)
    wrenches: list[WrenchPart] = field(default_factory=list)
    speeds: list[SpeedPart] = field(default_factory=list)
    mounted: list[MountedPart] = field(default_factory=list)


@dataclass(frozen=True)
class Term:
    """gain * (a reaction, the speed of a form, or 1) * (an input, or 1) * (an output of a joint shaft, or 1)."""

    gain: float
    #: index of a reaction, -1: none
    reaction: int = -1
    form: Form | None = None
    #: index of an input, -1: none
    input: int = -1
    #: joint shaft * JOINT_OUTPUTS + which of its outputs, -1: none
    joint: int = -1
