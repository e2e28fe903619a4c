"""A checked plan -> the rig with its kernel, rings and slots: all memory of a run, allocated in one place."""

from __future__ import annotations

from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.simulate.offline import make_kernel
from torqueloop.cython_kernels.can.codec import RxState, TxState
from torqueloop.cython_kernels.can.socketcan import NativePort
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.rings.ring import DataRing, FrameRing, LatestSlot
from torqueloop.cython_kernels.tick.control import Control
from torqueloop.cython_kernels.tick.first_fault import FirstFault
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.cython_kernels.tick.safety import Safety
from torqueloop.cython_kernels.tick.sending import Sendings
from torqueloop.hil.ecu.pins import Pins
from torqueloop.hil.link.carriers import Carriers
from torqueloop.hil.monitors.engine import make_monitors
from torqueloop.hil.rig.devices.device import BusPlan, Device, RigPlan
from torqueloop.hil.rig.devices.faults import FaultInjection
from torqueloop.hil.rig.devices.injected import Faults
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.devices.units import ControlUnits
from torqueloop.hil.rig.devices.vehicle import VehicleLink, VehicleSlots

#: outputs of the model that are stored energy
STORED = ("energy.kinetic", "energy.potential")
#: frames waiting for the tick or for the bus; 1 s of a fully loaded 500 kbit/s bus is about 4000
_FRAMES = 4096
#: memory for the ticks around the first fault [bytes]
FIRST_FAULT_BYTES = 256 << 20


@dataclass
class BusParts:
    """One bus of a rig and the ends of its links."""

    #: its number in the tick
    number: int
    name: str
    rx: RxState
    tx: TxState
    #: gateway -> tick, tick -> gateway
    rx_ring: FrameRing
    tx_ring: FrameRing
    #: the tick's own CAN socket; None: frames go through the rings
    port: NativePort | None = None


@dataclass
class RigParts:
    """A rig ready to run and the ends of its links. Memory is allocated here, and nowhere later."""

    rig: Rig
    model: KernelModel
    state: KernelState
    #: in the order of the plan's
    buses: list[BusParts]
    #: sensors and actuators that no bus carries, by control unit
    pins: dict[str, Pins]
    #: vehicle -> tick, tick -> vehicle
    vehicle_in: LatestSlot
    vehicle_out: LatestSlot
    samples: DataRing
    inputs: DataRing
    #: frames of all buses
    bus_log: DataRing
    modes: DataRing
    #: limits of what is sent
    safety: Safety
    #: what each kind of device has made for the running rig
    made: dict[type[Device[Any]], Any]
    #: control channel -> tick
    control: Control
    #: the last ticks, for when a fault comes
    first_fault: FirstFault
    #: bodies whose motion the vehicle gives, and where it goes; None: there are none
    carriers: Carriers = Carriers()
    carrier_in: LatestSlot | None = None

    @property
    def faults(self) -> Faults:
        """The faults, to be switched and looked at."""
        faults: Faults = self.made[FaultInjection]
        return faults

    def bus(self, name: str) -> BusParts:
        """A bus by its name."""
        return next(bus for bus in self.buses if bus.name == name)


def build(plan: RigPlan, duration_s: float | None = None, kernel: str = "auto", buffer_s: float = 4.0) -> RigParts:
    """Make kernel, rings and rig of a plan. `buffer_s`: how long the recorder may be away before samples are lost."""
    c = plan.config
    model = make_kernel(plan.compiled, c.clock.tick_s / c.clock.substeps, kernel)
    state = KernelState(model)
    ratios = {name: plan.table.slot(f"input.{name}") for name in plan.compiled.ratio_inputs}
    if ratios:
        initial = plan.table.initial
        state.u = plan.compiled.start_speeds({n: initial[slot] for n, slot in ratios.items() if slot in initial})
    rig = Rig(len(plan.table), c.clock.tick_s)
    rig.set_initial(plan.table.initial)
    rig.set_rig_slots(*(plan.table.slot(f"rig.{n}") for n in ("time", "tick", "status", "cause")))
    rig.set_model(model, state, plan.in_slot, plan.out_slot, c.clock.substeps)
    rig.set_wiring(plan.in_copies, plan.out_copies, plan.drivers)
    buses = [_bus(rig, bus) for bus in plan.buses]
    made = {type(device): device.make(rig, [bus.rx for bus in buses]) for device in plan.devices}
    if plan.monitor_slot:
        rig.set_monitors(
            make_monitors(plan.monitors, plan.table.slot, len(plan.table), plan.monitor_slot, c.clock.tick_s)
        )
    per_s = buffer_s / c.clock.tick_s
    vehicle: VehicleSlots = made[VehicleLink]
    parts = RigParts(
        rig,
        model,
        state,
        buses,
        made[ControlUnits],
        vehicle.received,
        vehicle.sent,
        DataRing(int(per_s * (48 + 8 * len(plan.recorded)))),
        DataRing(int(per_s * (256 * max(1, len(plan.buses)) + _io_bytes(plan)))),
        DataRing(int(buffer_s * 4000 * 32) * max(1, len(plan.buses))),
        DataRing(1 << 18),
        _safety(plan),
        made,
        Control(),
        _first_fault(plan),
        vehicle.carriers,
        vehicle.motion,
    )
    parts.control.set_stored([k for k, name in enumerate(plan.compiled.output_names) if name in STORED])
    rig.set_control(parts.control)
    rig.set_safety(parts.safety)
    stop_after = c.safe_state.stop_after_s
    rig.set_safe_state(plan.reactions, plan.limits, round(stop_after / c.clock.tick_s) if stop_after >= 0 else -1)
    n_ticks = round((duration_s if duration_s is not None else c.rig.duration_s) / c.clock.tick_s)
    rig.set_clock(
        c.clock.policy,
        c.clock.max_catch_up,
        c.safe_state.overrun_limit,
        n_ticks,
        round(c.clock.grace_s / c.clock.tick_s),
        c.clock.spin_us,
    )
    rig.set_record(
        [slot for _, slot in plan.recorded],
        parts.samples,
        parts.inputs if c.record.inputs else None,
        parts.bus_log if c.record.bus and plan.buses else None,
        parts.modes,
        c.record.every,
    )
    rig.set_first_fault(parts.first_fault)
    return parts


def _io_bytes(plan: RigPlan) -> int:
    """Input record of a tick in which all inputs of all I/O devices have changed."""
    return sum(24 + 8 * len(io.inputs) for io in plan.device(IoCards).given.io.values())


def _bus(rig: Rig, plan: BusPlan) -> BusParts:
    rx, tx, rx_ring, tx_ring = RxState(plan.codec), TxState(plan.codec), FrameRing(_FRAMES), FrameRing(_FRAMES)
    number = rig.add_bus(plan.codec, rx, tx, rx_ring, tx_ring, plan.required, plan.send, plan.config.tx_drop_limit)
    if plan.events:
        rig.set_sendings(number, Sendings(plan.codec.n_slots, plan.events))
    parts = BusParts(number, plan.name, rx, tx, rx_ring, tx_ring)
    if plan.state_slot:
        parts.port = NativePort(plan.own_ids)
        rig.set_port(number, parts.port, plan.state_slot, plan.config.bus_down_limit_s)
    return parts


def _safety(plan: RigPlan) -> Safety:
    made = Safety(len(plan.table), plan.config.clock.tick_s)
    made.set_guards([(g.slot, g.lo, g.hi, g.tol, g.slew, g.safe) for g in plan.guards])
    made.set_solver_limit(plan.config.safe_state.solver_limit)
    return made


def _first_fault(plan: RigPlan) -> FirstFault:
    safe, tick_s = plan.config.safe_state, plan.config.clock.tick_s
    before, after = (round(s / tick_s) for s in (safe.first_fault_before_s, safe.first_fault_after_s))
    size = (before + 1 + after) * (48 + 8 * len(plan.recorded))
    if size > FIRST_FAULT_BYTES:
        raise RangeError(
            f"{{key}} = {{value}} s: {before + 1 + after} ticks of {len(plan.recorded)} signals are {size >> 20} MiB",
            file=str(plan.path),
            table="safe_state",
            key="first_fault_before_s",
            value=safe.first_fault_before_s,
            allowed=f"{FIRST_FAULT_BYTES >> 20} MiB together with first_fault_after_s; or fewer signals in [record]",
        )
    return FirstFault(len(plan.recorded), before, after)
