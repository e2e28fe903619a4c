"""Types of io.pyx."""

from typing import Any

from torqueloop.cython_kernels.tick.blocks import Blocks

IO_REASONS: tuple[str, ...]
REASON_BITS: int
WATCH_BYTES: int

class IoDevices(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, n: int) -> None: ...
    def set_device(
        self,
        number: int,
        *,
        state_slot: int,
        in_slot: int,
        inputs: list[tuple[float, float, float, float]],
        out_slot: int,
        outputs: list[tuple[float, float, float]],
        stale_limit: int,
    ) -> None: ...
    def connect(self, number: int, *, device: int, read: int, write: int, watch: object, limit_s: float) -> None: ...
    def disconnect(self, number: int) -> None: ...
    def counters(self, number: int) -> dict[str, Any]: ...
