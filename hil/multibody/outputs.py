"""The outputs of a tree of bodies: by name, with units, from a state and its accelerations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.multibody.coupled import Coupled, Solution, State

AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Instant:
    """A state with what follows from it."""

    t: float
    state: State
    found: Solution
    modes: tuple[int, ...]
    #: (bodies, 6) forces and moments of joints
    wrenches: np.ndarray
    #: (bodies, 3) along the axes of each: angular velocity, its derivative, acceleration of the joint's place
    omega: np.ndarray
    omega_dot: np.ndarray
    acceleration: np.ndarray


Reader = Callable[[Instant], float]


def instant(system: Coupled, t: float, state: State, found: Solution, modes: tuple[int, ...]) -> Instant:
    """Kinematics and joint forces at an instant."""
    wrenches = system.wrenches(state, found, t)
    built = system.built
    pin, model, data = built.pin, built.model, built.data
    pin.forwardKinematics(model, data, state.q, state.v, found.a)
    joints = range(1, model.njoints)
    return Instant(
        t, state, found, modes, wrenches,
        np.array([data.v[j].angular for j in joints]),
        np.array([data.a[j].angular for j in joints]),
        np.array([pin.getClassicalAcceleration(model, data, j, pin.LOCAL).linear for j in joints]),
    )  # fmt: skip


def readers(system: Coupled) -> dict[str, tuple[str, Reader]]:
    """Name -> SI unit and how it is read.

    JOINT.phi, .w (revolute), .s, .v (prismatic), .q0 .. q3 (others); BODY.w_x .., z_x .., a_x .., f_x .., t_x .. along
    its axes; DRIVELINE.INERTIA.w; DRIVELINE.CLUTCH.tau, .mode; ROW.tau of rows, POINT.f_x .. of held points (world);
    SHAFT.tau, .twist of shafts with joints.
    """
    found: dict[str, tuple[str, Reader]] = {}
    for k, body in enumerate(system.built.tree.bodies):
        found |= _joint(body.name, body.joint, system.built.model.joints[k + 1])
        for n, axis in enumerate(AXES):
            found[f"{body.name}.w_{axis}"] = "rad/s", _vector("omega", k, n)
            found[f"{body.name}.z_{axis}"] = "rad/s2", _vector("omega_dot", k, n)
            found[f"{body.name}.a_{axis}"] = "m/s2", _vector("acceleration", k, n)
            found[f"{body.name}.f_{axis}"] = "N", _vector("wrenches", k, n)
            found[f"{body.name}.t_{axis}"] = "Nm", _vector("wrenches", k, 3 + n)
    for k, carried in enumerate(system.carried):
        for rotor in carried.rotors:
            found[f"{carried.name}.{rotor.name}.w"] = "rad/s", _speed(rotor.row, system.part(k))
    for k, name in enumerate(system.friction_names):
        found[f"{name}.tau"] = "Nm", _friction(k)
        found[f"{name}.mode"] = "1", _mode(k)
    for k, geometry in enumerate(system.shafts):
        found[f"{geometry.shaft.name}.tau"] = "Nm", _shaft_torque(system, k)
        found[f"{geometry.shaft.name}.twist"] = "rad", _shaft_twist(system, k)
    for k, name in enumerate(system.row_names):
        row = k < len(system.rows)
        found[f"{name}.tau" if row else name] = "Nm" if row else "N", _multiplier(k)
    return found


def _joint(name: str, kind: str, joint: Any) -> dict[str, tuple[str, Reader]]:
    q, v, behind = int(joint.idx_q), int(joint.idx_v), int(joint.idx_q + joint.nq)
    if kind == "revolute":
        return {f"{name}.phi": ("rad", _state("q", q)), f"{name}.w": ("rad/s", _state("v", v))}
    if kind == "prismatic":
        return {f"{name}.s": ("m", _state("q", q)), f"{name}.v": ("m/s", _state("v", v))}
    # the library's order is x, y, z, w
    places = (behind - 1, behind - 4, behind - 3, behind - 2)
    return {f"{name}.q{n}": ("1", _state("q", at)) for n, at in enumerate(places)}


def _state(part: str, at: int) -> Reader:
    return lambda now: float(getattr(now.state, part)[at])


def _vector(part: str, body: int, at: int) -> Reader:
    return lambda now: float(getattr(now, part)[body, at])


def _speed(row: np.ndarray, part: slice) -> Reader:
    return lambda now: float(row @ now.state.u[part])


def _friction(k: int) -> Reader:
    return lambda now: -float(now.found.frictions[k])


def _shaft_torque(system: Coupled, k: int) -> Reader:
    return lambda now: system.shaft_torques(now.state)[k][0]


def _shaft_twist(system: Coupled, k: int) -> Reader:
    return lambda now: float(system.shaft_twists(now.state)[k])


def _mode(k: int) -> Reader:
    return lambda now: float(now.modes[k])


def _multiplier(k: int) -> Reader:
    return lambda now: float(now.found.multipliers[k])
