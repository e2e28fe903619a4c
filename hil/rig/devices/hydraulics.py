"""[hydraulics] of a rig file: the hydraulic unit between the commands of solenoids and the pressures of elements.

The file of the unit: hil/rig/schema/hydraulic_unit.py. Equations: cython_kernels/tick/hydraulics.pyx.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick import hydraulics as kernel
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.config_file import ConfigTable, InFile
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.devices.signals import DUMMY, SignalTable
from torqueloop.hil.rig.schema.fault_tables import faults_of
from torqueloop.hil.rig.schema.hydraulic_unit import (
    BAR,
    EXHAUST,
    LINE,
    Circuit,
    Coil,
    HydraulicsConfig,
    Path,
    Solenoid,
    Spool,
    load_hydraulics,
)
from torqueloop.hil.rig.schema.links import AnySignal
from torqueloop.hil.rig.schema.participants import relative


class HydraulicsTable(ConfigTable):
    """[hydraulics]: the hydraulic unit between solenoids and pressures, and the signals that it is connected to."""

    #: File of the hydraulic unit.
    file: Annotated[str, InFile("hydraulics")]
    #: Signal with the speed of the pump, which is that of the engine.
    speed: str
    #: Signal with the temperature of the oil. By default its flows do not depend on it.
    temperature: str | None = None
    #: Solenoid -> signal with its command (A, duty or 0/1), or { signal = ..., gain = ..., offset = ... }.
    solenoids: dict[str, AnySignal]
    #: Signal with the voltage that supplies the solenoids, which the file of the unit needs if it has coils.
    supply: str | None = None
    #: Circuit -> signal with the speed of its drum, if the file of the unit has centrifugal pressure.
    drums: dict[str, str] = {}
    #: Number of parts of a tick in which the unit is solved. More parts take more computing time and are more accurate.
    substeps: Annotated[int, Field(ge=1, le=64)] = 4


class HydraulicsTables(ConfigTable):
    """What the rig file has of it."""

    #: Hydraulic unit between the solenoid commands of the control unit and the pressures, see docs/hydraulics.md.
    hydraulics: HydraulicsTable | None = None


@dataclass(frozen=True)
class PlannedHydraulics:
    """A unit with slots for names."""

    first_slot: int
    unit: Mapping[str, Any]
    solenoids: list[Mapping[str, Any]]
    valves: list[Mapping[str, Any]]
    circuits: list[Mapping[str, Any]]
    paths: list[Mapping[str, Any]]
    #: (source, slot, gain, offset) of the commands of solenoids that have faults
    commands: list[tuple[int, int, float, float]]


def add_signals(table: SignalTable, unit: HydraulicsConfig) -> int:
    """Signals of a unit: hydraulics.line ..., hydraulics.SOLENOID.i, hydraulics.CIRCUIT.p ...; the first slot."""
    names = [(f"hydraulics.{n}", u) for n, u in kernel.UNIT_SIGNALS]
    for parts, signals in (
        (unit.solenoid, kernel.SOLENOID_SIGNALS),
        (unit.valve, kernel.VALVE_SIGNALS),
        (unit.circuit, kernel.CIRCUIT_SIGNALS),
        (unit.path, kernel.PATH_SIGNALS),
    ):
        names += [(f"hydraulics.{part}.{n}", u) for part in parts for n, u in signals]
    first = table.add_all(names)
    for name, solenoid in unit.solenoid.items():
        if solenoid.coil is not None:
            for n, u in kernel.COIL_SIGNALS:
                table.add(f"hydraulics.{name}.{n}", u, coil_start(solenoid.coil).get(n, 0.0))
    return first


def coil_start(coil: Coil) -> dict[str, float]:
    """Signals of a coil that only faults change, with their values."""
    return {"resistance": coil.resistance_ohm, "through": 1.0, "free": 1.0}


def command_signal(solenoid: str) -> str:
    """Name of the command of a solenoid that has faults."""
    return f"hydraulics.{solenoid}.command"


def plan_hydraulics(
    table: SignalTable, given: HydraulicsTable, unit: HydraulicsConfig, first_slot: int, tick_s: float, file: str
) -> PlannedHydraulics:
    """Resolve [hydraulics]; ConfigError with its key."""
    return _Plan(table, given, unit, first_slot, tick_s / given.substeps, file).made()


class _Plan:
    def __init__(
        self, table: SignalTable, given: HydraulicsTable, unit: HydraulicsConfig, first: int, h: float, file: str
    ) -> None:
        self.table, self.given, self.unit, self.first, self.h, self.file = table, given, unit, first, h, file
        self.commands: list[tuple[int, int, float, float]] = []

    def made(self) -> PlannedHydraulics:
        self.known("solenoids", self.given.solenoids, self.unit.solenoid)
        self.known("drums", self.given.drums, self.unit.circuit)
        missing = [name for name in self.unit.solenoid if name not in self.given.solenoids]
        if missing:
            raise ConfigError("{key}: solenoid {value} has no command", file=self.file, table="hydraulics",
                              key="solenoids", value=missing[0], allowed="a signal for each")  # fmt: skip
        names = list(self.unit.valve)
        return PlannedHydraulics(
            self.first,
            self.pump_and_line(),
            [self.solenoid(name, s) for name, s in self.unit.solenoid.items()],
            [
                {
                    "pilot": self.pressure(v.pilot),
                    "p_on": v.on_bar * BAR,
                    "p_off": v.off_bar * BAR,
                    "held_by": -1 if v.held_by is None else names.index(v.held_by),
                }
                for v in self.unit.valve.values()
            ],
            [self.circuit(name, c, names) for name, c in self.unit.circuit.items()],
            [self.path(p, names) for p in self.unit.path.values()],
            self.commands,
        )

    def known(self, key: str, names: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """UnknownNameError for a name that is no part of the unit."""
        for name in names:
            if name not in parts:
                hint = did_you_mean(name, parts)
                raise UnknownNameError("{key}: the hydraulic unit has no {value}", file=self.file, table="hydraulics",
                                       key=key, value=name, hint=hint)  # fmt: skip

    def slot(self, name: str, key: str, unit: str | None = None) -> int:
        """Slot of a signal that the unit reads."""
        return self.table.read_slot(name, unit, self.file, "hydraulics", key)

    def pressure(self, name: str) -> int:
        """Slot of a pressure inside the unit."""
        if name == EXHAUST:
            return DUMMY
        if name == LINE:
            return self.table.slot("hydraulics.line")
        return self.table.slot(f"hydraulics.{name}.p")

    def pump_and_line(self) -> dict[str, Any]:
        """Arguments of Hydraulics.set_unit."""
        pump, line, oil = self.unit.pump, self.unit.line, self.unit.oil
        by_solenoid = line.solenoid is not None
        kelvin = self.given.temperature
        return {
            "substeps": self.given.substeps,
            "h": self.h,
            "lam": oil.laminar_bar * BAR,
            "speed": self.slot(self.given.speed, "speed", "rad/s"),
            "displacement": pump.displacement_cm3 * 1e-6 / (2.0 * math.pi),
            "volumetric": pump.volumetric,
            "mechanical": pump.mechanical,
            "line_source": self.pressure(line.solenoid) if line.solenoid is not None else DUMMY,
            "line_gain": line.gain if by_solenoid else 0.0,
            "line_offset": line.offset_bar * BAR if by_solenoid else line.max_bar * BAR,
            "line_max": line.max_bar * BAR,
            "line_stiff": BAR / (line.give_cm3pbar * 1e-6),
            "line_leak": line.leak_cm3psbar * 1e-6 / BAR,
            "temperature": DUMMY if kelvin is None else self.slot(kelvin, "temperature", "K"),
            "flow": [(0.0, 1.0), (1.0, 1.0)] if kelvin is None else [(t + 273.15, y) for t, y in oil.flow_over_degC],
        }

    def solenoid(self, name: str, s: Solenoid) -> dict[str, Any]:
        """Arguments of Hydraulics.set_solenoid."""
        command = self.given.solenoids[name]
        slot, gain, offset = self.slot(command.signal, "solenoids"), command.gain, command.offset
        if command_signal(name) in self.table:
            # a fault acts on it on its way, or on its coil
            own = self.table.slot(command_signal(name))
            self.commands.append((slot, own, gain, offset))
            slot, gain, offset = own, 1.0, 0.0
            for n, value in {} if s.coil is None else coil_start(s.coil).items():
                self.commands.append((DUMMY, self.table.slot(f"hydraulics.{name}.{n}"), 0.0, value))
        return {
            "command": slot,
            "gain": gain,
            "offset": offset,
            "keep": math.exp(-self.h / s.coil_s) if s.coil_s > 0.0 else 0.0,
            "half": 0.5 * s.hysteresis_bar * BAR,
            "map": [(x, y * BAR) for x, y in s.bar_over_command],
            "coil": None if s.coil is None else self.coil(name, s.coil),
        }

    def coil(self, name: str, coil: Coil) -> dict[str, Any]:
        """Electrical data of Hydraulics.set_solenoid."""
        if self.given.supply is None:
            allowed = 'a signal in V, such as "supply.terminal_30"'
            raise ConfigError("{key} is missing: solenoid {value} has a coil", file=self.file, table="hydraulics",
                              key="supply", value=name, allowed=allowed)  # fmt: skip
        return {
            "slot": self.table.slot(f"hydraulics.{name}.sense"),
            "supply": self.slot(self.given.supply, "supply", "V"),
            "by_current": coil.drive == "current",
            "inductance": coil.inductance_H,
            "flyback": coil.flyback_V,
            "warms": self.given.temperature is not None,
        }

    def path(self, p: Path, valves: list[str]) -> dict[str, Any]:
        """Arguments of Hydraulics.set_path."""
        return {
            "form": "choose" if p.valve is not None else "max" if p.highest else "sum",
            "sources": [(self.pressure(s.of), s.gain) for s in p.of],
            "offset": p.offset_bar * BAR,
            "valve": -1 if p.valve is None else valves.index(p.valve),
        }

    def circuit(self, name: str, c: Circuit, valves: list[str]) -> dict[str, Any]:
        """Arguments of Hydraulics.set_circuit."""
        orifice = c.discharge * 1e-6 * math.sqrt(2.0 / self.unit.oil.density_kgpm3)
        drum = self.given.drums.get(name)
        spin = 0.0
        if c.centrifugal is not None:
            if drum is None:
                problem = "{key}: circuit {value} has centrifugal pressure and needs the speed of its drum"
                raise ConfigError(problem, file=self.file, table="hydraulics", key="drums", value=name,
                                  allowed="a signal in rad/s")  # fmt: skip
            r = c.centrifugal
            spin = 0.5 * self.unit.oil.density_kgpm3 * (r.outer_m**2 - r.inner_m**2) * (1.0 - r.balanced)
        return {
            "valve": valves.index(c.valve) if c.valve is not None else -1,
            "sources": [(self.pressure(s.of), s.gain, s.offset_bar * BAR) for s in c.supply],
            "spool": None if c.spool is None else spool_matrix(c.spool, self.h),
            "k_in": orifice * c.feed_mm2,
            "k_out": orifice * (c.feed_mm2 if c.exhaust_mm2 is None else c.exhaust_mm2),
            "leak": c.leak_cm3psbar * 1e-6 / BAR,
            "volume": c.volume_curve(),
            "stiff": BAR / (c.give_cm3pbar * 1e-6),
            "speed": DUMMY if drum is None else self.slot(drum, "drums", "rad/s"),
            "spin": spin,
        }


def spool_matrix(spool: Spool, h: float) -> list[float]:
    """(x, x') after h of x'' + 2 zeta w0 x' + w0^2 x = 0, row by row: matrix exponential by scaling and squaring."""
    w0 = 2.0 * math.pi * spool.natural_Hz
    a = np.array([[0.0, 1.0], [-w0 * w0, -2.0 * spool.damping * w0]]) * h
    # in units of w0, so that both entries are of one size
    scale = np.diag([w0, 1.0])
    a = scale @ a @ np.linalg.inv(scale)
    halvings = max(0, math.ceil(math.log2(max(float(np.linalg.norm(a)), 1e-300))) + 4)
    a = a / 2.0**halvings
    total, term = np.eye(2), np.eye(2)
    for k in range(1, 15):
        term = term @ a / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return [float(x) for x in (np.linalg.inv(scale) @ total @ scale).ravel()]


def make_hydraulics(planned: PlannedHydraulics, n_sig: int) -> kernel.Hydraulics:
    """The tick's tables."""
    made = kernel.Hydraulics(
        n_sig,
        planned.first_slot,
        len(planned.solenoids),
        len(planned.valves),
        len(planned.circuits),
        len(planned.paths),
    )
    made.set_unit(**planned.unit)
    for setter, parts in (
        (made.set_solenoid, planned.solenoids),
        (made.set_valve, planned.valves),
        (made.set_circuit, planned.circuits),
        (made.set_path, planned.paths),
    ):
        for k, part in enumerate(parts):
            setter(k, **part)
    return made


class HydraulicUnit(Device[HydraulicsTables]):
    """Signals hydraulics.line ..., hydraulics.SOLENOID.i, hydraulics.CIRCUIT.p ..."""

    TABLES = HydraulicsTables
    GROUPS = ("hydraulics",)
    #: the file of the unit; None: the rig has none
    unit: HydraulicsConfig | None = None

    def signals(self) -> None:
        given = self.given.hydraulics
        if given is None:
            return
        try:
            file = relative(self.rig.path, given.file, "hydraulics")
        except ConfigError as error:
            raise error.located(file=self.file, table="hydraulics", key="file") from None
        self.unit = load_hydraulics(file)
        self.first_slot = add_signals(self.table, self.unit)
        for name in dict.fromkeys(fault.solenoid for fault in faults_of(self.rig.config)):
            if name in self.unit.solenoid:
                self.table.add(command_signal(str(name)), "A")

    def commands_of_one_circuit(self) -> set[str]:
        """Signals of solenoids whose pressure goes to one shift element and nowhere else."""
        if self.given.hydraulics is None or self.unit is None:
            return set()
        links = self.given.hydraulics.solenoids
        return {links[name].signal for name in self.unit.of_one_circuit() if name in links}

    def plan(self) -> None:
        if self.given.hydraulics is not None and self.unit is not None:
            self.planned = plan_hydraulics(
                self.table, self.given.hydraulics, self.unit, self.first_slot, self.tick_s, self.file
            )

    def make(self, tick: Rig, received: Sequence[RxState]) -> None:
        if self.unit is not None:
            tick.set_hydraulics(make_hydraulics(self.planned, len(self.table)))
            tick.set_commands(self.planned.commands)
