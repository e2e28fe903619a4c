"""Contiguous memory of a Python object as a C pointer: what a typed memoryview gives, without the 20 000 lines of C and
the ten seconds of compiling that each module with one costs.

    cdef Py_buffer view
    p = doubles_of(table, &view, True)
    try:
        ...                                 # p[0 .. view.len // 8 - 1]
    finally:
        PyBuffer_Release(&view)
"""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stdint cimport uint8_t


cdef inline const uint8_t* bytes_of(object data, Py_buffer* view) except? NULL:
    """Memory of a bytes-like object, `view.len` bytes; TypeError, BufferError."""
    PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
    return <const uint8_t*>view.buf


cdef inline double* doubles_of(object table, Py_buffer* view, bint writable) except? NULL:
    """Memory of a one-dimensional, contiguous array of float64, `view.len // 8` of them; TypeError, BufferError;
    ValueError for another type or shape."""
    PyObject_GetBuffer(table, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if writable else 0))
    if view.ndim != 1 or view.format == NULL or view.format[0] != c"d" or view.format[1] != 0:
        PyBuffer_Release(view)
        raise ValueError("table: allowed: a contiguous array of float64 with one dimension")
    return <double*>view.buf
