"""Structure of a compiled driveline: what a precompiled step depends on, and the register of such steps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

#: structure signature -> (name, capsule of the step function); filled by the modules in topologies/
PRECOMPILED: dict[str, tuple[str, Any]] = {}

#: one array of each group of elements that precompiled steps leave out (TL_NLS ... in step_imports.pxi)
GENERIC_ONLY = ("ls_fr", "con_row", "drv_fr", "vg_fr", "ed_row", "cv_row", "th_C")

_ROWS = (
    "lin_row",
    "tq_row",
    "poly_row",
    "eng_row",
    "tc_row_p",
    "tc_row_t",
    "fr_row",
    "fr_src",
    "fr_src_idx",
    "fr_fwd",
    "fr_bwd",
    "act_in",
)


def structure_signature(arrays: Mapping[str, Any]) -> str:
    """Text that is equal for two models exactly when one precompiled step serves both.

    It covers sizes, row patterns, the places of +-1 in them, and the row every element acts on; values (inertias,
    ratios other than +-1, tables) are not in it.
    """
    hot = int(arrays["n_hot"])
    end = int(arrays["row_ptr"][hot])
    parts = [
        len(arrays["u0"]),
        hot,
        int(arrays["nin"]),
        len(arrays["act_in"]),
        [int(v) for v in arrays["row_ptr"][: hot + 1]],
        [int(v) for v in arrays["row_idx"][:end]],
        [int(v) if v in (1.0, -1.0) else 0 for v in arrays["row_val"][:end]],
        [[int(v) for v in arrays[name]] for name in _ROWS],
    ]
    # groups that only the generic step has
    parts += [(name, len(arrays[name])) for name in GENERIC_ONLY if len(arrays.get(name, ()))]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def register(name: str, capsule: Any, signature: str) -> None:
    """Called by a precompiled step when it is imported."""
    PRECOMPILED[signature] = (name, capsule)
