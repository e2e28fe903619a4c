"""Hydraulic unit of a gearbox: its file (configs/hydraulics/).

    current, duty or on/off of each solenoid -> solenoid pressure -> shift valve and spool -> oil into the element
    -> pressure on its piston: the signal hydraulics.CIRCUIT.p, for [inputs] of the rig file

Equations: cython_kernels/tick/hydraulics.pyx. The page: docs/hydraulics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar

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
    """[oil]"""

    #: density [kg/m3]
    density_kgpm3: Positive = 850.0
    #: below this pressure difference the flow through orifices is laminar [bar]
    laminar_bar: Positive = 0.02
    #: points [temperature_degC, factor of all flows]: cold oil flows slowly; constant outside
    flow_over_degC: Points = [(20.0, 1.0), (120.0, 1.0)]


class Pump(ConfigTable):
    """[pump]: turns with the engine."""

    #: oil per revolution [cm3]
    displacement_cm3: Positive
    #: share of it that comes out
    volumetric: Annotated[float, Field(gt=0, le=1)] = 0.9
    #: hydraulic work over shaft work
    mechanical: Annotated[float, Field(gt=0, le=1)] = 0.85


class Line(ConfigTable):
    """[line]: line (main) pressure and its regulator."""

    #: pressure the regulator holds, or its highest where a solenoid sets it [bar]
    max_bar: Annotated[float, Field(gt=0, le=100)]
    #: solenoid that sets it; default: none, it is constant
    solenoid: str | None = None
    #: line pressure over solenoid pressure
    gain: float = 1.0
    #: line pressure at solenoid pressure 0 [bar]
    offset_bar: float = 0.0
    #: oil that goes into the line per pressure (hoses, compressed oil) [cm3/bar]
    give_cm3pbar: Positive = 0.02
    #: leakage of the whole unit per pressure [cm3/s/bar]
    leak_cm3psbar: NotNegative = 0.0


class Solenoid(ConfigTable):
    """[solenoid.NAME]: command -> pressure."""

    #: points [command, pressure_bar]: command in A, as duty 0..1, or 0 off and 1 on
    bar_over_command: Points
    #: width of the hysteresis between rising and falling command [bar]
    hysteresis_bar: NotNegative = 0.0
    #: time constant of its coil and output stage [s]
    coil_s: NotNegative = 0.0


class ShiftValve(ConfigTable):
    """[valve.NAME]: a valve with two positions, moved by a pressure against a spring."""

    #: what moves it: a solenoid, a path or the element of a circuit
    pilot: str
    #: it goes to its second position above this pressure ... [bar]
    on_bar: Positive
    #: ... and back below this one [bar]
    off_bar: NotNegative
    #: another valve that holds it where it is while in its second position
    held_by: str | None = None

    @model_validator(mode="after")
    def _order(self) -> ShiftValve:
        if not self.off_bar < self.on_bar:
            raise BadValue("off_bar = {value} is not below on_bar", key="off_bar", value=self.off_bar,
                           allowed=f"less than {self.on_bar:g}")  # fmt: skip
        return self


class Source(ConfigTable):
    """Where a circuit gets its pressure from: a name, or with the areas and the spring of its valve."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: "line", "exhaust", a solenoid, a path or another circuit
    of: str
    #: pressure behind the valve over this pressure
    gain: float = 1.0
    #: added [bar]
    offset_bar: float = 0.0


class PathSource(ConfigTable):
    """A pressure of a path: a name, or with a factor."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: "line", "exhaust", a solenoid, a circuit (pressure in its element) or an earlier path
    of: str
    #: factor on it: quotient of areas
    gain: float = 1.0


class Path(ConfigTable):
    """[path.NAME]: pressure in a duct between valves, without volume: the sum of its sources, or one of them."""

    #: sources, four at most
    of: Annotated[list[PathSource], Field(min_length=1, max_length=4)]
    #: added to it: spring [bar]
    offset_bar: float = 0.0
    #: shift valve that chooses between two sources: the first in its first position
    valve: str | None = None
    #: the highest of the sources instead of their sum: a ball valve
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
    """Spool of a circuit's pressure valve, of second order."""

    #: natural frequency [Hz]
    natural_Hz: Annotated[float, Field(gt=0, le=5000)]
    #: damping ratio
    damping: Annotated[float, Field(gt=0, le=10)] = 0.8


class Accumulator(ConfigTable):
    """Accumulator beside an element."""

    #: oil it takes [cm3]
    take_cm3: Positive
    #: pressure at which it begins to fill, more than the element's full_bar [bar]
    from_bar: Positive
    #: pressure at which it is full [bar]
    to_bar: Positive


class Centrifugal(ConfigTable):
    """Oil that turns with the drum presses by itself: rho/2 w^2 (r_outer^2 - r_inner^2)."""

    #: outer radius of the piston [m]
    outer_m: Positive
    #: inner radius of the oil [m]
    inner_m: NotNegative
    #: share that a balance chamber takes away
    balanced: Annotated[float, Field(ge=0, le=1)] = 0.0


class Circuit(ConfigTable):
    """[circuit.NAME]: one shift element with its valve."""

    #: its pressure; two: one for each position of `valve`
    supply: Annotated[list[Source], Field(min_length=1, max_length=2)]
    #: shift valve that chooses between two sources
    valve: str | None = None
    #: second-order dynamics of the valve; default: at once
    spool: Spool | None = None
    #: orifice to the element [mm2]
    feed_mm2: Positive
    #: orifice on the way back; default: as feed_mm2 [mm2]
    exhaust_mm2: Positive | None = None
    #: discharge coefficient of both
    discharge: Annotated[float, Field(gt=0, le=1)] = 0.6
    #: oil that moves the piston until the plates touch [cm3]
    fill_cm3: Positive
    #: pressure at which the piston leaves its seat (return spring) [bar]
    return_bar: Positive
    #: pressure at which the plates touch [bar]
    full_bar: Positive
    #: oil that goes in per pressure when they touch (lining, seals, compressed oil) [cm3/bar]
    give_cm3pbar: Positive = 0.2
    #: leakage per pressure [cm3/s/bar]
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
    """Hydraulic unit of a gearbox."""

    FOLDER: ClassVar[str] = "hydraulics"

    #: its name
    name: str
    oil: Oil = Oil()
    pump: Pump
    line: Line
    #: solenoids by name
    solenoid: Annotated[dict[str, Solenoid], Field(min_length=1, max_length=64)]
    #: shift valves by name
    valve: Annotated[dict[str, ShiftValve], Field(max_length=64)] = {}
    #: ducts between valves by name, in the order in which they follow each other
    path: Annotated[dict[str, Path], Field(max_length=64)] = {}
    #: shift elements by name
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


def load_hydraulics(path: str | FilePath, overrides: Mapping[str, Any] | None = None) -> HydraulicsConfig:
    """Read and check the file of a hydraulic unit; overrides: dotted key -> value."""
    return load_config(path, HydraulicsConfig, overrides)
