"""Clutches, brakes and free wheels of drivelines on bodies: which ones stick, and when sliding ends.

    stuck     a row w = 0 more, while its force stays within the limits
    sliding   the force cgeo*mu(|w|)*fn against the slip, until the slip is 0

Modes are constant over a step. A step in which a slip changes its sign or a force leaves its limits ends there (found
by halving), and all elements without slip are decided anew by the boxed problem of the kernel (docs/theory.md, (39)),
whose unknowns are their forces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import CompileError
from torqueloop.core.describe.kernel_numbers import BILATERAL, BLOCKED, CAPPED, CONSTANT, NORMALIZED, NOTHING
from torqueloop.core.multibody.tree import Floats

STUCK = 0


@dataclass(frozen=True, eq=False)
class Friction:
    """One element of a driveline; `row`: its slip over the coordinates of the driveline."""

    name: str
    row: Floats
    source: int
    #: input of the normal force, -1: none
    input: int
    gain: float
    cgeo: float
    peak: float
    hold: float
    #: what it does forward and backward
    forward: int
    backward: int
    #: curve mu(|w|)
    slips: Floats
    coefficients: Floats

    def mu(self, slip: float) -> float:
        """Friction coefficient at |w|, held beyond its points."""
        return float(np.interp(abs(slip), self.slips, self.coefficients)) if len(self.slips) else 1.0

    def normal(self, inputs: Floats) -> float:
        """N."""
        given = inputs[self.input] if self.source == NORMALIZED else float(self.source == CONSTANT)
        return self.gain * max(0.0, float(given))

    def limits(self, inputs: Floats, slides: bool) -> tuple[float, float]:
        """What it bears against forward and against backward motion: at rest, or from where it begins to slide."""
        bears = self.cgeo * self.mu(0.0) * self.normal(inputs) * (1.0 if slides else self.peak)
        each = {NOTHING: 0.0, CAPPED: bears, BLOCKED: float("inf")}
        return max(each[self.forward], 0.0 if slides else self.hold), each[self.backward]

    def sliding(self, slip: float, mode: int, inputs: Floats) -> float:
        """Force along the row while it slides in direction `mode`."""
        acts = self.forward if mode > 0 else self.backward
        return -mode * self.cgeo * self.mu(slip) * self.normal(inputs) if acts == CAPPED else 0.0


def read_friction(model: Any, name: str) -> tuple[Friction, ...]:
    """The elements of a compiled driveline; CompileError for one whose normal force is not followed here."""
    arrays = model.arrays
    found = []
    for k, e in enumerate(arrays.fr):
        owner = model.friction_names[k]
        if int(e["src"]) not in (CONSTANT, NORMALIZED, BILATERAL):
            raise CompileError(
                f"driveline {name!r}: a tree of bodies does not follow what presses {owner!r} (fr.src in "
                "docs/kernel_records.md); Clutch, Brake, OneWayClutch, FreeWheel and constant friction it does"
            )
        row = np.zeros(model.n)
        part = slice(arrays.row_ptr[e["row"]], arrays.row_ptr[e["row"] + 1])
        row[arrays.row_idx[part]] = arrays.row_val[part]
        curve = slice(0, 0) if e["mu"] < 0 else slice(arrays.tab1_ptr[e["mu"]], arrays.tab1_ptr[e["mu"] + 1])
        x, y = np.array(arrays.tab1_x[curve]), np.array(arrays.tab1_y[curve])
        found.append(Friction(
            owner, row, int(e["src"]), int(e["src_idx"]), float(e["gain"]), float(e["cgeo"]), float(e["peak"]),
            float(e["hold"]), int(e["fwd"]), int(e["bwd"]), x, y,
        ))  # fmt: skip
    return tuple(found)
