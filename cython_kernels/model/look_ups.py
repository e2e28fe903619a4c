"""The tables of a model that are looked up at a speed: the elements of the kind `lu`, which follow from all others.

A trial of order 4 follows one piece of each table; where a speed leaves its piece is an event (step/look_ups.pxi).
How many there are does not depend on values, so that it is part of a structure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from torqueloop.cython_kernels.model.choices import LOOK_UPS, SOURCES
from torqueloop.cython_kernels.model.records import KINDS

#: of a field of a row
NONE = -1


def look_ups(elements: Mapping[str, NDArray[np.void]]) -> NDArray[np.void]:
    """The records; slots are the places of tl_state.hint (state_memory.pxi)."""
    eng, tc, fr, cv, ls = (elements[kind] for kind in ("eng", "tc", "fr", "cv", "ls"))
    slot = 0
    found: list[tuple[int, ...]] = []

    def add(of: str, i: int, row: int, tab1: int, tab2: int = NONE, over: int = NONE) -> None:
        found.append((LOOK_UPS[of], i, int(row), int(over), int(tab1), int(tab2), slot))

    for i, e in enumerate(eng):
        by_map = e["map"] >= 0
        add("OF_ENGINE", i, e["row"], NONE if by_map else e["drag"], e["map"])
        slot += 1
        add("OF_ENGINE", i, e["row"], NONE if by_map else e["wot"])
        slot += 1
    for i, t in enumerate(tc):
        for of, name, row, over in (
            ("OF_DRIVE", "mp", "row_t", "row_p"), ("OF_DRIVE", "mu", "row_t", "row_p"),
            ("OF_OVERRUN", "coast", "row_p", "row_t"),
        ):  # fmt: skip
            add(of, i, t[row], t[name], over=t[over])
            slot += 1
    for i, f in enumerate(fr):
        if f["src"] < SOURCES["LOSS"]:
            add("OF_FRICTION_CURVE", i, f["row"], f["mu"])
        slot += 1
    for i, c in enumerate(cv):
        add("OF_CURVE", i, c["row"], c["tab1"] if c["tab2"] < 0 else NONE, c["tab2"])
        slot += 2
    for i, one in enumerate(ls):
        for tab in one["tab"]:
            # (what points nowhere is refused later on, by the name of its own record)
            if one["input"] < 0 and 0 <= one["fr"] < len(fr):
                add("OF_LOSS", i, fr["row"][one["fr"]], tab)
            slot += 1
    return np.array(found, dtype=KINDS["lu"].given)
