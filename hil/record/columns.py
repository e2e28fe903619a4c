"""Records of signals by columns, as they stand in a chunk of a recording of version 2, and without loss in fewer bytes.

    chunk   := u32 n_records  u32 n_out  u8 form of each column (6 fixed, n_out)  pad to 8 bytes  data
    data    := the columns of one form together, in their order; forms in the order of FORMS

    form    0 constant: its 8 bytes once      1 whole numbers -128 .. 127: int8
            2 doubles that are floats         3 all 8 bytes

The fixed columns (SIGNAL_FIXED of run_data) are taken as 8 bytes each: integers, zero extended or sign extended. A form
is taken only where every bit comes back. So one column of an hour is read in some thousand small pieces, and a signal
that does not move costs 8 bytes a chunk.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass

_HEAD = struct.Struct("<II")
#: bytes of a value by form; 0: one value of 8 bytes for all
FORMS = ("constant", "int8", "float32", "float64")
_BYTES = np.array([0, 1, 4, 8], np.int64)
_TYPES = ("<u8", "<i1", "<f4", "<u8")
N_FIXED = 6


class LayoutError(ValueError):
    """A chunk is not laid out like this."""


def encode(records: NDArray[Any]) -> bytes:
    """Records (signal_dtype) as one chunk."""
    fixed = [
        np.ascontiguousarray(records[name]).astype(np.int64) for name in records.dtype.names or () if name != "out"
    ]
    bits = np.concatenate([np.stack(fixed).view(np.uint64), records["out"].T.view(np.uint64)])
    forms = np.full(len(bits), 3, np.uint8)
    moving = np.flatnonzero((bits != bits[:, :1]).any(axis=1))
    forms[np.setdiff1d(np.arange(len(bits)), moving, assume_unique=True)] = 0
    out = moving[moving >= N_FIXED]
    with np.errstate(over="ignore", invalid="ignore"):
        floats = bits[out].view(np.float64).astype(np.float32)
        is_float = (floats.astype(np.float64).view(np.uint64) == bits[out]).all(axis=1)
        forms[out[is_float]] = 2
        small = floats[is_float].astype(np.int8)
    whole = (small.astype(np.float64).view(np.uint64) == bits[out[is_float]]).all(axis=1)
    forms[out[is_float][whole]] = 1
    head = _HEAD.pack(len(records), len(bits) - N_FIXED) + forms.tobytes()
    parts = [head.ljust(_padded(len(bits)), b"\0"), bits[forms == 0, 0].tobytes(), small[whole].tobytes(),
             floats[is_float][~whole].tobytes(), bits[forms == 3].tobytes()]  # fmt: skip
    return b"".join(parts)


def _padded(n_columns: int) -> int:
    return (_HEAD.size + n_columns + 7) & ~7


@dataclass(frozen=True)
class Layout:
    """Where the columns of a chunk stand."""

    n: int
    #: form of each column
    forms: bytes
    #: byte at which each begins
    starts: NDArray[np.int64]
    #: bytes in all
    size: int

    @classmethod
    def of(cls, payload: bytes, n_out: int) -> Layout:
        """LayoutError when the chunk is no such chunk."""
        if len(payload) < _padded(N_FIXED + n_out):
            raise LayoutError("too short")
        n, columns = _HEAD.unpack_from(payload)
        forms = payload[_HEAD.size : _HEAD.size + N_FIXED + n_out]
        if columns != n_out or not n or max(forms) >= len(FORMS):
            raise LayoutError(f"{columns} columns of {n} records")
        starts, size = _starts(n, forms)
        if size != len(payload):
            raise LayoutError(f"{len(payload)} bytes instead of {size}")
        return cls(n, forms, starts, size)

    def span(self, column: int, first: int, last: int) -> tuple[int, int]:
        """(byte, number of bytes) of the records first .. last - 1 of a column."""
        each = int(_BYTES[self.forms[column]])
        begin = int(self.starts[column])
        return (begin + first * each, (last - first) * each) if each else (begin, 8)

    def values(self, column: int, data: bytes, n: int) -> NDArray[Any]:
        """`n` values from the bytes of `span`: float64 of a signal, int64 of a fixed column."""
        form = self.forms[column]
        found: NDArray[Any] = np.frombuffer(data, _TYPES[form])
        if form in (0, 3):
            found = found.view(np.float64 if column >= N_FIXED else np.int64)
        return np.broadcast_to(found, n) if form == 0 else found


@lru_cache(maxsize=64)
def _starts(n: int, forms: bytes) -> tuple[NDArray[np.int64], int]:
    kind = np.frombuffer(forms, np.uint8)
    sizes = np.where(kind == 0, 8, _BYTES[kind] * n)
    order = np.argsort(kind, kind="stable")
    starts = np.empty(len(kind), np.int64)
    ends = _padded(len(kind)) + np.cumsum(sizes[order])
    starts[order] = ends - sizes[order]
    return starts, int(ends[-1])


def decode(payload: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The records of a chunk (signal_dtype); LayoutError."""
    n_out = dtype["out"].shape[0]
    layout = Layout.of(payload, n_out)
    records = np.empty(layout.n, dtype)
    for k, name in enumerate(name for name in dtype.names or () if name != "out"):
        records[name] = column_of(layout, payload, k)
    out = np.empty((n_out, layout.n))
    for k in range(n_out):
        out[k] = column_of(layout, payload, N_FIXED + k)
    records["out"] = out.T
    return records


def column_of(layout: Layout, payload: bytes, column: int) -> NDArray[Any]:
    """One column of a chunk that is in memory."""
    begin, size = layout.span(column, 0, layout.n)
    return layout.values(column, payload[begin : begin + size], layout.n)


def all_finite(layout: Layout, payload: bytes) -> bool:
    """No signal of the chunk is NaN or infinite."""
    kind = np.frombuffer(layout.forms, np.uint8)
    for form, dtype in ((0, "<f8"), (2, "<f4"), (3, "<f8")):
        mine = np.flatnonzero(kind[N_FIXED:] == form) + N_FIXED
        if not len(mine):
            continue
        begin = int(layout.starts[mine[0]])
        count = len(mine) * (layout.n if form else 1)
        if not np.isfinite(np.frombuffer(payload, dtype, count, begin)).all():
            return False
    return True
