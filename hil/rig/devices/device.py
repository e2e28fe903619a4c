"""A checked rig as data, and the devices it is made of: what the rest of a rig works from. Names are slots here.

A device is a kind of thing in a rig: a hydraulic unit, controllers, sensors, faults. One class says everything about
it: the tables of the rig file, the signals, what its tables refer to, and what it does in the tick. The class is
registered once: ours in `hil/common/plugins.py`, others as an entry point "torqueloop.devices" of their package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError
from torqueloop.cython_kernels.can.codec import CodecTables, RxState
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.cython_kernels.tick.send_rows import SendRow
from torqueloop.cython_kernels.tick.vehicle_rows import VehicleRows
from torqueloop.hil.can.database import CanDatabase, SignalInfo
from torqueloop.hil.can.known import Known, doubts
from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.link.carriers import Carriers
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.rig.devices.signals import SignalTable
from torqueloop.hil.rig.schema.participants import Bus, Ecu
from torqueloop.hil.rig.schema.rig_file import RigConfig

#: sig[dst] = gain * sig[src] + offset, as (src, dst, gain, offset)
Copy = tuple[int, int, float, float]
#: place of a received message: number of the bus, index in its codec
Message = tuple[int, int]
Tables = TypeVar("Tables", bound=ConfigTable)
AnyDevice = TypeVar("AnyDevice", bound="Device[Any]")


@dataclass
class BusPlan:
    """One bus: what the tick receives and sends on it."""

    name: str
    #: its number in the tick
    number: int
    config: Bus
    database: CanDatabase
    #: the database's codec, on the slots of the rig's signal table
    codec: CodecTables
    #: slot of the first signal of the database; the others follow
    first_slot: int
    #: messages that must come (indices in the codec)
    required: list[int] = field(default_factory=list)
    #: messages sent: index, period, offset [ticks]
    send: list[tuple[int, int, int]] = field(default_factory=list)
    #: messages sent on a change or event
    events: list[SendRow] = field(default_factory=list)
    #: slot of the first of BUS_SIGNALS; 0: not native, it has none
    state_slot: int = 0
    #: identifiers of the frames that only fill the bus
    filler_ids: list[int] = field(default_factory=list)
    #: how its messages are known, by the interface file of a maker's bus; empty: nothing is said
    known: dict[str, Known] = field(default_factory=dict)

    @property
    def own_ids(self) -> frozenset[int]:
        """Identifiers the rig sends, bit 31 set for 29-bit ones."""
        return self.database.own_ids | set(self.filler_ids)

    def slot(self, signal: SignalInfo) -> int:
        """Slot of a signal of the database."""
        return self.first_slot + signal.slot

    @property
    def doubts(self) -> list[str]:
        """A line for each message of this bus that is assumed, contradicted or not public."""
        sent = (m.name for m in self.database.tx_messages)
        return doubts(self.known, dict.fromkeys((*self.known, *sent))) if self.known else []

    @property
    def place(self) -> str:
        """Where it is, for messages: "udp_multicast 239.74.163.2"."""
        return f"{self.config.interface} {self.config.channel}"


@dataclass(frozen=True)
class UnitPlan:
    """One control unit: where it is and what reaches it without a bus between."""

    name: str
    config: Ecu
    #: names of its buses, in the order it counts them
    buses: tuple[str, ...]
    #: slots and units of its sensors
    sensors: tuple[tuple[str, int, str], ...] = ()
    #: names and units of its actuators, whose signals stand in consecutive slots
    actuators: tuple[tuple[str, str], ...] = ()
    actuator_slot: int = 0


@dataclass(frozen=True, kw_only=True)
class VehiclePlan(VehicleRows):
    """The vehicle link: what the tick needs of it, and what its participant receives."""

    #: ticks between two exchanges
    every: int
    #: mass of the car [kg]
    mass_kg: float
    #: bodies whose motion it gives: first slot of their signals vehicle.NAME.*
    carriers: Carriers = Carriers()
    motion_slot: int = 0


@dataclass(frozen=True)
class PlannedGuard:
    """Limits of one sent signal, SI."""

    name: str
    slot: int
    lo: float
    hi: float
    #: half a step of the codec: what it rounds back into the range is not outside
    tol: float
    #: per second; 0: any
    slew: float
    safe: bool


@dataclass
class RigPlan:
    """A checked rig: names resolved to slots, nothing started."""

    path: Path
    config: RigConfig
    driveline: Driveline
    compiled: CompiledModel
    table: SignalTable
    in_slot: int = 0
    out_slot: int = 0
    buses: list[BusPlan] = field(default_factory=list)
    units: list[UnitPlan] = field(default_factory=list)
    vehicle: VehiclePlan | None = None
    in_copies: list[Copy] = field(default_factory=list)
    out_copies: list[Copy] = field(default_factory=list)
    drivers: list[tuple[int, list[float], list[float]]] = field(default_factory=list)
    #: one of each kind, whether the rig file has a table of it or not
    devices: list[Device[Any]] = field(default_factory=list)
    limits: list[tuple[int, float, float]] = field(default_factory=list)
    limit_names: list[str] = field(default_factory=list)
    reactions: list[tuple[int, float, float]] = field(default_factory=list)
    guards: list[PlannedGuard] = field(default_factory=list)
    #: what a drive is held to
    monitors: MonitorSpec = MonitorSpec()
    #: slot of the first signal of the monitors; 0: there is no gearbox to look at
    monitor_slot: int = 0
    #: names and slots of the recorded signals
    recorded: list[tuple[str, int]] = field(default_factory=list)

    @property
    def period_ns(self) -> int:
        """Period of the tick in ns."""
        return round(self.config.clock.tick_s * 1e9)

    def device(self, kind: type[AnyDevice]) -> AnyDevice:
        """The device of a kind."""
        return next(device for device in self.devices if isinstance(device, kind))

    def bus(self, name: str) -> BusPlan:
        """A bus by its name."""
        return next(bus for bus in self.buses if bus.name == name)

    def on_bus(self, slot: int) -> tuple[BusPlan, SignalInfo] | None:
        """The bus and signal of a slot; None: it is on no bus."""
        for bus in self.buses:
            if 0 <= slot - bus.first_slot < len(bus.database.signals):
                return bus, bus.database.signals[slot - bus.first_slot]
        return None

    def received(self, slot: int) -> Message | None:
        """The received message that a signal comes in; None: it comes in none."""
        found = self.on_bus(slot)
        if found is None or not found[1].receive:
            return None
        return found[0].number, found[0].database.message_index(found[1].message)

    def in_range(self, name: str, value: float, table: str, key: str) -> float:
        """The value of a model input; RangeError outside the range that the input's law is made for."""
        low, high = self.compiled.parts.input_ranges.get(name, (-math.inf, math.inf))
        if not low <= value <= high:
            raise RangeError(f"{{key}}: {name} = {{value}} is out of range", file=str(self.path), table=table, key=key,
                             value=value, allowed=f"{low:g} .. {high:g}")  # fmt: skip
        return value

    def started_units(self) -> Sequence[UnitPlan]:
        """Control units that the rig starts."""
        return [unit for unit in self.units if unit.config.started]

    def cause_name(self, cause: dict[str, Any]) -> str:
        """What the detail of a safe-state cause refers to."""
        kind, detail, number = str(cause["cause"]), int(cause["detail"]), int(cause["bus"])
        if 0 <= number < len(self.buses):
            bus = self.buses[number]
            if kind == "bus":
                return bus.name
            name = bus.database.messages[detail].name
            return name if len(self.buses) == 1 else f"{bus.name}.{name}"
        if kind == "limit" and detail < len(self.limit_names):
            return self.limit_names[detail]
        if kind == "output" and detail < len(self.guards):
            return self.guards[detail].name
        if kind == "not_finite" and 1 < detail < len(self.table):
            return self.table.names[detail]
        if kind == "not_finite":
            return "state"
        return next((text for device in self.devices if (text := device.cause(kind, detail))), "")


class Device(Generic[Tables]):
    """One kind of device in one rig. The methods are called in this order, for all devices before the next method.

    A mistake in the rig file raises a ConfigError with its file, table and key.
    """

    #: model with the keys that the rig file has for this device, and with their defaults
    TABLES: ClassVar[type[ConfigTable]]
    #: first parts of the names of its signals: no bus and no control unit may have such a name
    GROUPS: ClassVar[tuple[str, ...]] = ()
    #: it changes what other devices have planned, and is planned after them
    LAST: ClassVar[bool] = False

    def __init__(self, rig: RigPlan) -> None:
        self.rig = rig
        self.table: SignalTable = rig.table
        self.file: str = str(rig.path)
        self.tick_s: float = rig.config.clock.tick_s
        self.given: Tables = self.tables_of(rig.config)

    @classmethod
    def tables_of(cls, config: RigConfig) -> Tables:
        """The tables of this kind in a rig file."""
        return cast(Tables, config)

    def signals(self) -> None:
        """Add the signals of the device to the signal table, with their units and start values."""

    def plan(self) -> None:
        """Resolve the names in its tables to slots. All signals are in the table."""

    def make(self, tick: Rig, received: Sequence[RxState]) -> Any:
        """Give the tick its part of the device, made anew for each rig that is assembled. received: what each bus has
        received. Returns what the running rig needs of it (RigParts.made)."""

    def cause(self, kind: str, detail: int) -> str:
        """What the detail of a cause of the safe state is in words, where the cause is one of this kind of device."""
        return ""

    def read_slot(self, name: str, table: str, key: str, unit: str | None = None) -> int:
        """Slot of a signal that the device reads, which must be in `unit` (None: in any)."""
        return self.table.read_slot(name, unit, self.file, table, key)
