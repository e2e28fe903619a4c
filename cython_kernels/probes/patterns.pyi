from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from torqueloop.cython_kernels.kernel.kernel import KernelState

def lock_pattern(
    state: KernelState, stuck: Collection[int], length: float
) -> dict[str, NDArray[np.float64] | None]: ...
