"""Progress of a simulation: what a caller gives, as a function that receives the share that is done."""

from __future__ import annotations

import sys
from collections.abc import Callable


def reporter(progress: bool | Callable[[float], None]) -> Callable[[float], None]:
    """A function that receives the share that is done (0..1)."""
    if callable(progress):
        return progress
    if not progress:
        return lambda done: None
    return lambda done: print(f"\r{100 * done:3.0f} %", end="\n" if done >= 1.0 else "", file=sys.stderr, flush=True)
