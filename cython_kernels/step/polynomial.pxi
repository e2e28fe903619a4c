# Polynomials of a trial: values, and the work of a force along a motion. x is the fraction of the trial from 0 to 1.
#
# Equations: (43), (45).

cdef extern from *:
    """
    /* (constants to the C compiler, too: most are asked for several times in every step with an event) */
    /* rad/s or m/s: rounding of a relative speed of 1e3 rad/s formed from several shafts; no physics */
    #define TL_TOL_R 1e-9
    /* of the sum of the absolute torques that one that holds is found from: its rounding, some ten times that of one term */
    #define TL_SUM_ROUNDING 1e-14
    /* N.m or N: the same where all of them vanish */
    #define TL_LEAST_ROUNDING 1e-13
    /* of what the boxed problem accepts beyond a limit: so far an element that holds there may go until it is asked again */
    #define TL_HOLDS 2.0
    """
    const double TOL_R "TL_TOL_R"
    const double SUM_ROUNDING "TL_SUM_ROUNDING"
    const double LEAST_ROUNDING "TL_LEAST_ROUNDING"
    const double HOLDS "TL_HOLDS"


cdef inline double poly_at(double c0, double c1, double c2, double c3, double x) noexcept nogil:
    return c0 + x * (c1 + x * (c2 + x * c3))


cdef inline double angle_at(const double* p, double x) noexcept nogil:
    """By how much the angle with the polynomial p has changed."""
    return x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))


cdef inline void lerp(tl_vec v0, tl_cvec vm, tl_cvec v1, int32_t count, double x, int32_t four) noexcept nogil:
    """v0 <- value at x of the polynomial through v0, (vm,) v1. What is constant stays so to the bit."""
    cdef int32_t i
    if four:
        for i in range(count):
            if v0[i] == v1[i] and v0[i] == vm[i]:
                continue
            v0[i] = v0[i] + x * ((-3.0 * v0[i] + 4.0 * vm[i] - v1[i]) + x * (2.0 * v0[i] - 4.0 * vm[i] + 2.0 * v1[i]))
    else:
        for i in range(count):
            v0[i] = v0[i] + (v1[i] - v0[i]) * x


cdef inline double at(double v0, double vm, double v1, double x) noexcept nogil:
    return v0 + x * ((-3.0 * v0 + 4.0 * vm - v1) + x * (2.0 * v0 - 4.0 * vm + 2.0 * v1))


cdef inline double work4(double w0, double wm, double w1, double f0, double fm, double f1) noexcept nogil:
    """Work over the time 1 of a force with the values f0, fm, f1 at the begin, the middle and the end on a speed likewise."""
    return (w0 + 4.0 * wm + w1) * (f0 + 4.0 * fm + f1) / 36.0 + (w1 - w0) * (f1 - f0) / 12.0


cdef inline double twice_mean(double f0, double f1, double x) noexcept nogil:
    """Sum of a force at the start of a trial of two points and at its fraction x: it is linear between its ends, f0 and f1."""
    return (2.0 - x) * f0 + x * f1


cdef inline double work2(double quarter, double x, double w0, double w1, double f0, double f1) noexcept nogil:
    """Work up to the fraction x of a trial of two points, at speeds w0 and, there, w1, of a force with the ends f0 and f1;
    quarter: of the time."""
    return quarter * twice_mean(f0, f1, x) * (w0 + w1)


cdef inline double work_on(const tl_model* m, const tl_state* s, int32_t four, int32_t k, double x, double wm, double w1, double f0,
                           double fm, double f1) noexcept nogil:
    """Work along row k up to the fraction x of a trial of two or (four) three points: f0, fm, f1 are the force at the points of the
    trial, wm, w1 the speeds in the middle and at the end of the part taken."""
    if not four:
        return work2(0.25 * x * s.h, x, s.now.w[k], w1, f0, f1)
    if x != 1.0:
        return x * s.h * work4(s.now.w[k], wm, w1, f0, at(f0, fm, f1, 0.5 * x), at(f0, fm, f1, x))
    return s.h * work4(s.now.w[k], wm, w1, f0, fm, f1)


cdef inline void speeds_at(const tl_model* m, int32_t four, double x, double h, tl_cvec u, tl_cvec a, tl_cvec hs1, tl_cvec s2,
                           tl_vec ux) noexcept nogil:
    """Speeds ux at the fraction x of a trial, on the polynomial of its acceleration, (17) and (18)."""
    cdef int32_t i
    cdef double xh = x * h
    for i in range(TL_N(m)):
        ux[i] = u[i] + xh * (a[i] + x * (0.5 * hs1[i] + (1.0 / 3.0) * x * s2[i] if four else 0.5 * hs1[i]))


cdef inline void angles_at(const tl_model* m, int32_t four, double x, double h, tl_cvec u, tl_cvec z, tl_cvec a, tl_cvec hs1, tl_cvec s2,
                           tl_vec zx) noexcept nogil:
    """And angles zx."""
    cdef int32_t i
    cdef double xh = x * h
    for i in range(TL_N(m)):
        zx[i] = z[i] + xh * u[i] + xh * xh * (
            0.5 * a[i] + x * ((1.0 / 6.0) * hs1[i] + (1.0 / 12.0) * x * s2[i] if four else (1.0 / 6.0) * hs1[i]))


cdef inline void rates_at(const tl_model* m, double x, tl_vec a, tl_cvec hs1, tl_cvec s2) noexcept nogil:
    """a <- accelerations at the fraction x of the trial."""
    cdef int32_t i
    for i in range(TL_N(m)):
        a[i] = a[i] + x * (hs1[i] + x * s2[i])


cdef inline void along_row(const tl_model* m, const tl_state* s, int32_t k, double speed, double rate, double* p,
                           double* v) noexcept nogil:
    """row_polynomial from the speed and the acceleration of the row at the start."""
    cdef double h = s.h, s1 = row_dot(m, k, s.end.hs1), s2 = row_dot(m, k, s.s2) if s.four else 0.0
    v[0] = speed
    v[1] = h * rate
    v[2] = 0.5 * h * s1
    v[3] = h * s2 / 3.0
    p[0] = row_angle(m, s, k)
    p[1] = h * v[0]
    p[2] = 0.5 * h * v[1]
    p[3] = h * v[2] / 3.0
    p[4] = 0.25 * h * v[3]


cdef void row_polynomial(const tl_model* m, const tl_state* s, int32_t k, double* p, double* v) noexcept nogil:
    """Angle p (5 coefficients) and speed v (4) of row k over the fraction of the trial."""
    along_row(m, s, k, row_dot(m, k, s.now.u), row_dot(m, k, s.now.a), p, v)
