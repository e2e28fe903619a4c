"""Words of value tables that mean positions of the lever or gears, whatever a maker calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torqueloop.hil.common.levers import GEARS, LEVERS

#: words that makers write out
_LONG = {
    "PARK": "P",
    "PARKING": "P",
    "REVERSE": "R",
    "REAR": "R",
    "NEUTRAL": "N",
    "DRIVE": "D",
    "MANUAL": "M",
    "TIP": "M",
}
#: what stands in front of or behind a position
_AROUND = r"(?:LEVER|SELECTOR|POS|POSITION|PRND|GEAR|GANG|STUFE|FORWARD|SPEED|ST|ND|RD|TH)"
#: a signal that says where something goes to, not where it is
_WANTED = re.compile(r"tar|tgt|soll|ziel|desir|demand|req|wunsch|command|cmd")


def _word(text: str) -> str:
    plain = re.sub(rf"\b{_AROUND}\b|(?<=\d){_AROUND}\b", " ", re.sub(r"[_\-.:/()]+", " ", text.upper())).split()
    if len(plain) != 1:
        return ""
    word = _LONG.get(plain[0], plain[0])
    return word[1:] if re.fullmatch(r"[DG]\d{1,2}", word) else word


def lever_words(choices: Mapping[int, object]) -> dict[str, int]:
    """Position -> raw number, where a value table has at least R, N and D; else {}."""
    found = {word: raw for raw, text in sorted(choices.items(), reverse=True) if (word := _word(str(text))) in LEVERS}
    return dict(sorted(found.items(), key=lambda x: x[1])) if {"R", "N", "D"} <= found.keys() else {}


def gear_words(choices: Mapping[int, object]) -> dict[str, int]:
    """Gear -> raw number, where a value table has at least 1, 2 and 3; else {}."""
    found = {word: raw for raw, text in sorted(choices.items(), reverse=True) if (word := _word(str(text))) in GEARS}
    several = {"1", "2", "3"} <= found.keys() and "D" not in {_word(str(text)) for text in choices.values()}
    return dict(sorted(found.items(), key=lambda x: x[1])) if several else {}


def is_wanted(name: str) -> bool:
    """The name of a signal says that it is a wish."""
    return bool(_WANTED.search(name.lower()))
