"""Configuration of the soft TCU: elements, gears, schedule, lock-up, shift profiles, limp-home (configs/tcu/).

Which elements, gears and shifts there are is the file's: [elements], [gears] and what follows from them (gears.py).
All calibration is data. Units are in the key names (bar, rpm, percent as a TCU calibration engineer writes them);
`strategy` and `shift` convert once when they are built.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from torqueloop.core.describe.errors import ConfigError, did_you_mean, repr_short
from torqueloop.core.describe.reading import read_csv
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile, validate
from torqueloop.hil.common.config_layers import read_layers
from torqueloop.hil.common.locate import find
from torqueloop.hil.ecu.gears import check_names, forward_gears, neighbours, required_shifts
from torqueloop.hil.ecu.laws import Bar, NotNegative, Percent, Phase, Positive, Seconds
from torqueloop.hil.ecu.profiles import Profile, Shift, expand
from torqueloop.hil.ecu.torque_request import TorqueReduction


class Timing(ConfigTable):
    """Periods and timeouts."""

    #: period of the control step and of the pressure messages [s]
    period_s: Annotated[float, Field(ge=1e-3, le=0.05)] = 5e-3
    #: a status message every so many steps
    status_every: Annotated[int, Field(ge=1, le=100)] = 2
    #: a message from the rig not received for this long is lost [s] (its period is 10 ms)
    rx_timeout_s: Annotated[float, Field(gt=0, le=5)] = 0.1


class Element(ConfigTable):
    """One hydraulic element."""

    #: friction torque per pressure above the kiss point [Nm/bar]: the TCU's calibration, not the plant's truth
    torque_per_bar_Nm: Positive
    #: pressure at which the plates touch (return spring overcome)
    kiss_bar: Bar
    #: fast fill: this pressure for this time, then kiss point
    fill_bar: Bar
    #: duration of the fast fill
    fill_s: Seconds


class Gear(ConfigTable):
    """Elements pressed in a gear, ratio, torque of each element per Nm turbine torque (magnitude)."""

    #: elements that are pressed
    elements: list[str]
    #: turbine speed over output speed; 0: no drive
    ratio: float = 0.0
    #: element -> its torque per Nm turbine torque, from the statics of the gear train [1]
    torque: dict[str, NotNegative] = {}

    @model_validator(mode="after")
    def _torque_of_pressed(self) -> Gear:
        if len(set(self.elements)) != len(self.elements):
            raise BadValue("elements: the same element twice", key="elements", value=self.elements)
        for name in self.torque:
            if name not in self.elements:
                raise BadValue(
                    f"torque.{name}: this element is not pressed in the gear",
                    key="torque",
                    allowed=", ".join(self.elements),
                )
        return self


class LinePressure(ConfigTable):
    """p_line = clip(base + per_torque |T_turbine| + pedal_gain pedal, min, max); in R the torque part is multiplied."""

    #: lower limit of the regulator
    min_bar: Annotated[float, Field(ge=1, le=20)] = 3.0
    #: upper one
    max_bar: Annotated[float, Field(ge=1, le=20)] = 17.0
    #: without torque and pedal
    base_bar: Bar
    #: for the turbine torque that is to be held
    per_torque_bar_per_Nm: NotNegative
    #: at full pedal in addition
    pedal_gain_bar: NotNegative
    #: factor on the torque part in R [1]
    reverse_factor: Annotated[float, Field(ge=1, le=5)] = 1.0
    #: largest change per second: the main regulator is slow [bar/s]
    rate_bar_per_s: Positive = 60.0

    @model_validator(mode="after")
    def _ordered(self) -> LinePressure:
        if self.min_bar >= self.max_bar:
            raise BadValue(
                "min_bar = {value} is not below max_bar", key="min_bar", value=self.min_bar, allowed=f"< {self.max_bar}"
            )
        return self


class TorqueModel(ConfigTable):
    """Files the TCU estimates turbine torque from (as a real TCU holds converter and engine maps)."""

    #: characteristic of the converter, drive side
    converter_csv: Annotated[str, InFile("converters")]
    #: the same, coast side
    converter_coast_csv: Annotated[str, InFile("converters")]
    #: full-load and closed-throttle torque over speed
    engine_csv: Annotated[str, InFile("engines")]
    #: low-pass time of the estimate [s]
    filter_s: Annotated[float, Field(ge=0, le=1)] = 0.03
    #: inertia of engine, converter and turbine: `regulate` adds the torque that slows it as wanted; 0: the controller
    #: finds it by itself [kg m2]
    inertia_kgm2: Annotated[float, Field(ge=0, le=10)] = 0.0


Curve = list[tuple[float, float]]


def _curve(points: Any) -> Curve:
    """Points [pedal_percent, output_rpm] with increasing pedal, from 0 to 100 %."""
    if not isinstance(points, list) or len(points) < 2:
        raise BadValue("not a curve", allowed="[[pedal_percent, output_rpm], ...] from 0 to 100 percent")
    rows: Curve = []
    for point in points:
        if not isinstance(point, list | tuple) or len(point) != 2 or not all(type(x) in (int, float) for x in point):
            raise BadValue("bad point {value}", value=point, allowed="[pedal_percent, output_rpm]")
        if not 0.0 <= point[1] <= 10000.0:
            raise BadValue("output speed {value}", value=point[1], allowed="0 .. 10000 rpm")
        rows.append((float(point[0]), float(point[1])))
    if rows[0][0] != 0.0 or rows[-1][0] != 100.0 or any(b[0] <= a[0] for a, b in pairwise(rows)):
        raise BadValue(
            "pedal values of the curve", value=[row[0] for row in rows], allowed="increasing from 0 to 100 percent"
        )
    return rows


def interpolate(curve: Curve, x: float) -> float:
    """Linear between points, constant outside; their x increase."""
    # a pair (x, y) is not below (x,): the first point at x or beyond
    i = bisect_left(curve, (x,))
    if i == 0 and x <= curve[0][0]:
        return curve[0][1]
    # the former for numbers that are none
    if i == 0 or i == len(curve):
        return curve[-1][1]
    (x0, y0), (x1, y1) = curve[i - 1], curve[i]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


class Schedule(ConfigTable):
    """Shift lines over pedal [percent] in output speed [rpm]: up above the up line, down below the down line."""

    #: shift up above this output speed: points [pedal_percent, output_rpm]
    up: dict[str, Curve]
    #: shift down below it: points [pedal_percent, output_rpm]
    down: dict[str, Curve]
    #: output speed below which kick-down shifts down [rpm]
    kick_down: dict[str, Positive]
    #: pedal at which kick-down begins
    kick_down_on_percent: Percent = 95.0
    #: pedal at which it ends
    kick_down_off_percent: Percent = 90.0
    #: the down line (and the kick-down speed) must lie at least this far below the up line at every pedal
    hysteresis_min_rpm: Positive = 60.0
    #: a gear is kept at least so long
    min_gear_time_s: Seconds = 1.0
    #: the same under kick-down
    kick_down_gear_time_s: Seconds = 0.4
    #: no shift down (by lever, schedule or kick-down) that would turn the turbine faster
    turbine_max_rpm: Positive = 6000.0
    #: shift up even against the lever above this turbine speed
    turbine_force_up_rpm: Positive = 6200.0

    @field_validator("up", "down", mode="before")
    @classmethod
    def _curves(cls, curves: Any) -> Any:
        if not isinstance(curves, dict):
            raise BadValue("not a table of curves")
        return {name: _curve(points) for name, points in curves.items()}

    @model_validator(mode="after")
    def _hysteresis(self) -> Schedule:
        if self.kick_down_off_percent >= self.kick_down_on_percent:
            raise BadValue(
                "{key} is not below kick_down_on_percent", key="kick_down_off_percent", value=self.kick_down_off_percent
            )
        for pair, up in self.up.items():
            low, _, high = pair.partition("-")
            if f"{high}-{low}" not in self.down or f"{high}-{low}" not in self.kick_down:
                continue  # what is missing is said where the gears are known
            down, kick = self.down[f"{high}-{low}"], self.kick_down[f"{high}-{low}"]
            # both lines are straight between the points of either: checking those is enough
            for pedal in sorted({p for p, _ in up} | {p for p, _ in down} | {self.kick_down_off_percent}):
                lower = interpolate(down, pedal)
                if pedal >= self.kick_down_off_percent:
                    lower = max(lower, kick)
                highest = interpolate(up, pedal) - self.hysteresis_min_rpm
                if lower > highest:
                    raise BadValue(
                        f"down line {high}-{low} at {pedal:g} % pedal is at {{value}} rpm", key="down", value=lower,
                        allowed=f"<= {highest:g} (up line minus hysteresis_min_rpm)",
                    )  # fmt: skip
        return self


class LockUp(ConfigTable):
    """Converter clutch: closed above, open below; engaged by filling, a torque ramp and a slip controller."""

    #: gears it may close in
    gears: list[str] = ["4"]
    #: closes above this output speed
    close_rpm: Positive
    #: opens below it
    open_rpm: Positive
    #: closes below this pedal
    close_pedal_percent: Percent
    #: opens above it
    open_pedal_percent: Percent
    #: pressure of the fast fill
    fill_bar: Bar
    #: its duration
    fill_s: Seconds
    #: pressure at which the plates touch
    kiss_bar: Bar
    #: wanted fall of the slip during engagement [rpm/s]
    slip_rate_rpm_per_s: Positive
    #: pressure per slip error
    slip_kp_bar_per_100rpm: NotNegative
    #: pressure per integral of the slip error
    slip_ki_bar_per_100rpm_s: NotNegative
    #: slip that is kept instead of locking [rpm]; 0: it locks
    slip_rpm: NotNegative = 0.0
    #: below this slip it is locked
    lock_slip_rpm: Positive = 15.0
    #: pressure when it is locked
    locked_bar: Bar
    #: ramp from slip control to locked_bar, and down when opening [bar/s]
    ramp_bar_per_s: Positive = 20.0

    @model_validator(mode="after")
    def _hysteresis(self) -> LockUp:
        if self.open_rpm >= self.close_rpm:
            raise BadValue(
                "open_rpm = {value} is not below close_rpm",
                key="open_rpm",
                value=self.open_rpm,
                allowed=f"< {self.close_rpm:g}",
            )
        if self.open_pedal_percent <= self.close_pedal_percent:
            raise BadValue(
                "open_pedal_percent = {value} is not above close_pedal_percent", key="open_pedal_percent",
                value=self.open_pedal_percent, allowed=f"> {self.close_pedal_percent:g}",
            )  # fmt: skip
        return self


class Synchronisation(ConfigTable):
    """When the turbine speed counts as that of a gear."""

    #: difference to the speed of a gear below which that gear is reached
    tolerance_rpm: Positive = 40.0
    #: difference above which the old gear is left
    leave_rpm: Positive = 60.0


class Garage(ConfigTable):
    """Limits for shifts of the lever at low speed."""

    #: reverse is not engaged above this speed; forward not while rolling backwards faster
    reverse_max_kmh: Positive = 8.0
    #: output speed per road speed: final drive / tyre radius [rpm per km/h]
    output_rpm_per_kmh: Positive


class LimpHome(ConfigTable):
    """What is done when messages of the rig are lost."""

    #: gear when only the speeds are lost and the lever is in a forward position
    forward_gear: str = "3"
    #: line pressure in limp-home
    pressure_bar: Bar = 10.0
    #: messages good again for this long and the lever in P or N end limp-home
    recover_s: Seconds = 1.0


class Adaptation(ConfigTable):
    """Steps and limits of what is learnt from shifts up under power."""

    #: change of a fill time in one shift [s]
    fill_step_s: Annotated[float, Field(gt=0, le=0.1)] = 0.005
    #: largest change of a fill time in all [s]
    fill_limit_s: Annotated[float, Field(gt=0, le=0.5)] = 0.06
    #: turbine speed above that of the old gear in the torque phase that means "filled too short" [rpm]
    flare_rpm: Positive = 40.0
    #: share of the torque phase before which the ratio may not be left ("filled too long")
    early_share: Annotated[float, Field(gt=0, lt=1)] = 0.4
    #: change of a kiss pressure in one shift [bar]
    pressure_step_bar: Annotated[float, Field(gt=0, le=1)] = 0.02
    #: largest change of a kiss pressure in all [bar]
    pressure_limit_bar: Annotated[float, Field(gt=0, le=2)] = 0.3
    #: slip time over wanted slip time that is left alone
    time_tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.25


class TcuConfig(ConfigTable):
    """The soft TCU."""

    FOLDER: ClassVar[str] = "tcu"

    #: name of the calibration
    name: str
    timing: Timing = Timing()
    #: element -> its calibration
    elements: dict[str, Element]
    #: gear -> its elements
    gears: dict[str, Gear]
    line_pressure: LinePressure
    torque_model: TorqueModel
    schedule: Schedule
    lockup: LockUp
    synchronisation: Synchronisation = Synchronisation()
    garage: Garage
    limp_home: LimpHome = LimpHome()
    #: torque above which a shift counts as power-on; below, a "X-Y.coast" profile is taken if there is one
    power_on_torque_Nm: float = 15.0
    #: torque laws use at least this turbine torque
    torque_min_Nm: Positive = 25.0
    #: named lists of phases for roles instead of elements ("on", "off"): shifts refer to them
    profiles: dict[str, Profile] = {}
    #: "FROM-TO" of gears, with ".coast" for one without power -> its phases
    shifts: dict[str, Shift]
    #: learning of fill time and pressure from what shifts do; without this table nothing is learnt
    adaptation: Adaptation | None = None
    #: engine torque asked for in shifts up under power; without this table none is
    torque_reduction: TorqueReduction | None = None
    #: a shift whose filling has not ended is given up when another gear is wanted meanwhile
    cancel_in_filling: bool = False
    #: folder of the file: paths in it are relative to this (set by load)
    folder: SkipJsonSchema[str] = "."
    _phases: dict[str, tuple[Phase, ...]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _bus_of_the_rig(cls, data: Any) -> Any:
        if isinstance(data, dict) and "can" in data:
            raise BadValue("the bus of a control unit is that of the rig file it runs in", key="can",
                           allowed="[bus.NAME] there, and node in [ecu.NAME]")  # fmt: skip
        return data

    @model_validator(mode="after")
    def _complete(self) -> TcuConfig:
        check_names(self.gears, self.elements)
        self._check_schedule()
        for gear in (*self.lockup.gears, self.limp_home.forward_gear):
            if gear != "N" and gear not in forward_gears(self.gears):
                raise BadValue("{value} is no forward gear", key="gears", value=gear,
                               allowed=", ".join(forward_gears(self.gears)))  # fmt: skip
        for key, shift in self.shifts.items():
            source, _, target = key.removesuffix(".coast").partition("-")
            if source not in self.gears or target not in self.gears:
                raise BadValue(
                    f"shift {key!r} is not FROM-TO of known gears", key="shifts", allowed=", ".join(self.gears)
                )
            self._phases[key] = expand(key, shift, self.profiles, self.gears, self.shifts)
            for phase in self._phases[key]:
                self._check_phase(key, phase, phase.from_gear or source, phase.to_gear or target)
        required = required_shifts(self.gears)
        for key in required:
            if key not in self.shifts:
                raise BadValue(f"missing shift {key!r}", key="shifts", allowed=", ".join(required))
        return self

    def _check_schedule(self) -> None:
        pairs = neighbours(self.gears)
        ups, downs = [f"{low}-{high}" for low, high in pairs], [f"{high}-{low}" for low, high in pairs]
        for name, known in (("up", ups), ("down", downs), ("kick_down", downs)):
            given = getattr(self.schedule, name)
            if missing := [key for key in known if key not in given]:
                lacking = ", ".join(missing)
                raise BadValue(f"{name}: missing {lacking}", key=f"schedule.{name}", allowed=", ".join(known))
            if unknown := [key for key in given if key not in known]:
                raise BadValue(f"{name}: {{value}} is no pair of neighbouring gears", key=f"schedule.{name}",
                               value=unknown[0], allowed=", ".join(known))  # fmt: skip

    def _check_phase(self, key: str, phase: Phase, source: str, target: str) -> None:
        for name, law in phase.elements.items():
            place = f"shift {key}, phase {phase.name!r}, {name}"
            if name not in self.elements:
                raise BadValue(f"{place}: unknown element", key="shifts", value=name, allowed=", ".join(self.elements))
            uses_torque = law.law in ("torque", "regulate")
            if uses_torque and not (self.gears[target].torque.get(name) or self.gears[source].torque.get(name)):
                raise BadValue(
                    f"{place}: law {law.law!r} needs a torque of {name} in gear {source} or {target}", key="shifts"
                )
            if law.law == "regulate" and not (self.gears[target].ratio and phase.until == "synchronised"):
                raise BadValue(f"{place}: regulate needs a target ratio and until = 'synchronised'", key="shifts")

    def phases(self, name: str) -> tuple[Phase, ...]:
        """The phases of a shift, profiles put in."""
        return self._phases[name]

    def path(self, key: str, folder: str) -> Path:
        """The file that [torque_model] `key` names: relative to this one, or the bare name of an installed one."""
        try:
            return find(Path(self.folder) / "tcu.toml", getattr(self.torque_model, key), folder)
        except ConfigError as error:
            raise error.located(table="torque_model", key=key) from None


def load_tcu_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> TcuConfig:
    """Read and check a TCU file; overrides: dotted key -> value."""
    layers = read_layers(path, TcuConfig, overrides)
    data = layers.data
    if "folder" in data:
        raise ConfigError("unknown key 'folder'", file=str(path), hint=did_you_mean("folder", TcuConfig.model_fields))
    return validate({**data, "folder": str(Path(path).parent)}, TcuConfig, str(path), layers.file_of)


def read_columns(path: Path, columns: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Columns of a CSV file with '#' comments and a header row, first column increasing."""
    header, table = read_csv(path)
    if not table or any(column not in header for column in columns):
        raise ConfigError("missing column", file=str(path), value=header, allowed=", ".join(columns))
    picks = [header.index(column) for column in columns]
    rows: list[tuple[float, ...]] = []
    for number, cells in table:
        try:
            row = tuple(float(cells[k]) for k in picks)
        except (IndexError, ValueError):
            row = ()
        if not row or not all(map(math.isfinite, row)):
            problem = f"line {number} is not a row of finite numbers: {repr_short(','.join(cells))}"
            raise ConfigError(problem, file=str(path))
        rows.append(row)
    if any(b[0] <= a[0] for a, b in pairwise(rows)):
        raise ConfigError(f"column {columns[0]} does not increase", file=str(path))
    return rows
