from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

def boxed(
    W: ArrayLike, b: ArrayLike, lo: ArrayLike, hi: ArrayLike
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], NDArray[np.int32]]: ...
