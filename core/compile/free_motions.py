"""Rows of speeds as combinations of the coordinates, and the motions that driven flanges leave free."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: singular values below this share of the largest belong to driven motions that depend on others
DEPENDENT = 1e-9


def combinations(arrays: Any, rows: NDArray[np.int32]) -> Array:
    """The rows of the speeds with these numbers as combinations of the coordinates, (rows, n)."""
    found = np.zeros((len(rows), arrays.M.shape[0]))
    for k, row in enumerate(rows):
        part = slice(arrays.row_ptr[row], arrays.row_ptr[row + 1])
        found[k, arrays.row_idx[part]] = arrays.row_val[part]
    return found


def free_motions(arrays: Any) -> tuple[Array, Array]:
    """Bases of the motions that driven flanges leave: of coordinates with inertia, (n, p), and of the others (n, l). A
    shaft between friction and springs goes with the other side of the friction:
    no motion is faster than if it sticks."""
    n = arrays.M.shape[0]
    light = np.asarray(arrays.rx["coord"], dtype=np.int64)
    # no set operations of NumPy: they import numpy.ma
    heavy = np.delete(np.arange(n), light)
    free = np.eye(len(heavy))
    driven = combinations(arrays, arrays.fr["row"][arrays.drv["fr"]])[:, heavy]
    if len(driven):
        _, size, V = np.linalg.svd(driven)
        free = V[int((size > DEPENDENT * size.max()).sum()) :].T
    Z = np.zeros((n, free.shape[1]))
    Z[heavy] = free
    serial = arrays.rx[arrays.rx["fr"] >= 0]
    slips = combinations(arrays, arrays.fr["row"][serial["fr"]])
    Z[serial["coord"]] = -slips @ Z / serial["share"][:, None]
    return Z, np.delete(np.eye(n), [*heavy, *serial["coord"]], axis=1)
