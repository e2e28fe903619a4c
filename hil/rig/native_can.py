"""Native SocketCAN of a run on the real clock: opened before the loop starts, watched while it runs.

The tick owns the socket (cython_kernels/socketcan). Here it is opened, listened to before anything is sent, and closed
after the loop has ended.
"""

from __future__ import annotations

from contextlib import ExitStack

from torqueloop.cython_kernels.socketcan import DATA
from torqueloop.hil.can.bus import CanBusError
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.raw_socket import open_raw
from torqueloop.hil.rig.live_run import LiveRun, StartError

#: state of a controller as `ip` tells it -> can.state
STATES = {"ERROR-ACTIVE": 0, "ERROR-WARNING": 1, "ERROR-PASSIVE": 2, "BUS-OFF": 3}
#: messages taken in while listening, at most: a flooded bus must not hold up the start
_LISTEN_MAX = 20_000


def open_native(stack: ExitStack, run: LiveRun) -> None:
    """Open the socket and hand it to the port of the rig; StartError says what is missing."""
    can, database, port = run.plan.config.can, run.plan.database, run.parts.port
    assert can is not None and database is not None and port is not None
    try:
        raw = open_raw(
            can.channel,
            [bus_id(m) for m in database.rx_messages],
            database.own_ids,
            need_fd=database.has_fd,
            receive_buffer_bytes=can.receive_buffer_bytes,
            send_buffer_bytes=can.send_buffer_bytes,
        )
    except CanBusError as error:
        raise StartError(f"{error}; [can] of {run.plan.path}") from None
    stack.callback(raw.close)
    # the socket is taken from the tick before it is closed
    stack.callback(port.close)
    port.open(raw.sock.fileno(), raw.fd_frames, STATES.get(str(raw.info.get("state")), 0))
    run.native_info = raw.info
    for text in raw.degraded:
        run.degrade(text)
    if raw.info.get("state") == "BUS-OFF":
        remedy = f"`ip link set {can.channel} type can restart`"
        raise StartError(f"{can.channel} is bus off: {remedy}; [can] of {run.plan.path}")


def heard(run: LiveRun) -> set[int]:
    """Identifiers of other nodes that have come in so far. Before the loop runs."""
    port = run.parts.port
    assert port is not None
    found: set[int] = set()
    for _ in range(_LISTEN_MAX // 64):
        frames = port.receive(64)
        found |= {can_id for kind, can_id, *_ in frames if kind == DATA}
        if len(frames) < 64:
            break
    return found
