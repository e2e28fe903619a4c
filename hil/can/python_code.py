"""A Python module with a class for each message of a node, and one that packs and unpacks them by our codec."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.hil.can.database import CanDatabase, SignalInfo

_HEAD = '''"""Messages of node {node} in {name}. Written by `torqueloop new ecu --python`.

    bus = Bus()
    message = bus.receive(frame, t_s)       # an object of one of the classes below, or None: bus.status says why
    frame = bus.frame({example}())    # with the next counter and the checksum

Values are in SI units.
"""

from __future__ import annotations

from dataclasses import asdict
from torqueloop.core.describe.classes import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import FD_FLAG, Frame

DATABASE = Path({path!r})
NODE = {node!r}

'''

_BUS = '''
#: class of each message by its name
MESSAGES: dict[str, Any] = {{{classes}}}
SENT: frozenset[str] = frozenset({sent!r})
FD: frozenset[str] = frozenset({fd!r})


class Bus:
    """Counters of all messages: what is sent next, what was received last."""

    def __init__(self, number: int = 0, database: Path = DATABASE) -> None:
        #: of this bus in frames
        self.number = number
        self.codec = CanDatabase.load(database, NODE, timeouts_s={{"*": 0.0}}, whole=True).codec()
        #: of the last received frame: "ok", or "unknown", "length", "format", "crc", "repeat", "jump", "range"
        self.status = "ok"

    def frame(self, message: Any) -> Frame:
        """The next frame of a message that this node sends. Values beyond the limits of the database are limited."""
        name = message.NAME
        values = {{message.SIGNALS[key]: value for key, value in asdict(message).items()}}
        data = self.codec.encode(name, values)
        return Frame(self.codec.can_id(name), data, FD_FLAG if name in FD else 0, self.number)

    def receive(self, frame: Frame, t_s: float = 0.0) -> Any:
        """The message of a frame; None if it was refused or is of no message, see `status`."""
        self.status, values = self.codec.decode(frame.can_id, frame.data, t_s, frame.flags & FD_FLAG)
        name = self.codec.message_of(frame.can_id)
        if self.status != "ok" or name is None:
            return None
        kind = MESSAGES[name]
        return kind(**{{key: values[signal] for key, signal in kind.SIGNALS.items()}})

    def save(self) -> dict[str, Any]:
        """Everything that changes, for checkpoints."""
        return self.codec.save()

    def load(self, state: dict[str, Any]) -> None:
        """Inverse of save."""
        self.codec.load(state)
'''


def python_code(path: str | Path, node: str) -> str:
    """The module. ConfigError on a database that does not fit."""
    path = Path(path).resolve()
    database = CanDatabase.load(path, node, timeouts_s={"*": 0.0}, whole=True)
    names = {m.name: _class_name(m.name) for m in database.messages}
    example = next((names[m.name] for m in database.tx_messages), "Message")
    text = _HEAD.format(node=node, name=path.name, path=str(path), example=example)
    text += "".join(_class(m, names[m.name], database.signals) for m in database.messages)
    classes = ", ".join(f"{name!r}: {kind}" for name, kind in names.items())
    sent = sorted(m.name for m in database.tx_messages)
    return text + _BUS.format(classes=classes, sent=sent, fd=sorted(m.name for m in database.messages if m.fd))


def _class_name(message: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W+|_", message) if part) or "Message"


def _member(signal: str) -> str:
    name = re.sub(r"\W", "_", signal)
    return f"{name}_" if keyword.iskeyword(name) or name in ("NAME", "SIGNALS") else name


def _class(message: MessageSpec, kind: str, signals: tuple[SignalInfo, ...]) -> str:
    what = "received" if message.receive else "sent"
    every = f" every {message.cycle_ns / 1e6:g} ms" if message.cycle_ns else ""
    text = f"\n@dataclass\nclass {kind}:\n"
    text += f'    """{kind}, 0x{message.can_id:X}, {message.length} bytes, {what}{every}."""\n\n'
    text += f"    NAME: ClassVar[str] = {message.name!r}\n"
    mine = [signals[s.slot] for s in message.signals]
    members = ", ".join(f"{_member(s.name)!r}: {s.name!r}" for s in mine)
    text += f"    SIGNALS: ClassVar[dict[str, str]] = {{{members}}}\n"
    for s in mine:
        low, high = ("?" if x is None else f"{x:g}" for x in (s.minimum, s.maximum))
        unit = re.sub(r"[^ -~]", "", s.si_unit)
        text += f"    #: {low} .. {high} {unit}\n    {_member(s.name)}: float = {s.start!r}\n"
    return text + "\n"
