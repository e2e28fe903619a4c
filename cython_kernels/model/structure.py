"""Structure of a compiled driveline: what a precompiled step depends on, and the register of such steps."""

from __future__ import annotations

import hashlib
from typing import Any

from torqueloop.cython_kernels.model.model_arrays import ModelArrays
from torqueloop.cython_kernels.model.records import KINDS, PORTS

#: structure signature -> (name, capsule of the step function); filled by the modules in topologies/
PRECOMPILED: dict[str, tuple[str, Any]] = {}

#: kinds of elements that precompiled steps leave out: drivelines that have any of them run on the generic kernel
GENERIC_ONLY = ("ls", "con", "st", "drv", "vg", "ed", "cv", "wd", "th")

_FIELDS = (("lin", "row"), *PORTS, ("fr", "row"), ("fr", "src"), ("fr", "src_idx"), ("fr", "fwd"), ("fr", "bwd"),
           ("act", "input"))  # fmt: skip


def generic_only(arrays: ModelArrays) -> list[str]:
    """What a driveline has that precompiled steps do not know, in words. Reactions are no matter: only losses use them
    in a step, and outputs are not part of it."""
    return [KINDS[kind].title for kind in GENERIC_ONLY if len(arrays.elements[kind])]


def structure_signature(arrays: ModelArrays) -> str:
    """Text that is equal for two models exactly when one precompiled step serves both.

    It covers sizes, row patterns, the places of +-1 in them, and the row every element acts on; values (inertias,
    ratios other than +-1, tables) are not in it.
    """
    end = int(arrays.row_ptr[arrays.n_hot])
    parts = [
        len(arrays.u0),
        arrays.n_hot,
        arrays.nin,
        arrays.row_ptr[: arrays.n_hot + 1].tolist(),
        arrays.row_idx[:end].tolist(),
        [int(v) if v in (1.0, -1.0) else 0 for v in arrays.row_val[:end]],
        [arrays.elements[kind][name].tolist() for kind, name in _FIELDS],
        generic_only(arrays),
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def register(name: str, capsule: Any, signature: str) -> None:
    """Called by a precompiled step when it is imported."""
    PRECOMPILED[signature] = (name, capsule)
