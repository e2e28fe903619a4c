"""Memory that is taken before arming and lives as long as its owner: base of what holds the tick's tables."""

from libc.stdlib cimport calloc, free


cdef class Blocks:
    """Owner of zeroed blocks of memory."""

    def __cinit__(self):
        self._blocks = []

    def __dealloc__(self):
        cdef size_t address
        for address in self._blocks or ():
            free(<void*>address)

    cdef void* block(self, size_t n_bytes) except NULL:
        """Zeroed memory of so many bytes (at least one); MemoryError."""
        cdef void* p = calloc(1, n_bytes if n_bytes else 1)
        if p == NULL:
            raise MemoryError
        self._blocks.append(<size_t>p)
        return p
