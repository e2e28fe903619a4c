"""Matrices of lock patterns as the step holds them, for tests."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from torqueloop.cython_kernels.kernel.kernel cimport KernelState
from torqueloop.cython_kernels.locks.locks cimport build_scratch, pattern_of_length, pattern_of
from torqueloop.cython_kernels.model.model cimport MODE_STUCK, TL_FORMED, lanes, tl_model, tl_pattern, tl_state

cdef enum:
    GUARD = 64             # numbers behind the scratch, which nothing may write


cdef copied(const double* p, shape):
    """An array of this shape from memory; None where there is none."""
    cdef double[::1] own
    if p == NULL:
        return None
    found = np.zeros(shape)
    if found.size:
        own = found.reshape(-1)
        memcpy(&own[0], p, found.size * sizeof(double))
    return found


cdef matrices(const tl_model* m, const tl_pattern* q):
    n, nf, stages = m.n, m.nf, 2 if m.order == 4 else 1
    formed = n <= TL_FORMED
    rows = lanes(n + nf)
    return {
        "S": copied(q.S, (n, n)), "P": copied(q.P, (n, n)), "P0": copied(q.P0, (n, n)), "Tn": copied(q.Tn, (n, nf)),
        "T": copied(q.T, (n, rows)) if formed else None, "T0": copied(q.T0, (n, rows)) if formed else None,
        "A4": copied(q.A4 if m.order == 4 else NULL, (2 * n, 2 * n)), "P4": copied(q.P4, (2 * n, 2 * n)),
        "T4": copied(q.T4, (2 * n, 2 * nf)), "X": copied(q.X, (stages * m.nls, stages * m.nls)), "X0": copied(q.X0, (m.nls, m.nls)),
    }  # fmt: skip


def lock_pattern(KernelState state not None, stuck, double length):
    """Matrices of the pattern in which the elements `stuck` are at rest, for a trial of `length` (of h); 1.0 is the pattern of
    whole steps. Matrices of order 4 and P are as the step holds them, T by columns. None: not formed in this model.

    The scratch of building is filled with NaN before. MemoryError when building writes behind it.
    """
    cdef tl_model* m = state.model.ptr
    cdef tl_state* s = state.ptr
    cdef int64_t need = build_scratch(m.n, m.nf)
    cdef double[::1] work = np.full(need + GUARD, np.nan)
    cdef int32_t[::1] ranges = np.full(5 * m.n + GUARD, -1, dtype=np.int32)
    cdef double* own_work = s.build.work
    cdef int32_t* own_ranges = s.build.ranges
    cdef tl_pattern* q
    modes = [s.mode[i] for i in range(m.nf)]
    for i in range(m.nf):
        s.mode[i] = MODE_STUCK if i in stuck else 2
    s.build.work = &work[0]
    s.build.ranges = &ranges[0]
    q = pattern_of(m, s)
    for i in range(m.order // 2 if length != 1.0 else 0):
        q = pattern_of_length(m, s, i + 1, length * m.h)
    found = matrices(m, q)
    s.build.work = own_work
    s.build.ranges = own_ranges
    for i in range(m.nf):
        s.mode[i] = modes[i]
    s.pat = pattern_of(m, s)
    if not np.isnan(np.asarray(work)[need:]).all() or (np.asarray(ranges)[5 * m.n:] != -1).any():
        raise MemoryError("building a lock pattern writes behind its scratch: build_scratch (locks/lock_build.pxi) is too small")
    return found
