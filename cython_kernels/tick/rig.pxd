from torqueloop.cython_kernels.tick.control cimport Control
from torqueloop.cython_kernels.tick.rig_memory cimport RigMemory

cdef class Rig(RigMemory):
    cdef Control _control   # None: no control channel
    cdef readonly object account
    cdef readonly object lateness
    cdef readonly object compute
