# Trials of another length than h, for models with springs or dampers that the step does not resolve (m.unresolved, derive.py).
#
# The end of a step is A-stable, a point of its polynomial inside is not: every truncation there would add energy to the
# unresolved oscillation. Such models therefore make each trial with the length that is used: up to the event, and from
# there to the end of the step. The matrices of that length follow from what the pattern of whole steps holds (pattern_of_length, locks.pyx).
#
# Equations: none: section 5, trials that end at an event.

#: instead of the fraction of a trial: it was not taken
cdef double REFUSED = -1.0
#: of what the margin of a contact is formed from: how far a trial may end beyond its regime
cdef double REGIME_TOL = 1e-6


#: rad/s or m/s, where the step resolves its springs: a slip has come to zero
cdef double SLIP_LEFT = 1e4 * TOL_R
#: of the limits of an element at rest: its torque has reached them. To rounding where the step does not resolve springs,
#: whose torques swing with every length; else a tenth of what counts as reached (REACHED, decide.pxi)
cdef double SLIGHT_UNRESOLVED = 1e-12
cdef double SLIGHT = 1e-7
#: the same where the limit says nothing: how many times the rounding of a torque (torque_rounding)
cdef double SLIGHT_ROUNDINGS = 1e5
#: of what its acceleration changes a slip by in a step, two points: the same. The projection that takes out what is left does what
#: friction would do in the time SLIP_SHARE*h (docs/theory.md, section 5)
cdef double SLIP_SHARE = 1e-3
#: rad/s or m/s: a slip that has turned round by more is beyond rounding, and one that is left with more has not come to zero where
#: springs are not resolved
cdef double TURNED_ROUND = 1e3 * TOL_R
#: the same where they are: of what counts as come to zero
cdef double STILL_SLIPS = 10.0


cdef enum:
    REFINE = 16            # trials at most to find the length that ends at the event


cdef inline int32_t first_look(const tl_model* m) noexcept nogil:
    """The number of the first look-up."""
    return TL_NF(m) + TL_NCON(m) + TL_NST(m)


cdef inline double event_margin(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i,
                                double sgn) noexcept nogil:
    """What falls to 0 at the event of element i: slip (sliding the way sgn), or what is left to its limit on that side.
    Contacts are numbered after the friction elements, look-ups after contacts and stops."""
    cdef double small
    if i >= first_look(m):
        return look_up_left(&s.look.now[i - first_look(m)], e, &small)
    if i >= TL_NF(m):
        return contact_left(m, s, e, i - TL_NF(m))
    if s.mode[i] != MODE_STUCK:
        return sgn * e.w[TL_FR_ROW(m, i)]
    return e.lim_b[i] - e.tau[i] if sgn > 0.0 else e.lim_f[i] + e.tau[i]


cdef inline int32_t first_passed(const tl_model* m, tl_state* s, int32_t but, double* sgn) noexcept nogil:
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
        if s.mode[i] != MODE_STUCK or i == but:
            continue
        for point in range(2):
            e = s.em if point else s.end
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
        if not happens(s.event.contact_x[i]) and contact_passed(m, s, i, &x) > REGIME_TOL:
            return 1
        if happens(s.event.contact_x[i]) and -contact_left(m, s, s.end, i) > REGIME_TOL * contact_size(m, s, i, s.event.contact_which[i]):
            return 1
    return 0


cdef struct tl_stop:
    # the event that a trial is to end at
    int32_t el             # its element, or contact (numbered after them); -1: none, the length is as it is
    double sgn             # which way it slides, or which limit it reaches
    double small           # margin at which it has come to pass
    tl_bracket r


cdef inline void keep_longer(const tl_model* m, tl_state* s) noexcept nogil:
    """The forces at the end of the longer trial into s.ex; its acceleration, which says nothing where springs are not resolved."""
    cdef int32_t n = TL_N(m)
    memcpy(forces_of(s.ex), forces_of(s.end), (TL_NPORT(m) + 6 * TL_NF(m)) * sizeof(double))
    if m.unresolved:
        forget_history(m, s)
    else:
        memcpy(s.ex.hs1, s.end.hs1, n * sizeof(double))
        memcpy(s.length.s2_longer, s.s2, n * sizeof(double))


cdef inline double slip_left(const tl_model* m, const tl_state* s, int32_t i, double most) noexcept nogil:
    """A slip of element i so small has come to zero, where springs are resolved; most: but for SLIP_LEFT no more than that."""
    cdef double share = 0.0 if s.four else SLIP_SHARE * m.h * fabs(row_dot(m, TL_FR_ROW(m, i), s.now.a))
    return larger(SLIP_LEFT, share if share < most else most)


cdef inline double small_margin(const tl_model* m, tl_state* s, int32_t el) noexcept nogil:
    """The margin at which the event of element (or contact) `el` has come to pass."""
    cdef double limits, small
    if el >= first_look(m):
        look_up_left(&s.look.now[el - first_look(m)], s.now, &small)
        return small
    if el >= TL_NF(m):
        return AT_EDGE * contact_size(m, s, el - TL_NF(m), s.event.contact_which[el - TL_NF(m)])
    if s.mode[el] != MODE_STUCK:
        # (what is left is taken out by projection: an impulse that friction must be able to give; a small part of what the slip was,
        # so that friction does not give back more heat than it took)
        return TOL_R if m.unresolved else slip_left(m, s, el, 0.1 * fabs(s.now.w[TL_FR_ROW(m, el)]))
    # of what blocks one way without limit only the other way counts, and there its limit may be 0
    limits = fabs(s.end.lim_b[el]) + fabs(s.end.lim_f[el])
    if limits < NO_LIMIT:
        return (SLIGHT_UNRESOLVED if m.unresolved else SLIGHT) * limits
    return torque_rounding(m, s) * (1.0 if m.unresolved else SLIGHT_ROUNDINGS)


cdef inline void find_stop(const tl_model* m, tl_state* s, double x, tl_stop* q) noexcept nogil:
    """What happens at the fraction x of the longer trial, the last of it; slips that come to zero are marked in s.event.toggled."""
    cdef int32_t i, c
    q.el = -1
    q.sgn = 0.0
    q.small = 0.0
    for c in range(s.event.n_asked):
        i = s.event.asked[c]
        if together(s.event.slip_x[i], x):
            if s.mode[i] & 1:
                s.event.toggled[i] |= 2
            q.el = i
    if q.el >= 0:
        i = q.el
        q.sgn = <double>s.mode[i] if s.mode[i] != MODE_STUCK else (1.0 if s.end.tau[i] > s.end.lim_b[i] else -1.0)
    for c in range(s.look.n_acting if s.four and q.el < 0 else 0):
        i = first_look(m) + s.look.list[c]
        if together(s.event.contact_x[i - TL_NF(m)], x):
            q.el = i
    for i in range(TL_NCON(m) + TL_NST(m)):
        if together(s.event.contact_x[i], x):
            q.el = TL_NF(m) + i
    if q.el < 0:
        start_bracket(&q.r, 0.0, 1.0, 1.0, 0.0, 0.0)
        return
    q.small = small_margin(m, s, q.el)
    start_bracket(&q.r, 0.0, event_margin(m, s, s.now, q.el, q.sgn), 1.0, event_margin(m, s, s.end, q.el, q.sgn), q.small)


cdef inline double turn_to(const tl_model* m, tl_state* s, tl_stop* q, int32_t el, double sgn, double hi, double left,
                           int32_t keep) noexcept nogil:
    """Element (or contact) `el` instead of the one before, which has not come to pass: it does between now and the fraction hi,
    where its margin is `left`. keep: bits of s.event.toggled that stay. The length to try next."""
    cdef int32_t i, nf = TL_NF(m)
    if q.el >= nf:
        s.event.contact_x[q.el - nf] = NO_EVENT
    for i in range(nf):
        s.event.toggled[i] &= keep
    q.el = el
    q.sgn = sgn
    q.small = small_margin(m, s, el)
    start_bracket(&q.r, 0.0, event_margin(m, s, s.now, el, sgn), hi, left, q.small)
    return next_point(&q.r)


cdef inline int32_t another_first(const tl_model* m, tl_state* s, tl_stop* q, int32_t it, double* x) noexcept nogil:
    """1 when the shorter trial, of the fraction x, brings another event: that one first, and x is the length to try next. Not after
    the last."""
    cdef int32_t other, middle = 0, nf = TL_NF(m)
    cdef double turn = q.sgn, left = 0.0
    if nf <= q.el < first_look(m) and parts_first(m, s, q.el - nf):
        other = q.el
    else:
        other = first_passed(m, s, q.el, &turn)
    if it == REFINE - 1:
        return 0
    if other >= 0:
        # it turns another slip round
        left = event_margin(m, s, s.end, other, turn)
        x[0] = turn_to(m, s, q, other, turn, x[0], left, 2)
        if other < nf:
            s.event.toggled[other] |= 2
        else:
            s.event.contact_x[other - nf] = 0.0
        return 1
    other = beyond_limit(m, s, q.el, &turn, &left, &middle)
    if other >= 0:
        # it resolves what the longer one did not: an element at rest gives way
        x[0] = turn_to(m, s, q, other, turn, 0.5 * x[0] if middle else x[0], left, 0)
        return 1
    return 0


cdef inline double margin_rate(const tl_model* m, const tl_state* s, const tl_stop* q) noexcept nogil:
    """Change of the margin with the length of the trial, a fraction of h: of a slip that its end accelerates it by, where springs are
    resolved; 0: unknown."""
    if q.el < 0 or q.el >= TL_NF(m) or s.mode[q.el] == MODE_STUCK or m.unresolved:
        return 0.0
    return m.h * q.sgn * row_dot(m, TL_FR_ROW(m, q.el), s.end.a)


cdef inline int32_t next_try(tl_stop* q, int32_t it, double f, double rate, double* x) noexcept nogil:
    """0 when the trial of the fraction x, with the margin f at its end, ends at the event, or there is none in a trial of this
    length; else x is the length to try next: at first by a Newton step with the rate of the margin, where it is known. (The longer
    trial, in which friction has gone on beyond the event, says less than the end of this one.)"""
    cdef double newton = x[0] - f / rate if it == 0 and rate < 0.0 else -1.0
    if fabs(f) <= q.small or it == REFINE - 1 or x[0] == q.r.lo or (f > 0.0 and q.r.f_hi >= 0.0):
        return 0
    narrow_bracket(&q.r, x[0], f)
    x[0] = newton if q.r.lo < newton < q.r.hi else next_point(&q.r)
    if (it == REFINE - 2 or q.r.hi - q.r.lo <= NARROW * q.r.hi) and q.r.lo > 0.0:
        x[0] = q.r.lo                        # down to rounding, or not found: rather a little before the event than beyond
    return 1


cdef inline void no_later(const tl_model* m, tl_state* s, tl_stop* q, double* x) noexcept nogil:
    """Where a normal force appears or vanishes before the fraction x, the trial ends there instead: what it was to end at has
    not come to pass, and the capacities at its end hold up to that normal force only."""
    cdef int32_t i, c, found = 0
    cdef double first = x[0] - TOGETHER
    for c in range(s.event.n_asked):
        i = s.event.asked[c]
        if not s.event.toggled[i] & 1 and s.event.press_x[i] < first:
            first = s.event.press_x[i]
            found = 1
    if not found or first <= 0.0:
        return
    if q.el >= TL_NF(m):
        s.event.contact_x[q.el - TL_NF(m)] = NO_EVENT
    q.el = -1
    x[0] = first
    find_toggled(m, s, first)


cdef inline double find_length(const tl_model* m, tl_state* s, tl_stop* q, double done, double part, double x) noexcept nogil:
    """Trials until one ends at the event; x: the length of the first, a fraction of `part`. The length of the last."""
    cdef int32_t it
    cdef double f = 0.0
    for it in range(REFINE):
        no_later(m, s, q, &x)
        shorten(m, s, x * part)
        if not m.unresolved:
            history_of_part(m, s, s.ex.hs1, s.length.s2_longer, x)
        trial(m, s, done)
        if another_first(m, s, q, it, &x):
            continue
        if q.el < 0:
            break
        f = event_margin(m, s, s.end, q.el, q.sgn)
        if not next_try(q, it, f, part * margin_rate(m, s, q), &x):
            break
    if q.el >= TL_NF(m) and f > q.small:
        s.event.contact_x[q.el - TL_NF(m)] = NO_EVENT  # not reached after all: it keeps its regime
    return x


cdef inline int32_t turned_too_far(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when a slip that was to come to zero has turned round by more than rounding: to take that out would be an impulse
    beyond what the element can carry."""
    cdef int32_t i
    for i in range(TL_NF(m) if s.four and TL_NCON(m) > 0 else 0):
        if s.event.toggled[i] & 2 and s.mode[i] * s.end.w[TL_FR_ROW(m, i)] < -TURNED_ROUND:
            return 1
    return 0


cdef inline void bring_to_rest(const tl_model* m, tl_state* s) noexcept nogil:
    """What is left of the slips that have come to zero."""
    cdef int32_t i, found = 0
    cdef double still
    for i in range(TL_NF(m)):
        still = TURNED_ROUND if m.unresolved else STILL_SLIPS * slip_left(m, s, i, UNLIMITED)
        if s.event.toggled[i] & 2 and s.mode[i] * s.now.w[TL_FR_ROW(m, i)] > still:
            s.event.toggled[i] &= 1                    # has not come to zero
        found |= s.event.toggled[i] & 2
    if found:
        rest_slips(m, s)


cdef double accept_shortened(const tl_model* m, tl_state* s, double done, double x) noexcept nogil:
    """The trial up to its fraction x, made again with that length: its end is A-stable, a point inside is not.

    Where a slip comes to zero or a torque to its limit, the length is refined until it does so at the end (a bracketed
    search); what is left of a slip is taken out by projection. The ends of the longer trial are left in s.end: they are
    the trend that the decision behind the event looks at. Returns the fraction.
    """
    cdef double part = s.part
    cdef tl_stop q
    find_stop(m, s, x, &q)
    keep_longer(m, s)
    x = find_length(m, s, &q, done, part, x)
    s.look.alone &= q.el >= first_look(m)
    if TL_NCON(m) + TL_NST(m) > 0 and left_regime(m, s):
        return REFUSED
    if turned_too_far(m, s) or accept(m, s, done, 1.0, 1):
        return REFUSED
    s.part = part
    s.h = part * m.h
    bring_to_rest(m, s)
    memcpy(forces_of(s.end), forces_of(s.ex), (TL_NPORT(m) + 6 * TL_NF(m)) * sizeof(double))
    return x


cdef void rest_slips(const tl_model* m, tl_state* s) noexcept nogil:
    """Slips marked in s.event.toggled (bit 1) to zero: momentum is kept, the energy can only fall and counts as their heat."""
    cdef int32_t i, hit = 0, nf = TL_NF(m)
    cdef double lost = kinetic_energy(m, s)
    for i in range(nf):
        s.decision.before[i] = s.mode[i]
        if s.event.toggled[i] & 2:
            s.mode[i] = MODE_STUCK
            hit = i
    s.pat = pattern_now(m, s)
    stop_slips(m, s)
    for i in range(nf):
        s.mode[i] = s.decision.before[i]
        s.event.toggled[i] &= 1
    lost -= kinetic_energy(m, s)
    s.e_fr[hit] += lost if lost > 0.0 else 0.0