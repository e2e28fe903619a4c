"""What a controller is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from torqueloop.core.describe.errors import RangeError


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


def clip(value: float, low: float, high: float) -> float:
    """value within low and high."""
    return low if value < low else high if value > high else value


def toward(value: float, target: float, rise: float, fall: float, dt: float) -> float:
    """value moved to the target by no more than rise*dt up or fall*dt down (rates per second, > 0)."""
    return clip(target, value - fall * dt, value + rise * dt)


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
