"""Piecewise linear tables. Real-time: yes.

A look-up with a hint of 0 or more finds the piece of its argument; the hint is 0 at first, then what the last look-up in the same
table has left there. With a hint below 0 it is *held* on the piece ~hint, wherever
the argument lies: 0 below the first point, k between points k - 1 and k, n above the last one.
"""

from torqueloop.cython_kernels.model.model cimport tl_table1, tl_table2
from libc.stdint cimport int32_t


cdef inline int32_t bracket(const double* x, int32_t n, double v, int32_t* hint) noexcept nogil:
    """Largest i in [0, n-2] with x[i] <= v (ends included); starts at *hint, so slow signals cost one comparison."""
    cdef int32_t i = hint[0]
    while i > 0 and v < x[i]:
        i -= 1
    while i < n - 2 and v >= x[i + 1]:
        i += 1
    hint[0] = i
    return i


cdef inline double on_piece(const tl_table1* t, double v, int32_t piece) noexcept nogil:
    """y(v) on that piece, continued beyond its ends (the slope behind the last point is 0)."""
    return t.y[0] if piece == 0 else t.y[piece - 1] + (v - t.x[piece - 1]) * t.dy[piece - 1]


cdef inline double table1(const tl_table1* t, double v, int32_t* hint) noexcept nogil:
    """y(v) by linear interpolation; outside: held or continued with the slope of the last segment."""
    cdef int32_t i = hint[0]
    if i < 0:
        return on_piece(t, v, ~i)
    if t.x[i] <= v < t.x[i + 1]:                  # (of a single point, whose slope is 0, the second is any number)
        return t.y[i] + (v - t.x[i]) * t.dy[i]
    if t.n == 1:
        return t.y[0]
    if not t.linear:
        if v <= t.x[0]:
            return t.y[0]
        if v >= t.x[t.n - 1]:
            return t.y[t.n - 1]
    i = bracket(t.x, t.n, v, hint)
    return t.y[i] + (v - t.x[i]) * t.dy[i]


cdef inline double table1_slope(const tl_table1* t, double v, int32_t* hint) noexcept nogil:
    """dy/dv of table1, to the right of a point."""
    if t.n == 1 or (not t.linear and not t.x[0] <= v < t.x[t.n - 1]):
        return 0.0
    return t.dy[bracket(t.x, t.n, v, hint)]


cdef inline double table2(const tl_table2* t, double vx, double vy, int32_t* hint) noexcept nogil:
    """z(vx, vy), bilinear, clipped at the edges; hint: two entries."""
    cdef int32_t i, j
    cdef double fx, fy, z00, z01, z10, z11
    cdef int32_t piece = ~hint[0]
    if (vx < t.x[0] and piece < 0) or piece == 0:
        vx = t.x[0]
    if (vx > t.x[t.nx - 1] and piece < 0) or piece == t.nx:
        vx = t.x[t.nx - 1]
    if vy < t.y[0]:
        vy = t.y[0]
    if vy > t.y[t.ny - 1]:
        vy = t.y[t.ny - 1]
    if piece < 0:
        i = bracket(t.x, t.nx, vx, hint)
    else:
        i = 0 if piece == 0 else (t.nx - 2 if piece == t.nx else piece - 1)
    j = bracket(t.y, t.ny, vy, hint + 1)
    fx = (vx - t.x[i]) / (t.x[i + 1] - t.x[i])
    fy = (vy - t.y[j]) / (t.y[j + 1] - t.y[j])
    z00 = t.z[i * t.ny + j]
    z01 = t.z[i * t.ny + j + 1]
    z10 = t.z[(i + 1) * t.ny + j]
    z11 = t.z[(i + 1) * t.ny + j + 1]
    return (1.0 - fx) * ((1.0 - fy) * z00 + fy * z01) + fx * ((1.0 - fy) * z10 + fy * z11)
