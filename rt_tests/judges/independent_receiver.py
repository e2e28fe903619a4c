"""A receiver that shares no code with us: python-can takes frames, autosar-e2e and opendbc check, cantools decodes.

    python rt_tests/judges/independent_receiver.py prove [sent received rules] [--quick]  a table
    python rt_tests/judges/independent_receiver.py LOG DATABASE [--channel N]     a log that python-can reads
    python rt_tests/judges/independent_receiver.py udp_multicast:239.74.163.2:43113 DATABASE --seconds 10

`prove` starts a rig in another process (lockstep_rig.py) and exchanges frames with it tick by tick over the
software bus: every disturbance of what it sends and of what it receives is seen in its window, and nothing outside; of
every rule of protection right frames are taken, and every single flipped bit is refused, by both. Status 1 if not.

The others print one line of JSON for everything that is not as it should be: time since the first frame, message, what.
Messages with VW MQB's rule (AUTOSAR profile 2) are checked by both libraries; all others by length, cycle time, counter
and the constants given. Nothing of torqueloop is imported.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import can

sys.path.insert(0, str(Path(__file__).parent))

from judgetools import exchange, protected, sent
from judgetools.judge import Judge
from judgetools.lockstep import NoBus
from judgetools.rules import RULES

POWERTRAIN = Path(__file__).resolve().parents[2] / "configs" / "examples" / "two_blocks.toml"
#: there is no bus here
SKIPPED = 77


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


def look(arguments: Sequence[str]) -> int:
    """A log or a bus. Status 0 whatever is found: the lines tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("database", type=Path)
    parser.add_argument("--channel", type=int)
    parser.add_argument("--constant", action="append", default=[], metavar="MESSAGE.SIGNAL=VALUE")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args(arguments)
    pairs = (text.split("=") for text in given.constant)
    judge, first = Judge(given.database, {name: float(value) for name, value in pairs}), None
    for frame in frames(given.source, given.channel, given.seconds):
        first = frame.timestamp if first is None else first
        for message, what in judge.take(frame):
            found = {"after": frame.timestamp - first, "message": message, "what": what}
            print(json.dumps(found))
    print(json.dumps({"frames": judge.frames}))
    return 0


def prove_sent(folder: Path, quick: bool) -> bool:
    """Disturbances of what the rig sends."""
    seen, outside, judge = sent.watched(folder, sent.CASES)
    rows = [
        [s.fault["kind"], s.on, ", ".join(f"{what} {many}" for (_, what), many in s.said.most_common(3)), _good(s)]
        for s in seen
    ]
    _table("sent by the rig (VW MQB)", ["kind", "on", "the receiver says, in the window", ""], rows)
    read = f"opendbc's parser has read {judge.parsed} of them, taken {judge.taken}"
    print(f"{judge.frames} frames, {read}; outside of all windows: {len(outside)} findings")
    print("\n".join(outside[:10]))
    return all(s.passed for s in seen) and not outside


def prove_received(folder: Path, quick: bool) -> bool:
    """Disturbances of what the rig receives."""
    seen = exchange.Exchange(folder, POWERTRAIN, exchange.CASES).run()
    rows = [
        [s.case.fault["kind"], s.case.on, _counts(s.inside), _counts(s.behind), f"{s.other} of {exchange.WINDOW}",
         "yes" if s.as_defined else "NO", s.outside, _good(s)]
        for s in seen
    ]  # fmt: skip
    heads = ["kind", "on", "counted in the window", "next frame", "other ticks", "as defined", "outside", ""]
    _table("received by the rig, or sent in answer", heads, rows)
    return all(s.passed for s in seen)


def prove_rules(folder: Path, quick: bool) -> bool:
    """Rules of protection, both ways."""
    rows = protected.Protected(folder, POWERTRAIN, RULES, every=8 if quick else 1).run()
    heads = ["message", "rule", "right here", "right there", "flips refused here", "there", ""]
    _table(
        "rules of protection", heads, [[*cells, _good(row)] for cells, row in zip(protected.table(rows), rows,
                                                                                 strict=True)]
    )  # fmt: skip
    flips, heard = sum(r.flips for r in rows), sum(r.heard for r in rows)
    print(f"{len(rows)} messages, {len({r.rule.profile for r in rows})} rules: {heard} right frames, {flips} flips")
    return all(row.passed for row in rows)


PROOFS = {"sent": prove_sent, "received": prove_received, "rules": prove_rules}


def prove(arguments: Sequence[str]) -> int:
    """Status 0 when all is as it should be, 77 where there is no bus."""
    parser = argparse.ArgumentParser(prog="independent_receiver.py prove")
    parser.add_argument("what", nargs="*", metavar="|".join(PROOFS))
    parser.add_argument("--quick", action="store_true", help="rules: every eighth bit")
    given = parser.parse_args(arguments)
    if unknown := set(given.what) - set(PROOFS):
        parser.error(f"{', '.join(unknown)}: none of {', '.join(PROOFS)}")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            for name in given.what or PROOFS:
                begin = time.monotonic()
                bad += not PROOFS[name](Path(folder), given.quick)
                print(f"({time.monotonic() - begin:.0f} s)\n")
        except NoBus as reason:
            print(f"not available here: {reason}", file=sys.stderr)
            return SKIPPED
    return 1 if bad else 0


def _good(seen: Any) -> str:
    return "" if seen.passed else "WRONG"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {n}" for reason, n in sorted(counts.items())) or "-"


def _table(title: str, heads: list[str], rows: list[list[Any]]) -> None:
    cells = [heads, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    print(title)
    for row in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(prove(words[1:]) if words[:1] == ["prove"] else look(words))
