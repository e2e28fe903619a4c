"""The kernels built with the sanitizers of the compiler, on the unit tests of codec and rings and on forged inputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: of scripts/sanitize: it cannot be done here
SKIPPED = 77


def sanitize(kind: str, *tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "sanitize"), kind, *tests]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    return done


@pytest.mark.parametrize("kind", ["address", "thread"])
def test_kernels_are_clean_under_the_sanitizers(kind: str) -> None:
    done = sanitize(kind)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
