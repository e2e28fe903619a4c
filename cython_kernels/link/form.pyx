"""Messages of fixed form: a msgpack map with the same keys in the same order each time, whole numbers and doubles.

    map of n | head: constant keys and values, packed | key, uint .. uint64 or double | key, ... | the end

`pack` gives the bytes that msgpack gives for the same map. `unpack` takes exactly this form and says None to everything
else, right or wrong: whoever asks then looks at it key by key. Neither makes a Python object on the way but the result;
by way of a dictionary the same costs ten times that. `pack_numbers` and `unpack_numbers` make none at all: a message is
an array of doubles there, in which whole numbers are exact to 2^53. msgpack: github.com/msgpack/msgpack/blob/master/spec.md
"""

cimport cython
from libc.math cimport floor
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_AsLongLong, PyLong_CheckExact

from torqueloop.cython_kernels.link.msgpack cimport (
    FIXMAP, FIXSTR, FLOAT64, as_double, got, put_double, put_whole, whole_bytes,
)


@cython.auto_pickle(False)
cdef class Form:
    """The form of one kind of message. real-time: no (makes Python objects)."""

    def __init__(self, type made not None, bytes head not None, int head_fields, fields):
        """made: dataclass of the messages, whose further field is `carrier`. head: packed keys and values that are
        always the same, head_fields of them. fields: (name, None, highest) of a whole number from 0 to highest, or
        (name, low, high) of a double, in the order of the dataclass."""
        cdef bytes key
        self._made, self._names = made, tuple([name for name, _, _ in fields])
        self.n = len(self._names)
        if not 0 < self.n <= FIELDS_MAX or self.n + head_fields > 15:
            raise ValueError(f"{self.n} fields beside {head_fields}, allowed: 1 to {<int>FIELDS_MAX}, 15 in all")
        self._head = bytes([FIXMAP + self.n + head_fields]) + head
        if len(self._head) + self.n * (KEY_BYTES + 9) > BYTES_MAX:
            raise ValueError(f"head of {len(head)} bytes, allowed: all of a message within {<int>BYTES_MAX}")
        self._head_at = <const uint8_t*>PyBytes_AS_STRING(self._head)
        self._head_bytes = <int>PyBytes_GET_SIZE(self._head)
        for i, (name, low, high) in enumerate(fields):
            key = name.encode()
            if not 0 < len(key) < KEY_BYTES:
                raise ValueError(f"key {name!r}, allowed: 1 to {<int>KEY_BYTES - 1} bytes")
            self._field[i].key_bytes = len(key) + 1
            self._field[i].key[0] = <uint8_t>(FIXSTR + len(key))
            memcpy(self._field[i].key + 1, PyBytes_AS_STRING(key), len(key))
            self._field[i].whole = low is None
            if low is None:
                if not 0 <= high <= 1 << 53:
                    raise ValueError(f"{name}: whole numbers to {high}, allowed: to 2^53, exact as doubles")
                self._field[i].highest = high
            else:
                self._field[i].low, self._field[i].high = low, high

    cdef int pack_numbers(self, const double* x, uint8_t* to) noexcept nogil:
        """The bytes of a message of these numbers, as many as there are; 0 where a whole number is none, or none of its
        range. `to` has room for BYTES_MAX."""
        cdef uint8_t* p = to
        cdef field_t* f
        cdef int i
        memcpy(p, self._head_at, self._head_bytes)
        p += self._head_bytes
        for i in range(self.n):
            f = &self._field[i]
            memcpy(p, f.key, f.key_bytes)
            p += f.key_bytes
            if f.whole:
                # false for a NaN as well
                if not 0.0 <= x[i] <= <double>f.highest or x[i] != floor(x[i]):
                    return 0
                p = put_whole(p, <uint64_t>x[i])
            else:
                p = put_double(p, x[i])
        return <int>(p - to)

    cdef bint unpack_numbers(self, const uint8_t* data, Py_ssize_t size, double* x) noexcept nogil:
        """The numbers of a message; False for bytes of any other form, or numbers out of their range."""
        cdef const uint8_t* p = data
        cdef const uint8_t* end = p + size
        cdef field_t* f
        cdef uint64_t whole
        cdef int i, n
        if size < self._head_bytes or memcmp(p, self._head_at, self._head_bytes) != 0:
            return False
        p += self._head_bytes
        for i in range(self.n):
            f = &self._field[i]
            if end - p <= f.key_bytes or memcmp(p, f.key, f.key_bytes) != 0:
                return False
            p += f.key_bytes
            n = whole_bytes(p[0]) if f.whole else 8 if p[0] == FLOAT64 else -1
            if n < 0 or end - p <= n:
                return False
            if f.whole:
                whole = got(p + 1, n) if n else p[0]
                if whole > <uint64_t>f.highest:
                    return False
                x[i] = <double>whole
            else:
                x[i] = as_double(got(p + 1, 8))
                # false for a NaN as well
                if not f.low <= x[i] <= f.high:
                    return False
            p += 1 + n
        return p == end

    def pack(self, message):
        """The message's bytes; None where a whole number is none, or none of its range."""
        cdef uint8_t[BYTES_MAX] space
        cdef double[FIELDS_MAX] x
        cdef int i
        for i in range(self.n):
            value = getattr(message, <str>self._names[i])
            if not self._field[i].whole:
                x[i] = PyFloat_AsDouble(value)
            elif not PyLong_CheckExact(value) or not 0 <= value <= self._field[i].highest:
                return None
            else:
                x[i] = <double>PyLong_AsLongLong(value)
        i = self.pack_numbers(x, space)
        return PyBytes_FromStringAndSize(<char*>space, i)

    def unpack(self, bytes data not None):
        """The message, `carrier` empty; None for bytes of any other form, or numbers out of their range."""
        cdef double[FIELDS_MAX] x
        cdef dict values
        cdef int i
        if not self.unpack_numbers(<const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), x):
            return None
        # a frozen dataclass lets nobody set attributes, and its own way of doing it takes most of the time
        message = self._made.__new__(self._made)
        values = message.__dict__
        for i in range(self.n):
            values[self._names[i]] = <int64_t>x[i] if self._field[i].whole else x[i]
        values["carrier"] = {}
        return message
