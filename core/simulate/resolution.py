"""What a step of a driveline cannot resolve: oscillations that are faster than four steps a period.

With all friction open the linear part is M u' + D u + K q = 0 (K = sum c r r^T, D = sum d r r^T over the springs and
dampers with rows r). A pair of eigenvalues s = -a +- i w oscillates when w > a; elements that stick only take freedom
away, so no lock pattern oscillates faster than the fastest pair. Beyond w h = pi/2 the step stays stable and takes no
energy in, but the torques it shows at its ends are no samples of the oscillation. Shafts without inertia between
springs and dampers have no M: their speeds follow from the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import CompiledModel

Array = NDArray[np.float64]

#: a period of an oscillation takes at least four steps to be seen [rad]
RESOLVED = math.pi / 2
#: frequencies beyond are those of an inertia that is rounding (a coordinate that a driven motion alone moves) [rad/s]
ROUNDING = 1e12


@dataclass(frozen=True)
class Oscillation:
    """An oscillation that a step does not resolve."""

    #: the spring that holds most of its elastic energy
    element: str
    #: [Hz]
    frequency_Hz: float
    #: steps that a tick of this length needs to resolve it
    substeps: int


def _system(model: CompiledModel, K: Array, D: Array) -> Array:
    """Matrix of x' for x = (q, speeds of the coordinates that have inertia). The speeds of the others follow from the
    balance of their springs and dampers, 0 = D u + K q along them."""
    arrays, n = model.arrays, model.n
    light = np.asarray(arrays.rx["coord"], dtype=np.int64)
    heavy = np.setdiff1d(np.arange(n), light)
    q, u = np.eye(n, n + len(heavy)), np.zeros((n, n + len(heavy)))
    u[heavy, n + np.arange(len(heavy))] = 1.0
    if len(light):
        u[light] = -np.linalg.solve(D[np.ix_(light, light)], D[light] @ u + K[light] @ q)
    rates = -np.linalg.solve(arrays.M[np.ix_(heavy, heavy)], D[heavy] @ u + K[heavy] @ q)
    return np.asarray(np.vstack([u, rates]))


def unresolved(model: CompiledModel, h: float) -> list[Oscillation]:
    """The oscillations that steps of h [s] do not resolve, the fastest of each spring."""
    arrays, n = model.arrays, model.n
    springs = arrays.lin
    if not n or not len(springs) or not (springs["c"] > 0.0).any():
        return []
    rows = np.zeros((len(springs), n))
    for k, row in enumerate(springs["row"]):
        part = slice(arrays.row_ptr[row], arrays.row_ptr[row + 1])
        rows[k, arrays.row_idx[part]] = arrays.row_val[part]
    roots, modes = np.linalg.eig(_system(model, rows.T * springs["c"] @ rows, rows.T * springs["d"] @ rows))
    found: dict[str, Oscillation] = {}
    for k in np.argsort(-roots.imag):
        w = float(roots[k].imag)
        if w * h <= RESOLVED:
            break
        if -float(roots[k].real) < w < ROUNDING:
            name = model.compliance_names[int(np.argmax(springs["c"] * np.abs(rows @ modes[:n, k]) ** 2))]
            found.setdefault(name, Oscillation(name, w / (2 * math.pi), math.ceil(w * h / RESOLVED)))
    return list(found.values())
