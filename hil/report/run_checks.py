"""What every run is held to, gate or not. A check that does not count is worth knowing and changes no exit status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.report.collect import OTHER_STREAMS, SIGNALS, Run
from torqueloop.hil.report.energy import EnergyBalance
from torqueloop.hil.results.links import BusStats, ParticipantStats, VehicleStats
from torqueloop.hil.results.run import RunStats

#: The energy balance must close to this part of the energy turned over. [1]
ENERGY_RESIDUAL_MAX = 1e-6
#: With more of it open the run fails: what it shows is not the motion of its model. [1]
ENERGY_OPEN_MAX = 1e-2
#: Messages of a peer, or frames, may be lost up to this part of all: a loaded desktop loses a few, and the link is made
#: for that. More is a peer that does not keep to the protocol, or a link that is no link. [1]
LOSS_MAX = 0.01
#: causes of the safe state behind which a machine may be that did not run the rig or a participant (docs/safe_state.md)
FROM_MACHINE = ("overruns", "missed", "tcu_silent", "vehicle_silent")
#: stream that holds the frames of all buses; bus.blf and the like are other forms of it
BUS_STREAM = "bus"

#: how the lines of Run.incomplete begin that are about what was recorded
RECORDED = (f"{SIGNALS}:", *(f"{name}:" for name in OTHER_STREAMS), "config/")


@dataclass(frozen=True)
class Check:
    """Something every run is held to, gate or not."""

    name: str
    passed: bool
    text: str
    #: False: worth knowing, does not change the exit status
    counts: bool = True
    #: it can fail because the machine did not run the rig, or a participant, for too long
    from_machine: bool = False


def check_run(run: Run, stats: RunStats, metrics: Mapping[str, Any], energy: EnergyBalance | None) -> list[Check]:
    """All checks of a run. stats: completed from the recording where the run left none."""
    found = [_ended(run), _safe_state(stats), *_recording(run, metrics), *_frames(run)]
    for name, bus in stats.buses.items():
        found += _bus(f" on {name}" if len(stats.buses) > 1 else "", bus)
    found += [_vehicle(name, v) for name, v in stats.vehicles.items() if v.link is not None]
    found += [_peer(name, peer, bool(stats.faults)) for name, peer in stats.participants.items()]
    found += [_undeclared(name, peer) for name, peer in stats.participants.items() if peer.undeclared]
    if energy is not None:
        closes = abs(energy.residual_rel) <= ENERGY_RESIDUAL_MAX
        text = f"residual {energy.residual_rel:.2e} of the energy turned over"
        fails = not abs(energy.residual_rel) <= ENERGY_OPEN_MAX
        found.append(Check("energy balance closes", closes, text, counts=fails))
    if run.info.clock == "real" and stats.clock.missed is not None:
        missed, lost_time_s = stats.clock.missed, stats.clock.lost_time_s or 0.0
        text = f"{missed} of {stats.clock.ticks} missed, {lost_time_s:g} s of simulated time lost" if missed else ""
        found.append(Check("every tick on time", not missed, text, counts=False))
    found.append(Check("real time not degraded", not stats.degraded, "; ".join(stats.degraded), counts=False))
    return found


def _ended(run: Run) -> Check:
    """The run came to the end it was started for."""
    own_end = run.info.over and run.info.state == "ended"
    text = ""
    if not run.info.over:
        text = run.incomplete[0]
    elif not own_end:
        planned, ticks = run.info.duration_s, run.stats.clock.ticks
        text = run.info.error or run.info.state
        text += f" after {ticks} ticks of a run of {planned:g} s" if ticks and planned else ""
    # A rig that the machine holds up still writes its end; one that wrote none was killed.
    return Check("the run ended by itself", own_end, text, from_machine=run.info.over)


def _safe_state(stats: RunStats) -> Check:
    safe = stats.safe_state
    text = f"latched at step {safe.step}: {safe.cause}" if safe.latched else ""
    return Check("no safe state", not safe.latched, text, from_machine=safe.kind in FROM_MACHINE)


def _recording(run: Run, metrics: Mapping[str, Any]) -> list[Check]:
    if run.signals is None:
        return [Check("signals recorded", False, "no signals were recorded")]
    rest = [line for line in run.incomplete if line.startswith(RECORDED)]
    for name, stream in run.stats.recording.items():
        if stream.cause:
            rest.append(f"{name}: {stream.cause}, {stream.discarded_bytes} bytes not recorded")
        if stream.lost_records:
            rest.append(f"{name}: {stream.lost_records} records lost, because the recorder did not run for too long")
    finite = bool(metrics.get("finite"))
    return [
        Check("recording without gaps", not rest, "; ".join(rest)),
        Check("all recorded numbers finite", finite, "" if finite else "NaN or infinity recorded"),
    ]


def _frames(run: Run) -> list[Check]:
    """As many frames in the log of the buses, and in each of its other forms, as the ticks have counted."""
    logs = {name: s.records for name, s in run.stats.recording.items() if name.partition(".")[0] == BUS_STREAM}
    if not run.info.over or run.info.state != "ended" or not any(n is not None for n in logs.values()):
        return []
    buses = run.stats.buses.values()
    least = sum(bus.rx_frames + bus.tx_frames for bus in buses)
    # the socket's own: they are in the log, and in no signal
    most = least + sum(bus.native.error_frames + bus.native.foreign_frames for bus in buses if bus.native is not None)
    wrong = [f"{name}: {n} of {least}" for name, n in logs.items() if n is not None and not least <= n <= most]
    return [Check("all frames of the buses recorded", not wrong, "; ".join(wrong))]


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items() if n)


def _is_loss(lost: int, of: int) -> bool:
    """More than what a loaded machine loses."""
    return lost > LOSS_MAX * max(1, of)


def _bus(where: str, bus: BusStats) -> list[Check]:
    """Others on the bus that send what is ours, and frames that were lost or refused."""
    found = []
    if bus.gateway is not None or bus.native is not None:
        foreign = bus.foreign_frames
        text = (
            f"{foreign} frames of another sender, first {bus.foreign}: is a second rig on this bus?" if foreign else ""
        )
        if bus.unheard and not foreign:
            text = f"not received: {bus.unheard}"
        found.append(Check(f"nobody else sends our CAN messages{where}", not foreign, text))
    lost = {"rx_ring_dropped": bus.rx_ring_dropped, "tx_dropped": bus.tx_dropped}
    if bus.gateway is not None:
        g = bus.gateway
        lost |= {"rx_dropped": g.rx_dropped, "kernel_drops": g.kernel_drops, "tx_failed": g.tx_failed}
        lost |= {"rx_failed": g.rx_failed}
    if bus.native is not None:
        lost |= bus.native.lost
    total, of = sum(lost.values()), bus.rx_frames + bus.tx_frames
    found.append(
        Check(f"no frame lost between tick and bus{where}", not total, _words(lost), _is_loss(total, of), True)
    )
    if bus.native is not None:
        worst, errors = bus.native.bus_state_worst, _words(bus.native.errors)
        text = f"worst state {worst}; error frames: {errors or 'none'}" if worst != "active" or errors else ""
        found.append(Check(f"CAN bus without errors{where}", not text, text, counts=False))
    missing = {name: m.lost for name, m in bus.rx.items() if m.lost}
    total, of = sum(missing.values()), sum(m.ok + m.lost for m in bus.rx.values())
    text = f"missing between two counters: {_words(missing)}" if missing else ""
    found.append(Check(f"no frame of a control unit lost{where}", not missing, text, _is_loss(total, of), True))
    refused = ", ".join(f"{name} {_words(m.refused)}" for name, m in bus.rx.items() if m.refused)
    text = refused or (f"{bus.rx_bad} refused" if bus.rx_bad else "")
    found.append(Check(f"no received frame refused{where}", not text, text, counts=False))
    return found


def _vehicle(name: str, vehicle: VehicleStats) -> Check:
    """Answers of the vehicle model that were lost, refused, or came twice or out of order."""
    link = vehicle.link
    assert link is not None
    wrong = {"lost": link.lost, "duplicate": link.duplicate, "out of order": link.out_of_order}
    wrong |= {f"refused ({why})": n for why, n in link.rejected.items()}
    wrong["refused by the tick"] = vehicle.refused
    total = sum(wrong.values())
    text = f"{_words(wrong)} in {link.gap} gaps, of {link.accepted + total} answers" if total else ""
    if link.lost > link.accepted:
        text += "; own_step numbers the answers of the vehicle model: 0, 1, 2 ... one more for each"
    return Check(f"no answer of the {name} lost", not total, text, _is_loss(total, link.accepted + total), True)


def _undeclared(name: str, peer: ParticipantStats) -> Check:
    """Frames of a control unit that its database does not have: the rig sends them and does not decode them."""
    text = f"{_words(peer.undeclared)}: add them to the database if they matter" if peer.undeclared else ""
    return Check(f"{name} sends only frames of its database", not text, text, counts=False)


def _peer(name: str, peer: ParticipantStats, faults: bool) -> Check:
    """Messages of the rig that the participant reports as lost or refused; injected faults may be the reason."""
    status = f"ended with status {peer.exit_status}" if peer.exit_status else ""
    text = "; ".join(filter(None, [_words(peer.losses), status]))
    return Check(
        f"{name} has lost and refused nothing",
        not text,
        text,
        counts=bool(peer.losses) and not faults,
        from_machine=True,
    )
