"""Words shared by components and compiler: forms (sums of flange speeds) and the numbers the kernel knows kinds by."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

# kinds of outputs, as the kernel numbers them
OUT_SPEED, OUT_ANGLE, OUT_ACCELERATION, OUT_FRICTION, OUT_MODE, OUT_CAPACITY, OUT_TORQUE, OUT_PRESSURE = range(8)
OUT_INPUT, OUT_COMPLIANCE, OUT_ENGINE, OUT_PUMP, OUT_TURBINE, OUT_POLY, OUT_FRICTION_HEAT = range(8, 15)
OUT_DISSIPATION = 15
OUT_TORQUE_WORK, OUT_POLY_WORK, OUT_ENGINE_WORK, OUT_CONVERTER_LOSS, OUT_KINETIC, OUT_POTENTIAL = range(16, 22)
#: outputs that refer to a row (a form); all others to the index of an element
ROW_OUTPUTS = frozenset({OUT_SPEED, OUT_ANGLE, OUT_ACCELERATION})

# where the capacity of a friction element comes from
CONSTANT, NORMALIZED, ACTUATED, CAPACITY = range(4)
# what a friction element does in one direction of slip
NOTHING, CAPPED, BLOCKED = range(3)
# kinds of actuators
FIRST_ORDER, FILL_TIME = range(2)


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
