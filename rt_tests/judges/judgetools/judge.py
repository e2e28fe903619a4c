"""What a receiver sees wrong in frames: cantools decodes, autosar-e2e checks; opendbc's parser does both beside it.

opendbc reads a database of its own where it has one of the same name: what it takes, and the values, must be the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import can
import cantools
import e2e
from opendbc.can.dbc import DBC
from opendbc.can.parser import MAX_BAD_COUNTER, CANParser

#: how a finding begins that is none of the bus
DIFFER = "the judges differ:"
#: a frame may come so much early or late against its cycle time
TOLERANCE = 0.3


@dataclass
class Watched:
    """What is known of one message."""

    last_s: float | None = None
    counter: int | None = None
    ids: list[int] = field(default_factory=list)


def attribute(message: Any, name: str, default: Any) -> Any:
    """An attribute of a message in its DBC."""
    given = message.dbc.attributes
    return given[name].value if name in given else default


class Judge:
    """Frames in, findings out."""

    def __init__(self, database: Path, constants: dict[str, float]) -> None:
        self.constants = constants
        self.database = cantools.database.load_file(database)
        self.watched: dict[int, Watched] = {}
        self.frames = 0
        self.parser = self._parser(database.stem)
        #: frames that opendbc's parser has read as well, and those of them it has taken
        self.parsed = self.taken = 0

    def _parser(self, name: str) -> CANParser | None:
        try:
            known = DBC(name)
        except FileNotFoundError:
            return None
        both = [m.name for m in self.database.messages if m.name in known.name_to_msg]
        return CANParser(name, [(message, math.nan) for message in both], 0)

    def take(self, frame: can.Message) -> Iterator[tuple[str, str]]:
        """(message, what is wrong) of one frame."""
        self.frames += 1
        try:
            message = self.database.get_message_by_frame_id(frame.arbitration_id)
        except KeyError:
            yield hex(frame.arbitration_id), "unknown"
            return
        seen = self.watched.setdefault(frame.arbitration_id, Watched())
        before, seen.last_s = seen.last_s, frame.timestamp
        data = bytes(frame.data)
        if len(data) != message.length:
            yield message.name, "length"
            return
        cycle = (message.cycle_time or 0) * 1e-3
        if before is not None and cycle and abs(frame.timestamp - before - cycle) > TOLERANCE * cycle:
            yield message.name, "cycle"
        right = self._profile_2(message, data)
        values = message.decode(data, decode_choices=False)
        differ = self._opendbc(frame, message, values, right)
        if differ:
            yield message.name, differ
        if not right:
            yield message.name, "checksum"
            return
        name = str(attribute(message, "E2ECounterSignal", ""))
        for signal, value in values.items():
            if abs(self.constants.get(f"{message.name}.{signal}", value) - value) > 1e-9:
                yield message.name, f"value of {signal}"
        if name:
            step = (int(values[name]) - (seen.counter if seen.counter is not None else int(values[name]) - 1)) % (
                int(attribute(message, "E2ECounterMax", 15)) + 1
            )
            seen.counter = int(values[name])
            if step != 1:
                yield message.name, "repeat" if step == 0 else "jump"

    def _profile_2(self, message: Any, data: bytes) -> bool:
        """Whether the checksum is right; of messages with another rule or none nothing is known."""
        if str(attribute(message, "E2EProfile", "NONE")) != "AUTOSAR_P02":
            return True
        ids = [int(word, 16) for word in str(attribute(message, "E2EDataIDList", "")).split()]
        return len(ids) == 16 and bool(e2e.p02.e2e_p02_check(data, data_id_list=bytes(ids)))

    def _opendbc(self, frame: can.Message, message: Any, values: dict[str, Any], right: bool) -> str | None:
        """What opendbc makes of it otherwise. It leaves out wrong checksums, and what follows five wrong counters."""
        state = None if self.parser is None else self.parser.message_states.get(frame.arbitration_id)
        if self.parser is None or state is None:
            return None
        time_ns = round(1e9 * frame.timestamp)
        taken = bool(self.parser.update([(time_ns, [(frame.arbitration_id, bytes(frame.data), 0)])]))
        self.parsed += 1
        self.taken += taken
        if right and state.counter_fail < MAX_BAD_COUNTER and not taken:
            return f"{DIFFER} autosar-e2e takes it, opendbc does not"
        if not right and taken:
            return f"{DIFFER} opendbc takes it, autosar-e2e does not"
        theirs = self.parser.vl[message.name]
        off = [s for s, v in values.items() if taken and s in theirs and abs(theirs[s] - v) > 1e-6 * max(1.0, abs(v))]
        return f"{DIFFER} opendbc has {off[0]} = {theirs[off[0]]}, cantools {values[off[0]]}" if off else None
