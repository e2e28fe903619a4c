"""Lock patterns and the boxed friction problem; see locks.pyx."""

from libc.stdint cimport int32_t, int64_t
from torqueloop.cython_kernels.model.model cimport tl_model, tl_pattern, tl_state

cdef extern from *:
    """
    /* Shift of the diagonal of every boxed problem (decisions, impacts, impulse steps), relative to its largest response. It makes
       the matrix definite. As it goes to 0, the torques tend to those of the least sum of squares, weighted by the shifts
       (docs/theory.md, section 6). It leaves 1e-9 of the free motion as slip of what sticks; one refinement lowers that to about
       the square. The shift of an element is at most that of one TL_HEAVIER times lighter. */
    #define TL_SHIFT 1e-9
    #define TL_HEAVIER 1e3
    /* a limit beyond it is none, just below UNLIMITED (step/points.pxi) */
    #define TL_NO_LIMIT 1e300
    /* N.m or N, and relative: rounding of a torque that is compared with its limit */
    #define TL_TORQUE_ROUNDING 1e-12
    /* of the terms of a slip acceleration: rounding when it is asked for its direction */
    #define TL_RATE_ROUNDING 1e-11
    """
    const double SHIFT "TL_SHIFT"
    const double HEAVIER "TL_HEAVIER"
    const double NO_LIMIT "TL_NO_LIMIT"
    const double TORQUE_ROUNDING "TL_TORQUE_ROUNDING"
    const double RATE_ROUNDING "TL_RATE_ROUNDING"

cdef enum:
    PATIENCE = 5           # rounds of pivots without fewer contradictions before they are resolved one at a time


cdef inline double shift_of(double largest, double own) noexcept nogil:
    """Shift of a diagonal element: the same for all, which selects the split of least norm, but for an element more than HEAVIER
    times heavier than the lightest one, which the common shift would let creep: it has a smaller one, and counts less in the norm."""
    return SHIFT * (largest if largest < HEAVIER * own else HEAVIER * own)


cdef inline double force_slack(double tau) noexcept nogil:
    """By how much a force may be beyond its limit: rounding."""
    return TORQUE_ROUNDING * (1.0 + (tau if tau > 0.0 else -tau))


cdef tl_pattern* pattern_of(const tl_model* m, tl_state* s) noexcept nogil
cdef tl_pattern* pattern_of_length(const tl_model* m, tl_state* s, int32_t stages, double h) noexcept nogil
cdef int64_t build_scratch(int64_t n, int64_t nf) noexcept nogil
cdef int boxed_solve(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                     int32_t* side, double* work, int32_t* pivots) noexcept nogil
cdef int lu_solve(double* A, int32_t k, double* X, int32_t nrhs) noexcept nogil
cdef void set_ratio_rows(const tl_model* m, tl_state* s) noexcept nogil
