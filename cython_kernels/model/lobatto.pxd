"""Lobatto IIIA with three points, the step of order 4: the weights of the accelerations of the middle and of the end in the speeds
there, and so of the speeds in the angles.

Collocation with the points 0, 1/2, 1 (Hermite-Simpson): A-stable, of order 4, symmetric. E. Hairer, G. Wanner, *Solving
Ordinary Differential Equations II*, 2nd ed., Springer 1996, section IV.5. With two points it is the trapezoidal rule.
"""

from libc.stdint cimport int32_t

cdef extern from *:
    """
    #ifndef TL_LOBATTO
    #define TL_LOBATTO
    /* without the column of the start: 5/24, 1/6; and the square of these columns */
    static const double tl_lobatto[2][2] = {{1.0 / 3.0, -1.0 / 24.0}, {2.0 / 3.0, 1.0 / 6.0}};
    static const double tl_lobatto_2[2][2] = {{1.0 / 12.0, -1.0 / 48.0}, {1.0 / 3.0, 0.0}};
    #endif
    """
    const double[2][2] LOBATTO "tl_lobatto"
    const double[2][2] LOBATTO_2 "tl_lobatto_2"


cdef inline double weight(int32_t stages, int32_t a, int32_t b) noexcept nogil:
    """Weight of the acceleration of stage b in the speed of stage a; an instant (stages 0) has none."""
    return LOBATTO[a][b] if stages == 2 else 0.5 * stages


cdef inline double weight_2(int32_t stages, int32_t a, int32_t b) noexcept nogil:
    """And in the angle."""
    return LOBATTO_2[a][b] if stages == 2 else 0.25 * stages


cdef inline double start_weight(int32_t stages, int32_t a) noexcept nogil:
    """Weight of the acceleration at the start in the speed of stage a."""
    if stages == 1:
        return 0.5
    return 5.0 / 24.0 if a == 0 else 1.0 / 6.0


cdef inline double start_weight_2(int32_t stages, int32_t a, double beta) noexcept nogil:
    """And in the angle; beta: (13)."""
    if stages == 1:
        return 0.5 - beta
    return 1.0 / 16.0 if a == 0 else 1.0 / 6.0


cdef inline double node(int32_t stages, int32_t a) noexcept nogil:
    """Where in the trial stage a lies."""
    return 1.0 if a == stages - 1 else 0.5


cdef inline double to_middle(double start, double middle, double end) noexcept nogil:
    """Integral over the first half of a step of length 1 of the parabola through these three values."""
    return 5.0 / 24.0 * start + middle / 3.0 - end / 24.0


cdef inline double to_end(double start, double middle, double end) noexcept nogil:
    """Integral over the whole step."""
    return start / 6.0 + middle * (2.0 / 3.0) + end / 6.0


cdef inline double to_stage(int32_t stages, int32_t a, double start, double middle, double end) noexcept nogil:
    """Integral up to stage a of the polynomial through the values at the start and at the stages (one stage: `middle` is not read)."""
    if stages == 1:
        return 0.5 * (start + end)
    return to_middle(start, middle, end) if a == 0 else to_end(start, middle, end)
