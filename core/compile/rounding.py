"""Ratios of inertia and stiffness that 16 digits cannot carry: a step would be rounding there, so the model is refused.

M is the reduced inertia of the motions that driven flanges leave free. A spring of stiffness c along the row r moves
the inertia 1/(r M^-1 r^T), and both oscillate with w = sqrt(c r M^-1 r^T). Limits and reasons: core/describe/ranges.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torqueloop.core.compile.free_motions import combinations, free_motions
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError
from torqueloop.core.describe.params import params_of
from torqueloop.core.describe.ranges import APART, FASTEST
from torqueloop.core.describe.units import is_number


def check_rounding(driveline: Driveline, arrays: Any, springs: Sequence[str]) -> None:
    """CompileError with the components and numbers of the first ratio out of range; arrays: those of the model."""
    _check_inertias(driveline)
    lin, free = arrays.lin, free_motions(arrays)[0]
    inertia = free.T @ arrays.M @ free
    if not free.shape[1] or not len(lin) or not np.linalg.cond(inertia) < 1.0 / np.finfo(float).eps:
        return
    for k, r in enumerate(combinations(arrays, lin["row"]) @ free):
        moved = float(r @ np.linalg.solve(inertia, r))
        c = float(lin["c"][k])
        if c * moved > FASTEST**2:
            raise CompileError(
                f"spring {springs[k]} of stiffness {c:g} moves an inertia of {1.0 / moved:g}: both oscillate with "
                f"{math.sqrt(c * moved):.3g} rad/s, and rounding hides such an inertia; allowed: <= {FASTEST:g} rad/s",
                [springs[k]],
            )


def _check_inertias(driveline: Driveline) -> None:
    given = sorted(
        (float(value), f"{name}.{key}")
        for name, component in driveline.components.items()
        for key, p in params_of(type(component)).items()
        if p.dimension in ("inertia", "mass") and is_number(value := getattr(component, key)) and value > 0.0
    )
    if given and given[-1][0] > APART * given[0][0]:
        (small, light), (large, heavy) = given[0], given[-1]
        raise CompileError(
            f"{light} = {small:g} beside {heavy} = {large:g}, {large / small:.3g} times as much: the lighter one is "
            f"rounding of the heavier one; allowed: up to {APART:g} times",
            [light.partition(".")[0], heavy.partition(".")[0]],
        )
