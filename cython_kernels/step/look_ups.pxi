# Look-ups of tables at a speed: a trial of three points follows one piece of each, continued beyond its ends, so that the forces of
# the trial are smooth; where a speed leaves its piece is an event. Torque and speed are continuous there, the slope of the torque is not.
#
# The piece is that of the speed at which the trial begins, on a breakpoint the one it goes to. It is held by the hint of the
# look-up (model/tables.pxd); outside of trials look-ups are free. The branch of a converter, and the sign of a curve over |w|, are
# held with it. A piece that the argument would pass within a step is not followed: such a table stands for a smooth law, and its
# breakpoints would be more events than a step has room for. Steep torques follow their whole table (rows.pxi), and so does
# everything in trials of two points, whose order a breakpoint does not lower, and in models with springs or dampers that the step
# does not resolve (m.resolved).
#
# Where an event is looked for by trials of other lengths (shortened.pxi), look-ups are numbered after contacts and stops.
#
# Equations: none: section 5, the table of guards.

cdef inline int32_t follows_pieces(const tl_model* m, const tl_state* s) noexcept nogil:
    return TL_NLU(m) > 0 and m.resolved and s.four


cdef inline double look_up_sign(const tl_model* m, const tl_state* s, const tl_lu* q) noexcept nogil:
    """What the speed of a look-up is multiplied with: 1, or its direction where the table is over its magnitude."""
    cdef double w
    if q.of == OF_FRICTION_CURVE:
        return <double>s.mode[q.i]
    if q.of == OF_LOSS:
        return <double>s.mode[m.ls[q.i].fr]
    if q.of == OF_CURVE and m.cv[q.i].absolute:
        w = s.now.w[q.row]
        return 1.0 if w > TOL_R or (w >= -TOL_R and s.wa[q.row] >= 0.0) else -1.0
    return 1.0


cdef inline int32_t steep_look_up(const tl_model* m, const tl_state* s, const tl_lu* q, const tl_eval* e) noexcept nogil:
    """1 when the torque that the look-up belongs to is found with the accelerations: somewhere between now and the instant e."""
    if q.of == OF_FRICTION_CURVE:
        return e.steep[q.i] != 0.0
    if q.of == OF_ENGINE:
        return passes_steep(s, e, q.row, m.eng[q.i].steep_lo, m.eng[q.i].steep_hi)
    if q.of == OF_CURVE:
        return passes_steep(s, e, q.row, m.cv[q.i].steep_lo, m.cv[q.i].steep_hi)
    if q.of == OF_DRIVE:
        return s.now.w[q.over] > m.tc[q.i].steep or e.w[q.over] > m.tc[q.i].steep
    if q.of == OF_OVERRUN:
        return s.now.w[q.over] > m.tc[q.i].steep_over or e.w[q.over] > m.tc[q.i].steep_over
    return 0


cdef inline int32_t acts_now(const tl_model* m, const tl_state* s, const tl_lu* q) noexcept nogil:
    """1 when the torque follows the table at the present instant, and is not steep there."""
    cdef double d, near
    if q.tab1 < 0 and q.tab2 < 0:
        return 0
    if q.of == OF_FRICTION_CURVE:
        return s.mode[q.i] & 1 and slips(m, s, q.i) and m.fr[q.i].dmu * m.fr[q.i].cgeo * s.now.raw[q.i] * m.fr[q.i].stiff <= 1.0
    if q.of == OF_LOSS:
        return s.mode[m.ls[q.i].fr] & 1
    if q.over >= 0:
        d = s.now.w[q.over] - s.now.w[q.row]
        near = near_breakpoint(1.0) * s.now.w[q.over]
        if s.now.w[q.over] <= TOL_R or d < -near:
            return 0
        if d <= near and (s.wa[q.over] < s.wa[q.row] or (s.wa[q.over] == s.wa[q.row] and q.of == OF_OVERRUN)):
            return 0
    return not steep_look_up(m, s, q, s.now)


cdef inline double slope_of(const tl_model* m, const tl_lu* q, int32_t piece) noexcept nogil:
    """Slope of the curve of a look-up on a piece (model/tables.pxd)."""
    return m.tab1[q.tab1].dy[piece - 1] if 0 < piece < m.tab1[q.tab1].n else 0.0


cdef void find_piece(const tl_model* m, tl_state* s, const tl_lu* q, tl_piece* p, double x, double trend) noexcept nogil:
    """The piece at the argument x, on a breakpoint the one it goes to; whether it can be held. Pieces of a curve that go on with the
    same slope are one."""
    cdef const double* at_ = m.tab1[q.tab1].x if q.tab1 >= 0 else m.tab2[q.tab2].x
    cdef int32_t n = m.tab1[q.tab1].n if q.tab1 >= 0 else m.tab2[q.tab2].nx, k = 0, begin, end, first, last
    cdef int32_t linear = q.tab1 >= 0 and n > 1 and m.tab1[q.tab1].linear, magnitude, through
    while k < n and ((trend > 0.0) if fabs(x - at_[k]) <= near_breakpoint(at_[k]) else x > at_[k]):
        k += 1
    magnitude = q.of == OF_FRICTION_CURVE or q.of == OF_LOSS or (q.of == OF_CURVE and m.cv[q.i].absolute)
    first = 1 if linear or (magnitude and n > 1 and at_[0] <= 0.0) else 0
    last = n - 1 if linear else n
    k = first if k < first else (last if k > last else k)
    begin = k
    end = k
    while q.tab1 >= 0 and begin > first and slope_of(m, q, begin - 1) == slope_of(m, q, k):
        begin -= 1
    while q.tab1 >= 0 and end < last and slope_of(m, q, end + 1) == slope_of(m, q, k):
        end += 1
    p.piece = k
    p.lo = at_[begin - 1] if begin > first else -UNLIMITED
    p.hi = at_[end] if end < last else UNLIMITED
    p.held = 1
    if q.over >= 0:
        # speed ratios from 0 to 1; below 0 the table counts as at 0
        p.held = k == 0 or x >= -near_breakpoint(0.0)
        p.lo = 0.0 if -UNLIMITED < p.lo < 0.0 else p.lo
        p.hi = 1.0 if p.hi > 1.0 else p.hi
    elif magnitude and p.lo <= 0.0:
        # standstill ends a slip; a force over |w| through 0 goes on along the same line
        through = q.of != OF_CURVE or (q.tab1 >= 0 and at_[0] == 0.0 and m.tab1[q.tab1].y[0] == 0.0)
        p.lo = -UNLIMITED if through else 0.0


cdef inline int32_t choose_piece_of(const tl_model* m, tl_state* s, int32_t l) noexcept nogil:
    """The piece that look-up l follows from now on, into its hint; 1 when the torque follows the table now."""
    cdef const tl_lu* q = &m.lu[l]
    cdef tl_piece* p = &s.look.now[l]
    cdef int32_t* hint = s.look.held + q.slot
    cdef double x, near, rate
    cdef int32_t acts = acts_now(m, s, q)
    if not acts:
        p.held = 0
    else:
        p.sgn = look_up_sign(m, s, q)
        x = p.sgn * s.now.w[q.row]
        if q.over >= 0:
            x = x / s.now.w[q.over]
        near = near_breakpoint(x)
        rate = p.sgn * s.wa[q.row] - (x * s.wa[q.over] if q.over >= 0 else 0.0)
        if not (p.held and p.lo + near < x < p.hi - near):
            find_piece(m, s, q, p, x, rate)
            p.below = p.lo - near_breakpoint(p.lo)
            p.above = p.hi + near_breakpoint(p.hi)
        if q.over >= 0:
            rate = rate / s.now.w[q.over]
        p.held = p.held and m.h * fabs(rate) < p.hi - p.lo
    if p.held:
        hint[0] = ~p.piece
        if q.of == OF_CURVE and q.tab1 >= 0:
            hint[1] = p.sgn < 0.0
    elif hint[0] < 0:
        hint[0] = 0
    return acts


cdef inline void hold_look_ups(const tl_model* m, tl_state* s) noexcept nogil:
    """From here on look-ups follow the pieces they are on; until release_look_ups."""
    cdef int32_t l, acts, of
    s.look.n_held = 0
    s.look.n_loose = 0
    s.look.known = 1
    for l in range(TL_NLU(m)):
        acts = choose_piece_of(m, s, l)
        of = m.lu[l].of
        if s.look.now[l].held:
            if s.look.now[l].lo > -UNLIMITED or s.look.now[l].hi < UNLIMITED:
                s.look.list[s.look.n_held] = l
                s.look.n_held += 1
        elif acts or (of != OF_FRICTION_CURVE and of != OF_LOSS):
            s.look.n_loose += 1
            s.look.list[TL_NLU(m) - s.look.n_loose] = l
    s.hint = s.look.held


cdef inline void release_look_ups(tl_state* s) noexcept nogil:
    s.hint = s.look.free


cdef inline int32_t off_piece(const tl_lu* q, const tl_piece* p, const tl_eval* e) noexcept nogil:
    """1 when the speed at the instant e is beyond its piece."""
    cdef double x = p.sgn * e.w[q.row], by = e.w[q.over] if q.over >= 0 else 1.0
    return x > p.above * by or x < p.below * by


cdef inline int32_t leaves_piece(const tl_model* m, const tl_state* s, int32_t l) noexcept nogil:
    """1 when the trial takes look-up l beyond its piece."""
    cdef const tl_lu* q = &m.lu[l]
    cdef const tl_piece* p = &s.look.now[l]
    return p.held and off_piece(q, p, s.end) and not (steep_look_up(m, s, q, s.end) or steep_look_up(m, s, q, s.em))


cdef inline int32_t pieces_change(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when a quiet trial leaves a piece, or a look-up that the last trial has not held may be held now. Whether friction acts
    changes at events only."""
    cdef int32_t c, l
    for c in range(s.look.n_held):
        l = s.look.list[c]
        if off_piece(&m.lu[l], &s.look.now[l], s.end):
            return 1
    for c in range(s.look.n_loose):
        if acts_now(m, s, &m.lu[s.look.list[TL_NLU(m) - 1 - c]]):
            return 1
    return 0


cdef inline double beyond(const tl_piece* p, double bound, double way, const double* x, const double* by) noexcept nogil:
    """Fraction of the trial at which the argument x/by, cubics both, goes beyond a bound, upward (way 1) or downward (-1). From a
    breakpoint it leaves its piece for another one by rounding alone, since it goes the way of the piece that was chosen."""
    cdef double g0 = way * (bound * by[0] - x[0]), found
    if fabs(bound) >= UNLIMITED:
        return NO_EVENT
    g0 = 0.0 if fabs(g0) <= near_breakpoint(bound) * by[0] else g0
    found = leaves(g0, way * (bound * by[1] - x[1]), way * (bound * by[2] - x[2]), way * (bound * by[3] - x[3]))
    return NO_EVENT if g0 == 0.0 and found <= TOGETHER else found


cdef double piece_end(const tl_model* m, const tl_state* s, int32_t l) noexcept nogil:
    """Fraction of the trial at which look-up l, which leaves its piece, does so."""
    cdef const tl_lu* q = &m.lu[l]
    cdef const tl_piece* p = &s.look.now[l]
    cdef double[4] x
    cdef double[4] by
    cdef double[5] angle
    cdef double up, down
    cdef int32_t i
    along_row(m, s, q.row, s.now.w[q.row], s.wa[q.row], angle, x)
    for i in range(4):
        x[i] = p.sgn * x[i]
        by[i] = 0.0
    by[0] = 1.0
    if q.over >= 0:
        along_row(m, s, q.over, s.now.w[q.over], s.wa[q.over], angle, by)
    up = beyond(p, p.hi, 1.0, x, by)
    down = beyond(p, p.lo, -1.0, x, by)
    return up if up < down else down


cdef inline double look_up_left(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t l, double* small) noexcept nogil:
    """What is left to the end of its piece for look-up l at the instant e, below 0 beyond it; small: so near it is at the end."""
    cdef const tl_lu* q = &m.lu[l]
    cdef const tl_piece* p = &s.look.now[l]
    cdef double x = p.sgn * e.w[q.row], by = e.w[q.over] if q.over >= 0 else 1.0, up = p.hi * by - x, down = x - p.lo * by
    small[0] = near_breakpoint(p.hi if up < down else p.lo) * by
    return up if up < down else down


cdef double find_look_up(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of the trial, up to `end`, at which the first look-up leaves its piece, NO_EVENT if none does."""
    cdef int32_t l, first_look = TL_NCON(m) + TL_NST(m)
    cdef double first = NO_EVENT, x, left, small = 0.0
    if not follows_pieces(m, s):
        return first
    for l in range(TL_NLU(m)):
        x = NO_EVENT
        if leaves_piece(m, s, l):
            x = piece_end(m, s, l)
            left = look_up_left(m, s, s.now, l, &small)
            if m.stiff_cut and not happens(x) and left > small:
                # the end is A-stable, the polynomial need not pass through it
                x = left / (left - look_up_left(m, s, s.end, l, &small))
        s.event.contact_x[first_look + l] = x
        first = sooner(x, first, end)
    return first
