"""What the tick does with whole stretches of numbers by itself, for tests: fingerprint, search for what is not finite, copies.
plain: as processors without AVX do it."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from torqueloop.cython_kernels.model.fingerprint cimport fingerprint, fingerprint_plain
from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of
from torqueloop.cython_kernels.tick.words cimport (
    BETWEEN_BLOCK,
    WORDS_BLOCK,
    all_between,
    all_between_plain,
    copy,
    copy_plain,
    copy_twice,
    copy_twice_plain,
    not_finite,
    not_finite_plain,
)


def fingerprint_of(values not None, uint64_t seed=0, plain=False):
    """64-bit fingerprint of the values (float64), continuing `seed`."""
    cdef Py_buffer view
    cdef const double* p = doubles_of(values, &view, False)
    cdef uint64_t found = fingerprint_plain(seed, p, view.len // 8) if plain else fingerprint(seed, p, view.len // 8)
    PyBuffer_Release(&view)
    return found


def first_not_finite(values not None, plain=False):
    """Index of the first of the values (float64) that is infinite or NaN, -1: none."""
    cdef Py_buffer view
    cdef const double* p = doubles_of(values, &view, False)
    cdef int n = <int>(view.len // 8)
    # as the tick has them: aligned, zeros up to the end of the block
    cdef double* own = <double*>calloc(n // WORDS_BLOCK + 1, WORDS_BLOCK * sizeof(double))
    cdef int found = -1
    if own != NULL:
        copy(p, own, n)
        found = not_finite_plain(own, n) if plain else not_finite(own, n)
        free(own)
    PyBuffer_Release(&view)
    if own == NULL:
        raise MemoryError
    return found


def between(values not None, low not None, high not None, int n, plain=False):
    """Whether low <= values <= high for the first n; arrays (float64) with room for whole blocks of 4. ValueError: too short."""
    cdef Py_buffer view, under, over
    cdef const double* p = doubles_of(values, &view, False)
    cdef const double* lo = doubles_of(low, &under, False)
    cdef const double* hi = doubles_of(high, &over, False)
    cdef Py_ssize_t needed = 8 * ((n + BETWEEN_BLOCK - 1) // BETWEEN_BLOCK * BETWEEN_BLOCK)
    fits = n >= 0 and min(view.len, under.len, over.len) >= needed
    cdef bint found = False
    if fits:
        found = all_between_plain(p, lo, hi, n) if plain else all_between(p, lo, hi, n)
    PyBuffer_Release(&view)
    PyBuffer_Release(&under)
    PyBuffer_Release(&over)
    if not fits:
        raise ValueError("values, low, high: allowed: n numbers and room for whole blocks")
    return found


def copied(values not None, to not None, too=None, plain=False):
    """Copy the values (float64) to the beginning of another array, or of two in one pass. ValueError if one is too short."""
    cdef Py_buffer source, target, other
    cdef const double* p = doubles_of(values, &source, False)
    cdef double* q = doubles_of(to, &target, True)
    cdef double* r = doubles_of(to if too is None else too, &other, True)
    cdef int n = <int>(source.len // 8)
    fits = target.len >= source.len and other.len >= source.len
    if not fits:
        pass
    elif too is None and plain:
        copy_plain(p, q, n)
    elif too is None:
        copy(p, q, n)
    elif plain:
        copy_twice_plain(p, q, r, n)
    else:
        copy_twice(p, q, r, n)
    PyBuffer_Release(&source)
    PyBuffer_Release(&target)
    PyBuffer_Release(&other)
    if not fits:
        raise ValueError("to, too: allowed: as long as the values, or longer")
