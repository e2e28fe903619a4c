"""The order of names."""

from __future__ import annotations

import re


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that puts C4 before C11."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)


def identifier(text: str) -> str:
    """A Python identifier of a name: other characters become _."""
    word = re.sub(r"\W", "_", text, flags=re.ASCII)
    return word if not word[:1].isdigit() else f"_{word}"
