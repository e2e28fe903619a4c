from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef enum:
    BOX_BYTES = 1 << 16

cdef struct box_t:
    uint32_t posted           # messages so far
    uint32_t taken
    uint32_t sleeping         # the reader sleeps on `posted`, or is about to
    uint32_t length
    uint8_t[BOX_BYTES - 16] data

cdef class Mailbox:
    cdef Py_buffer _view      # keeps it mapped
    cdef box_t* _out
    cdef box_t* _in
    cdef bint put(self, const void* message, size_t size) noexcept nogil
    cdef bint waits(self) noexcept nogil
    cdef bint wait(self, int64_t until_ns) noexcept nogil
    cdef Py_ssize_t look(self, void* to, size_t room) noexcept nogil
    cdef void drop(self) noexcept nogil
