"""The machine ends with the script that has started it: `scripts/test --vm`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77

pytestmark = [
    pytest.mark.rt,
    pytest.mark.skipif(os.environ.get("TORQUELOOP_VM") != "1", reason="the machine is part of `scripts/test --vm`"),
]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_sigterm_of_the_script_ends_the_machine() -> None:
    words = [sys.executable, str(ROOT / "scripts" / "vm.py"), "--icount", "0", "--"]
    words += ["sh", "-c", "echo up; while :; do :; done"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        first = script.stdout.readline()
        if not first and script.wait() == SKIPPED:
            pytest.skip("no virtual machine here")
        assert first == "up\n"
        machines = children(script.pid)
        script.send_signal(signal.SIGTERM)
        status = script.wait(timeout=60.0)
    assert status == 128 + signal.SIGTERM
    assert machines and not any(Path(f"/proc/{pid}").exists() for pid in machines)
