# Trials of another length than h, for models with springs or dampers that the step does not resolve (m.stiff_cut, derive.py).
#
# The end of a step is A-stable, a point of its polynomial inside is not: every cut there would add energy to the
# unresolved oscillation. Such models therefore make each trial with the length that is used: up to the event, and from
# there to the end of the step. The matrices of that length are built on the spot (n^3, at events only).

cdef enum:
    REFINE = 12            # trials at most to find the length that ends at the event


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


cdef double accept_shortened(const tl_model* m, tl_state* s, double done, double x) noexcept nogil:
    """The trial up to its fraction x, made again with that length: its end is A-stable, a point inside is not.

    Where a slip comes to zero or a torque to its limit, the length is refined until it does so at the end (false
    position); what is left of a slip is taken out by projection. The ends of the longer trial stay in s.end, as the trend for the decision. Returns the fraction.
    """
    cdef int32_t i, it, found = 0, stops = -1, n = TL_N(m), nf = TL_NF(m)
    cdef double part = s.part, sgn = 0.0, lo = 0.0, hi = 1.0, f_lo = 0.0, f_hi = 0.0, f = 0.0, small = 0.0
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
        small = TOL_R if s.mode[stops] != 0 else 1e-12 * (fabs(s.end.lim_b[stops]) + fabs(s.end.lim_f[stops]))
    for i in range(TL_NCON(m)):
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
    if stops >= nf and f > small:
        s.contact_x[stops - nf] = 2.0            # not reached after all: it keeps its regime
    accept(m, s, done, 1.0)
    s.part = part
    s.h = part * m.h
    memcpy(s.end.port, s.ex.port, TL_NPORT(m) * sizeof(double))
    memcpy(s.end.cap_f, s.ex.cap_f, nf * sizeof(double))
    memcpy(s.end.cap_b, s.ex.cap_b, nf * sizeof(double))
    memcpy(s.end.lim_f, s.ex.lim_f, nf * sizeof(double))
    memcpy(s.end.lim_b, s.ex.lim_b, nf * sizeof(double))
    for i in range(nf):
        if s.toggled[i] & 2 and fabs(s.now.w[TL_FR_ROW(m, i)]) > 1e3 * TOL_R and f > small:
            s.toggled[i] &= 1
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
    s.e_fr[hit] += e0 - kinetic_energy(m, s)
