"""Rotations: about an axis, as quaternions, as angles of a Cardan suspension (x, y, z in turn)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.reference.assembly import NotMapped

Array = NDArray[np.float64]


def unit(v: Iterable[float]) -> Array:
    """A vector of length 1."""
    e = np.array(list(v), dtype=np.float64)
    length = float(np.linalg.norm(e))
    if length == 0.0:
        raise NotMapped("multibody: an axis has length 0")
    return e / length


def turn(axis: Iterable[float], angle: float) -> Array:
    """Rotation by angle about an axis (right-hand rule): columns are the turned axes."""
    e = unit(axis)
    k = np.array([[0.0, -e[2], e[1]], [e[2], 0.0, -e[0]], [-e[1], e[0], 0.0]])
    rotation: Array = np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)
    return rotation


def quaternion(R: Array) -> Array:
    """(q0, q1, q2, q3) of a rotation matrix, q0 >= 0."""
    # the four squares are on the diagonal of 4 q q^T; the largest gives the others without cancellation
    K = np.array([
        [1 + R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
        [R[2, 1] - R[1, 2], 1 + R[0, 0] - R[1, 1] - R[2, 2], R[1, 0] + R[0, 1], R[0, 2] + R[2, 0]],
        [R[0, 2] - R[2, 0], R[1, 0] + R[0, 1], 1 - R[0, 0] + R[1, 1] - R[2, 2], R[2, 1] + R[1, 2]],
        [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2], 1 - R[0, 0] - R[1, 1] + R[2, 2]],
    ])  # fmt: skip
    q: Array = K[int(np.argmax(np.diag(K)))]
    q = q / np.linalg.norm(q)
    return -q if q[0] < 0.0 else q


def _first_row(x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Of R over time: cos(b)cos(c), -cos(b)sin(c), sin(b); and -sin(a)cos(b), cos(a)cos(b) of its last column."""
    q0, q1, q2, q3 = x[:, :4].T
    return (
        1.0 - 2.0 * (q2 * q2 + q3 * q3), 2.0 * (q1 * q2 - q0 * q3), 2.0 * (q1 * q3 + q0 * q2),
        2.0 * (q2 * q3 - q0 * q1), 1.0 - 2.0 * (q1 * q1 + q2 * q2),
    )  # fmt: skip


def gimbal_angles(x: Array) -> tuple[Array, Array, Array]:
    """Angles about x, y, z in turn, continuous over time, from quaternions (samples, 4); |second| < 90 deg."""
    r11, r12, r13, r23, r33 = _first_row(x)
    first, third = np.unwrap(np.arctan2(-r23, r33)), np.unwrap(np.arctan2(-r12, r11))
    return first, np.arcsin(np.clip(r13, -1.0, 1.0)), third


def gimbal_rates(x: Array) -> tuple[Array, Array, Array]:
    """Their rates, from quaternions and angular velocities along the axes of the body (samples, 4 + 3)."""
    r11, r12, r13, _, _ = _first_row(x)
    cos_b = np.hypot(r11, r12)
    c, s = r11 / cos_b, -r12 / cos_b
    w1, w2, w3 = x[:, 4:7].T
    # omega = (cos b cos c, -cos b sin c, sin b) a' + (sin c, cos c, 0) b' + (0, 0, 1) c'
    first = (c * w1 - s * w2) / cos_b
    return first, s * w1 + c * w2, w3 - r13 * first
