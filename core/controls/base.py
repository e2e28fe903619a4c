"""What a controller is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.controls.laws import Law
from torqueloop.cython_kernels.controls.records import KINDS


class Controller(Protocol):
    """Called once per period with what it measures; answers with its commands."""

    #: short names of what it needs
    reads: ClassVar[tuple[str, ...]]
    #: short names of what it commands
    writes: ClassVar[tuple[str, ...]]

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        """Commands from t on, in SI."""


class Clock:
    """Time since the last call; 0 at the first."""

    def __init__(self) -> None:
        self._last: float | None = None

    def passed(self, t: float) -> float:
        """Seconds since the last call; time must not go back."""
        dt = 0.0 if self._last is None else t - self._last
        if dt < 0.0:
            raise RangeError(
                "controller: time goes back: {key} = {value}", key="t", value=t, allowed=f">= {self._last}"
            )
        self._last = t
        return dt


@dataclass
class Compiled:
    """A controller whose law is compiled (cython_kernels/controls/laws.pyx) and runs in the tick of a rig as well.

    Its fields are the parameters of the law's record. They may be changed between two calls."""

    #: name of the law, in files as well
    kind: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    writes: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self.check()
        self._clock = Clock()
        self._law = self.law()

    def check(self) -> None:
        """RangeError unless the parameters are in their ranges."""

    def start(self) -> tuple[float, ...] | None:
        """Numbers of the law before the first call; None: all 0."""
        return None

    def law(self) -> Law:
        """The compiled law with these parameters, before its first call."""
        record = KINDS[self.kind]
        curves: list[Table1D] = []
        for name, _, several in record.curves:
            given = getattr(self, name)
            curves += given if several else [given]
        parameters = [getattr(self, f.name) for f in record.record.fields]
        return Law(self.kind, parameters, [(c.x, c.y, c.extrapolation == "linear") for c in curves], self.start())

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if not name.startswith("_") and "_law" in self.__dict__:
            own, self._law = self._law.own, self.law()
            self._law.own = own

    def kept(self, name: str) -> float:
        """A number that the law keeps from call to call, by its name in the record."""
        return self._law.own[[f.name for f in KINDS[self.kind].own].index(name)]

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        """Commands from t on, SI; RangeError when time goes back."""
        return self._law.step(self._clock.passed(t), measured)


def positive(owner: object, *names: str) -> None:
    """RangeError unless the named attributes are > 0."""
    for name in names:
        value = getattr(owner, name)
        if not value > 0.0:
            raise RangeError(f"{type(owner).__name__}: {{key}} = {{value}} is out of range", key=name, value=value,
                             allowed="> 0")  # fmt: skip


def not_negative(owner: object, *names: str) -> None:
    """RangeError unless the named attributes are >= 0."""
    for name in names:
        value = getattr(owner, name)
        if not value >= 0.0:
            raise RangeError(f"{type(owner).__name__}: {{key}} = {{value}} is out of range", key=name, value=value,
                             allowed=">= 0")  # fmt: skip
