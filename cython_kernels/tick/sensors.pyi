"""Types of sensors.pyx."""

from typing import Any

from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.blocks import Blocks

TEETH_SIGNALS: tuple[tuple[str, str], ...]
MOST_PARTS: int
CHECKS: tuple[str, ...]
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
        of_angle: bool,
        teeth: int,
        missing: int,
        standstill_s: float,
        jitter: float,
        run_out: float,
        dropout: float,
        signed_speed: bool,
        parts: int,
        amplitude_Vs: float,
        amplitude_run_out: float,
        threshold_V: float,
        widths_s: tuple[float, float, float],
        every_s: float,
        seed: int,
    ) -> None: ...
    def set_frame(
        self, index: int, *, out: int, check: str, fields: list[tuple[int, float, float, int, bool]]
    ) -> None: ...
    def tick(self, sig: NDArray[Any]) -> None: ...
