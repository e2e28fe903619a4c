"""Checksum of a CAN message as the tick makes it. Rules and their names: protection.py; functions: protect.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.can.crc cimport crc8_t, crc_t
from torqueloop.cython_kernels.can.word cimport field_t

# How a checksum is made (protection.py: NONE ...).
cdef enum:
    PROTECT_NONE = 0
    PROTECT_CRC8 = 1
    PROTECT_CRC = 2      # 16 to 64 bit
    PROTECT_XOR = 3      # of bytes
    PROTECT_SUM = 4      # of bytes
    PROTECT_NIBBLES = 5  # sum of nibbles
    PROTECT_BITS = 6     # number of ones

# What is done with a sum s at its end (protection.py: PLAIN ...).
cdef enum:
    FINISH_PLAIN = 0        # s ^ xorout
    FINISH_NEGATE = 1       # init - s
    FINISH_FOLD = 2         # low byte + the rest
    FINISH_FOLD_NIBBLE = 3  # the same, then its nibbles added
    FINISH_J1939 = 4        # (((s >> 6) & 3) + (s >> 3) + s) & 7

cdef enum:
    FIXED_MAX = 8

cdef struct protect_t:
    uint64_t init
    uint64_t xorout
    uint64_t mask         # of the checksum
    field_t field         # where it stands
    const crc8_t* crc8
    const crc_t* crc
    uint8_t kind          # PROTECT_*
    uint8_t finish        # FINISH_*
    uint8_t alternating   # the prefix is prefix[counter & 1]
    uint8_t listed_ids    # the suffix is ids[counter & 15]
    uint8_t backwards
    uint8_t n_prefix
    uint8_t n_suffix
    uint8_t prefix[2]
    uint8_t suffix[2]
    uint8_t first         # a CRC covers the bytes [first, skip) and [resume, last)
    uint8_t skip
    uint8_t resume
    uint8_t last
    uint8_t n_fixed       # bytes the rule gives besides: length, data id
    uint8_t fixed_at[8]
    uint8_t fixed_mask[8]
    uint8_t fixed_value[8]
    uint8_t ids[16]
    uint8_t keep[64]      # what of each byte a sum covers

cdef uint64_t protect_checksum(const protect_t* p, const uint8_t* data, uint32_t counter) noexcept nogil
cdef bint protect_right(const protect_t* p, const uint8_t* data, uint32_t counter) noexcept nogil
cdef void protect_put(const protect_t* p, uint8_t* data, uint32_t counter) noexcept nogil
cdef void protect_spoil(const protect_t* p, uint8_t* data, uint64_t by) noexcept nogil
