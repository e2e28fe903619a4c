"""Shafts without inertia that no gear ties to one with inertia.

Two kinds are allowed, and get a small inertia (SMALL times the smallest inertia around), noted in the model:

* shafts between friction elements only (a clutch in series with another): their speed follows from who sticks, their
  inertia only says how fast. The error is in the order of SMALL.
* shafts whose motion is forced by an input: their inertia only adds to the torque of the drive.

Anything else on such a shaft would be a law for its speed (a damper) or for its angle (a spring) instead of an equation
of motion: with a small inertia it would swing faster than any step can follow, so it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from torqueloop.core.errors import NoInertiaError
from torqueloop.core.exact import null_direction
from torqueloop.core.parts import GROUND, InertiaPart, Parts, port_forms
from torqueloop.core.topology import Row, Topology, natural
from torqueloop.core.vocabulary import Form

#: of the smallest inertia around
SMALL = Fraction(1, 10**9)


def settle_massless(topology: Topology, parts: Parts) -> list[str]:
    """Give small inertias where that is right (they are added to the parts) and tell so; else NoInertiaError."""
    notes: list[str] = []
    while True:
        bodies = {topology.place[p.flange][0] for p in parts.inertias} - {GROUND}
        direction = null_direction([topology.rows[n][0] for n in sorted(bodies)], topology.independent)
        if direction is None:
            return notes
        moving = [n for n in sorted(topology.nodes, key=natural) if _along(topology.rows[n][0], direction)]
        _check(topology, parts, direction, moving)
        node = next(n for n in topology.independent if direction[n])
        J = SMALL * _around(topology, parts, moving)
        flange = topology.nodes[node][0]
        owner = flange.rpartition(".")[0]
        parts.inertias.append(InertiaPart(owner, flange, float(J)))
        shaft = " = ".join(topology.nodes[node])
        unit = "kg.m2" if topology.domain[node] == "rotational" else "kg"
        notes.append(f"{owner}: shaft without inertia ({shaft}) got {float(J):.3g} {unit}")


def _along(row: Row, direction: Row) -> Fraction:
    """Speed of a row in a motion."""
    return sum((c * direction[k] for k, c in row.items()), Fraction(0))


def _acts(topology: Topology, direction: Row, forms: Iterable[Form]) -> bool:
    """Does any element act along a motion?"""
    return any(_along(topology.over_independent(form)[0], direction) for form in forms)


def _check(topology: Topology, parts: Parts, direction: Row, moving: list[str]) -> None:
    """Only friction acts along the motion, or it is forced; else an error that says what to do."""
    driven = {p.friction for p in parts.driven}
    changing = {p.friction for p in parts.variable_gears}
    friction = [p.form for k, p in enumerate(parts.frictions) if k not in driven | changing]
    compliant = [p.form for p in parts.compliances] + [p.form for p in parts.contacts]
    gears = [form for p in parts.variable_gears for form in (p.form_a, p.form_b)]
    geared = _acts(topology, direction, gears)
    if not geared and _acts(topology, direction, [parts.frictions[k].form for k in driven]):
        return
    elastic, sourced = _acts(topology, direction, compliant), _acts(topology, direction, port_forms(parts))
    rubbing = _acts(topology, direction, friction)
    if rubbing and not (geared or elastic or sourced):
        return
    if geared:
        remedy = "both sides of a gear of changing ratio need inertia; add an Inertia to"
    elif elastic and not (rubbing or sourced):
        remedy = "make the springs (or dampers) in series one: 1/c = 1/c1 + 1/c2, or add an Inertia to"
    else:
        remedy = "add an Inertia to"
    names = sorted({f.rpartition(".")[0] for node in moving for f in topology.nodes[node]}, key=natural)
    shafts = "; ".join(" = ".join(topology.nodes[node]) for node in moving)
    raise NoInertiaError(
        f"free shaft without inertia: {remedy} {'it' if len(moving) == 1 else 'one of them'} ({shafts})", names
    )


def _around(topology: Topology, parts: Parts, moving: list[str]) -> Fraction:
    """The smallest inertia on the other sides of the friction elements at the moving shafts, else of all."""
    inertia: Row = {}
    for part in parts.inertias:
        node = topology.place[part.flange][0]
        if node != GROUND:
            inertia[node] = inertia.get(node, Fraction(0)) + Fraction(part.J)
    near = {n for p in parts.frictions for n in _shared(topology.over_nodes(p.form)[0], moving)}
    found = [inertia[n] for n in near if n in inertia] or list(inertia.values())
    return min(found, default=Fraction(1))


def _shared(row: Row, moving: list[str]) -> set[str]:
    """The other nodes of a form that has a moving one."""
    return set(row) - set(moving) if set(row) & set(moving) else set()
