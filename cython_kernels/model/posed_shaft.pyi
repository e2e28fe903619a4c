"""Types of posed_shaft.pyx."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

class PosedShaft:
    def __init__(
        self, hooke: tuple[int, int], n: ArrayLike, pins: ArrayLike, at: ArrayLike, sense: float, psi0: float = 0.0
    ) -> None: ...
    def twist(
        self, turns: tuple[Array, Array], places: tuple[Array, Array], phi_a: float, phi_b: float, near: float
    ) -> tuple[float, float, tuple[float, float], Array, Array]: ...
