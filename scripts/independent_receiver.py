"""A receiver that shares no code with us: python-can takes frames, autosar-e2e and opendbc check, cantools decodes.

    python scripts/independent_receiver.py LOG DATABASE [--channel N]       a log of any tool, as python-can reads it
    python scripts/independent_receiver.py udp_multicast:239.74.163.2:43113 DATABASE --seconds 10      a bus that runs

Prints one line of JSON for everything that is not as it should be: time since the first frame, message, what. Messages
with VW MQB's rule (AUTOSAR profile 2) are checked by both libraries; all others by length, cycle time, counter and the
constants given. Nothing of torqueloop is imported.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import can
import cantools
import e2e
from opendbc.can.dbc import Signal, volkswagen_mqb_meb_checksum

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
        if str(attribute(message, "E2EProfile", "NONE")) == "AUTOSAR_P02":
            wrong = self._profile_2(message, data, frame.arbitration_id)
            if wrong:
                yield message.name, wrong
                return
        name = str(attribute(message, "E2ECounterSignal", ""))
        values = message.decode(data, decode_choices=False)
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

    def _profile_2(self, message: Any, data: bytes, address: int) -> str | None:
        ids = [int(word, 16) for word in str(attribute(message, "E2EDataIDList", "")).split()]
        by_autosar = len(ids) == 16 and bool(e2e.p02.e2e_p02_check(data, data_id_list=bytes(ids)))
        checksum = Signal("CHECKSUM", 0, 7, 0, 8, False, 1.0, 0.0, True)
        by_opendbc = volkswagen_mqb_meb_checksum(address, checksum, bytearray(data)) == data[0]
        if by_autosar != by_opendbc:
            return f"judges differ: autosar-e2e {by_autosar}, opendbc {by_opendbc}"
        return None if by_autosar else "checksum"


def frames(source: str, channel: int | None, seconds: float) -> Iterator[can.Message]:
    """Frames of a log, or of a bus."""
    live = re.fullmatch(r"(\w+):([\w.]+)(?::(\d+))?", source)
    if live and not Path(source).exists():
        more = {"port": int(live[3])} if live[3] else {}
        end = time.monotonic() + seconds
        with can.Bus(interface=live[1], channel=live[2], **more) as bus:  # type: ignore[abstract]
            while time.monotonic() < end:
                frame = bus.recv(0.1)
                if frame is not None:
                    yield frame
        return
    for frame in can.LogReader(source):
        if channel is None or str(frame.channel) in (str(channel), f"can{channel}"):
            yield frame


def main() -> int:
    """Status 0 whatever is found: the lines tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("database", type=Path)
    parser.add_argument("--channel", type=int)
    parser.add_argument("--constant", action="append", default=[], metavar="MESSAGE.SIGNAL=VALUE")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    pairs = (text.split("=") for text in given.constant)
    judge, first = Judge(given.database, {name: float(value) for name, value in pairs}), None
    for frame in frames(given.source, given.channel, given.seconds):
        first = frame.timestamp if first is None else first
        for message, what in judge.take(frame):
            found = {"after": frame.timestamp - first, "message": message, "what": what}
            print(json.dumps(found))
    print(json.dumps({"frames": judge.frames}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
