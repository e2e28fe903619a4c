# Gears of changing ratio at order 4: the ratio i and its rate belong to each point of the trial.
#
# Against the lock pattern, which holds the rows a - p b of the ratio p of the present instant, that is at a stage
#
#     (a - p b) v = rate b.u + share a.v + (i - p) b.v          force: tau (a - p b) - (i - p) tau b
#
# Breakpoints of curves over an input are known before the step and divide it (next_ratio_break), those over the speed are events
# (find_ratio). Order 2 (driven.pxi) takes the chord over the step instead.
#
# Equations: (58).

#: of the argument of a curve, or of 1: nearer to a breakpoint counts as on it
cdef double ON_BREAKPOINT = 1e-9
#: of a ratio, and of a speed or 1 rad/s or m/s (driven.pxi): beyond it a prescribed motion has jumped
cdef double JUMP = 1e-9


cdef enum:
    MEETINGS = 3           # times ratios over a speed and the speeds that fit them are taken from each other


cdef inline int32_t moving(const tl_model* m) noexcept nogil:
    """1 where ratios belong to the points of a trial."""
    return TL_NVG(m) > 0 and m.order == 4


cdef inline double ratio_on(const tl_ratio* r, double x) noexcept nogil:
    """The ratio on the piece at the argument x."""
    return r.y + r.slope * (x - r.x)


cdef double ratio_argument(const tl_model* m, const tl_state* s, int32_t d, double theta) noexcept nogil:
    """What the ratio of gear d is a function of, now."""
    if m.vg[d].kind == RATIO_SPEED:
        return fabs(row_dot(m, m.vg[d].row_a, s.now.u))
    return input_at(m, s, m.vg[d].input, theta)


cdef inline double near_breakpoint(double x) noexcept nogil:
    return ON_BREAKPOINT * (1.0 + fabs(x))


cdef void choose_piece(const tl_model* m, tl_state* s, int32_t d, double theta) noexcept nogil:
    """The piece of the curve of gear d that holds from now on; on a breakpoint the one it goes to."""
    cdef tl_ratio* r = &s.gears.now[d]
    cdef const tl_table1* t
    cdef double x = ratio_argument(m, s, d, theta), trend, v
    cdef int32_t k = 0
    r.x = 0.0
    r.y = 0.0
    r.slope = 1.0
    r.lo = -UNLIMITED
    r.hi = UNLIMITED
    r.sgn = 1.0
    if m.vg[d].kind != RATIO_SPEED and m.vg[d].kind != RATIO_CURVE:
        return
    if m.vg[d].kind == RATIO_SPEED:
        v = row_dot(m, m.vg[d].row_a, s.now.u)
        trend = row_dot(m, m.vg[d].row_a, s.now.a)
        # at standstill the way it goes
        r.sgn = 1.0 if (trend >= 0.0 if x <= ON_BREAKPOINT else v >= 0.0) else -1.0
        trend *= r.sgn
    else:
        trend = input_slope(m, s, m.vg[d].input, theta)
        if trend == 0.0 and not s.held:
            trend = s.in_c[2 * TL_NIN(m) + m.vg[d].input]
    t = &m.tab1[m.vg[d].tab]
    while k < t.n and ((trend > 0.0) if fabs(x - t.x[k]) <= near_breakpoint(t.x[k]) else x > t.x[k]):
        k += 1
    if k > 0:
        r.lo = t.x[k - 1]
    if k < t.n:
        r.hi = t.x[k]
    if t.n == 1 or (not t.linear and (k == 0 or k == t.n)):
        r.x = x
        r.y = t.y[0] if k == 0 else t.y[k - 1]
        r.slope = 0.0
    else:
        k = 0 if k == 0 else (t.n - 2 if k == t.n else k - 1)
        r.x = t.x[k]
        r.y = t.y[k]
        r.slope = t.dy[k]
    if m.vg[d].kind == RATIO_SPEED and r.lo < 0.0:
        r.lo = 0.0


cdef int32_t ratios_now(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Pieces, ratios and their rates at the present instant, the fraction theta of the step. 1 after a jump."""
    cdef int32_t d, jumped = 0
    cdef double i0
    cdef tl_ratio* r
    for d in range(TL_NVG(m)):
        r = &s.gears.now[d]
        choose_piece(m, s, d, theta)
        i0 = ratio_on(r, ratio_argument(m, s, d, theta))
        if m.vg[d].kind == RATIO_SPEED:
            s.gears.rate[d] = r.slope * r.sgn * row_dot(m, m.vg[d].row_a, s.now.a)
        else:
            s.gears.rate[d] = r.slope * input_slope(m, s, m.vg[d].input, theta) * m.inv_h
            jumped |= fabs(i0 - s.ratio[d]) > JUMP * (fabs(i0) + fabs(s.ratio[d]))
        s.gears.next[d] = i0
    return jumped | (s.fresh[0] != 0)


cdef void take_ratios(const tl_model* m, tl_state* s) noexcept nogil:
    """The rows of the ratios found, and their pattern: of the present instant, or (order 2) of the end of the step."""
    cdef int32_t d, moved = 0
    for d in range(TL_NVG(m)):
        if s.gears.next[d] != s.ratio[d]:
            s.ratio[d] = s.gears.next[d]
            moved = 1
    if moved:
        set_ratio_rows(m, s)
        s.pat = pattern_of(m, s)


cdef void stage_ratios(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Ratios of the stages, their rates and shares, at the speeds as predicted."""
    cdef int32_t d, st
    cdef double theta
    cdef const double* u
    cdef tl_ratio* r
    for d in range(TL_NVG(m)):
        r = &s.gears.now[d]
        for st in range(stages if stages > 0 else 1):
            theta = stage_theta(s, stages, st)
            if m.vg[d].kind == RATIO_SPEED:
                u = stage_speeds(s, stages, st)
                r.i[st] = ratio_on(r, r.sgn * row_dot(m, m.vg[d].row_a, u)) if stages > 0 else s.ratio[d]
                r.rate[st] = 0.0
                r.share[st] = r.slope * r.sgn * row_dot(m, m.vg[d].row_b, u)
            else:
                r.i[st] = ratio_on(r, input_at(m, s, m.vg[d].input, theta)) if stages > 0 else s.ratio[d]
                r.rate[st] = r.slope * input_slope(m, s, m.vg[d].input, theta) * m.inv_h
                r.share[st] = 0.0


cdef inline double gear_rate(const tl_model* m, const tl_state* s, int32_t d, int32_t stages, int32_t st) noexcept nogil:
    """(w_a - i w_b)' of gear d at a stage, at the speeds as predicted and the acceleration of now."""
    cdef const double* u = stage_speeds(s, stages, st)
    if moving(m) and stages > 0:
        return s.gears.now[d].rate[st] * row_dot(m, m.vg[d].row_b, u)
    return s.gears.rate[d] * row_dot(m, m.vg[d].row_b, u)


cdef inline double gear_change(const tl_model* m, const tl_state* s, int32_t d, double theta, double ahead) noexcept nogil:
    """What (w_a - p w_b)' of gear d changes by from the present instant until `ahead` (of h) later, at the fraction theta of the step: to
    the first order, with the ratio there."""
    cdef const tl_ratio* r = &s.gears.now[d]
    cdef double dt = ahead * m.h, a = row_dot(m, m.vg[d].row_b, s.now.a), rate = s.gears.rate[d], ratio
    if m.vg[d].kind == RATIO_SPEED:
        ratio = s.ratio[d] + dt * rate
    else:
        ratio = ratio_on(r, input_at(m, s, m.vg[d].input, theta))
        rate = r.slope * input_slope(m, s, m.vg[d].input, theta) * m.inv_h
    return (rate - s.gears.rate[d]) * row_dot(m, m.vg[d].row_b, s.now.u) + rate * dt * a + (ratio - s.ratio[d]) * a


cdef double next_ratio_break(const tl_model* m, const tl_state* s, double done, double last) noexcept nogil:
    """Where in the step the argument of a curve over an input next passes a breakpoint; `last` if nowhere before it."""
    cdef int32_t d, k, i, nin = TL_NIN(m)
    cdef double first = last, c0, c1, c2, q, x
    cdef double[2] root
    cdef const tl_table1* t
    if s.held:
        return last
    for d in range(TL_NVG(m)):
        if m.vg[d].kind != RATIO_CURVE:
            continue
        t = &m.tab1[m.vg[d].tab]
        i = m.vg[d].input
        c1 = s.in_c[nin + i]
        c2 = s.in_c[2 * nin + i]
        for k in range(t.n):
            if fabs(c1) + fabs(c2) <= near_breakpoint(t.x[k]):
                continue                         # at rest but for rounding
            c0 = s.in_c[i] - t.x[k]
            q = c1 * c1 - 4.0 * c2 * c0
            if q < 0.0:
                continue
            # the forms of both roots in which nothing cancels
            q = -0.5 * (c1 + (sqrt(q) if c1 >= 0.0 else -sqrt(q)))
            root[0] = q / c2 if c2 != 0.0 else UNLIMITED
            root[1] = c0 / q if q != 0.0 else UNLIMITED
            for x in root:
                if done + BREAKS_APART < x < first - BREAKS_APART:
                    first = x
    return first


cdef double beyond(double bound, double way, const double* x, const double* by) noexcept nogil:
    """Fraction of the trial at which the argument x/by, cubics both, goes beyond a bound, upward (way 1) or downward (-1). From a
    breakpoint it leaves its piece for another one by rounding alone, since it goes the way of the piece that was chosen."""
    cdef double[4] g
    cdef double found
    cdef int32_t c
    if fabs(bound) >= UNLIMITED:
        return NO_EVENT
    g[0] = way * (bound * by[0] - x[0])
    g[0] = 0.0 if fabs(g[0]) <= near_breakpoint(bound) * by[0] else g[0]
    for c in range(1, 4):
        g[c] = way * (bound * by[c] - x[c])
    found = cubic_falls(g[0], g[1], g[2], g[3], MARGIN_ROUNDING * (fabs(g[0]) + fabs(g[1]) + fabs(g[2]) + fabs(g[3])))
    return NO_EVENT if g[0] == 0.0 and found <= TOGETHER else found


cdef double find_ratio(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of the trial at which a ratio over the speed leaves its piece, NO_EVENT if none does up to `end`."""
    cdef int32_t d, c
    cdef double first = NO_EVENT
    cdef double[5] p
    cdef double[4] v
    cdef double[4] one
    one[0], one[1], one[2], one[3] = 1.0, 0.0, 0.0, 0.0
    for d in range(TL_NVG(m)):
        if m.vg[d].kind != RATIO_SPEED:
            continue
        row_polynomial(m, s, m.vg[d].row_a, p, v)
        for c in range(4):
            v[c] = s.gears.now[d].sgn * v[c]
        first = sooner(beyond(s.gears.now[d].hi, 1.0, v, one), first, end)
        first = sooner(beyond(s.gears.now[d].lo, -1.0, v, one), first, end)
    return first


cdef void ratio_balance(const tl_model* m, tl_state* s, double x, tl_cvec wm, tl_cvec w1, int32_t four) noexcept nogil:
    """Work of the gears up to the fraction x of a trial, as heat of opposite sign: rounding where their rows are held, and
    what the polynomial of the trial drifts from them between its points."""
    cdef int32_t d, i, a, b
    cdef double t0, tm, t1
    cdef const double* ratio
    for d in range(TL_NVG(m)):
        i = m.vg[d].fr
        a = m.vg[d].row_a
        b = m.vg[d].row_b
        ratio = s.gears.now[d].i
        t0 = s.now.tau[i]
        tm = s.em.tau[i]
        t1 = s.end.tau[i]
        s.e_fr[i] -= work_on(m, s, four, a, x, wm[a], w1[a], t0, tm, t1) + work_on(
            m, s, four, b, x, wm[b], w1[b], -s.ratio[d] * t0, -ratio[0] * tm, -ratio[1] * t1)


cdef int32_t set_ratios(const tl_model* m, tl_state* s) noexcept nogil:
    """Ratios of the variable gears at the end of this step and their rates; 1 when the speeds do not fit any more (a
    stepped ratio) and must be projected."""
    cdef int32_t d, changed = 0, hint
    cdef double i0, i1, v, slope
    for d in range(TL_NVG(m)):
        if m.vg[d].kind == RATIO_SPEED:
            v = row_dot(m, m.vg[d].row_a, s.now.u)
            choose_piece(m, s, d, 0.0)
            i0 = ratio_on(&s.gears.now[d], fabs(v))
            slope = s.gears.now[d].slope * (1.0 if v >= 0.0 else -1.0) * row_dot(m, m.vg[d].row_a, s.now.a)
            i1 = i0 + m.h * slope
        else:
            i0 = input_at(m, s, m.vg[d].input, 0.0)
            i1 = input_at(m, s, m.vg[d].input, 1.0)
            if m.vg[d].kind == RATIO_CURVE:
                hint = 0
                i0 = table1(&m.tab1[m.vg[d].tab], i0, &hint)
                i1 = table1(&m.tab1[m.vg[d].tab], i1, &hint)
        s.gears.rate[d] = (i1 - i0) * m.inv_h
        s.gears.next[d] = i1
        if fabs(i0 - s.ratio[d]) > JUMP * (fabs(i0) + fabs(s.ratio[d])) or s.fresh[0]:
            s.ratio[d] = i0
            changed = 1
    return changed
