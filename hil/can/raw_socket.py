"""Opening a raw CAN socket for the tick: filters, buffers, time stamps; what took effect is said, what is missing too.

Everything here happens before arming. From then on cython_kernels/can/socketcan reads and writes the socket.
"""

from __future__ import annotations

import errno
import json
import socket
import struct
import subprocess
from collections.abc import Collection
from dataclasses import field
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.can.frame import EXTENDED
from torqueloop.hil.can.multicast import CanBusError
from torqueloop.hil.results.links import Interface

#: Linux numbers that the socket module does not name on every machine.
_SO_RXQ_OVFL = 40
_SO_RCVBUFFORCE = 33
_SO_SNDBUFFORCE = 32
_SO_TIMESTAMPNS = 35
_SO_TIMESTAMPING = 37
_RX_HARDWARE, _RX_SOFTWARE, _SOFTWARE, _RAW_HARDWARE = 1 << 2, 1 << 3, 1 << 4, 1 << 6
_SOL_CAN_RAW = 101
_CAN_RAW_FILTER, _CAN_RAW_ERR_FILTER, _CAN_RAW_RECV_OWN_MSGS, _CAN_RAW_FD_FRAMES = 1, 2, 4, 5
_CAN_RTR_FLAG = 0x40000000
#: all classes of error frames
_CAN_ERR_MASK = 0x1FFFFFFF
#: filters the kernel takes for one socket
_FILTERS_MAX = 512
_CANFD_MTU = 72
_IFF_UP = 1
_NET = Path("/sys/class/net")


@dataclass
class RawSocket:
    """An open socket and what is known of it; `interface` goes into run.json."""

    sock: socket.socket
    fd_frames: bool
    info: dict[str, Any] = field(default_factory=dict)
    #: what did not take effect, in words
    degraded: list[str] = field(default_factory=list)

    @property
    def interface(self) -> Interface:
        """What was found, for run.json."""
        return Interface(**self.info)

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


def open_raw(
    channel: str,
    ids: Collection[int],
    own_ids: Collection[int] = (),
    *,
    need_fd: bool = False,
    receive_buffer_bytes: int = 1 << 20,
    send_buffer_bytes: int = 1 << 14,
) -> RawSocket:
    """A non-blocking raw socket on the network interface `channel`; CanBusError says what is missing and what to do.

    ids: identifiers we receive, own_ids: those we send (bit 31 set for 29-bit ones); nothing else comes through.
    need_fd: the database has CAN FD messages. The two sizes are bytes as the kernel accounts them before it doubles
    them: about 700 per waiting classic frame.
    """
    device = interface_info(channel)
    if need_fd and device["mtu"] < _CANFD_MTU:
        raise CanBusError(
            f"the database has CAN FD messages, {channel} carries classic frames only (mtu {device['mtu']}): "
            f"`ip link set {channel} down; ip link set {channel} type can bitrate 500000 dbitrate 2000000 fd on` "
            f"(vcan: `ip link set {channel} mtu 72`)"
        )
    try:
        sock = socket.socket(
            socket.AF_CAN, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.CAN_RAW
        )
    except (AttributeError, OSError) as error:
        raise CanBusError(
            f"no SocketCAN on this machine ({error}): `modprobe can-raw` (container: on its host), or another "
            f'`interface` in [bus.NAME], e.g. "udp_multicast"'
        ) from None
    raw = RawSocket(sock, device["mtu"] >= _CANFD_MTU)
    try:
        _set_filters(raw, ids, own_ids)
        sock.setsockopt(_SOL_CAN_RAW, _CAN_RAW_ERR_FILTER, struct.pack("=I", _CAN_ERR_MASK))
        sock.setsockopt(_SOL_CAN_RAW, _CAN_RAW_RECV_OWN_MSGS, 1)
        if raw.fd_frames:
            sock.setsockopt(_SOL_CAN_RAW, _CAN_RAW_FD_FRAMES, 1)
        prepare(raw, receive_buffer_bytes, send_buffer_bytes)
        sock.bind((channel,))
    except OSError as error:
        sock.close()
        raise CanBusError(f"cannot open {channel}: {error.strerror}; {_hint(channel, error)}") from error
    raw.info |= device | {"fd_frames": raw.fd_frames}
    return raw


def prepare(raw: RawSocket, receive_buffer_bytes: int, send_buffer_bytes: int) -> None:
    """Buffers, drop count and time stamps: the part that any datagram socket can have (tests use UDP)."""
    sock = raw.sock
    for name, force, plain, wanted in (
        ("receive", _SO_RCVBUFFORCE, socket.SO_RCVBUF, receive_buffer_bytes),
        ("send", _SO_SNDBUFFORCE, socket.SO_SNDBUF, send_buffer_bytes),
    ):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, wanted)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, plain, wanted)
        # the kernel doubles what it is asked for: that is its own accounting
        got = sock.getsockopt(socket.SOL_SOCKET, plain)
        raw.info[f"{name}_buffer_bytes"] = got
        if got < 2 * wanted and wanted >= 4096:
            limit = "rmem_max" if name == "receive" else "wmem_max"
            raw.degraded.append(
                f"CAN {name} buffer: {got // 2} of {wanted} bytes; as root, or `sysctl net.core.{limit}={wanted}`"
            )
    sock.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
    try:
        flags = _RX_HARDWARE | _RAW_HARDWARE | _RX_SOFTWARE | _SOFTWARE
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def can_filters(ids: Collection[int], own_ids: Collection[int] = ()) -> bytes:
    """Kernel filters (id, mask) for exactly the data frames with these identifiers; all frames if they are too many."""
    wanted = sorted({*ids, *own_ids})
    if len(wanted) > _FILTERS_MAX:
        return struct.pack("=II", 0, 0)
    return b"".join(
        struct.pack("=II", i, EXTENDED | _CAN_RTR_FLAG | (0x1FFFFFFF if i & EXTENDED else 0x7FF)) for i in wanted
    )


def _set_filters(raw: RawSocket, ids: Collection[int], own_ids: Collection[int]) -> None:
    filters = can_filters(ids, own_ids)
    raw.sock.setsockopt(_SOL_CAN_RAW, _CAN_RAW_FILTER, filters)
    raw.info["filters"] = len(filters) // 8
    if len({*ids, *own_ids}) > _FILTERS_MAX:
        raw.degraded.append(f"CAN filters: more than {_FILTERS_MAX} identifiers, all frames of the bus are read")


def interface_info(channel: str) -> dict[str, Any]:
    """mtu, txqueuelen and, of a real controller, state, bit rate, restart-ms. CanBusError if it cannot be used."""
    folder = _NET / channel
    if not folder.is_dir() or "/" in channel:
        known = sorted(p.name for p in _NET.iterdir() if _type(p) == 280) if _NET.is_dir() else []
        there = f"CAN interfaces here: {', '.join(known)}" if known else "no CAN interface is here"
        raise CanBusError(
            f"there is no network interface '{channel}' ({there}); a virtual one: `modprobe vcan; ip link add dev "
            f"{channel} type vcan; ip link set {channel} mtu 72 up`; no CAN at all on this machine: "
            f'interface = "udp_multicast" in [bus.NAME]'
        )
    if _type(folder) != 280:
        raise CanBusError(f"'{channel}' is no CAN interface")
    if not int((folder / "flags").read_text(), 16) & _IFF_UP:
        raise CanBusError(f"the interface {channel} is down: `ip link set {channel} up`")
    info: dict[str, Any] = {
        "channel": channel,
        "mtu": int((folder / "mtu").read_text()),
        "txqueuelen": int((folder / "tx_queue_len").read_text()),
    }
    return info | _controller(channel)


def _type(folder: Path) -> int:
    # ARPHRD_CAN is 280
    try:
        return int((folder / "type").read_text())
    except (OSError, ValueError):
        return -1


def _controller(channel: str) -> dict[str, Any]:
    """What `ip` reports about a controller; nothing if it is not installed or the interface is virtual."""
    try:
        text = subprocess.run(
            ["ip", "-details", "-json", "link", "show", "dev", channel], capture_output=True, timeout=2, check=True
        ).stdout
        data = json.loads(text)[0]["linkinfo"]["info_data"]
        found = {"state": data.get("state"), "bitrate": data.get("bittiming", {}).get("bitrate")}
        found |= {"restart_ms": data.get("restart_ms"), "dbitrate": data.get("data_bittiming", {}).get("bitrate")}
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, IndexError, AttributeError):
        return {}
    return {k: v for k, v in found.items() if v is not None}


def _hint(channel: str, error: OSError) -> str:
    if error.errno in (errno.ENODEV, errno.ENXIO):
        return f"`ip link show {channel}`"
    if error.errno in (errno.EPERM, errno.EACCES):
        return "the system does not allow raw CAN sockets here; containers may need their own network"
    return f"errno {error.errno}"
