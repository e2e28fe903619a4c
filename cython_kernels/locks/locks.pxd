"""Lock patterns and the boxed friction problem; see locks.pyx."""

from libc.stdint cimport int32_t
from torqueloop.cython_kernels.model.model cimport tl_model, tl_pattern, tl_state

cdef tl_pattern* pattern_of(const tl_model* m, tl_state* s) noexcept nogil
cdef tl_pattern* cut_pattern(const tl_model* m, tl_state* s, double h) noexcept nogil
cdef int boxed_solve(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                     int32_t* side, double* work, int32_t* pivots) noexcept nogil
cdef void boxed_refine(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                       const int32_t* side, double* work) noexcept nogil
cdef int lu_solve(double* A, int32_t k, double* X, int32_t nrhs) noexcept nogil
cdef void set_ratio_rows(const tl_model* m, tl_state* s) noexcept nogil
