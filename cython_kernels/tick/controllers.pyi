"""Types of controllers.pyx."""

from typing import Any

from numpy.typing import NDArray

from torqueloop.cython_kernels.controls.laws import Law
from torqueloop.cython_kernels.tick.blocks import Blocks

class Controllers(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, n: int, tick_s: float) -> None: ...
    def add(self, law: Law, first: int, every: int, reads: list[tuple[int, float, float]]) -> None: ...
    def tick(self, sig: NDArray[Any], tick: int) -> None: ...
