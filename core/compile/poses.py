"""Shafts with joints between bearings on carriers that move against each other: what the step needs to follow them.

As the shaft is put together (poses q0 .., x0 .. of the carriers) bends, planes and forks mean what they mean on one
carrier. From them follow constants fixed to each carrier: where the pin of the outer fork points at phi = 0, and by
which angle the zero references of both bearings, carried to the shaft by the shortest turn, stand against each other
(cython_kernels/model/poses.pxd). All else is worked out in the step from the poses of that instant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import CompileError
from torqueloop.core.describe.frame_parts import BodyPart, CarrierPart, Vector
from torqueloop.core.describe.joint_parts import BearingPart, JointPart, PosePart

Array = NDArray[np.float64]
Carrier = CarrierPart | BodyPart
#: rad: a joint that is bent by less has no plane of its own
STRAIGHT = 1e-6


def rotation(q: tuple[float, float, float, float]) -> Array:
    """Matrix of a quaternion of length 1, scalar first."""
    w, (x, y, z) = q[0], q[1:]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + 2.0 * (w * cross + cross @ cross))


def start_of(carrier: Carrier) -> tuple[Array, Array]:
    """Axes of a carrier to those of the world, and place of its origin, as shafts were put together."""
    q, r = (carrier.q, carrier.r) if isinstance(carrier, BodyPart) else (carrier.q0, carrier.r0)
    return rotation(q), np.array(r)


def check_known(owner: str, a: BearingPart, b: BearingPart, on: tuple[Carrier, Carrier]) -> None:
    """CompileError unless the poses of both carriers are known: at rest, inputs, or states of bodies."""
    for carrier in on:
        if isinstance(carrier, CarrierPart) and carrier.w and not carrier.pose:
            raise CompileError(
                f"{on[0].owner} - {a.owner} - {owner} - {b.owner} - {on[1].owner}: the carriers of {owner!r} move "
                f"against each other, and the attitude of {carrier.owner!r} is not known: give it attitude = "
                f"true, or let the bend angle of {owner!r} be an input", [owner, a.owner, b.owner, carrier.owner],
            )  # fmt: skip


def direction(owner: str, a: BearingPart, b: BearingPart, ends: tuple[Array, Array], n_a: Array) -> tuple[Array, float]:
    """Direction of the shaft between the joints at `ends` in the sense in which shaft a turns, and its length."""
    way = ends[1] - ends[0]
    length = float(np.linalg.norm(way))
    if length == 0.0:
        raise CompileError(
            f"the shaft {owner!r} has no direction: {a.owner} and {b.owner} are at one place (r_x ..)",
            [owner, a.owner, b.owner],
        )
    return (way / length if float(np.dot(way, n_a)) >= 0.0 else -way / length), length


def pose(
    joint: JointPart, ends: tuple[BearingPart, BearingPart], on: tuple[Carrier, Carrier], bodies: Sequence[BodyPart]
) -> JointPart:
    """The joint shaft with its PosePart."""
    turn, place = zip(*(start_of(carrier) for carrier in on), strict=True)
    n_a, n_b = (R @ np.array(end.n) for R, end in zip(turn, ends, strict=True))
    sense, n = 0.0, n_b
    if joint.joints == 2:
        at = [r + R @ np.array(end.r) for r, R, end in zip(place, turn, ends, strict=True)]
        n, _ = direction(joint.owner, *ends, (at[0], at[1]), n_a)
        sense = math.copysign(1.0, float(np.dot(at[1] - at[0], n)))
    pin_a, pin_b = pins(joint.fork, joint.phase, joint.hooke, n_a, n_b, n)
    carried_a, carried_b = carried(pin_a, n_a, n), carried(pin_b, n_b, n)
    psi0 = math.atan2(float(np.dot(np.cross(carried_b, carried_a), n)), float(np.dot(carried_a, carried_b)))
    own = [R.T @ pin for R, pin in zip(turn, (pin_a, pin_b), strict=True)]
    pose_in = [i for c in on for i in (isinstance(c, CarrierPart) and c.pose) or (-1,) * 7]
    a, b = (bodies.index(carrier) if isinstance(carrier, BodyPart) else -1 for carrier in on)
    part = PosePart(
        joint.owner, tuple(pose_in), (a, b), _flat(*(end.n for end in ends)), _flat(*own),
        _flat(*(end.r for end in ends)), sense, psi0,
    )  # fmt: skip
    return replace(joint, posed=part)


def pins(
    fork: float, phase: float, hooke: tuple[int, int], n_a: Array, n_b: Array, n: Array
) -> tuple[Array, Array]:  # fmt: skip
    """Pins of the forks of both outer shafts at phi = 0, without force. fork: angle of fork a from the plane of its
    joint, phase: between the forks of the shaft along n; hooke: 1 for universal joints."""
    plane_a, plane_b = (_unit(np.cross(first, second)) for first, second in ((n_a, n), (n, n_b)))
    if plane_a is None:
        # the plane of a joint that is straight is that of the other one; of two, the one with the axis least along it
        plane_a = plane_b if plane_b is not None else _unit(np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))]))
    assert plane_a is not None
    across = np.cross(n_a, plane_a)
    pin_a = math.cos(fork) * across + math.sin(fork) * np.cross(n_a, across)
    # the cross is square to both of its pins, one of constant velocity passes angles on as they are
    on_shaft = np.cross(n, pin_a if hooke[0] else carried(pin_a, n_a, n))
    on_shaft /= np.linalg.norm(on_shaft)
    fork_b = math.cos(phase) * on_shaft + math.sin(phase) * np.cross(n, on_shaft)
    if not hooke[1]:
        return pin_a, carried(np.cross(fork_b, n), n, n_b)
    pin_b = np.cross(fork_b, n_b)
    return pin_a, pin_b / np.linalg.norm(pin_b)


def carried(e: Array, n: Array, to: Array) -> Array:
    """e, square to n, carried from n to `to` by the shortest turn."""
    return np.asarray(e - np.dot(e, to) / (1.0 + np.dot(n, to)) * (n + to))


def _unit(v: Array) -> Array | None:
    """v with length 1; None where it has no direction."""
    size = float(np.linalg.norm(v))
    return v / size if size > STRAIGHT else None


def _flat(*vectors: Vector | Array) -> tuple[float, ...]:
    return tuple(float(x) for v in vectors for x in v)
