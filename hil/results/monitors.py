"""What a drive is held to without a gate written by hand, as run.json keeps it, in SI: what gearbox, car and rig say.
`rig/resolve/monitors` makes it, `monitors/engine` gives it to the kernel, `report/monitors` judges by it."""

from __future__ import annotations

import re
from dataclasses import field

from torqueloop.core.describe.classes import dataclass

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
    #: no shift up while the driver brakes more than this, 0..1
    upshift_brake: float = 1.0
    #: no shift down that turns the turbine faster; always up above the other [rad/s]
    turbine_max_radps: float = 1e9
    turbine_force_up_radps: float = 1e9
    #: a gear is kept at least so long [s]
    gear_time_s: float = 0.0
    #: the changes of gear the control unit has, as "FROM-TO"
    shifts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ElementFacts:
    """A clutch or brake of the gearbox."""

    name: str
    #: it counts as closed from this capacity on [Nm]
    closed_Nm: float
    #: area of its lining; 0: not known [mm2]
    area_mm2: float = 0.0
    #: capacity at its highest pressure, sticking; 0: not known [Nm]
    full_Nm: float = 0.0
    #: thickness of its steel plates [mm]
    plate_mm: float = 3.0


@dataclass(frozen=True)
class GearFacts:
    """A gear of the gearbox file."""

    name: str
    #: 1, 2 ...; -1: reverse
    number: int
    #: w_in / w_out
    ratio: float
    #: clutches and brakes that are closed in it, free wheels left out
    elements: list[str] = field(default_factory=list)
    #: amount of the torque of each of them per Nm of the input; empty: equilibrium does not say [Nm/Nm]
    torque: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GearboxFacts:
    """What the monitors know of a gearbox and its car."""

    name: str = ""
    elements: list[ElementFacts] = field(default_factory=list)
    gears: list[GearFacts] = field(default_factory=list)
    #: by closed elements (bit k: elements[k]): index of the gear, or -1 too few, -2 too many, -3 another ratio; whether
    #: a free wheel holds it
    closed_as: list[int] = field(default_factory=list)
    overruns: list[bool] = field(default_factory=list)
    #: of the car; 0: not known [kg]
    mass_kg: float = 0.0
    #: idle speed, and the speed at which the full-load torque ends; 0: there is no engine [rad/s]
    idle_radps: float = 0.0
    engine_max_radps: float = 0.0
    #: speed at which its governor has cut the fuel: full-load torque is that of closed throttle; 0: not known [rad/s]
    engine_cut_radps: float = 0.0


@dataclass(frozen=True)
class ReportedSpeed:
    """A speed that is sent to the control unit."""

    reported: str
    #: signal it is made of
    source: str
    #: range of the message [rad/s]
    low: float = -1e9
    high: float = 1e9


@dataclass(frozen=True)
class MonitorSpec:
    """What the monitors of a run are made of."""

    gearbox: GearboxFacts = GearboxFacts()
    #: signal of each fact that there is (kernel FACTS)
    signals: dict[str, str] = field(default_factory=dict)
    #: (value of the signal, number of the gear) of what the control unit says and asks for
    reported: list[tuple[float, float]] = field(default_factory=list)
    asked: list[tuple[float, float]] = field(default_factory=list)
    pairs: list[ReportedSpeed] = field(default_factory=list)
    #: (signal that is sent, its source) of pedals, 0..1
    pedals: list[tuple[str, str]] = field(default_factory=list)
    #: from one message that acknowledges torque requests to the next [s]
    answer_s: float = 0.0
    #: signals of actuators of control units: their pins, and currents they send
    actuators: list[str] = field(default_factory=list)
    #: moved limits by monitor, and monitors that do not count, with the reason
    limits: dict[str, float] = field(default_factory=dict)
    waived: dict[str, str] = field(default_factory=dict)
    #: highest gear the whole drive comes to; 0: not known
    reaches: int = 0
    #: length of the whole drive: a shorter run is not held to `reaches` [s]
    duration_s: float = 0.0
    #: the longest a shift can last, by "FROM-TO", by the phases of the control unit's shift [s]
    shift_each_s: dict[str, float] = field(default_factory=dict)
    #: the control unit engages no gear out of N while the engine is faster than the gear by this; 0: not known [rad/s]
    engine_above_radps: float = 0.0
    #: None: the control unit's is not known
    schedule: ShiftSchedule | None = None


def number_of(gear: str) -> int:
    """1, 2 ... of a forward gear ("1E", "1_engine_braking" are 1); 0 otherwise."""
    found = re.match(r"[1-9][0-9]?(?![0-9])", gear)
    return int(found[0]) if found else 0
