"""The law of a shaft between joints on moving carriers, from Python: what its twist grows by, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from posed_shafts import Array, about, matrix, turned

from torqueloop.cython_kernels.model.posed_shaft import PosedShaft

#: unit axes, pins square to them, places of the joints
N = (
    np.array([[1.0, 0.2, -0.1], [1.0, -0.3, 0.15]])
    / np.linalg.norm([[1.0, 0.2, -0.1], [1.0, -0.3, 0.15]], axis=1)[:, None]
)
PINS = np.array([about(n, 0.4, np.cross(n, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(n, [0.0, 0.0, 1.0]))) for n in N])
AT = np.array([[0.1, 0.02, 0.05], [-0.15, 0.03, -0.02]])
TURNS = matrix(turned(np.array([0.2, -0.1, 0.3]))), matrix(turned(np.array([-0.1, 0.25, 0.1])))
PLACES = np.array([0.01, 0.02, -0.03]), np.array([0.8, 0.05, 0.02])
PHI = 0.7, -1.9


def turned_by(k: int, R: Array, axis: int, angle: float) -> tuple[Array, Array]:
    """Carrier k turned about an axis of the world."""
    turns = list(TURNS)
    turns[k] = matrix(turned(np.eye(3)[axis] * angle)) @ R
    return turns[0], turns[1]


@pytest.mark.parametrize("hooke", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_what_the_twist_grows_by_is_its_slope(hooke: tuple[int, int]) -> None:
    """Central differences of the angle over flanges, places and turning; the latter with the joint at rest, so that it
    moves the shaft's direction with the arm of the carrier."""
    shaft = PosedShaft(hooke, N, PINS, AT, 1.0)
    _, psi, over_angle, over_turn, over_place = shaft.twist(TURNS, PLACES, *PHI, 0.0)
    e = 1e-6
    for k in range(2):
        ends = []
        for sign in (1.0, -1.0):
            phi = list(PHI)
            phi[k] += sign * e
            ends.append(shaft.twist(TURNS, PLACES, phi[0], phi[1], psi)[0])
        assert (ends[0] - ends[1]) / (2.0 * e) == pytest.approx(over_angle[k], abs=1e-8)
        for axis in range(3):
            moved, rotated = [], []
            for sign in (1.0, -1.0):
                places = [p.copy() for p in PLACES]
                places[k][axis] += sign * e
                moved.append(shaft.twist(TURNS, (places[0], places[1]), *PHI, psi)[0])
                rotated.append(shaft.twist(turned_by(k, TURNS[k], axis, sign * e), PLACES, *PHI, psi)[0])
            by_place = over_place * (1.0 if k else -1.0)
            assert (moved[0] - moved[1]) / (2.0 * e) == pytest.approx(by_place[axis], abs=1e-8)
            arm = np.cross(TURNS[k] @ AT[k], by_place)
            assert (rotated[0] - rotated[1]) / (2.0 * e) == pytest.approx(over_turn[k][axis] + arm[axis], abs=1e-8)


def test_a_single_joint_depends_on_no_place_and_whole_turns_are_followed() -> None:
    shaft = PosedShaft((1, 0), N, PINS, AT, 0.0)
    D, psi, _, _, over_place = shaft.twist(TURNS, PLACES, *PHI, 0.0)
    assert np.all(over_place == 0.0)
    assert shaft.twist(TURNS, (PLACES[0] + 1.0, PLACES[1]), *PHI, 0.0)[:2] == (D, psi)
    # the reference without force, and two turns on
    other = PosedShaft((1, 0), N, PINS, AT, 0.0, psi0=psi)
    far = other.twist(TURNS, PLACES, *PHI, 4.0 * math.pi)
    assert far[1] == pytest.approx(4.0 * math.pi, abs=1e-12)
    assert far[0] == pytest.approx(D - psi + 4.0 * math.pi, abs=1e-12)


def test_what_has_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pins has shape \(1, 3\), expected \(2, 3\)"):
        PosedShaft((1, 1), N, PINS[:1], AT, 1.0)
    with pytest.raises(ValueError, match=r"turns has shape \(3, 2\), expected \(3, 3\)"):
        PosedShaft((1, 1), N, PINS, AT, 1.0).twist((TURNS[0][:, :2], TURNS[1]), PLACES, *PHI, 0.0)
