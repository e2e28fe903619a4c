"""When a message is sent: by the clock, on a change, on an event; as the database says, or as the rig file does.

GenMsgSendType          "cyclic", "spontaneous", "cyclicAndSpontaneous" ... in the words of many makers
GenMsgStartDelayTime    nothing is sent before [ms]
GenMsgDelayTime         between two frames that the clock does not send, at least [ms]
GenMsgNrOfRepetition    frames more after a change
"""

from __future__ import annotations

from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError

CYCLIC, ON_CHANGE, ON_EVENT, BOTH = "cyclic", "on_change", "on_event", "cyclic_and_on_change"
#: parts of the words databases have for sending by the clock, and without it
BY_CLOCK = ("cyclic", "periodic", "ifactive")
WITHOUT = ("spontan", "event", "change", "write", "trigger")
#: longest time of a database [ms]
LONGEST_MS = 1e6


@dataclass(frozen=True)
class SendTiming:
    """Of one message."""

    kind: str = CYCLIC
    start_ns: int = 0
    gap_ns: int = 0
    repeats: int = 0


def send_kind(words: str | None) -> str:
    """What the words of a database mean. A spontaneous message is sent when its content changes."""
    text = "".join((words or "").split()).lower()
    clock, other = any(w in text for w in BY_CLOCK), any(w in text for w in WITHOUT)
    return BOTH if clock and other else ON_CHANGE if other else CYCLIC


def timing_of(message: Any, path: str) -> SendTiming:
    """As the attributes of a message of cantools say; ConfigError for numbers that are none."""
    given = message.dbc.attributes if message.dbc is not None else {}

    def number(name: str, most: float) -> float:
        value = given[name].value if name in given else 0
        if not isinstance(value, int | float) or not 0 <= value <= most:
            where = f"message {message.name}: attribute {name}"
            raise ConfigError(where, file=path, value=value, allowed=f"0 .. {most:g}")
        return float(value)

    return SendTiming(
        send_kind(message.send_type),
        round(number("GenMsgStartDelayTime", LONGEST_MS) * 1e6),
        round(number("GenMsgDelayTime", LONGEST_MS) * 1e6),
        int(number("GenMsgNrOfRepetition", 1000)),
    )
