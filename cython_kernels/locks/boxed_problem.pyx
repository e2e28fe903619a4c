"""The boxed problem (boxed.pxi) for callers outside of a step."""

import numpy as np

from libc.stdint cimport int32_t

from torqueloop.cython_kernels.locks.locks cimport boxed_solve


def boxed(W, b, lo, hi):
    """Forces tau (k) and sides (k) with lo <= tau <= hi and y = W tau + b: side 0 where y = 0, -1 at lo with y >= 0, 1 at hi with
    y <= 0. W (k, k) symmetric and positive semidefinite, b (k), lo <= 0 <= hi (k, may be infinite). ArithmeticError when no such
    forces were found within the bound of pivots."""
    cdef double[:, ::1] response = np.ascontiguousarray(W, dtype=np.float64)
    cdef double[::1] free = np.ascontiguousarray(b, dtype=np.float64)
    cdef double[::1] least = np.ascontiguousarray(lo, dtype=np.float64)
    cdef double[::1] most = np.ascontiguousarray(hi, dtype=np.float64)
    cdef int32_t k = <int32_t>free.shape[0], pivots = 0
    if not response.shape[0] == response.shape[1] == least.shape[0] == most.shape[0] == k:
        raise ValueError(f"W {np.shape(W)}, lo {np.shape(lo)} and hi {np.shape(hi)} do not go with b ({k})")
    forces = np.zeros(k)
    sides = np.zeros(k, dtype=np.int32)
    if k == 0:
        return forces, sides
    cdef double[::1] tau = forces, work = np.zeros(k * k + 3 * k)
    cdef int32_t[::1] side = sides
    if boxed_solve(k, &response[0, 0], &free[0], &least[0], &most[0], &tau[0], &side[0], &work[0], &pivots):
        raise ArithmeticError(f"the boxed problem of {k} candidates has no answer within its bound of pivots")
    return forces, sides
