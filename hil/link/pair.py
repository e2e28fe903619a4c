"""A pair of connected sockets between the rig and a process it has started: whole messages in both directions.

A socket pair of the kernel instead of ZeroMQ, which needs a thread on either side: with both sides on one CPU a whole
exchange of the vehicle link takes 60 us (in a virtual machine; 300 us over ZeroMQ). No other process can get at it.
Each message is its length (4 bytes, little endian) and then the message.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from torqueloop.hil.link.sockets import PeerError

_LENGTH = struct.Struct("<I")
#: struct timeval
_TIMEVAL = struct.Struct("@ll")
#: a waiting side looks this often whether the other one is still alive [s]
SLICE_S = 0.05
#: a process whose connection has broken ends within this time [s]
ENDS_S = 2.0
#: a longer message is a mistake
MAX_BYTES = 64 << 20


class Gone(PeerError):
    """The other side has closed."""


class Pair:
    """One end. real-time: no."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._rest = b""
        # received into this: recv() would allocate its largest size each time
        self._buffer = bytearray(1 << 16)
        # the kernel's own timeouts: with settimeout, Python would poll before each call
        sock.setblocking(True)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(0, round(1e6 * SLICE_S)))

    @classmethod
    def make(cls) -> tuple[Pair, socket.socket]:
        """Our end, and the socket to hand on to the child."""
        ours, theirs = socket.socketpair()
        return cls(ours), theirs

    @classmethod
    def inherited(cls, number: int) -> Pair:
        """The end that this process was started with."""
        return cls(socket.socket(fileno=number))

    def exchange(self, message: bytes, timeout_s: float, dead: Callable[[], str | None]) -> bytes | None:
        """Send a message, wait for the answer (None when there is none in time). Gone with how the other side ended,
        which `dead` tells: the connection may break a moment before the process is gone."""
        try:
            self.send(message)
            return self.receive(timeout_s, dead)
        except Gone as error:
            deadline = time.monotonic() + ENDS_S
            while (text := dead()) is None and time.monotonic() < deadline:
                time.sleep(0.005)
            raise Gone(text or str(error)) from None

    def send(self, message: bytes) -> None:
        """Send a whole message; Gone if the other side has closed."""
        data: bytes | memoryview = _LENGTH.pack(len(message)) + message
        try:
            while data:
                try:
                    sent = self._socket.send(data)
                    if sent == len(data):
                        return
                    data = memoryview(data)[sent:]
                except BlockingIOError:
                    continue
        except OSError as error:
            raise Gone(f"cannot send: {error.strerror or error}") from None

    def receive(self, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
        """The next whole message; None when there is none in time. `dead` is asked while waiting: a text ends the
        wait with Gone, as does a closed end."""
        deadline = 0.0
        while True:
            if len(self._rest) >= 4:
                size = _LENGTH.unpack_from(self._rest)[0]
                if size > MAX_BYTES:
                    raise PeerError(f"message of {size} bytes, allowed: at most {MAX_BYTES}")
                if len(self._rest) >= 4 + size:
                    message, self._rest = self._rest[4 : 4 + size], self._rest[4 + size :]
                    return message
            try:
                n = self._socket.recv_into(self._buffer)
            except BlockingIOError:
                # the clock is only looked at when nothing comes
                now = time.monotonic()
                deadline = deadline or now - SLICE_S + timeout_s
                if dead is not None and (text := dead()) is not None:
                    raise Gone(text) from None
                if now >= deadline:
                    return None
                continue
            except OSError as error:
                raise Gone(f"cannot receive: {error.strerror or error}") from None
            if not n:
                raise Gone("has closed the connection")
            if not self._rest and n >= 4 and _LENGTH.unpack_from(self._buffer)[0] == n - 4 <= MAX_BYTES:
                return bytes(self._buffer[4:n])  # one whole message, as nearly always
            self._rest += self._buffer[:n]

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
