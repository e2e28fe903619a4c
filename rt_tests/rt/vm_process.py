"""The measurement in the virtual machine as a process beside the other tests.

It takes minutes, counts instructions and so does not mind what else runs: it is started when the tests have been
collected, and judged (test_vm.py) when the others are done.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "vm-results"
_running: list[subprocess.Popen[str]] = []


def start() -> None:
    """Start scripts/vm_measure.py, once."""
    if _running:
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for stale in RESULTS.glob("*"):
        stale.unlink()
    command = [sys.executable, str(ROOT / "scripts" / "vm_measure.py"), "--out", str(RESULTS / "measure.json")]
    with open(RESULTS / "measure.log", "w", encoding="utf-8") as log:
        _running.append(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, text=True)
        )
    atexit.register(_stop)


def _stop() -> None:
    # as Ctrl-C would: the script takes its machine with it
    for process in _running:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def wait() -> tuple[int, str]:
    """Its exit status (77: not available here) and what it printed."""
    start()
    status = _running[0].wait()
    return status, (RESULTS / "measure.log").read_text(encoding="utf-8")
