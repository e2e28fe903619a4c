"""The processes beside the rig: soft control unit and vehicle model, started and stopped by the session.

    python -m torqueloop.hil.rig.run.participants ecu KIND --setup JSON
    python -m torqueloop.hil.rig.run.participants vehicle KIND --setup JSON --endpoint tcp://127.0.0.1:PORT
    python -m torqueloop.hil.rig.run.participants vehicle KIND --setup JSON --pair FD

A participant runs in a session of its own (Ctrl-C reaches the rig alone, which then ends it). It writes to a log file
in the run directory, and dies with the rig (PR_SET_PDEATHSIG), so that a killed rig leaves no process behind.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.common.lean_imports import put_off_asammdf
from torqueloop.hil.link.child import STATS as _STATS
from torqueloop.hil.link.child import Child, die_with
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.results.run import Measure


@dataclass(frozen=True)
class Ended:
    """What a participant left: its counts, and the real-time measures that took effect in it."""

    stats: ParticipantStats
    realtime: list[Measure]


class Participant:
    """One started process. `stop` always ends it."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        log: Path,
        priority: int = 0,
        lock: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """`priority`: SCHED_FIFO priority to ask for (0: ordinary), `lock`: memory to be locked; without the right to
        it, it runs all the same."""
        self.name = name
        more = ["--priority", str(priority), *(["--lock"] if lock else [])]
        self._child = Child("torqueloop.hil.rig.run.participants", [*arguments, *more], log, pass_fds)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process itself."""
        return self._child.process

    def ended(self) -> str | None:
        """None while it runs, else how it ended, with the last line it wrote."""
        return self._child.ended()

    def stop(self, timeout_s: float = 3.0) -> Ended:
        """Ask it to end, insist after the timeout; its counts."""
        status = self._child.end(timeout_s)
        for line in reversed(self._child.lines()):
            if line.startswith(_STATS):
                try:
                    reported = json.loads(line.removeprefix(_STATS))
                    realtime = [Measure(**m) for m in reported.pop("realtime", [])]
                except (ValueError, TypeError, AttributeError):
                    break
                return Ended(ParticipantStats.of("process", reported, status), realtime)
        return Ended(ParticipantStats("process", status, self._child.last_line()), [])


def main(arguments: list[str] | None = None) -> int:
    """Entry of the child process."""
    put_off_asammdf()
    parser = argparse.ArgumentParser(prog="torqueloop.hil.rig.run.participants")
    parser.add_argument("what", choices=["ecu", "vehicle"])
    parser.add_argument("kind")
    parser.add_argument("--setup", required=True)
    parser.add_argument("--pair", type=int)
    parser.add_argument("--endpoint", default="")
    parser.add_argument("--parent", type=int)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--lock", action="store_true")
    given = parser.parse_args(arguments)
    if given.parent is not None:
        die_with(given.parent)
    measures = rtenv.prepare_participant(given.priority, given.lock)
    print("; ".join(m.reason for m in measures), flush=True)
    if given.what == "ecu":
        from torqueloop.hil.ecu.control_unit import setup_from_json as ecu_setup
        from torqueloop.hil.ecu.process import unit_loop

        stats = unit_loop(given.kind, ecu_setup(given.setup))
    else:
        from torqueloop.hil.vehicle.process import vehicle_loop
        from torqueloop.hil.vehicle.vehicle import setup_from_json as vehicle_setup

        stats = vehicle_loop(given.kind, vehicle_setup(given.setup), given.endpoint, pair=given.pair)
    stats = {**stats, "realtime": [asdict(m.report()) for m in measures]}
    print(_STATS + json.dumps(stats, default=str), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
