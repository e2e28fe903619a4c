from libc.stdint cimport int32_t

from torqueloop.cython_kernels.control cimport Control
from torqueloop.cython_kernels.tick cimport copy_t, rig_t

cdef class Rig:
    cdef rig_t r
    cdef list _keep         # owners of everything r points into
    cdef Control _control   # None: no control channel
    cdef list _blocks       # addresses of memory to free
    cdef readonly object account
    cdef readonly object lateness
    cdef readonly object compute
    cdef void* block(self, size_t n_bytes) except NULL
    cdef int32_t slot(self, index) except -1
    cdef copy_t* copies(self, rows) except NULL
