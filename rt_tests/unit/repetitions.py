"""How often a test repeats what it does: under a sanitizer one path is as good as a thousand times the same, and each
costs ten times as much."""

from __future__ import annotations

import os


def repetitions(n: int) -> int:
    """`n`, or a tenth of it in the daily run of rt_tests/fuzz/sanitize (which sets TORQUELOOP_SANITIZED)."""
    return max(1, n // 10) if os.environ.get("TORQUELOOP_SANITIZED") else n
