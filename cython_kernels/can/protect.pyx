"""Checksums of CAN messages in the tick: CRC-8 to CRC-64, XOR, sums of bytes, nibbles and bits. Real-time: yes, all.

    CRC     prefix, then the data without the checksum's own bytes, then suffix; prefix and suffix are what the profile
            takes from the data id, by the counter where it alternates or is a list
    sums    of what `keep` leaves of each byte, from init on, finished by FINISH_*
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.can.crc cimport crc8_byte, crc8_bytes, crc_byte, crc_bytes
from torqueloop.cython_kernels.can.word cimport field_load, field_toggle


cdef inline uint8_t _crc8(const protect_t* p, const uint8_t* data, uint32_t counter) noexcept nogil:
    cdef uint8_t r = <uint8_t> p.init
    cdef int i
    if p.alternating:
        r = crc8_byte(p.crc8, r, p.prefix[counter & 1])
    else:
        r = crc8_bytes(p.crc8, r, p.prefix, p.n_prefix)
    if p.backwards:
        for i in range(p.last - 1, p.first - 1, -1):
            if not p.skip <= i < p.resume:
                r = crc8_byte(p.crc8, r, data[i])
    else:
        r = crc8_bytes(p.crc8, r, data + p.first, p.skip - p.first)
        r = crc8_bytes(p.crc8, r, data + p.resume, p.last - p.resume)
    if p.listed_ids:
        r = crc8_byte(p.crc8, r, p.ids[counter & 15])
    else:
        r = crc8_bytes(p.crc8, r, p.suffix, p.n_suffix)
    return r ^ <uint8_t> p.xorout


cdef inline uint64_t _crc(const protect_t* p, const uint8_t* data) noexcept nogil:
    cdef uint64_t r = crc_bytes(p.crc, p.init, p.prefix, p.n_prefix)
    r = crc_bytes(p.crc, r, data + p.first, p.skip - p.first)
    r = crc_bytes(p.crc, r, data + p.resume, p.last - p.resume)
    return (crc_bytes(p.crc, r, p.suffix, p.n_suffix) ^ p.xorout) & p.crc.mask


cdef inline uint32_t _finish(const protect_t* p, uint32_t s) noexcept nogil:
    # s: with what it started from, but for FINISH_NEGATE
    if p.finish == FINISH_PLAIN:
        return s ^ <uint32_t> p.xorout
    if p.finish == FINISH_NEGATE:
        return <uint32_t> p.init - s
    if p.finish == FINISH_J1939:
        return (((s >> 6) & 3) + (s >> 3) + s) & 7
    s = ((s & 0xFF) + (s >> 8)) & 0xFF
    return s if p.finish == FINISH_FOLD else (s & 0xF) + (s >> 4)


cdef uint64_t protect_checksum(const protect_t* p, const uint8_t* data, uint32_t counter) noexcept nogil:
    """The checksum that the data should have."""
    cdef uint32_t s = 0 if p.finish == FINISH_NEGATE else <uint32_t> p.init
    cdef uint8_t byte
    cdef int i
    if p.kind == PROTECT_CRC8:
        return _crc8(p, data, counter)
    if p.kind == PROTECT_CRC:
        return _crc(p, data)
    for i in range(p.first, p.last):
        byte = data[i] & p.keep[i]
        if p.kind == PROTECT_SUM:
            s += byte
        elif p.kind == PROTECT_XOR:
            s ^= byte
        elif p.kind == PROTECT_NIBBLES:
            s += (byte & 0xF) + (byte >> 4)
        else:
            while byte:
                s += 1
                byte &= byte - 1
    return _finish(p, s) & p.mask


cdef bint protect_right(const protect_t* p, const uint8_t* data, uint32_t counter) noexcept nogil:
    """The checksum, and what else the rule gives, are right."""
    cdef int i
    for i in range(p.n_fixed):
        if (data[p.fixed_at[i]] & p.fixed_mask[i]) != p.fixed_value[i]:
            return False
    return field_load(&p.field, data) == protect_checksum(p, data, counter)


cdef void protect_put(const protect_t* p, uint8_t* data, uint32_t counter) noexcept nogil:
    """Set checksum and fixed bytes; their bits are 0 before."""
    cdef int i
    for i in range(p.n_fixed):
        data[p.fixed_at[i]] |= p.fixed_value[i]
    protect_spoil(p, data, protect_checksum(p, data, counter))


cdef void protect_spoil(const protect_t* p, uint8_t* data, uint64_t by) noexcept nogil:
    """XOR the checksum as it stands in the data with `by`."""
    field_toggle(&p.field, data, by)
