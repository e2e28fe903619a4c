"""Forces inside ideal gears, as exact sums of what the kernel knows.

With all nodes kept, w = N*u, and the gear rows G (one per constraint, independent) the equations of motion read

    J*N*a = f + G^T*lambda,    f = sum over elements of (form)^T*(force along the form)

a: accelerations of the independent coordinates; lambda: force along the form of each constraint. G^T has full column
rank but for gears in parallel, so lambda is unique, with or without inertia in the nodes. Gears in parallel share their
torque such that the sum of lambda^2 is smallest: with the null space V of G^T, lambda - V (V^T V)^-1 V^T lambda.
Gauss-Jordan elimination E*G = [I on the pivot nodes] gives lambda = E^T*(J*N*a - f) at the pivot nodes: only the
equilibrium of these nodes is used. The lightest nodes are taken, which keeps the differences free of cancellation.
Forms are the full ones: two elements that move alike once the gears are eliminated still load the gears between them
differently.

A reaction is gain*lambda + own_gain*(force of a friction element), or gain*(torque on the housing): every force along a
form acts on the flanges of the form that are in the housing, too, lambda as any other. One row per reaction:

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
from torqueloop.core.describe.kernel_numbers import BILATERAL
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import GROUND, Parts, Reaction, port_forms, port_number
from torqueloop.core.describe.vocabulary import Form

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
        if reaction.joint is not None:
            _of_joint(parts, reaction, matrices, i)
            continue
        weight = _weight_of(topology, parts, reaction, weights)
        _check_variable(topology, parts, reaction.owner, weight)
        gain, own_gain = Fraction(reaction.gain), Fraction(reaction.own_gain)
        row = dict.fromkeys(position, ZERO)
        for node, value in weight.items():
            for name, c in inertia.get(node, {}).items():
                row[name] += gain * value * c
        matrices["re_A"][i] = [float(row[name]) for name in topology.independent]
        for name, forms in over_nodes.items():
            for k, form in enumerate(forms):
                total = -gain * sum((value * form[node] for node, value in weight.items() if node in form), ZERO)
                total += gain * _in_housing(topology, groups[name][k], reaction.housing)
                if name == "re_fr" and k == reaction.own:
                    total += own_gain
                matrices[name][i, k] = float(total)
    return matrices


def _of_joint(parts: Parts, reaction: Reaction, matrices: dict[str, Any], i: int) -> None:
    """Torque of a joint shaft on a flange: its spring along phi_a - phi_b, and its port there."""
    assert reaction.joint is not None
    k, end = reaction.joint
    matrices["re_lin"][i, parts.joints.shafts[k].lin] = reaction.gain * (1.0 if end == 0 else -1.0)
    matrices["re_port"][i, port_number(parts, "joint_b" if end else "joint_a", k)] = reaction.gain


def _in_housing(topology: Topology, form: Form | None, flanges: frozenset[str]) -> Fraction:
    """Sum of the coefficients of a form on those of the flanges that are in the housing."""
    if form is None:
        return ZERO
    return sum((c for f, c in form.terms.items() if f in flanges and topology.place[f][0] == GROUND), ZERO)


def _weight_of(topology: Topology, parts: Parts, reaction: Reaction, weights: Sequence[Row]) -> Row:
    """The nodes whose equilibrium gives a reaction."""
    if not reaction.housing:
        return weights[reaction.constraint]
    for gear in parts.variable_gears:
        if set(gear.form_a.terms) & reaction.housing:
            raise CompileError(
                f"the torque of {gear.owner!r} on the housing changes with its ratio: leave it out of "
                f"{reaction.owner!r} and join its support to a Mounting1D", sorted({reaction.owner, gear.owner}),
            )  # fmt: skip
    total: Row = {}
    for constraint, weight in zip(parts.constraints, weights, strict=True):
        share = _in_housing(topology, constraint.form, reaction.housing)
        for node, value in weight.items():
            total[node] = total.get(node, ZERO) + share * value
    return {node: value for node, value in total.items() if value}


def _inertias(topology: Topology, parts: Parts) -> dict[str, Row]:
    """The line of J*N of every node that has inertia."""
    inertia: dict[str, Row] = {}
    for part in parts.inertias:
        speed = topology.over_independent(part.form)[0]
        for node, weight in topology.over_nodes(part.form)[0].items():
            line = inertia.setdefault(node, {})
            for name, c in speed.items():
                line[name] = line.get(name, ZERO) + weight * Fraction(part.J) * c
    return inertia


def _weight(inertia: dict[str, Row], node: str) -> Fraction:
    """How heavy a node is, for the choice of pivots."""
    return sum((abs(c) for c in inertia.get(node, {}).values()), ZERO)


def _multipliers(topology: Topology, parts: Parts, inertia: dict[str, Row]) -> Sequence[Row]:
    """For every gear row: lambda = sum of (weight of a node)*(J*N*a - f at that node)."""
    changing = {
        node
        for gear in parts.variable_gears
        for form in (gear.form_a, gear.form_b)
        for node in topology.over_nodes(form)[0]
    }
    order = sorted(topology.nodes, key=lambda n: (n in changing, _weight(inertia, n), natural(n)))
    rows = [row for _, row, _ in topology.gear_rows]
    reduced = reduce(rows, [ZERO] * len(rows), order)
    weights: list[Row] = [{} for _ in rows]
    for node, made in reduced.made_of.items():
        for index, factor in made.items():
            weights[index][node] = factor
    loops = [made for _, made, _ in reduced.dependent]
    if loops:
        _share(weights, loops)
    return weights


def _share(weights: list[Row], loops: Sequence[dict[int, Fraction]]) -> None:
    """Multipliers less their part in the null space that the loops span."""
    known = range(len(loops))
    normal = [{j: sum((v * loops[j].get(k, ZERO) for k, v in loops[i].items()), ZERO) for j in known} for i in known]
    for node in {node for weight in weights for node in weight}:
        along = [sum((v * weights[k].get(node, ZERO) for k, v in loop.items()), ZERO) for loop in loops]
        solved = reduce(normal, along, known)
        for j, loop in enumerate(loops):
            for k, v in loop.items():
                weights[k][node] = weights[k].get(node, ZERO) - v * solved.pivots[j][1]


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
