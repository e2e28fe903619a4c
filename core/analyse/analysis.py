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

from torqueloop.core.analyse.gear_statics import GearState, solve_gear
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import UnknownNameError, did_you_mean
from torqueloop.core.describe.kernel_numbers import (
    OUT_COMPLIANCE,
    OUT_CONTACT,
    OUT_ENGINE,
    OUT_FRICTION,
    OUT_POLY,
    OUT_PORT,
    OUT_PUMP,
    OUT_RATIO,
    OUT_TORQUE,
    OUT_TURBINE,
)
from torqueloop.core.describe.parts import Parts, port_groups
from torqueloop.core.describe.vocabulary import Form
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]


def gear_state(driveline: Driveline, engaged: Sequence[str], name: str = "") -> GearState:
    """Speeds, ratio, element torques and slips with the given elements engaged, in exact fractions per input unit."""
    from torqueloop.core.analyse.gearbox_report import train_of

    return solve_gear(train_of(driveline), name or "+".join(engaged), engaged)


def ratio(driveline: Driveline, engaged: Sequence[str]) -> Fraction | None:
    """w_in/w_out of the gearbox with the given elements engaged, exact; None when the output stands still."""
    return gear_state(driveline, engaged).ratio


#: a force element: (component, what it is called, form it acts along, outputs that show the force along the form)
Element = tuple[str, str, Form, list[tuple[int, int, float]]]


def elements(parts: Parts) -> list[Element]:
    """Every force element of constant form, with the (kind, index, sign) of the outputs that can show its force."""
    found: list[Element] = [
        *((p.owner, "friction", p.form, [(OUT_FRICTION, k, 1.0)]) for k, p in enumerate(parts.frictions)),
        *((p.owner, "spring or damper", p.form, [(OUT_COMPLIANCE, k, 1.0)]) for k, p in enumerate(parts.compliances)),
        *((p.owner, "contact", p.form, [(OUT_CONTACT, k, 1.0)]) for k, p in enumerate(parts.contacts)),
    ]
    changing = {p.friction for p in parts.variable_gears}
    found = [e for e in found if not (e[1] == "friction" and e[3][0][1] in changing)]
    own = {"torque": (OUT_TORQUE, 1.0), "polynomial": (OUT_POLY, 1.0), "engine": (OUT_ENGINE, 1.0),
           "pump": (OUT_PUMP, -1.0), "turbine": (OUT_TURBINE, 1.0)}  # fmt: skip
    number = 0
    for group, members in port_groups(parts).items():
        for k, (owner, form) in enumerate(members):
            shown = [(OUT_PORT, number, 1.0)]
            if group in own:
                shown.append((own[group][0], k, own[group][1]))
            found.append((owner, group, form, shown))
            number += 1
    return found


class _Shown:
    """Outputs of a result by kind and index."""

    def __init__(self, result: Result) -> None:
        arrays = result.model.arrays
        self._values = result.values
        self._columns = {
            (int(kind), int(index)): (k, float(gain))
            for k, (kind, index, gain) in enumerate(
                zip(arrays.out["kind"], arrays.out["idx"], arrays.out["gain"], strict=True)
            )
        }

    def find(self, owner: str, what: str, places: list[tuple[int, int, float]]) -> Array:
        """The quantity of an output, divided by its gain; an element without an output cannot be analysed."""
        for kind, index, sign in places:
            if (kind, index) in self._columns:
                column, gain = self._columns[kind, index]
                return np.asarray(sign * self._values[:, column] / gain, dtype=np.float64)
        raise UnknownNameError(f"{owner!r} has no output that shows its {what}, so its torques are unknown")


def element_forces(result: Result) -> list[tuple[str, Form, Array]]:
    """Every force element: (component, form it acts along, force along the form over time).

    A gear of changing ratio i has two: f along its side a and -i*f along its side b.
    """
    parts, shown = result.model.parts, _Shown(result)
    forces = [(owner, form, shown.find(owner, what, places)) for owner, what, form, places in elements(parts)]
    for k, gear in enumerate(parts.variable_gears):
        force = shown.find(gear.owner, "torque", [(OUT_FRICTION, gear.friction, 1.0)])
        ratio = shown.find(gear.owner, "ratio", [(OUT_RATIO, k, 1.0)])
        forces += [(gear.owner, gear.form_a, force), (gear.owner, gear.form_b, -ratio * force)]
    return forces


def flange_torques(result: Result, component: str) -> dict[str, Array]:
    """Torque (force) the component puts on what is joined to each of its flanges, over time; support included.

    Rigid bodies (Inertia, Mass) transmit whatever acts on them and are not covered; of a shaft that runs through a
    brake the sum on the shaft is given at flange_a.
    """
    model = result.model
    forces = element_forces(result)
    owners = {c.owner for c in model.parts.constraints} | {owner for owner, _, _ in forces}
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

    for owner, form, force in forces:
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
    J = np.zeros((len(nodes), len(nodes)))
    for part in model.parts.inertias:
        over = [(nodes[node], float(c)) for node, c in topology.over_nodes(part.form)[0].items()]
        for i, ci in over:
            for j, cj in over:
                J[i, j] += part.J * ci * cj
    f = np.zeros((len(nodes), len(result)))
    for _, form, force in element_forces(result):
        for node, value in topology.over_nodes(form)[0].items():
            f[nodes[node]] += float(value) * force
    # coordinates without inertia move no body
    heavy = np.setdiff1d(np.arange(model.n), model.arrays.rx["coord"])
    a = N[:, heavy] @ np.linalg.solve(model.arrays.M[np.ix_(heavy, heavy)], N[:, heavy].T @ f)
    C = np.zeros((len(topology.gear_rows), len(nodes)))
    for k, (_, row, _) in enumerate(topology.gear_rows):
        for node, value in row.items():
            C[k, nodes[node]] = float(value)
    # (gears in parallel: the least norm, as in core/compile/reactions.py)
    return np.asarray(np.linalg.pinv(C.T) @ (J @ a - f), dtype=np.float64)
