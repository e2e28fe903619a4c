from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torqueloop.cython_kernels.can.codec import CodecTables
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

def time_steps(model: KernelModel, state: KernelState, inputs: ArrayLike) -> NDArray[np.int64]: ...
def benchmark_ns(sender: CodecTables, receiver: CodecTables, table: NDArray[Any], n: int) -> tuple[float, float]: ...
