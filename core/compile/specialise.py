"""Precompiled steps: the source of a kernel whose sizes, row patterns and +-1 coefficients are constants.

The step itself is the same list of files (cython_kernels/step/order.pxi) that the generic kernel includes. Only sizes
become constants and the sparse products straight lines, in the same order of operations, so that results are equal to
the bit. Values (inertias, ratios other than +-1, tables) stay data: a driveline of the same structure with other
numbers still fits. `setup.py` writes these sources at build time for the drivelines listed in configs/topologies.toml.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.compile.readout_source import readable, readout_source
from torqueloop.core.compile.step_files import order
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.kernel_numbers import BILATERAL, CAPPED, CONSTANT, LOSS, STOP
from torqueloop.core.describe.naming import remark
from torqueloop.core.describe.reading import read_toml
from torqueloop.cython_kernels.model.model_arrays import ModelArrays
from torqueloop.cython_kernels.model.records import PORTS, READ_ONLY, RECORDS
from torqueloop.cython_kernels.model.structure import outputs_signature, structure_signature

#: sources of friction elements that have no sliding capacity of their own: losses, what always holds, stops
NO_CAPACITY = (LOSS, BILATERAL, STOP)


def topology_list(path: Path) -> dict[str, Path]:
    """Name of each precompiled step -> powertrain file, from configs/topologies.toml. ConfigError for another form."""
    listing = read_toml(path)
    found, where = {}, {"file": str(path), "allowed": 'tables [topologies.NAME] with powertrain = "FILE"'}
    if set(listing) != {"topologies"} or not isinstance(listing["topologies"], dict):
        raise ConfigError("no list of drivelines", **where)
    for name, entry in listing["topologies"].items():
        if not isinstance(entry, dict) or set(entry) != {"powertrain"} or not isinstance(entry["powertrain"], str):
            raise ConfigError("{value} names no driveline", value=name, **where)
        found[name] = path.parent / entry["powertrain"]
    return found


def specialised_source(model: CompiledModel, name: str, origin: str) -> str:
    """Cython source of the step for drivelines of this model's structure.

    name: module name; origin: what it was generated from (for the header).
    """
    a = model.arrays
    hot, n = a.n_hot, a.n
    port_row = np.concatenate([a.elements[kind][row] for kind, row in PORTS])
    sizes = {record.count.upper(): len(a.elements[record.kind]) for record in RECORDS if record.kind not in READ_ONLY}
    sizes |= {"N": n, "NHOT": hot, "NIN": a.nin, "NPORT": len(port_row)}
    macros = [f"    #define TL_{key}(m) {value}" for key, value in sorted(sizes.items())]
    for macro, rows in (("PORT", port_row), ("FR", a.fr["row"]), ("LIN", a.lin["row"])):
        numbers = ", ".join(str(int(v)) for v in rows) or "0"
        macros.append(f"    static const int TL_{macro}_ROWS[] = {{{numbers}}};")
        macros.append(f"    #define TL_{macro}_ROW(m, i) (TL_{macro}_ROWS[i])")
    lines = [
        f'"""Step precompiled for the structure of {remark(origin)}; generated at build time, not edited by hand."""',
        "",
        "cdef extern from *:",
        '    """',
        "    #define TL_SIZED",
        *macros,
        '    """',
        "",
        *_files(a, n, hot),
        *(readout_source(a) if readable(a) else []),
        "",
        "",
        "from cpython.pycapsule cimport PyCapsule_New",
        "",
        "from torqueloop.cython_kernels.model.structure import register, register_reader",
        "",
        f'register("{name}", PyCapsule_New(<void*>&advance, "torqueloop.step", NULL), "{structure_signature(a)}")',
    ]
    if readable(a):
        capsule = 'PyCapsule_New(<void*>&read_outputs, "torqueloop.outputs", NULL)'
        lines.append(f'register_reader({capsule}, "{outputs_signature(a)}")')
    lines.append("")
    return "\n".join(lines)


def _files(a: ModelArrays, n: int, hot: int) -> list[str]:
    """The files of the step in their order, those with loops over rows and elements as straight lines."""
    instead = {"rows_generic": _products(a, n, hot), "each_generic": _each(a)}
    return [line for file in order() for line in instead.get(file, [f'include "../{file}.pxi"'])]


def _row_terms(a: ModelArrays, k: int) -> list[tuple[int, int, float]]:
    """(position in row_val, coordinate, value) of row k."""
    return [(q, int(a.row_idx[q]), float(a.row_val[q])) for q in range(int(a.row_ptr[k]), int(a.row_ptr[k + 1]))]


def _factor(q: int, value: float, operand: str) -> str:
    """value*operand; +-1 is structure, everything else is read from the model."""
    if value == 1.0:
        return operand
    if value == -1.0:
        return f"(-{operand})"
    return f"m.row_val[{q}] * {operand}"


def _row(a: ModelArrays, k: int) -> str:
    """Row k times x."""
    return " + ".join(_factor(q, v, f"x[{i}]") for q, i, v in _row_terms(a, k))


def _products(a: ModelArrays, n: int, hot: int) -> list[str]:
    """gather, scatter and lin_dot as straight lines."""
    ports = np.concatenate([a.elements[kind][row] for kind, row in PORTS])
    out: list[str] = []
    for name, rows in (("gather", range(hot)), ("gather_ports", np.unique(ports))):
        out += ["", f"cdef inline void {name}(const tl_model* m, tl_cvec x, tl_vec y) noexcept nogil:"]
        out += [f"    y[{k}] = {_row(a, int(k))}" for k in rows] + ["    pass", ""]
    head = "cdef inline void quiet_rates(const tl_model* m, const tl_state* s, tl_cvec x, tl_vec y) noexcept nogil:"
    out += ["", head, "    gather(m, x, y)", "", ""]
    out += ["cdef inline void port_rows(const tl_model* m, tl_cvec port, tl_vec F) noexcept nogil:"]
    for k in range(hot):
        out.append(f"    F[{k}] = {' + '.join(['0.0', *(f'port[{i}]' for i in np.flatnonzero(ports == k))])}")
    out += ["    pass", ""]
    out += ["", "cdef inline void scatter(const tl_model* m, tl_cvec F, tl_vec g) noexcept nogil:"]
    for i in range(n):
        sums = ["0.0"]
        for k in range(hot):
            sums += [_factor(q, v, f"F[{k}]") for q, j, v in _row_terms(a, k) if j == i]
        out.append(f"    g[{i}] = {' + '.join(sums)}")
    out += ["", "", "cdef inline double lin_dot(const tl_model* m, int32_t i, const double* x) noexcept nogil:"]
    for c, k in enumerate(a.lin["row"]):
        out += [f"    if i == {c}:", f"        return {_row(a, int(k))}"]
    return [*out, "    return 0.0", "", ""]


def _capacity(a: ModelArrays, i: int, w: str = "w[{}]") -> str:
    """The call of capacity() for friction element i; w: its slip, of its row."""
    row, source, index = int(a.fr["row"][i]), int(a.fr["src"][i]), int(a.fr["src_idx"][i])
    both = int(a.fr["fwd"][i] == CAPPED and a.fr["bwd"][i] == CAPPED)
    return f"capacity(m, s, {w.format(row)}, p, theta, e, hint, {i}, {row}, {source}, {index}, {both})"


def _each(a: ModelArrays) -> list[str]:
    """The loops over the friction elements as straight lines: sources, indices and rows become constants."""
    nf = len(a.fr["row"])
    out = [
        "",
        "",
        "cdef inline void each_capacity(const tl_model* m, tl_state* s, tl_cvec w, tl_cvec p, double theta,",
        "                               tl_eval* e, int32_t* hint) noexcept nogil:",
    ]
    for i in range(nf):
        if int(a.fr["src"][i]) in NO_CAPACITY:
            continue
        call = [f"    {_capacity(a, i)}"]
        source, index = int(a.fr["src"][i]), int(a.fr["src_idx"][i])
        if a.fr["fwd"][i] == CAPPED and a.fr["bwd"][i] == CAPPED:
            force = f"normal_force(m, s, p, theta, {i}, {source}, {index})"
            call = [f"    if stays_open(m, s, e, {i}):", f"        e.raw[{i}] = {force}", "    else:", f"    {call[0]}"]
        out += call if source != CONSTANT else [f"    if not m.fr[{i}].fixed:", *(f"    {line}" for line in call)]
    out.append("    pass")
    head = "cdef inline void each_due(const tl_model* m, tl_state* s, tl_cvec x, tl_cvec p, double theta,"
    out += ["", "", head, " " * head.index("const") + "tl_eval* e, int32_t* hint) noexcept nogil:"]
    out += ["    cdef int32_t c, i", "    for c in range(s.lists.n_due):", "        i = s.lists.due[c]"]
    with_capacity = [i for i in range(nf) if int(a.fr["src"][i]) not in NO_CAPACITY]
    for i in with_capacity:
        out += [f"        {'if' if i == with_capacity[0] else 'elif'} i == {i}:"]
        out += [f"            {_capacity(a, i, _row(a, int(a.fr['row'][i])))}"]
    head = "cdef inline void each_slide(const tl_model* m, const tl_state* s, tl_eval* e, double* F) noexcept nogil:"
    out += ["", "", head]
    for i in range(nf):
        held = int(a.fr["src"][i]) in NO_CAPACITY
        out.append(f"    e.tau[{i}] = 0.0" if held else f"    slide(m, s, e, F, {i}, {int(a.fr['row'][i])})")
    out.append("    pass")
    out += [
        "",
        "",
        "cdef inline void ask_all(const tl_model* m, tl_state* s, const tl_eval* e) noexcept nogil:",
        "    s.event.n_asked = 0",
    ]
    asked = "ask(s, {0}, disturbed(m, s, e, {0}, {1}, {2}))"
    out += [f"    {asked.format(i, int(a.fr['row'][i]), int(a.fr['src'][i]))}" for i in range(nf)]
    return [*out, "", ""]
