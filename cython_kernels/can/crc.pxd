"""CRC-8 by table, for end-to-end protection of CAN messages. See crc.pyx."""

from libc.stdint cimport uint8_t

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
