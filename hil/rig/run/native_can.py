"""Native SocketCAN of a run on the real clock: opened before the loop starts, watched while it runs.

The tick owns the socket (cython_kernels/socketcan). Here it is opened, listened to before anything is sent, and closed
after the loop has ended.
"""

from __future__ import annotations

from contextlib import ExitStack

from torqueloop.cython_kernels.can.socketcan import DATA, NativePort
from torqueloop.hil.can.bus import CanBusError
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.raw_socket import open_raw
from torqueloop.hil.rig.devices.device import BusPlan
from torqueloop.hil.rig.run.live_run import LiveRun, StartError

#: state of a controller as `ip` reports it -> can.state
STATES = {"ERROR-ACTIVE": 0, "ERROR-WARNING": 1, "ERROR-PASSIVE": 2, "BUS-OFF": 3}
#: messages taken in while listening, at most: a flooded bus must not hold up the start
_LISTEN_MAX = 20_000


def open_native(stack: ExitStack, run: LiveRun, bus: BusPlan) -> None:
    """Open the socket of a bus and give it to its port of the rig; StartError says what is missing."""
    can, database, port = bus.config, bus.database, run.parts.bus(bus.name).port
    assert port is not None
    try:
        raw = open_raw(
            can.channel,
            [bus_id(m) for m in database.rx_messages],
            bus.own_ids,
            need_fd=database.has_fd,
            receive_buffer_bytes=can.receive_buffer_bytes,
            send_buffer_bytes=can.send_buffer_bytes,
        )
    except CanBusError as error:
        raise StartError(f"{error}; [bus.{bus.name}] of {run.plan.path}") from None
    stack.callback(raw.close)
    # the socket is taken from the tick before it is closed
    stack.callback(port.close)
    port.open(raw.sock.fileno(), raw.fd_frames, STATES.get(raw.interface.state or "", 0))
    run.interfaces[bus.name] = raw.interface
    for text in raw.degraded:
        run.degrade(text)
    if raw.interface.state == "BUS-OFF":
        remedy = f"`ip link set {can.channel} type can restart`"
        raise StartError(f"{can.channel} is bus off: {remedy}; [bus.{bus.name}] of {run.plan.path}")


def heard(port: NativePort) -> set[int]:
    """Identifiers of other nodes that have come in so far. Before the loop runs."""
    found: set[int] = set()
    for _ in range(_LISTEN_MAX // 64):
        frames = port.receive(64)
        found |= {can_id for kind, can_id, *_ in frames if kind == DATA}
        if len(frames) < 64:
            break
    return found
