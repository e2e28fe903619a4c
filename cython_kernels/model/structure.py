"""Structure of a compiled driveline: what a precompiled step depends on, and the register of such steps."""

from __future__ import annotations

import hashlib
from typing import Any

from torqueloop.cython_kernels.model.model_arrays import ModelArrays
from torqueloop.cython_kernels.model.records import PORTS, READ_ONLY, RECORDS

#: structure signature -> (name, capsule of the step function); filled by the modules in topologies/
PRECOMPILED: dict[str, tuple[str, Any]] = {}

#: signature of structure and outputs -> capsule of the function that reads all outputs
READERS: dict[str, Any] = {}

#: what a precompiled step has as constants, kind by kind
_FIELDS = (("lin", "row"), *PORTS, ("fr", "row"), ("fr", "src"), ("fr", "src_idx"), ("fr", "fwd"), ("fr", "bwd"),
           ("act", "input"))  # fmt: skip


def structure_signature(arrays: ModelArrays) -> str:
    """Text that is equal for two models exactly when one precompiled step serves both.

    It covers sizes, row patterns, the places of +-1 in them, how many elements of every kind there are, and what
    a precompiled step writes as constants of theirs (_FIELDS); values (inertias, ratios other than +-1, tables) are
    not in it. Outputs are no part of a step.
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
        {r.kind: len(arrays.elements[r.kind]) for r in RECORDS if r.kind not in READ_ONLY},
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def outputs_signature(arrays: ModelArrays) -> str:
    """Text that is equal for two models exactly when one precompiled function reads the outputs of both: structure,
    outputs, all rows with the places of +-1, gains of -1, places in M that are not zero."""
    out = arrays.out
    parts = [
        structure_signature(arrays),
        [out[name].tolist() for name in ("kind", "idx", "aux")],
        [float(g) if g in (1.0, -1.0) else 0.0 for g in out["gain"]],
        arrays.row_ptr.tolist(),
        arrays.row_idx.tolist(),
        [int(v) if v in (1.0, -1.0) else 0 for v in arrays.row_val],
        (arrays.M != 0.0).tolist(),
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def register(name: str, capsule: Any, signature: str) -> None:
    """Called by a precompiled step when it is imported."""
    PRECOMPILED[signature] = (name, capsule)


def register_reader(capsule: Any, signature: str) -> None:
    """Called by a module with precompiled outputs when it is imported."""
    READERS[signature] = capsule
