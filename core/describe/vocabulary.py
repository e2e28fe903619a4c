"""Words shared by components and compiler: forms (sums of flange speeds) and the numbers the kernel knows kinds by."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

# kinds of outputs, as the kernel numbers them
OUT_SPEED, OUT_ANGLE, OUT_ACCELERATION, OUT_FRICTION, OUT_MODE, OUT_CAPACITY, OUT_TORQUE, OUT_PRESSURE = range(8)
OUT_INPUT, OUT_COMPLIANCE, OUT_ENGINE, OUT_PUMP, OUT_TURBINE, OUT_POLY, OUT_FRICTION_HEAT = range(8, 15)
OUT_DISSIPATION = 15
OUT_TORQUE_WORK, OUT_POLY_WORK, OUT_ENGINE_WORK, OUT_CONVERTER_LOSS, OUT_KINETIC, OUT_POTENTIAL = range(16, 22)
OUT_REACTION, OUT_CONTACT, OUT_CONTACT_LOSS, OUT_TEMPERATURE, OUT_PORT, OUT_PORT_WORK = range(22, 28)
OUT_LOSS_BRANCH, OUT_CONTACT_REGIME, OUT_RATIO = range(28, 31)
OUT_FRICTION_POWER, OUT_DAMPER_POWER, OUT_CONTACT_POWER, OUT_PORT_POWER = range(31, 35)
#: a reaction times the speed of a form
OUT_REACTION_POWER = 35
#: end a stop is at: -1 lower, 0 none, 1 upper
OUT_STOPPED = 36
#: a sum of products of reactions, speeds, inputs (frame_parts.Term)
OUT_SUM = 37
#: of a body: its quaternion and the place of its mass centre, 7 numbers each
OUT_ATTITUDE = 38
#: of a joint shaft: its number * JOINT_OUTPUTS + which of them
OUT_JOINT = 39
JOINT_OUTPUTS = 27
#: of these: its heat, and the work of what bends it
JOINT_HEAT, JOINT_WORK = 4, 5
#: outputs that refer to a row (a form); all others to the index of an element
ROW_OUTPUTS = frozenset({OUT_SPEED, OUT_ANGLE, OUT_ACCELERATION})

# where the capacity of a friction element comes from
CONSTANT, NORMALIZED, ACTUATED, CAPACITY = range(4)
#: LOSS: the load of a gear; BILATERAL: none, the element always holds (driven motion, gear of variable ratio)
LOSS, BILATERAL = 4, 5
#: none: the element holds while it is at an end of its range
STOP = 6
# what a friction element does in one direction of slip
NOTHING, CAPPED, BLOCKED = range(3)
# kinds of actuators
FIRST_ORDER, FILL_TIME = range(2)
# motions forced by inputs: a_ref; speed or position through a filter; exactly the speed or the position
# (inputs: w_ref, its derivative; phi_ref and its two derivatives)
DRIVEN_ACCELERATION, DRIVEN_SPEED_FILTER, DRIVEN_POSITION_FILTER, DRIVEN_SPEED, DRIVEN_POSITION = range(5)
# ratio of a variable gear: the input; a curve over the input; a curve over |w_a|
RATIO_INPUT, RATIO_CURVE, RATIO_SPEED = range(3)
# kinds of contacts
ELASTO_BACKLASH, ELASTO_BACKLASH2 = range(2)
# where heat comes from: minus the power of a port, slip of friction, dampers, contacts, an input in W
HEAT_OF_PORT, HEAT_OF_FRICTION, HEAT_OF_DAMPER, HEAT_OF_CONTACT, HEAT_FROM_INPUT = range(5)
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
