"""What a drive is held to without a gate written by hand, as run.json keeps it: limits, and the shift schedule of the
control unit, in SI. `rig/describe/monitor_plan` takes it from the rig's files, `report/monitors` judges recorded
signals by it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: points (pedal 0..1, speed of the output shaft [rad/s]), linear between
Line = list[tuple[float, float]]


@dataclass(frozen=True)
class ShiftSchedule:
    """The shift lines of a control unit over pedal and output speed, by "FROM-TO"."""

    #: up above the line, down below it
    up: dict[str, Line] = field(default_factory=dict)
    down: dict[str, Line] = field(default_factory=dict)
    #: output speed below which kick-down shifts down [rad/s], and the pedal from which it does, to which it goes on
    kick_down: dict[str, float] = field(default_factory=dict)
    kick_down_on: float = 1.0
    kick_down_off: float = 1.0
    #: no shift down that turns the turbine faster; always up above the other [rad/s]
    turbine_max_radps: float = 1e9
    turbine_force_up_radps: float = 1e9
    #: a gear is kept at least so long [s]
    gear_time_s: float = 0.0
    #: the changes of gear the control unit has, as "FROM-TO"
    shifts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class MonitorSpec:
    """Limits of the monitors; 0 (fallbacks: below 0) waives one."""

    #: the gears must be those the schedule asks for, one after the other
    gears: bool = True
    #: highest gear the whole drive comes to; 0: not known
    reaches: int = 0
    #: length of the whole drive: a shorter run is not held to `reaches` [s]
    duration_s: float = 0.0
    #: from the old ratio to the new one [s]
    shift_s: float = 1.5
    #: the same, by "FROM-TO", where the phases of the control unit's shift cannot last so long [s]
    shift_each_s: dict[str, float] = field(default_factory=dict)
    #: shifts into a gear that a free wheel holds: overrun while coasting, they are timed under power only
    overrun: list[str] = field(default_factory=list)
    #: with lever and pedal asking for it, the car moves within this time [s]
    moves_off_s: float = 3.0
    #: amount of the car's acceleration [m/s2]
    acceleration_mps2: float = 10.0
    #: acceleration in a shift beyond its levels before and behind [m/s2]
    shift_peak_mps2: float = 3.0
    #: steps that only a plain impulse could finish
    fallbacks: int = 0
    #: signals of the driver's wish, as the control unit is told it
    pedal: str = "driver.pedal"
    brake: str = "driver.brake"
    lever: str = "driver.lever"
    #: None: the control unit's is not known
    schedule: ShiftSchedule | None = None


def number_of(gear: str) -> int:
    """1, 2 ... of a forward gear ("1E", "1_engine_braking" are 1); 0 otherwise."""
    found = re.match(r"[1-9][0-9]?(?![0-9])", gear)
    return int(found[0]) if found else 0
