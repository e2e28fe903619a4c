"""A process of ours beside the rig: started, watched, ended. It dies with the rig and writes to a log file."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from torqueloop.hil.common.blas_threads import with_one_thread

_PR_SET_PDEATHSIG = 1
T = TypeVar("T")
#: a free file descriptor is waited for this long [s]
PATIENCE_S = 5.0
#: first word of the line with which a child hands over its counts when it ends
STATS = "#stats "


def search_path() -> str:
    """Where a child of ours finds modules: the package itself, then what this process searches; but not the working
    directory or the folder of a script, which Python puts first without being asked (`python -m`, `python x.py`)."""
    asked = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    main = sys.modules.get("__main__")
    script = getattr(main, "__file__", None)
    implied = os.getcwd() if getattr(main, "__spec__", None) is not None or not script else str(Path(script).parent)
    ours = (p for p in sys.path if p and (sys.flags.safe_path or Path(p).absolute() != Path(implied).absolute()))
    found = [str(Path(__file__).parents[3]), *ours, *asked]
    return os.pathsep.join(dict.fromkeys(found))


def patiently(open_something: Callable[[], T]) -> T:
    """Done again for some seconds where there is no free file descriptor: clients who connect and say nothing hold
    one each, for HANDSHAKE_MS."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return open_something()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def start_module(module: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
    """Start `python -m module`. The process finds the package where this process found it, and imports nothing from the
    working directory because it happens to be there. All Python processes of the package start here.

    options: of `subprocess.Popen`.
    """
    environment = {**os.environ, "PYTHONPATH": search_path(), "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", module, *arguments], env=with_one_thread(environment), **options)


class Child:
    """One started process. `end` always ends it."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path | None, pass_fds: Sequence[int] = ()) -> None:
        """Run `python -m module`. `pass_fds`: open there too."""
        self.log = log
        self._file: IO[bytes] | None = patiently(lambda: log.open("wb")) if log is not None else None
        self.process: subprocess.Popen[bytes] = patiently(lambda: self._start(module, arguments, pass_fds))

    def _start(self, module: str, arguments: Sequence[str], pass_fds: Sequence[int]) -> subprocess.Popen[bytes]:
        return start_module(
            module, *arguments, "--parent", str(os.getpid()), stdin=subprocess.DEVNULL,
            stdout=self._file or subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
            pass_fds=tuple(pass_fds),
        )  # fmt: skip

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
        """Ask it to end, kill it after the timeout; its status. `by_itself_s`: time in which it may end by itself."""
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
    """Be ended when the rig is gone, however it went (in the child). By SIGKILL: the handler of another signal
    waits for the code of a control unit that does not return, which would occupy a processor for ever."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            raise SystemExit("the rig has gone already")
