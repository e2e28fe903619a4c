from collections.abc import Callable, Sequence

from torqueloop.cython_kernels.model import KernelModel, KernelState

SET: int
HOLD: int
RELEASE: int
MAX_WRITES: int
MAX_HELD: int
MODEL: int
RESTORE: int
LINKS: int

class Image:
    def __init__(self, sizes: Sequence[int]) -> None: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    @property
    def tick(self) -> int: ...
    def signal(self, slot: int) -> float: ...
    def held(self) -> dict[int, float]: ...
    def to_bytes(self) -> bytes: ...
    def from_bytes(self, data: bytes) -> None: ...
    def check_hints(self, lengths: list[int]) -> None: ...

class Control:
    @property
    def target(self) -> Image | None: ...
    @property
    def free(self) -> bool: ...
    def post(
        self,
        writes: list[tuple[int, int, float]],
        at_tick: int = -1,
        reference: int = 0,
        model: KernelModel | None = None,
        state: KernelState | None = None,
        gains: Sequence[float] = (),
        source: Image | None = None,
        links: bool = False,
        target: Image | None = None,
    ) -> None: ...
    def stage(
        self,
        model: KernelModel | None = None,
        state: KernelState | None = None,
        gains: Sequence[float] = (),
        source: Image | None = None,
        links: bool = False,
    ) -> None: ...
    def serve_references(self, function: Callable[[int], None]) -> None: ...
    def cancel(self) -> bool: ...
    def answer(self) -> tuple[int, bool]: ...
    def held(self) -> dict[int, float]: ...
