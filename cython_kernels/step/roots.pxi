# The locator: where a margin, a quantity that is above 0 until something happens, falls below 0 for the first time.
#
# A margin is a function of a fraction of the trial, or of the step. Points divide it into parts in which it rises or falls only; the
# first point at which it is below 0 ends the bracket of a root. The bracket is narrowed by inverse quadratic interpolation where its
# points are monotone enough for that (Chandrupatla 1997), else by chords, with the margin of an end that stays weighted down
# (Anderson and Bjoerck 1973). Where a value of the margin costs a trial, shortened.pxi narrows the bracket itself.
#
# Equations: none: section 5, the locator.

cdef extern from *:
    """
    /* (a constant to the C compiler, too) instead of a fraction at which something happens: nothing does */
    #define TL_NO_EVENT 2.0
    /* of the length of a trial: what happens so little after an event happens with it. Roots are found to ROOT_STEP; the rest is
       room for what two roots of one event are formed from */
    #define TL_TOGETHER 1e-9
    /* of the searched part: no point is nearer to an end of the bracket than that, and a bracket so narrow is done: the chord
       between its ends is in error by the square */
    #define TL_ROOT_STEP 1e-12
    """
    const double NO_EVENT "TL_NO_EVENT"
    const double TOGETHER "TL_TOGETHER"
    const double ROOT_STEP "TL_ROOT_STEP"

#: of the step: between two fractions so near to each other lies no other number
cdef double NARROW = 2.3e-16

cdef enum:
    ROOT_ROUNDS = 60       # points in a bracket; halving alone comes down to ROOT_STEP in 40


cdef inline int32_t happens(double x) noexcept nogil:
    """1 when x is the fraction of a trial at which something happens, 0 for NO_EVENT."""
    return x < NO_EVENT


cdef inline int32_t together(double x, double event) noexcept nogil:
    """1 when what happens at the fraction x of a trial happens with the event at another."""
    return x <= event + TOGETHER


cdef inline double sooner(double x, double first, double end) noexcept nogil:
    """The earlier of the event at x, which counts up to `end`, and the first so far."""
    return x if x <= end and x < first else first


cdef struct tl_bracket:
    double lo              # up to here nothing has happened: margin f_lo >= 0
    double f_lo
    double hi              # and here it has: f_hi < 0
    double f_hi
    double old             # the point that has left the bracket last
    double f_old
    int32_t points         # 3: there is one
    int32_t made_up        # 1: f_lo is no value of the margin
    int32_t side           # the end that has moved last, -1 lo, 1 hi
    double weight          # of the margin at the other end in the chord


cdef inline void start_bracket(tl_bracket* r, double lo, double f_lo, double hi, double f_hi, double small) noexcept nogil:
    """Between lo and hi. What leaves 0 at lo has no margin to begin with: any that keeps the first points away from it."""
    r.made_up = f_lo <= small
    r.lo = lo
    r.f_lo = fabs(f_hi) + small if r.made_up else f_lo
    r.hi = hi
    r.f_hi = f_hi
    r.points = 2
    r.side = 0
    r.weight = 1.0


cdef inline void narrow_bracket(tl_bracket* r, double x, double f) noexcept nogil:
    """The point x with the margin f takes the place of its end of the bracket."""
    cdef int32_t side = -1 if f >= 0.0 else 1
    cdef double less = 1.0 - f / (r.f_hi if side > 0 else r.f_lo)
    if r.made_up or not less > 0.0:
        less = 0.5
    r.weight = 1.0 if side != r.side else r.weight * less
    r.side = side
    r.points = 3
    if side > 0:
        r.old = r.hi
        r.f_old = r.f_hi
        r.hi = x
        r.f_hi = f
    else:
        r.old = r.lo
        r.f_old = r.f_lo
        r.points = 2 if r.made_up else 3
        r.made_up = 0
        r.lo = x
        r.f_lo = f


cdef double next_point(const tl_bracket* r) noexcept nogil:
    """The next point in the bracket."""
    cdef double a, fa, b, fb, c = r.old, fc = r.f_old, xi, phi, x
    a = r.hi if r.side > 0 else r.lo
    fa = r.f_hi if r.side > 0 else r.f_lo
    b = r.lo if r.side > 0 else r.hi
    fb = r.f_lo if r.side > 0 else r.f_hi
    x = r.lo
    if r.points == 3 and not r.made_up:
        xi = (a - b) / (c - b)
        phi = (fa - fb) / (fc - fb)
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            x = a + (b - a) * (fa / (fb - fa) * fc / (fb - fc)) + (c - a) * (fa / (fc - fa) * fb / (fc - fb))
    if not r.lo < x < r.hi:
        fb *= r.weight
        x = a + (b - a) * fa / (fa - fb)
    return x if r.lo <= x < r.hi else 0.5 * (r.lo + r.hi)


cdef struct tl_margin
ctypedef double (*tl_margin_at)(const tl_margin* g, double x) noexcept nogil

cdef struct tl_margin:
    tl_margin_at at        # its value at the fraction x, from what of the following it needs
    double[5] p            # polynomials of an angle
    double[4] v            # and of a speed, or of the margin itself
    const tl_curve* curve  # a law of a pressure
    double way             # 1.0 or -1.0
    const tl_model* m
    const tl_state* s
    int32_t i              # which element
    int32_t which          # which end of its regime


cdef double root_in(const tl_margin* g, tl_bracket* r) noexcept nogil:
    """The root in the bracket, to rounding; its lower end where the margin goes straight out from there."""
    cdef double near = larger(ROOT_STEP * (r.hi - r.lo), NARROW), x, f
    cdef int32_t it
    for it in range(ROOT_ROUNDS):
        if r.hi - r.lo <= 2.0 * near:
            break
        x = next_point(r)
        x = r.lo + near if x < r.lo + near else (r.hi - near if x > r.hi - near else x)
        f = g.at(g, x)
        if f == 0.0:
            if g.at(g, x + near) < 0.0:
                return x
            f = -r.f_hi                          # it does not fall yet
        narrow_bracket(r, x, f)
    if r.made_up:
        return r.lo
    return r.lo + (r.hi - r.lo) * r.f_lo / (r.f_lo - r.f_hi)


cdef double first_below(const tl_margin* g, double lo, const double* points, int32_t n, double tol) noexcept nogil:
    """The first x behind `lo` at which the margin falls below 0; NO_EVENT when it is at none of the points (n, ascending) below 0 by
    more than tol. Between them it rises or falls only; one that is 0 at a point but for tol may rise first."""
    cdef tl_bracket r
    cdef double f, f_lo
    cdef int32_t j
    for j in range(n):
        if points[j] <= lo:
            continue
        f = g.at(g, points[j])
        if f < -tol:
            f_lo = g.at(g, lo)
            if f_lo < -tol:
                return lo
            start_bracket(&r, lo, f_lo, points[j], f, tol)
            return root_in(g, &r)
        lo = points[j]
    return NO_EVENT


cdef double cubic_at(const tl_margin* g, double x) noexcept nogil:
    return poly_at(g.v[0], g.v[1], g.v[2], g.v[3], x)


cdef double cubic_falls(double c0, double c1, double c2, double c3, double tol) noexcept nogil:
    """first_below of a cubic over a whole trial."""
    cdef tl_margin g
    cdef double[3] points
    cdef double q = c2 * c2 - 3.0 * c1 * c3, r
    g.at = cubic_at
    g.v[0], g.v[1], g.v[2], g.v[3] = c0, c1, c2, c3
    points[0] = points[1] = points[2] = 1.0
    if q > 0.0:
        # its extremes, in forms in which nothing cancels
        q = -(c2 + (sqrt(q) if c2 >= 0.0 else -sqrt(q)))
        r = q / (3.0 * c3) if c3 != 0.0 else 1.0
        q = c1 / q if q != 0.0 else 1.0
        points[0] = r if r < q else q
        points[1] = larger(r, q)
        points[0] = points[0] if points[0] < 1.0 else 1.0
        points[1] = points[1] if points[1] < 1.0 else 1.0
    return first_below(&g, 0.0, points, 3, tol)


cdef double values_fall(double f0, double fm, double f1, int32_t four, double tol) noexcept nogil:
    """The same of the values at the start, (three points) the middle and the end of the trial."""
    if four:
        return cubic_falls(f0, -3.0 * f0 + 4.0 * fm - f1, 2.0 * f0 - 4.0 * fm + 2.0 * f1, 0.0, tol)
    return cubic_falls(f0, f1 - f0, 0.0, 0.0, tol)
