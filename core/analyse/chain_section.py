"""Drivelines without gear sets for drawing: shafts in line along one axis, with what joins them between.

A propeller shaft, a steering column: springs, gears, clutches and joints one after the other in the order in which they
are joined. All shafts lie on one axis; joints are long enough for their forks. Lengths as in gear_section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torqueloop.core.analyse.gear_section import Coupling, PlacedCoupling, Section, ShaftForm

#: length of a joint shaft, of a single joint, of anything else, and of the shafts between
LENGTHS = {2: 2.4, 1: 1.3, 0: 0.3}
BETWEEN = 0.42
#: radius of a shaft (drawn solid), inside and outside of packs, of the housing
AXLE, PACK_IN, PACK_OUT, HOUSING = 0.04, 0.12, 0.34, 0.6


def chain(couplings: Iterable[Coupling], shafts: Iterable[str]) -> list[tuple[Coupling, bool]] | None:
    """The couplings in line, each with whether its first shaft comes last; None: they are no single line."""
    left = list(couplings)
    if not left or any(None in (c.first, c.second) for c in left):
        return None
    ends: dict[str, int] = dict.fromkeys(shafts, 0)
    for c in left:
        for shaft in (c.first, c.second):
            assert shaft is not None
            ends[shaft] = ends.get(shaft, 0) + 1
    starts = [shaft for shaft, n in ends.items() if n == 1]
    if len(starts) != 2 or any(n not in (1, 2) for n in ends.values()):
        return None
    first = left[0].first
    at: str | None = first if first in starts else starts[0]
    found = []
    while left:
        nxt = next((c for c in left if at in (c.first, c.second)), None)
        if nxt is None:
            return None
        turned = nxt.first != at
        found.append((nxt, turned))
        at = nxt.first if turned else nxt.second
        left.remove(nxt)
    return found


def chain_section(line: list[tuple[Coupling, bool]], joints: Mapping[str, int]) -> Section:
    """The line along the axis; joints: couplings that are joint shafts -> how many joints they have."""
    x, placed = BETWEEN, []
    tubes: dict[str, tuple[float, float, float]] = {}
    begin = 0.0
    for c, turned in line:
        first, second = (c.second, c.first) if turned else (c.first, c.second)
        width = LENGTHS[joints.get(c.name, 0)]
        # the outside belongs to the shaft before, the inside to the one behind
        placed.append(PlacedCoupling(c.name, c.kind, first, second, x, width, PACK_IN, PACK_OUT))
        assert first is not None and second is not None
        tubes[first] = (AXLE, begin, x)
        begin = x + width
        x = begin + BETWEEN
        tubes[second] = (AXLE, begin, x)
    shafts = tuple(ShaftForm(name, (tube,), _hubs(name, placed)) for name, tube in tubes.items())
    return Section((), tuple(placed), shafts, x, HOUSING, 0)


def behind(couplings: Iterable[Coupling], shaft: str) -> list[tuple[Coupling, bool]]:
    """The joints in line from a shaft on, each with whether its first shaft comes last; until none or two go on."""
    left, at, found = [c for c in couplings if c.kind == "joint"], shaft, []
    while len(on := [c for c in left if at in (c.first, c.second)]) == 1:
        joint = on[0]
        left.remove(joint)
        turned = joint.first != at
        further = joint.first if turned else joint.second
        if further is None:
            break
        found.append((joint, turned))
        at = further
    return found


def extended(section: Section, line: list[tuple[Coupling, bool]], joints: Mapping[str, int]) -> Section:
    """The section with a line of joints behind its housing, from the shaft that leaves it."""
    if not line:
        return section
    tail = chain_section(line, joints)
    offset = section.length
    placed = tuple(replace(c, x=c.x + offset) for c in tail.couplings)
    shafts = list(section.shafts)
    for form in tail.shafts:
        tubes = tuple((r, a + offset, b + offset) for r, a, b in form.tubes)
        own = next((k for k, s in enumerate(shafts) if s.name == form.name), None)
        if own is None:
            shafts.append(ShaftForm(form.name, tubes, form.discs))
            continue
        # the shaft that leaves the housing: from its last place within
        last = max((b for r, _, b in shafts[own].tubes if r <= AXLE + 0.01), default=offset)
        tubes = tuple((r, min(a, last), b) for r, a, b in tubes)
        shafts[own] = replace(shafts[own], tubes=shafts[own].tubes + tubes)
    return replace(section, couplings=section.couplings + placed, shafts=tuple(shafts), length=offset + tail.length,
                   housing_length=section.inside)  # fmt: skip


def _hubs(name: str, placed: Iterable[PlacedCoupling]) -> tuple[tuple[float, float, float], ...]:
    """Discs from a shaft to the packs it is tied to; joints have forks instead."""
    found = []
    for c in placed:
        if c.kind == "joint":
            continue
        if c.outer == name:
            found.append((c.x, AXLE, PACK_OUT))
        if c.inner == name:
            found.append((c.x + c.width, AXLE, PACK_IN))
    return tuple(found)
