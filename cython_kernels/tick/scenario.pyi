"""Types of scenario.pyx."""

import numpy as np
from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.blocks import Blocks

STATES: tuple[str, ...]
SIGNALS: tuple[str, ...]
RAMP_SIGNALS: tuple[str, ...]

#: operation, slot, value: see conditions.pyx
Code = tuple[tuple[str, int, float], ...]
#: index of the moved signal, target, ticks
Move = tuple[int, float, int]
#: code of the condition, moves, back_to, times, for, at, within, hold [ticks]
Step = tuple[Code, list[Move], int, int, int, int, int, int]

class Scenario(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, first_slot: int, moved: list[int]) -> None: ...
    def set_steps(self, steps: list[Step]) -> None: ...
    def arm(self, signals: NDArray[np.float64]) -> None: ...
    def tick(self, signals: NDArray[np.float64], tick: int) -> None: ...
