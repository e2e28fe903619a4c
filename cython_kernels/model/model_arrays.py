"""The arrays of a compiled driveline, as the compiler hands them to the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torqueloop.cython_kernels.model.records import KINDS, Record

#: a structured array, one entry per element
Records = NDArray[np.void]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def given(kind: str, /, **columns: ArrayLike) -> Records:
    """Elements of a kind from the columns of all their given fields; TypeError names a field that nobody fills."""
    return _filled(kind, KINDS[kind].given, columns)


def completed(kind: str, elements: Records, /, **columns: ArrayLike) -> Records:
    """The C structs of elements: their given fields (or those columns in their place) and all derived ones."""
    own = {name: elements[name] for name in elements.dtype.names or ()}
    return _filled(kind, KINDS[kind].dtype, own | columns)


def _filled(kind: str, dtype: np.dtype[np.void], columns: Mapping[str, ArrayLike]) -> Records:
    names = dtype.names or ()
    wrong = sorted(set(names) ^ set(columns))
    if wrong:
        raise TypeError(f"fields of {kind} without a value, or that it does not have: {wrong}")
    values = {name: np.asarray(columns[name]) for name in names}
    lengths = {len(value) for value in values.values()}
    if len(lengths) != 1:
        raise ValueError(f"{kind}: columns of {sorted(lengths)} elements")
    filled = np.zeros(lengths.pop(), dtype)
    for name, value in values.items():
        shape = filled[name].shape
        if value.shape != shape and filled.size:
            raise ValueError(f"{kind}.{name} has shape {value.shape}, expected {shape}")
        filled[name] = value.reshape(shape)
    return filled


def _no_matrix() -> Floats:
    return np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class ModelArrays:
    """Everything the kernel knows of a driveline but the step size.

    u: n independent speeds, z' = u; row k gives w = row.u, phi = row.z + row_off. Forces are positive along their row.
    The elements of a kind of records.py are an attribute: `arrays.fr["gain"]`; a kind that is left out has none.
    """

    #: (n, n) reduced inertia
    M: Floats
    #: (n) speeds and their integrals at the start
    u0: Floats
    z0: Floats
    #: sparse rows, see ARRAYS of records.py
    row_ptr: Ints
    row_idx: Ints
    row_val: Floats
    row_off: Floats
    #: curves: points of curve k from tab1_ptr[k] to tab1_ptr[k+1]; 1: linear extrapolation, 0: end values held
    tab1_ptr: Ints
    tab1_x: Floats
    tab1_y: Floats
    tab1_extrap: Ints
    #: maps: sizes, first entries, grid lines and values (nx, ny)
    tab2_nx: Ints
    tab2_ny: Ints
    tab2_xptr: Ints
    tab2_yptr: Ints
    tab2_zptr: Ints
    tab2_x: Floats
    tab2_y: Floats
    tab2_z: Floats
    #: number of inputs
    nin: int
    #: rows 0..n_hot-1 are used by force elements
    n_hot: int
    #: of the integrator: 2 or 4
    order: int = 2
    #: reactions, see ARRAYS of records.py
    re_A: Floats = field(default_factory=_no_matrix)
    re_port: Floats = field(default_factory=_no_matrix)
    re_fr: Floats = field(default_factory=_no_matrix)
    re_lin: Floats = field(default_factory=_no_matrix)
    re_con: Floats = field(default_factory=_no_matrix)
    #: the elements of every kind
    elements: Mapping[str, Records] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.elements) - set(KINDS))
        if unknown:
            raise TypeError(f"kinds of elements without a record: {unknown}")
        every = {kind: self.elements.get(kind, np.zeros(0, record.given)) for kind, record in KINDS.items()}
        for kind, elements in every.items():
            if elements.dtype != KINDS[kind].given:
                raise TypeError(f"{kind}: fields {elements.dtype}, expected {KINDS[kind].given}")
        object.__setattr__(self, "elements", every)

    def __getattr__(self, kind: str) -> Records:
        if kind not in KINDS:
            raise AttributeError(f"compiled arrays have no {kind!r}")
        return self.elements[kind]

    @property
    def n(self) -> int:
        """Number of independent speeds."""
        return len(self.u0)

    def items(self) -> list[tuple[str, Any]]:
        """Everything by name, in the order of the names; elements by their kind."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "elements"}
        return sorted((own | dict(self.elements)).items())


def check_layout(found: dict[str, tuple[int, dict[str, int]]]) -> None:
    """TypeError where a C struct is not what its dtype says: it was compiled from other records."""
    expected = {record.kind: _places(record) for record in KINDS.values()}
    wrong = sorted(kind for kind in {*expected, *found} if expected.get(kind) != found.get(kind))
    if wrong:
        raise TypeError(f"records {wrong} are not those the kernels were built with: build them again")


def _places(record: Record) -> tuple[int, dict[str, int]]:
    dtype = record.dtype
    offsets = {name: int(where[1]) for name, where in (dtype.fields or {}).items()}
    return int(dtype.itemsize), offsets
