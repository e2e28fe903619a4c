"""Words of signals: positions of the selector lever, gears."""

from __future__ import annotations

from torqueloop.core.describe.errors import ConfigError

#: in the order of the value table `Lever` of the CAN database
LEVERS = ("P", "R", "N", "D", "4", "3", "2", "1", "M")
#: gears by their number
GEARS = {"P": -2.0, "R": -1.0, "N": 0.0, **{str(k): float(k) for k in range(1, 13)}}


def words_of(signal: str) -> dict[str, float]:
    """Words and numbers of a signal: of a gear where its name ends so, else positions of the lever."""
    return GEARS if signal.endswith("gear") else {word: float(k) for k, word in enumerate(LEVERS)}


def word_value(signal: str, word: str) -> float:
    """The number of a word for a signal: a position of a lever, a gear. ConfigError for other words and signals."""
    words = words_of(signal)
    if not signal.endswith(("lever", "gear")) or word not in words:
        kind = "gear" if words is GEARS else "lever"
        allowed = f"a number, or for a {kind} {', '.join(words)}"
        raise ConfigError(f"{{key}}: {word!r} is no value of {signal}", value=word, allowed=allowed)
    return words[word]
