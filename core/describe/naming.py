"""The order of names."""

from __future__ import annotations

import re


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that puts C4 before C11."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)
