"""A process of ours beside the rig: started, watched, ended. It dies with the rig and writes to a log file."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
#: first word of the line with which a child hands over its counts when it ends
STATS = "#stats "


class Child:
    """One started process. `end` always ends it."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path | None, pass_fds: Sequence[int] = ()) -> None:
        """Run `python -m module`, with the package found where this process found it. `pass_fds`: open there too."""
        self.log = log
        self._file: IO[bytes] | None = log.open("wb") if log is not None else None
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        path = os.pathsep.join(dict.fromkeys([*(p for p in sys.path if p), path]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, "--parent", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=self._file or subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            pass_fds=tuple(pass_fds),
        )

    def ended(self) -> str | None:
        """None while it runs, else how it ended, with the last line it wrote."""
        status = self.process.poll()
        if status is None:
            return None
        how = f"has ended with status {status}" if status >= 0 else f"was ended by {signal_name(-status)}"
        return f"{how}; its last line: {self.last_line()}"

    def lines(self) -> list[str]:
        """What it has written so far."""
        if self.log is None:
            return []
        return [x for x in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if x]

    def last_line(self) -> str:
        """The last line it wrote for people."""
        lines = [line for line in self.lines() if not line.startswith(STATS)]
        return lines[-1][:300] if lines else "(it wrote nothing)"

    def end(self, timeout_s: float = 3.0, by_itself_s: float = 0.0) -> int:
        """Ask it to end, insist after the timeout; its status. `by_itself_s`: it has been told, give it time."""
        if by_itself_s:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(by_itself_s)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self._file is not None:
            self._file.close()
        return int(self.process.returncode)


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def die_with(parent: int) -> None:
    """Be ended when the rig is gone, however it went (in the child)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            raise SystemExit("the rig has gone already")
