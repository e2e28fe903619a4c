"""Kinematics and statics of a driveline: ratios per gear (exact), and the torque each component puts on its flanges.

Ideal gears are constraints C.w = 0 with multipliers m; equilibrium of every shaft (node) reads

    J*a = f + C^T*m            f: forces of springs, clutches, engine ... on the nodes

so m follows from the accelerations. A gear puts coefficient * m on each of its flanges and on its support: this is the
bearing (support) torque, available for every component at every time of a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.builder import GROUND
from torqueloop.core.driveline import Driveline
from torqueloop.core.errors import UnknownNameError, did_you_mean
from torqueloop.core.gear_statics import GearState, solve_gear
from torqueloop.core.results import Result
from torqueloop.core.vocabulary import (
    OUT_COMPLIANCE,
    OUT_ENGINE,
    OUT_FRICTION,
    OUT_POLY,
    OUT_PUMP,
    OUT_TORQUE,
    OUT_TURBINE,
    Form,
)

Array = NDArray[np.float64]


def gear_state(driveline: Driveline, engaged: Sequence[str], name: str = "") -> GearState:
    """Speeds, ratio, element torques and slips with the given elements engaged, in exact fractions per input unit."""
    from torqueloop.core.gearbox_report import train_of

    return solve_gear(train_of(driveline), name or "+".join(engaged), engaged)


def ratio(driveline: Driveline, engaged: Sequence[str]) -> Fraction | None:
    """w_in/w_out of the gearbox with the given elements engaged, exact; None when the output stands still."""
    return gear_state(driveline, engaged).ratio


def element_forces(result: Result) -> list[tuple[str, Form, Array]]:
    """Every force element: (component, form it acts along, force along the form over time)."""
    model = result.model
    columns = {
        (int(kind), int(index)): (k, float(gain))
        for k, (kind, index, gain) in enumerate(
            zip(model.arrays["out_kind"], model.arrays["out_idx"], model.arrays["out_gain"], strict=True)
        )
    }

    def force(kind: int, index: int) -> Array:
        column, gain = columns[kind, index]
        return result.values[:, column] / gain

    parts = model.parts
    forces: list[tuple[str, Form, Array]] = []
    groups: list[tuple[int, list[tuple[str, Form]]]] = [
        (OUT_FRICTION, [(p.owner, p.form) for p in parts.frictions]),
        (OUT_COMPLIANCE, [(p.owner, p.form) for p in parts.compliances]),
        (OUT_TORQUE, [(p.owner, p.form) for p in parts.torques]),
        (OUT_POLY, [(p.owner, p.form) for p in parts.polynomials]),
        (OUT_ENGINE, [(p.owner, p.form) for p in parts.engines]),
    ]
    for kind, group in groups:
        forces += [(owner, form, force(kind, k)) for k, (owner, form) in enumerate(group)]
    for k, converter in enumerate(parts.converters):
        forces.append((converter.owner, converter.pump, -force(OUT_PUMP, k)))
        forces.append((converter.owner, converter.turbine, force(OUT_TURBINE, k)))
    return forces


def flange_torques(result: Result, component: str) -> dict[str, Array]:
    """Torque (force) the component puts on what is joined to each of its flanges, over time; support included.

    Rigid bodies (Inertia, Mass) hand on whatever acts on them and are not covered; of a shaft that runs through a brake
    the sum on the shaft is given at flange_a.
    """
    model = result.model
    owners = {c.owner for c in model.parts.constraints} | {owner for owner, _, _ in element_forces(result)}
    if component not in owners:
        raise UnknownNameError(
            f"{component!r} has no torques of its own (or does not exist)", hint=did_you_mean(component, owners)
        )
    torques: dict[str, Array] = {}

    def put(form: Form, force: Array) -> None:
        for flange, c in form.terms.items():
            owner, _, short = flange.rpartition(".")
            if owner == component:
                torques[short] = torques.get(short, np.zeros(len(result))) + float(c) * force

    for owner, form, force in element_forces(result):
        if owner == component:
            put(form, force)
    if any(c.owner == component for c in model.parts.constraints):
        for constraint, multiplier in zip(model.parts.constraints, _multipliers(result), strict=True):
            if constraint.owner == component:
                put(constraint.form, multiplier)
    return torques


def _multipliers(result: Result) -> Array:
    """Multipliers of all gear rows over time: (rows, samples)."""
    model = result.model
    topology = model.topology
    nodes = {name: k for k, name in enumerate(topology.nodes)}
    N = np.zeros((len(nodes), model.n))
    position = {name: k for k, name in enumerate(topology.independent)}
    for node, (row, _) in topology.rows.items():
        for name, value in row.items():
            N[nodes[node], position[name]] = float(value)
    J = np.zeros(len(nodes))
    for part in model.parts.inertias:
        node = topology.place[part.flange][0]
        if node != GROUND:
            J[nodes[node]] += part.J
    f = np.zeros((len(nodes), len(result)))
    for _, form, force in element_forces(result):
        for node, value in topology.over_nodes(form)[0].items():
            f[nodes[node]] += float(value) * force
    a = N @ np.linalg.solve(model.arrays["M"], N.T @ f)
    C = np.zeros((len(topology.gear_rows), len(nodes)))
    for k, (_, row, _) in enumerate(topology.gear_rows):
        for node, value in row.items():
            C[k, nodes[node]] = float(value)
    return np.asarray(np.linalg.solve(C @ C.T, C @ (J[:, None] * a - f)), dtype=np.float64)
