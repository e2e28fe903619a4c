"""Statistics of a run as the report takes them: written once a second to run.json and at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.simulate.remarks import oscillations
from torqueloop.cython_kernels.clock.account import PHASES, Account
from torqueloop.cython_kernels.clock.histogram import Histogram
from torqueloop.cython_kernels.tick.io import IoDevices
from torqueloop.hil.can.known import WORDS as KNOWN_WORDS
from torqueloop.hil.can.known import Known, source_text
from torqueloop.hil.can.multicast import LOOPBACK
from torqueloop.hil.results.clock import ClockStats, Grace, Margin, Timing, WorstTick, WorstTicks
from torqueloop.hil.results.links import (
    BusStats,
    ControlStats,
    GatewayStats,
    Interface,
    IoStats,
    KnownMessage,
    LinkStats,
    NativeStats,
    ParticipantStats,
    RxMessage,
    TelemetryStats,
    TxMessage,
    VehicleStats,
)
from torqueloop.hil.results.run import (
    EnergyStats,
    FirstFaultStats,
    RunStats,
    SafeState,
    SolverStats,
    StreamStats,
)
from torqueloop.hil.rig.assemble.parts import STORED, BusParts, RigParts
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.resolve.plan import RigPlan
from torqueloop.hil.rig.schema.participants import Bus

#: last part of an energy output's name -> its place in the balance (components' outputs, see core/components)
_LOST = ("heat", "loss")
#: what the kernel counts for the loop's thread, from arming on
USAGE = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
#: name of the vehicle of a rig that has one
VEHICLE = "vehicle"


@dataclass(frozen=True)
class Links:
    """What the links of a live run have counted so far, beside the tick."""

    gateways: Mapping[str, GatewayStats] = field(default_factory=dict)
    interfaces: Mapping[str, Interface] = field(default_factory=dict)
    #: by bus: our message that somebody else has sent, in words
    foreign: Mapping[str, str] = field(default_factory=dict)
    vehicles: Mapping[str, LinkStats] = field(default_factory=dict)
    participants: Mapping[str, ParticipantStats] = field(default_factory=dict)
    control: ControlStats | None = None
    telemetry: TelemetryStats | None = None
    recording: Mapping[str, StreamStats] = field(default_factory=dict)
    first_fault: FirstFaultStats | None = None


class Energy:
    """Change of the model's energy outputs since arming, sorted for the balance."""

    def __init__(self, plan: RigPlan, parts: RigParts) -> None:
        names = [n for n, u in zip(plan.compiled.output_names, plan.compiled.output_units, strict=True) if u == "J"]
        self._names, self._slots, self._rig = names, [plan.table.slot(n) for n in names], parts.rig
        self._control = parts.control
        self._start = dict(zip(plan.compiled.output_names, parts.model.outputs(parts.state), strict=True))

    def balance(self) -> EnergyStats:
        """The change so far."""
        found = EnergyStats()
        for name, value in zip(self._names, self._rig.values(self._slots), strict=True):
            lost = name.rpartition(".")[2] in _LOST
            terms = found.stored if name in STORED else found.lost if lost else found.supplied
            terms[name] = value - float(self._start[name])
        if work := self._control.work:
            found.supplied["changes of parameters"] = work
        return found


def run_stats(
    plan: RigPlan,
    parts: RigParts,
    energy: Energy,
    links: Links,
    degraded: Sequence[str] = (),
    note: str = "",
    real: bool = True,
    took_s: float | None = None,
    whole: bool = True,
) -> RunStats:
    """All numbers of the run so far. Called while the loop runs: single values are exact, sums may be one tick apart.
    took_s: wall time since arming. whole: with the histograms of the phases and the worst ticks."""
    counters = parts.rig.counters()
    limited = zip(plan.guards, parts.safety.guard_counts(), strict=True)
    return RunStats(
        clock=_clock(plan, parts, counters, real, took_s, whole),
        buses=_buses(plan, parts, links),
        vehicles=_vehicles(plan, counters, links),
        participants=dict(links.participants),
        io=_io(plan, parts),
        control=links.control,
        telemetry=links.telemetry,
        recording=dict(links.recording),
        safe_state=_safe_state(plan, parts, note),
        first_fault=links.first_fault,
        faults=parts.faults.stats(plan.config.clock.tick_s),
        outputs_limited={guard.name: ticks for guard, ticks in limited if ticks},
        degraded=list(degraded),
        solver=SolverStats(**parts.state.counters),
        remarks=_remarks(plan, counters["ticks"]) if whole else [],
        energy=energy.balance(),
        kernel=parts.model.kernel_name,
        hash=f"{parts.rig.state_hash:016x}",
    )


def _remarks(plan: RigPlan, ticks: int) -> list[str]:
    """Springs that the steps do not resolve."""
    steps = plan.config.clock.substeps
    return [str(remark) for remark in oscillations(plan.compiled, plan.config.clock.tick_s / steps, ticks * steps)]


def _clock(
    plan: RigPlan, parts: RigParts, counters: dict[str, Any], real: bool, took_s: float | None, whole: bool
) -> ClockStats:
    clock, account = plan.config.clock, parts.rig.account
    grace = Grace(**counters["grace"])
    simulated_s = counters["ticks"] * parts.rig.tick_s
    return ClockStats(
        ticks=counters["ticks"],
        missed=counters["missed"],
        late_started=counters["late_started"],
        dropped=counters["dropped"],
        missed_ratio=counters["missed"] / max(1, counters["grid_points"] - grace.ticks - grace.dropped),
        overruns=counters["overruns"],
        overruns_in_row_max=counters["overruns_in_row_max"],
        lost_time_s=counters["lost_time_s"],
        compute_us=Timing(**account.compute.summary()),
        phase_us=_phases(account) if whole else {},
        worst=_worst(account) if whole else WorstTicks(),
        run_s=took_s,
        real_time_factor=None if took_s is None else simulated_s / took_s if took_s > 0 else 0.0,
        policy=clock.policy,
        max_catch_up=clock.max_catch_up,
        grace_s=clock.grace_s,
        spin_us=clock.spin_us,
        **(_deadlines(account, counters, grace) if real else {}),
    )


def _deadlines(account: Account, counters: dict[str, Any], grace: Grace) -> dict[str, Any]:
    """What only a run with deadlines has."""
    return {
        "margin_min_us": counters["margin_min_us"],
        "wake_lateness_us": Timing(**account.lateness.summary()),
        "margin_us": margin(account.margin),
        "grace": grace,
        **{name: counters[name] for name in USAGE},
    }


def margin(histogram: Histogram) -> Margin:
    """A histogram of margins: the small ones matter, they are at its lower end."""
    return Margin(**histogram.summary(), p1=histogram.percentile(1.0) / 1e3, p0_1=histogram.percentile(0.1) / 1e3)


def _phases(account: Account) -> dict[str, Timing]:
    return {name: Timing(**h.summary()) for name, h in zip(PHASES, account.phases, strict=True)}


def _worst(account: Account) -> WorstTicks:
    return WorstTicks(**{key: [WorstTick(**entry) for entry in found] for key, found in account.worst().items()})


def _buses(plan: RigPlan, parts: RigParts, links: Links) -> dict[str, BusStats]:
    known = {bus.name: {n: _known(k) for n, k in bus.known.items()} for bus in plan.buses}
    found = {bus.name: _bus(bus, parts.rig.bus_counters(bus.number), links, known[bus.name]) for bus in parts.buses}
    sockets = {name for name, bus in found.items() if bus.gateway is not None}
    return {name: replace(bus, unheard=_unheard(plan.bus(name).config)) if name in sockets else bus
            for name, bus in found.items()}  # fmt: skip


def _unheard(bus: Bus) -> str:
    """A software bus on the loopback interface does not receive what python-can sends to its group by default."""
    if bus.interface != "udp_multicast" or bus.local_address != LOOPBACK:
        return ""
    remedy = 'the rig receives them with local_address = "0.0.0.0"'
    return f"programs that send to {bus.channel} by the default route; {remedy}"


def _known(known: Known) -> KnownMessage:
    notes = [f"{name}: {KNOWN_WORDS[of]}" for name, of in known.signals.items()] + ([known.log] if known.log else [])
    layout, period, protection = (KNOWN_WORDS[of] for of in (known.layout, known.period, known.protection))
    return KnownMessage(layout, period, protection, "; ".join(notes), source_text(known.source))


def _bus(bus: BusParts, counters: dict[str, int], links: Links, known: dict[str, KnownMessage]) -> BusStats:
    return BusStats(
        rx={name: _received(count) for name, count in bus.rx.counters().items()},
        tx={name: TxMessage(**count) for name, count in bus.tx.counters().items()},
        rx_frames=counters["rx_frames"],
        rx_bad=counters["rx_bad"],
        tx_frames=counters["tx_frames"],
        tx_dropped=counters["tx_dropped"],
        rx_ring_dropped=counters["rx_ring_dropped"],
        known=known,
        foreign=links.foreign.get(bus.name, ""),
        gateway=links.gateways.get(bus.name),
        native=native(bus.port.counters()) if bus.port is not None else None,
        interface=links.interfaces.get(bus.name),
    )


def _received(counters: dict[str, Any]) -> RxMessage:
    return RxMessage(**counters)


def native(counters: dict[str, Any]) -> NativeStats:
    """Counters of a native port."""
    times = {key: Timing(**counters[key]) for key in ("receive_latency_us", "send_latency_us")}
    return NativeStats(**{**counters, **times})


def _vehicles(plan: RigPlan, counters: dict[str, Any], links: Links) -> dict[str, VehicleStats]:
    if plan.vehicle is None:
        return {}
    taken = {
        key: counters[f"vehicle_{key}"] for key in ("taken", "refused", "stale_ticks", "age_max_ms", "echo_max_ticks")
    }
    return {VEHICLE: VehicleStats(**taken, link=links.vehicles.get(VEHICLE))}


def _io(plan: RigPlan, parts: RigParts) -> dict[str, IoStats]:
    made: IoDevices | None = parts.made[IoCards]
    found = {}
    for k, name in enumerate(plan.device(IoCards).given.io if made is not None else ()):
        assert made is not None
        counted = made.counters(k)
        times = {key: Timing(**counted[key]) for key in ("read_us", "write_us") if counted[key]["count"]}
        found[name] = IoStats(**{**counted, "read_us": None, "write_us": None, **times})
    return found


def _safe_state(plan: RigPlan, parts: RigParts, note: str) -> SafeState:
    cause = parts.rig.cause()
    text = describe(cause, plan.cause_name(cause))
    if note and cause["cause"] in ("thread", "vehicle_data", "bus"):
        text = f"{note} (tick {cause['tick']})"
    elif note and cause["cause"] in ("tcu_silent", "vehicle_silent") and "the rig itself" in note:
        # nobody else is to blame for what nobody could hear
        text = f"{note}: {text}"
    latched = cause["latched"]
    return SafeState(latched, text if latched else "", cause["cause"], cause["tick"], cause["frozen"])
