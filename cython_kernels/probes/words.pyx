"""The tick's looks at whole tables of numbers by themselves, for tests: fingerprint, and the search for what is not finite."""

from libc.stdint cimport uint64_t

from torqueloop.cython_kernels.model.fingerprint cimport fingerprint
from torqueloop.cython_kernels.tick.finite cimport not_finite


def fingerprint_of(const double[::1] values not None, uint64_t seed=0):
    """64-bit fingerprint of the values, continuing `seed`."""
    return fingerprint(seed, &values[0] if values.shape[0] else NULL, values.shape[0])


def first_not_finite(const double[::1] values not None):
    """Index of the first value that is infinite or NaN, -1: none. ValueError unless aligned to 16 bytes."""
    if values.shape[0] == 0:
        return -1
    if <size_t>&values[0] % 16:
        raise ValueError("values: allowed: memory aligned to 16 bytes")
    return not_finite(&values[0], <int>values.shape[0])
