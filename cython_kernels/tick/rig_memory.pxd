from libc.stdint cimport int32_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks
from torqueloop.cython_kernels.tick.faults cimport fault_t
from torqueloop.cython_kernels.tick.tick cimport bus_t, copy_t, rig_t, wiring_t

cdef class RigMemory(Blocks):
    cdef rig_t r
    cdef list _keep         # owners of everything r points into
    cdef int32_t slot(self, index) except -1
    cdef int made_for(self, what, int n_sig) except -1
    cdef bus_t* bus_of(self, index) except NULL
    cdef int make_room(self) except -1
    cdef int check_fault(self, int k, const fault_t* f) except -1
    cdef int make_calendar(self, bus_t* b, list plan) except -1
    cdef copy_t* copies(self, rows) except NULL
    cdef int wire(self, wiring_t* wiring, rows) except -1
