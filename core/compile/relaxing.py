"""Shafts without inertia between springs and dampers of different d/c: coordinates that relax.

Forces balance along them at every instant, with dampers among these: with y their angles, z all other coordinates,

    Dyy*y' + Dyz*z' + Kyy*y + Kyz*z = g

y is replaced by q = y + Dyy^-1*Dyz*z. Dampers then couple q with nothing else, and

    q' = Dyy^-1*(g - Kyy*q - (Kyz - Kyy*Dyy^-1*Dyz)*z)

so its speed follows from the angles alone: it has no jump where speeds jump, and an impulse does not move it. All in
rational numbers; the speed is a row over the coordinates, as any angle is. (These are the internal variables of linear
viscoelasticity, a Maxwell element in the simplest case.)
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from torqueloop.core.compile.exact import null_direction, reduce
from torqueloop.core.compile.topology import Row, Topology
from torqueloop.core.describe.parts import Parts

ZERO = Fraction(0)


def along(row: Row, direction: Row) -> Fraction:
    """Speed of a row in a motion."""
    return sum((c * direction[k] for k, c in row.items()), ZERO)


def undamped(topology: Topology, parts: Parts, directions: Mapping[str, Row]) -> Row | None:
    """A motion made of these that no damper resists; None: there is none."""
    rows = []
    for part in parts.compliances:
        row, _ = topology.over_independent(part.form)
        rows.append({node: along(row, direction) for node, direction in directions.items() if part.d})
    found = null_direction(rows, list(directions))
    if found is None:
        return None
    return {
        name: sum((share * directions[node][name] for node, share in found.items()), ZERO)
        for name in topology.independent
    }


def relax(topology: Topology, parts: Parts, directions: Mapping[str, Row]) -> None:
    """Make these motions, each by a coordinate that moves in none of the others, coordinates that relax; they are noted
    in the topology with their rates. Dampers must resist each combination of them."""
    for name, (row, offset) in topology.rows.items():
        topology.rows[name] = _turned(row, directions), offset
    dampers: dict[str, Row] = {node: {} for node in directions}
    for part in parts.compliances:
        row, _ = topology.over_independent(part.form)
        _add(dampers, row, Fraction(part.d), row)
    order = [*directions, *(n for n in topology.independent if n not in directions)]
    pivots = reduce([dampers[node] for node in directions], [ZERO] * len(directions), order).pivots
    for name, (row, offset) in topology.rows.items():
        topology.rows[name] = _shifted(row, {node: pivots[node][0] for node in directions}), offset
    topology.relaxing.update(_rates(topology, parts, list(directions)))


def _turned(row: Row, directions: Mapping[str, Row]) -> Row:
    """A row where the coordinates of the motions stand for these: z = z' + sum of direction*y/direction_y."""
    new = {name: c for name, c in row.items() if name not in directions}
    new |= {node: along(row, direction) / direction[node] for node, direction in directions.items()}
    return {name: c for name, c in new.items() if c}


def _shifted(row: Row, by: Mapping[str, Row]) -> Row:
    """A row with y = q - by.z."""
    new = dict(row)
    for node, shift in by.items():
        for name, c in shift.items():
            new[name] = new.get(name, ZERO) - row.get(node, ZERO) * c
    return {name: c for name, c in new.items() if c}


def _add(to: dict[str, Row], along_: Row, factor: Fraction, row: Row) -> None:
    """to[y] += along_[y]*factor*row."""
    for node, target in to.items():
        weight = factor * along_.get(node, ZERO)
        for name, c in row.items() if weight else ():
            target[name] = target.get(name, ZERO) + weight * c


def _rates(topology: Topology, parts: Parts, nodes: list[str]) -> dict[str, tuple[Row, Fraction]]:
    """q' = row.z + constant for each."""
    springs: dict[str, Row] = {node: {} for node in nodes}
    dampers: dict[str, Row] = {node: {} for node in nodes}
    constant = dict.fromkeys(nodes, ZERO)
    for part in parts.compliances:
        row, offset = topology.over_independent(part.form)
        _add(springs, row, Fraction(part.c), row)
        _add(dampers, row, Fraction(part.d), row)
        for node in nodes:
            constant[node] += row.get(node, ZERO) * Fraction(part.c) * (Fraction(part.phi0) - offset)
    for source in parts.torques:
        if source.input < 0:
            row, _ = topology.over_independent(source.form)
            for node in nodes:
                constant[node] += Fraction(source.const) * row.get(node, ZERO)
    # (a speed, or an angle): in this order, so that the speeds are solved for
    rows = [
        {("w", k): c for k, c in dampers[node].items()} | {("phi", k): c for k, c in springs[node].items()}
        for node in nodes
    ]
    order = [("w", k) for k in nodes] + [("phi", k) for k in topology.independent]
    pivots = reduce(rows, [constant[node] for node in nodes], order).pivots
    return {node: ({name: -c for (_, name), c in pivots["w", node][0].items()}, pivots["w", node][1]) for node in nodes}
