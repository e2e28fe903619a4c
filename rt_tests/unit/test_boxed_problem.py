"""The boxed problem of decisions: forces and slips that fit each other (docs/theory.md, (39), (40))."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torqueloop.cython_kernels.locks.boxed_problem import boxed


def by_trying_all(W: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Forces of the assignment of sides that fits, of all 3^k; the one there is, since W is definite."""
    for sides in product((0, -1, 1), repeat=len(b)):
        side = np.array(sides)
        tau = np.where(side < 0, lo, np.where(side > 0, hi, 0.0))
        inside = side == 0
        if inside.any():
            tau[inside] = np.linalg.solve(W[np.ix_(inside, inside)], -(b + W @ tau)[inside])
        y = W @ tau + b
        if (lo - 1e-12 <= tau).all() and (tau <= hi + 1e-12).all() and (side * y <= 1e-12).all():
            return tau
    raise AssertionError("no assignment fits")


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_forces_are_those_of_the_one_assignment_that_fits(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(k, k + 1))
    W, b = rows @ rows.T + 0.1 * np.eye(k), rng.normal(size=k)
    lo, hi = -rng.uniform(0.0, 0.5, k), rng.uniform(0.0, 0.5, k)
    forces, sides = boxed(W, b, lo, hi)
    assert forces == pytest.approx(by_trying_all(W, b, lo, hi), abs=1e-7)
    assert (forces[sides < 0] == lo[sides < 0]).all() and (forces[sides > 0] == hi[sides > 0]).all()


def test_what_is_held_more_often_than_it_can_move_is_shared_evenly() -> None:
    forces, sides = boxed(np.ones((4, 4)), np.full(4, -2.0), np.full(4, -1.0), np.full(4, 1.0))
    assert forces == pytest.approx(np.full(4, 0.5)) and (sides == 0).all()


def test_without_limits_it_is_a_system_of_equations() -> None:
    W, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, -4.0])
    forces, _ = boxed(W, b, [-np.inf, -np.inf], [np.inf, np.inf])
    assert forces == pytest.approx(np.linalg.solve(W, -b), rel=1e-9)


def test_sizes_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match=r"lo \(1,\) and hi \(2,\) do not go with b \(2\)"):
        boxed(np.eye(2), np.zeros(2), np.zeros(1), np.zeros(2))
    assert [len(x) for x in boxed(np.zeros((0, 0)), [], [], [])] == [0, 0]
