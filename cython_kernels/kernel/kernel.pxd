"""Owners of a model and a state, and what a tick calls: see kernel.pyx."""

from libc.stdint cimport int64_t, uint64_t

from torqueloop.cython_kernels.model.model cimport tl_model, tl_state, tl_step_fn


cdef class KernelModel:
    cdef tl_model* ptr
    cdef tl_step_fn step_fn
    cdef readonly str kernel_name
    cdef readonly double h
    cdef readonly object arrays
    cdef list _keep


cdef class KernelState:
    cdef tl_state* ptr
    cdef readonly KernelModel model
    cdef list _keep


cdef int tl_step(const tl_model* m, tl_state* s) noexcept nogil
cdef void tl_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil
cdef void tl_state_take(const tl_model* m, tl_state* s, const double* x, const int64_t* k) noexcept nogil
cdef uint64_t tl_state_hash(const tl_model* m, const tl_state* s) noexcept nogil
cdef int claim(tl_state* s, bint taken) except -1
cdef int ended(const tl_state* s) except -1
