# Look-ups of tables at a speed: a trial of three points follows one piece of each, continued beyond its ends, so that the forces of
# the trial are smooth; where a speed leaves its piece is an event. Torque and speed are continuous there, the slope of the torque is not.
#
# m.lu has the tables with breakpoints (model/look_ups.py). The piece is that of the speed at which the trial begins, on a breakpoint
# the one it goes to: it depends on the present state alone. The hints of the look-up hold it (model/tables.pxd). A piece that the
# argument would pass within a step is not followed. Steep torques follow their whole table (rows.pxi), and so do trials of two points.
#
# Equations: none: section 5, the table of guards.

#: of the width of a piece: while its argument changes by less in a step, it is not asked whether the next one passes the piece
cdef double SMALL_PART = 0.25


cdef inline int32_t acts_now(const tl_model* m, const tl_state* s, const tl_lu* q) noexcept nogil:
    """1 when the torque may follow the table at the present instant; changes at events only."""
    if q.of == OF_FRICTION_CURVE:
        return s.mode[q.i] & 1 and slips(m, s, q.i)
    if q.of == OF_LOSS:
        return s.mode[m.ls[q.i].fr] & 1
    return 1


cdef inline int32_t steep_at(const tl_model* m, const tl_state* s, const tl_lu* q, const tl_piece* p, const tl_eval* e) noexcept nogil:
    """1 when the torque is steep at the instant e or between now and then, or the argument not defined there."""
    if p.over >= 0:
        return not TOL_R < e.w[p.over] <= p.most
    if q.of == OF_FRICTION_CURVE:
        return e.raw[q.i] > p.most and p.sgn * e.w[p.row] < m.fr[q.i].w_steep
    if q.of == OF_ENGINE:
        return passes_steep(s, e, q.row, m.eng[q.i].steep_lo, m.eng[q.i].steep_hi)
    return q.of == OF_CURVE and passes_steep(s, e, q.row, m.cv[q.i].steep_lo, m.cv[q.i].steep_hi)


cdef inline double argument(const tl_piece* p, const tl_eval* e) noexcept nogil:
    return p.sgn * e.w[p.row] / (e.w[p.over] if p.over >= 0 else 1.0)


cdef inline double argument_rate(const tl_model* m, const tl_state* s, const tl_piece* p, double x) noexcept nogil:
    """By how much the argument x changes in a step, to the first order."""
    cdef double a = p.sgn * row_dot(m, p.row, s.now.a)
    return m.h * (a if p.over < 0 else (a - x * row_dot(m, p.over, s.now.a)) / s.now.w[p.over])


cdef inline void choose_argument(const tl_model* m, const tl_state* s, const tl_lu* q, tl_piece* p) noexcept nogil:
    """Rows, sign, and where the torque becomes steep. A converter has its slower side over its faster one."""
    cdef int32_t over
    p.row = q.row
    p.over = q.over
    p.sgn = 1.0
    p.most = UNLIMITED
    if q.of == OF_FRICTION_CURVE:
        p.sgn = <double>s.mode[q.i]
        if m.fr[q.i].dmu * m.fr[q.i].cgeo * m.fr[q.i].stiff > 0.0:
            p.most = 1.0 / (m.fr[q.i].dmu * m.fr[q.i].cgeo * m.fr[q.i].stiff)
    elif q.of == OF_LOSS:
        p.sgn = <double>s.mode[m.ls[q.i].fr]
    elif q.of == OF_CONVERTER:
        p.most = m.tc[q.i].steep
        if s.now.w[q.row] > s.now.w[q.over]:
            p.row = q.over
            p.over = q.row
            p.most = m.tc[q.i].steep_over


cdef inline int32_t goes_beyond(const double* breakpoint, double x, double trend) noexcept nogil:
    """1 when the argument x is above the breakpoint, or on it and goes up by the trend in this step."""
    cdef double near = near_breakpoint(breakpoint[0])
    return trend > near if fabs(x - breakpoint[0]) <= near else x > breakpoint[0]


cdef void choose_look_up(const tl_model* m, tl_state* s, const tl_lu* q, tl_piece* p) noexcept nogil:
    """The piece that a look-up, which acts, follows from now on, into its hints."""
    cdef const double* at_ = m.lu_x + q.first
    cdef int32_t* hint = s.look.held + q.slot
    cdef int32_t k = p.piece, j, overrun
    cdef double x, near, rate, trend
    choose_argument(m, s, q, p)
    p.held = 0
    p.inner_lo = UNLIMITED                       # nowhere: it is asked again in the next step
    for j in range(q.tables):
        hint[j] = 0
    # the side of a converter is chosen anew in each step while its torque is steep
    p.steep = steep_at(m, s, q, p, s.now)
    if p.steep:
        p.steep = p.over < 0
        return
    x = argument(p, s.now)
    rate = argument_rate(m, s, p, x)
    overrun = p.row != q.row
    trend = -rate if overrun else rate
    x = 2.0 - x if overrun else x
    while k > 0 and not goes_beyond(at_ + k - 1, x, trend):
        k -= 1
    while k < q.n and goes_beyond(at_ + k, x, trend):
        k += 1
    p.piece = k
    p.lo = at_[k - 1] if k > 0 else -UNLIMITED
    p.hi = at_[k] if k < q.n else UNLIMITED
    if q.of == OF_CONVERTER and (p.lo >= 1.0) != overrun:
        # at w_p = w_t it goes over to the other side
        overrun = not overrun
        p.row = q.over if overrun else q.row
        p.over = q.row if overrun else q.over
    if overrun:
        x = p.lo
        p.lo = 2.0 - p.hi if p.hi < UNLIMITED else -UNLIMITED
        p.hi = 2.0 - x
    if fabs(rate) >= p.hi - p.lo:
        return
    near = near_breakpoint(p.lo)
    p.below = p.lo - near
    p.inner_lo = p.lo + near
    near = near_breakpoint(p.hi)
    p.above = p.hi + near
    p.inner_hi = p.hi - near
    for j in range(q.tables):
        hint[j] = m.lu_hint[q.hints + k * q.tables + j]
        p.held |= hint[j] < 0


cdef void hold_look_ups(const tl_model* m, tl_state* s) noexcept nogil:
    """The pieces that look-ups follow in a trial from the present instant."""
    cdef int32_t l, j
    s.look.n_acting = 0
    for l in range(TL_NLU(m)):
        if acts_now(m, s, &m.lu[l]):
            s.look.list[s.look.n_acting] = l
            s.look.n_acting += 1
            choose_look_up(m, s, &m.lu[l], &s.look.now[l])
        else:
            for j in range(m.lu[l].tables):
                s.look.held[m.lu[l].slot + j] = 0
    s.look.known = 1


cdef inline int32_t leaves_piece(const tl_model* m, const tl_state* s, int32_t l) noexcept nogil:
    """1 when the trial takes look-up l beyond its piece."""
    cdef const tl_lu* q = &m.lu[l]
    cdef const tl_piece* p = &s.look.now[l]
    cdef double x, by
    if not p.held:
        return 0
    x = p.sgn * s.end.w[p.row]
    by = s.end.w[p.over] if p.over >= 0 else 1.0
    return (x > p.above * by or x < p.below * by) and not (steep_at(m, s, q, p, s.end) or steep_at(m, s, q, p, s.em))


cdef inline int32_t passes_slowly(const tl_piece* p, const tl_eval* e, const tl_eval* e1) noexcept nogil:
    """1 when from the instant e to e1 an argument stays in its piece, away from the ends, and passes a small part of it."""
    cdef double x0 = p.sgn * e.w[p.row], x1 = p.sgn * e1.w[p.row], by0, by1
    if p.over < 0:
        return p.inner_lo < x1 < p.inner_hi and fabs(x1 - x0) < SMALL_PART * (p.hi - p.lo)
    by0 = e.w[p.over]
    by1 = e1.w[p.over]
    return p.inner_lo * by1 < x1 < p.inner_hi * by1 and fabs(x1 * by0 - x0 * by1) < SMALL_PART * (p.hi - p.lo) * by0 * by1


cdef inline int32_t pieces_change(const tl_model* m, tl_state* s) noexcept nogil:
    """1 when a quiet trial leaves a piece; and whether the pieces hold for its end, too."""
    cdef int32_t c, l, steep
    for c in range(s.look.n_acting):
        l = s.look.list[c]
        steep = steep_at(m, s, &m.lu[l], &s.look.now[l], s.end)
        if s.look.now[l].steep and steep:
            continue
        if steep or not passes_slowly(&s.look.now[l], s.now, s.end):
            s.look.known = 0
            if leaves_piece(m, s, l):
                return 1
    return 0


cdef double piece_end(const tl_model* m, const tl_state* s, const tl_piece* p) noexcept nogil:
    """Fraction of the trial at which an argument, which leaves its piece, does so."""
    cdef double[4] x
    cdef double[4] by
    cdef double[5] angle
    cdef double up, down
    cdef int32_t i
    row_polynomial(m, s, p.row, angle, x)
    for i in range(4):
        x[i] = p.sgn * x[i]
        by[i] = 0.0
    by[0] = 1.0
    if p.over >= 0:
        row_polynomial(m, s, p.over, angle, by)
    up = beyond(p.hi, 1.0, x, by)
    down = beyond(p.lo, -1.0, x, by)
    return up if up < down else down


cdef inline double look_up_left(const tl_piece* p, const tl_eval* e, double* small) noexcept nogil:
    """What is left to the end of its piece at the instant e, below 0 beyond it; small: so near it is at the end."""
    cdef double x = p.sgn * e.w[p.row], by = e.w[p.over] if p.over >= 0 else 1.0, up = p.hi * by - x, down = x - p.lo * by
    small[0] = near_breakpoint(p.hi if up < down else p.lo) * by
    return up if up < down else down


cdef double find_look_up(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of the trial, up to `end`, at which the first look-up leaves its piece, NO_EVENT if none does."""
    cdef int32_t c, l
    cdef double first = NO_EVENT, x, left, small = 0.0
    for c in range(s.look.n_acting if s.four else 0):
        l = s.look.list[c]
        x = NO_EVENT
        if leaves_piece(m, s, l):
            x = piece_end(m, s, &s.look.now[l])
            left = look_up_left(&s.look.now[l], s.now, &small)
            if m.unresolved and not happens(x) and left > small:
                # the end is A-stable, the polynomial need not pass through it
                x = left / (left - look_up_left(&s.look.now[l], s.end, &small))
        s.event.contact_x[TL_NCON(m) + TL_NST(m) + l] = x
        first = sooner(x, first, end)
    return first
