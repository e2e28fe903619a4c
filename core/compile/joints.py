"""Directions of shafts, and the bend of the joints between them: each shaft of a joint has exactly one reference.

A shaft is what turns as one piece: flanges that are joined, and rigid parts between them. A `ShaftBearing` gives it a
direction on a carrier. A joint takes its bend from its own value, or from the bearings of its two shafts; with neither
it is under-determined, with both over-determined, and bends that are given must be such that the shafts of a loop of
joints can have directions at all: no bend is more than the others of its loop together. After J. Andreasson, M.
Gaefvert: Rotational3D, 6th Int. Modelica Conference 2008, 2.3.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.poses import check_known, direction, pose, start_of
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import CompileError, NoReferenceError, OverconstrainedError
from torqueloop.core.describe.frame_parts import BodyPart, CarrierPart, MomentPart, Vector, WrenchPart
from torqueloop.core.describe.joint_parts import LARGEST_BEND, BearingPart, JointPart
from torqueloop.core.describe.kernel_numbers import OUT_JOINT
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import GROUND, Output, Parts, Reaction
from torqueloop.core.describe.units import SYMBOLS
from torqueloop.core.describe.vocabulary import JOINT_OUTPUTS

#: rad: how far a loop of given bends may be from closing
CLOSING = 1e-6
Array = NDArray[np.float64]
Carriers = Mapping[str, CarrierPart | BodyPart]
#: what a shaft between carriers that move against each other shows besides, numbers in the kernel
_SHOWN = (("bend_a", "angle", 24), ("bend_b", "angle", 25), ("distance", "length", 26))


@dataclass(frozen=True)
class _Link:
    """Two shafts with a known angle between them."""

    owner: str
    a: str
    b: str
    angle: float


class _Shafts:
    """Which flanges turn as one piece, and which bearing directs them."""

    def __init__(self, sets: Iterable[Iterable[str]], parts: Parts) -> None:
        self._of: dict[str, str] = {}
        for group in sets:
            first, *others = group
            for other in others:
                self._merge(first, other)
        for join in parts.joins:
            if GROUND not in (join.first, join.second):
                self._merge(join.first, join.second)
        self.bearing: dict[str, BearingPart] = {}
        for bearing in parts.joints.bearings:
            shaft = self.of(bearing.flange)
            first_one = self.bearing.setdefault(shaft, bearing)
            if first_one is not bearing:
                raise OverconstrainedError(
                    f"the direction of one shaft is given more than once, by {first_one.owner}, {bearing.owner}",
                    [first_one.owner, bearing.owner],
                )

    def _merge(self, a: str, b: str) -> None:
        self._of[self.of(a)] = self.of(b)

    def of(self, flange: str) -> str:
        """The shaft a flange belongs to."""
        while flange in self._of and self._of[flange] != flange:
            flange = self._of[flange]
        return flange


def settle_joints(sets: Iterable[Iterable[str]], parts: Parts, on: Carriers) -> None:
    """Bend angles of all joints; the torques of directed joints on their carriers. `on`: frame -> its carrier."""
    shafts = _Shafts(sets, parts)
    links = []
    for k, joint in enumerate(parts.joints.shafts):
        if joint.given is None:
            joint = _directed(parts, joint, k, _ends(shafts, joint.owner, on), on)
            parts.joints.shafts[k] = joint
        else:
            _not_twice(shafts, joint.owner)
            if max(joint.bend_in) < 0:
                links.append(_Link(joint.owner, *_flanges(shafts, joint.owner), _bend_of(joint)))
    for rigid in parts.joints.rigid:
        bend = rigid.given
        if bend is None:
            a, b = _ends(shafts, rigid.owner, on)
            if not _together(on[a.frame], on[b.frame]):
                raise CompileError(
                    f"{rigid.owner!r} is rigid, and the zero references of its bearings {a.owner}, {b.owner} turn "
                    f"against each other ({on[a.frame].owner}, {on[b.frame].owner}): take a JointShaft with joints of "
                    "constant velocity", [rigid.owner, a.owner, b.owner],
                )  # fmt: skip
            bend = _bend(rigid.owner, a.owner, b.owner, a.n, b.n)
            for bearing, sign in ((a, -1.0), (b, 1.0)):
                _moment(parts, rigid.owner, bearing, rigid.tau, -sign, on)
        else:
            _not_twice(shafts, rigid.owner)
            links.append(_Link(rigid.owner, *_flanges(shafts, rigid.owner), abs(bend)))
        parts.reactions[rigid.moment] = replace(parts.reactions[rigid.moment], gain=-math.tan(0.5 * bend))
    _check_loops(links, shafts, on)


def _flanges(shafts: _Shafts, owner: str) -> tuple[str, str]:
    return shafts.of(f"{owner}.flange_a"), shafts.of(f"{owner}.flange_b")


def _not_twice(shafts: _Shafts, owner: str) -> None:
    """A joint whose bend is given is not directed by bearings on both sides."""
    a, b = (shafts.bearing.get(shaft) for shaft in _flanges(shafts, owner))
    if a is not None and b is not None:
        raise OverconstrainedError(
            f"the bend of {owner!r} is given twice: by its own value and by the bearings {a.owner}, {b.owner}",
            [owner, a.owner, b.owner],
        )


def _ends(shafts: _Shafts, owner: str, on: Carriers) -> tuple[BearingPart, BearingPart]:
    """The bearings of both shafts of a joint; CompileError where it is not known how their carriers lie."""
    found = []
    for side, shaft in zip("ab", _flanges(shafts, owner), strict=True):
        bearing = shafts.bearing.get(shaft)
        if bearing is None:
            raise NoReferenceError(
                f"the shaft at {owner}.flange_{side} has no direction: join a ShaftBearing to it, or give the bend "
                f"angle of {owner!r}", [owner],
            )  # fmt: skip
        found.append(bearing)
    a, b = found
    first, second = on[a.frame], on[b.frame]
    if _together(first, second):
        return a, b
    check_known(owner, a, b, (first, second))
    return a, b


def _together(first: CarrierPart | BodyPart, second: CarrierPart | BodyPart) -> bool:
    """Whether two carriers do not move against each other."""
    at_rest = isinstance(first, CarrierPart) and isinstance(second, CarrierPart) and not (first.w or second.w)
    return first is second or at_rest


def _angle(n_a: Vector | Array, n_b: Vector | Array) -> float:
    """Angle between two directions."""
    return math.atan2(float(np.linalg.norm(np.cross(n_a, n_b))), float(np.dot(n_a, n_b)))


def _bend(owner: str, a: str, b: str, n_a: Vector | Array, n_b: Vector | Array) -> float:
    """Angle between two directions of length 1; CompileError for a joint that is bent too far."""
    bend = _angle(n_a, n_b)
    if bend > LARGEST_BEND:
        raise CompileError(
            f"{owner!r} is bent by {math.degrees(bend):.6g} deg from {a} to {b}: a joint at 90 deg passes no torque "
            "(allowed: 0 .. 80 deg, both axes in the sense in which the shafts turn)", [owner, a, b],
        )  # fmt: skip
    return bend


def _directed(parts: Parts, joint: JointPart, k: int, ends: tuple[BearingPart, BearingPart], on: Carriers) -> JointPart:
    """A joint shaft between bearings: bend angles, planes, length; its torques on the carrier."""
    a, b = ends
    first, second = on[a.frame], on[b.frame]
    if not _together(first, second):
        joint = pose(joint, ends, (first, second), parts.frames.bodies)
        for bearing, end in ((a, 0), (b, 1)):
            if isinstance(on[bearing.frame], CarrierPart):
                parts.frames.wrenches.append(WrenchPart(joint.owner, bearing.frame, k, end))
        for short, dimension, which in _SHOWN[: 3 if joint.joints == 2 else 1]:
            name, index = f"{joint.owner}.{short}", k * JOINT_OUTPUTS + which
            parts.outputs.append(Output(name, SYMBOLS[dimension], OUT_JOINT, None, index, 1.0))
        return _put_together(joint, ends, start_of(first), start_of(second))
    for bearing, end in ((a, 0), (b, 1)):
        parts.reactions.append(Reaction(joint.owner, -1, 1.0, -1, 0.0, joint=(k, end)))
        _moment(parts, joint.owner, bearing, len(parts.reactions) - 1, -1.0, on)
    same = np.eye(3), np.zeros(3)
    return _put_together(joint, ends, same, same)


def _put_together(joint: JointPart, ends: tuple[BearingPart, BearingPart], pose_a: tuple[Array, Array],
                  pose_b: tuple[Array, Array]) -> JointPart:  # fmt: skip
    """Bend angles, plane and length of a shaft between bearings on carriers with these attitudes and places."""
    a, b = ends
    (R_a, r_a), (R_b, r_b) = pose_a, pose_b
    n_a, n_b = R_a @ np.array(a.n), R_b @ np.array(b.n)
    if joint.joints == 1:
        return replace(joint, given=(_bend(joint.owner, a.owner, b.owner, n_a, n_b), 0.0))
    at = r_a + R_a @ np.array(a.r), r_b + R_b @ np.array(b.r)
    n, length = direction(joint.owner, a, b, at, n_a)
    bends = _bend(joint.owner, a.owner, joint.owner, n_a, n), _bend(joint.owner, joint.owner, b.owner, n, n_b)
    normal_a, normal_b = np.cross(n_a, n), np.cross(n, n_b)
    planes = math.atan2(float(np.dot(n, np.cross(normal_a, normal_b))), float(np.dot(normal_a, normal_b)))
    return replace(joint, given=bends, planes=planes if min(bends) > CLOSING else 0.0, length=length)


def _moment(parts: Parts, owner: str, bearing: BearingPart, reaction: int, sign: float, on: Carriers) -> None:
    """sign*reaction along the shaft on the carrier whose motion is given; in a body of the model it is inside."""
    if isinstance(on[bearing.frame], CarrierPart):
        x, y, z = bearing.n
        parts.frames.moments.append(MomentPart(owner, bearing.frame, reaction, (sign * x, sign * y, sign * z)))


def _bend_of(joint: JointPart) -> float:
    """Angle between the outer shafts."""
    first, second = (abs(bend) for bend in joint.bend)
    # a bend below 0 is one in the opposite plane
    planes = joint.planes + (math.pi if joint.bend[0] * joint.bend[1] < 0.0 else 0.0)
    cos = math.cos(first) * math.cos(second) - math.sin(first) * math.sin(second) * math.cos(planes)
    return math.acos(min(1.0, max(-1.0, cos)))


def _check_loops(links: list[_Link], shafts: _Shafts, on: Carriers) -> None:
    """No angle is more than the others of its loop together, bearings on one carrier closing loops, too."""
    directed = sorted(shafts.bearing, key=natural)
    fixed = [
        _Link(", ".join(sorted((shafts.bearing[a].owner, shafts.bearing[b].owner), key=natural)), a, b,
              _angle(shafts.bearing[a].n, shafts.bearing[b].n))
        for i, a in enumerate(directed) for b in directed[i + 1:]
        if on[shafts.bearing[a].frame] is on[shafts.bearing[b].frame]
    ]  # fmt: skip
    for link in [*links, *fixed]:
        others = [other for other in [*links, *fixed] if other is not link]
        found = _shortest(others, link.a, link.b)
        if found is not None and link.angle > found[0] + CLOSING:
            names = [link.owner, *found[1]]
            raise OverconstrainedError(
                "the directions of a loop of joints do not close: " + " - ".join(names)
                + f"; {math.degrees(link.angle):.6g} deg at the first, {math.degrees(found[0]):.6g} deg at the others",
                sorted({name for entry in names for name in entry.split(", ")}, key=natural),
            )  # fmt: skip


def _shortest(links: list[_Link], start: str, goal: str) -> tuple[float, list[str]] | None:
    """Least sum of angles from one shaft to another, and by which joints (Dijkstra)."""
    heap: list[tuple[float, str, list[str]]] = [(0.0, start, [])]
    done: set[str] = set()
    while heap:
        length, shaft, by = heapq.heappop(heap)
        if shaft == goal:
            return length, by
        if shaft in done:
            continue
        done.add(shaft)
        for link in links:
            if shaft in (link.a, link.b):
                heapq.heappush(heap, (length + link.angle, link.b if shaft == link.a else link.a, [*by, link.owner]))
    return None
