"""Hydraulic unit of a gearbox: its file (configs/hydraulics/).

    current, duty or on/off of each solenoid -> solenoid pressure -> shift valve and spool -> oil into the element
    -> pressure on its piston: the signal hydraulics.CIRCUIT.p, for [inputs] of the rig file

Equations: cython_kernels/tick/hydraulics.pyx. The page: docs/hydraulics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from torqueloop.cython_kernels.tick import hydraulics as kernel
from torqueloop.hil.common.config_file import BadValue, ConfigTable, Curve
from torqueloop.hil.common.config_layers import load_config

BAR = 1e5
#: where a circuit may get its pressure from besides solenoids and other circuits
LINE, EXHAUST = "line", "exhaust"
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Points = Annotated[Curve, Field(min_length=2, max_length=200)]


class Oil(ConfigTable):
    """[oil]: properties of the oil."""

    #: Density [kg/m3].
    density_kgpm3: Positive = 850.0
    #: Pressure difference below which the flow through orifices is laminar [bar].
    laminar_bar: Positive = 0.02
    #: Points [temperature_degC, factor on all flows], constant outside of them. Cold oil flows slowly.
    flow_over_degC: Points = [(20.0, 1.0), (120.0, 1.0)]


class Pump(ConfigTable):
    """[pump]: the pump, which turns with the engine."""

    #: Oil that the pump delivers in one revolution without losses [cm3].
    displacement_cm3: Positive
    #: Volumetric efficiency: the share of this oil that reaches the line.
    volumetric: Annotated[float, Field(gt=0, le=1)] = 0.9
    #: Mechanical efficiency: hydraulic work divided by the work at the shaft.
    mechanical: Annotated[float, Field(gt=0, le=1)] = 0.85


class Line(ConfigTable):
    """[line]: line pressure and its regulator."""

    #: Pressure that the regulator holds, or its highest pressure if a solenoid sets it [bar].
    max_bar: Annotated[float, Field(gt=0, le=100)]
    #: Solenoid that sets the line pressure. By default the regulator holds `max_bar`.
    solenoid: str | None = None
    #: Line pressure divided by the pressure of the solenoid.
    gain: float = 1.0
    #: Line pressure at the solenoid pressure 0 [bar].
    offset_bar: float = 0.0
    #: Additional oil that the line takes for each bar, because its hoses give way and the oil is compressed [cm3/bar].
    give_cm3pbar: Positive = 0.02
    #: Leakage of the whole unit for each bar of line pressure [cm3/s/bar].
    leak_cm3psbar: NotNegative = 0.0


class Coil(ConfigTable):
    """[solenoid.NAME.coil]: electrical data of a solenoid and of the output stage that drives it."""

    #: Resistance at 20 degC [Ohm]. It rises with the temperature of the oil as that of copper does.
    resistance_ohm: Annotated[float, Field(ge=1e-3, le=1e6)]
    #: Inductance [H].
    inductance_H: Annotated[float, Field(gt=0, le=100)]
    #: What the command is. voltage: the duty of the output stage, from 0 to 1. current: the current that the output
    #: stage regulates, in A, as far as the supply lets it.
    drive: Literal["voltage", "current"] = "voltage"
    #: Where the output stage is. low: between coil and ground. high: between supply and coil.
    side: Literal["low", "high"] = "low"
    #: Voltage of the diode or clamp that the current flows against while the output stage is off [V].
    flyback_V: NotNegative = 0.7


class Solenoid(ConfigTable):
    """[solenoid.NAME]: a solenoid, which makes a pressure from its command."""

    #: Points [command, pressure_bar]. The command is a current in A, a duty from 0 to 1, or 0 for off and 1 for on.
    #: With `coil` it is the current of the coil in A.
    bar_over_command: Points
    #: Width of the hysteresis between a rising and a falling command [bar].
    hysteresis_bar: NotNegative = 0.0
    #: Time constant of the coil and the output stage of the control unit [s].
    coil_s: NotNegative = 0.0
    #: Electrical data. With them the current follows from the supply, and electrical faults are possible.
    coil: Coil | None = None

    @model_validator(mode="after")
    def _one_coil(self) -> Solenoid:
        if self.coil is not None and self.coil_s:
            raise BadValue("coil_s = {value}: [coil] has an inductance already", key="coil_s", value=self.coil_s,
                           allowed="one of them")  # fmt: skip
        return self


class ShiftValve(ConfigTable):
    """[valve.NAME]: a valve with two positions, which a pressure moves against a spring."""

    #: Solenoid, path, or circuit (pressure in its element) whose pressure moves the valve.
    pilot: str
    #: Pressure above which the valve moves to its second position [bar].
    on_bar: Positive
    #: Pressure below which the valve moves back to its first position [bar].
    off_bar: NotNegative
    #: Another valve. While it is in its second position, this valve does not move.
    held_by: str | None = None

    @model_validator(mode="after")
    def _order(self) -> ShiftValve:
        if not self.off_bar < self.on_bar:
            raise BadValue("off_bar = {value} is not below on_bar", key="off_bar", value=self.off_bar,
                           allowed=f"less than {self.on_bar:g}")  # fmt: skip
        return self


class Source(ConfigTable):
    """Where a circuit gets its pressure from: a name, or a table with the areas and the spring of its valve."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: "line", "exhaust", a solenoid, a path or another circuit.
    of: str
    #: Pressure behind the valve divided by the pressure of the source.
    gain: float = 1.0
    #: Pressure that is added, such as that of a spring [bar].
    offset_bar: float = 0.0


class PathSource(ConfigTable):
    """A pressure of a path: a name, or a table with a factor."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: "line", "exhaust", a solenoid, a circuit (pressure in its element) or an earlier path.
    of: str
    #: Factor on this pressure, the ratio of two areas.
    gain: float = 1.0


class Path(ConfigTable):
    """[path.NAME]: the pressure in a duct without volume between valves: the sum of its sources, or one of them."""

    #: Sources of the path, four at most.
    of: Annotated[list[PathSource], Field(min_length=1, max_length=4)]
    #: Pressure that is added, such as that of a spring [bar].
    offset_bar: float = 0.0
    #: Shift valve that chooses between two sources. In its first position it chooses the first one.
    valve: str | None = None
    #: If true, the path has the highest of its pressures instead of their sum, as with a ball valve.
    highest: bool = False

    @field_validator("of", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return [{"of": one} if isinstance(one, str) else one for one in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _fits(self) -> Path:
        if self.valve is not None and (len(self.of) != 2 or self.highest):
            raise BadValue("a valve chooses between two sources", key="of", value=[s.of for s in self.of],
                           allowed='["A", "B"] with valve = ...')  # fmt: skip
        return self


class Spool(ConfigTable):
    """[circuit.NAME.spool]: the spool of the circuit's pressure valve, a system of second order."""

    #: Natural frequency [Hz].
    natural_Hz: Annotated[float, Field(gt=0, le=5000)]
    #: Damping ratio.
    damping: Annotated[float, Field(gt=0, le=10)] = 0.8


class Accumulator(ConfigTable):
    """[circuit.NAME.accumulator]: an accumulator beside the element."""

    #: Oil that the accumulator takes [cm3].
    take_cm3: Positive
    #: Pressure at which it begins to fill, above `full_bar` of the element [bar].
    from_bar: Positive
    #: Pressure at which it is full [bar].
    to_bar: Positive


class Centrifugal(ConfigTable):
    """[circuit.NAME.centrifugal]: pressure of the oil that turns with the drum, rho/2 w^2 (r_outer^2 - r_inner^2)."""

    #: Outer radius of the piston [m].
    outer_m: Positive
    #: Inner radius of the oil [m].
    inner_m: NotNegative
    #: Share of this pressure that a balance chamber removes.
    balanced: Annotated[float, Field(ge=0, le=1)] = 0.0


class Circuit(ConfigTable):
    """[circuit.NAME]: one shift element with its valve."""

    #: Source of the pressure, or two sources, one for each position of `valve`.
    supply: Annotated[list[Source], Field(min_length=1, max_length=2)]
    #: Shift valve that chooses between two sources.
    valve: str | None = None
    #: Dynamics of the pressure valve, of second order. By default the valve has none.
    spool: Spool | None = None
    #: Area of the orifice to the element [mm2].
    feed_mm2: Positive
    #: Area of the orifice on the way back [mm2]. By default it is `feed_mm2`.
    exhaust_mm2: Positive | None = None
    #: Discharge coefficient of both orifices.
    discharge: Annotated[float, Field(gt=0, le=1)] = 0.6
    #: Oil that moves the piston until the plates touch [cm3].
    fill_cm3: Positive
    #: Pressure at which the piston begins to move against the return spring [bar].
    return_bar: Positive
    #: Pressure at which the plates touch [bar].
    full_bar: Positive
    #: Additional oil that the element takes for each bar when the plates touch, because linings and seals give way and
    #: the oil is compressed [cm3/bar].
    give_cm3pbar: Positive = 0.2
    #: Leakage for each bar [cm3/s/bar].
    leak_cm3psbar: NotNegative = 0.0
    accumulator: Accumulator | None = None
    centrifugal: Centrifugal | None = None

    @field_validator("supply", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return [{"of": one} if isinstance(one, str) else one for one in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _fits(self) -> Circuit:
        if self.full_bar <= self.return_bar:
            raise BadValue("full_bar = {value} is not above return_bar", key="full_bar", value=self.full_bar,
                           allowed=f"more than {self.return_bar:g}")  # fmt: skip
        if (len(self.supply) == 2) != (self.valve is not None):
            raise BadValue("two supplies need a valve that chooses, and a valve two supplies", key="supply",
                           value=[s.of for s in self.supply], allowed='["A", "B"] with valve = ...')  # fmt: skip
        a = self.accumulator
        if a is not None and not self.full_bar < a.from_bar < a.to_bar:
            raise BadValue("accumulator: from_bar = {value}", key="accumulator", value=a.from_bar,
                           allowed=f"above full_bar = {self.full_bar:g}, below to_bar = {a.to_bar:g}")  # fmt: skip
        c = self.centrifugal
        if c is not None and c.inner_m >= c.outer_m:
            raise BadValue("centrifugal: inner_m = {value}", key="centrifugal", value=c.inner_m,
                           allowed=f"less than outer_m = {c.outer_m:g}")  # fmt: skip
        return self

    def volume_curve(self) -> list[tuple[float, float]]:
        """Pressure [Pa] over volume [m3]: on its seat, moving, touching, with its accumulator; the slope is 1/give
        beyond the last point."""
        give = self.give_cm3pbar * 1e-6 / BAR
        p = [0.0, self.return_bar * BAR, self.full_bar * BAR]
        extra = [0.0, 0.0, self.fill_cm3 * 1e-6]
        if self.accumulator is not None:
            p += [self.accumulator.from_bar * BAR, self.accumulator.to_bar * BAR]
            extra += [0.0, self.accumulator.take_cm3 * 1e-6]
        volumes = np.cumsum(np.array(extra) + give * np.diff(p, prepend=0.0))
        return [(float(v), float(x)) for v, x in zip(volumes, p, strict=True)]


class HydraulicsConfig(ConfigTable):
    """The hydraulic unit of a gearbox."""

    FOLDER: ClassVar[str] = "hydraulics"

    #: Name of the unit.
    name: str
    oil: Oil = Oil()
    pump: Pump
    line: Line
    #: Solenoids by name.
    solenoid: Annotated[dict[str, Solenoid], Field(min_length=1, max_length=64)]
    #: Shift valves by name.
    valve: Annotated[dict[str, ShiftValve], Field(max_length=64)] = {}
    #: Ducts between valves by name. A path comes after those that it takes its pressure from.
    path: Annotated[dict[str, Path], Field(max_length=64)] = {}
    #: Circuits of the shift elements by name.
    circuit: Annotated[dict[str, Circuit], Field(min_length=1, max_length=64)]

    @model_validator(mode="after")
    def _names(self) -> HydraulicsConfig:
        seen = {LINE: "the line", EXHAUST: "the way back"}
        seen |= {name: "a signal of the unit" for name, _ in kernel.UNIT_SIGNALS}
        for table in ("solenoid", "valve", "path", "circuit"):
            for name in getattr(self, table):
                if name in seen:
                    raise BadValue(f"[{table}.{name}]: {{value}} is the name of {seen[name]} already", key=table,
                                   value=name, allowed="one name for one thing")  # fmt: skip
                seen[name] = f"a {table}"
        self._known("line", "solenoid", self.line.solenoid, self.solenoid)
        for name, valve in self.valve.items():
            self._known(f"valve.{name}", "pilot", valve.pilot, {*self.solenoid, *self.path, *self.circuit})
            self._known(f"valve.{name}", "held_by", valve.held_by, {n for n in self.valve if n != name})
        earlier: set[str] = set()
        for name, path in self.path.items():
            self._known(f"path.{name}", "valve", path.valve, self.valve)
            for part in path.of:
                self._known(f"path.{name}", "of", part.of, {LINE, EXHAUST, *self.solenoid, *self.circuit, *earlier})
            earlier.add(name)
        for name, circuit in self.circuit.items():
            self._known(f"circuit.{name}", "valve", circuit.valve, self.valve)
            for source in circuit.supply:
                others = {n for n in self.circuit if n != name}
                self._known(f"circuit.{name}", "supply", source.of,
                            {LINE, EXHAUST, *self.solenoid, *self.path, *others})  # fmt: skip
        return self

    def _known(self, table: str, key: str, name: str | None, known: Any) -> None:
        if name is not None and name not in known:
            raise BadValue(f"[{table}] {key}: there is no {{value}}", key=key, value=name,
                           allowed=", ".join(sorted(known)) or "none")  # fmt: skip

    def of_one_circuit(self) -> list[str]:
        """Solenoids whose pressure goes to one circuit and nowhere else."""
        circuits = [source.of for circuit in self.circuit.values() for source in circuit.supply]
        other = {self.line.solenoid, *(valve.pilot for valve in self.valve.values())}
        other |= {source.of for path in self.path.values() for source in path.of}
        return [name for name in self.solenoid if circuits.count(name) == 1 and name not in other]


def load_hydraulics(path: str | FilePath, overrides: Mapping[str, Any] | None = None) -> HydraulicsConfig:
    """Read and check the file of a hydraulic unit; overrides: dotted key -> value."""
    return load_config(path, HydraulicsConfig, overrides)
