"""The locator of the step (step/roots.pxi), for tests."""

include "../step/step_imports.pxi"
include "../step/rows_generic.pxi"
include "../step/points.pxi"
include "../step/polynomial.pxi"
include "../step/roots.pxi"


def cubic_fall(double c0, double c1, double c2, double c3, double tol):
    """Where in a trial, from 0 to 1, the cubic c0 + c1 x + c2 x^2 + c3 x^3 falls below 0 for the first time, by more than tol at one of
    its extremes or at 1; None where it does not."""
    cdef double x = cubic_falls(c0, c1, c2, c3, tol)
    return x if happens(x) else None


def curve_fall(double q0, double q1, double rest, double rate, double tol):
    """The same of a law of a pressure, q0 + q1 x + rest exp(-rate x), at 16 points."""
    cdef tl_curve f
    cdef tl_margin g
    cdef double[16] points
    cdef double x
    cdef int32_t i
    for i in range(16):
        points[i] = (i + 1) / 16.0
    f.q[0], f.q[1], f.q[2], f.rest, f.rate, f.begin = q0, q1, 0.0, rest, rate, 0.0
    g.at = law_at
    g.curve = &f
    x = first_below(&g, 0.0, points, 16, tol)
    return x if happens(x) else None


cdef double law_at(const tl_margin* g, double x) noexcept nogil:
    return g.curve.q[0] + x * g.curve.q[1] + g.curve.rest * exp(-g.curve.rate * x)
