"""The step for any driveline: sizes are read from the model."""

from torqueloop.cython_kernels.model.model cimport tl_model, tl_state

cdef int advance(const tl_model* m, tl_state* s, double dt) noexcept nogil
