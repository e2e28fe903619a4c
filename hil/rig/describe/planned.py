"""A checked rig as data: what `plan` makes of a rig file, and everything else works from. Names are slots here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.driveline import Driveline
from torqueloop.cython_kernels.can.codec import CodecTables
from torqueloop.cython_kernels.tick.fault_rows import FaultRow
from torqueloop.cython_kernels.tick.send_rows import SendRow
from torqueloop.hil.can.database import CanDatabase, SignalInfo
from torqueloop.hil.can.known import Known, doubts
from torqueloop.hil.link.carriers import Carriers
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.rig.describe.config import RigConfig
from torqueloop.hil.rig.describe.controller_plan import PlannedController
from torqueloop.hil.rig.describe.device_plan import PlannedDevices
from torqueloop.hil.rig.describe.fault_tables import Fault
from torqueloop.hil.rig.describe.hydraulic_plan import PlannedHydraulics
from torqueloop.hil.rig.describe.peer_tables import Bus, Ecu
from torqueloop.hil.rig.describe.signals import SignalTable
from torqueloop.hil.rig.describe.steps import PlannedSteps

#: sig[dst] = gain * sig[src] + offset, as (src, dst, gain, offset)
Copy = tuple[int, int, float, float]


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


@dataclass(frozen=True)
class VehiclePlan:
    """The vehicle link of the tick: slots, and the sums that give the impulse of the tractive force."""

    #: slot of the first signal of VEHICLE_SLOT
    first_slot: int
    #: which of them is ramped to 0 when the vehicle is silent
    ramped: int
    #: ticks between two exchanges
    every: int
    age_limit_s: float
    hold_s: float
    ramp_s: float
    refuse_limit: int
    #: mass of the car [kg]
    mass_kg: float
    momentum: tuple[Copy, ...]
    force: tuple[Copy, ...]
    impulse_slot: int
    force_slot: int
    speed_slot: int
    distance_slot: int
    brake_slot: int
    #: bodies whose motion it gives: first slot of their signals vehicle.NAME.*, slots of the moments it is told
    carriers: Carriers = Carriers()
    motion_slot: int = 0
    moment_slots: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedFault:
    """One entry of [[faults]] and the rows it became: one for each model input that takes the signal, each message of a
    node."""

    spec: Fault
    name: str
    rows: tuple[FaultRow, ...]

    @property
    def target(self) -> str:
        """What it acts on."""
        return self.spec.target


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
    in_slot: int
    out_slot: int
    buses: list[BusPlan] = field(default_factory=list)
    units: list[UnitPlan] = field(default_factory=list)
    vehicle: VehiclePlan | None = None
    in_copies: list[Copy] = field(default_factory=list)
    out_copies: list[Copy] = field(default_factory=list)
    drivers: list[tuple[int, list[float], list[float]]] = field(default_factory=list)
    #: None: there are none
    steps: PlannedSteps | None = None
    #: None: pressures come as such
    hydraulics: PlannedHydraulics | None = None
    #: in the order they are called
    controllers: list[PlannedController] = field(default_factory=list)
    #: engine control and sensors
    devices: PlannedDevices | None = None
    limits: list[tuple[int, float, float]] = field(default_factory=list)
    limit_names: list[str] = field(default_factory=list)
    reactions: list[tuple[int, float, float]] = field(default_factory=list)
    faults: list[PlannedFault] = field(default_factory=list)
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

    def bus(self, name: str) -> BusPlan:
        """A bus by its name."""
        return next(bus for bus in self.buses if bus.name == name)

    def on_bus(self, slot: int) -> tuple[BusPlan, SignalInfo] | None:
        """The bus and signal of a slot; None: it is on no bus."""
        for bus in self.buses:
            if 0 <= slot - bus.first_slot < len(bus.database.signals):
                return bus, bus.database.signals[slot - bus.first_slot]
        return None

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
        return "state" if kind == "not_finite" else ""
