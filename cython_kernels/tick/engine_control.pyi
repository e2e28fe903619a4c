"""Types of engine_control.pyx."""

from typing import Any

from numpy.typing import NDArray

from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick.blocks import Blocks

ENGINE_SIGNALS: tuple[tuple[str, str], ...]

class EngineControl(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, first_slot: int, tick_s: float) -> None: ...
    def set_torque(self, rows: list[tuple[float, float, float]]) -> None: ...
    def set_paths(
        self,
        *,
        pedal: int,
        speed: int,
        air_s: float,
        spark_least: float,
        least: float,
        boost_from: float = 1.0,
        boost_s: float = 0.0,
    ) -> None: ...
    def set_request(
        self,
        *,
        limit: tuple[int, float, float],
        active: int,
        always: bool,
        active_value: float,
        slow: tuple[int, float, float] | None,
    ) -> None: ...
    def watch(self, rx: RxState, message: int, timeout_ns: int) -> None: ...
    def tick(self, sig: NDArray[Any], now_ns: int = 0) -> None: ...
