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
    """[rig]: which rig it is."""

    #: name of the rig, in reports and of the run directory
    name: FolderName
    #: simulated time of a run unless --duration says otherwise [s]
    duration_s: Annotated[float, Field(gt=0, le=1e6)] = 25.0


class Clock(ConfigTable):
    """[clock]: docs/clock.md has the words and rules."""

    #: period of the loop: what comes in and goes out does so on this grid [s]
    tick_s: Annotated[float, Field(ge=5e-5, le=0.1)] = 1e-3
    #: steps per tick; more cost compute time and gain accuracy
    substeps: Annotated[int, Field(ge=1, le=64)] = 1
    #: a tick that is late: done late, the following ones back to back (catch_up), left out (skip), or the run ends in
    #: the safe state (stop)
    policy: Literal["catch_up", "skip", "stop"] = "catch_up"
    #: late ticks run back to back at most; what is further behind becomes slip
    max_catch_up: Annotated[int, Field(ge=1, le=1000)] = 5
    #: the ticks of this first part of simulated time are counted apart: cold caches and first page faults are no
    #: statement about the rest [s]
    grace_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    #: the last part of the wait looks at the clock instead of sleeping [us]: less lateness for that share of a CPU
    spin_us: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    #: SCHED_FIFO priority of the loop; 0: ordinary scheduling
    fifo_priority: Annotated[int, Field(ge=0, le=99)] = 80
    #: CPU of the loop; auto: the last of those the process may use, none: any
    cpu: Annotated[int, Field(ge=0)] | Literal["auto", "none"] = "auto"
    #: mlockall before arming
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
    """One entry of [outputs]: where the value comes from, and what it is held to, whatever it is."""

    #: range in the unit of the database; default: the database's
    min: float | None = None
    #: upper end of that range
    max: float | None = None
    #: largest change per second, in the unit of the database; the first value is taken as it is
    slew: Annotated[float, Field(gt=0)] | None = None
    #: outside: send the limit, or do so and latch the safe state
    on_limit: Literal["clamp", "safe"] = "clamp"
    #: of a lever or gear: its words -> what is sent, a number in the unit of the database or a word of its value table
    words: dict[str, float | str] = {}
    #: what is sent for all other words
    otherwise: float | str = 0.0

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
    """One entry of [limits]; a signal outside latches the safe state."""

    #: smallest value that is allowed, in `unit`
    min: float = float("-inf")
    #: largest one
    max: float = float("inf")
    #: unit of min and max, e.g. "rpm", "kmh"; default SI
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
    """[safe_state]: when it is latched besides the limits, and the reaction."""

    #: overruns in a row; 0: never. Above max_catch_up, else one long stall from outside is enough
    overrun_limit: Annotated[int, Field(ge=0, lt=1 << 31)] = 50
    #: ticks in a row with a step that only a plain impulse could finish (more than 12 events in it); 0: never.
    #: Full-throttle runs have none
    solver_limit: Annotated[int, Field(ge=0, lt=1 << 31)] = 20
    #: no heartbeat of the loop for this long: it hangs [s]
    watchdog_s: Annotated[float, Field(ge=0.05, le=1e4)] = 0.5
    #: from the value at latching to the target within this time [s]: short enough to open before the driver notices the
    #: fault, long enough not to hit the driveline
    ramp_s: ReactionTime = 0.2
    #: the run ends this long after latching [s]; negative: it goes on
    stop_after_s: Annotated[float, Field(ge=-LONGEST_S, le=LONGEST_S)] = 1.0
    #: every tick is kept in memory from so long before the latching to so long after it, and then written [s]
    first_fault_before_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    #: and to so long after it
    first_fault_after_s: Annotated[float, Field(ge=0, le=60)] = 0.5
    #: model input -> target in SI; default: 0 for every input that comes over CAN and for every pedal
    inputs: dict[str, float] | None = None


class Record(ConfigTable):
    """[record]: what goes into the run directory."""

    #: signal names, or "all"
    signals: list[str] | Literal["all"] = "all"
    #: one sample every so many ticks
    every: Annotated[int, Field(ge=1, le=1000)] = 1
    #: what the ticks took in, for replay
    inputs: bool = True
    #: every frame with its time
    bus: bool = True
    #: forms for other tools that are written while the run goes on: mf4, csv, parquet
    formats: list[Literal["mf4", "csv", "parquet"]] = []
    #: forms of the frames that are written while the run goes on: blf, asc, mf4 (bus logging), log (candump)
    bus_formats: list[Literal["blf", "asc", "mf4", "log"]] = []

    @model_validator(mode="after")
    def _of_the_bus(self) -> Record:
        if self.bus_formats and not self.bus:
            raise BadValue("bus_formats = {value} is nothing without bus = true", key="bus_formats",
                           value=self.bus_formats)  # fmt: skip
        return self


#: what [driver] may hold in a file (driver_points reads it)
_WORDS = [*dict.fromkeys((*LEVERS, *GEARS))]
_LEVER_OR_NUMBER: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "enum": _WORDS}]}
_POINT: dict[str, Any] = {"type": "array", "items": _LEVER_OR_NUMBER, "minItems": 2, "maxItems": 2}
DRIVER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"anyOf": [*_LEVER_OR_NUMBER["anyOf"], {"type": "array", "items": _POINT, "minItems": 1}]},
}


class RigConfig(ConfigTable):
    """One rig file. Kinds of devices add their tables (hil/rig/devices/registry.py)."""

    FOLDER: ClassVar[str] = "rigs"
    #: first parts of names that are no signals of a bus; kinds of devices add theirs
    GROUPS: ClassVar[frozenset[str]] = frozenset(("driver", "vehicle", "rig", "bus", "link", "input", "monitor"))

    rig: RigTable
    #: what is integrated in the tick
    plant: Plant
    clock: Clock = Clock()
    #: CAN buses by name
    bus: dict[str, Bus] = {}
    #: control units by name
    ecu: dict[str, Ecu] = {}
    vehicle: Vehicle | None = None
    #: model input -> where its value comes from: a signal, or { signal = ..., gain = ..., offset = ... }, or a constant
    #: { value = ... } in SI
    inputs: dict[str, Annotated[Link, SHORT]] = {}
    #: signal to be sent -> where its value comes from: a signal, a constant in the unit of the database, a word of its
    #: value table { value = "..." }; with limits { signal = ..., min = ..., max = ..., slew = ..., on_limit = ... }; a
    #: lever or gear by words { signal = "driver.lever", words = { P = 8, D = "Drive" } }
    outputs: dict[str, Annotated[Output, SHORT]] = {}
    #: driver: name -> constant, or points [t_s, value] (linear between them; two points at one time are a step). Words
    #: change in steps: positions of `lever`, and R, N, 1, 2 ... of `gear`, a gear the driver asks for
    driver: Annotated[dict[str, list[tuple[float, float]]], WithJsonSchema(DRIVER_SCHEMA)] = {}
    control: Control | None = None
    telemetry: Telemetry = Telemetry()
    #: signal -> range outside of which the safe state is latched
    limits: dict[str, Limit] = {}
    safe_state: SafeState = SafeState()
    #: name -> condition, see hil/results/gates.py
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
                    raise BadValue(f"[{key}] is written {new} now", key=key, value=None, allowed=new)
            if isinstance(data.get("rig"), dict) and "powertrain" in data["rig"]:
                value = data["rig"]["powertrain"]
                raise BadValue("rig.powertrain is written plant.powertrain now", key="rig", value=value,
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
                    raise BadValue("[ecu." + name + "] is on bus {value}, which is not there", key="ecu", value=bus,
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
