"""Pieces of msgpack messages in C: github.com/msgpack/msgpack/blob/master/spec.md"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    FIXMAP = 0x80             # types
    FIXARRAY = 0x90
    FIXSTR = 0xA0
    BIN8 = 0xC4
    FLOAT64 = 0xCB
    UINT8 = 0xCC
    UINT16 = 0xCD
    UINT32 = 0xCE
    UINT64 = 0xCF
    ARRAY16 = 0xDC


cdef inline uint8_t* put(uint8_t* p, uint64_t x, int size) noexcept nogil:
    """The lowest `size` bytes of x, the highest of them first."""
    cdef int i
    for i in range(size):
        p[i] = <uint8_t>(x >> (8 * (size - 1 - i)))
    return p + size


cdef inline uint64_t got(const uint8_t* p, int size) noexcept nogil:
    """Inverse of put."""
    cdef uint64_t x = 0
    cdef int i
    for i in range(size):
        x = x << 8 | p[i]
    return x


cdef inline uint8_t* put_whole(uint8_t* p, uint64_t x) noexcept nogil:
    """x in the shortest form."""
    if x < 0x80:
        return put(p, x, 1)
    if x < 1 << 8:
        return put(put(p, UINT8, 1), x, 1)
    if x < 1 << 16:
        return put(put(p, UINT16, 1), x, 2)
    if x < <uint64_t>1 << 32:
        return put(put(p, UINT32, 1), x, 4)
    return put(put(p, UINT64, 1), x, 8)


cdef inline int whole_bytes(uint8_t kind) noexcept nogil:
    """Bytes behind the type of a whole number >= 0; -1: none."""
    if kind < 0x80:
        return 0
    return 1 << (kind - UINT8) if UINT8 <= kind <= UINT64 else -1


cdef inline uint8_t* put_double(uint8_t* p, double d) noexcept nogil:
    cdef uint64_t x
    memcpy(&x, &d, sizeof(double))
    return put(put(p, FLOAT64, 1), x, 8)


cdef inline double as_double(uint64_t x) noexcept nogil:
    cdef double d
    memcpy(&d, &x, sizeof(double))
    return d
