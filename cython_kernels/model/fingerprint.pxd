"""Fingerprint of 64-bit words: the hash of states and of signal tables.

Four lanes take the words in turn, two at a time; the first one takes the last few (fewer than eight), one at a time:

    lane <- (rotate(rotate(lane) ^ word) + next) * FACTOR     lane <- (rotate(lane) ^ word) * FACTOR

with a rotation by 29 and FACTOR 2^64 / golden ratio, odd. Both are one-to-one in each word and in the lane: a single
word that differs always changes the result. The rotation brings the upper bits, where signs and exponents of doubles
are, down to where the multiplication spreads them; without it two signs that change together would cancel. Not made
against an opponent. Two and a half instructions a word.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef inline uint64_t fingerprint_word(const char* p, int64_t i) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, p + 8 * i, 8)
    return word


cdef inline uint64_t fingerprint_take(uint64_t lane, uint64_t word) noexcept nogil:
    return (((lane << 29) | (lane >> 35)) ^ word) * <uint64_t>0x9E3779B97F4A7C15U


cdef inline uint64_t fingerprint_pair(uint64_t lane, uint64_t word, uint64_t following) noexcept nogil:
    lane = ((lane << 29) | (lane >> 35)) ^ word
    return (((lane << 29) | (lane >> 35)) + following) * <uint64_t>0x9E3779B97F4A7C15U


cdef inline uint64_t fingerprint(uint64_t seed, const void* data, int64_t words) noexcept nogil:
    """Fingerprint of so many words that begin at data, in the order they have, continuing `seed`."""
    cdef const char* p = <const char*>data
    cdef uint64_t a = seed
    cdef uint64_t b = seed ^ <uint64_t>0xA0761D6478BD642FU
    cdef uint64_t c = seed ^ <uint64_t>0xE7037ED1A0B428DBU
    cdef uint64_t d = seed ^ <uint64_t>0x8EBC6AF09C88C6E3U
    cdef const char* end = p + (words & ~<int64_t>15) * 8
    while p < end:
        a = fingerprint_pair(a, fingerprint_word(p, 0), fingerprint_word(p, 1))
        b = fingerprint_pair(b, fingerprint_word(p, 2), fingerprint_word(p, 3))
        c = fingerprint_pair(c, fingerprint_word(p, 4), fingerprint_word(p, 5))
        d = fingerprint_pair(d, fingerprint_word(p, 6), fingerprint_word(p, 7))
        a = fingerprint_pair(a, fingerprint_word(p, 8), fingerprint_word(p, 9))
        b = fingerprint_pair(b, fingerprint_word(p, 10), fingerprint_word(p, 11))
        c = fingerprint_pair(c, fingerprint_word(p, 12), fingerprint_word(p, 13))
        d = fingerprint_pair(d, fingerprint_word(p, 14), fingerprint_word(p, 15))
        p += 128
    if words & 8:
        a = fingerprint_pair(a, fingerprint_word(p, 0), fingerprint_word(p, 1))
        b = fingerprint_pair(b, fingerprint_word(p, 2), fingerprint_word(p, 3))
        c = fingerprint_pair(c, fingerprint_word(p, 4), fingerprint_word(p, 5))
        d = fingerprint_pair(d, fingerprint_word(p, 6), fingerprint_word(p, 7))
        p += 64
    end = p + (words & 7) * 8
    while p < end:
        a = fingerprint_take(a, fingerprint_word(p, 0))
        p += 8
    # the lanes one after the other, then the upper bits down
    a = fingerprint_take(fingerprint_take(fingerprint_take(a, b), c), d)
    return a ^ (a >> 32)
