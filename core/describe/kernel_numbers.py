"""What whole numbers stand for in the kernel.

Made from model/choices.py by python -m torqueloop.core.compile.record_sources; do not edit.
"""

CONSTANT = 0  # constant
NORMALIZED = 1  # input
ACTUATED = 2  # actuator
CAPACITY = 3  # input (a torque)
LOSS = 4  # the load of a gear
BILATERAL = 5  # none: it always holds
STOP = 6  # none: it holds at an end of its range

NOTHING = 0  # nothing
CAPPED = 1  # slides at its capacity
BLOCKED = 2  # holds whatever comes

FIXED_NOT = 0  # it changes
FIXED_VALUE = 1  # its capacity never changes (fixed_val)
FIXED_LOSS = 2  # a loss
FIXED_STOP = 3  # a stop

FIRST_ORDER = 0  # first order
FILL_TIME = 1  # fill time

FORM_EFFICIENCY = 0  # curves are eta1, eta2, tbf1, tbf2
FORM_LINEAR = 1  # kA, kB, cA, cB

ELASTO_BACKLASH = 0  # ElastoBacklash
ELASTO_BACKLASH2 = 1  # ElastoBacklash2

DRIVEN_ACCELERATION = 0  # acceleration
DRIVEN_SPEED_FILTER = 1  # speed through a filter
DRIVEN_POSITION_FILTER = 2  # position through a filter
DRIVEN_SPEED = 3  # speed
DRIVEN_POSITION = 4  # position

RATIO_INPUT = 0  # the input
RATIO_CURVE = 1  # curve(input)
RATIO_SPEED = 2  # curve(|w_a|)

OF_FRICTION_CURVE = 0  # a friction element, over its slip
OF_ENGINE = 1  # an engine
OF_CONVERTER = 2  # a converter, over w_t/w_p, and 2 - w_p/w_t in the overrun
OF_CURVE = 3  # a force by curve or map
OF_LOSS = 4  # a loss

ARGUMENT_NONE = 0  # none
ARGUMENT_INPUT = 1  # input
ARGUMENT_TEMPERATURE = 2  # temperature

HEAT_OF_PORT = 0  # minus the power of a port
HEAT_OF_FRICTION = 1  # slip of friction
HEAT_OF_DAMPER = 2  # damper
HEAT_OF_CONTACT = 3  # contact
HEAT_FROM_INPUT = 4  # input

OUT_SPEED = 0  # of a row
OUT_ANGLE = 1  # of a row
OUT_ACCELERATION = 2  # of a row
OUT_FRICTION = 3  # torque of a friction element
OUT_MODE = 4  # of a friction element
OUT_CAPACITY = 5  # of one
OUT_TORQUE = 6  # of a source
OUT_PRESSURE = 7  # of an actuator
OUT_INPUT = 8  # an input
OUT_COMPLIANCE = 9  # torque of a spring and damper
OUT_ENGINE = 10  # torque
OUT_PUMP = 11  # torque on the pump
OUT_TURBINE = 12  # torque of the turbine
OUT_POLY = 13  # resistance
OUT_FRICTION_HEAT = 14  # J
OUT_DISSIPATION = 15  # heat of a damper, J
OUT_TORQUE_WORK = 16  # J
OUT_POLY_WORK = 17  # J
OUT_ENGINE_WORK = 18  # J
OUT_CONVERTER_LOSS = 19  # J
OUT_KINETIC = 20  # J
OUT_POTENTIAL = 21  # J
OUT_REACTION = 22  # constraint force of a gear
OUT_CONTACT = 23  # force of a contact
OUT_CONTACT_LOSS = 24  # J
OUT_TEMPERATURE = 25  # K
OUT_PORT = 26  # force of a port
OUT_PORT_WORK = 27  # J
OUT_LOSS_BRANCH = 28  # law of a loss
OUT_CONTACT_REGIME = 29  # of a contact
OUT_RATIO = 30  # of a gear of changing ratio
OUT_FRICTION_POWER = 31  # W
OUT_DAMPER_POWER = 32  # W
OUT_CONTACT_POWER = 33  # W
OUT_PORT_POWER = 34  # W
OUT_REACTION_POWER = 35  # a reaction times the speed of row aux, W
OUT_STOPPED = 36  # end a stop is at: -1 lower, 0 none, 1 upper
OUT_SUM = 37  # terms from this one on
OUT_ATTITUDE = 38  # of a body: quaternion, place of the mass centre; 7 numbers each
OUT_JOINT = 39  # of a joint shaft: its number times vocabulary.JOINT_OUTPUTS and which of them
