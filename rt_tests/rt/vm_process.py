"""The measurement in the virtual machine as a process beside the other tests.

It takes minutes, counts instructions and so does not mind what else runs: `scripts/test --vm` starts this file when the
other tests begin, and test_vm.py judges what it left when they are done.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "vm-results"
#: exit status of scripts/vm_measure.py, written when it has ended
STATUS = RESULTS / "status"
#: of the rig in the machine [s]: through all gears; the minute of the README is scripts/vm_measure.py by itself
SECONDS = 30
#: longer than the machine is given (vm_measure.py), s
LIMIT = 3000.0


def main() -> int:
    """Measure and leave the results, the log and the exit status in RESULTS. SIGINT takes the machine along."""
    script, out = ROOT / "scripts" / "vm_measure.py", RESULTS / "measure.json"
    command = [sys.executable, str(script), "--out", str(out), "--seconds", str(SECONDS)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for stale in RESULTS.glob("*"):
        stale.unlink()
    with open(RESULTS / "measure.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            status = process.wait()
    STATUS.write_text(str(status))
    return status


def wait() -> tuple[int, str]:
    """Exit status of the measurement (77: not available here) and what it printed; TimeoutError when it never ends."""
    deadline = time.monotonic() + LIMIT
    while not STATUS.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {STATUS} after {LIMIT:.0f} s: was `scripts/test --vm` used?")
        time.sleep(1.0)
    return int(STATUS.read_text()), (RESULTS / "measure.log").read_text(encoding="utf-8")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with SIGINT ignored
    raise SystemExit(main())
