"""Types of conditions.pyx."""

import numpy as np
from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.blocks import Blocks

OPERATIONS: tuple[str, ...]
UNARY: tuple[str, ...]
EQUAL_WITHIN: float
DEPTH: int

class Watched(Blocks):
    def __init__(self, n_sig: int, code: tuple[tuple[str, int, float], ...]) -> None: ...
    def holds(self, signals: NDArray[np.float64]) -> bool: ...
