"""CURVE key pairs: made with safe file modes, refused when others can read the secret.

    torqueloop keys keys --name rig    keys/rig.key_secret: only its owner reads it; keys/rig.key: may be given away

The rig keeps its own secret and a folder with the public keys of those who may connect; they keep their secret and the
rig's public key.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import zmq
import zmq.auth

from torqueloop.hil.link.endpoints import CurveKeys, PeerError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def make_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a key pair: (public, secret) file. PeerError if there is one of that name already."""
    if not zmq.has("curve"):
        raise PeerError("this libzmq is built without CURVE")
    if not _NAME.fullmatch(name):
        raise PeerError(f"key name {name!r}; allowed: up to 64 letters, digits, '_', '-'")
    for suffix in (".key", ".key_secret"):
        if os.path.exists(folder / f"{name}{suffix}"):
            raise PeerError(f"{folder / name}{suffix} exists already: nothing is overwritten")
    # nobody but the owner can read what is written from here on
    mask = os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        public, secret = (Path(path) for path in zmq.auth.create_certificates(folder, name))
    finally:
        os.umask(mask)
    secret.chmod(0o600)
    public.chmod(0o644)
    return public, secret


def server_keys(secret: Path, clients: Path) -> CurveKeys:
    """Keys of a side that binds: own secret, folder with the public keys of those who may connect."""
    _check_secret(secret)
    if not os.path.isdir(clients):
        raise PeerError(f"{clients}: no folder with public keys of clients")
    if stray := sorted(p.name for p in clients.glob("*.key_secret")):
        raise PeerError(f"{clients}: holds a secret key ({stray[0]}); allowed: public keys (.key) of clients")
    return CurveKeys(secret, clients=clients)


def client_keys(secret: str | Path | None, server: str | Path | None) -> CurveKeys | None:
    """Keys of a side that connects: own secret, public key of the rig; None for none."""
    if secret is None and server is None:
        return None
    if secret is None or server is None:
        raise PeerError("CURVE needs both: the own secret key and the rig's public key")
    _check_secret(Path(secret))
    return CurveKeys(Path(secret), server_public=Path(server))


def _check_secret(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise PeerError(f"CURVE key {path}: {error.strerror}") from None
    if mode & 0o077:
        raise PeerError(f"CURVE key {path}: others may read it (mode {mode & 0o777:03o}); allowed: chmod 600 {path}")
