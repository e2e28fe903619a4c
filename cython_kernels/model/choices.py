"""What whole numbers of records stand for: kinds of elements, of laws, of outputs.

An enum each in C (records.pxi): the kernel compares with names. Core, which imports no kernel, has the same names in
core/describe/kernel_numbers.py. Both are made from here by core/compile/record_sources.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Choices:
    """What a whole number stands for, from 0 on: an enum in C (records.pxi), constants in core (kernel_numbers.py)."""

    #: name -> what it means
    of: Mapping[str, str]

    def __getitem__(self, name: str) -> int:
        """Its number."""
        return list(self.of).index(name)

    @property
    def text(self) -> str:
        """All of them, by number."""
        return ", ".join(f"{k} {meaning}" for k, meaning in enumerate(self.of.values()))


SOURCES = Choices({
    "CONSTANT": "constant", "NORMALIZED": "input", "ACTUATED": "actuator", "CAPACITY": "input (a torque)",
    "LOSS": "the load of a gear", "BILATERAL": "none: it always holds", "STOP": "none: it holds at an end of its range",
})  # fmt: skip
WAYS = Choices({"NOTHING": "nothing", "CAPPED": "slides at its capacity", "BLOCKED": "holds whatever comes"})
FIXED = Choices({
    "FIXED_NOT": "it changes", "FIXED_VALUE": "its capacity never changes (fixed_val)", "FIXED_LOSS": "a loss",
    "FIXED_STOP": "a stop",
})  # fmt: skip
ACTUATORS = Choices({"FIRST_ORDER": "first order", "FILL_TIME": "fill time"})
LOSS_FORMS = Choices({"FORM_EFFICIENCY": "curves are eta1, eta2, tbf1, tbf2", "FORM_LINEAR": "kA, kB, cA, cB"})
CONTACTS = Choices({"ELASTO_BACKLASH": "ElastoBacklash", "ELASTO_BACKLASH2": "ElastoBacklash2"})
MOTIONS = Choices({
    "DRIVEN_ACCELERATION": "acceleration", "DRIVEN_SPEED_FILTER": "speed through a filter",
    "DRIVEN_POSITION_FILTER": "position through a filter", "DRIVEN_SPEED": "speed", "DRIVEN_POSITION": "position",
})  # fmt: skip
RATIOS = Choices({"RATIO_INPUT": "the input", "RATIO_CURVE": "curve(input)", "RATIO_SPEED": "curve(|w_a|)"})
LOOK_UPS = Choices({
    "OF_FRICTION_CURVE": "a friction element, over its slip", "OF_ENGINE": "an engine",
    "OF_CONVERTER": "a converter, over w_t/w_p, and 2 - w_p/w_t in the overrun", "OF_CURVE": "a force by curve or map",
    "OF_LOSS": "a loss",
})  # fmt: skip
ARGUMENTS = Choices({"ARGUMENT_NONE": "none", "ARGUMENT_INPUT": "input", "ARGUMENT_TEMPERATURE": "temperature"})
HEATS = Choices({
    "HEAT_OF_PORT": "minus the power of a port", "HEAT_OF_FRICTION": "slip of friction", "HEAT_OF_DAMPER": "damper",
    "HEAT_OF_CONTACT": "contact", "HEAT_FROM_INPUT": "input",
})  # fmt: skip
OUTPUTS = Choices({
    "OUT_SPEED": "of a row", "OUT_ANGLE": "of a row", "OUT_ACCELERATION": "of a row",
    "OUT_FRICTION": "torque of a friction element", "OUT_MODE": "of a friction element", "OUT_CAPACITY": "of one",
    "OUT_TORQUE": "of a source", "OUT_PRESSURE": "of an actuator", "OUT_INPUT": "an input",
    "OUT_COMPLIANCE": "torque of a spring and damper", "OUT_ENGINE": "torque", "OUT_PUMP": "torque on the pump",
    "OUT_TURBINE": "torque of the turbine", "OUT_POLY": "resistance", "OUT_FRICTION_HEAT": "J",
    "OUT_DISSIPATION": "heat of a damper, J", "OUT_TORQUE_WORK": "J", "OUT_POLY_WORK": "J", "OUT_ENGINE_WORK": "J",
    "OUT_CONVERTER_LOSS": "J", "OUT_KINETIC": "J", "OUT_POTENTIAL": "J", "OUT_REACTION": "constraint force of a gear",
    "OUT_CONTACT": "force of a contact", "OUT_CONTACT_LOSS": "J", "OUT_TEMPERATURE": "K", "OUT_PORT": "force of a port",
    "OUT_PORT_WORK": "J", "OUT_LOSS_BRANCH": "law of a loss", "OUT_CONTACT_REGIME": "of a contact",
    "OUT_RATIO": "of a gear of changing ratio", "OUT_FRICTION_POWER": "W", "OUT_DAMPER_POWER": "W",
    "OUT_CONTACT_POWER": "W", "OUT_PORT_POWER": "W", "OUT_REACTION_POWER": "a reaction times the speed of row aux, W",
    "OUT_STOPPED": "end a stop is at: -1 lower, 0 none, 1 upper", "OUT_SUM": "terms from this one on",
    "OUT_ATTITUDE": "of a body: quaternion, place of the mass centre; 7 numbers each",
    "OUT_JOINT": "of a joint shaft: its number times vocabulary.JOINT_OUTPUTS and which of them",
})  # fmt: skip
#: every number that stands for something
CHOICES = (SOURCES, WAYS, FIXED, ACTUATORS, LOSS_FORMS, CONTACTS, MOTIONS, RATIOS, LOOK_UPS, ARGUMENTS, HEATS, OUTPUTS)
