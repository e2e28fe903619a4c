"""Shafts without inertia that no gear ties to one with inertia: directions of motion in which M is 0.

Along such a direction the forces balance at every instant. What acts along it decides:

* springs only, dampers only, or springs and dampers of one ratio d/c (and constant torques beside springs): the balance
  is linear, sum (row.d)*(c*(row.z + offset - phi0)) = constant torque. One coordinate is eliminated by it, exactly, in
  rational numbers: what is left has the stiffness of the Schur complement Kxx - Kxm*Kmm^-1*Kmx, and every angle, speed,
  and force at the junction is a linear form of the other coordinates (Guyan's static condensation, which is exact here
  as there is no inertia to neglect).
* springs and dampers of different d/c (and constant torques): a state of first order is left (relaxing.py). Its speed
  follows from the angles, by a form that the kernel receives.
* springs and dampers on one side, one friction element on the other (a clutch with a torsion damper): a state as well
  (relaxing.py). While the friction slides, it gives the torque; while it sticks, the shaft moves with the other side.
* a damped spring on one side, a clearance without damping on the other: a state, too, to which the clearance gives its
  torque.
* friction only: the shaft gets a small inertia (SMALL times the smallest around), noted in the model. Its speed follows
  from who sticks, the inertia only says how fast. The error is in the order of SMALL.
* its motion is forced by an input: a small inertia, too; it only adds to the torque of the drive.

Anything else is an error that names the elements and what to do: damping in a clearance before a spring is there in
some regimes only, and a torque that changes gives a law that follows the input. A small inertia would oscillate faster
there than any step can follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from torqueloop.core.compile.exact import null_direction
from torqueloop.core.compile.relaxing import relax, relax_behind, undamped
from torqueloop.core.compile.topology import Row, Topology
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import NoInertiaError
from torqueloop.core.describe.kernel_numbers import CAPACITY, CAPPED
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import (
    Compliance,
    ContactPart,
    FrictionPart,
    InertiaPart,
    Parts,
    TorqueSource,
    port_groups,
)
from torqueloop.core.describe.vocabulary import Form

#: of the smallest inertia around
SMALL = Fraction(1, 10**9)
#: s, d/c of springs and dampers behind friction: with less, the shaft between follows at once, and the damper is none
FASTEST_DECAY = 1e-6
ZERO = Fraction(0)


@dataclass(frozen=True)
class Acting:
    """What acts along a direction of motion."""

    compliances: tuple[Compliance, ...]
    constants: tuple[TorqueSource, ...]
    #: owners of the others
    contacts: tuple[str, ...]
    friction: tuple[str, ...]
    driven: tuple[str, ...]
    geared: tuple[str, ...]
    #: sources of torque but for the constant ones
    sources: tuple[str, ...]

    @property
    def linear(self) -> bool:
        """Only what condensation can eliminate?"""
        others = self.contacts or self.friction or self.driven or self.geared or self.sources
        return bool(self.compliances) and not others and (not self.constants or any(p.c for p in self.compliances))

    @property
    def serial(self) -> bool:
        """One friction element or clearance before springs and dampers, and nothing else?"""
        others = self.driven or self.geared or self.sources or self.constants
        return bool(self.compliances) and len(self.friction) + len(self.contacts) == 1 and not others

    @property
    def proportional(self) -> bool:
        """Springs only, dampers only, or all of one ratio d/c?"""
        first = self.compliances[0]
        ratios = [Fraction(p.d) * Fraction(first.c) - Fraction(first.d) * Fraction(p.c) for p in self.compliances]
        return not any(ratios)


def settle_massless(topology: Topology, parts: Parts) -> list[str]:
    """Eliminate coordinates, let them relax, or give small inertias (added to the parts), each where it is right.

    Returns notes in words. NoInertiaError for what has no exact treatment.
    """
    notes: list[str] = []
    while True:
        found = _directions(topology, parts)
        if found.last is None and not found.relaxing:
            return notes + _in_series(topology, parts, found.serial)
        if found.last is None:
            direction = undamped(topology, parts, found.relaxing)
            if direction is None:
                notes += _relaxed(topology, parts, found.relaxing)
                return notes + _in_series(topology, parts, found.serial)
        else:
            direction = found.last
        moving = _moving(topology, direction)
        acting = _acting(topology, parts, direction)
        if acting.linear and acting.proportional and len(topology.independent) > 1:
            notes.append(_condense(topology, direction, acting, moving))
            continue
        _check(topology, acting, moving)
        node = next(n for n in topology.independent if direction[n])
        J = SMALL * _around(topology, parts, moving)
        flange = topology.nodes[node][0]
        owner = flange.rpartition(".")[0]
        parts.inertias.append(InertiaPart(owner, Form({flange: 1}), float(J)))
        shaft = " = ".join(topology.nodes[node])
        unit = "kg.m2" if topology.domain[node] == "rotational" else "kg"
        notes.append(f"{owner}: shaft without inertia ({shaft}) got {float(J):.3g} {unit}")


@dataclass(frozen=True)
class Found:
    """Directions of motion without inertia."""

    #: coordinates that springs and dampers alone move
    relaxing: list[str]
    #: coordinates that these and one friction element or clearance move
    serial: list[str]
    #: another one; None: there is none
    last: Row | None


def _directions(topology: Topology, parts: Parts) -> Found:
    """All directions without inertia, up to the first one that must be settled before others can be."""
    relaxing: list[str] = []
    serial: list[str] = []
    bodies = _bodies(topology, parts)
    while True:
        known = [*relaxing, *serial]
        direction = null_direction([*bodies, *({node: Fraction(1)} for node in known)], topology.independent)
        if direction is None:
            return Found(relaxing, serial, None)
        acting = _acting(topology, parts, direction)
        # it is one coordinate, as shafts with inertia are independent first; something must be left that has some
        nodes = [n for n in topology.independent if direction[n]]
        alone = len(nodes) > 1 or len(known) + 1 == len(topology.independent)
        if acting.serial and not alone:
            serial += nodes
            continue
        if not acting.linear or acting.proportional or alone:
            return Found(relaxing, serial, direction)
        relaxing += nodes


def _relaxed(topology: Topology, parts: Parts, relaxing: list[str]) -> list[str]:
    """They become states of first order: notes in words."""
    notes = []
    for node in relaxing:
        rows = [(p.owner, topology.over_independent(p.form)[0]) for p in parts.compliances if p.c or p.d]
        names = sorted({owner for owner, row in rows if node in row}, key=natural)
        shaft = " = ".join(topology.nodes[node])
        notes.append(f"{', '.join(names)}: shaft without inertia ({shaft}) is a state of first order")
    relax(topology, parts, relaxing)
    return notes


def _in_series(topology: Topology, parts: Parts, nodes: Sequence[str]) -> list[str]:
    """Friction or a clearance in series with springs and dampers: notes in words. NoInertiaError for laws that these
    cannot have."""
    notes = []
    known = {*topology.relaxing, *nodes}
    for node in nodes:
        friction = _first_along(topology, node, [p.form for p in parts.frictions])
        contact = _first_along(topology, node, [p.form for p in parts.contacts])
        part: FrictionPart | ContactPart = parts.contacts[contact] if friction < 0 else parts.frictions[friction]
        elastic = [p for p in parts.compliances if (p.c or p.d) and node in topology.over_independent(p.form)[0]]
        owners = sorted({part.owner, *(p.owner for p in elastic)}, key=natural)
        names, shaft, kind = (
            ", ".join(owners),
            " = ".join(topology.nodes[node]),
            "clearance" if friction < 0 else "friction",
        )
        problem = _beyond_series(topology, parts, part, elastic, known - {node})
        if problem:
            raise NoInertiaError(
                f"{kind} in series with a spring or damper ({names}) without inertia between: {problem}, or add an "
                f"Inertia (or Mass) to it ({shaft})", owners,
            )  # fmt: skip
        relax_behind(topology, parts, node, friction, contact)
        notes.append(f"{names}: shaft without inertia ({shaft}) between {kind} and springs is a state of first order")
    return notes


def _first_along(topology: Topology, node: str, forms: Sequence[Form]) -> int:
    """The first form that moves with a coordinate; -1: none does."""
    return next((k for k, form in enumerate(forms) if node in topology.over_independent(form)[0]), -1)


def _beyond_series(
    topology: Topology, parts: Parts, part: FrictionPart | ContactPart, elastic: Sequence[Compliance], others: set[str]
) -> str:
    """What to change so that the law of friction or a clearance in series holds; empty: nothing."""
    c, d = sum(p.c for p in elastic), sum(p.d for p in elastic)
    if isinstance(part, ContactPart):
        if part.n != 1.0:
            return "give the clearance the exponent 1"
        if not d:
            return "make them one, 1/c = 1/c1 + 1/c2, or give the spring a damper"
        if part.d:
            return "leave the damping to the spring (d = 0 in the clearance)"
    else:
        if parts.losses or parts.variable_gears:
            return "leave out losses and changing ratios of gears"
        if part.source > CAPACITY or part.forward != CAPPED or part.backward != CAPPED:
            return "make it friction that acts both ways"
        if part.mu is not None and len({*part.mu.y}) > 1:
            return "give it one friction coefficient for all slips"
    forms = [part.form, *(p.form for p in elastic)]
    if any(others & set(topology.over_independent(form)[0]) for form in forms):
        return "join it to shafts with inertia on both sides"
    if 0.0 < d < FASTEST_DECAY * c:
        return f"leave out a damper that decays within {FASTEST_DECAY:g} s (d/c)"
    return ""


def _moving(topology: Topology, direction: Row) -> list[str]:
    """Nodes that move in a motion."""
    return [n for n in sorted(topology.nodes, key=natural) if _along(topology.rows[n][0], direction)]


def _bodies(topology: Topology, parts: Parts) -> list[Row]:
    """Rows of the speeds that store kinetic energy, each once."""
    found: dict[tuple[tuple[str, Fraction], ...], Row] = {}
    for part in parts.inertias:
        nodes = topology.over_nodes(part.form)[0]
        if part.J > 0.0 and nodes:
            found.setdefault(tuple(sorted(nodes.items())), topology.over_independent(part.form)[0])
    return [found[key] for key in sorted(found)]


def _along(row: Row, direction: Row) -> Fraction:
    """Speed of a row in a motion."""
    return sum((c * direction[k] for k, c in row.items()), ZERO)


def _acting(topology: Topology, parts: Parts, direction: Row) -> Acting:
    """What acts along a motion."""

    def acts(form: Form) -> bool:
        return bool(_along(topology.over_independent(form)[0], direction))

    def owners(elements: Iterable[tuple[str, Form]]) -> tuple[str, ...]:
        return tuple(sorted({owner for owner, form in elements if acts(form)}, key=natural))

    driven = {p.friction for p in parts.driven}
    changing = {p.friction for p in parts.variable_gears}
    constant = [p for p in parts.torques if p.input < 0]
    ports = [e for group, elements in port_groups(parts).items() if group != "torque" for e in elements]
    ports += [(p.owner, p.form) for p in parts.torques if p.input >= 0]
    frictions = list(enumerate(parts.frictions))
    return Acting(
        compliances=tuple(p for p in parts.compliances if (p.c or p.d) and acts(p.form)),
        constants=tuple(p for p in constant if p.const and acts(p.form)),
        contacts=owners((p.owner, p.form) for p in parts.contacts),
        friction=owners((p.owner, p.form) for k, p in frictions if k not in driven | changing),
        driven=owners((p.owner, p.form) for k, p in frictions if k in driven),
        geared=owners((p.owner, form) for p in parts.variable_gears for form in (p.form_a, p.form_b)),
        sources=owners(ports),
    )


def _condense(topology: Topology, direction: Row, acting: Acting, moving: list[str]) -> str:
    """Eliminate one coordinate by the balance of forces along the direction: g.z = g0.

    With springs g = sum (row.d)*c*row, g.d = sum c*(row.d)^2 > 0, so some coordinate that moves can be solved for.
    """
    elastic = any(p.c for p in acting.compliances)
    g: Row = {}
    g0 = ZERO
    for part in acting.compliances:
        row, offset = topology.over_independent(part.form)
        weight = Fraction(part.c if elastic else part.d) * _along(row, direction)
        for name, c in row.items():
            g[name] = g.get(name, ZERO) + weight * c
        # dampers alone leave the angle open: all angles of the balance are 0 together
        g0 += weight * (Fraction(part.phi0) - offset) if elastic else ZERO
    for source in acting.constants:
        g0 += Fraction(source.const) * _along(topology.over_independent(source.form)[0], direction)
    node = next(n for n in topology.independent if direction[n] and g.get(n))
    scale = g.pop(node)
    solved = {name: -c / scale for name, c in g.items() if c}, g0 / scale
    topology.independent.remove(node)
    for name, (row, offset) in topology.rows.items():
        if node in row:
            topology.rows[name] = _substituted(row, offset, node, *solved)
    names = sorted({p.owner for p in acting.compliances}, key=natural)
    shaft = " = ".join(topology.nodes[moving[0]])
    kind = "springs" if elastic else "dampers"
    return f"{', '.join(names)}: shaft without inertia ({shaft}) eliminated, {kind} in series"


def _substituted(row: Row, offset: Fraction, node: str, by: Row, constant: Fraction) -> tuple[Row, Fraction]:
    """A row with the coordinate `node` written as by.z + constant."""
    factor = row[node]
    new = {name: c for name, c in row.items() if name != node}
    for name, c in by.items():
        new[name] = new.get(name, ZERO) + factor * c
    return {name: c for name, c in new.items() if c}, offset + factor * constant


def _check(topology: Topology, acting: Acting, moving: list[str]) -> None:
    """Only friction acts along the motion, or it is forced; else an error that says what to do."""
    if not acting.geared and acting.driven:
        return
    elastic = sorted({p.owner for p in acting.compliances}, key=natural)
    sources = sorted({*acting.sources, *(p.owner for p in acting.constants)}, key=natural)
    if acting.friction and not (acting.geared or elastic or acting.contacts or sources):
        return
    remedy = _remedy(acting, elastic, sources)
    names = sorted({f.rpartition(".")[0] for node in moving for f in topology.nodes[node]}, key=natural)
    shafts = "; ".join(" = ".join(topology.nodes[node]) for node in moving)
    raise NoInertiaError(
        f"free shaft without inertia: {remedy} {'it' if len(moving) == 1 else 'one of them'} ({shafts})", names
    )


def _remedy(acting: Acting, elastic: Sequence[str], sources: Sequence[str]) -> str:
    """What meets at the junction, and what to do."""
    add = "add an Inertia (or Mass) to"
    if acting.geared:
        return "both sides of a gear of changing ratio need inertia; " + add
    if acting.friction and (elastic or acting.contacts):
        meeting = ", ".join([*acting.friction, *elastic, *acting.contacts])
        return f"more than one friction element and springs and dampers meet ({meeting}); {add}"
    if acting.contacts:
        meeting = ", ".join([*acting.contacts, *elastic])
        return (
            f"a clearance in series with another spring or damper ({meeting}): make them one, 1/c = 1/c1 + 1/c2, or "
            f"{add}"
        )
    if elastic and not sources:
        return f"nothing that springs or dampers act on ({', '.join(elastic)}) has inertia; {add}"
    if elastic:
        return f"a torque acts on a shaft held by springs or dampers only ({', '.join([*elastic, *sources])}); {add}"
    return add


def _around(topology: Topology, parts: Parts, moving: list[str]) -> Fraction:
    """The smallest inertia on the other sides of the friction elements at the moving shafts, else of all."""
    inertia: Row = {}
    for part in parts.inertias:
        nodes = topology.over_nodes(part.form)[0]
        if len(nodes) == 1 and part.J > 0.0:
            ((node, c),) = nodes.items()
            inertia[node] = inertia.get(node, ZERO) + Fraction(part.J) * c * c
    near = {n for p in parts.frictions for n in _shared(topology.over_nodes(p.form)[0], moving)}
    found = [inertia[n] for n in near if n in inertia] or list(inertia.values())
    return min(found, default=Fraction(1))


def _shared(row: Row, moving: list[str]) -> set[str]:
    """The other nodes of a form that has a moving one."""
    return set(row) - set(moving) if set(row) & set(moving) else set()
