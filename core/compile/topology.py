"""From joined flanges to independent coordinates, exactly.

1. Flanges that move together become one node (offsets of angle kept); nodes of the housing are at rest.
2. Gear rows over the nodes are reduced in rational numbers; the independent coordinates are the nodes that carry
   inertia and are used by most force elements, so that most rows of force elements are a single +-1.
3. Every node: w = row.u, phi = row.z + offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction

from torqueloop.core.compile.exact import Reduced, reduce
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import DomainError, FloatingFlangeError, OverconstrainedError
from torqueloop.core.describe.flange import ANY, APART, FRAME, THERMAL
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import GROUND, Parts, port_forms
from torqueloop.core.describe.vocabulary import Form

Row = dict[str, Fraction]


@dataclass(frozen=True)
class Serial:
    """A coordinate without inertia between a friction element or a clearance and springs and dampers (relaxing.py)."""

    #: the friction element, -1: a clearance
    friction: int = -1
    #: the clearance, -1: a friction element
    contact: int = -1
    #: share of the coordinate in the slip of the friction element, or the way of the clearance
    share: Fraction = Fraction(0)
    #: no damper acts along it
    elastic: bool = False
    #: its speed per torque of the friction element or clearance; elastic: its angle
    gain: Fraction = Fraction(0)


@dataclass
class Topology:
    """Nodes, independent coordinates and the rows between them."""

    #: node name -> flanges that are part of it
    nodes: dict[str, tuple[str, ...]]
    #: flange -> (node or GROUND, offset of its angle)
    place: dict[str, tuple[str, Fraction]]
    #: node -> domain
    domain: dict[str, str]
    #: names of the independent coordinates (nodes), in order
    independent: list[str] = field(default_factory=list)
    #: node -> its row over the independent coordinates, and the constant of its angle
    rows: dict[str, tuple[Row, Fraction]] = field(default_factory=dict)
    #: gear rows over nodes (housing left out): (owner, row, constant of the angle equation row.phi = constant)
    gear_rows: list[tuple[str, Row, Fraction]] = field(default_factory=list)
    #: gears in parallel, which share a torque that equilibrium leaves open (reactions.py)
    sharing: list[tuple[str, ...]] = field(default_factory=list)
    #: coordinates without inertia whose speed follows from the angles (relaxing.py): w = row.z + constant
    relaxing: dict[str, tuple[Row, Fraction]] = field(default_factory=dict)
    #: those of them in series with a friction element
    serial: dict[str, Serial] = field(default_factory=dict)
    #: coordinates that are slips of dampers instead of speeds of their nodes (slips.py): rows over these
    slips: dict[str, Row] = field(default_factory=dict)

    def over_nodes(self, form: Form) -> tuple[Row, Fraction]:
        """A form as a row over nodes, and the constant of its angle."""
        row: Row = {}
        constant = Fraction(0)
        for flange, c in form.terms.items():
            node, offset = self.place[flange]
            constant += c * offset
            if node != GROUND:
                row[node] = row.get(node, Fraction(0)) + c
        return {k: v for k, v in row.items() if v}, constant

    def over_independent(self, form: Form) -> tuple[Row, Fraction]:
        """A form as a row over the independent coordinates, and the constant of its angle."""
        nodes, constant = self.over_nodes(form)
        row: Row = {}
        for node, c in nodes.items():
            nrow, offset = self.rows[node]
            constant += c * offset
            for key, value in nrow.items():
                row[key] = row.get(key, Fraction(0)) + c * value
        return {k: v for k, v in row.items() if v}, constant


def build(components: Mapping[str, Component], sets: Iterable[Iterable[str]], parts: Parts) -> Topology:
    """The topology of a driveline, or a CompileError that names what is wrong; inertias are not asked for."""
    groups = [sorted(group, key=natural) for group in sets]
    joined = {flange for group in groups for flange in group}
    _check_open(components, joined)
    _check_apart(components, groups, THERMAL, "a heat port")
    _check_apart(components, groups, FRAME, "a frame")
    topology = _merge(components, groups, joined, parts)
    _eliminate(topology, components, parts)
    return topology


def _check_open(components: Mapping[str, Component], joined: set[str]) -> None:
    """Flanges that must be joined to something."""
    for name in sorted(components, key=natural):
        component = components[name]
        for flange, spec in component.flanges.items():
            if spec.required and f"{name}.{flange}" not in joined:
                raise FloatingFlangeError(
                    f"flange {name}.{flange} of {component.kind} {name!r} is joined to nothing", [name]
                )
        moving = [f for f, spec in component.flanges.items() if not spec.support and spec.domain != THERMAL]
        ends = moving or list(component.flanges)
        if len(components) > 1 and not any(f"{name}.{f}" in joined for f in ends):
            raise FloatingFlangeError(f"{component.kind} {name!r} is joined to nothing", [name])


def _check_apart(components: Mapping[str, Component], groups: list[list[str]], domain: str, what: str) -> None:
    """Heat ports are joined to heat ports only, frames to frames only."""
    for group in groups:
        alike = [f for f in group if _domain(components, f) == domain]
        if alike and len(alike) < len(group):
            other = next(f for f in group if f not in alike)
            moves = _domain(components, other) not in APART
            raise DomainError(
                f"{what} is joined to {'a flange that moves' if moves else 'another port'}: {alike[0]} and {other}",
                sorted({f.rpartition(".")[0] for f in (alike[0], other)}, key=natural),
            )


def _domain(components: Mapping[str, Component], flange: str) -> str:
    owner, _, short = flange.rpartition(".")
    return components[owner].flanges[short].domain


class _Union:
    """Union-find with offsets: phi(member) = phi(root) + offset, and the owners of the joints of each group."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}
        self.offset: dict[str, Fraction] = {}
        self.owners: dict[str, set[str]] = {}

    def find(self, item: str) -> tuple[str, Fraction]:
        total = Fraction(0)
        while self.parent.setdefault(item, item) != item:
            total += self.offset[item]
            item = self.parent[item]
        self.owners.setdefault(item, set())
        return item, total

    def join(self, first: str, second: str, offset: Fraction, owner: str | None) -> Fraction:
        """phi(second) = phi(first) + offset; returns the contradiction (0: none)."""
        root1, off1 = self.find(first)
        root2, off2 = self.find(second)
        if owner is not None:
            self.owners[root1].add(owner)
        if root1 == root2:
            return off1 + offset - off2
        self.parent[root2] = root1
        self.offset[root2] = off1 + offset - off2
        self.owners[root1] |= self.owners.pop(root2)
        return Fraction(0)


def _merge(components: Mapping[str, Component], sets: list[list[str]], joined: set[str], parts: Parts) -> Topology:
    """Nodes from connection sets, rigid parts and the housing."""
    union = _Union()
    flanges = {f"{n}.{f}": s.domain for n, c in components.items() for f, s in c.flanges.items()}
    domain_of = {flange: domain for flange, domain in flanges.items() if domain not in APART}
    union.find(GROUND)
    for group in (g for g in sets if g[0] in domain_of):
        for flange in group[1:]:
            union.join(group[0], flange, Fraction(0), None)
    for name in sorted(components, key=natural):
        for flange, spec in components[name].flanges.items():
            if spec.support and f"{name}.{flange}" not in joined:
                union.join(GROUND, f"{name}.{flange}", Fraction(0), None)
    for join in parts.joins:
        gap = union.join(join.first, join.second, join.offset, join.owner)
        if gap:
            owners = sorted(union.owners[union.find(join.first)[0]], key=natural)
            raise OverconstrainedError(
                f"rigid joints contradict each other by {float(gap):g} (rad or m) in the position of {join.second}: "
                + ", ".join(owners), owners,
            )  # fmt: skip

    groups: dict[str, list[str]] = {}
    for flange in sorted(domain_of, key=natural):
        groups.setdefault(union.find(flange)[0], []).append(flange)
    housing = union.find(GROUND)
    place: dict[str, tuple[str, Fraction]] = {}
    nodes: dict[str, tuple[str, ...]] = {}
    domains: dict[str, str] = {}
    for root, members in groups.items():
        found = {domain_of[f] for f in members} - {ANY}
        if root == housing[0]:
            for flange in members:
                place[flange] = (GROUND, union.find(flange)[1] - housing[1])
            continue
        if len(found) > 1:
            listed = sorted(members, key=lambda f: f not in joined)  # the flanges the user joined come first
            by = {d: next(f for f in listed if domain_of[f] == d) for d in sorted(found)}
            raise DomainError(
                "a rotational flange is joined to a translational one: " + " and ".join(by.values()),
                sorted({f.rpartition(".")[0] for f in by.values()}, key=natural),
            )
        name, base = _node_name(members, components), union.find(members[0])[1]
        nodes[name] = tuple(members)
        domains[name] = found.pop() if found else "rotational"
        for flange in members:
            place[flange] = (name, union.find(flange)[1] - base)
    return Topology(nodes, place, domains)


def _node_name(members: list[str], components: Mapping[str, Component]) -> str:
    """A node is called after the first body in it, else after its first flange."""
    for wanted in (("Inertia", "Mass"), ("Engine", "Wheel")):
        for member in members:
            owner, _, flange = member.rpartition(".")
            turns = components[owner].flanges[flange].support is False and flange != "flangeT"
            if components[owner].kind in wanted and turns:
                return owner
    return members[0]


def _uses(topology: Topology, parts: Parts) -> dict[str, int]:
    """How often force elements refer to each node; friction counts twice (its rows enter the boxed problem)."""
    uses = dict.fromkeys(topology.nodes, 0)
    weighted: list[tuple[int, Form]] = [(2, p.form) for p in parts.frictions]
    weighted += [(1, p.form) for p in parts.compliances]
    weighted += [(1, p.form) for p in parts.contacts]
    weighted += [(1, form) for form in port_forms(parts)]
    weighted += [(2, gear.form_b) for gear in parts.variable_gears]
    for weight, form in weighted:
        for node in topology.over_nodes(form)[0]:
            uses[node] += weight
    return uses


def _eliminate(topology: Topology, components: Mapping[str, Component], parts: Parts) -> None:
    """Choose the independent coordinates and express all nodes by them."""
    for constraint in parts.constraints:
        row, constant = topology.over_nodes(constraint.form)
        topology.gear_rows.append((constraint.owner, row, constraint.phi - constant))
    heavy = {node for p in parts.inertias for node in topology.over_nodes(p.form)[0]}
    uses = _uses(topology, parts)
    order = sorted(topology.nodes, key=lambda n: (n in heavy, uses[n], natural(n)))
    reduced = reduce([row for _, row, _ in topology.gear_rows], [c for _, _, c in topology.gear_rows], order)
    _check_loops(topology, reduced, components, parts)
    topology.independent = [n for n in sorted(topology.nodes, key=natural) if n not in reduced.pivots]
    for node in topology.independent:
        topology.rows[node] = ({node: Fraction(1)}, Fraction(0))
    for node, (row, constant) in reduced.pivots.items():
        topology.rows[node] = ({k: -v for k, v in row.items()}, constant)


def _check_loops(topology: Topology, reduced: Reduced[str], components: Mapping[str, Component], parts: Parts) -> None:
    """Loops of gears that leave torques undetermined, or that block a shaft which nothing holds. Gears with losses in
    parallel are fine: they share the torque (reactions.py)."""
    owners = [owner for owner, _, _ in topology.gear_rows]
    lossy = {loss.owner for loss in parts.losses}
    for _, made, _ in reduced.dependent:
        names = sorted({owners[k] for k in made}, key=natural)
        if len(names) == 1:
            raise OverconstrainedError(f"{names[0]!r} joins shafts that are rigidly joined already", names)
        if lossy.issuperset(names):
            topology.sharing.append(tuple(names))
            continue
        raise OverconstrainedError(
            "over-constrained gear loop: the torques in it are undetermined; components: " + ", ".join(names), names
        )
    # everything geared to a blocked shaft is blocked, too: the one made of the fewest rows shows the loop itself
    blocked = [node for node, (row, _) in reduced.pivots.items() if not row]
    for node in sorted(blocked, key=lambda n: (len(reduced.made_of[n]), natural(n))):
        made = reduced.made_of[node]
        if any(c.held or _touches_housing(topology, components, c.form) for c in (parts.constraints[k] for k in made)):
            continue
        names = sorted({owners[k] for k in made}, key=natural)
        raise OverconstrainedError(
            f"over-constrained gear loop: it can never turn (shaft {node!r} is blocked by the ratios alone); "
            "components: " + ", ".join(names), names,
        )  # fmt: skip


def _touches_housing(topology: Topology, components: Mapping[str, Component], form: Form) -> bool:
    """Is a working flange (not a support) of this gear held in the housing on purpose?"""
    for flange in form.terms:
        owner, _, short = flange.rpartition(".")
        if topology.place[flange][0] == GROUND and not components[owner].flanges[short].support:
            return True
    return False
