cdef class Blocks:
    cdef list _blocks       # addresses of memory to free
    cdef void* block(self, size_t n_bytes) except NULL
