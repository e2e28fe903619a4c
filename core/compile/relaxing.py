"""Shafts without inertia between springs and dampers of different d/c: coordinates that relax.

Forces balance along them at every instant, with dampers among these: with y their angles, z all other coordinates,

    Dyy*y' + Dyz*z' + Kyy*y + Kyz*z = g

y is replaced by q = y + Dyy^-1*Dyz*z - constant. Dampers then couple q with nothing else, and

    q' = Dyy^-1*(g - Kyy*q - (Kyz - Kyy*Dyy^-1*Dyz)*z)

so its speed follows from the angles alone: it has no jump where speeds jump, and an impulse does not move it. All in
rational numbers; the speed is a row over the coordinates, as any angle is. (These are the internal variables of linear
viscoelasticity, a Maxwell element in the simplest case.)

In series with a friction element such a shaft has its torque tau, too, with the share b of y in the slip:

    Dyy*q' = g - Kyy*q - ... + b*tau

Where no damper acts along it (a spring behind a clutch, Jenkins' element), K takes the place of D: Kyy*q = b*tau with
q = y + Kyy^-1*Kyz*z - constant. The kernel decides whether friction sticks (`choose_serial`). The force of a clearance
without a damper of its own, in series with a damped spring, has the place of tau; while it is open, the spring relaxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from torqueloop.core.compile.exact import null_direction, reduce
from torqueloop.core.compile.topology import Row, Serial, Topology
from torqueloop.core.describe.parts import Parts

ZERO = Fraction(0)


def undamped(topology: Topology, parts: Parts, nodes: Sequence[str]) -> Row | None:
    """A motion of these coordinates that no damper resists; None: there is none."""
    rows = [topology.over_independent(part.form)[0] for part in parts.compliances if part.d]
    found = null_direction([{node: row[node] for node in nodes if node in row} for row in rows], nodes)
    return None if found is None else dict.fromkeys(topology.independent, ZERO) | found


def relax(topology: Topology, parts: Parts, nodes: Sequence[str]) -> None:
    """Let these coordinates relax: rows are written over what they are replaced by, and their rates noted in the
    topology. Dampers must resist each motion of them. q = 0 where nothing determines the start: the angles from those
    without force, weighted with the dampers, are 0 in the mean."""
    _replace(topology, parts, nodes, "d")
    topology.relaxing.update(_rates(topology, parts, nodes))


def relax_behind(topology: Topology, parts: Parts, node: str, friction: int = -1, contact: int = -1) -> None:
    """The same for a coordinate between a friction element or a clearance and springs and dampers, which is replaced
    alone."""
    along = [(p, topology.over_independent(p.form)[0].get(node, ZERO)) for p in parts.compliances]
    damping, stiffness = (sum((Fraction(getattr(p, k)) * c * c for p, c in along), ZERO) for k in "dc")
    _replace(topology, parts, [node], "d" if damping else "c")
    topology.relaxing.update(_rates(topology, parts, [node]) if damping else {node: ({node: ZERO}, ZERO)})
    form = parts.contacts[contact].form if friction < 0 else parts.frictions[friction].form
    share = topology.over_independent(form)[0][node]
    topology.serial[node] = Serial(friction, contact, share, not damping, share / (damping or stiffness))


def _replace(topology: Topology, parts: Parts, nodes: Sequence[str], by: str) -> None:
    """Coordinates y become q, such that dampers (by = d) or springs (c) couple them with nothing else."""
    dampers: dict[str, Row] = {node: {} for node in nodes}
    constant = dict.fromkeys(nodes, ZERO)
    for part in parts.compliances:
        row, offset = topology.over_independent(part.form)
        _add(dampers, Fraction(getattr(part, by)), row)
        for node in nodes:
            constant[node] += row.get(node, ZERO) * Fraction(getattr(part, by)) * (Fraction(part.phi0) - offset)
    order = [*nodes, *(n for n in topology.independent if n not in nodes)]
    pivots = reduce([dampers[node] for node in nodes], [constant[node] for node in nodes], order).pivots
    for name, (row, offset) in topology.rows.items():
        topology.rows[name] = _shifted(row, offset, {node: pivots[node] for node in nodes})


def _shifted(row: Row, offset: Fraction, by: Mapping[str, tuple[Row, Fraction]]) -> tuple[Row, Fraction]:
    """A row, and the constant of its angle, with y = q - by.z + constant."""
    new = dict(row)
    for node, (shift, constant) in by.items():
        factor = row.get(node, ZERO)
        offset += factor * constant
        for name, c in shift.items():
            new[name] = new.get(name, ZERO) - factor * c
    return {name: c for name, c in new.items() if c}, offset


def _add(to: dict[str, Row], factor: Fraction, row: Row) -> None:
    """to[y] += row[y]*factor*row."""
    for node, target in to.items():
        weight = factor * row.get(node, ZERO)
        for name, c in row.items() if weight else ():
            target[name] = target.get(name, ZERO) + weight * c


def _rates(topology: Topology, parts: Parts, nodes: Sequence[str]) -> dict[str, tuple[Row, Fraction]]:
    """q' = row.z + constant for each."""
    springs: dict[str, Row] = {node: {} for node in nodes}
    dampers: dict[str, Row] = {node: {} for node in nodes}
    constant = dict.fromkeys(nodes, ZERO)
    for part in parts.compliances:
        row, offset = topology.over_independent(part.form)
        _add(springs, Fraction(part.c), row)
        _add(dampers, Fraction(part.d), row)
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
