# Polynomials of a trial: values, the work of a force along a motion, and first roots. x is the fraction of the trial from 0 to 1.
#
# Equations: (43), (45); first roots: section 5.

cdef extern from *:
    """
    /* (constants to the C compiler, too: most are asked for several times in every step with an event) */
    /* rad/s or m/s: rounding of a relative speed of 1e3 rad/s formed from several shafts; no physics */
    #define TL_TOL_R 1e-9
    /* instead of a fraction of the trial (0 to 1) at which something happens: nothing does */
    #define TL_NO_EVENT 2.0
    /* of the length of a trial: what happens so little after an event happens with it. Roots are found to ROOT_STEP; the rest is
       room for what two roots of one event are formed from */
    #define TL_TOGETHER 1e-9
    /* of the searched part: a Newton step so short is the last, the next one would be its square */
    #define TL_ROOT_STEP 1e-12
    /* of the searched part: between two points of a trial so near to each other lies nothing, a double is known to 1e-16 */
    #define TL_ROOT_WIDTH 1e-15
    /* of the sum of the absolute torques that one that holds is found from: its rounding, some ten times that of one term */
    #define TL_SUM_ROUNDING 1e-14
    /* N.m or N: the same where all of them vanish */
    #define TL_LEAST_ROUNDING 1e-13
    /* of what the boxed problem accepts beyond a limit: so far an element that holds there may go until it is asked again */
    #define TL_HOLDS 2.0
    """
    const double TOL_R "TL_TOL_R"
    const double NO_EVENT "TL_NO_EVENT"
    const double TOGETHER "TL_TOGETHER"
    const double ROOT_STEP "TL_ROOT_STEP"
    const double ROOT_WIDTH "TL_ROOT_WIDTH"
    const double SUM_ROUNDING "TL_SUM_ROUNDING"
    const double LEAST_ROUNDING "TL_LEAST_ROUNDING"
    const double HOLDS "TL_HOLDS"


cdef enum:
    ROOT_ROUNDS = 60       # of bisection with Newton steps; halving alone comes down to ROOT_WIDTH in 50


cdef inline int32_t happens(double x) noexcept nogil:
    """1 when x is the fraction of a trial at which something happens, 0 for NO_EVENT."""
    return x < NO_EVENT


cdef inline int32_t together(double x, double event) noexcept nogil:
    """1 when what happens at the fraction x of a trial happens with the event at another."""
    return x <= event + TOGETHER


cdef inline double sooner(double x, double first, double end) noexcept nogil:
    """The earlier of the event at x, which counts up to `end`, and the first so far."""
    return x if x <= end and x < first else first


cdef inline double poly_at(double c0, double c1, double c2, double c3, double x) noexcept nogil:
    return c0 + x * (c1 + x * (c2 + x * c3))


cdef double first_root(double c0, double c1, double c2, double c3, double end) noexcept nogil:
    """A root in [0, end] of the cubic, which is > 0 at 0 (or touches it) and < 0 at end: bisection with Newton steps; of a
    parabola the form of its root in which nothing cancels."""
    cdef double lo = 0.0, hi = end, x, f, d
    cdef int32_t it
    if c0 <= 0.0:
        return 0.0
    if c2 == 0.0 and c3 == 0.0:
        x = -c0 / c1
        return x if x < end else end
    if c3 == 0.0:
        d = c1 * c1 - 4.0 * c0 * c2
        d = sqrt(d) if d > 0.0 else 0.0
        x = 2.0 * c0 / (d - c1) if c1 <= 0.0 else -0.5 * (c1 + d) / c2
        return x if x < end else end
    x = end * c0 / (c0 - poly_at(c0, c1, c2, c3, end))
    for it in range(ROOT_ROUNDS):
        f = poly_at(c0, c1, c2, c3, x)
        if f > 0.0:
            lo = x
        else:
            hi = x
        d = c1 + x * (2.0 * c2 + 3.0 * x * c3)
        d = x - f / d if d != 0.0 else -1.0
        if fabs(d - x) <= ROOT_STEP * end or hi - lo <= ROOT_WIDTH * end:
            return d if lo <= d <= hi else x     # down to rounding, wherever in the bracket
        x = d if lo < d < hi else 0.5 * (lo + hi)
    return x


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
