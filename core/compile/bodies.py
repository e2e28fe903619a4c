"""Rigid bodies as carriers: a gyrostat has a constant mass matrix in axes fixed to it, so it fits the step as it is.

With omega, v of the mass centre (along the axes of the body) and the speeds w of its rotors relative to it the kinetic
energy is

    1/2 m v^2 + 1/2 omega.I.omega + sum (J w n.omega + 1/2 J w^2)        I with the rotors at rest on the body

The spin along the body's axes is H = I omega + sum J n w. What the axes' turning adds, -omega x H and -m omega x v, and
gravity turned into these axes are forces in the step (cython_kernels/step/bodies.pxi). A point of the body that stays
where it is, v + omega x r = 0, is a constant row; so is a direction the body cannot turn about.

J. Wittenburg: Dynamics of Systems of Rigid Bodies, 1977; C. Schweiger, M. Otter, Modelica Conference 2003, (1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from torqueloop.core.describe.errors import CompileError
from torqueloop.core.describe.frame_parts import BodyPart, BushingPart, HingePart, LeavingPart, RotorPart, Vector
from torqueloop.core.describe.kernel_numbers import (
    OUT_ATTITUDE,
    OUT_COMPLIANCE,
    OUT_DISSIPATION,
    OUT_PORT_WORK,
    OUT_REACTION,
)
from torqueloop.core.describe.parts import BodyElement, Compliance, Constraint, InertiaPart, Output, Parts, Reaction
from torqueloop.core.describe.units import SYMBOLS
from torqueloop.core.describe.vocabulary import Form

AXES = ("x", "y", "z")
Forms = tuple[Form, Form, Form]


def settle_bodies(parts: Parts, on: Mapping[str, BodyPart]) -> None:
    """Inertias, rows, springs and outputs of all bodies; `on`: frame -> the body it is fixed to."""
    for body in parts.frames.bodies:
        rotors = [rotor for rotor in parts.frames.rotors if on.get(rotor.frame) is body]
        hinges = [hinge for hinge in parts.frames.hinges if on.get(hinge.frame) is body]
        _inertias(parts, body, rotors)
        for hinge in hinges:
            _hinge(parts, body, hinge)
        for bushing in parts.frames.bushings:
            if on.get(bushing.frame) is body:
                _bushing(parts, body, bushing)
        for shaft in parts.frames.leaving:
            if on.get(shaft.frame) is body:
                _leaving(parts, body, shaft)
        _element(parts, body, rotors, [hinge for hinge in hinges if hinge.tau])


def along(n: Sequence[float], forms: Forms) -> Form:
    """n.forms, exact."""
    total = Form({})
    for value, form in zip(n, forms, strict=True):
        total = total + Fraction(value) * form
    return total


def point_velocity(body: BodyPart, r: Vector) -> Forms:
    """v + omega x r along the axes of the body."""
    found = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        found.append(body.v[k] + Fraction(r[j]) * body.w[i] - Fraction(r[i]) * body.w[j])
    return found[0], found[1], found[2]


def _inertias(parts: Parts, body: BodyPart, rotors: list[RotorPart]) -> None:
    tensor = np.array(body.tensor)
    for form in body.v:
        parts.inertias.append(InertiaPart(body.owner, form, body.m))
    for value, axis in zip(*_principal(tensor), strict=True):
        parts.inertias.append(InertiaPart(body.owner, along(axis, body.w), float(value)))
    for rotor in rotors:
        if not rotor.exact:
            raise CompileError(
                f"{rotor.owner!r} is on {body.owner!r}, a body of the model: exact = false goes with a carrier "
                "whose motion is given", [rotor.owner, body.owner],
            )  # fmt: skip
        # J w n.omega = J/2 ((w + n.omega)^2 - w^2 - (n.omega)^2); J/2 w^2 is there already
        turning = along(rotor.n, body.w)
        for form, sign in ((rotor.form + turning, 1.0), (rotor.form, -1.0), (turning, -1.0)):
            parts.inertias.append(InertiaPart(rotor.owner, form, sign * rotor.J))
        tensor = tensor - rotor.J * np.outer(rotor.n, rotor.n)
    least = float(np.linalg.eigvalsh(tensor)[0])
    if rotors and least <= 0.0:
        names = sorted({rotor.owner for rotor in rotors})
        parts.impossible.append(
            f"{body.owner}: its inertia is to hold that of its rotors at rest, but {', '.join(names)} have more "
            f"({least:.3g} kg.m2 is left of it)"
        )


def _principal(tensor: np.ndarray) -> tuple[list[float], list[Vector]]:
    """Moments and axes; a tensor that is diagonal keeps its axes to the bit."""
    if np.array_equal(tensor, np.diag(np.diag(tensor))):
        return [float(v) for v in np.diag(tensor)], [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    values, axes = np.linalg.eigh(tensor)
    return [float(v) for v in values], [(float(a[0]), float(a[1]), float(a[2])) for a in axes.T]


def _hinge(parts: Parts, body: BodyPart, hinge: HingePart) -> None:
    """Rows of the point and of the blocked directions; what they bear acts on the body, along its axes."""
    rows = [(f"f_{axis}", "force", form) for axis, form in zip(AXES, point_velocity(body, hinge.r), strict=True)]
    rows += [(f"t_{k}", "torque", along(axis, body.w)) for k, axis in zip(("u", "v", "w"), hinge.blocked, strict=False)]
    for short, dimension, form in rows:
        parts.constraints.append(Constraint(hinge.owner, form, held=True))
        parts.reactions.append(Reaction(hinge.owner, len(parts.constraints) - 1, 1.0, -1, 0.0))
        name, index = f"{hinge.owner}.{short}", len(parts.reactions) - 1
        parts.outputs.append(Output(name, SYMBOLS[dimension], OUT_REACTION, None, index, 1.0))


def _leaving(parts: Parts, body: BodyPart, shaft: LeavingPart) -> None:
    """A shaft that goes from the body into the world: what it carries acts on the body from outside."""
    parts.constraints.append(Constraint(shaft.owner, shaft.form - along(shaft.n, body.w)))
    parts.reactions.append(Reaction(shaft.owner, len(parts.constraints) - 1, 1.0, -1, 0.0))
    name, index = f"{shaft.owner}.tau", len(parts.reactions) - 1
    parts.outputs.append(Output(name, SYMBOLS["torque"], OUT_REACTION, None, index, 1.0))


def _bushing(parts: Parts, body: BodyPart, bushing: BushingPart) -> None:
    """Springs and dampers at a point; the force is on the body."""
    moved = point_velocity(body, bushing.r)
    lines = [("f", "force", moved[k], bushing.c[k], bushing.d[k], AXES[k]) for k in range(3)]
    lines += [("t", "torque", body.w[k], bushing.c_rot[k], bushing.d_rot[k], AXES[k]) for k in range(3)]
    for short, dimension, form, c, d, axis in lines:
        if c or d:
            parts.compliances.append(Compliance(bushing.owner, form, c, d, 0.0))
            name, index = f"{bushing.owner}.{short}_{axis}", len(parts.compliances) - 1
            parts.outputs.append(Output(name, SYMBOLS[dimension], OUT_COMPLIANCE, None, index, 1.0))
            heat = f"{bushing.owner}.heat_{short}_{axis}"
            parts.outputs.append(Output(heat, SYMBOLS["energy"], OUT_DISSIPATION, None, index, 1.0))


def _element(parts: Parts, body: BodyPart, rotors: list[RotorPart], driven: list[HingePart]) -> None:
    """The record of the body, and its outputs."""
    spin = [along(line, body.w) for line in body.tensor]
    for rotor in rotors:
        spin = [h + Fraction(rotor.J * n) * rotor.form for h, n in zip(spin, rotor.n, strict=True)]
    if len(driven) > 1:
        raise CompileError(f"{body.owner!r} is hinged by two driven joints", [hinge.owner for hinge in driven])
    tau = driven[0].tau if driven else (-1, -1, -1)
    element = BodyElement(body.owner, body.w, body.v, (spin[0], spin[1], spin[2]), tau, body.m, body.g, body.q, body.r)
    parts.bodies.append(element)
    number = len(parts.bodies) - 1
    units = ("1",) * 4 + ("m",) * 3
    for k, (short, unit) in enumerate(zip(("q0", "q1", "q2", "q3", *AXES), units, strict=True)):
        parts.outputs.append(Output(f"{body.owner}.{short}", unit, OUT_ATTITUDE, None, 7 * number + k, 1.0))
    for group in ("wx", "wy", "wz", "vx", "vy", "vz"):
        name = f"{body.owner}.work_{group}"
        parts.outputs.append(Output(name, SYMBOLS["energy"], OUT_PORT_WORK, None, number, 1.0, f"body_{group}"))
