"""Rigid pieces of a multibody case: the frames that are one, and where each stands in it."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass

Vector = NDArray[np.float64]
#: two frames as seen from one another: rotation (columns: axes of the second in the first) and shift
Pose = tuple[NDArray[np.float64], Vector]

HERE: Pose = (np.eye(3), np.zeros(3))


@dataclass
class Rigid:
    """A rigid piece: poses of its frames relative to one of them."""

    poses: dict[str, Pose]
    #: shaft in the driveline, axis in the piece's own axes, a point on it; None: not hinged (yet)
    shaft: str | None = None
    axis: Vector = field(default_factory=lambda: np.zeros(3))
    point: Vector = field(default_factory=lambda: np.zeros(3))
    ground: bool = False
    #: part of a gyrostat
    moving: bool = False

    def at(self, frame: str, r: Vector) -> Vector:
        """A point given in a frame, in the axes of the piece."""
        rotation, shift = self.poses[frame]
        point: Vector = shift + rotation @ r
        return point
