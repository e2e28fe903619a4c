from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.cython_kernels.can.codec import RxState, TxState
from torqueloop.cython_kernels.can.socketcan import NativePort

def answer_frames(
    port: NativePort,
    rx: RxState,
    tx: TxState,
    table: NDArray[np.float64] | Any,
    message: int,
    copy_from: int,
    copy_to: int,
    count: int,
    timeout_ms: int = 1000,
) -> int: ...
