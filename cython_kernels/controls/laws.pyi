"""Types of laws.pyx."""

from collections.abc import Iterable, Mapping

class Law:
    @property
    def kind(self) -> str: ...
    @property
    def parameters(self) -> tuple[float, ...]: ...
    @property
    def curves(self) -> tuple[tuple[tuple[float, ...], tuple[float, ...], bool], ...]: ...
    own: tuple[float, ...]
    def __init__(
        self,
        kind: str,
        parameters: Iterable[float],
        curves: Iterable[tuple[Iterable[float], Iterable[float], bool]] = (),
        start: Iterable[float] | None = None,
    ) -> None: ...
    def step(self, dt: float, measured: Mapping[str, float]) -> dict[str, float]: ...
