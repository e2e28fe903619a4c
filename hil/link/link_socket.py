"""ZeroMQ sockets with limits, optional CURVE keys and clean closing.

A socket is on loopback only, unless both sides have CURVE keys. DEALER with an empty first frame is what REQ sends; REQ
itself never gets its answer when it binds with CURVE and an authenticator (seen with libzmq 4.3.5).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zmq

from torqueloop.hil.link.endpoints import CurveKeys, PeerError, check_endpoint

if TYPE_CHECKING:
    from zmq.auth.thread import ThreadAuthenticator

#: a connection that has not said what it is within this time is closed [ms]
HANDSHAKE_MS = 1000
#: connections that wait to be accepted
BACKLOG = 16
#: a waiting socket is looked at this often, so that stop requests and a dead child are seen
POLL_SLICE_MS = 20


class LinkSocket:
    """A ZeroMQ socket with limits, optional CURVE and clean closing."""

    def __init__(
        self,
        kind: int,
        endpoint: str,
        bind: bool,
        curve: CurveKeys | None,
        context: zmq.Context[Any] | None,
        queue: int = 1024,
        max_bytes: int = 65536,
    ) -> None:
        endpoint = check_endpoint(endpoint, curve)
        self._context = context or zmq.Context.instance()
        self._authenticator: ThreadAuthenticator | None = None
        self.raw: zmq.Socket[bytes] = self._context.socket(kind)
        try:
            self.raw.setsockopt(zmq.LINGER, 200)
            self.raw.setsockopt(zmq.SNDHWM, 64)
            self.raw.setsockopt(zmq.RCVHWM, queue)
            # a longer message closes the connection before it is stored; the schema's own limit is lower and counted
            self.raw.setsockopt(zmq.MAXMSGSIZE, max_bytes)
            # who connects and stays silent costs a file descriptor for this long only
            self.raw.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
            self.raw.setsockopt(zmq.BACKLOG, BACKLOG)
            if curve is not None:
                self._secure(curve, bind)
            if bind:
                self.raw.bind(endpoint)
                self.endpoint: Any = self.raw.getsockopt_string(zmq.LAST_ENDPOINT)
            else:
                self.raw.connect(endpoint)
                self.endpoint = endpoint
        except (zmq.ZMQError, OSError) as error:
            self.close()
            raise PeerError(f"endpoint {endpoint}: cannot {'bind' if bind else 'connect'}: {error}") from None
        except PeerError:
            self.close()
            raise

    def _secure(self, curve: CurveKeys, server: bool) -> None:
        public, secret = _certificate(curve.own_secret)
        if secret is None:
            raise PeerError(f"{curve.own_secret}: holds no secret key")
        self.raw.curve_publickey, self.raw.curve_secretkey = public, secret
        if server:
            if curve.clients is None:
                raise PeerError("CURVE on the binding side needs the folder of the clients' public certificates")
            if not os.path.isdir(curve.clients):
                raise PeerError(f"{curve.clients}: no folder of public certificates of clients")
            # brings asyncio and ssl along: most links have no keys
            from zmq.auth.thread import ThreadAuthenticator

            self._authenticator = ThreadAuthenticator(self._context)
            self._authenticator.start()
            self._authenticator.configure_curve(domain="*", location=str(curve.clients))
            self.raw.curve_server = True
        else:
            if curve.server_public is None:
                raise PeerError("CURVE on the connecting side needs the rig's public certificate")
            self.raw.curve_serverkey = _certificate(curve.server_public)[0]

    def close(self) -> None:
        if not self.raw.closed:
            self.raw.close()
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None


class ConnectedSocket(LinkSocket):
    """A socket that is connected, for clients of the control channel."""

    def __init__(self, kind: int, endpoint: str, curve: CurveKeys | None, max_bytes: int) -> None:
        super().__init__(kind, endpoint, False, curve, None, max_bytes=max_bytes)
        # nothing is worth waiting for when it is closed
        self.raw.setsockopt(zmq.LINGER, 0)


def _certificate(path: Path) -> tuple[bytes, bytes | None]:
    """Public and secret key of a certificate; PeerError with the file if it is none."""
    # brings ssl along, as above
    from zmq.auth import load_certificate

    try:
        return load_certificate(path)
    except (OSError, ValueError) as error:
        raise PeerError(f"CURVE certificate {path}: {error}") from None
