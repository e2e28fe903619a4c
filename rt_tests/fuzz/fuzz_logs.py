"""Logs of a bus, of all forms that python-can writes and a rig sends again."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

import can
import mutate

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.recorded import RecordedBus

#: forms; MF4 is read by asammdf, .db by SQLite
FORMS = (".log", ".asc", ".trc", ".csv", ".blf", ".db")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-"))


def _messages() -> list[can.Message]:
    """Data frames of both lengths of identifiers, FD frames, a remote and an error frame, on two channels."""
    times = (1000.0 + 0.01 * k for k in range(8))
    kinds: list[dict[str, object]] = [
        {"data": bytes(8)}, {"data": b"\1\2", "is_extended_id": True, "arbitration_id": 0x1ABCDEF},
        {"data": bytes(64), "is_fd": True, "bitrate_switch": True}, {"data": bytes(12), "is_fd": True},
        {"is_remote_frame": True, "dlc": 4}, {"is_error_frame": True}, {"data": b"", "channel": 1},
        {"data": b"\xff" * 8},
    ]  # fmt: skip
    common = {"arbitration_id": 0x210, "is_extended_id": False, "channel": 0}
    return [can.Message(timestamp=t, **{**common, **kind}) for t, kind in zip(times, kinds, strict=True)]  # type: ignore[arg-type]


def logs() -> list[bytes]:
    """The ending, and a log."""
    found = []
    for form in FORMS:
        path = _folder() / f"seed{form}"
        with can.Logger(path) as log:
            for message in _messages():
                log.on_message_received(message)
        found += [form.encode() + b"\0" + path.read_bytes()]
    return [*found, b".txt\0x", b".log\0"]


def changed(data: bytes, rng: random.Random) -> bytes:
    """A log with other bytes or words."""
    form, _, content = data.partition(b"\0")
    return form + b"\0" + (mutate.binary if form in (b".blf", b".db") else mutate.text)(content, rng)


def read_log(data: bytes) -> None:
    """All frames, and those of a channel and of some identifiers: each is a frame that a bus can have."""
    form, _, content = data.partition(b"\0")
    if form.decode("ascii", "replace") not in (*FORMS, ".txt"):
        return
    path = _folder() / f"given{form.decode()}"
    path.write_bytes(content)
    for bus in (RecordedBus(path), RecordedBus(path, 0, lambda can_id: can_id != 0x210), RecordedBus(path, "none")):
        try:
            bus.check()
            for t, frame in bus:
                assert t == t and 0 <= frame.can_id < 1 << 32 and len(frame.data) <= 64
        except ConfigError as error:
            assert "given" in str(error)
