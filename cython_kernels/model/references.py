"""Compiled arrays are consistent: every number that points into another array points inside it."""

from __future__ import annotations

import numpy as np

from torqueloop.cython_kernels.model.choices import ARGUMENTS, MOTIONS, SOURCES, Choices
from torqueloop.cython_kernels.model.model_arrays import ModelArrays
from torqueloop.cython_kernels.model.records import RECORDS


def check_references(a: ModelArrays, nports: int) -> None:
    """ValueError names the first field that points outside."""
    ends = {
        "hot row": a.n_hot, "row": len(a.row_off), "input": a.nin, "curve": len(a.tab1_extrap), "map": len(a.tab2_nx),
        "fr": len(a.fr), "lin": len(a.lin), "reaction": len(a.re_A), "node": len(a.th), "pose": len(a.ps),
        "coordinate": a.n, "con": len(a.con), "body": len(a.bo), "wr": len(a.wr),
    }  # fmt: skip
    for record in RECORDS:
        for field in record.fields:
            if field.derived or field.into is None:
                continue
            into = field.into
            end = len(into.of) if isinstance(into, Choices) else into if isinstance(into, int) else ends[into]
            low = -1 if field.optional else 0
            found = a.elements[record.kind][field.name]
            if found.size and (found.min() < low or found.max() >= end):
                raise ValueError(
                    f"{record.kind}.{field.name}: values {found.min()} .. {found.max()}, allowed {low} .. {end - 1}"
                )
    _check_chosen(a, nports)
    _check_groups(a, nports)


def _check_chosen(a: ModelArrays, nports: int) -> None:
    """Indices whose meaning depends on the kind of the element."""
    source, argument = a.fr["src"], a.cv["arg"]
    by_input = (source == SOURCES["NORMALIZED"]) | (source == SOURCES["CAPACITY"])
    for what, index, end in (
        ("fr.src_idx", a.fr["src_idx"][source == SOURCES["ACTUATED"]], len(a.act)),
        ("fr.src_idx", a.fr["src_idx"][by_input], a.nin),
        ("cv.arg_idx", a.cv["arg_idx"][argument == ARGUMENTS["ARGUMENT_INPUT"]], a.nin),
        ("cv.arg_idx", a.cv["arg_idx"][argument == ARGUMENTS["ARGUMENT_TEMPERATURE"]], len(a.th)),
    ):
        if index.size and (index.min() < 0 or index.max() >= end):
            raise ValueError(f"{what}: values {index.min()} .. {index.max()}, allowed 0 .. {end - 1}")
    rows, nf, nlin, ncon, nre, whole = len(a.row_off), len(a.fr), len(a.lin), len(a.con), len(a.re_A), 1 << 30
    sizes = (
        *(rows,) * 3, *(nf,) * 3, len(a.tq), len(a.act), a.nin, nlin, len(a.eng), *(len(a.tc),) * 2, len(a.poly), nf,
        nlin, len(a.tq), len(a.poly), len(a.eng), len(a.tc), whole, whole, nre, *(ncon,) * 2, len(a.th), *(nports,) * 2,
        len(a.ls), ncon, len(a.vg), nf, nlin, ncon, nports, nre, len(a.st), len(a.te), 7 * len(a.bo),
        27 * len(a.jo),
    )  # fmt: skip
    for kind, index in zip(a.out["kind"], a.out["idx"], strict=True):
        if not 0 <= index < sizes[kind]:
            raise ValueError(f"out.idx {index} of kind {kind}, allowed 0 .. {sizes[kind] - 1}")
    heated = (nports, nf, nlin, ncon, a.nin)
    for kind, index in zip(a.ths["kind"], a.ths["idx"], strict=True):
        if not 0 <= index < heated[kind]:
            raise ValueError(f"ths.idx {index} of kind {kind}, allowed 0 .. {heated[kind] - 1}")


def _check_groups(a: ModelArrays, nports: int) -> None:
    """Reactions, losses, bilateral elements: each must be of the kind its user takes it for."""
    nre = len(a.re_A)
    shapes = {
        "re_A": (nre, a.n), "re_port": (nre, nports), "re_fr": (nre, len(a.fr)), "re_lin": (nre, len(a.lin)),
        "re_con": (nre, len(a.con)),
    }  # fmt: skip
    for name, shape in shapes.items():
        matrix = getattr(a, name)
        if matrix.size != shape[0] * shape[1]:
            raise ValueError(f"{name} has shape {matrix.shape}, expected {shape}")
    owners = {
        "LOSS": np.sort(a.ls["fr"]), "BILATERAL": np.sort(np.concatenate([a.drv["fr"], a.vg["fr"]])),
        "STOP": np.sort(a.st["fr"]),
    }  # fmt: skip
    for source, expected in owners.items():
        if not np.array_equal(np.flatnonzero(a.fr["src"] == SOURCES[source]), expected):
            raise ValueError(f"friction elements with fr.src {source} and their laws do not correspond")
    if not np.array_equal(a.fr["src_idx"][a.st["fr"]], np.arange(len(a.st))):
        raise ValueError("fr.src_idx of stops must be their numbers")
    if (a.st["lo"] >= a.st["hi"]).any():
        raise ValueError("st: lo must be below hi")
    if len(a.te) and a.te["more"][-1]:
        raise ValueError("te: the last sum has no last term")
    needed = {MOTIONS["DRIVEN_SPEED"]: 2, MOTIONS["DRIVEN_POSITION"]: 3}
    for kind, inputs in zip(a.drv["kind"], a.drv["inputs"], strict=True):
        if (inputs[: needed.get(int(kind), 1)] < 0).any():
            raise ValueError(f"driven flange of kind {kind} lacks inputs: {inputs.tolist()}")
