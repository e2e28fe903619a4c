"""Results of a run about its links: CAN buses, control units, vehicles, the control channel. All counted from arming
on, unless said otherwise; SI units, times in the unit of their name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.results.clock import INLINE, NO_METRIC, Timing

#: why a received frame was refused: fields of RxMessage
REFUSALS = ("format", "length", "crc", "repeat", "jump", "range")


@dataclass(frozen=True)
class RxMessage:
    """What became of the frames of one received message."""

    ok: int = 0
    #: refused: classic instead of FD or the other way round, too short, checksum, counter stands or jumps, value
    format: int = 0
    length: int = 0
    crc: int = 0
    repeat: int = 0
    jump: int = 0
    range: int = 0
    #: frames that are missing between two counters
    lost: int = 0
    #: signals of good frames that said "invalid" and kept their value
    invalid: int = 0
    #: how often it did not arrive within its timeout
    timeout: int = 0
    timed_out: bool = False
    seen: bool = False
    #: when the last good one came, on the clock of the rig [ns]
    last_ok_ns: int = 0

    @property
    def refused(self) -> dict[str, int]:
        """How many were refused, by reason; only reasons that occurred."""
        return {why: n for why in REFUSALS if (n := int(getattr(self, why)))}


@dataclass(frozen=True)
class TxMessage:
    """What became of one message we send."""

    sent: int = 0
    #: a value was held at the end of its range
    saturated: int = 0
    #: not sent: a value is not a number
    refused: int = 0


@dataclass(frozen=True)
class GatewayStats:
    """Threads between the tick and a python-can interface."""

    rx: int = 0
    #: the tick's ring was full
    rx_dropped: int = 0
    tx: int = 0
    #: the bus refused the frame
    tx_failed: int = 0
    rx_failed: int = 0
    #: frames of others with an identifier of ours
    foreign_frames: int = 0
    error_frames: int = 0
    remote_frames: int = 0
    own_echoes: int = 0
    malformed: int = 0
    #: frames that did not fit into the socket, if the interface reports it
    kernel_drops: int = 0
    bus_off: bool = False
    alive: bool = True
    error: str | None = None


@dataclass(frozen=True)
class NativeStats:
    """The tick's own CAN socket (SocketCAN)."""

    bus_state: str = "active"
    bus_state_worst: str = "active"
    bus_tx_errors: int = 0
    bus_rx_errors: int = 0
    rx_taken: int = 0
    rx_dropped: int = 0
    #: ticks that left frames in the socket for the next one
    rx_limited_ticks: int = 0
    rx_failed: int = 0
    malformed: int = 0
    remote_frames: int = 0
    foreign_frames: int = 0
    tx_taken: int = 0
    tx_confirmed: int = 0
    #: not sent: queue of the interface full, socket full, interface down, any other error; tx_lost: all of them
    tx_enobufs: int = 0
    tx_again: int = 0
    tx_down: int = 0
    tx_failed: int = 0
    tx_lost: int = 0
    #: sent, but not yet seen on the bus
    unconfirmed: int = 0
    unconfirmed_age_us: float = 0.0
    unconfirmed_age_max_us: float = 0.0
    unconfirmed_forgotten: int = 0
    error_frames: int = 0
    #: by kind of error
    errors: dict[str, int] = field(default_factory=dict)
    last_errno: int = 0
    #: none, kernel or hardware
    timestamps: str = "none"
    receive_latency_us: Timing | None = None
    send_latency_us: Timing | None = None

    @property
    def lost(self) -> dict[str, int]:
        """Frames lost between tick and bus, by place; only places where some were."""
        places = ("rx_dropped", "tx_enobufs", "tx_again", "tx_down", "tx_failed")
        return {place: n for place in places if (n := int(getattr(self, place)))}


@dataclass(frozen=True)
class Interface:
    """A CAN network interface as the system described it before the run."""

    channel: str = ""
    mtu: int | None = None
    txqueuelen: int | None = None
    #: of a real controller: state before the run, bit rates [bit/s], time until a restart [ms]
    state: str | None = None
    bitrate: int | None = None
    dbitrate: int | None = None
    restart_ms: int | None = None
    fd_frames: bool | None = None
    #: filters in the kernel; buffers as it accounts them
    filters: int | None = None
    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None


@dataclass(frozen=True)
class KnownMessage:
    """How a message of a maker's bus is known, in words."""

    layout: str = ""
    period: str = ""
    protection: str = ""
    #: signals that are known otherwise, and what a recording has shown
    notes: str = ""
    source: str = ""


@dataclass(frozen=True)
class BusStats:
    """One CAN bus."""

    #: messages by name
    rx: dict[str, RxMessage] = field(default_factory=dict)
    tx: dict[str, TxMessage] = field(default_factory=dict)
    rx_frames: int = 0
    #: received, but refused
    rx_bad: int = 0
    tx_frames: int = 0
    #: the way out was full
    tx_dropped: int = 0
    #: the way in was full
    rx_ring_dropped: int = 0
    #: our message that somebody else has sent first, in words; empty: none
    foreign: str = ""
    #: senders that this bus does not hear, in words; empty: it hears all
    unheard: str = ""
    #: how it is reached: one of the two, or neither (virtual clock)
    gateway: GatewayStats | None = None
    native: NativeStats | None = field(default=None, metadata=INLINE)
    interface: Interface | None = None
    #: by name of the message; empty: nothing is said
    known: dict[str, KnownMessage] = field(default_factory=dict, metadata=NO_METRIC)

    @property
    def foreign_frames(self) -> int:
        """Frames of others with an identifier of ours."""
        found = self.native or self.gateway
        return found.foreign_frames if found is not None else 0


@dataclass(frozen=True)
class IoStats:
    """One I/O device, as the tick has counted its calls."""

    #: what reading said last: ok, stale, failed
    state: str = "ok"
    reads: int = 0
    writes: int = 0
    #: ticks without a new value
    stale_ticks: int = 0
    #: calls that said that they have failed
    failed: int = 0
    #: values read that lay outside the range of their channel
    limited: int = 0
    #: calls longer than limit_us
    slow: int = 0
    #: time of a call
    read_us: Timing | None = None
    write_us: Timing | None = None


@dataclass(frozen=True)
class Age:
    """Age of an answer of a participant [ms]."""

    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


@dataclass(frozen=True)
class Coupling:
    """Difference between the rig's car and the vehicle model's car."""

    samples: int = 0
    max_mps: float = 0.0
    #: step of the largest difference; -1: none
    max_step: int = -1
    rms_mps: float = 0.0
    #: work that the interface makes (+) or loses (-), and all that went through it
    energy_J: float = 0.0
    turned_over_J: float = 0.0


@dataclass(frozen=True)
class LinkStats:
    """Exchange with a vehicle model over ZeroMQ, as the rig's side counted it."""

    #: "lockstep" (virtual clock) or "latest value"
    mode: str = ""
    endpoint: str = ""
    #: answers that were used
    accepted: int = 0
    #: answers that were refused, by reason
    rejected: dict[str, int] = field(default_factory=dict)
    #: jumps of the peer's own numbers, and how many answers are missing in them
    gap: int = 0
    lost: int = 0
    duplicate: int = 0
    out_of_order: int = 0
    coupling: Coupling | None = None
    #: lockstep only: exchanges done, longest wait for an answer
    exchanges: int | None = None
    wait_max_ms: float | None = None
    #: latest value only
    sent: int | None = None
    #: nobody took it; a newer one followed
    not_sent: int | None = None
    received: int | None = None
    answer_age: Age | None = None
    age_steps_max: int | None = None
    #: the peer's words when it left
    bye: str | None = None
    failure: str | None = None


@dataclass(frozen=True)
class ParticipantStats:
    """What a control unit, or the process of a vehicle model, reports at its end."""

    #: how it ran: "process", "in process", "outside"
    place: str = ""
    #: of a process: exit status, and its last line where it left no counts
    exit_status: int | None = None
    last_line: str | None = None
    #: messages to it that it reports as lost or refused, by reason; only reasons that occurred
    losses: dict[str, int] = field(default_factory=dict)
    #: frames it sent that its database does not have: "0x7E8 on BUS" -> how many
    undeclared: dict[str, int] = field(default_factory=dict)
    #: its own counts, with its own names, for the reader of a report
    reported: dict[str, Any] = field(default_factory=dict, metadata=INLINE)

    @classmethod
    def of(cls, place: str, reported: Mapping[str, Any], exit_status: int | None = None) -> ParticipantStats:
        """From the counts of a participant, as a process or another program sends them (`counts`). Its tables
        `refused` and `rejected` {reason: count} are its losses, and so is `losses`, with whole names; `undeclared` are
        frames that its database does not have."""
        losses: dict[str, int] = {}
        for key in ("refused", "rejected"):
            losses.update({f"{key} ({why})": n for why, n in _numbers(reported.get(key)).items()})
        losses.update(_numbers(reported.get("losses")))
        rest = {key: value for key, value in reported.items() if key not in ("losses", "undeclared")}
        return cls(place, exit_status, None, losses, _numbers(reported.get("undeclared")), rest)

    def counts(self) -> dict[str, Any]:
        """What the process of a participant sends to the rig: inverse of `of`."""
        tables = {"losses": self.losses, "undeclared": self.undeclared}
        return {**self.reported, **{name: dict(table) for name, table in tables.items() if table}}


def PeerStats(*args: Any, told: Mapping[str, Any] | None = None, **more: Any) -> ParticipantStats:
    """The former name of ParticipantStats, and `told` that of `reported`."""
    warnings.warn("PeerStats(told=...) is called ParticipantStats(reported=...)", DeprecationWarning, stacklevel=2)
    return ParticipantStats(*args, **(more if told is None else {**more, "reported": dict(told)}))


def _numbers(table: Any) -> dict[str, int]:
    """Counts that are not 0, of a table from another program."""
    found = table.items() if isinstance(table, Mapping) else ()
    return {str(name): n for name, n in found if isinstance(n, int) and n}


@dataclass(frozen=True)
class VehicleStats:
    """A vehicle model: what the tick took from it, and how it came there."""

    #: values taken; refused by the tick (not finite)
    taken: int = 0
    refused: int = 0
    #: ticks with a value older than the age limit
    stale_ticks: int = 0
    #: oldest value a tick has used
    age_max_ms: float | None = None
    echo_max_ticks: int | None = None
    link: LinkStats | None = field(default=None, metadata=INLINE)


@dataclass(frozen=True)
class TelemetryStats:
    """What the telemetry socket has sent."""

    endpoint: str = ""
    #: samples a second of simulated time [Hz]
    rate_hz: float = 0.0
    sent: int = 0
    #: samples and drained blocks that the thread could not keep up with
    left_out: int = 0
    #: times too many were connected, so that all were dropped
    crowded: int = 0
    #: times the process that holds the socket has ended and was started again, and how it ended the last time
    front_ends: int = 0
    front_last_end: str = ""
    #: why it has ended; "": it has not
    failure: str = ""


@dataclass(frozen=True)
class ControlStats:
    """The control channel."""

    endpoint: str = ""
    requests: int = 0
    answered: int = 0
    #: by reason; only reasons that occurred
    rejected: dict[str, int] = field(default_factory=dict)
    delayed: int = 0
    not_sent: int = 0
    #: times nobody else was taken for a while, because too many were connected
    crowded: int = 0
    #: times the process that holds the socket has ended and was started again, and how it ended the last time
    front_ends: int = 0
    front_last_end: str = ""
    failure: str | None = None
    transactions: int = 0
    #: parameters that were changed, and signals that are held
    parameters: dict[str, float] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
