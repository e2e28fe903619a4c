"""Polynomials that signals are made of, as their coefficients in ascending order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torqueloop.core.signals.base import Array, Formula

#: most coefficients of a polynomial in a formula
TERMS = 7


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """c0 + c1*x + c2*x^2 + ..."""
    y = np.zeros(x.shape)
    for c in reversed(coefficients):
        y = y * x + c
    return y


def formula_of(coefficients: Sequence[float], begin: float) -> Formula | None:
    """`polynomial` of t - begin."""
    if not 1 <= len(coefficients) <= TERMS:
        return None
    return (("polynomial", (float(begin), *(float(c) for c in coefficients))),)


def slope(coefficients: Sequence[float]) -> tuple[float, ...]:
    """Coefficients of the derivative."""
    return tuple(k * c for k, c in enumerate(coefficients) if k) or (0.0,)


def parabola(part: Array, x: float) -> Array:
    """Value at x of the parabola through part[0], part[1], part[2] at 0, 0.5 and 1."""
    curved = 2.0 * (part[0] - 2.0 * part[1] + part[2])
    value: Array = part[0] + (part[2] - part[0] - curved) * x + curved * x * x
    return value
