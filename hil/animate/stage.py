"""What is drawn of a driveline: gear sets, packs, shafts, converter, bodies; which shaft each part turns with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from torqueloop.core.analyse.chain_section import behind, chain, chain_section, extended
from torqueloop.core.analyse.gear_section import Coupling, Section, section
from torqueloop.core.analyse.gear_wheels import WheelSet, wheel_sets
from torqueloop.core.compile.compiler import analyse
from torqueloop.core.compile.topology import Topology
from torqueloop.core.components.bodies import BodyMount, RigidBody
from torqueloop.core.components.carriers import MovingCarrier
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.flange import ROTATIONAL
from torqueloop.core.describe.joint_parts import JointPart
from torqueloop.core.describe.kernel_numbers import BILATERAL, LOSS, STOP
from torqueloop.core.describe.parts import GROUND, FrictionPart, Parts

#: kinds of couplings by the class of their component, where they are no friction elements
_JOINT = re.compile("Joint|Cardan|Universal", re.IGNORECASE)


#: a gear set and the shafts of its members
_Set = tuple[WheelSet, Mapping[str, str | None]]


@dataclass(frozen=True)
class Converter:
    """Pump and turbine, and the lock-up clutch between them ("" for none)."""

    name: str
    pump: str
    turbine: str
    lockup: str


@dataclass(frozen=True)
class Body:
    """A body or carrier that moves, and the points of its mounts, along its own axes [m]."""

    name: str
    #: "body": quaternion NAME.q0 ..; "carrier": rates NAME.w_x .. as inputs
    kind: str
    mounts: tuple[tuple[str, float, float, float], ...] = ()


@dataclass(frozen=True)
class Stage:
    """Everything that is drawn of a driveline."""

    driveline: Driveline
    parts: Parts
    topology: Topology
    section: Section
    #: shafts that turn in the picture, in the order of the file
    shafts: tuple[str, ...]
    converter: Converter | None
    body: Body | None
    #: shafts of the driveline that are not drawn
    left_out: tuple[str, ...] = field(default=())
    #: joints of a driveline that is drawn as a line, by the names of their couplings
    joints: Mapping[str, JointPart] = field(default_factory=dict)


def stage(driveline: Driveline) -> Stage:
    """Find out what there is to draw. ConfigError for a driveline in which nothing turns."""
    parts, topology = analyse(driveline)
    wheels = wheel_sets(driveline)
    sets = [(made, _members(name, made, topology)) for name, made in wheels.items()]
    sets = _beside_partners(_ordered(driveline, sets))
    couplings = _couplings(driveline, parts, topology)
    if driveline.gearbox is not None:
        inside = _within(sets, couplings, {driveline.gearbox.input, driveline.gearbox.output})
        ends = (driveline.gearbox.input, driveline.gearbox.output)
    else:
        inside = {node for node in topology.nodes if topology.domain[node] == ROTATIONAL}
        used = [s for _, members in sets for s in members.values()]
        used += [x for c in couplings for x in (c.first, c.second)]
        found = [s for s in used if s is not None] or sorted(inside)
        if not found:
            raise ConfigError(f"nothing turns in {driveline.name}: there is nothing to animate")
        ends = (found[0], found[-1])
    converter = _converter(driveline, topology, couplings)
    if converter is not None:
        couplings = [c for c in couplings if c.name != converter.lockup]
    tail = [] if driveline.gearbox is None else behind(couplings, ends[1])
    couplings = [c for c in couplings if {c.first, c.second} - {None} <= inside and c not in [j for j, _ in tail]]
    inputs = {part.owner: part for part in parts.joints.shafts}
    joints = {c.name: inputs[c.name] for c in [*couplings, *(j for j, _ in tail)] if c.name in inputs}
    tail = [(c, turned) for c, turned in tail if c.name in joints]
    line = chain(couplings, inside) if joints and not sets and driveline.gearbox is None else None
    if line is None:
        joints = {c.name: joints[c.name] for c, _ in tail}
        drawn = extended(section(sets, couplings, ends), tail, {name: part.joints for name, part in joints.items()})
        inside |= {x for c, _ in tail for x in (c.first, c.second) if x is not None}
    else:
        drawn = chain_section(line, {name: part.joints for name, part in joints.items()})
    turning = {*inside, *([converter.pump, converter.turbine] if converter else [])}
    turning &= set(topology.nodes)
    shafts = tuple(n for n in topology.nodes if n in turning and _is_drawn(n, drawn, converter))
    left = tuple(n for n in topology.nodes if topology.domain[n] == ROTATIONAL and n not in shafts)
    return Stage(driveline, parts, topology, drawn, shafts, converter, _body(driveline), left, joints)


def _ordered(driveline: Driveline, sets: list[_Set]) -> list[_Set]:
    """Those that [display] names first; ConfigError for a name that is no gear set."""
    named, found = driveline.display, [made.name for made, _ in sets]
    for key, names in (("order", named.order), ("planets", named.planets)):
        for name in names:
            if name not in found:
                raise ConfigError("{key}: {value} is no gear set", file=driveline.file, table="display", key=key,
                                  value=name, allowed=", ".join(found) or "none")  # fmt: skip
    place = {name: k for k, name in enumerate(named.order)}
    return sorted(sets, key=lambda entry: place.get(entry[0].name, len(place)))


def _is_drawn(node: str, drawn: Section, converter: Converter | None) -> bool:
    ends = {converter.pump, converter.turbine} if converter else set()
    return (
        node in ends
        or any(s.name == node and (s.tubes or s.discs) for s in drawn.shafts)
        or any(node in s.shafts.values() for s in drawn.sets)
        or any(node in (c.outer, c.inner) for c in drawn.couplings)
    )


def _node(topology: Topology, flange: str) -> str | None:
    """The shaft a flange is part of; None: the housing."""
    node = topology.place[flange][0] if flange in topology.place else GROUND
    return None if node == GROUND else node


def _members(name: str, made: WheelSet, topology: Topology) -> Mapping[str, str | None]:
    members = {"carrier", *(w.member for w in made.wheels)}
    return {m: _node(topology, f"{name}.{m}") for m in sorted(members)}


def _beside_partners(
    sets: list[tuple[WheelSet, Mapping[str, str | None]]],
) -> list[tuple[WheelSet, Mapping[str, str | None]]]:
    """A set that shares its planets with another comes right after it."""
    found: list[tuple[WheelSet, Mapping[str, str | None]]] = []
    for entry in sets:
        if entry[0].partner:
            continue
        found.append(entry)
        found += [other for other in sets if other[0].partner == entry[0].name][:1]
    return found + [entry for entry in sets if entry not in found]


def _couplings(driveline: Driveline, parts: Parts, topology: Topology) -> list[Coupling]:
    """Friction elements between shafts; gears, springs and joints where the driveline is no gearbox."""
    found: list[Coupling] = []
    for part in parts.frictions:
        if part.source in (LOSS, BILATERAL, STOP):
            continue
        ends = _ends(part, topology)
        if ends is not None and part.owner not in {c.name for c in found}:
            component = driveline.components[part.owner]
            kind = "freewheel" if "FreeWheel" in component.kind else "brake" if None in ends else "clutch"
            found.append(Coupling(part.owner, kind, *ends))
    for name, component in driveline.components.items():
        other = _other_kind(component)
        if other is not None and name not in {c.name for c in found}:
            first, second = (_node(topology, f"{name}.{f}") for f in ("flange_a", "flange_b"))
            # between the parts of a gearbox these are members of its shafts, not packs; behind it they are not drawn
            if first != second and (driveline.gearbox is None or other == "joint"):
                found.append(Coupling(name, other, first, second))
    return found


def _ends(part: FrictionPart, topology: Topology) -> tuple[str | None, str | None] | None:
    """The two shafts of a friction element; None where it is not between two turning ones."""
    row, _ = topology.over_nodes(part.form)
    nodes = [n for n, c in sorted(row.items(), key=lambda e: e[1]) if c]
    if not 1 <= len(nodes) <= 2 or any(topology.domain[n] != ROTATIONAL for n in nodes):
        return None
    return nodes[0], nodes[1] if len(nodes) == 2 else None


def _other_kind(component: Component) -> str | None:
    """Kind of what joins flange_a and flange_b without friction."""
    if not {"flange_a", "flange_b"} <= set(component.flanges):
        return None
    if any(component.flanges[f].domain != ROTATIONAL for f in ("flange_a", "flange_b")):
        return None
    if _JOINT.search(component.kind):
        return "joint"
    if "Gear" in component.kind or component.kind == "FinalDrive":
        return "gear"
    return "spring" if "Spring" in component.kind else None


def _within(
    sets: Iterable[tuple[WheelSet, Mapping[str, str | None]]], couplings: Iterable[Coupling], ends: set[str]
) -> set[str]:
    """Shafts of the gearbox: its ends, members of sets, and what friction joins with them."""
    inside = {*ends, *(s for _, members in sets for s in members.values() if s is not None)}
    return inside | {
        x for c in couplings for x in (c.first, c.second)
        if x is not None and (c.first in inside or c.second in inside) and (c.first is None or c.second is None)
    }  # fmt: skip


def _converter(driveline: Driveline, topology: Topology, couplings: Iterable[Coupling]) -> Converter | None:
    """The component with a pump and a turbine, and a clutch between the same two shafts."""
    for name, component in driveline.components.items():
        if {"pump", "turbine"} <= set(component.flanges):
            pump, turbine = _node(topology, f"{name}.pump"), _node(topology, f"{name}.turbine")
            if pump is not None and turbine is not None:
                lockup = next((c.name for c in couplings if {c.first, c.second} == {pump, turbine}), "")
                return Converter(name, pump, turbine, lockup)
    return None


def _body(driveline: Driveline) -> Body | None:
    """The first body, or carrier that is moved."""
    for name, component in driveline.components.items():
        if isinstance(component, RigidBody):
            joined = next((set(g) for g in driveline.connections if f"{name}.frame_b" in g), set())
            mounts = tuple(
                (n, c.r_x, c.r_y, c.r_z) for n, c in driveline.components.items()
                if isinstance(c, BodyMount) and f"{n}.frame_a" in joined
            )  # fmt: skip
            return Body(name, "body", mounts)
        if isinstance(component, MovingCarrier):
            return Body(name, "carrier")
    return None
