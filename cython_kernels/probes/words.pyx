"""The tick's looks at whole tables of numbers by themselves, for tests: fingerprint, and the search for what is not finite."""

from libc.stdint cimport uint64_t

from torqueloop.cython_kernels.model.fingerprint cimport fingerprint
from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of
from torqueloop.cython_kernels.tick.finite cimport not_finite


def fingerprint_of(values not None, uint64_t seed=0):
    """64-bit fingerprint of the values (float64), continuing `seed`."""
    cdef Py_buffer view
    cdef const double* p = doubles_of(values, &view, False)
    cdef uint64_t found = fingerprint(seed, p, view.len // 8)
    PyBuffer_Release(&view)
    return found


def first_not_finite(values not None):
    """Index of the first of the values (float64) that is infinite or NaN, -1: none. ValueError unless aligned to 16 bytes."""
    cdef Py_buffer view
    cdef const double* p = doubles_of(values, &view, False)
    cdef bint aligned = <size_t>p % 16 == 0
    cdef int found = not_finite(p, <int>(view.len // 8)) if aligned and view.len else -1
    cdef bint empty = view.len == 0
    PyBuffer_Release(&view)
    if not aligned and not empty:
        raise ValueError("values: allowed: memory aligned to 16 bytes")
    return found
