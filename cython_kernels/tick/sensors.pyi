"""Types of sensors.pyx."""

from typing import Any

from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.blocks import Blocks

TEETH_SIGNALS: tuple[tuple[str, str], ...]
MOVES_SIGNALS: tuple[tuple[str, str], ...]

class Sensors(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, n: int, tick_s: float) -> None: ...
    def set_curve(self, index: int, *, source: int, out: int, points: list[tuple[float, float]]) -> None: ...
    def set_moves(
        self, index: int, *, source: int, out: int, rest: float, hold_s: float, codes: list[float]
    ) -> None: ...
    def set_teeth(
        self,
        index: int,
        *,
        source: int,
        out: int,
        teeth: int,
        standstill_s: float,
        jitter: float,
        dropout: float,
        signed_speed: bool,
        seed: int,
    ) -> None: ...
    def tick(self, sig: NDArray[Any]) -> None: ...
