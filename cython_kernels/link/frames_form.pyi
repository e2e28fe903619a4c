from typing import Generic, TypeVar

F = TypeVar("F")

class FramesForm(Generic[F]):
    def __init__(self, frame: type[F], head: bytes, head_fields: int, timed: bool, numbers: str) -> None: ...
    def pack(
        self, step: int, t: float | None, frames: tuple[F, ...], numbers: tuple[float, ...]
    ) -> bytes | None: ...
    def unpack(self, data: bytes) -> tuple[int, float, tuple[F, ...], tuple[float, ...]] | None: ...
