"""Matrices and sizes of a model beside its elements (records.py), described once."""

from __future__ import annotations

from dataclasses import dataclass

from torqueloop.cython_kernels.model.records import PORTS


@dataclass(frozen=True)
class Array:
    """A matrix or a list of the model."""

    name: str
    type: str
    #: in the sizes of the model
    shape: str
    meaning: str


@dataclass(frozen=True)
class Size:
    """A number the model holds once."""

    name: str
    #: C type
    type: str
    meaning: str


#: besides the numbers of elements
SIZES = (
    Size("n", "int32_t", "independent speeds"),
    Size("nrow", "int32_t", "rows: any flange or relative speed as a combination of u"),
    Size("nhot", "int32_t", "rows 0..nhot-1 are used by force elements"),
    Size("nhot_more", "int32_t", "entries of these rows behind the first of each"),
    Size("nin", "int32_t", "inputs"),
    Size("nport", "int32_t", "ports: " + ", ".join(f"{kind}.{row}" for kind, row in PORTS)),
    Size("nre", "int32_t", "reactions: constraint forces of gears"),
    Size("order", "int32_t", "2: Lobatto IIIA with 2 points (trapezoid), 4: with 3 points (Hermite-Simpson)"),
    Size("nkey", "int32_t", "64-bit words of a set of stuck elements"),
    Size("ncache", "int32_t", "slots of the cache of lock patterns (power of two)"),
    Size("ncurved", "int32_t", "contacts with another exponent than 1"),
    Size("look_ahead", "double", "how far a decision looks ahead, part of h"),
    Size("unresolved", "int32_t", "1: the step does not resolve a spring or damper: no trial is truncated"),
    Size("linear_resolved", "int32_t", "1: the step resolves all springs and dampers, contacts with an exponent aside"),
    Size("nrm", "int32_t", "rigid motions: those that twist no spring, contact or stop (derive.py)"),
    Size("direct_cache", "int32_t", "1: slot = set of stuck elements, nothing is ever evicted"),
    Size("watched", "int32_t", "1: some port, other than those of converters, may be steep (steep_ports.py)"),
    Size("act_fills", "int32_t", "1: some actuator has a piston that fills"),
    Size("pattern_size", "int64_t", "doubles of one lock pattern"),
    Size("h", "double", "step, s"),
    Size("inv_h", "double", "1/h, 1/s"),
    Size("beta", "double", "weight of the last acceleration in the angle: 1/4 with compliances (A-stable), else 1/6"),
)

ARRAYS = (
    Array("row_ptr", "i4", "nrow + 1", "rows: speed of row k = sum of row_val*u[row_idx], k's from row_ptr[k] on"),
    Array("row_idx", "i4", "", "their coordinates"),
    Array("row_val", "f8", "", "and coefficients"),
    Array("row_of", "i4", "", "row of each entry of row_idx, row_val of rows 0..nhot-1"),
    Array("hot_idx", "i4", "", "rows 0..nhot-1 once more: the first entry of each, then all others by rows"),
    Array("hot_val", "f8", "", "and their coefficients"),
    Array("hot_row", "i4", "", "row of each of these others"),
    Array("row_off", "f8", "nrow", "angle of row k = the same with z, plus this, rad or m"),
    Array("rm_z", "f8", "nrm, n", "angles of a rigid motion, 1 at its coordinate rm_at"),
    Array("rm_row", "f8", "nrm, nrow", "what it turns each row by; exactly 0 for those of springs, contacts and stops"),
    Array("rm_at", "i4", "nrm", ""),
    Array("rm_unit", "f8", "nrm", "rad: taken off in multiples of it, whole turns of all joints; 0: any amount"),
    Array("M", "f8", "n, n", "reduced inertia"),
    Array("D", "f8", "n, n", "dampers"),
    Array("K", "f8", "n, n", "springs"),
    Array("S_range", "i4", "n, 2", "range of each row of M, S that is not zero"),
    Array("S", "f8", "n, n", "M + h/2 D + h^2/4 K: matrix of the linearly implicit step"),
    Array("A4", "f8", "2n, 2n", "matrix of the order-4 step"),
    Array("W", "f8", "nf, nf", "B S^-1 B^T: compliance of the friction elements against impulses"),
    Array("Sinv", "f8", "n, n", "S^-1"),
    Array("Minv", "f8", "n, n", "M^-1"),
    Array("W0", "f8", "nf, nf", "B M^-1 B^T: compliance against forces of an instant"),
    Array("SinvBt", "f8", "n, nf", "column f at f*n"),
    Array("B", "f8", "nf, n", "dense rows of the friction elements"),
    Array("port_row", "i4", "nport", "row of each port"),
    Array("fr_order", "i4", "nf", "order in which the boxed problem takes the friction elements: neighbours together"),
    Array("in_direct", "i4", "nin", "1: acts on forces, a jump restarts the step; 2: on torques alone; 0: neither"),
    Array("in_act", "i4", "nin", "actuator an input commands, -1: none"),
    Array("re_A", "f8", "nre, n", "reaction = re_A.a + re_port.port + re_fr.tau + re_lin.f + re_con.f"),
    Array("re_port", "f8", "nre, nport", ""),
    Array("re_fr", "f8", "nre, nf", ""),
    Array("re_lin", "f8", "nre, nlin", ""),
    Array("re_con", "f8", "nre, ncon", ""),
    Array("lu_x", "f8", "", "breakpoints of look-ups"),
    Array("lu_hint", "i4", "", "hints of their pieces (tables.pxd), 0: not held"),
)  # fmt: skip
