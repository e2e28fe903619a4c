"""8 data bytes of a CAN frame as one word, and bits as numbers. Header only."""

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
