"""Where the rig may be reached, and with which keys: without any, on loopback only."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError


class PeerError(TorqueloopError):
    """The other side does not answer, answers invalid data, or is not permitted."""


@dataclass(frozen=True)
class CurveKeys:
    """CURVE certificates (files of zmq.auth.create_certificates); needed as soon as an endpoint is not on loopback."""

    #: own certificate with the secret key; made by `torqueloop keys`
    own_secret: Path
    #: vehicle side: public certificate of the rig
    server_public: Path | None = None
    #: rig side: folder with the public certificates of those who may connect
    clients: Path | None = None


def check_endpoint(endpoint: str, curve: CurveKeys | None = None) -> str:
    """Return the endpoint if it may be used: tcp on loopback, ipc, inproc; any other address needs CURVE keys."""
    transport, separator, address = endpoint.partition("://")
    if not separator or not address or transport not in ("tcp", "ipc", "inproc") or not endpoint.isprintable():
        raise PeerError(f"endpoint {endpoint!r}: allowed: tcp://host:port, ipc://path, inproc://name")
    if transport == "ipc" and not address.startswith("@"):
        # binding takes away what is there: a socket that a process left behind, and nothing else
        with suppress(OSError):
            if not stat.S_ISSOCK(os.lstat(address).st_mode):
                raise PeerError(f"endpoint {endpoint!r}: {address} exists and is no socket; allowed: a path of its own")
    if transport == "tcp":
        host, colon, port = address.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
            raise PeerError(f"endpoint {endpoint!r}: port {port!r}, allowed: 0 .. 65535 (0: any free port)")
        # one address: ZeroMQ would take "source;destination", of which a look at the beginning sees the first only
        if not _HOST.fullmatch(host):
            raise PeerError(f"endpoint {endpoint!r}: {host!r} is no address; allowed: one name, IPv4 or [IPv6] address")
        if host == "localhost":
            # what a name means is up to others; this one has a meaning of its own
            return f"tcp://127.0.0.1:{port}"
        if not _on_loopback(host) and curve is None:
            raise PeerError(
                f"endpoint {endpoint!r} is not on loopback: allowed without CURVE keys: 127.0.0.1, localhost, [::1]"
            )
    return endpoint


_HOST = re.compile(r"\*|[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]")


def _on_loopback(host: str) -> bool:
    """An address, not a name that looks like one."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
