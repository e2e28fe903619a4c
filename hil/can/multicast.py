"""CAN in software between processes: UDP multicast with the wire format of python-can's `udp_multicast` interface.

Programs that use python-can's own bus class understand these frames. They must be on the same interface: set
`local_address = "0.0.0.0"` (default route, as python-can does) or the address of the interface. The sockets are our
own because python-can's class (4.6)

- joins the group on the interface of the default route: it cannot be opened on a machine whose only interface is `lo`
  (ENODEV), and on any other it puts the rig's frames on the network. We join and send on the loopback interface, with
  hop limit 0, bound to the group's address, and take no frame that arrived elsewhere.
- receives its own frames (`receive_own_messages` is not supported) and cannot distinguish them from others, because all
  sockets of a host send from the shared port. We send from a port of our own and recognise our frames by their source
  address.
- raises on a malformed packet. We count it.
- does not see what the kernel dropped because the receiver was late. We ask for the count (SO_RXQ_OVFL).

Measured on 2 shared cores of a virtual machine: 10 us of CPU to send, receive and drop the echo of one frame
(python-can's class: 55 us); 80 us from one process through the gateway threads to another (median, sender woken by its
bell).
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
import time
from typing import Any

import msgpack

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.can.frame import BRS_FLAG, ERROR_FLAG, ESI_FLAG, EXTENDED, FD_FLAG, FD_LENGTHS, REMOTE_FLAG

#: Group and port that python-can uses by default for IPv4.
DEFAULT_GROUP = "239.74.163.2"
DEFAULT_PORT = 43113
#: All that is on this computer, nothing beyond.
LOOPBACK = "127.0.0.1"

#: Room for late readers: at 24-byte frames the kernel accounts some 800 bytes each, so about 1300 frames. [bytes]
RECEIVE_BUFFER_BYTES = 1 << 20
#: Our own packets and packets that are no frames which one recv() skips after its time limit has passed.
USELESS_MAX = 64
#: Longest packet that can be a CAN frame in this format is about 230 bytes; the rest is refused unread. [bytes]
PACKET_BYTES_MAX = 512

#: Linux numbers that the socket module does not name.
_IP_MULTICAST_ALL = 49
_SO_RXQ_OVFL = getattr(socket, "SO_RXQ_OVFL", 40)


class CanBusError(TorqueloopError):
    """The CAN bus cannot be opened, or broke down."""


class MulticastPort:
    """One participant of the software bus. `recv` and `send` may be called from two different threads."""

    def __init__(
        self, group: str = DEFAULT_GROUP, port: int = DEFAULT_PORT, local_address: str = LOOPBACK, hop_limit: int = 0
    ) -> None:
        self.name: str = f"udp_multicast {group}:{port} on {local_address}"
        #: frames of ours that came back
        self.own_echoes: int = 0
        #: packets that are no CAN frame
        self.malformed: int = 0
        #: packets the kernel dropped because nobody read them in time
        self.kernel_drops: int = 0
        self._sockets: list[socket.socket] = []
        try:
            local = socket.inet_aton(local_address)
            if not 224 <= socket.inet_aton(group)[0] <= 239:
                allowed = "224.0.0.0 .. 239.255.255.255"
                raise CanBusError(f"CAN channel '{group}' is no IPv4 multicast group; allowed {allowed}")
            self._receiver = self._open_receiver(group, port, local)
            self._sockets.append(self._receiver)
            self._sender = self._open_sender(group, port, local, hop_limit)
            self._sockets.append(self._sender)
        except OSError as error:
            self.close()
            reason = _reason(error, group, port, local_address)
            raise CanBusError(f"cannot open CAN bus {self.name}: {reason}") from error
        # the source of our packets; the kernel chose the address when the socket was connected
        self._own = self._sender.getsockname()

    @staticmethod
    def _open_receiver(group: str, port: int, local: bytes) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            # both, as python-can does: all sockets of one port must agree
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            if sys.platform == "linux":
                sock.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
                # otherwise a group joined by any other process on another interface would be received here as well
                sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            sock.bind((group if sys.platform == "linux" else "", port))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + local)
        except OSError:
            sock.close()
            raise
        return sock

    @staticmethod
    def _open_sender(group: str, port: int, local: bytes, hop_limit: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, local)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hop_limit)
            sock.connect((group, port))
        except OSError:
            sock.close()
            raise
        return sock

    @property
    def bus_off(self) -> bool:
        """A bus in software is never off."""
        return False

    def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None:
        """Next frame of another participant as (id, data, flags); None if there is none for `timeout_s`.

        A flood of packets that are no frames does not prolong it: after `timeout_s`, USELESS_MAX are skipped at most.
        """
        end, useless = time.monotonic() + timeout_s, 0
        while useless < USELESS_MAX or time.monotonic() < end:
            self._receiver.settimeout(timeout_s)
            try:
                packet, ancillary, _, source = self._receiver.recvmsg(PACKET_BYTES_MAX, 64)
            except (TimeoutError, BlockingIOError):
                return None
            except OSError as error:
                raise CanBusError(f"CAN bus {self.name}: receiving failed: {error}") from error
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
                    self.kernel_drops = struct.unpack("=I", data)[0]
            useless += 1
            if source == self._own:
                self.own_echoes += 1
            else:
                frame = unpack_frame(packet)
                if frame is not None:
                    return frame
                self.malformed += 1
            timeout_s = max(0.0, end - time.monotonic())
        return None

    def send(self, can_id: int, data: bytes, flags: int = 0) -> None:
        """Send a data frame; `can_id` with bit 31 set for 29-bit identifiers, `flags` FD_FLAG and BRS_FLAG."""
        try:
            self._sender.send(pack_frame(can_id, data, flags))
        except OSError as error:
            raise CanBusError(f"CAN bus {self.name}: sending failed: {error}") from error

    def close(self) -> None:
        """Leave the group and close the sockets."""
        for sock in self._sockets:
            sock.close()


def pack_frame(can_id: int, data: bytes, flags: int = 0) -> bytes:
    """A data frame as python-can packs it."""
    packed: bytes = msgpack.packb(
        {
            "timestamp": 0.0,
            "arbitration_id": can_id & 0x1FFFFFFF,
            "is_extended_id": bool(can_id & EXTENDED),
            "is_remote_frame": False,
            "is_error_frame": False,
            "channel": None,
            "dlc": len(data),
            "data": data,
            "is_fd": bool(flags & FD_FLAG),
            "bitrate_switch": bool(flags & BRS_FLAG),
            "error_state_indicator": bool(flags & ESI_FLAG),
        }
    )
    return packed


def unpack_frame(packet: bytes) -> tuple[int, bytes, int] | None:
    """(id, data, flags) of a packet, None if it is not a CAN frame in python-can's form."""
    try:
        fields: Any = msgpack.unpackb(packet, raw=False, max_map_len=16, max_array_len=0, max_ext_len=0)
        can_id, data = fields["arbitration_id"], fields["data"]
        extended, dlc = fields["is_extended_id"], fields["dlc"]
        remote, error = fields["is_remote_frame"], fields["is_error_frame"]
    except Exception:  # msgpack raises many kinds; whatever it is, this is no frame
        return None
    if type(can_id) is not int or type(dlc) is not int or not 0 <= can_id <= (0x1FFFFFFF if extended else 0x7FF):
        return None
    if remote:
        return can_id | (EXTENDED if extended else 0), b"", REMOTE_FLAG
    if type(data) is not bytes or len(data) != dlc:
        return None
    flags = ERROR_FLAG if error else 0
    if fields.get("is_fd"):
        flags |= FD_FLAG | (BRS_FLAG if fields.get("bitrate_switch") else 0)
        flags |= ESI_FLAG if fields.get("error_state_indicator") else 0
    if dlc not in FD_LENGTHS if flags & FD_FLAG else dlc > 8:
        return None
    return can_id | (EXTENDED if extended else 0), data, flags


def multicast_works(
    group: str = DEFAULT_GROUP, local_address: str = LOOPBACK, timeout_s: float = 0.5
) -> tuple[bool, str]:
    """(ok, reason): is a frame delivered from one socket to another on this computer? Uses a port of its own."""
    # a free port: ask the kernel for one
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    a = b = None
    try:
        a, b = MulticastPort(group, port, local_address), MulticastPort(group, port, local_address)
        a.send(1, b"probe")
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            if b.recv(left) == (1, b"probe", 0):
                return True, f"multicast group {group} works on {local_address}"
        return False, (
            f"multicast group {group} on {local_address}: joined, but a packet was not delivered within {timeout_s} s; "
            "a packet filter (iptables, nftables, firewalld) may drop it"
        )
    except CanBusError as error:
        return False, str(error)
    finally:
        for port_object in (a, b):
            if port_object is not None:
                port_object.close()


def _reason(error: OSError, group: str, port: int, local_address: str) -> str:
    """What an OSError while opening means for the user."""
    if error.errno in (errno.ENODEV, errno.EADDRNOTAVAIL):
        return (
            f"no network interface has the address {local_address}, or it is down ({error.strerror}); "
            f'local_address = "{LOOPBACK}" needs only `ip link set lo up`'
        )
    if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return f"no route to {group} through {local_address} ({error.strerror})"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken by a program that does not share it; choose another `port`"
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"the system does not allow multicast here ({error.strerror}); containers may need their own network"
    if error.errno is None:
        return f"'{local_address}' or '{group}' is no IPv4 address"
    return f"{error.strerror} (errno {error.errno})"
