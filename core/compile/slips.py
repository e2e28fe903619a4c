"""Dampers that hold two sides together far faster than any step resolves: their slips as coordinates.

With the speeds of both sides as coordinates, matrices of a step hold J_a + h/2 d, -h/2 d, J_b + h/2 d: what moves both
together is the difference of numbers d*h/J times as large, so momentum and energy are off by as many roundings. With
w_a and the slip s = w_b - w_a instead,

    (J_a + J_b) w_a' + J_b s' = f_a + f_b          J_b (w_a' + s') + d s = f_b

the damper is in one equation only, however large it is. The side that is replaced is the lighter one. Coordinates that
relax (relaxing.py) and their dampers are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from torqueloop.core.compile.topology import Row, Topology
from torqueloop.core.describe.parts import Parts

#: 1/s, d/J: the slip of a damper that decays faster than that is a coordinate. At 1e7 and h = 1 ms the recorded heat
#: and the lost energy would differ by 7e-6 (order 4), at 1e6 by 1e-8
STIFF = 1e6
ZERO, ONE = Fraction(0), Fraction(1)


def slips_as_coordinates(topology: Topology, parts: Parts) -> Topology:
    """The topology with such slips instead of shafts as coordinates, listed in `slips`; itself if there are none."""
    inertia = _inertias(topology, parts)
    rates = []
    for part in parts.compliances:
        row, _ = topology.over_independent(part.form)
        if part.d > 0.0 and len(row) > 1 and not set(row) & set(topology.relaxing) and all(inertia[k] for k in row):
            rates.append((_rate(part.d, row, row, inertia), part.owner, part.d, row))
    turned = {name: {name: ONE} for name in topology.independent}
    slips: dict[str, Row] = {}
    for _, _, d, row in sorted(rates, key=lambda found: (-found[0], found[1])):
        over = _substituted(row, turned)
        places = [k for k in over if k not in slips]
        if not places or _rate(d, over, places, inertia) <= STIFF:
            continue  # a slip that follows from others, or with them does not decay so fast
        place = min(places, key=lambda k: inertia[k] / over[k] ** 2)
        # the shaft that had this coordinate: (slip - the others)/its share
        solved = {place: ONE / over[place]} | {k: -c / over[place] for k, c in over.items() if k != place}
        turned = {name: _substituted(shaft, {place: solved}) for name, shaft in turned.items()}
        slips[place] = row
    if not slips:
        return topology
    rows, relaxing = (
        {name: (_substituted(r, turned), offset) for name, (r, offset) in given.items()}
        for given in (topology.rows, topology.relaxing)
    )
    return replace(topology, rows=rows, relaxing=relaxing, slips=slips)


def coordinates(topology: Topology, values: Sequence[float]) -> list[float]:
    """Values of the coordinates, from those of the shafts in their places."""
    shafts = dict(zip(topology.independent, values, strict=True))
    found = shafts | {place: sum(float(c) * shafts[k] for k, c in row.items()) for place, row in topology.slips.items()}
    return [found[name] for name in topology.independent]


def _rate(d: float, row: Row, places: Iterable[str], inertia: Mapping[str, Fraction]) -> float:
    """Decay of the slip along a row by the lightest of these coordinates, 1/s."""
    return d * max(float(row[k] ** 2 / inertia[k]) for k in places)


def _substituted(row: Row, by: dict[str, Row]) -> Row:
    """The row with some coordinates expressed by others."""
    found: Row = {}
    for name, c in row.items():
        for k, share in by.get(name, {name: ONE}).items():
            found[k] = found.get(k, ZERO) + c * share
    return {k: c for k, c in found.items() if c}


def _inertias(topology: Topology, parts: Parts) -> dict[str, Fraction]:
    """Inertia that each coordinate moves by itself."""
    found = dict.fromkeys(topology.independent, ZERO)
    for part in parts.inertias:
        for k, c in topology.over_independent(part.form)[0].items():
            found[k] += Fraction(part.J) * c * c
    return found
