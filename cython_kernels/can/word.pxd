"""8 data bytes of a CAN frame as one word, bits as numbers, and fields that may be split. Header only."""

from libc.stdint cimport uint8_t, uint64_t

cdef extern from *:
    """
    #ifndef TORQUELOOP_CAN_WORD_H
    #define TORQUELOOP_CAN_WORD_H
    #include <string.h>
    #include <stdint.h>
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #error "the CAN codec is written for little-endian processors"
    #endif
    static inline uint64_t tl_load64(const uint8_t* p) { uint64_t w; memcpy(&w, p, 8); return w; }
    static inline void tl_store64(uint8_t* p, uint64_t w) { memcpy(p, &w, 8); }
    static inline double tl_f64(uint64_t w) { double d; memcpy(&d, &w, 8); return d; }
    static inline double tl_f32(uint64_t w) { uint32_t u = (uint32_t)w; float f; memcpy(&f, &u, 4); return f; }
    static inline uint64_t tl_bits64(double d) { uint64_t w; memcpy(&w, &d, 8); return w; }
    static inline uint64_t tl_bits32(double d) { float f = (float)d; uint32_t u; memcpy(&u, &f, 4); return u; }
    #endif
    """
    uint64_t __builtin_bswap64(uint64_t w) noexcept nogil
    uint64_t tl_load64(const uint8_t* p) noexcept nogil
    void tl_store64(uint8_t* p, uint64_t w) noexcept nogil
    double tl_f64(uint64_t w) noexcept nogil
    double tl_f32(uint64_t w) noexcept nogil
    uint64_t tl_bits64(double d) noexcept nogil
    uint64_t tl_bits32(double d) noexcept nogil

# the 8 bytes from p on in a byte order
cdef inline uint64_t load_word(const uint8_t* p, bint big_endian) noexcept nogil:
    cdef uint64_t word = tl_load64(p)
    return __builtin_bswap64(word) if big_endian else word

cdef inline void store_word(uint8_t* p, uint64_t word, bint big_endian) noexcept nogil:
    tl_store64(p, __builtin_bswap64(word) if big_endian else word)


cdef enum:
    FIELD_PARTS_MAX = 4

# One run of bits of a field: `value` of the field >> to, in the 64-bit word from byte `at` on.
cdef struct field_part_t:
    uint64_t mask
    uint8_t at
    uint8_t shift
    uint8_t big_endian
    uint8_t to

# A checksum or an alive counter. Most have one part; Hyundai splits some in two.
cdef struct field_t:
    field_part_t part[FIELD_PARTS_MAX]
    int n

cdef inline uint64_t field_load(const field_t* f, const uint8_t* data) noexcept nogil:
    """Number that stands in a field. real-time: yes."""
    cdef const field_part_t* p
    cdef uint64_t value = 0
    cdef int i
    for i in range(f.n):
        p = &f.part[i]
        value |= ((load_word(data + p.at, p.big_endian) >> p.shift) & p.mask) << p.to
    return value

cdef inline void field_toggle(const field_t* f, uint8_t* data, uint64_t by) noexcept nogil:
    """XOR a field with a number: from 0 on this writes it. real-time: yes."""
    cdef const field_part_t* p
    cdef int i
    for i in range(f.n):
        p = &f.part[i]
        store_word(data + p.at, load_word(data + p.at, p.big_endian) ^ (((by >> p.to) & p.mask) << p.shift),
                   p.big_endian)
