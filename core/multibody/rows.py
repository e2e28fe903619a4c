"""Rows that couple bodies and drivelines: A(q) (v, u) = 0, each with a multiplier as its force or moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.multibody.tree import Vector


@dataclass(frozen=True)
class Row:
    """sum of coefficient * speed = 0 over shafts, joints and angular velocities of bodies about their axes.

    Its multiplier λ acts with coefficient * λ on each of them: a gear of ratio i between a shaft and the joint that
    turns its carrier against the parent, w = i v, is shafts {w: 1}, joints {v: -i}.
    """

    name: str
    #: "DRIVELINE.FLANGE" -> coefficient
    shafts: Mapping[str, float] = field(default_factory=dict)
    #: revolute or prismatic joint -> coefficient
    joints: Mapping[str, float] = field(default_factory=dict)
    #: body -> vector along its axes, times its angular velocity against the world
    rates: Mapping[str, Vector] = field(default_factory=dict)


def gear_constraint(name: str, joint_a: str, joint_b: str, ratio: float) -> Row:
    """MultiBody's GearConstraint: phi_a = ratio*phi_b of two bodies on hinges of one housing, whatever their axes. Its
    moments act on both and, through their bearings, on the housing."""
    return Row(name, joints={joint_a: 1.0, joint_b: -ratio})


def actuated_revolute(name: str, joint: str, flange: str) -> Row:
    """MultiBody's ActuatedRevolute: a flange of a driveline turns the joint. "DRIVELINE.FLANGE" turns against its
    carrier as the body of the joint does, so the carrier is the joint's parent and bears the reaction."""
    return Row(name, shafts={flange: 1.0}, joints={joint: -1.0})


@dataclass(frozen=True)
class PointHeld:
    """A point of a body stays where it is at the start: three rows, with its force on the body (world axes)."""

    name: str
    body: str
    #: m from the joint, along the axes of the body
    point: Vector
