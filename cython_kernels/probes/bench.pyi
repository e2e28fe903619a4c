import numpy as np
from numpy.typing import ArrayLike, NDArray

from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

def time_steps(model: KernelModel, state: KernelState, inputs: ArrayLike) -> NDArray[np.int64]: ...
