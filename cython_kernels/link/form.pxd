from libc.stdint cimport int64_t, uint8_t

cdef enum:
    FIELDS_MAX = 14           # with the head's the map has a header of one byte
    KEY_BYTES = 32            # of a key, packed
    BYTES_MAX = 1024          # of a message

cdef struct field_t:
    uint8_t[KEY_BYTES] key    # packed
    int key_bytes
    bint whole
    double low, high          # of a double
    int64_t highest           # of a whole number, from 0

cdef class Form:
    cdef bytes _head
    cdef const uint8_t* _head_at
    cdef int _head_bytes
    cdef type _made
    cdef tuple _names
    cdef int n                # numbers of a message
    cdef field_t[FIELDS_MAX] _field
    cdef int pack_numbers(self, const double* x, uint8_t* to) noexcept nogil
    cdef bint unpack_numbers(self, const uint8_t* data, Py_ssize_t size, double* x) noexcept nogil
