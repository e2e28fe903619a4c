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

    #: Period of the control step and of the pressure messages [s].
    period_s: Annotated[float, Field(ge=1e-3, le=0.05)] = 5e-3
    #: Number of control steps from one status message to the next.
    status_every: Annotated[int, Field(ge=1, le=100)] = 2
    #: A message of the rig counts as lost when the TCU has not received it for this long [s]. Its period is 10 ms.
    rx_timeout_s: Annotated[float, Field(gt=0, le=5)] = 0.1


class Element(ConfigTable):
    """Calibration of one hydraulic element."""

    #: Friction torque per pressure above the kiss point [Nm/bar]. The TCU computes with this value; the driveline may
    #: have another one.
    torque_per_bar_Nm: Positive
    #: Pressure at which the plates touch, because it overcomes the return spring.
    kiss_bar: Bar
    #: Pressure of the fast fill. After `fill_s` the TCU commands the kiss point.
    fill_bar: Bar
    #: Duration of the fast fill.
    fill_s: Seconds


class Gear(ConfigTable):
    """A gear: the elements that are pressed in it, its ratio, and the torque of each element."""

    #: Elements that are pressed in this gear.
    elements: list[str]
    #: Turbine speed divided by output speed. It is 0 in a gear that does not drive.
    ratio: float = 0.0
    #: Element -> magnitude of its torque per Nm of turbine torque, from the statics of the gear train [1].
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
    """p_line = clip(base + per_torque |T_turbine| + pedal_gain pedal, min, max). In R, reverse_factor multiplies the
    torque part."""

    #: Lowest line pressure of the regulator.
    min_bar: Annotated[float, Field(ge=1, le=20)] = 3.0
    #: Highest line pressure of the regulator.
    max_bar: Annotated[float, Field(ge=1, le=20)] = 17.0
    #: Line pressure without torque and pedal.
    base_bar: Bar
    #: Increase of the line pressure per Nm of turbine torque.
    per_torque_bar_per_Nm: NotNegative
    #: Increase of the line pressure at full pedal.
    pedal_gain_bar: NotNegative
    #: Factor on the torque part in R [1].
    reverse_factor: Annotated[float, Field(ge=1, le=5)] = 1.0
    #: Largest change of the line pressure per second, because the main regulator is slow [bar/s].
    rate_bar_per_s: Positive = 60.0

    @model_validator(mode="after")
    def _ordered(self) -> LinePressure:
        if self.min_bar >= self.max_bar:
            raise BadValue(
                "min_bar = {value} is not below max_bar", key="min_bar", value=self.min_bar, allowed=f"< {self.max_bar}"
            )
        return self


class TorqueModel(ConfigTable):
    """Files from which the TCU estimates the turbine torque. A real TCU contains maps of converter and engine, too."""

    #: Characteristic of the converter when the engine drives the car.
    converter_csv: Annotated[str, InFile("converters")]
    #: Characteristic of the converter when the car drives the engine.
    converter_coast_csv: Annotated[str, InFile("converters")]
    #: Torque of the engine at full load and with closed throttle, as a function of its speed.
    engine_csv: Annotated[str, InFile("engines")]
    #: Time constant of the low-pass filter of the estimate [s].
    filter_s: Annotated[float, Field(ge=0, le=1)] = 0.03
    #: Inertia of engine, converter and turbine together. The law `regulate` adds the torque that changes the speed of
    #: this inertia as wanted. With 0, the controller alone finds this torque.
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
    """Shift lines: output speed [rpm] as a function of the pedal [percent]. The TCU shifts up above the up line and
    down below the down line."""

    #: "FROM-TO" -> output speed above which the TCU shifts up: points [pedal_percent, output_rpm].
    up: dict[str, Curve]
    #: "FROM-TO" -> output speed below which the TCU shifts down: points [pedal_percent, output_rpm].
    down: dict[str, Curve]
    #: "FROM-TO" -> output speed below which kick-down shifts down [rpm].
    kick_down: dict[str, Positive]
    #: Pedal at which kick-down begins.
    kick_down_on_percent: Percent = 95.0
    #: Pedal at which kick-down ends.
    kick_down_off_percent: Percent = 90.0
    #: At every pedal, the down line and the kick-down speed must lie at least this far below the up line.
    hysteresis_min_rpm: Positive = 60.0
    #: The TCU begins no upshift while the driver brakes more than this. Assumed.
    upshift_brake_percent: Percent = 5.0
    #: The schedule keeps a gear for at least this long.
    min_gear_time_s: Seconds = 1.0
    #: Under kick-down, the schedule keeps a gear for at least this long.
    kick_down_gear_time_s: Seconds = 0.4
    #: The TCU makes no downshift that would turn the turbine faster than this. This holds for lever, schedule and
    #: kick-down.
    turbine_max_rpm: Positive = 6000.0
    #: Above this turbine speed the TCU shifts up even against the lever.
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
    """Lock-up clutch of the converter. It closes above one output speed and opens below a lower one. To engage it, the
    TCU fills it, increases its torque, and controls its slip."""

    #: Gears in which the lock-up clutch may close.
    gears: list[str] = ["4"]
    #: It closes above this output speed.
    close_rpm: Positive
    #: It opens below this output speed.
    open_rpm: Positive
    #: It closes below this pedal.
    close_pedal_percent: Percent
    #: It opens above this pedal.
    open_pedal_percent: Percent
    #: Pressure of the fast fill.
    fill_bar: Bar
    #: Duration of the fast fill.
    fill_s: Seconds
    #: Pressure at which the plates touch.
    kiss_bar: Bar
    #: Wanted decrease of the slip per second while it engages [rpm/s].
    slip_rate_rpm_per_s: Positive
    #: Proportional gain of the slip controller.
    slip_kp_bar_per_100rpm: NotNegative
    #: Integral gain of the slip controller.
    slip_ki_bar_per_100rpm_s: NotNegative
    #: Slip that the controller keeps [rpm]. With 0 the clutch locks.
    slip_rpm: NotNegative = 0.0
    #: The clutch counts as locked when its slip is below this.
    lock_slip_rpm: Positive = 15.0
    #: Pressure of the locked clutch.
    locked_bar: Bar
    #: Slope of the ramp from slip control to `locked_bar`, and of the ramp to 0 when the clutch opens [bar/s].
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
    """Limits by which the TCU decides whether the turbine has the speed of a gear."""

    #: A gear is reached when the turbine speed differs by less than this from the speed of this gear.
    tolerance_rpm: Positive = 40.0
    #: The old gear is left when the turbine speed differs by more than this from the speed of the old gear.
    leave_rpm: Positive = 60.0


class Garage(ConfigTable):
    """Limits for shifts of the lever at low speed."""

    #: The TCU does not engage reverse above this road speed, nor a forward gear while the car rolls backwards faster
    #: than this.
    reverse_max_kmh: Positive = 8.0
    #: The TCU engages no gear out of P or N while the engine is faster than the turbine in that gear by more than this
    #: [rpm]: the elements would take up what the engine has too much. Assumed.
    engine_above_rpm: Positive = 2000.0
    #: Output speed per road speed: the final drive ratio divided by the tyre radius [rpm per km/h].
    output_rpm_per_kmh: Positive


class LimpHome(ConfigTable):
    """What the TCU does when messages of the rig are lost."""

    #: Gear that the TCU engages when only the speeds are lost and the lever is in a forward position.
    forward_gear: str = "3"
    #: Line pressure in limp-home.
    pressure_bar: Bar = 10.0
    #: Limp-home ends when the messages have been good for this long and the lever is in P or N.
    recover_s: Seconds = 1.0


class Adaptation(ConfigTable):
    """Steps and limits of what the TCU learns from power-on upshifts."""

    #: Change of a fill time after one shift [s].
    fill_step_s: Annotated[float, Field(gt=0, le=0.1)] = 0.005
    #: Largest total change of a fill time [s].
    fill_limit_s: Annotated[float, Field(gt=0, le=0.5)] = 0.06
    #: If the turbine exceeds the speed of the old gear by more than this in the torque phase, the fill time was too
    #: short [rpm].
    flare_rpm: Positive = 40.0
    #: If the turbine leaves the old ratio before this share of the torque phase, the fill time was too long.
    early_share: Annotated[float, Field(gt=0, lt=1)] = 0.4
    #: Change of a kiss pressure after one shift [bar].
    pressure_step_bar: Annotated[float, Field(gt=0, le=1)] = 0.02
    #: Largest total change of a kiss pressure [bar].
    pressure_limit_bar: Annotated[float, Field(gt=0, le=2)] = 0.3
    #: The kiss pressure changes only if the quotient of slip time and wanted slip time differs from 1 by more than
    #: this.
    time_tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.25


class TcuConfig(ConfigTable):
    """Calibration of the soft TCU."""

    FOLDER: ClassVar[str] = "tcu"

    #: Name of the calibration.
    name: str
    timing: Timing = Timing()
    #: Element -> its calibration.
    elements: dict[str, Element]
    #: Gear -> its elements.
    gears: dict[str, Gear]
    line_pressure: LinePressure
    torque_model: TorqueModel
    schedule: Schedule
    lockup: LockUp
    synchronisation: Synchronisation = Synchronisation()
    garage: Garage
    limp_home: LimpHome = LimpHome()
    #: Turbine torque above which a shift counts as power-on. Below it, the TCU uses the shift "FROM-TO.coast" if the
    #: file has it. If the pedal is pressed or released during a shift, the TCU continues with the other one, in the
    #: same stage.
    power_on_torque_Nm: float = 15.0
    #: The laws `torque` and `regulate` use at least this turbine torque.
    torque_min_Nm: Positive = 25.0
    #: Name -> phases for the roles "on" and "off" instead of elements. Shifts refer to these names.
    profiles: dict[str, Profile] = {}
    #: "FROM-TO" -> phases of this shift. "FROM-TO.coast" -> its phases when the car drives the engine.
    shifts: dict[str, Shift]
    #: How the TCU learns fill times and pressures from its shifts. Without this table it learns nothing.
    adaptation: Adaptation | None = None
    #: Engine torque that the TCU asks for in power-on upshifts. Without this table it asks for none.
    torque_reduction: TorqueReduction | None = None
    #: If true, the TCU gives a shift up when the old gear is wanted again before the filling has ended.
    cancel_in_filling: bool = False
    #: Folder of the file. Paths in the file are relative to it, and `load_tcu_config` sets it.
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
