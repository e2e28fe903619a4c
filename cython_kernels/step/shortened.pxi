# Trials of another length than h, for models with springs or dampers that the step does not resolve (m.stiff_cut, derive.py).
#
# The end of a step is A-stable, a point of its polynomial inside is not: every cut there would add energy to the
# unresolved oscillation. Such models therefore make each trial with the length that is used: up to the event, and from
# there to the end of the step. The matrices of that length are built on the spot (n^3, at events only).

#: of what the margin of a contact is formed from: how far a trial may end beyond its regime
cdef double REGIME_TOL = 1e-6


cdef enum:
    REFINE = 16            # trials at most to find the length that ends at the event


cdef void shorten(const tl_model* m, tl_state* s, double part) noexcept nogil:
    """The next trial spans part*h: matrices of that length."""
    s.part = part
    s.h = part * m.h
    s.pat = cut_pattern(m, s, s.h)


cdef inline double event_margin(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i,
                                double sgn) noexcept nogil:
    """What falls to 0 at the event of element i: slip (sliding the way sgn), or what is left to its limit on that side.
    Contacts are numbered after the friction elements."""
    if i >= TL_NF(m):
        return contact_left(m, s, e, i - TL_NF(m))
    if s.mode[i] != 0:
        return sgn * e.w[TL_FR_ROW(m, i)]
    return e.lim_b[i] - e.tau[i] if sgn > 0.0 else e.lim_f[i] + e.tau[i]


cdef int32_t first_passed(const tl_model* m, tl_state* s, int32_t but, double* sgn) noexcept nogil:
    """The sliding element whose slip the trial turns round most, other than `but`, and its direction; or a contact that has
    left its regime (numbered after the elements); -1 if there is none."""
    cdef int32_t i, worst = -1
    cdef double w, x = 0.0, least = -TOL_R, most = 0.0
    for i in range(TL_NCON(m) + TL_NST(m)):
        if TL_NF(m) + i != but:
            w = contact_passed(m, s, i, &x)
            if w > most:
                most = w
                worst = TL_NF(m) + i
    if worst >= 0:
        return worst
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and i != but:
            w = s.mode[i] * s.end.w[TL_FR_ROW(m, i)]
            if w < least:
                least = w
                worst = i
                sgn[0] = <double>s.mode[i]
    return worst


cdef int32_t beyond_limit(const tl_model* m, tl_state* s, int32_t but, double* sgn, double* left,
                          int32_t* middle) noexcept nogil:
    """The element at rest, other than `but`, that a trial of three points takes furthest beyond its limit: on which side,
    by how much (left < 0), and whether in its middle; -1 if there is none. Rounding does not count. (A trial of two points
    is damped as strongly as it is unresolved: its impulse stays within the capacity.)"""
    cdef int32_t i, side, point, worst = -1
    cdef double way, x, most = -torque_rounding(m, s)
    cdef tl_eval* e
    if not s.four or TL_NCON(m) == 0:
        return -1
    for i in range(TL_NF(m)):
        if s.mode[i] != 0 or i == but:
            continue
        for point in range(2):
            e = &s.em if point else s.end
            for side in range(2):
                way = 1.0 if side == 0 else -1.0
                x = event_margin(m, s, e, i, way)
                if x < most:
                    most = x
                    worst = i
                    sgn[0] = way
                    left[0] = x
                    middle[0] = point
    return worst


cdef int32_t left_regime(const tl_model* m, tl_state* s) noexcept nogil:
    """1 when the trial's end is so far beyond the regime of a contact that its potential would jump."""
    cdef int32_t i
    cdef double x = 0.0
    for i in range(TL_NCON(m) + TL_NST(m)):
        if s.contact_x[i] > 1.5 and contact_passed(m, s, i, &x) > REGIME_TOL:
            return 1
        if s.contact_x[i] <= 1.5 and -contact_left(m, s, s.end, i) > REGIME_TOL * contact_size(m, s, i):
            return 1
    return 0


cdef double accept_shortened(const tl_model* m, tl_state* s, double done, double x) noexcept nogil:
    """The trial up to its fraction x, made again with that length: its end is A-stable, a point inside is not.

    Where a slip comes to zero or a torque to its limit, the length is refined until it does so at the end (false
    position); what is left of a slip is taken out by projection. The ends of the longer trial stay in s.end, as the trend for the decision. Returns the fraction.
    """
    cdef int32_t i, it, other, found = 0, stops = -1, n = TL_N(m), nf = TL_NF(m)
    cdef int32_t middle = 0
    cdef double beyond = 0.0
    cdef double turn = 0.0, part = s.part, sgn = 0.0, lo = 0.0, hi = 1.0, f_lo = 0.0, f_hi = 0.0, f = 0.0, small = 0.0
    memcpy(s.ex.port, s.end.port, TL_NPORT(m) * sizeof(double))
    memcpy(s.ex.cap_f, s.end.cap_f, nf * sizeof(double))
    memcpy(s.ex.cap_b, s.end.cap_b, nf * sizeof(double))
    memcpy(s.ex.lim_f, s.end.lim_f, nf * sizeof(double))
    memcpy(s.ex.lim_b, s.end.lim_b, nf * sizeof(double))
    for i in range(nf):
        if s.slip_x[i] <= x + 1e-9:
            if s.mode[i] & 1:
                s.toggled[i] |= 2
            stops = i
    if stops >= 0:
        sgn = <double>s.mode[stops] if s.mode[stops] != 0 else (1.0 if s.end.tau[stops] > s.end.lim_b[stops] else -1.0)
        small = fabs(s.end.lim_b[stops]) + fabs(s.end.lim_f[stops])
        # of what blocks one way without limit only the other way counts, and there its limit may be 0
        small = 1e-12 * small if small < NO_LIMIT else torque_rounding(m, s)
        small = TOL_R if s.mode[stops] != 0 else small
    for i in range(TL_NCON(m) + TL_NST(m)):
        if s.contact_x[i] <= x + 1e-9:
            stops = nf + i
            small = 1e-11 * contact_size(m, s, i)
    if stops >= 0:
        f_lo = event_margin(m, s, s.now, stops, sgn)
        f_hi = event_margin(m, s, s.end, stops, sgn)
        if f_lo <= small:
            f_lo = fabs(f_hi) + small        # leaves zero first: any bracket that keeps away from the start
    s.hist[0] = 0                            # the history is that of another length
    for i in range(n):
        s.now.hs1[i] = 0.0
        s.hs2[i] = 0.0
    for it in range(REFINE):
        shorten(m, s, x * part)
        trial(m, s, done)
        other = first_passed(m, s, stops, &turn)
        if other >= 0 and it < REFINE - 1:
            # the shorter trial turns another slip round: that one first, and what was to happen at x has not happened
            if stops >= nf:
                s.contact_x[stops - nf] = 2.0
            for i in range(nf):
                s.toggled[i] &= 2
            stops = other
            sgn = turn
            small = TOL_R if stops < nf else 1e-11 * contact_size(m, s, stops - nf)
            lo = 0.0
            f_lo = event_margin(m, s, s.now, stops, sgn)
            hi = x
            f_hi = event_margin(m, s, s.end, stops, sgn)
            if f_lo <= small:
                f_lo = fabs(f_hi) + small
            if stops < nf:
                s.toggled[stops] |= 2
            else:
                s.contact_x[stops - nf] = 0.0
            x = hi * f_lo / (f_lo - f_hi)
            continue
        other = beyond_limit(m, s, stops, &turn, &beyond, &middle) if it < REFINE - 1 else -1
        if other >= 0:
            # the shorter trial resolves what the longer one did not: an element at rest gives way first
            if stops >= nf:
                s.contact_x[stops - nf] = 2.0
            for i in range(nf):
                s.toggled[i] = 0
            stops = other
            sgn = turn
            small = fabs(s.end.lim_b[stops]) + fabs(s.end.lim_f[stops])
            small = 1e-12 * small if small < NO_LIMIT else torque_rounding(m, s)
            lo = 0.0
            f_lo = event_margin(m, s, s.now, stops, sgn)
            hi = 0.5 * x if middle else x
            f_hi = beyond
            if f_lo <= small:
                f_lo = fabs(f_hi) + small
            x = hi * f_lo / (f_lo - f_hi)
            continue
        if stops < 0:
            break
        f = event_margin(m, s, s.end, stops, sgn)
        if fabs(f) <= small or it == REFINE - 1 or (f > 0.0 and f_hi >= 0.0):
            break                            # found; or it did not come to zero in a trial of this length
        if f > 0.0:
            if lo > 0.0:
                f_hi *= 0.5                  # Illinois: the same end moved twice
            lo = x
            f_lo = f
        else:
            if hi < 1.0:
                f_lo *= 0.5
            hi = x
            f_hi = f
        x = lo + (hi - lo) * f_lo / (f_lo - f_hi)
        if it == REFINE - 2 and lo > 0.0:
            x = lo                               # not found: rather a little before the event than beyond it
    if stops >= nf and f > small:
        s.contact_x[stops - nf] = 2.0            # not reached after all: it keeps its regime
    if TL_NCON(m) + TL_NST(m) > 0 and left_regime(m, s):
        return REFUSED
    if s.four and TL_NCON(m) > 0:
        for i in range(nf):
            # turned round by more than rounding: to take that out would be an impulse beyond what the element can carry
            if s.toggled[i] & 2 and s.mode[i] * s.end.w[TL_FR_ROW(m, i)] < -1e3 * TOL_R:
                return REFUSED
    if accept(m, s, done, 1.0):
        return REFUSED
    s.part = part
    s.h = part * m.h
    memcpy(s.end.port, s.ex.port, TL_NPORT(m) * sizeof(double))
    memcpy(s.end.cap_f, s.ex.cap_f, nf * sizeof(double))
    memcpy(s.end.cap_b, s.ex.cap_b, nf * sizeof(double))
    memcpy(s.end.lim_f, s.ex.lim_f, nf * sizeof(double))
    memcpy(s.end.lim_b, s.ex.lim_b, nf * sizeof(double))
    for i in range(nf):
        if s.toggled[i] & 2 and s.mode[i] * s.now.w[TL_FR_ROW(m, i)] > 1e3 * TOL_R:
            s.toggled[i] &= 1                    # has not come to zero
        if s.toggled[i] & 2:
            found = 1
    if found:
        rest_slips(m, s)
    return x


cdef void rest_slips(const tl_model* m, tl_state* s) noexcept nogil:
    """Slips marked in s.toggled (bit 1) to zero: momentum is kept, the energy can only fall and counts as their heat."""
    cdef int32_t i, hit = 0, nf = TL_NF(m)
    cdef double e0 = kinetic_energy(m, s)
    for i in range(nf):
        s.slip_x[i] = <double>s.mode[i]
        if s.toggled[i] & 2:
            s.mode[i] = 0
            hit = i
    s.pat = pattern_of(m, s)
    if TL_ND(m) + TL_NVG(m) > 0:
        for i in range(nf):
            s.g[i] = slip_of(m, s, i, s.now.u)
    project(m, s, s.g)
    for i in range(nf):
        s.mode[i] = <int64_t>s.slip_x[i]
        s.toggled[i] &= 1
    e0 -= kinetic_energy(m, s)
    s.e_fr[hit] += e0 if e0 > 0.0 else 0.0
