"""Kernels built with the sanitizers of the compiler, every day those that take bytes from outside and those that two
threads share: codec, checksums and rings under AddressSanitizer and UBSan with forged frames and checkpoints; rings,
slots and the control transaction under ThreadSanitizer. All kernels: `rt_tests/fuzz/sanitize address --all`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: of rt_tests/fuzz/sanitize: it cannot be done here
SKIPPED = 77


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_kernels_are_clean_under_the_sanitizers(kind: str) -> None:
    command = [sys.executable, str(ROOT / "rt_tests" / "fuzz" / "sanitize"), kind]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
