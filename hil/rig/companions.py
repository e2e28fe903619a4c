"""The processes beside the rig: soft control unit and vehicle model, started and stopped by the session.

    python -m torqueloop.hil.rig.companions tcu CONFIG [--bus JSON]
    python -m torqueloop.hil.rig.companions vehicle CONFIG --endpoint tcp://127.0.0.1:PORT [--lockstep]

A companion runs in a session of its own (Ctrl-C reaches the rig alone, which then ends it), writes to a log file in the
run directory, and dies with the rig (PR_SET_PDEATHSIG), so that a killed rig leaves no process behind.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from torqueloop.hil.realtime import rtenv

_PR_SET_PDEATHSIG = 1
#: first word of the line with which a companion hands over its counts when it ends
_STATS = "#stats "


class Companion:
    """One started process. `stop` always ends it."""

    def __init__(self, name: str, arguments: list[str], log: Path, priority: int = 0, lock: bool = False) -> None:
        """`priority`: SCHED_FIFO priority to ask for (0: ordinary), `lock`: memory to be locked; without the right to
        it, it runs all the same."""
        self.name, self.log = name, log
        self._file: IO[bytes] = log.open("wb")
        command = [sys.executable, "-m", "torqueloop.hil.rig.companions", *arguments]
        command += ["--parent", str(os.getpid()), "--priority", str(priority)]
        command += ["--lock"] if lock else []
        # the child finds the package where this process has found it
        path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])])
        path = os.pathsep.join(dict.fromkeys([*(p for p in sys.path if p), path]))
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
        )

    def ended(self) -> str | None:
        """None while it runs, else how it ended, with the last line it wrote."""
        status = self.process.poll()
        if status is None:
            return None
        how = f"has ended with status {status}" if status >= 0 else f"was ended by {_signal_name(-status)}"
        return f"{how}; its last line: {self._last_line()}"

    def _last_line(self) -> str:
        lines = [
            x
            for x in self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            if x and not x.startswith(_STATS)
        ]
        return lines[-1][:300] if lines else "(it wrote nothing)"

    def stop(self, timeout_s: float = 3.0) -> dict[str, Any]:
        """Ask it to end, insist after the timeout; its counts."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._file.close()
        for line in reversed(self.log.read_text(encoding="utf-8", errors="replace").splitlines()):
            if line.startswith(_STATS):
                try:
                    return {"status": self.process.returncode, **json.loads(line.removeprefix(_STATS))}
                except ValueError:
                    break
        return {"status": self.process.returncode, "last_line": self._last_line()}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _die_with(parent: int) -> None:
    """Be ended when the rig is gone, however it went."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            raise SystemExit("the rig has gone already")


def main(arguments: list[str] | None = None) -> int:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(prog="torqueloop.hil.rig.companions")
    parser.add_argument("kind", choices=["tcu", "vehicle"])
    parser.add_argument("config", type=Path)
    parser.add_argument("--endpoint")
    parser.add_argument("--lockstep", action="store_true")
    parser.add_argument("--bus", type=json.loads)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--lock", action="store_true")
    given = parser.parse_args(arguments)
    if given.parent is not None:
        _die_with(given.parent)
    measures = rtenv.prepare_companion(given.priority, given.lock)
    print("; ".join(m.reason for m in measures), flush=True)
    if given.kind == "tcu":
        from torqueloop.hil.tcu.config import load_tcu_config
        from torqueloop.hil.tcu.soft_tcu import main_loop as tcu_loop

        stats = tcu_loop(load_tcu_config(given.config, given.bus))
    else:
        from torqueloop.hil.vehicle.config import load_vehicle_config
        from torqueloop.hil.vehicle.model import main_loop as vehicle_loop

        stats = vehicle_loop(load_vehicle_config(given.config), given.endpoint, given.lockstep)
    stats = {**stats, "realtime": [m.as_dict() for m in measures]}
    print(_STATS + json.dumps(stats, default=str), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
