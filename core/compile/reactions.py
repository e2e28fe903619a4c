"""Forces inside ideal gears, as exact sums of what the kernel knows.

With all nodes kept, w = N*u, and the gear rows G (one per constraint, independent) the equations of motion read

    J*N*a = f + G^T*lambda,    f = sum over elements of (form)^T*(force along the form)

a: accelerations of the independent coordinates; lambda: force along the form of each constraint. G^T has full column
rank, so lambda is unique, with or without inertia in the nodes. Gauss-Jordan elimination E*G = [I on the pivot nodes]
gives lambda = E^T*(J*N*a - f) at the pivot nodes: only the equilibrium of these nodes is used. The lightest nodes are
taken, which keeps the differences free of cancellation. Forms are the full ones: two elements that move alike once the
gears are eliminated still load the gears between them differently.

A reaction is gain*lambda + own_gain*(force of a friction element); one row per reaction:

    re_A over a, re_port over the forces of the ports, re_fr over friction, re_lin over springs, re_con over contacts
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from torqueloop.core.compile.exact import reduce
from torqueloop.core.compile.topology import Row, Topology
from torqueloop.core.describe.errors import CompileError
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import GROUND, Parts, port_forms
from torqueloop.core.describe.vocabulary import BILATERAL, Form

ZERO = Fraction(0)


def reaction_arrays(topology: Topology, parts: Parts) -> dict[str, Any]:
    """The five matrices, exact until they are rounded once."""
    groups: dict[str, list[Form | None]] = {
        "re_port": list(port_forms(parts)),
        "re_fr": [None if _variable(parts, k) else p.form for k, p in enumerate(parts.frictions)],
        "re_lin": [p.form for p in parts.compliances],
        "re_con": [p.form for p in parts.contacts],
    }
    count = len(parts.reactions)
    matrices: dict[str, Any] = {name: np.zeros((count, len(forms))) for name, forms in groups.items()}
    matrices["re_A"] = np.zeros((count, len(topology.independent)))
    if not count:
        return matrices
    inertia = _inertias(topology, parts)
    weights = _multipliers(topology, parts, inertia)
    over_nodes = {
        name: [{} if form is None else topology.over_nodes(form)[0] for form in forms] for name, forms in groups.items()
    }
    position = {name: k for k, name in enumerate(topology.independent)}
    for i, reaction in enumerate(parts.reactions):
        weight = weights[reaction.constraint]
        _check_variable(topology, parts, reaction.owner, weight)
        gain, own_gain = Fraction(reaction.gain), Fraction(reaction.own_gain)
        row = dict.fromkeys(position, ZERO)
        for node, value in weight.items():
            for name, c in topology.rows[node][0].items():
                row[name] += gain * value * inertia.get(node, ZERO) * c
        matrices["re_A"][i] = [float(row[name]) for name in topology.independent]
        for name, forms in over_nodes.items():
            for k, form in enumerate(forms):
                total = -gain * sum((value * form[node] for node, value in weight.items() if node in form), ZERO)
                if name == "re_fr" and k == reaction.own:
                    total += own_gain
                matrices[name][i, k] = float(total)
    return matrices


def _inertias(topology: Topology, parts: Parts) -> Row:
    """Inertia of every node that has some."""
    inertia: Row = {}
    for part in parts.inertias:
        node = topology.place[part.flange][0]
        if node != GROUND:
            inertia[node] = inertia.get(node, ZERO) + Fraction(part.J)
    return inertia


def _multipliers(topology: Topology, parts: Parts, inertia: Row) -> Sequence[Row]:
    """For every gear row: lambda = sum of (weight of a node)*(J*N*a - f at that node)."""
    changing = {
        node
        for gear in parts.variable_gears
        for form in (gear.form_a, gear.form_b)
        for node in topology.over_nodes(form)[0]
    }
    order = sorted(topology.nodes, key=lambda n: (n in changing, inertia.get(n, ZERO), natural(n)))
    rows = [row for _, row, _ in topology.gear_rows]
    reduced = reduce(rows, [ZERO] * len(rows), order)
    weights: list[Row] = [{} for _ in rows]
    for node, made in reduced.made_of.items():
        for index, factor in made.items():
            weights[index][node] = factor
    return weights


def _variable(parts: Parts, friction: int) -> bool:
    """Is it the torque of a variable gear? Its form changes with the ratio."""
    part = parts.frictions[friction]
    gears = parts.variable_gears
    return (
        part.source == BILATERAL
        and 0 <= part.source_index < len(gears)
        and gears[part.source_index].friction == friction
    )


def _check_variable(topology: Topology, parts: Parts, owner: str, weight: Row) -> None:
    """The forces in a gear must not depend on a ratio that changes: the matrices are constant."""
    for gear in parts.variable_gears:
        touched = {*topology.over_nodes(gear.form_a)[0], *topology.over_nodes(gear.form_b)[0]}
        if touched & set(weight):
            raise CompileError(
                f"the force inside {owner!r} depends on the changing ratio of {gear.owner!r}: "
                f"put a Spring or a Clutch between them", sorted({owner, gear.owner}),
            )  # fmt: skip
