"""Words shared by components and compiler: forms (sums of flange speeds), groups of sources, parts of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from torqueloop.core.describe.kernel_numbers import *  # noqa: F403  (own components import them from here)
from torqueloop.core.describe.kernel_numbers import OUT_ACCELERATION, OUT_ANGLE, OUT_SPEED

#: of what is put out of a joint shaft (OUT_JOINT: its number * JOINT_OUTPUTS + which of them)
JOINT_OUTPUTS = 27
#: of these: its heat, and the work of what bends it
JOINT_HEAT, JOINT_WORK = 4, 5
#: outputs that refer to a row (a form); all others to the index of an element
ROW_OUTPUTS = frozenset({OUT_SPEED, OUT_ANGLE, OUT_ACCELERATION})

#: groups of sources of torque ("ports"), in the order of their numbers in the kernel
PORT_GROUPS = ("torque", "polynomial", "engine", "pump", "turbine", "eddy", "curve", "drag",
               "body_wx", "body_wy", "body_wz", "body_vx", "body_vy", "body_vz", "joint_body",
               "joint_a", "joint_b")  # fmt: skip


class Form:
    """A linear combination of flange speeds (and of their angles): flange -> rational coefficient."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[str, Fraction | int]) -> None:
        self.terms: dict[str, Fraction] = {k: Fraction(v) for k, v in terms.items() if v != 0}

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for flange, c in other.terms.items():
            terms[flange] = terms.get(flange, Fraction(0)) + c
        return Form(terms)

    def __mul__(self, factor: Fraction | int) -> Form:
        return Form({k: v * factor for k, v in self.terms.items()})

    __rmul__ = __mul__

    def __neg__(self) -> Form:
        return self * -1

    def __sub__(self, other: Form) -> Form:
        return self + (-other)

    def __repr__(self) -> str:
        return " ".join(f"{'-' if c < 0 else '+'}{abs(c)}*{k}" for k, c in self.terms.items()) or "0"


class InputSignal(Protocol):
    """What a component may feed its own input with: any signal (torqueloop.core.signals)."""

    def value(self, t: float) -> float:
        """Value at t (at a jump: after it)."""
        ...

    def after(self, t: float) -> float:
        """Limit from the right."""
        ...
