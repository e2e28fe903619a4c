"""CRCs by table, for end-to-end protection of CAN messages. See crc.pyx."""

from libc.stdint cimport uint8_t, uint64_t

cdef struct crc8_t:
    uint8_t table[256]  # table[b]: remainder of b * x^8 modulo the polynomial (most significant bit first)
    uint8_t init        # value of the register before the first byte
    uint8_t xorout      # XORed onto the register after the last byte

cdef void crc8_make(crc8_t* self, uint8_t poly, uint8_t init, uint8_t xorout) noexcept nogil

# One more byte. Start with self.init, end with `^ self.xorout`. real-time: yes
cdef inline uint8_t crc8_byte(const crc8_t* self, uint8_t crc, uint8_t byte) noexcept nogil:
    return self.table[crc ^ byte]

# n more bytes. real-time: yes
cdef inline uint8_t crc8_bytes(const crc8_t* self, uint8_t crc, const uint8_t* data, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        crc = self.table[crc ^ data[i]]
    return crc

# A CRC of 8 to 64 bits, reflected or not.
cdef struct crc_t:
    uint64_t table[256]
    uint64_t mask       # its bits
    uint8_t shift       # width - 8
    uint8_t reflected

cdef void crc_make(crc_t* self, int width, uint64_t poly, bint reflected) noexcept nogil

# One more byte; bits beyond the width are left standing, so mask the result. real-time: yes
cdef inline uint64_t crc_byte(const crc_t* self, uint64_t crc, uint8_t byte) noexcept nogil:
    if self.reflected:
        return (crc >> 8) ^ self.table[(crc ^ byte) & 0xFF]
    return (crc << 8) ^ self.table[((crc >> self.shift) ^ byte) & 0xFF]

# n more bytes. real-time: yes
cdef inline uint64_t crc_bytes(const crc_t* self, uint64_t crc, const uint8_t* data, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        crc = crc_byte(self, crc, data[i])
    return crc
