"""What a step of a driveline cannot resolve: oscillations that are faster than four steps a period.

With all friction open the linear part is M u' + D u + K q = 0 (K = sum c r r^T, D = sum d r r^T over the springs and
dampers with rows r). A pair of eigenvalues s = -a +- i w oscillates when w > a; elements that stick only take freedom
away, so no lock pattern oscillates faster than the fastest pair. Beyond w h = pi/2 the step stays stable and takes no
energy in, but the torques it shows at its ends are no samples of the oscillation. Shafts without inertia between
springs and dampers have no M: their speeds follow from the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.compile.free_motions import combinations, free_motions
from torqueloop.core.describe.classes import dataclass

Array = NDArray[np.float64]

#: a period of an oscillation takes at least four steps to be seen [rad]
RESOLVED = math.pi / 2


@dataclass(frozen=True)
class Oscillation:
    """An oscillation that a step does not resolve."""

    #: the spring that holds most of its elastic energy
    element: str
    #: [Hz]
    frequency_Hz: float
    #: steps that a tick of this length needs to resolve it
    substeps: int


def _system(model: CompiledModel, K: Array, D: Array) -> tuple[Array, Array]:
    """Matrix of x' for x = (angles, speeds of the motions that have inertia), and the angles of the coordinates by x.
    The speeds of the motions without follow from the balance of their springs and dampers, 0 = D u + K q along them."""
    Z, L = free_motions(model.arrays)
    p, light = Z.shape[1], L.shape[1]
    q = np.hstack([Z, L, np.zeros((model.n, p))])
    u = np.hstack([np.zeros((model.n, p + light)), Z])
    slow = np.zeros((light, q.shape[1]))
    if light:
        slow = -np.linalg.solve(L.T @ D @ L, L.T @ (D @ u + K @ q))
        u = u + L @ slow
    rates = -np.linalg.solve(Z.T @ model.arrays.M @ Z, Z.T @ (D @ u + K @ q))
    speeds = np.eye(p, q.shape[1], p + light)
    return np.vstack([speeds, slow, rates]), q


def unresolved(model: CompiledModel, h: float) -> list[Oscillation]:
    """The oscillations that steps of h [s] do not resolve, the fastest of each spring."""
    springs = model.arrays.lin
    if not model.n or not len(springs) or not (springs["c"] > 0.0).any():
        return []
    rows = combinations(model.arrays, springs["row"])
    system, angles = _system(model, rows.T * springs["c"] @ rows, rows.T * springs["d"] @ rows)
    roots, modes = np.linalg.eig(system)
    found: dict[str, Oscillation] = {}
    for k in np.argsort(-roots.imag):
        w = float(roots[k].imag)
        if w * h <= RESOLVED:
            break
        if -float(roots[k].real) < w:
            twist = np.abs(rows @ angles @ modes[:, k])
            name = model.compliance_names[int(np.argmax(springs["c"] * twist**2))]
            found.setdefault(name, Oscillation(name, w / (2 * math.pi), math.ceil(w * h / RESOLVED)))
    return list(found.values())
