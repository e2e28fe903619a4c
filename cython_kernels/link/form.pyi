from collections.abc import Sequence
from typing import Any, Generic, TypeVar

M = TypeVar("M")

class Form(Generic[M]):
    def __init__(
        self, made: type[M], head: bytes, head_fields: int, fields: Sequence[tuple[str, float | None, float]]
    ) -> None: ...
    def pack(self, message: Any) -> bytes | None: ...
    def unpack(self, data: bytes) -> M | None: ...
