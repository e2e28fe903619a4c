"""A pair of ends between the rig and a process it has started: whole messages in both directions.

Messages lie in memory that both share (cython_kernels/link/mailbox.pyx): one costs a copy and a system call to wake who
sleeps, and there is no thread, as ZeroMQ needs on either side. There is also a socket pair of the kernel: it reports
that the other side has ended, transfers the memory at the start, and carries messages that are too long for a mailbox,
or all messages if there is no such memory. Only the two processes have access to either. Over the socket each message
is its length (4 bytes, little endian) and then the message.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import time
from collections.abc import Callable

from torqueloop.cython_kernels.link.mailbox import MAILBOX_BYTES, ROOM, Mailbox
from torqueloop.hil.link.endpoints import PeerError

_LENGTH = struct.Struct("<I")
#: struct timeval
_TIMEVAL = struct.Struct("@ll")
#: a waiting side looks this often whether the other one is still alive [s]
SLICE_S = 0.05
#: a process whose connection has broken ends within this time [s]
ENDS_S = 2.0
#: a longer message is a mistake
MAX_BYTES = 64 << 20
#: in the box instead of a message that lies in the socket: no message of ours is empty
_IN_SOCKET = b""
#: what lies in the socket when the child begins, with the descriptor of the memory where there is one
_BEGIN = b"+"


class Gone(PeerError):
    """The other side has closed."""


class Pair:
    """One end. real-time: no."""

    def __init__(self, sock: socket.socket, box: Mailbox | None = None) -> None:
        """`box`: this end's side of the memory; None: everything goes over the socket."""
        self._socket, self._box = sock, box
        #: what carries the messages
        self.endpoint: str = "socket pair" if box is None else "shared memory"
        self._rest = b""
        # received into this: recv() would allocate its largest size each time
        self._buffer = bytearray(1 << 16)
        # the kernel's own timeouts: with settimeout, Python would poll before each call
        sock.setblocking(True)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(0, round(1e6 * SLICE_S)))

    @property
    def box(self) -> Mailbox | None:
        """This end's side of the memory, for who takes and posts messages of known form there without Python; what else
        lies in it is for `receive`."""
        return self._box

    @classmethod
    def make(cls) -> tuple[Pair, socket.socket]:
        """Our end, and the socket for the child."""
        ours, theirs = socket.socketpair()
        if not hasattr(os, "memfd_create"):
            ours.sendall(_BEGIN)
            return cls(ours), theirs
        number = os.memfd_create("torqueloop-pair")
        try:
            os.ftruncate(number, MAILBOX_BYTES)
            box = Mailbox(mmap.mmap(number, MAILBOX_BYTES), 0)
            # it waits in the socket until the child begins
            socket.send_fds(ours, [_BEGIN], [number])
            return cls(ours, box), theirs
        finally:
            os.close(number)

    @classmethod
    def inherited(cls, number: int) -> Pair:
        """The end that this process was started with."""
        sock = socket.socket(fileno=number)
        _, numbers, _, _ = socket.recv_fds(sock, 1, 1)
        if not numbers:
            return cls(sock)
        try:
            return cls(sock, Mailbox(mmap.mmap(numbers[0], MAILBOX_BYTES), 1))
        finally:
            os.close(numbers[0])

    def exchange(self, message: bytes, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
        """Send a message, wait for the answer (None when there is none in time). Gone with how the other side ended,
        which `dead` reports: the connection may break a moment before the process is gone."""
        try:
            self.send(message)
        except Gone as error:
            raise self._how(error, dead) from None
        return self.wait(timeout_s, dead)

    def wait(self, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
        """The answer to what has been sent, as `exchange`."""
        try:
            return self.receive(timeout_s, dead)
        except Gone as error:
            raise self._how(error, dead) from None

    @staticmethod
    def _how(error: Gone, dead: Callable[[], str | None] | None) -> Gone:
        text, deadline = None, time.monotonic() + ENDS_S
        while dead is not None and (text := dead()) is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return Gone(text or str(error))

    def send(self, message: bytes) -> None:
        """Send a whole message; Gone if the other side has closed."""
        if self._box is not None:
            if len(message) <= ROOM and self._box.post(message):
                return
            # too long for the box, or the one before is still in it: whoever hangs is not waited for here
            self._box.post(_IN_SOCKET)
        self._send(message)

    def _send(self, message: bytes) -> None:
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
        if self._box is None:
            return self._receive(timeout_s, dead)
        message = self._box.take(min(SLICE_S, timeout_s))
        if message:
            return message
        # the clock is only looked at when nothing comes
        deadline = time.monotonic() - SLICE_S + timeout_s
        while message is None:
            if dead is not None and (text := dead()) is not None:
                raise Gone(text)
            self._look_at_socket()
            if time.monotonic() >= deadline:
                return None
            message = self._box.take(min(SLICE_S, timeout_s))
        return message or self._receive(timeout_s, dead)

    def _look_at_socket(self) -> None:
        """Gone when the other side has closed."""
        try:
            if self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                raise Gone("has closed the connection")
        except BlockingIOError:
            pass
        except OSError as error:
            raise Gone(f"cannot receive: {error.strerror or error}") from None

    def _receive(self, timeout_s: float, dead: Callable[[], str | None] | None) -> bytes | None:
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
