"""Messages with CAN frames, of the form they nearly always have: the step of a control unit and its answer.

    map | head: constant keys and values, packed | "step", uint | "t", double (of a step) |
    "frames", array of [bus, id, flags, data] | sensors or actuators, array of doubles | the end

`pack` gives the bytes that msgpack gives for the same map. `unpack` takes exactly this form, with all that is checked of
such a message (hil/ecu/messages.py), and says None to everything else, right or wrong: whoever asks then looks at it key
by key. By way of dictionaries and lists the same costs four times that, ten where caches are cold.
"""

cimport cython
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact

from torqueloop.cython_kernels.link.msgpack cimport (
    ARRAY16, BIN8, FIXARRAY, FIXMAP, FIXSTR, FLOAT64, as_double, got, put, put_double, put_whole, whole_bytes,
)

cdef extern from "Python.h":
    # as object.__setattr__: it sets attributes of a frozen dataclass with slots
    int PyObject_GenericSetAttr(object, object, object) except -1

cdef enum:
    BYTES_MAX = 8192
    KEY_BYTES = 32            # of a key, packed
    FRAME_BYTES = 1 + 2 + 5 + 2 + 2 + 64  # of a frame, at most
    NUMBER_BYTES = 9
    ITEMS_MAX = 256           # of an array
    EXTENDED = 0x80000000     # bit of identifiers with 29 bits
    ID_MAX = 0x1FFFFFFF
    STEP_MAX = 0x1FFFFFFFFFFFFF   # 2^53 - 1


cdef struct key_t:
    uint8_t[KEY_BYTES] packed
    int size


cdef int key_of(str name, key_t* key) except -1:
    cdef bytes text = name.encode()
    if not 0 < len(text) < KEY_BYTES:
        raise ValueError(f"key {name!r}, allowed: 1 to {<int>KEY_BYTES - 1} bytes")
    key.size = <int>len(text) + 1
    key.packed[0] = <uint8_t>(FIXSTR + len(text))
    memcpy(key.packed + 1, PyBytes_AS_STRING(text), len(text))
    return 0


cdef bint is_whole(object value, int64_t highest, uint64_t* x) except -1:
    """A whole number from 0 to highest."""
    cdef int beyond = 0
    cdef long long found
    if not PyLong_CheckExact(value):
        return False
    found = PyLong_AsLongLongAndOverflow(value, &beyond)
    x[0] = <uint64_t>found
    return beyond == 0 and 0 <= found <= highest


cdef inline uint8_t* put_key(uint8_t* p, const key_t* key) noexcept nogil:
    memcpy(p, key.packed, key.size)
    return p + key.size


cdef inline uint8_t* put_size(uint8_t* p, Py_ssize_t n) noexcept nogil:
    """Beginning of an array of n."""
    return put(p, FIXARRAY + n, 1) if n < 16 else put(put(p, ARRAY16, 1), n, 2)


cdef bint found_key(const uint8_t** p, const uint8_t* end, const key_t* key) noexcept nogil:
    if end - p[0] < key.size or memcmp(p[0], key.packed, key.size) != 0:
        return False
    p[0] += key.size
    return True


cdef bint found_whole(const uint8_t** p, const uint8_t* end, uint64_t highest, uint64_t* x) noexcept nogil:
    cdef int n
    if p[0] >= end:
        return False
    n = whole_bytes(p[0][0])
    if n < 0 or end - p[0] <= n:
        return False
    x[0] = got(p[0] + 1, n) if n else p[0][0]
    p[0] += 1 + n
    return x[0] <= highest


cdef bint found_double(const uint8_t** p, const uint8_t* end, double* x) noexcept nogil:
    """A finite number."""
    if end - p[0] < NUMBER_BYTES or p[0][0] != FLOAT64:
        return False
    x[0] = as_double(got(p[0] + 1, 8))
    p[0] += NUMBER_BYTES
    return isfinite(x[0])


cdef bint found_size(const uint8_t** p, const uint8_t* end, int* n) noexcept nogil:
    """Beginning of an array of at most ITEMS_MAX."""
    if p[0] < end and FIXARRAY <= p[0][0] < FIXARRAY + 16:
        n[0] = p[0][0] - FIXARRAY
        p[0] += 1
        return True
    if end - p[0] < 3 or p[0][0] != ARRAY16:
        return False
    n[0] = <int>got(p[0] + 1, 2)
    p[0] += 3
    return n[0] <= ITEMS_MAX


cdef inline bint is_length(uint8_t n) noexcept nogil:
    """A frame can have so many data bytes."""
    return n <= 8 or n == 12 or n == 16 or n == 20 or n == 24 or n == 32 or n == 48 or n == 64


@cython.auto_pickle(False)
cdef class FramesForm:
    """The form of one kind of message. real-time: no (makes Python objects)."""

    cdef bytes _head
    cdef type _frame
    cdef bint _timed
    cdef key_t _step, _t, _frames, _numbers

    def __init__(self, type frame not None, bytes head not None, int head_fields, bint timed, str numbers not None):
        """frame: class of the frames, with can_id, data, flags, bus. head: packed keys and values that are always the
        same, head_fields of them. timed: a step, with its time. numbers: key of the numbers behind the frames."""
        if not 0 <= head_fields <= 11 or len(head) > 256:
            raise ValueError(f"head of {head_fields} fields, {len(head)} bytes; allowed: 0 to 11, 256")
        self._frame, self._timed = frame, timed
        self._head = bytes([FIXMAP + head_fields + (4 if timed else 3)]) + head
        key_of("step", &self._step)
        key_of("t", &self._t)
        key_of("frames", &self._frames)
        key_of(numbers, &self._numbers)

    def pack(self, step, t, frames, numbers):
        """The message's bytes; t: None where it has none. None for what has not these types, or is too long."""
        cdef uint8_t[BYTES_MAX] space
        cdef uint8_t* p = space
        cdef uint64_t x, bus, can_id, flags
        if type(frames) is not tuple or type(numbers) is not tuple or not is_whole(step, STEP_MAX, &x):
            return None
        if FRAME_BYTES * len(frames) + NUMBER_BYTES * len(numbers) > BYTES_MAX - 512:
            return None
        memcpy(p, PyBytes_AS_STRING(self._head), PyBytes_GET_SIZE(self._head))
        p = put_key(p + PyBytes_GET_SIZE(self._head), &self._step)
        p = put_whole(p, x)
        if self._timed:
            if not PyFloat_CheckExact(t):
                return None
            p = put_double(put_key(p, &self._t), PyFloat_AS_DOUBLE(t))
        p = put_size(put_key(p, &self._frames), len(frames))
        for frame in frames:
            p = put(p, FIXARRAY + 4, 1)
            if not (is_whole(frame.bus, 255, &bus) and is_whole(frame.can_id, 0xFFFFFFFF, &can_id)
                    and is_whole(frame.flags, 255, &flags)):
                return None
            p = put_whole(put_whole(put_whole(p, bus), can_id), flags)
            data = frame.data
            if not PyBytes_CheckExact(data) or PyBytes_GET_SIZE(data) > 64:
                return None
            p = put(put(p, BIN8, 1), PyBytes_GET_SIZE(data), 1)
            memcpy(p, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
            p += PyBytes_GET_SIZE(data)
        p = put_size(put_key(p, &self._numbers), len(numbers))
        for value in numbers:
            if not PyFloat_CheckExact(value):
                return None
            p = put_double(p, PyFloat_AS_DOUBLE(value))
        return PyBytes_FromStringAndSize(<char*>space, p - space)

    def unpack(self, bytes data not None):
        """(step, t, frames, numbers), t 0.0 where there is none; None for bytes of any other form, a number out of its
        range or not finite, a length that no frame has."""
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data)
        cdef const uint8_t* end = p + PyBytes_GET_SIZE(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(self._head)
        cdef uint64_t step, bus, can_id, flags
        cdef double t = 0.0, x
        cdef int n, k
        cdef list frames = [], numbers = []
        if end - p < size or memcmp(p, PyBytes_AS_STRING(self._head), size) != 0:
            return None
        p += size
        if not found_key(&p, end, &self._step) or not found_whole(&p, end, STEP_MAX, &step):
            return None
        if self._timed and not (found_key(&p, end, &self._t) and found_double(&p, end, &t)):
            return None
        if not found_key(&p, end, &self._frames) or not found_size(&p, end, &n):
            return None
        for k in range(n):
            if p >= end or p[0] != FIXARRAY + 4:
                return None
            p += 1
            if not (found_whole(&p, end, 255, &bus) and found_whole(&p, end, 0xFFFFFFFF, &can_id)
                    and found_whole(&p, end, 255, &flags)):
                return None
            if can_id & ~<uint64_t>EXTENDED > ID_MAX or end - p < 2 or p[0] != BIN8 or not is_length(p[1]):
                return None
            if end - p < 2 + p[1]:
                return None
            frame = self._frame.__new__(self._frame)
            PyObject_GenericSetAttr(frame, "can_id", can_id)
            PyObject_GenericSetAttr(frame, "data", PyBytes_FromStringAndSize(<char*>(p + 2), p[1]))
            PyObject_GenericSetAttr(frame, "flags", flags)
            PyObject_GenericSetAttr(frame, "bus", bus)
            frames.append(frame)
            p += 2 + p[1]
        if not found_key(&p, end, &self._numbers) or not found_size(&p, end, &n):
            return None
        for k in range(n):
            if not found_double(&p, end, &x):
                return None
            numbers.append(x)
        return (step, t, tuple(frames), tuple(numbers)) if p == end else None
