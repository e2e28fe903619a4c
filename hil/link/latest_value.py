"""ZeroMQ between rig and vehicle model: latest value for the real clock.

              rig (binds)                                      vehicle model (connects)
    virtual   hil/link/lockstep.py                                                  one exchange per tick, exactly to t
    real      RigLink (thread) PAIR -- step --> / <-- state -- PAIR VehicleEnd      newest value, stamps, age checked

The rig binds so that port 0 works: it takes a free port and passes the endpoint on (`.endpoint`). PAIR has one client:
ZeroMQ refuses a second vehicle model, whose connection times out. In the rig the tick never touches a socket:
RigLink copies between the socket and two latest-value slots.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import zmq

from torqueloop.hil.link.carriers import Carriers
from torqueloop.hil.link.endpoints import CurveKeys, PeerError
from torqueloop.hil.link.link_socket import LinkSocket
from torqueloop.hil.link.mean_force import MeanForce
from torqueloop.hil.link.messages import (
    REJECT_REASONS,
    VEHICLE_SLOT,
    ByeMessage,
    SchemaError,
    StateMessage,
    StepMessage,
    decode,
    encode,
)
from torqueloop.hil.link.stats import AgeStatistics, CouplingResidual, StampChecker
from torqueloop.hil.results.links import LinkStats

#: an own_step this far ahead of the one before is refused: it would lock out the true ones that follow. A day at 1 kHz
OWN_STEP_JUMP = 86_400_000
#: the rig opens its socket anew when somebody is connected and nothing acceptable has come for so long [s]
REOPEN_S = 0.5
#: what ZeroMQ's monitor reports: number of the event, file descriptor of the connection
_EVENT = struct.Struct("<Hi")


class Slot(Protocol):
    """Latest-value slot of doubles (cython_kernels.ring.LatestSlot): one writer, one reader, never blocks."""

    def write(self, values: Sequence[float], stamp_ns: int = 0) -> None: ...
    def read(self) -> tuple[int, int, tuple[float, ...]]: ...


class RigLink(threading.Thread):
    """Rig side, real clock: a thread between the PAIR socket and the two latest-value slots. real-time: no.

    rig_slot (RIG_SLOT, written by the tick) -> newest step to the vehicle; a state that passes schema and stamps ->
    vehicle_slot (VEHICLE_SLOT). The tick judges the age of what is in the slot; this thread only measures.

    every: ticks from one message to the next; its wheel force is the mean since the message before. carriers: bodies
    whose moments follow RIG_SLOT in rig_slot, and whose motion is written to carrier_slot; if nothing
    was received for age_limit_s, their angular velocities are kept and their accelerations are 0 until it is.
    """

    def __init__(
        self,
        endpoint: str,
        rig_slot: Slot,
        vehicle_slot: Slot,
        period_s: float = 1e-3,
        curve: CurveKeys | None = None,
        context: zmq.Context[Any] | None = None,
        carriers: Carriers | None = None,
        carrier_slot: Slot | None = None,
        age_limit_s: float = 0.05,
        every: int = 1,
    ) -> None:
        super().__init__(name="vehicle-link", daemon=True)
        self._carriers, self._carrier_slot, self._age_limit_s = carriers or Carriers(), carrier_slot, age_limit_s
        #: the last motion of the carriers, while it is believed
        self._motion: list[float] = []
        #: times the carriers were taken to turn on unaccelerated, as nothing was heard
        self.coasted: int = 0
        self._how = (True, curve, context)
        self._open(endpoint)
        #: when the last acceptable state came; None: none yet
        self._heard_s: float | None = None
        #: times the socket was opened anew
        self.reopened: int = 0
        self._rig_slot, self._vehicle_slot = rig_slot, vehicle_slot
        self._period_ms = max(1, round(1e3 * period_s))
        self._every, self._force = every, MeanForce()
        self._stop_asked = threading.Event()
        self._send_ns: dict[int, int] = {}
        self._last_version: int | None = None
        self._newest_sent: StepMessage | None = None
        self._stamps = StampChecker(None)
        self._own_stamps = StampChecker(1)
        self._own_stamps.jump_max = OWN_STEP_JUMP
        self.residual: CouplingResidual = CouplingResidual()
        self.age_wall: AgeStatistics = AgeStatistics()
        self.age_steps_max: int = 0
        self.sent: int = 0
        self.not_sent: int = 0
        self.received: int = 0
        self.rejected: dict[str, int] = dict.fromkeys(REJECT_REASONS, 0)
        self.bye: str | None = None
        self.failure: str | None = None

    # --- thread -----------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Until stop(): receive what is there, send the newest rig state once per period."""
        try:
            while not self._stop_asked.is_set():
                if self._socket.raw.poll(self._period_ms):
                    self._receive_all()
                self._send_newest()
                self._coast_if_silent()
                self._reopen_if_deaf()
            self._say_bye()
        except Exception as error:  # the thread's death is a fault the session must see, whatever the cause
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self._close()

    def _receive_all(self) -> None:
        while True:
            try:
                data = self._socket.raw.recv(zmq.DONTWAIT)
            except zmq.Again:
                return
            self.received += 1
            try:
                message = decode(data)
                if isinstance(message, StepMessage):
                    raise SchemaError("kind", "allowed from a vehicle model: kind 'state' or 'bye'")
            except SchemaError as error:
                self.rejected[error.reason] += 1
                continue
            if isinstance(message, ByeMessage):
                self.bye = message.reason
                continue
            if not self._own_stamps.believed(message.own_step):
                self.rejected["range"] += 1
                continue
            # own_step numbers each answer (gap = one lost); step is the rig's stamp it belongs to
            if self._own_stamps.check(message.own_step):
                self._take(message)

    def _take(self, message: StateMessage) -> None:
        newest = self._newest_sent
        if newest is None or message.step > newest.step:
            self.rejected["range"] += 1
            return
        try:
            motion = self._carriers.motion(message.carrier) if self._carrier_slot is not None else []
        except SchemaError as error:
            self.rejected[error.reason] += 1
            return
        if not self._stamps.check(message.step):
            return
        sent_ns = self._send_ns.get(message.step)
        if sent_ns is not None:
            self.age_wall.add(1e-9 * (time.monotonic_ns() - sent_ns))
        self.age_steps_max = max(self.age_steps_max, newest.step - message.step)
        self.residual.received(message)
        self._move(motion)
        self._vehicle_slot.write([float(getattr(message, key)) for key in VEHICLE_SLOT], time.monotonic_ns())
        self._heard_s = time.monotonic()

    def _move(self, motion: list[float]) -> None:
        self._motion = motion
        if self._carrier_slot is not None and motion:
            self._carrier_slot.write(motion, time.monotonic_ns())

    def _coast_if_silent(self) -> None:
        """An acceleration that is held turns rotors for ever; a velocity that is held does not."""
        if not self._motion or self._heard_s is None or time.monotonic() - self._heard_s < self._age_limit_s:
            return
        self._move(self._carriers.unaccelerated(self._motion))
        self._motion = []
        self.coasted += 1

    def _reopen_if_deaf(self) -> None:
        """PAIR takes one vehicle. One that comes back before its old connection is taken down is turned away without
        notice; a socket opened anew takes it. Its numbers may begin anew as well."""
        while self._events.poll(0):
            what, connection = _EVENT.unpack(self._events.recv_multipart()[0])
            if what == zmq.EVENT_ACCEPTED:
                self._connected.add(connection)
                # it counts its answers from its own start
                self._own_stamps.forget()
            else:
                self._connected.discard(connection)
        if not self._connected or self._heard_s is None or time.monotonic() - self._heard_s < REOPEN_S:
            return
        self._socket.raw.setsockopt(zmq.LINGER, 0)
        with suppress(zmq.ZMQError):
            self._socket.raw.unbind(self.endpoint)
        self._close()
        while not self._stop_asked.is_set():
            try:
                self._open(self.endpoint)
                break
            except PeerError:
                # the old one is taken down by a thread of ZeroMQ
                time.sleep(0.005)
        self.reopened += 1
        # again until the vehicle is heard
        self._heard_s = time.monotonic()

    def _open(self, endpoint: str) -> None:
        self._socket = LinkSocket(zmq.PAIR, endpoint, *self._how)
        self.endpoint: Any = self._socket.endpoint
        #: reports each connection, wanted or not, and its end
        self._events: zmq.Socket[bytes] = self._socket.raw.get_monitor_socket(
            zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED
        )
        #: file descriptors of the connections that there are. What was heard says nothing of the others: the last
        #: answer of an old connection may come after a new one was turned away
        self._connected: set[int] = set()

    def _close(self) -> None:
        if not self._socket.raw.closed:
            self._socket.raw.disable_monitor()
        self._socket.close()

    def _send_newest(self) -> None:
        version, _, values = self._rig_slot.read()
        if version == self._last_version or version == 0:
            return  # nothing new since the last message, or nothing written yet
        step, *rest = (float(x) for x in values)
        t, force, impulse, speed, s, brake, *moments = rest
        newest = self._newest_sent
        if newest is not None and newest.step < step < newest.step + self._every:
            return
        force = self._force.of(t, impulse, force)
        message = StepMessage(int(step), t, force, impulse, speed, s, brake, self._carriers.moments(moments))
        try:
            self._socket.raw.send(encode(message), zmq.DONTWAIT)
        except zmq.Again:
            self.not_sent += 1  # nobody connected, or the peer does not read: newer values follow
            return
        # only now: what nobody took is tried again until a vehicle is there
        self._last_version = version
        self.sent += 1
        self._newest_sent = message
        self._force.sent(t, impulse)
        self._send_ns[message.step] = time.monotonic_ns()
        if len(self._send_ns) > 1024:
            del self._send_ns[next(iter(self._send_ns))]
        self.residual.sent(message)

    def _say_bye(self) -> None:
        try:
            self._socket.raw.send(encode(ByeMessage("the rig has stopped")), zmq.DONTWAIT)
        except zmq.Again:
            pass

    # --- session ----------------------------------------------------------------------------------------------------
    def stop(self, timeout_s: float = 1.0) -> None:
        """Ask the thread to end, say bye, close the socket."""
        self._stop_asked.set()
        if self.is_alive():
            self.join(timeout_s)
        else:
            self._close()

    def stats(self) -> LinkStats:
        """Counts for the report; safe to call while the thread runs."""
        own, stamps = self._own_stamps, self._stamps
        return LinkStats(
            "latest value",
            self.endpoint,
            accepted=stamps.accepted,
            rejected=dict(self.rejected),
            gap=own.gap,
            lost=own.lost,
            duplicate=own.duplicate + stamps.duplicate,
            out_of_order=own.out_of_order + stamps.out_of_order,
            coupling=self.residual.report(),
            sent=self.sent,
            not_sent=self.not_sent,
            received=self.received,
            answer_age=self.age_wall.report(),
            age_steps_max=self.age_steps_max,
            bye=self.bye,
            failure=self.failure,
        )


class VehicleEnd:
    """Vehicle side, real clock: takes the newest step that is there, sends states."""

    def __init__(self, endpoint: str, curve: CurveKeys | None = None, context: zmq.Context[Any] | None = None) -> None:
        self._socket = LinkSocket(zmq.PAIR, endpoint, False, curve, context)
        self.endpoint: Any = self._socket.endpoint
        self.stamps: StampChecker = StampChecker(None)
        self.rejected: dict[str, int] = dict.fromkeys(REJECT_REASONS, 0)
        self.bye: str | None = None

    def receive(self, timeout_ms: int) -> StepMessage | None:
        """Newest acceptable step, or None within the timeout. `bye` is set when the rig has left."""
        if not self._socket.raw.poll(timeout_ms):
            return None
        newest: StepMessage | None = None
        while True:
            try:
                data = self._socket.raw.recv(zmq.DONTWAIT)
            except zmq.Again:
                return newest
            try:
                message = decode(data)
                if isinstance(message, StateMessage):
                    raise SchemaError("kind", "allowed from the rig: kind 'step' or 'bye'")
            except SchemaError as error:
                self.rejected[error.reason] += 1
                continue
            if isinstance(message, ByeMessage):
                self.bye = message.reason
            elif self.stamps.check(message.step):
                newest = message

    def send(self, message: StateMessage | ByeMessage) -> bool:
        """Send without waiting; False if the rig does not take it."""
        try:
            self._socket.raw.send(encode(message), zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
