"""Reading compiled arrays in the tests of the PowerTrain components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torqueloop.cython_kernels.model.model_arrays import ModelArrays


def row_of(arrays: ModelArrays, index: int) -> NDArray[np.float64]:
    """A row over the independent speeds, dense."""
    row = np.zeros(int(arrays.n))
    begin, end = arrays.row_ptr[index], arrays.row_ptr[index + 1]
    row[arrays.row_idx[begin:end]] = arrays.row_val[begin:end]
    return row


def curve_of(arrays: ModelArrays, index: int) -> list[tuple[float, float]]:
    """The points of a curve."""
    begin, end = arrays.tab1_ptr[index], arrays.tab1_ptr[index + 1]
    return list(zip(arrays.tab1_x[begin:end].tolist(), arrays.tab1_y[begin:end].tolist(), strict=True))


def map_of(arrays: ModelArrays, index: int) -> NDArray[np.float64]:
    """The grid of a map, [ix][iy]."""
    nx, ny, begin = (int(each[index]) for each in (arrays.tab2_nx, arrays.tab2_ny, arrays.tab2_zptr))
    return np.asarray(arrays.tab2_z[begin : begin + nx * ny]).reshape(nx, ny)
