"""Types of monitors.pyx."""

from typing import Any

from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.blocks import Blocks

FACTS: tuple[str, ...]
SIGNALS: tuple[str, ...]
KINDS: tuple[str, ...]
CLOSED: dict[str, int]
NUMBERS: dict[str, int]
UNKNOWN: int

Evidence = tuple[bool, int, float, int, int, float, int, int, int, int, float, float, float]

class Monitors(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(
        self,
        n_sig: int,
        first_slot: int,
        tick_s: float,
        every: int,
        facts: dict[str, int],
        elements: list[tuple[int, float]],
        gears: list[tuple[int, float, int]],
        rows: list[tuple[str, float, int]],
    ) -> None: ...
    def set_closed(self, closed_as: list[int], overruns: list[bool]) -> None: ...
    def set_car(
        self,
        mass: float,
        idle: float,
        engine_max: float,
        engine_cut: float,
        races: float,
        gear_s: float,
        settle_s: float,
    ) -> None: ...
    def set_unit(
        self,
        reported: list[tuple[float, float]],
        asked: list[tuple[float, float]],
        pairs: list[tuple[int, int, float, float]],
        answer_s: float,
    ) -> None: ...
    def arm(self, sig: NDArray[Any]) -> None: ...
    def read(self, sig: NDArray[Any], rows: NDArray[Any], ticks: NDArray[Any], gears: NDArray[Any]) -> None: ...
    def evidence(self, sig: NDArray[Any]) -> list[Evidence]: ...
