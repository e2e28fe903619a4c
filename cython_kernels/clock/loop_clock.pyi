from collections.abc import Sequence

class ClockScript:
    def __init__(
        self,
        rows: Sequence[Sequence[int]],
        begin_ns: int = 1_000_000_000,
        arm_wake: int = 0,
        stop_wake: int = -1,
        disarm_wake: int = -1,
        rearm_wake: int = -1,
    ) -> None: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def wakes(self) -> int: ...
