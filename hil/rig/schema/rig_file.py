"""The rig file: what is connected to what, at which rate, and what happens when it fails.

This module reads the file and checks each value by itself. `resolve` checks it against the driveline and the CAN
databases, before anything is started. Tables of participants stand in `participants`, those of devices with their
devices. Example: configs/rigs/desk_4hp22.toml.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from torqueloop.core.describe.errors import closest
from torqueloop.core.describe.units import UNITS
from torqueloop.hil.common.config_file import BadValue, ConfigTable, FolderName
from torqueloop.hil.common.levers import GEARS, LEVERS, words_of
from torqueloop.hil.rig.schema.links import SHORT, Link
from torqueloop.hil.rig.schema.monitor_table import Monitors
from torqueloop.hil.rig.schema.participants import (
    LONGEST_S,
    Bus,
    Control,
    Ecu,
    Plant,
    ReactionTime,
    Telemetry,
    Vehicle,
)

#: tables of older rig files -> how they are written now
OLD_TABLES = {"can": "[bus.NAME]", "tcu": "[ecu.NAME]"}
#: names of buses and control units: they stand in front of the names of their signals
PEER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
#: buses of a rig, at most (tick.pxd MAX_BUS)
BUSES_MAX = 16


class RigTable(ConfigTable):
    """[rig]: name and duration of the rig."""

    #: Name of the rig, in reports and in the name of the run directory.
    name: FolderName
    #: Simulated time of a run [s]. `--duration` takes precedence.
    duration_s: Annotated[float, Field(gt=0, le=1e6)] = 25.0


class Clock(ConfigTable):
    """[clock]: period and real-time settings of the loop, see docs/clock.md."""

    #: Period of the loop [s]. Inputs are read and outputs are written once in each period.
    tick_s: Annotated[float, Field(ge=5e-5, le=0.1)] = 1e-3
    #: Number of integration steps per tick. More steps take more computing time and are more accurate.
    substeps: Annotated[int, Field(ge=1, le=64)] = 1
    #: What the loop does when a tick is late. catch_up: it makes the tick late and the following ones at once after it.
    #: skip: it leaves the tick out. stop: the run ends in the safe state.
    policy: Literal["catch_up", "skip", "stop"] = "catch_up"
    #: Largest number of late ticks that the loop makes at once, one after the other. What is later becomes lost time.
    max_catch_up: Annotated[int, Field(ge=1, le=1000)] = 5
    #: The ticks of this first part of simulated time are counted apart, because cold caches and first page faults say
    #: nothing about the rest [s].
    grace_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    #: In this last part of the wait the loop reads the clock instead of sleeping [us]. This reduces its lateness and
    #: occupies the CPU for that time.
    spin_us: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    #: SCHED_FIFO priority of the loop. 0: ordinary scheduling.
    fifo_priority: Annotated[int, Field(ge=0, le=99)] = 80
    #: CPU of the loop. auto: the last of the CPUs that the process may use. none: any of them.
    cpu: Annotated[int, Field(ge=0)] | Literal["auto", "none"] = "auto"
    #: The rig locks its memory (mlockall) before it is armed.
    lock_memory: bool = True

    @field_validator("cpu", mode="before")
    @classmethod
    def _cpu(cls, value: Any) -> Any:
        if isinstance(value, bool) or not (value in ("auto", "none") or (isinstance(value, int) and value >= 0)):
            raise BadValue("{key} = {value} is not allowed", value=value, allowed='a CPU number, "auto", "none"')
        return value

    @model_validator(mode="after")
    def _spin(self) -> Clock:
        if self.spin_us * 1e-6 > 0.5 * self.tick_s:
            raise BadValue(
                "spin_us = {value} is more than half a tick",
                key="spin_us",
                value=self.spin_us,
                allowed=f"0 .. {0.5e6 * self.tick_s:g}",
            )
        return self


class Output(Link):
    """[outputs.NAME]: where the value comes from, and the limits that hold for it whatever its source is."""

    #: Lower end of the range, in the unit of the database. By default it is that of the database.
    min: float | None = None
    #: Upper end of the range, in the unit of the database. By default it is that of the database.
    max: float | None = None
    #: Largest change per second, in the unit of the database. It does not limit the first value.
    slew: Annotated[float, Field(gt=0)] | None = None
    #: What the rig does with a value outside of the range. clamp: it sends the limit. safe: it sends the limit and
    #: latches the safe state.
    on_limit: Literal["clamp", "safe"] = "clamp"
    #: For a lever or gear: its words -> what is sent, a number in the unit of the database or a word of its value
    #: table.
    words: dict[str, float | str] = {}
    #: What is sent for all other words. By default the driver may use none of them.
    otherwise: float | str | None = None

    @model_validator(mode="after")
    def _order(self) -> Output:
        if self.min is not None and self.max is not None and not self.min <= self.max:
            raise BadValue("max = {value} is below min", key="max", value=self.max, allowed=f">= {self.min}")
        for word in self.words:
            known = words_of(self.signal or "")
            if self.signal is None or word not in known:
                raise BadValue("words: {value} is no word of " + str(self.signal), key="words", value=word,
                               allowed=", ".join(known))  # fmt: skip
        return self


class Limit(ConfigTable):
    """[limits.NAME]: range of a signal. The rig latches the safe state when the signal leaves it."""

    #: Smallest allowed value, in `unit`.
    min: float = float("-inf")
    #: Largest allowed value, in `unit`.
    max: float = float("inf")
    #: Unit of `min` and `max`, such as "rpm" or "kmh". By default it is the SI unit.
    unit: str | None = None

    @model_validator(mode="after")
    def _order(self) -> Limit:
        if not self.min < self.max:
            raise BadValue("max = {value} is not above min", key="max", value=self.max, allowed=f"> {self.min}")
        if self.unit is not None and self.unit not in UNITS:
            near = closest(self.unit, UNITS)
            raise BadValue(
                "unit {value} is not known",
                key="unit",
                value=self.unit,
                hint=f"did you mean '{near}'?" if near else None,
            )
        return self


class SafeState(ConfigTable):
    """[safe_state]: what latches the safe state in addition to the limits, and what the rig does then."""

    #: Number of overruns in a row that latches the safe state. 0: no number does. With the policy catch_up it must be
    #: above `max_catch_up`; otherwise one long interruption by the machine would be enough.
    overrun_limit: Annotated[int, Field(ge=0, lt=1 << 31)] = 50
    #: Number of ticks in a row that latches the safe state, if each of them has a step that only the method of first
    #: order finishes, because it contains more than 12 events. 0: no number does. Runs at full throttle have no such
    #: step.
    solver_limit: Annotated[int, Field(ge=0, lt=1 << 31)] = 20
    #: The loop counts as hanging when it gives no heartbeat for this long [s].
    watchdog_s: Annotated[float, Field(ge=0.05, le=1e4)] = 0.5
    #: Time in which the outputs go from their values at latching to the targets [s]. It is short enough to open the
    #: driveline before the driver notices the fault, and long enough not to excite the driveline.
    ramp_s: ReactionTime = 0.2
    #: The run ends this long after latching [s]. Negative: the run continues.
    stop_after_s: Annotated[float, Field(ge=-LONGEST_S, le=LONGEST_S)] = 1.0
    #: The rig keeps every tick in memory. After a fault it writes the ticks that are at most this long before the
    #: latching [s].
    first_fault_before_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    #: After a fault the rig also writes the ticks that are at most this long after the latching [s].
    first_fault_after_s: Annotated[float, Field(ge=0, le=60)] = 0.5
    #: Model input -> target in SI. By default the target is 0 for every input that comes over CAN and for every pedal.
    inputs: dict[str, float] | None = None


class Record(ConfigTable):
    """[record]: what goes into the run directory."""

    #: Names of the signals to record, or "all".
    signals: list[str] | Literal["all"] = "all"
    #: Number of ticks from one sample to the next.
    every: Annotated[int, Field(ge=1, le=1000)] = 1
    #: The rig records all inputs of the ticks, which `torqueloop replay` needs.
    inputs: bool = True
    #: The rig records every frame with its time.
    bus: bool = True
    #: Formats for other tools that are written during the run: mf4, csv, parquet.
    formats: list[Literal["mf4", "csv", "parquet"]] = []
    #: Formats of the frames that are written during the run: blf, asc, mf4 (bus logging), log (candump).
    bus_formats: list[Literal["blf", "asc", "mf4", "log"]] = []

    @model_validator(mode="after")
    def _of_the_bus(self) -> Record:
        if self.bus_formats and not self.bus:
            raise BadValue("bus_formats = {value} needs bus = true", key="bus_formats",
                           value=self.bus_formats)  # fmt: skip
        return self


#: what [driver] may hold in a file (driver_points reads it)
_WORDS = [*dict.fromkeys((*LEVERS, *GEARS))]
_LEVER_OR_NUMBER: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "enum": _WORDS}]}
_POINT: dict[str, Any] = {"type": "array", "items": _LEVER_OR_NUMBER, "minItems": 2, "maxItems": 2}
_COURSE: dict[str, Any] = {"anyOf": [*_LEVER_OR_NUMBER["anyOf"], {"type": "array", "items": _POINT, "minItems": 1}]}
#: what every driver has; [driver] may hold other names, too. Steps may set these on every rig, also where nothing reads
#: them: a scenario closes the kick-down switch although the CAN database of a rig has no signal for it
DRIVER = {
    "pedal": "Accelerator pedal, 0 to 1.",
    "brake": "Brake pedal, 0 to 1.",
    "lever": "Position of the selector lever.",
    "gear": "Gear that the driver asks for.",
    "tip": "Tip switch: 0 none, 1 up, 2 down.",
    "kickdown": "Kick-down switch, 0 or 1.",
    "brake_switch": "Brake light switch, 0 or 1.",
}
DRIVER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"description": text} for name, text in DRIVER.items()},
    # of the names above and of all others; the second is what the page of the file shows
    "patternProperties": {"": _COURSE},
    "additionalProperties": _COURSE,
}


class RigConfig(ConfigTable):
    """Keys of the file itself. Kinds of devices add their tables (hil/rig/devices/registry.py)."""

    FOLDER: ClassVar[str] = "rigs"
    #: first parts of names that are no signals of a bus; kinds of devices add theirs
    GROUPS: ClassVar[frozenset[str]] = frozenset(("driver", "vehicle", "rig", "bus", "link", "input", "monitor"))

    rig: RigTable
    #: What the tick integrates.
    plant: Plant
    clock: Clock = Clock()
    #: CAN buses by name.
    bus: dict[str, Bus] = {}
    #: Control units by name.
    ecu: dict[str, Ecu] = {}
    vehicle: Vehicle | None = None
    #: Model input -> where its value comes from: a signal, or { signal = ..., gain = ..., offset = ... }, or a constant
    #: { value = ... } in SI.
    inputs: dict[str, Annotated[Link, SHORT]] = {}
    #: Signal that the rig sends -> where its value comes from: a signal, a constant in the unit of the database, or a
    #: word of its value table { value = "..." }. Limits: { signal = ..., min = ..., max = ..., slew = ..., on_limit =
    #: ... }. Words of a lever or gear: { signal = "driver.lever", words = { P = 8, D = "Drive" } }.
    outputs: dict[str, Annotated[Output, SHORT]] = {}
    #: Name -> constant, or points [t_s, value]. The value is linear between the points; two points at one time make a
    #: step. `lever` takes positions of the lever, and `gear` takes R, N, 1, 2 and so on, the gear that the driver asks
    #: for; these words change in steps.
    driver: Annotated[dict[str, list[tuple[float, float]]], WithJsonSchema(DRIVER_SCHEMA)] = {}
    control: Control | None = None
    telemetry: Telemetry = Telemetry()
    #: Signal -> its allowed range. The rig latches the safe state when the signal leaves it.
    limits: dict[str, Limit] = {}
    safe_state: SafeState = SafeState()
    #: Name -> condition on the metrics of the run, see hil/results/gates.py.
    gates: dict[str, str] = {}
    monitors: Monitors = Monitors()
    record: Record = Record()

    @field_validator("driver", mode="before")
    @classmethod
    def _driver(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {name: driver_points(name, value) for name, value in table.items() if name != "source"}

    @model_validator(mode="before")
    @classmethod
    def _old_names(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key, new in OLD_TABLES.items():
                if key in data:
                    raise BadValue(f"[{key}] is now written {new}", key=key, value=None, allowed=new)
            if isinstance(data.get("rig"), dict) and "powertrain" in data["rig"]:
                value = data["rig"]["powertrain"]
                raise BadValue("rig.powertrain is now written plant.powertrain", key="rig", value=value,
                               allowed="[plant] powertrain = ...")  # fmt: skip
        return data

    @field_validator("bus", "ecu", mode="before")
    @classmethod
    def _peer_names(cls, table: Any) -> Any:
        for name in table if isinstance(table, dict) else ():
            if not PEER_NAME.fullmatch(name) or name in cls.GROUPS:
                raise BadValue("{value} is no name of a bus or control unit", value=name,
                               allowed=f"letters, digits, _; not one of {', '.join(sorted(cls.GROUPS))}")  # fmt: skip
        return table

    @model_validator(mode="after")
    def _together(self) -> RigConfig:
        if len(self.bus) > BUSES_MAX:
            raise BadValue("{value} buses", key="bus", value=len(self.bus), allowed=f"at most {BUSES_MAX}")
        for name in self.bus.keys() & self.ecu.keys():
            raise BadValue("{value} is the name of a bus and of a control unit", key="ecu", value=name)
        for name, ecu in self.ecu.items():
            for bus in self.buses_of(name):
                if bus not in self.bus:
                    raise BadValue("[ecu." + name + "] is on bus {value}, which does not exist", key="ecu", value=bus,
                                   allowed=", ".join(self.bus))  # fmt: skip
            if ecu.bus is None and len(self.bus) != 1 and not (ecu.sensors or ecu.actuators):
                raise BadValue(f"[ecu.{name}] does not say which bus it is on", key="ecu", value=None,
                               allowed=", ".join(self.bus) or "a table [bus.NAME]")  # fmt: skip
        if self.clock.policy == "catch_up" and 0 < self.safe_state.overrun_limit <= self.clock.max_catch_up:
            raise BadValue(
                "overrun_limit = {value} would latch on every stall that catch_up may work off",
                key="overrun_limit",
                value=self.safe_state.overrun_limit,
                allowed=f"0 or > max_catch_up = {self.clock.max_catch_up}",
            )
        return self

    def buses_of(self, ecu: str) -> list[str]:
        """Names of the buses a control unit is on."""
        named = self.ecu[ecu].bus
        if named is None:
            return list(self.bus) if len(self.bus) == 1 else []
        return [named] if isinstance(named, str) else list(named)


def driver_points(name: str, value: Any) -> list[tuple[float, float]]:
    """Points (t_s, y) of a driver table; words are lever positions, those of `gear` gears, and change in steps."""
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        value = [[0.0, value]]
    if not isinstance(value, list) or not value:
        raise BadValue(
            f"driver table {name}",
            key=name,
            value=value,
            allowed="a number, a lever position, or points [[t_s, value], ...]",
        )
    points: list[tuple[float, float]] = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) != 2 or not _is_number(point[0]):
            raise BadValue(f"driver table {name}: bad point {{value}}", key=name, value=point, allowed="[t_s, value]")
        t, y = float(point[0]), point[1]
        if isinstance(y, str):
            words = words_of(name)
            if y not in words:
                kind = "gear" if name.endswith("gear") else "lever position"
                raise BadValue(f"driver table {name}: {{value}} is no {kind}", key=name, value=y,
                               allowed=", ".join(words))  # fmt: skip
            y = words[y]
            if points and points[-1][0] < t:
                points.append((t, points[-1][1]))  # a lever does not pass through the positions between in a line
        elif not _is_number(y):
            raise BadValue(
                f"driver table {name}: bad value {{value}}", key=name, value=y, allowed="a number or a lever position"
            )
        points.append((t, float(y)))
    for (t0, _), (t1, _) in pairwise(points):
        if t1 < t0:
            raise BadValue(f"driver table {name}: time {{value}} goes back", key=name, value=t1, allowed=f">= {t0}")
    return points


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
