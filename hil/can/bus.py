"""Gateway between a CAN bus and the tick: a receiving and a sending thread with lock-free rings on the other side.

    bus -> recv thread -> rx ring -> tick -> tx ring -> send thread -> bus

The tick never touches Python. Both threads block: the receiver in the bus, the sender on a bell (eventfd) that the tick
rings after it has queued frames (`write(bell_fd, &one, 8)`); without a bell it looks every `TX_POLL_S`.

Buses: "udp_multicast" between processes of one computer (multicast), and every interface of python-can ("virtual"
inside one process, "socketcan", adapters).
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.can.frame import BRS_FLAG, ERROR_FLAG, ESI_FLAG, EXTENDED, FD_FLAG, REMOTE_FLAG
from torqueloop.hil.can.multicast import (
    DEFAULT_GROUP,
    DEFAULT_PORT,
    LOOPBACK,
    CanBusError,
    MulticastPort,
    multicast_works,
)
from torqueloop.hil.common.plugins import GATEWAYS, find, kinds
from torqueloop.hil.results.links import GatewayStats

if TYPE_CHECKING:
    import can

__all__ = ["CanBusConfig", "CanBusError", "CanGateway", "CanPort", "PythonCanPort", "multicast_works", "open_bus"]

#: The receiver looks at the stop flag this often; it does not delay frames. [s]
RX_TIMEOUT_S = 0.05
#: When the gateway stops, the receiver takes what has arrived for this long at most: a flood has no end. [s]
DRAIN_S = 0.1
#: Without a bell the sender looks at the ring this often: mean delay of a frame is half of it. [s]
TX_POLL_S = 0.5e-3
#: With a bell: how often the sender looks at the stop flag. [s]
BELL_TIMEOUT_S = 0.05
#: Failures in a row after which a thread gives up and the gateway is dead. One frame lost to a full driver queue is
#: counted; a bus that takes nothing for so long is broken.
FAILURES_MAX = 50
#: An own frame that did not come back after this time is not waited for any more. [s]
ECHO_AGE_S = 1.0
#: Bus-off bit in the identifier of a SocketCAN error frame.
_ERROR_BUS_OFF = 0x40


@dataclass(frozen=True)
class CanBusConfig:
    """Where the bus is. Unknown keys of a rig file go to `options`, for the adapter."""

    #: "udp_multicast" or any interface of python-can
    interface: str = "udp_multicast"
    #: multicast group, name of the network device ("vcan0") or of the virtual channel
    channel: str = DEFAULT_GROUP
    #: UDP port (udp_multicast)
    port: int = DEFAULT_PORT
    #: address of the network interface (udp_multicast); the default never leaves this computer
    local_address: str = LOOPBACK
    #: routers that a packet may pass (udp_multicast); 0: this computer only
    hop_limit: int = 0
    #: bit rate of an adapter, None: as the system has set it [bit/s]
    bitrate: int | None = None
    #: CAN FD frames are sent and received (python-can's fd=True)
    fd: bool = False
    #: more arguments of can.Bus
    options: Mapping[str, Any] = field(default_factory=dict)


class CanPort(Protocol):
    """What the gateway and the soft control units need of a bus. 29-bit identifiers have bit 31 set."""

    name: str
    own_echoes: int
    malformed: int
    kernel_drops: int

    @property
    def bus_off(self) -> bool: ...
    def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None: ...
    def send(self, can_id: int, data: bytes, flags: int = 0) -> None: ...
    def close(self) -> None: ...


#: members of a CanPort
_PORT = ("name", "own_echoes", "malformed", "kernel_drops", "bus_off", "recv", "send", "close")


class FrameRingLike(Protocol):
    """Python side of cython_kernels.ring.FrameRing."""

    def push(self, can_id: int, data: bytes, t_ns: int = 0, flags: int = 0) -> bool: ...
    def pop(self) -> tuple[int, bytes, int, int] | None: ...


def open_bus(config: CanBusConfig, ids: Iterable[int] = ()) -> CanPort:
    """Open the bus; CanBusError says what is missing. `ids`: only these identifiers are wanted (all if empty).

    The interface is a gateway kind (entry points "torqueloop.gateways": a callable with these two arguments that
    returns a CanPort), else one of python-can.
    """
    kind = config.interface if config.interface in kinds(GATEWAYS) else "python_can"
    port: CanPort = find(GATEWAYS, kind, key="interface").create(_PORT, config, ids)
    return port


def open_multicast(config: CanBusConfig, ids: Iterable[int] = ()) -> CanPort:
    """Our own UDP multicast; python-can's for a group of IPv6."""
    if ":" in config.channel:
        return PythonCanPort(config, ids)
    return MulticastPort(config.channel, config.port, config.local_address, config.hop_limit)


class PythonCanPort:
    """Any interface of python-can. It must allow send and recv from two threads at once, as can.ThreadSafeBus does."""

    def __init__(self, config: CanBusConfig, ids: Iterable[int] = ()) -> None:
        self.name: str = f"{config.interface} {config.channel}"
        self.own_echoes: int = 0
        self.malformed = 0
        self.kernel_drops = 0
        self._bus_off = False
        # python-can's udp_multicast gives us our own frames; others only if asked
        self._echoes = config.interface == "udp_multicast"
        # SocketCAN marks the frames of every program of this computer; ours come back only if asked for
        self._marks_own = config.interface != "socketcan" or bool(config.options.get("receive_own_messages"))
        self._pending: Counter[tuple[int, bytes]] = Counter()
        self._sent: deque[tuple[float, tuple[int, bytes]]] = deque()
        self._lock = threading.Lock()
        arguments: dict[str, Any] = {"interface": config.interface, "channel": config.channel, **config.options}
        if config.bitrate is not None:
            arguments["bitrate"] = config.bitrate
        # udp_multicast carries both formats without being asked
        if config.fd and config.interface != "udp_multicast":
            arguments["fd"] = True
        if config.interface == "udp_multicast":
            arguments |= {"port": config.port, "hop_limit": config.hop_limit}
        filters = [_filter(can_id) for can_id in ids]
        if filters:
            arguments["can_filters"] = filters
        import can

        try:
            self._bus = can.Bus(**arguments)
        except (can.CanError, OSError, ValueError, TypeError, ImportError) as error:
            reason = f"{error} ({error.__cause__})" if error.__cause__ else str(error)
            raise CanBusError(f"cannot open CAN bus {self.name}: {reason}{_hint(config)}") from error

    @property
    def bus_off(self) -> bool:
        """The controller has left the bus after too many errors."""
        return self._bus_off

    def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None:
        """Next frame of another participant as (id, data, flags); None if there is none for `timeout_s`."""
        import can

        end = time.monotonic() + timeout_s
        while True:
            try:
                message = self._bus.recv(timeout_s)
            except (can.CanError, OSError) as error:
                raise CanBusError(f"CAN bus {self.name}: receiving failed: {error}") from error
            if message is None:
                return None
            frame = self._news(message)
            if frame is not None:
                return frame
            timeout_s = max(0.0, end - time.monotonic())

    def _news(self, message: can.Message) -> tuple[int, bytes, int] | None:
        # (id, data, flags) of a message, None for our own
        if message.is_error_frame:
            self._bus_off = self._bus_off or bool(message.arbitration_id & _ERROR_BUS_OFF)
            return message.arbitration_id, bytes(message.data[:8]), ERROR_FLAG
        can_id = message.arbitration_id | (EXTENDED if message.is_extended_id else 0)
        if message.is_remote_frame:
            return can_id, b"", REMOTE_FLAG
        data = bytes(message.data)
        if (self._marks_own and not message.is_rx) or (self._echoes and self._is_echo(can_id, data)):
            self.own_echoes += 1
            return None
        flags = FD_FLAG if message.is_fd else 0
        if message.is_fd:
            flags |= (BRS_FLAG if message.bitrate_switch else 0) | (ESI_FLAG if message.error_state_indicator else 0)
        return can_id, data, flags

    def send(self, can_id: int, data: bytes, flags: int = 0) -> None:
        """Send a data frame; `flags`: FD_FLAG and BRS_FLAG."""
        import can

        if self._echoes:
            self._expect_echo(can_id, data)
        message = can.Message(
            arbitration_id=can_id & 0x1FFFFFFF,
            is_extended_id=bool(can_id & EXTENDED),
            data=data,
            is_fd=bool(flags & FD_FLAG),
            bitrate_switch=bool(flags & BRS_FLAG),
        )
        try:
            self._bus.send(message)
        except (can.CanError, OSError) as error:
            try:
                self._bus_off = self._bus_off or self._bus.state is can.BusState.ERROR
            except (can.CanError, OSError, NotImplementedError):
                pass
            raise CanBusError(f"CAN bus {self.name}: sending failed: {error}") from error
        self._bus_off = False

    def close(self) -> None:
        """Shut the interface down."""
        self._bus.shutdown()

    def _expect_echo(self, can_id: int, data: bytes) -> None:
        now = time.monotonic()
        with self._lock:
            while self._sent and self._sent[0][0] < now - ECHO_AGE_S:
                _, key = self._sent.popleft()
                self._pending.pop(key, None)
            self._sent.append((now, (can_id, data)))
            self._pending[can_id, data] += 1

    def _is_echo(self, can_id: int, data: bytes) -> bool:
        with self._lock:
            if self._pending.get((can_id, data), 0) <= 0:
                return False
            self._pending[can_id, data] -= 1
            return True


class CanGateway:
    """The two threads. Start it before the tick is armed, stop it after the tick has ended.

    A thread that dies leaves `alive` False and `error` set; the rig's safe state watches that.
    """

    def __init__(
        self,
        port: CanPort,
        rx_ring: FrameRingLike,
        tx_ring: FrameRingLike,
        *,
        own_ids: Iterable[int] = (),
        bell: bool = False,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        """own_ids: identifiers we send; frames of others with these are counted and kept away from the tick.

        bell: the tick rings `bell_fd`. clock_ns: clock of the rig's loop, for arrival times.
        on_failure: called once, from the dying thread, with the first cause.
        """
        self.port = port
        self._rx_ring, self._tx_ring = rx_ring, tx_ring
        self._own_ids = frozenset(own_ids)
        self._bell = bell
        self._clock_ns = clock_ns
        self._on_failure = on_failure
        #: eventfd for the tick to ring, -1 where the system has none
        self.bell_fd: int = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if hasattr(os, "eventfd") else -1
        #: first of our identifiers seen in a frame of somebody else
        self.foreign_id: int | None = None
        #: first cause of death of a thread
        self.error: str | None = None
        self._stop_rx = threading.Event()
        self._stop_tx = threading.Event()
        self._count = Counter[str]()
        self._threads = [
            threading.Thread(target=self._guard, args=(self._receive,), name="can-rx", daemon=True),
            threading.Thread(target=self._guard, args=(self._send,), name="can-tx", daemon=True),
        ]
        self._closed = False

    def start(self) -> CanGateway:
        """Start both threads."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Send what the tick has queued, take in what has arrived, end the threads, close the bus.

        False if a thread did not end in time (a driver that hangs); the bus is then left open.
        """
        self._stop_tx.set()
        self.ring()
        ended = self._join(self._threads[1], timeout_s)
        # the receiver ends last: an answer to the last frames may still come in
        self._stop_rx.set()
        ended = self._join(self._threads[0], timeout_s) and ended
        if ended and not self._closed:
            self._closed = True
            self.port.close()
            if self.bell_fd >= 0:
                os.close(self.bell_fd)
                self.bell_fd = -1
        return ended

    def __enter__(self) -> CanGateway:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @staticmethod
    def _join(thread: threading.Thread, timeout_s: float) -> bool:
        if thread.ident is not None:
            thread.join(timeout_s)
        return not thread.is_alive()

    @property
    def alive(self) -> bool:
        """Both threads run and nothing has failed."""
        return self.error is None and all(t.is_alive() for t in self._threads)

    def ring(self) -> None:
        """Wake the sender (the tick does this itself in C)."""
        if self.bell_fd >= 0:
            os.eventfd_write(self.bell_fd, 1)

    def stats(self) -> GatewayStats:
        """Counts since the start, for the report."""
        names = ("rx", "rx_dropped", "tx", "tx_failed", "rx_failed", "foreign_frames", "error_frames", "remote_frames")
        return GatewayStats(
            **{name: self._count[name] for name in names},
            own_echoes=self.port.own_echoes,
            malformed=self.port.malformed,
            kernel_drops=self.port.kernel_drops,
            bus_off=self.port.bus_off,
            alive=self.alive,
            error=self.error,
        )

    def _guard(self, loop: Callable[[], None]) -> None:
        # whatever ends a thread other than stop() is a failure of the gateway
        try:
            loop()
        except BaseException as error:  # a thread that vanishes silently would freeze the pressures
            if self.error is None:
                self.error = f"{threading.current_thread().name}: {error}"
                if self._on_failure is not None:
                    self._on_failure(self.error)

    def _receive(self) -> None:
        port, push, count = self.port, self._rx_ring.push, self._count
        failures, until = 0, math.inf
        while time.monotonic() < until:
            stopping = self._stop_rx.is_set()
            if stopping and until == math.inf:
                until = time.monotonic() + DRAIN_S
            try:
                frame = port.recv(0.0 if stopping else RX_TIMEOUT_S)
                failures = 0
            except CanBusError:
                count["rx_failed"] += 1
                failures += 1
                if failures >= FAILURES_MAX or stopping:
                    raise
                # a broken interface returns at once: do not spin
                time.sleep(0.01)
                continue
            if frame is None:
                if stopping:
                    return
                continue
            can_id, data, flags = frame
            if flags & (ERROR_FLAG | REMOTE_FLAG):
                count["error_frames" if flags & ERROR_FLAG else "remote_frames"] += 1
            elif can_id in self._own_ids:
                count["foreign_frames"] += 1
                if self.foreign_id is None:
                    self.foreign_id = can_id
            elif push(can_id, data, self._clock_ns(), flags):
                count["rx"] += 1
            else:
                count["rx_dropped"] += 1

    def _send(self) -> None:
        port, pop, count = self.port, self._tx_ring.pop, self._count
        wait = self._waiter()
        failures = 0
        while True:
            # read the flag before the ring is emptied: what was queued before stop() is sent
            stopping = self._stop_tx.is_set()
            while (frame := pop()) is not None:
                try:
                    port.send(frame[0], frame[1], frame[3])
                    count["tx"] += 1
                    failures = 0
                except CanBusError:
                    count["tx_failed"] += 1
                    failures += 1
                    if failures >= FAILURES_MAX:
                        raise
            if stopping:
                return
            wait()

    def _waiter(self) -> Callable[[], None]:
        """A function that blocks until there may be something to send."""
        if not self._bell or self.bell_fd < 0:
            return lambda: time.sleep(TX_POLL_S)
        poll = select.poll()
        poll.register(self.bell_fd, select.POLLIN)
        fd = self.bell_fd

        def wait() -> None:
            if poll.poll(BELL_TIMEOUT_S * 1e3):
                os.eventfd_read(fd)

        return wait


def _filter(can_id: int) -> dict[str, Any]:
    """python-can's filter for exactly this identifier."""
    if can_id & EXTENDED:
        return {"can_id": can_id & 0x1FFFFFFF, "can_mask": 0x1FFFFFFF, "extended": True}
    return {"can_id": can_id, "can_mask": 0x7FF, "extended": False}


def _hint(config: CanBusConfig) -> str:
    if config.interface == "socketcan":
        return f"; is the device there? `ip link show {config.channel}`, `ip link set {config.channel} up`"
    if config.interface == "udp_multicast":
        return f"; python-can's own multicast needs a default route: use an IPv4 group ({DEFAULT_GROUP}) on {LOOPBACK}"
    return ""
