"""Words of CAN databases: the names of signals in plain words, and the positions of the lever and the gears that value
tables mean, whatever a maker calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torqueloop.hil.common.levers import GEARS, LEVERS

#: abbreviations in names of signals -> words
_SHORT = {
    "accel": "accelerator", "actl": "actual", "brk": "brake", "clt": "clutch", "cltch": "clutch",
    "cmd": "command", "cmdd": "command", "dmd": "demand", "dmnd": "demand", "drvr": "driver", "eng": "engine",
    "engmt": "engagement", "in": "input", "inp": "input", "inpt": "input", "lim": "limit", "lmt": "limit",
    "mot": "engine", "n": "speed", "out": "output", "outp": "output", "outpt": "output", "pdl": "pedal",
    "rdctn": "reduction", "red": "reduction", "req": "request", "rpm": "speed", "rq": "request", "spd": "speed",
    "tq": "torque", "trb": "turbine", "trbn": "turbine", "trq": "torque", "turb": "turbine", "veh": "vehicle",
}  # fmt: skip
#: words of positions and gears that makers write out
_LONG = {
    "PARK": "P", "PARKING": "P", "PARKSPERRE": "P", "REVERSE": "R", "REAR": "R", "RUECKWAERTS": "R", "RÜCKWÄRTS": "R",
    "NEUTRAL": "N", "LEERLAUF": "N", "DRIVE": "D", "MANUAL": "M", "TIP": "M",
    **{word: str(k) for k, word in enumerate(
        ("FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH", "SIXTH", "SEVENTH", "EIGHTH", "NINTH", "TENTH"), 1)},
}  # fmt: skip
#: what stands in front of or behind a position
_AROUND = r"(?:LEVER|SELECTOR|POS|POSITION|POSN|PRND|GEAR|GANG|STUFE|FORWARD|FWD|SPEED|ST|ND|RD|TH)"
#: a signal that says where something goes to, not where it is
_WANTED = re.compile(r"tar|tgt|soll|ziel|desir|demand|req|wunsch|command|cmd|cmmd")
#: a request for no gear
_NONE = re.compile(r"-+|(NO|NONE|KEINE?R?|OFF|INACTIVE|IDLE)\b.*")


def plain_words(name: str) -> str:
    """The words of a signal's name in small letters, abbreviations written out: TrnsInptShftSpd, N_Mot."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(_SHORT.get(word, word) for word in re.sub(r"[_.\s]+", " ", apart).lower().split())


def position(text: str) -> str:
    """Position of the lever or gear that a word of a value table means; "" if none."""
    plain = re.sub(r"[_\-.:/()]+", " ", text.upper().replace("WAERTSGANG", "WAERTS").replace("WÄRTSGANG", "WÄRTS"))
    plain = re.sub(rf"\b{_AROUND}(?=\d)|(?<=\d){_AROUND}\b|\b{_AROUND}\b", " ", plain)
    parts = plain.split()
    if len(parts) != 1:
        return ""
    word = _LONG.get(parts[0], parts[0])
    return word[1:] if re.fullmatch(r"[DG]\d{1,2}", word) else word


def lever_words(choices: Mapping[int, object]) -> dict[str, int]:
    """Position -> raw number, where a value table has at least R, N and D; else {}."""
    found = {
        word: raw for raw, text in sorted(choices.items(), reverse=True) if (word := position(str(text))) in LEVERS
    }
    return dict(sorted(found.items(), key=lambda x: x[1])) if {"R", "N", "D"} <= found.keys() else {}


def gear_words(choices: Mapping[int, object]) -> dict[str, int]:
    """Gear -> raw number, where a value table has at least 1, 2 and 3; else {}. A word for no request is N, where none
    means neutral."""
    words = {raw: position(str(text)) for raw, text in sorted(choices.items(), reverse=True)}
    found = {word: raw for raw, word in words.items() if word in GEARS}
    none = [raw for raw in words if _NONE.fullmatch(str(choices[raw]).upper().replace("_", " ").strip())]
    if none:
        found.setdefault("N", none[-1])
    several = {"1", "2", "3"} <= found.keys() and "D" not in words.values()
    return dict(sorted(found.items(), key=lambda x: x[1])) if several else {}


def is_wanted(name: str) -> bool:
    """The name of a signal says that it is a wish."""
    return bool(_WANTED.search(name.lower()))
