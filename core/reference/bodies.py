"""Mass, centre of mass and inertia tensor of the bodies of Modelica.Mechanics.MultiBody.Parts.

The case gives them as `derived`, or they follow from the parameters. All vectors in the axes of frame_a; the tensor is
that about the centre of mass.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.reference.assembly import NotMapped, Parameters

Vector = NDArray[np.float64]
Body = tuple[float, Vector, NDArray[np.float64]]

#: parameters that place or draw a body and do not enter its mass properties
DRAWN = ("widthDirection", "lengthDirection", "angles_fixed", "angles_start", "sequence_start", "w_0_fixed",
         "w_0_start", "z_0_fixed", "z_0_start", "useQuaternions", "sequence_angleStates", "sphereDiameter", "shapeType",
         "color", "r_0", "v_0", "a_0", "innerDiameter", "innerWidth", "innerHeight", "diameter", "width", "height",
         "length", "r_shape", "density", "r")  # fmt: skip


def body_of(kind: str, p: Parameters) -> Body:
    """(mass, centre, tensor) of a body."""
    body = _derived(p) if "I_CM" in p.derived else _computed(kind, p)
    for name in DRAWN:
        p(name, None)
    mass, _, tensor = body
    if mass < 0.0 or np.any(np.linalg.eigvalsh(tensor) < -1e-12 * max(1.0, float(np.abs(tensor).max()))):
        raise NotMapped(f"{p.label} {p.name}: mass or inertia is negative")
    return body


def _derived(p: Parameters) -> Body:
    return float(p.derived["m"]), _vector(p.derived["r_CM"]), np.array(p.derived["I_CM"], dtype=np.float64)


def _computed(kind: str, p: Parameters) -> Body:
    if kind == "PointMass":
        return float(p("m")), np.zeros(3), np.zeros((3, 3))
    if kind in ("Body", "BodyShape"):
        return _given(p)
    if kind == "BodyCylinder":
        return _cylinder(p)
    if kind == "BodyBox":
        return _box(p)
    raise NotMapped(f"{p.label} {p.name}: mass properties of this kind are not known")


def _given(p: Parameters) -> Body:
    """Body, BodyShape: m, r_CM and the tensor by its entries (Modelica's defaults: 0.001 kg.m2 on the diagonal)."""
    diagonal = [float(p(f"I_{k}{k}", 0.001)) for k in (1, 2, 3)]
    tensor = np.diag(diagonal)
    for i, j in ((2, 1), (3, 1), (3, 2)):
        tensor[i - 1, j - 1] = tensor[j - 1, i - 1] = float(p(f"I_{i}{j}", 0.0))
    return float(p("m")), _vector(p("r_CM", [0.0, 0.0, 0.0])), tensor


def _vector(value: list[float]) -> Vector:
    return np.array(value, dtype=np.float64)


def _axes(p: Parameters) -> tuple[Vector, Vector, float]:
    """Begin, direction and length of a body that extends from r_shape towards frame_b."""
    r, begin = _vector(p("r", [0.1, 0.0, 0.0])), _vector(p("r_shape", [0.0, 0.0, 0.0]))
    way = r - begin
    length = float(p("length", float(np.linalg.norm(way))))
    return begin, way / np.linalg.norm(way), length


def _cylinder(p: Parameters) -> Body:
    """Hollow cylinder: m = pi/4*density*length*(D^2 - d^2), axial m*(D^2 + d^2)/8, across m*(L^2/12 + (D^2+d^2)/16)."""
    begin, axis, length = _axes(p)
    outer, inner = float(p("diameter", length / 5.0)), float(p("innerDiameter", 0.0))
    m = math.pi / 4.0 * float(p("density", 7700.0)) * length * (outer**2 - inner**2)
    round_ = m * (outer**2 + inner**2)
    along = np.outer(axis, axis)
    tensor = round_ / 8.0 * along + (m * length**2 / 12.0 + round_ / 16.0) * (np.eye(3) - along)
    return m, begin + 0.5 * length * axis, tensor


def _box(p: Parameters) -> Body:
    """Hollow box: outer minus inner box, length along its direction, width along widthDirection."""
    begin, x, length = _axes(p)
    width = float(p("width", length / 5.0))
    height = float(p("height", width))
    holes = float(p("innerWidth", 0.0)), float(p("innerHeight", p("innerWidth", 0.0)))
    density = float(p("density", 7700.0))
    z = np.cross(x, _vector(p("widthDirection", [0.0, 1.0, 0.0])))
    z = z / np.linalg.norm(z)
    y = np.cross(z, x)
    m, tensor = 0.0, np.zeros((3, 3))
    for sense, (w, h) in ((1.0, (width, height)), (-1.0, holes)):
        part = sense * density * length * w * h
        m += part
        for e, square in ((x, w * w + h * h), (y, length**2 + h * h), (z, length**2 + w * w)):
            tensor += part / 12.0 * square * np.outer(e, e)
    return m, begin + 0.5 * length * x, tensor
