"""CRCs by table. CRC-8, not reflected (most significant bit first), as AUTOSAR's Crc library defines it.

    r = init;  for each byte b: r = table[r ^ b];  crc = r ^ xorout
    table[b] = remainder of b(x) * x^8 modulo the polynomial x^8 + poly(x)

Parameters in use (AUTOSAR SWS CRC Library, chapter "8-bit CRC calculation"; check = CRC of the ASCII text "123456789"):

    name          poly  init  xorout  check   where
    SAE J1850     0x1D  0xFF  0xFF    0x4B    Crc_CalculateCRC8
    H2F           0x2F  0xFF  0xFF    0xDF    Crc_CalculateCRC8H2F; E2E profile 2, VW MQB
    E2E profile 1 0x1D  0x00  0x00    0x37    the profile calls the library so that start value and final XOR cancel

Wider ones (same source; SWS E2E for their use), w bits, r masked to w:

    not reflected   r = (r << 8) ^ table[((r >> (w - 8)) ^ b) & 0xFF]
    reflected       r = (r >> 8) ^ table[(r ^ b) & 0xFF], with the bits of the polynomial in reverse order

    name    poly                init    xorout  reflected  check               where
    CCITT   0x1021              0xFFFF  0       no         0x29B1              E2E profiles 5 and 6
    P4      0xF4ACFB13          all 1   all 1   yes        0x1697D06A          E2E profile 4
    ECMA    0x42F0E1EBA9EA3693  all 1   all 1   yes        0x995DC9BBDF1939FA  E2E profile 7
"""

from libc.stdint cimport uint8_t, uint64_t

from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, bytes_of

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


cdef void crc_make(crc_t* self, int width, uint64_t poly, bint reflected) noexcept nogil:
    cdef uint64_t top = <uint64_t> 1 << (width - 1)
    cdef uint64_t r, mirrored = 0
    cdef int b, bit
    self.mask = (top - 1) | top
    self.shift = width - 8
    self.reflected = reflected
    for bit in range(width):
        if (poly >> bit) & 1:
            mirrored |= <uint64_t> 1 << (width - 1 - bit)
    for b in range(256):
        r = <uint64_t> b if reflected else <uint64_t> b << (width - 8)
        for bit in range(8):
            if reflected:
                r = (r >> 1) ^ mirrored if r & 1 else r >> 1
            else:
                r = (r << 1) ^ poly if r & top else r << 1
        self.table[b] = r & self.mask


cdef class Crc:
    """CRC of bytes with 8 to 64 bits: polynomial without its highest power, start value, final XOR, bits reflected."""

    cdef crc_t crc
    cdef uint64_t init, xorout
    cdef readonly int width

    def __init__(self, int width, poly, init, xorout, bint reflected=False):
        if not 8 <= width <= 64:
            raise ValueError(f"CRC of {width} bit: allowed 8..64")
        highest = 2 ** <object> width - 1
        for name, value in (("poly", poly), ("init", init), ("xorout", xorout)):
            if not 0 <= value <= highest:
                raise ValueError(f"CRC-{width} {name} = {value}: allowed 0..{highest}")
        self.width, self.init, self.xorout = width, init, xorout
        crc_make(&self.crc, width, poly, reflected)

    def __call__(self, data not None):
        """CRC of `data` (any bytes-like object)."""
        cdef Py_buffer view
        cdef const uint8_t* p = bytes_of(data, &view)
        cdef uint64_t r = crc_bytes(&self.crc, self.init, p, <int> view.len)
        PyBuffer_Release(&view)
        return (r ^ self.xorout) & self.crc.mask


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

    def __call__(self, data not None):
        """CRC of `data` (any bytes-like object)."""
        cdef Py_buffer view
        cdef const uint8_t* p = bytes_of(data, &view)
        cdef uint8_t r = crc8_bytes(&self.crc, self.crc.init, p, <int> view.len)
        PyBuffer_Release(&view)
        return r ^ self.crc.xorout
