"""Controllers of the rig in the tick: signals to a law (controls/laws.pyx). All state is in the signal table."""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.controls.laws cimport MOST_READS, control_t
from torqueloop.cython_kernels.tick.blocks cimport Blocks

cdef struct controller_t:
    control_t law
    int32_t first               # slot of its first own signal
    int32_t every               # ticks between two calls
    int32_t[MOST_READS] source  # what it reads: gain * sig[source] + offset
    double[MOST_READS] gain
    double[MOST_READS] offset

cdef struct controllers_t:
    int32_t n
    double tick_s
    controller_t* controller

cdef class Controllers(Blocks):
    cdef controllers_t m
    cdef readonly int n_sig
    cdef int room
    cdef int32_t slot(self, index) except -1
    cdef list _laws             # whose memory the table points into

cdef void controllers_tick(const controllers_t* m, double* sig, int64_t tick) noexcept nogil
