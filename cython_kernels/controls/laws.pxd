"""Controllers as C: what one is made of, and one call of it. Real-time: yes."""

from libc.stdint cimport int32_t

from torqueloop.cython_kernels.model.model cimport tl_table1

include "records.pxi"

cdef struct control_t:
    int32_t kind                # CONTROL_*
    int32_t n_read              # numbers it reads
    int32_t n_own               # its own numbers: commands, then what it keeps
    int32_t n_curve
    const double* parameters    # a tl_<kind>
    const tl_table1* curve

cdef class Law:
    cdef control_t c
    cdef void* _memory
    cdef double* own_
    cdef readonly str kind
    cdef readonly tuple parameters
    cdef readonly tuple curves

cdef void control_step(const control_t* c, const double* read, double* own, double dt) noexcept nogil
