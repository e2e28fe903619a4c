"""Lockstep between rig and participants on the virtual clock: one exchange per step, exactly to its time. real-time:
no.

          rig (binds)                                      peer (connects)
ZeroMQ    LockstepClient DEALER -- step --> / <-- state -- REP LockstepServer
pair      LockstepClient Pair   -- step --> / <-- state -- PairServer      a process the rig has started
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import zmq

from torqueloop.cython_kernels.link.lockstep import BoxedPeer, StepPeer, serve
from torqueloop.hil.link.endpoints import CurveKeys, PeerError
from torqueloop.hil.link.link_socket import POLL_SLICE_MS, LinkSocket
from torqueloop.hil.link.messages import (
    REJECT_REASONS,
    STATE_FORM,
    STEP_FORM,
    ByeMessage,
    SchemaError,
    StateMessage,
    StepMessage,
    decode,
    encode,
)
from torqueloop.hil.link.pair import SLICE_S, Pair
from torqueloop.hil.link.stats import CouplingResidual, StampChecker
from torqueloop.hil.results.links import LinkStats


class LockstepSocket:
    """Rig side of a lockstep, virtual clock: a question, then its answer. real-time: no."""

    def __init__(self, endpoint: str, curve: CurveKeys | None = None, context: zmq.Context[Any] | None = None) -> None:
        self._socket = LinkSocket(zmq.DEALER, endpoint, True, curve, context, max_bytes=16 << 20)
        self.endpoint: Any = self._socket.endpoint

    def exchange(self, message: bytes, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
        """The answer, None when there is none in time; anything but the one frame of a REP socket is b"" (the schema
        refuses it). `dead` is asked while waiting; a text ends the wait with PeerError."""
        deadline = time.monotonic() + timeout_s
        if not self._wait(zmq.POLLOUT, deadline, dead):
            return None
        self._socket.raw.send_multipart([b"", message], zmq.DONTWAIT)
        if not self._wait(zmq.POLLIN, deadline, dead):
            return None
        parts = self._socket.raw.recv_multipart(zmq.DONTWAIT)
        return parts[1] if len(parts) == 2 and parts[0] == b"" else b""

    def _wait(self, flag: int, deadline: float, dead: Callable[[], str | None] | None) -> bool:
        while not self._socket.raw.poll(POLL_SLICE_MS, flag):
            if dead is not None and (text := dead()) is not None:
                raise PeerError(text)
            if time.monotonic() >= deadline:
                return False
        return True

    def leave(self, message: bytes) -> None:
        """Send a last message, which is not answered; a participant that takes no more messages does not get it."""
        try:
            self._socket.raw.send_multipart([b"", message], zmq.DONTWAIT)
        except zmq.Again:
            pass

    def close(self) -> None:
        """Free the port."""
        self._socket.close()


#: steps that a peer answers without Python before its process looks at its signals
SEVERAL = 200


class Transport(Protocol):
    """What carries questions and answers of a lockstep."""

    endpoint: str

    def exchange(
        self, message: bytes, timeout_s: float, dead: Callable[[], str | None] | None = None
    ) -> bytes | None: ...
    def close(self) -> None: ...


class LockstepClient:
    """Rig side, virtual clock: one exchange per tick. real-time: no."""

    def __init__(
        self,
        endpoint: str,
        timeout_s: float = 2.0,
        curve: CurveKeys | None = None,
        peer_dead: Callable[[], str | None] | None = None,
        context: zmq.Context[Any] | None = None,
        transport: Transport | None = None,
    ) -> None:
        """`transport`: instead of ZeroMQ at `endpoint`. `peer_dead` is asked while waiting; a text (e.g. "has
        ended with status 2") ends the wait at once."""
        self._socket: Transport = transport or LockstepSocket(endpoint, curve, context)
        self.endpoint: Any = self._socket.endpoint
        self.timeout_s = timeout_s
        self._peer_dead = peer_dead
        self._stamps = StampChecker(None)
        self.residual: CouplingResidual = CouplingResidual()
        self.exchanges: int = 0
        self.wait_max_s: float = 0.0
        self.rejected: dict[str, int] = dict.fromkeys(REJECT_REASONS, 0)
        box = transport.box if isinstance(transport, Pair) else None
        #: the vehicle as it is asked without Python, each time followed by `noted`; None: not over this transport
        self.peer: BoxedPeer | None = BoxedPeer(box, STEP_FORM, STATE_FORM, SLICE_S) if box is not None else None

    def exchange(self, message: StepMessage) -> StateMessage:
        """Send the rig's step, wait for the vehicle's state there; PeerError if none comes or it is not as agreed."""
        started = time.monotonic()
        data = encode(message)
        return self._answered(message, started, lambda: self._socket.exchange(data, self.timeout_s, self._peer_dead))

    def wait(self, message: StepMessage) -> StateMessage:
        """As `exchange`, for a step that `peer` has sent without having received the answer."""
        assert isinstance(self._socket, Pair)
        pair, rest_s = self._socket, max(0.0, self.timeout_s - SLICE_S)
        return self._answered(message, time.monotonic() - SLICE_S, lambda: pair.wait(rest_s, self._peer_dead))

    def noted(self, step: int) -> None:
        """`peer` has answered this step."""
        self._stamps.check(step)
        self.exchanges += 1

    def _answered(self, message: StepMessage, started: float, ask: Callable[[], bytes | None]) -> StateMessage:
        try:
            data = ask()
        except PeerError as error:
            raise PeerError(f"vehicle at {self.endpoint} {error} (step {message.step})") from None
        if data is None:
            hint = ": is it started?" if self.exchanges == 0 else ": is it still running?"
            raise PeerError(
                f"vehicle at {self.endpoint} has not answered within {self.timeout_s:g} s (step {message.step}){hint}"
            )
        self.wait_max_s = max(self.wait_max_s, time.monotonic() - started)
        try:
            answer = decode(data)
        except SchemaError as error:
            self.rejected[error.reason] += 1
            raise PeerError(f"vehicle at {self.endpoint}, step {message.step}: answer refused: {error}") from None
        if isinstance(answer, ByeMessage):
            raise PeerError(f"vehicle at {self.endpoint} has left at step {message.step}: {answer.reason}")
        if not isinstance(answer, StateMessage) or answer.step != message.step:
            raise PeerError(
                f"vehicle at {self.endpoint}, step {message.step}: answered step "
                f"{getattr(answer, 'step', None)}, allowed: the step it was asked"
            )
        self.residual.add(message.step, message.speed, message.I_wheel, answer.speed)
        self.noted(answer.step)
        return answer

    def stats(self) -> LinkStats:
        """Counts for the report."""
        return LinkStats(
            "lockstep",
            self.endpoint,
            accepted=self._stamps.accepted,
            rejected=dict(self.rejected),
            duplicate=self._stamps.duplicate,
            out_of_order=self._stamps.out_of_order,
            coupling=self.residual.report(),
            exchanges=self.exchanges,
            wait_max_ms=1e3 * max(self.wait_max_s, self.peer.wait_max_s if self.peer is not None else 0.0),
        )

    def close(self) -> None:
        """Report to a vehicle over ZeroMQ that the run is over, and free the port. (A process sees the end of its
        pair.)"""
        if isinstance(self._socket, LockstepSocket) and self.exchanges > 0:
            self._socket.leave(encode(ByeMessage("the rig has stopped")))
        self._socket.close()


class _Server:
    """Vehicle side, virtual clock: answers each step with the state at exactly its time."""

    def __init__(self) -> None:
        self.exchanges: int = 0
        self.rejected: dict[str, int] = dict.fromkeys(REJECT_REASONS, 0)
        #: why the rig has left, once it has said so
        self.bye: str | None = None

    def answer(self, data: bytes, handler: Callable[[StepMessage], StateMessage]) -> bytes | None:
        """The answer to a request; a refused one is answered with `bye` and its cause. None: the rig has left."""
        try:
            message = decode(data)
            if isinstance(message, ByeMessage):
                self.bye = message.reason
                return None
            if not isinstance(message, StepMessage):
                raise SchemaError("kind", "allowed here: kind 'step' or 'bye'")
        except SchemaError as error:
            self.rejected[error.reason] += 1
            return encode(ByeMessage(f"request refused: {error}"))
        self.exchanges += 1
        return encode(handler(message))


class PairServer(_Server):
    """Answers over the pair this process was started with."""

    def __init__(self, pair: Pair, peer: StepPeer | None = None) -> None:
        """`peer`: who answers steps of the usual form without Python; None: the handler answers all."""
        super().__init__()
        self._pair = pair
        self._peer = peer
        self.endpoint: str = pair.endpoint

    def serve_one(self, handler: Callable[[StepMessage], StateMessage], timeout_ms: int = POLL_SLICE_MS) -> bool:
        """Answer one request if one comes within the timeout, or several that follow each other; Gone when the rig has
        closed its end."""
        if self._peer is not None and self._pair.box is not None:
            n, unsent = serve(self._pair.box, STEP_FORM, STATE_FORM, self._peer, 1e-3 * timeout_ms, SEVERAL)
            self.exchanges += n
            if unsent is not None:
                self._pair.send(unsent)
            if n:
                return True
            # nothing came, or what lies there is not of the usual form
            timeout_ms = 0
        data = self._pair.receive(1e-3 * timeout_ms)
        if data is None:
            return False
        if (answer := self.answer(data, handler)) is not None:
            self._pair.send(answer)
        return True

    def close(self) -> None:
        """Close this end."""
        self._pair.close()


class LockstepServer(_Server):
    """Answers over ZeroMQ."""

    def __init__(self, endpoint: str, curve: CurveKeys | None = None, context: zmq.Context[Any] | None = None) -> None:
        super().__init__()
        self._socket = LinkSocket(zmq.REP, endpoint, False, curve, context)
        self.endpoint: Any = self._socket.endpoint

    def serve_one(self, handler: Callable[[StepMessage], StateMessage], timeout_ms: int = POLL_SLICE_MS) -> bool:
        """Answer one request if one comes within the timeout."""
        if not self._socket.raw.poll(timeout_ms):
            return False
        if (answer := self.answer(self._socket.raw.recv(), handler)) is not None:
            self._socket.raw.send(answer)
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
