"""Precompiled outputs: the source of a function that writes every output of one driveline, each by a line of its own.

They have the bits of the outputs as any driveline has them (cython_kernels/kernel/readout.pxi): sums in the same order,
coefficients of +-1 in rows taken as structure. What they depend on besides the structure of the step is in
`outputs_signature`; drivelines with outputs of other kinds are read as any.
"""

from __future__ import annotations

import re

import numpy as np

from torqueloop.core.describe import kernel_numbers as v
from torqueloop.cython_kernels.model.model_arrays import ModelArrays

#: kinds that stand in the state: where
_PLACES = {
    v.OUT_FRICTION: "e.tau[{k}]",
    v.OUT_TORQUE: "e.port[{k}]",
    v.OUT_PORT: "e.port[{k}]",
    v.OUT_PRESSURE: "e.p[{k}]",
    v.OUT_INPUT: "inp[{k}]",
    v.OUT_ENGINE: "e.port[{eng} + {k}]",
    v.OUT_TURBINE: "e.port[{turb} + {k}]",
    v.OUT_POLY: "e.port[{poly} + {k}]",
    v.OUT_FRICTION_HEAT: "s.e_fr[{k}]",
    v.OUT_DISSIPATION: "s.e_lin[{k}]",
    v.OUT_TORQUE_WORK: "s.e_port[{k}]",
    v.OUT_PORT_WORK: "s.e_port[{k}]",
    v.OUT_POLY_WORK: "s.e_port[{poly} + {k}]",
    v.OUT_ENGINE_WORK: "s.e_port[{eng} + {k}]",
    v.OUT_PUMP: "-e.port[{pump} + {k}]",
    v.OUT_CONVERTER_LOSS: "-(s.e_port[{pump} + {k}] + s.e_port[{turb} + {k}])",
    v.OUT_CAPACITY: "larger(e.cap_f[{k}], e.cap_b[{k}])",
}
_ROWS = {v.OUT_SPEED: "w", v.OUT_ANGLE: "phi", v.OUT_ACCELERATION: "a"}
_COMPOSED = {v.OUT_MODE, v.OUT_FRICTION_POWER, v.OUT_KINETIC, v.OUT_COMPLIANCE, v.OUT_DAMPER_POWER, v.OUT_POTENTIAL}
#: what several outputs need, as locals: speed, angle and acceleration of a row, torque of a friction element on its row
_LOCAL = re.compile(r"\b(w|phi|a|on)(\d+)\b")


def readable(a: ModelArrays) -> bool:
    """Whether all outputs are of kinds that have a line here."""
    return {int(k) for k in a.out["kind"]} <= _PLACES.keys() | _ROWS.keys() | _COMPOSED


def readout_source(a: ModelArrays) -> list[str]:
    """Lines of `read_outputs`; only for readable(a)."""
    first = np.cumsum([len(a.elements[k]) for k in ("tq", "poly", "eng", "tc")])
    ports = {"poly": int(first[0]), "eng": int(first[1]), "pump": int(first[2]), "turb": int(first[3])}
    shown = list(zip(a.out["kind"].tolist(), a.out["idx"].tolist(), a.out["gain"].tolist(), strict=True))
    lines: list[str] = []
    known: set[tuple[str, str]] = set()
    for n, (kind, k, gain) in enumerate(shown):
        line = _output(a, n, int(kind), int(k), float(gain), ports)
        # as late as possible: few of them wait for their use at a time
        for name, row in _LOCAL.findall(line):
            if (name, row) not in known:
                known.add((name, row))
                lines.append(_local(a, name, int(row)))
        lines.append(line)
    return [
        "",
        "",
        "cdef void read_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil:",
        "    cdef const tl_eval* e = s.now",
        "    cdef const double* inp = s.inp if s.held else s.inp + 2 * TL_NIN(m)",
        "    cdef const double* u = <const double*>e.u",
        *lines,
    ]


def _local(a: ModelArrays, name: str, k: int) -> str:
    """The line of a local."""
    if name == "on":
        return f"    cdef double on{k} = -e.tau[{k}]"
    vector = {"w": "u", "phi": "e.z", "a": "e.a"}[name]
    sums = " + ".join(["0.0", *_terms(a, k, vector)])
    offset = f" + s.row_off[{k}]" if name == "phi" else ""
    return f"    cdef double {name}{k} = {sums}{offset}"


def _terms(a: ModelArrays, k: int, x: str) -> list[str]:
    terms = []
    for q in range(int(a.row_ptr[k]), int(a.row_ptr[k + 1])):
        operand, value = f"{x}[{int(a.row_idx[q])}]", float(a.row_val[q])
        terms.append({1.0: operand, -1.0: f"(-{operand})"}.get(value, f"m.row_val[{q}] * {operand}"))
    return terms


def _output(a: ModelArrays, n: int, kind: int, k: int, gain: float, ports: dict[str, int]) -> str:
    if kind in _ROWS:
        value = f"{_ROWS[kind]}{k}"
    elif kind == v.OUT_MODE:
        row = int(a.fr["row"][k])
        value = f"shown_mode(s.mode[{k}], {int(a.fr['src'][k] == v.BILATERAL)}, w{row}, a{row})"
    elif kind == v.OUT_FRICTION_POWER:
        value = f"on{k} * w{int(a.fr['row'][k])}"
    elif kind == v.OUT_KINETIC:
        value = _kinetic(a)
    elif kind == v.OUT_POTENTIAL:
        value = _potential(a)
    elif kind == v.OUT_COMPLIANCE:
        row = int(a.elements["lin"]["row"][k])
        value = f"spring_law(m, {k}, phi{row}, w{row})"
    elif kind == v.OUT_DAMPER_POWER:
        value = f"damper_law(m, {k}, w{int(a.elements['lin']['row'][k])})"
    else:
        value = _PLACES[kind].format(k=k, **ports)
    if gain == -1.0:
        value = f"on{k}" if kind == v.OUT_FRICTION else f"-({value})"
    elif gain != 1.0:
        value = f"({value}) * m.out[{n}].gain"
    return f"    out[{n}] = {value}"


def _kinetic(a: ModelArrays) -> str:
    """1/2 u^T M u from the entries of M that are not zero, each pair once."""
    n = len(a.u0)
    terms = ["0.0"]
    for i in range(n):
        for j in range(i, n):
            if a.M[i, j] != 0.0:
                half = "0.5 * " if i == j else ""
                terms.append(f"{half}m.M[{i * n + j}] * u[{i}] * u[{j}]")
    return " + ".join(terms)


def _potential(a: ModelArrays) -> str:
    """1/2 c (phi - phi0)^2 of all compliances; with contacts or joints as any driveline has it."""
    if len(a.elements["con"]) or len(a.elements["jo"]):
        return "potential(m, s)"
    rows = [int(k) for k in a.elements["lin"]["row"]]
    return " + ".join(["0.0", *(f"spring_energy(m, {i}, phi{k})" for i, k in enumerate(rows))])
