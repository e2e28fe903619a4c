"""What a signal is, and sums, products and quotients of signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError

Array = NDArray[np.float64]
#: what `Simulation.run` accepts as an input
SignalLike = Union[int, float, Callable[[float], float], "Signal"]
#: a signal between two of its events as operations (name, numbers) on a stack of values, in the order in which `sample`
#: evaluates it; the names are those of cython_kernels/kernel/stepper.pyx
Formula = tuple[tuple[str, tuple[float, ...]], ...]

#: a step smaller than this part of the values on its two sides is rounding, not a jump
CONTINUOUS = 1e-9


class Signal:
    """Base of all signals."""

    def sample(self, t: Array, side: int = 0) -> Array:
        """Values at the times t."""
        raise NotImplementedError

    def event_times(self, t0: float, t1: float) -> list[float]:
        """Discontinuities of value or slope strictly inside (t0, t1)."""
        return []

    def formula(self, t0: float) -> Formula | None:
        """The same as a formula in time from t0 to the next event, with the bits of `sample`; None: there is none."""
        return None

    def derivative(self) -> Signal:
        """The exact derivative; RangeError for a signal that has none."""
        raise RangeError(
            f"a {type(self).__name__} signal has no exact derivative, but a source that forces a motion needs one",
            allowed="signals of torqueloop.core.signals without jumps, and what is computed from them",
        )

    def value(self, t: float) -> float:
        """Value at t (at a jump: after it)."""
        return float(self.sample(np.array([t]), +1)[0])

    def before(self, t: float) -> float:
        """Limit from the left."""
        return float(self.sample(np.array([t]), -1)[0])

    def after(self, t: float) -> float:
        """Limit from the right."""
        return float(self.sample(np.array([t]), +1)[0])

    def __mul__(self, other: SignalLike) -> Product:
        return Product(self, as_signal(other))

    __rmul__ = __mul__

    def __add__(self, other: SignalLike) -> Sum:
        return Sum((self, as_signal(other)))

    __radd__ = __add__

    def __sub__(self, other: SignalLike) -> Difference:
        return Difference(self, as_signal(other))

    def __rsub__(self, other: SignalLike) -> Difference:
        return Difference(as_signal(other), self)

    def __truediv__(self, other: SignalLike) -> Quotient:
        return Quotient(self, as_signal(other))

    def __rtruediv__(self, other: SignalLike) -> Quotient:
        return Quotient(as_signal(other), self)

    def __neg__(self) -> Scaled:
        return Scaled(self, -1.0)


def reached(t: Array, instant: float, side: int) -> NDArray[np.bool_]:
    """True where the instant has passed; at the instant itself: only seen from the right."""
    return t > instant if side < 0 else t >= instant


def joined(parts: Sequence[Formula | None], operation: tuple[str, tuple[float, ...]]) -> Formula | None:
    """The operation on the values of the parts; None when one of them has no formula."""
    known = [part for part in parts if part is not None]
    return (*(op for part in known for op in part), operation) if len(known) == len(parts) else None


def inside(times: Sequence[float], t0: float, t1: float) -> list[float]:
    """The times strictly inside, sorted, each once."""
    return sorted({t for t in times if t0 < t < t1})


def refuse_jump(kind: str, instant: float, left: float, right: float, scale: float = 0.0) -> None:
    """RangeError if the signal jumps at an instant after 0 (runs start at 0: what was before does not matter).

    scale: a value the signal reaches; rounding is judged by it.
    """
    if instant > 0.0 and abs(right - left) > CONTINUOUS * max(abs(left), abs(right), scale):
        raise RangeError(
            f"a {kind} signal that jumps at t = {instant:g} s (from {left:g} to {right:g}) has no derivative, but a "
            "source that forces a motion needs one",
            allowed="a signal without jumps",
        )


def equal_until(a: Signal, b: Signal, end: float) -> float:
    """The time up to which two signals have the same bits and the same events, s; `end` at most, 0 if this is
    not known."""
    if not foreseeable(a):
        return 0.0
    if a == b:
        return end
    events = [set(signal.event_times(0.0, end)) for signal in (a, b)]
    for t in sorted({0.0}.union(*events)):
        formula = a.formula(t)
        # an event ends a step, also one at which nothing changes
        if (t > 0.0 and any(t not in times for times in events)) or formula is None or formula != b.formula(t):
            return t
    return end


@dataclass(frozen=True)
class Constant(Signal):
    """y = k."""

    k: float

    def sample(self, t: Array, side: int = 0) -> Array:
        return np.full(t.shape, float(self.k))

    def formula(self, t0: float) -> Formula | None:
        return (("constant", (float(self.k),)),)

    def derivative(self) -> Signal:
        return Constant(0.0)


@dataclass(frozen=True)
class Scaled(Signal):
    """y = k*u (Modelica: Gain)."""

    u: Signal
    k: float

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.k * self.u.sample(t, side)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return self.u.event_times(t0, t1)

    def formula(self, t0: float) -> Formula | None:
        return joined([self.u.formula(t0)], ("scale", (float(self.k),)))

    def derivative(self) -> Signal:
        return Scaled(self.u.derivative(), self.k)


@dataclass(frozen=True)
class Sum(Signal):
    """y = u1 + u2 + ... (Modelica: Add, Add3, Sum)."""

    terms: tuple[Signal, ...]

    def sample(self, t: Array, side: int = 0) -> Array:
        y = np.zeros(t.shape)
        for u in self.terms:
            y = y + u.sample(t, side)
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        return sorted({e for u in self.terms for e in u.event_times(t0, t1)})

    def formula(self, t0: float) -> Formula | None:
        whole: Formula | None = (("constant", (0.0,)),)
        for u in self.terms:
            whole = joined([whole, u.formula(t0)], ("add", ()))
        return whole

    def derivative(self) -> Signal:
        return Sum(tuple(u.derivative() for u in self.terms))


@dataclass(frozen=True)
class Pair(Signal):
    """Base of what is computed from two signals."""

    u1: Signal
    u2: Signal

    def event_times(self, t0: float, t1: float) -> list[float]:
        return sorted({*self.u1.event_times(t0, t1), *self.u2.event_times(t0, t1)})


@dataclass(frozen=True)
class Product(Pair):
    """y = u1*u2."""

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.u1.sample(t, side) * self.u2.sample(t, side)

    def formula(self, t0: float) -> Formula | None:
        return joined([self.u1.formula(t0), self.u2.formula(t0)], ("multiply", ()))

    def derivative(self) -> Signal:
        """u1'*u2 + u1*u2'."""
        return Sum((Product(self.u1.derivative(), self.u2), Product(self.u1, self.u2.derivative())))


@dataclass(frozen=True)
class Difference(Pair):
    """y = u1 - u2 (Modelica: Feedback)."""

    def sample(self, t: Array, side: int = 0) -> Array:
        return self.u1.sample(t, side) - self.u2.sample(t, side)

    def formula(self, t0: float) -> Formula | None:
        return joined([self.u1.formula(t0), self.u2.formula(t0)], ("subtract", ()))

    def derivative(self) -> Signal:
        return Difference(self.u1.derivative(), self.u2.derivative())


@dataclass(frozen=True)
class Quotient(Pair):
    """y = u1/u2 (Modelica: Division); u2 must not pass through 0."""

    def sample(self, t: Array, side: int = 0) -> Array:
        divisor = self.u2.sample(t, side)
        if np.any(divisor == 0.0):
            raise RangeError("a Quotient signal divides by 0", allowed="a divisor that is never 0")
        return self.u1.sample(t, side) / divisor

    def derivative(self) -> Signal:
        """(u1' - y*u2')/u2."""
        return Quotient(Difference(self.u1.derivative(), Product(self, self.u2.derivative())), self.u2)


class Function(Signal):
    """A Python function of time; taken as smooth (no events) unless their times are given. It has no derivative."""

    def __init__(self, function: Callable[[float], float], events: Sequence[float] = ()) -> None:
        self.function = function
        self.events: tuple[float, ...] = tuple(events)

    def sample(self, t: Array, side: int = 0) -> Array:
        return np.array([float(self.function(float(v))) for v in t], dtype=np.float64)

    def event_times(self, t0: float, t1: float) -> list[float]:
        return inside(self.events, t0, t1)


def foreseeable(value: object) -> bool:
    """Whether a signal is a function of time alone, so that it may be sampled ahead: made of the kinds of this package.
    A Python function, or a class of the user's, may look at more."""
    if isinstance(value, Signal):
        ours = type(value).__module__.startswith(f"{__package__}.") and not isinstance(value, Function)
        return ours and all(foreseeable(part) for part in vars(value).values())
    if isinstance(value, (tuple, list)):
        return all(foreseeable(part) for part in value)
    return not callable(value)


def as_signal(value: Any) -> Signal:
    """A Signal from a Signal, a number or a function of time."""
    if isinstance(value, Signal):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Constant(float(value))
    if callable(value):
        return Function(value)
    raise RangeError("input {value} is not a signal", value=value, allowed="a number, a function of time, or a Signal")
