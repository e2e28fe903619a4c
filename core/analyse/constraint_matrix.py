"""Constraint matrix of a train of gear meshes and its loss-modified counterpart (Maegi, Jacobson, Resev 1998).

    C*w = 0                                     one row per GearMesh, one column per shaft (equation 4)
    J*dw/dt + C_mod^T*F = T_ext + T_drag        F: peripheral forces (equation 14)

Row k of C_mod is row k of C plus f_k times the loss form of the mesh: the radii R_in + f_k and R_out - f_k of the paper
(external mesh), with f_k = sign_k*deltaR_k. Members of the housing have no column, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import analyse
from torqueloop.core.compile.topology import Topology
from torqueloop.core.components.mesh import GearMesh
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import GROUND
from torqueloop.core.describe.vocabulary import Form

Array = NDArray[np.float64]


class MatrixNames(NamedTuple):
    """What the rows and columns are."""

    meshes: tuple[str, ...]
    shafts: tuple[str, ...]


class ConstraintMatrix(NamedTuple):
    """C and C_mod, both (meshes, shafts) in m."""

    C: Array
    C_mod: Array
    names: MatrixNames


def constraint_matrix(
    driveline: Driveline,
    signs: Mapping[str, int] | None = None,
    meshes: Sequence[str] | None = None,
    shafts: Sequence[str] | None = None,
) -> ConstraintMatrix:
    """C, C_mod and their names. `signs`: mesh -> -1, 0, +1, the sign of f (not named: 0, free of losses).

    Rows and columns come in the order of the sorted names, or in the order given; a shaft may be named by any component
    or flange that is part of it.
    """
    found = {n: c for n, c in driveline.components.items() if isinstance(c, GearMesh)}
    if not found:
        raise ConfigError("the driveline has no GearMesh")
    _, topology = analyse(driveline)
    rows = tuple(sorted(found, key=natural)) if meshes is None else tuple(_known(m, found, "GearMesh") for m in meshes)
    for name, sign in (signs or {}).items():
        _known(name, found, "GearMesh")
        if sign not in (-1, 0, 1):
            raise RangeError("signs: {key} = {value} is out of range", key=name, value=sign, allowed="-1, 0, 1")

    nodes: dict[str, str] = {}
    for node, members in topology.nodes.items():
        for alias in (node, *members, *(m.rpartition(".")[0] for m in members)):
            nodes.setdefault(alias, node)
    columns = _moving(found, topology) if shafts is None else [nodes[_known(s, nodes, "shaft")] for s in shafts]
    place = {node: k for k, node in enumerate(columns)}
    C = np.zeros((len(rows), len(columns)))
    C_mod = np.zeros_like(C)
    for k, name in enumerate(rows):
        mesh = found[name]
        ends = [Form({f"{name}.{flange}": 1}) for flange in ("in", "out", "carrier")]
        exact = mesh.row(*ends)
        changed = exact + ((signs or {}).get(name, 0) * mesh.deltaR) * mesh.loss_form(*ends)
        for target, form in ((C, exact), (C_mod, changed)):
            for node, value in topology.over_nodes(form)[0].items():
                if node not in place:
                    raise UnknownNameError(f"mesh {name!r} acts on shaft {node!r}, which is not among the shafts given")
                target[k, place[node]] = float(value)
    return ConstraintMatrix(C, C_mod, MatrixNames(rows, tuple(columns if shafts is None else shafts)))


def _moving(found: Mapping[str, GearMesh], topology: Topology) -> list[str]:
    """All shafts the meshes act on."""
    flanges = (f"{name}.{flange}" for name in found for flange in ("in", "out", "carrier"))
    return sorted({topology.place[flange][0] for flange in flanges} - {GROUND}, key=natural)


def _known(name: str, known: Mapping[str, object], what: str) -> str:
    if name not in known:
        raise UnknownNameError(f"there is no {what} {name!r}", hint=did_you_mean(name, known))
    return name
