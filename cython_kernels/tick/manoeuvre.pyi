"""Types of manoeuvre.pyx."""

from torqueloop.cython_kernels.tick.blocks import Blocks

STATES: tuple[str, ...]
OPERATORS: tuple[str, ...]
SIGNALS: tuple[str, ...]
RAMP_SIGNALS: tuple[str, ...]

#: slot, operator, value, tolerance of == and !=
Term = tuple[int, str, float, float]
#: index of the moved signal, target, ticks
Move = tuple[int, float, int]
#: terms, any_of, moves, back_to, times, for, at, within, hold [ticks]
Step = tuple[list[Term], bool, list[Move], int, int, int, int, int, int]

class Manoeuvre(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, first_slot: int, moved: list[int]) -> None: ...
    def set_steps(self, steps: list[Step]) -> None: ...
