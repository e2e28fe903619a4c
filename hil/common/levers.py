"""Positions of the selector lever as words."""

from __future__ import annotations

from torqueloop.core.describe.errors import ConfigError

#: in the order of the value table `Lever` of the CAN database
LEVERS = ("P", "R", "N", "D", "4", "3", "2", "1", "M")


def lever_value(signal: str, word: str) -> float:
    """The number of a word for a signal: a position of the lever. ConfigError for other words and signals."""
    if not signal.endswith("lever") or word not in LEVERS:
        allowed = f"a number, or for a lever {', '.join(LEVERS)}"
        raise ConfigError(f"{{key}}: {word!r} is no value of {signal}", value=word, allowed=allowed)
    return float(LEVERS.index(word))
