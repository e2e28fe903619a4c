"""Names of gears: P, R, N, "1", "2" ... and "1E": a gear with the elements that let it brake the engine.

The gears of a TCU file say which shifts it must have: every pair of neighbours, the variants, and those of the lever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from torqueloop.hil.common.config_file import BadValue

_FORWARD = re.compile(r"([1-9][0-9]?)(E?)")


class HasElements(Protocol):
    """A gear of a TCU file."""

    @property
    def elements(self) -> list[str]: ...


@lru_cache(256)
def gear_number(gear: str) -> int:
    """1, 2 ... of a forward gear ("1E" is 1), 0 otherwise."""
    found = _FORWARD.fullmatch(gear)
    return int(found[1]) if found else 0


def is_variant(gear: str) -> bool:
    """A forward gear with engine braking."""
    found = _FORWARD.fullmatch(gear)
    return found is not None and found[2] == "E"


def forward_gears(gears: Iterable[str]) -> list[str]:
    """The forward gears, variants included, in the order of the file."""
    return [gear for gear in gears if gear_number(gear)]


def top_gear(gears: Iterable[str]) -> int:
    """Number of the highest gear."""
    return max((gear_number(gear) for gear in gears), default=0)


def neighbours(gears: Iterable[str]) -> list[tuple[str, str]]:
    """("1", "2"), ("2", "3") ..."""
    return [(str(n), str(n + 1)) for n in range(1, top_gear(gears))]


def lever_limits(gears: Iterable[str]) -> dict[str, int]:
    """Forward positions of the lever -> highest gear they allow; M is the manual gate."""
    top = top_gear(gears)
    return {"D": top, "M": top, **{str(n): n for n in range(top, 0, -1)}}


def required_shifts(gears: Mapping[str, object]) -> list[str]:
    """Shifts a TCU with these gears must have."""
    found = [f"{a}-{b}" for low, high in neighbours(gears) for a, b in ((low, high), (high, low))]
    for gear in (g for g in gears if is_variant(g)):
        plain = gear.removesuffix("E")
        found += [f"{plain}-{gear}", f"{gear}-{plain}"]
        if (higher := str(gear_number(gear) + 1)) in gears:
            found += [f"{gear}-{higher}", *([f"{higher}-{gear}"] if plain == "1" else [])]
    return [*found, "N-1", "N-R", "1-N", "R-N"]


def check_names(gears: Mapping[str, HasElements], elements: Mapping[str, object]) -> None:
    """BadValue unless there are P, R, N, gears without a gap, and a table for every element they press."""
    for name in gears:
        if name not in ("P", "R", "N") and not gear_number(name):
            allowed = 'P, R, N, "1", "2" ..., "1E" (with engine braking)'
            raise BadValue("{value} is no name of a gear", key="gears", value=name, allowed=allowed)
    numbers = [str(n) for n in range(1, top_gear(gears) + 1)] or ["1"]
    for name in ("P", "R", "N", *numbers):
        if name not in gears:
            raise BadValue(f"missing table [gears.{name}]", key="gears", allowed=", ".join(["P", "R", "N", *numbers]))
    for gear, entry in gears.items():
        for name in entry.elements:
            if name not in elements:
                raise BadValue(
                    f"{name} of [gears.{gear}.elements]: missing table [elements.{name}]", key="elements",
                    allowed=", ".join(elements),
                )  # fmt: skip
        if is_variant(gear) and gear.removesuffix("E") not in gears:
            raise BadValue(f"missing table [gears.{gear.removesuffix('E')}]", key="gears", allowed=gear)
