"""The locator of events (step/roots.pxi) against the roots that NumPy and SciPy find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from torqueloop.cython_kernels.probes.locator import cubic_fall, curve_fall

coefficients = st.lists(
    st.floats(-10.0, 10.0, allow_subnormal=False).map(lambda x: round(x, 3)), min_size=4, max_size=4
)


def first_fall(c: list[float], tol: float) -> float | None:
    """Of the real roots that NumPy finds, the last before the first extreme, or end, below -tol."""
    cubic = np.polynomial.Polynomial(c)

    def inside(roots: np.ndarray) -> list[float]:
        return sorted(float(x.real) for x in roots if abs(x.imag) < 1e-9 and 0.0 < x.real < 1.0)

    for end in [*inside(cubic.deriv().roots()), 1.0]:
        if cubic(end) < -tol:
            return max((x for x in inside(cubic.roots()) if x <= end), default=0.0)
    return None


@given(coefficients)
@example([1.0, -4.0, 4.0, 0.0])  # touches 0
@example([0.0, 1.0, -3.0, 0.0])  # leaves 0 upward and comes back
@example([0.0, -1.0, 5.0, 0.0])  # leaves 0 downward and comes back
@example([0.0, 0.0, 1.0, -4.0])
@example([1e-12, -1.0, 0.0, 0.0])
@example([3.0, -10.0, 0.0, 0.0])
def test_a_cubic_falls_at_the_root_that_numpy_finds(c: list[float]) -> None:
    tol = 1e-9
    found, wanted = cubic_fall(*c, tol), first_fall(c, tol)
    cubic = np.polynomial.Polynomial(c)
    extremes = [1.0, *(x.real for x in cubic.deriv().roots() if abs(x.imag) < 1e-6)]
    if min(abs(cubic(x) + tol) for x in extremes if 0.0 <= x <= 1.0) < 1e-7:
        return  # whether it touches 0 is rounding
    if wanted is None:
        assert found is None
        return
    assert found is not None
    # as near as the rounding of its terms lets a root be known
    assert abs(found - wanted) <= 1e-9 or abs(cubic(found)) <= 4e-15 * sum(abs(x) for x in c)


@given(st.floats(0.1, 10.0), st.floats(0.01, 30.0), st.floats(0.05, 0.95))
def test_a_pressure_passes_a_level_where_scipy_finds_it(rest: float, rate: float, at: float) -> None:
    level = -rest * np.exp(-rate * at)
    exact = brentq(lambda x: level + rest * np.exp(-rate * x), 0.0, 1.0, xtol=1e-15, rtol=1e-14)
    found = curve_fall(level, 0.0, rest, rate, 1e-13 * rest)
    # (where the law is flat the root is known to the rounding of its level only)
    assert found == pytest.approx(exact, abs=1e-12 + 1e-15 / (rate * np.exp(-rate * exact)))


@pytest.mark.parametrize("at", [1e-15, 1e-9, 0.3, 1.0 - 1e-9])
def test_a_line_falls_where_it_is_0(at: float) -> None:
    assert cubic_fall(5.0 * at, -5.0, 0.0, 0.0, 1e-30) == pytest.approx(at, rel=1e-12, abs=2e-15)


def test_what_leaves_0_downward_falls_at_the_start_exactly() -> None:
    assert cubic_fall(0.0, -1.0, 0.5, 0.0, 1e-9) == 0.0


def test_what_stays_within_the_tolerance_does_not_fall() -> None:
    """(x - 0.5)^2 less a tenth of the tolerance, or more than it."""
    assert cubic_fall(0.25 - 0.1e-6, -1.0, 1.0, 0.0, 1e-6) is None
    assert cubic_fall(0.25 - 4e-6, -1.0, 1.0, 0.0, 1e-6) == pytest.approx(0.5 - 2e-3, rel=1e-9)
