"""The monitors, a record each: what it is judged by, its limit with the reason, and the sentence it fails with.

Those of the tick are computed by cython_kernels/tick/monitors.pyx, while a rig runs (signals monitor.NAME, latched) and
again from the recording; the others by hil/report/drive_monitors.py from the recording alone.
"""

from __future__ import annotations

from torqueloop.core.describe.classes import dataclass

#: from one look to the next: control units compute every 5 to 10 ms, and nothing that elements do is over sooner [s]
PERIOD_S = 5e-3
#: a gear is held this long to count; shorter ones are crossings of its ratio [s]
GEAR_S = 0.04
#: elements move this long after a change of the lever, and in a shift at most: filling, torque and inertia phase [s]
SETTLE_S = 1.5
#: an element counts as closed from this part of its largest capacity on: 0.5 bar above the return spring in a piston of
#: 17 bar; a filled piston at its kiss pressure (0.05 bar) is open
CLOSED_SHARE = 0.03


@dataclass(frozen=True)
class Monitor:
    """One thing a drive is held to."""

    name: str
    #: what is compared with the limit, and its unit
    value: str
    unit: str
    #: it fails beyond this value, held for `hold_s`
    limit: float
    hold_s: float
    #: why this limit, or where it is from
    reason: str
    #: what happened, with the words of hil/report/monitor_words.py
    sentence: str
    #: monitors whose failure, begun before, has this one as its consequence
    follows: tuple[str, ...] = ()
    #: computed in the tick, with a latched signal monitor.NAME
    online: bool = True

    @property
    def signal(self) -> str:
        """The latched signal of the tick."""
        return f"monitor.{self.name}"


#: failures of the elements: what the car does then is their consequence
_ELEMENTS = ("direction", "no_gear", "tie_up", "slip", "no_drive", "reported_speed", "reported_pedal", "overload")
#: and what else the drive lacks once the gears are wrong
_GEARS = (*_ELEMENTS, "engine_speed", "other_gear", "skipped", "hunting", "flare", "park", "unanswered", "late_answer",
          "interrupted")  # fmt: skip

MONITORS: tuple[Monitor, ...] = (
    Monitor(
        "direction", "speed of the car while the closed gear drives against the lever's direction", "m/s", 0.5, 0.1,
        "walking pace is 1.4 m/s: a car that rolls on a hill in the right gear is not counted",
        "In {lever} {motion} from {first} s on: {closed} {are} closed, which is {closed_gear}.",
        ("reported_speed",),
    ),
    Monitor(
        "neutral", "a gear is closed in P or N", "1", 0.5, 0.5,
        "all elements are open 1.5 s after a change of the lever",
        "In {lever} the gearbox drives from {first} s on: {closed} {are} closed, which is {closed_gear}.",
    ),
    Monitor(
        "interrupted", "shifts that are given up for another gear while lever and pedals rest", "1",
        0.5, 0.0, "nothing that decides about a shift changes within it while lever and pedals rest",
        "The shift {last}→{gear} is given up for {asked} at {first} s, before {gear} is engaged, with lever and pedals "
        "at rest.",
        (*_ELEMENTS, "shift_time", "hunting", "unanswered", "late_answer"),
    ),
    Monitor(
        "tie_up", "deceleration below what turbine torque and ratio give in either gear", "m/s2", 1.5, 0.02,
        "a passenger feels 0.5 m/s2 as an interruption of traction (ISO 2631-1: 0.3 to 0.6 m/s2 is a little "
        "uncomfortable); the limit is three times this, because the driveline oscillates",
        "{closed} work against each other at {first} s ({shift}): the car decelerates by {worst} m/s² more than the "
        "engine's torque explains.",
        ("direction", "no_gear", "reported_speed", "interrupted"),
    ),
    Monitor(
        "no_gear", "closed elements have a ratio that is no gear", "1", 0.5, 1.0,
        "elements overlap for at most 0.7 s in a shift",
        "In {lever} {closed} {are} closed from {first} s on, which is no gear of {gearbox}.",
        ("tie_up", "reported_speed", "late_answer", "unanswered"),
    ),
    Monitor(
        "flare", "turbine speed above the speeds that both gears give", "rad/s", 60.0, 0.05,
        "a driver notices 100 1/min, and at 600 1/min the engine races; a kick-down by several gears overshoots by up "
        "to 470",
        "{shift} flares at {first} s: the turbine runs {worst} rad/s above the speeds that both gears give.",
        (*_ELEMENTS, "engine_speed"),
    ),
    Monitor(
        "hunting", "returns to the previous gear, twice within 4 s while lever and pedals rest", "1", 0.5, 0.0,
        "the hysteresis between upshift and downshift lines allows at most one return",
        "The gears hunt: at {first} s gear {gear} is engaged once more, for the third time within seconds, with lever "
        "and pedals at rest.",
        ("direction", "no_gear", "reported_speed"),
    ),
    Monitor(
        "shift_time", "time under power without a gear", "s", 1.5, 0.0,
        "shifts take 0.3 to 1.0 s, and the longest profile of the soft control unit takes 1.2 s",
        "No gear is engaged from {since} s on ({shift}), for {worst} s under power.",
        _GEARS,
    ),
    Monitor(
        "other_gear", "difference between the gear that the control unit reports and the engaged gear", "1", 0.5, 0.5,
        "the comparison begins 1.5 s after the last change",
        "From {first} s on, the control unit reports {reported}, but {gear} is engaged ({closed} {are} closed).",
        _ELEMENTS,
    ),
    Monitor(
        "skipped", "gears that a shift leaves out although they were requested", "1", 0.5, 0.0,
        "the requested gear changes by one, and the engaged gear by more",
        "{last} to {gear} at {first} s leaves out a gear that was requested.",
        (*_ELEMENTS, "shift_time", "other_gear", "flare"),
    ),
    Monitor(
        "slip", "difference between the turbine speed and the speed that the closed gear gives", "rad/s", 5.0, 1.0,
        "ratios are rigid, and 5 rad/s allow for the twist of shafts; the comparison begins 1.5 s after the last "
        "change of an element",
        "Gear {closed_gear} slips from {first} s on: {closed} {are} closed and do not hold ({worst} rad/s{slipping}).",
        ("direction", "no_gear", "tie_up", "reported_speed", "overload"),
    ),
    Monitor(
        "no_drive", "time without a driven car although lever and pedal request it", "s", 3.0, 0.0,
        "a gear is engaged within 1.0 s, and the car moves within another second; a control unit may wait while an "
        "engine turns above 0.3 of its limit, or above the soft unit's `engine_above_rpm` if that is less, that did so "
        "before the lever was moved, or while the car rolled the other way",
        "In {lever} the car is not driven from {since} s on although the pedal requests it: {closed_all}.",
        ("direction", "tie_up", "no_gear", "slip", "reported_speed"),
    ),
    Monitor(
        "engine_speed", "engine above the speed at which its full-load torque ends; without a gear, at which its "
        "governor has cut the fuel", "rad/s", 5.0, 0.1,
        "50 1/min for the twist of shafts; until a gear is engaged, slipping elements and faster shafts drive the "
        "engine against its governor",
        "The engine is turned {worst} rad/s beyond its limit of {engine_max} 1/min at {first} s, in {gear_name}.",
        ("direction", "no_gear", "slip", "no_drive", "reported_speed"),
    ),
    Monitor(
        "stall", "engine below half of its idle speed, after it has run", "rad/s", 0.0, 0.3,
        "no idle controller restores the idle speed from there",
        "The engine is stalled at {first} s, in {gear_name}.",
        _ELEMENTS,
    ),
    Monitor(
        "lock_up", "time of steady driving in a high gear while the converter was never locked", "s", 10.0, 0.0,
        "every strategy locks the converter within 10 s in an upper gear with pedals at rest, below 60 % pedal",
        "The converter was never locked, not even in {gear_name} with the pedal at rest from {since} s on.",
        _GEARS,
    ),
    Monitor(
        "park", "speed of the car while the control unit closes the park lock", "m/s", 1.4, 0.1,
        "a park lock ratchets above 5 km/h (general knowledge)",
        "The control unit closes the park lock at {first} s while the car rolls at {worst} m/s.",
    ),
    Monitor(
        "unanswered", "time that a torque request waits for its acknowledge", "s", 0.5, 0.0,
        "a request lasts as long as a shift, 0.3 s, and the slowest messages have a period of 0.1 s",
        "A torque request from {since} s on is never acknowledged.",
    ),
    Monitor(
        "late_answer", "torque requests in a row that end before their acknowledge", "1", 1.5, 0.0,
        "one acknowledge may be lost with its message, but not two in a row",
        "The acknowledge comes later than the control unit waits: at {first} s it ends a "
        "torque request before the acknowledge, for the second time in a row.",
    ),
    Monitor(
        "reported_speed", "difference between a sent speed and the true one, beyond 5 %", "rad/s", 8.0, 0.5,
        "the resolution of the messages, and the change of speed within one cycle",
        "From {first} s on, the rig sends the control unit a speed that differs from the true one by {worst} rad/s: "
        "{pairs}.",
    ),
    # ---- from the recording alone
    Monitor(
        "reported_pedal", "difference between the driver's pedal and the one that control unit or engine receive", "1",
        0.1, 0.5,
        "the resolution of the messages is 1 %, and a pedal that is pressed within a second moves 10 % in a cycle",
        "{text}",
        online=False,
    ),
    Monitor(
        "overload", "torque that a gear needs of an element, over its capacity at its highest pressure", "1", 1.0, 0.0,
        "statics of the gear with the turbine torque, mean over 0.1 s; no pressure that a control unit can command "
        "gives more", "{text}", ("direction", "tie_up", "reported_speed"), online=False,
    ),
    Monitor(
        "schedule", "shifts that the shift lines do not require, and shifts that are overdue", "1", 0.0, 0.0,
        "shift lines of the soft control unit, with a margin of 2 % and 1.5 rad/s, upshifts while the brake is below "
        "`upshift_brake_percent`; without lines, an upshift that leaves out a gear",
        "{text}", (*_GEARS, "shift_time", "tie_up"), online=False,
    ),
    Monitor(
        "reaches", "highest gear of the whole run", "1", 0.0, 0.0,
        "the rig file names the gear that its driver must reach", "{text}",
        (*_GEARS, "shift_time", "schedule", "engine_speed", "stall"), online=False,
    ),
    Monitor(
        "shift_length", "length of a shift beyond its phases", "s", 0.0, 0.0,
        "the phases of the soft control unit's shift cannot last longer", "{text}", (*_GEARS, "shift_time"),
        online=False,
    ),
    Monitor(
        "shift_hard", "peak of the acceleration in a shift beyond the levels before and after it, divided by a factor "
        "that rises from 0.4 with the pedal released to 1 at 20 % pedal", "m/s2", 5.0, 0.0,
        "assumed, 3 to 6: a review of the studies finds no acceleration and jerk that passengers accept in general "
        "(Hoberock, J. Dynamic Systems, Measurement and Control 99 (1977) 76). The limit is half the deceleration of "
        "an emergency stop; the strongest engine of the package reaches 4.2. With the pedal released it is 2 m/s2, "
        "assumed, 1.5 to 3: the engine gives no torque, so the elements alone cause the peak", "{text}",
        ("tie_up", *_GEARS), online=False,
    ),
    Monitor(
        "shift_jerk", "jerk of the car in a shift beyond that of a step between the levels before and after it", "m/s3",
        130.0, 0.0, "assumed with the limit of `shift_hard`: a sudden change by 5 m/s2 has the jerk 0.75 x 5 m/s2 / "
        "0.029 s (slope of the line of least squares). No limit for shifts is published. In jolts up to 2 m/s2 and 15 "
        "m/s3, passengers judge the acceleration and not the jerk (de Winkel and others, Applied Ergonomics 2023)",
        "{text}",
        ("tie_up", "shift_hard", *_GEARS), online=False,
    ),
    Monitor(
        "shift_abrupt", "mean acceleration of the turbine in a shift", "rad/s2", 2000.0, 0.0,
        "200 rad/s in 0.3 s are 700 rad/s2; three times as much needs more torque than an engine gives", "{text}",
        ("tie_up", "shift_hard", *_GEARS), online=False,
    ),
    Monitor(
        "acceleration", "magnitude of the acceleration of the car", "m/s2", 15.0, 0.0,
        "a tyre transmits about 1 g; the wheels of the model do not slip, and full throttle in 1st gives 1.2 g",
        "{text}", _GEARS, online=False,
    ),
    Monitor(
        "heat", "friction work of an element within 2 s, per area of its lining", "J/mm2", 1.5, 0.0,
        "paper linings withstand about 1 J/mm2 in each of many shifts (0.5 to 1.5 in textbooks)", "{text}", _GEARS,
        online=False,
    ),
    Monitor(
        "heat_minute", "friction work of an element within 60 s, per area of its lining", "J/mm2", 4.0, 0.0,
        "the plates cool with a time constant of about 20 s, so four shifts a minute at the limit of one are possible",
        "{text}",
        (*_GEARS, "heat"), online=False,
    ),
    Monitor(
        "heat_power", "friction power of an element, mean over 0.1 s, per area of its lining", "W/mm2", 4.0, 0.0,
        "assumed, 2 to 5 for paper; the shift 1-2 of the 4L60E at full throttle, with a narrow band, reaches 2.8",
        "{text}",
        (*_GEARS, "heat", "shift_time"), online=False,
    ),
    Monitor(
        "temperature", "temperature of the steel plates of an element at their surface", "°C", 350.0, 0.0,
        "assumed, 250 to 350: according to a maker, the friction of paper is stable up to 350 degC (chinagrtech.com, "
        "The use of paper-based materials); its cellulose chars above", "{text}",
        (*_GEARS, "heat", "heat_minute", "heat_power"), online=False,
    ),
    Monitor(
        "actuator_still", "actuators of the control unit that never move", "1", 0.0, 0.0,
        "an actuator that never moves is not connected or not commanded; other monitors judge an actuator that serves "
        "a single element", "{text}", _GEARS, online=False,
    ),
    Monitor(
        "fallbacks", "steps in a second that only a plain impulse could finish, or whose torques were not found", "1/s",
        0.0, 0.0,
        "such a step only removes energy and is of first order, and the rigs of the package have none; 20 ticks in a "
        "row latch the safe state", "{text}", online=False,
    ),
)  # fmt: skip

BY_NAME = {m.name: m for m in MONITORS}
ONLINE = tuple(m for m in MONITORS if m.online)
