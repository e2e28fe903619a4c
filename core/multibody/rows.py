"""Rows that couple bodies and drivelines: A(q) (v, u) = 0, each with a multiplier as its force or moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class PointHeld:
    """A point of a body stays where it is at the start: three rows, with its force on the body (world axes)."""

    name: str
    body: str
    #: m from the joint, along the axes of the body
    point: Vector
