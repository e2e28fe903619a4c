import numpy as np
from numpy.typing import NDArray

def fingerprint_of(values: NDArray[np.float64], seed: int = 0, plain: bool = False) -> int: ...
def first_not_finite(values: NDArray[np.float64], plain: bool = False) -> int: ...
def between(
    values: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    n: int,
    plain: bool = False,
) -> bool: ...
def copied(
    values: NDArray[np.float64],
    to: NDArray[np.float64],
    too: NDArray[np.float64] | None = None,
    plain: bool = False,
) -> None: ...
