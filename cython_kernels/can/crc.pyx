"""CRC-8 by table, not reflected (most significant bit first), as AUTOSAR's Crc library defines it.

    r = init;  for each byte b: r = table[r ^ b];  crc = r ^ xorout
    table[b] = remainder of b(x) * x^8 modulo the polynomial x^8 + poly(x)

Parameters in use (AUTOSAR SWS CRC Library, chapter "8-bit CRC calculation"; check = CRC of the ASCII text "123456789"):

    name          poly  init  xorout  check   where
    SAE J1850     0x1D  0xFF  0xFF    0x4B    Crc_CalculateCRC8
    H2F           0x2F  0xFF  0xFF    0xDF    Crc_CalculateCRC8H2F; E2E profile 2, VW MQB
    E2E profile 1 0x1D  0x00  0x00    0x37    the profile calls the library so that start value and final XOR cancel
"""

from libc.stdint cimport uint8_t

#: (poly, init, xorout) by name
CRC8_PARAMETERS = {
    "SAE_J1850": (0x1D, 0xFF, 0xFF),
    "H2F": (0x2F, 0xFF, 0xFF),
    "E2E_P01": (0x1D, 0x00, 0x00),
}


cdef void crc8_make(crc8_t* self, uint8_t poly, uint8_t init, uint8_t xorout) noexcept nogil:
    cdef int b, bit
    cdef uint8_t r
    for b in range(256):
        r = <uint8_t> b
        for bit in range(8):
            r = <uint8_t> ((r << 1) ^ poly) if r & 0x80 else <uint8_t> (r << 1)
        self.table[b] = r
    self.init = init
    self.xorout = xorout


cdef class Crc8:
    """CRC-8 of bytes with the given polynomial (without x^8), start value and final XOR."""

    cdef crc8_t crc
    cdef readonly int poly

    def __init__(self, int poly, int init, int xorout):
        for name, value in (("poly", poly), ("init", init), ("xorout", xorout)):
            if not 0 <= value <= 0xFF:
                raise ValueError(f"CRC-8 {name} = {value}: allowed 0..255")
        self.poly = poly
        crc8_make(&self.crc, poly, init, xorout)

    @classmethod
    def named(cls, str name):
        """The CRC with the parameters of CRC8_PARAMETERS[name]."""
        if name not in CRC8_PARAMETERS:
            raise ValueError(f"unknown CRC-8 '{name}': allowed {', '.join(CRC8_PARAMETERS)}")
        return cls(*CRC8_PARAMETERS[name])

    def __call__(self, const uint8_t[::1] data not None):
        """CRC of `data` (any bytes-like object)."""
        cdef uint8_t r = self.crc.init
        if data.shape[0]:
            r = crc8_bytes(&self.crc, r, &data[0], <int> data.shape[0])
        return r ^ self.crc.xorout
