# Where in a trial something happens: slip comes to zero, a torque reaches its limit, a normal force appears or vanishes.
#
# Equations: none: section 5, the guards of friction elements.

cdef double contact_at(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Fraction of the trial at which the normal force of element i passes zero: a root of its pressure or input, else linear."""
    cdef int32_t k, nin = TL_NIN(m)
    cdef double to = s.theta + s.part, x
    cdef tl_curve f
    cdef tl_margin g
    if (s.now.raw[i] > 0.0) != (s.pressed[i] != 0):
        return 0.0
    if m.fr[i].src == ACTUATED:
        f = s.press[m.fr[i].src_idx]
        f.q[0] -= m.fr[i].pret
    elif m.fr[i].src == NORMALIZED or m.fr[i].src == CAPACITY:
        k = m.fr[i].src_idx
        f.rest = 0.0
        f.q[0] = s.in_c[k]
        f.q[1] = s.in_c[nin + k]
        f.q[2] = s.in_c[2 * nin + k]
    else:
        return s.now.raw[i] / (s.now.raw[i] - s.end.raw[i])
    g.at = curve_side
    g.curve = &f
    g.way = 1.0 if s.pressed[i] else -1.0
    x = first_below(&g, s.theta, &to, 1, 0.0)
    return (x - s.theta) / s.part if happens(x) else 1.0


cdef double torque_rounding(const tl_model* m, tl_state* s) noexcept nogil:
    """Rounding of a torque that holds an element: from the size of all torques it is a sum of. A free wheel that carries
    nothing has the limit 0 and must not be asked about again because of it. Once for a trial: s.event.slack."""
    cdef int32_t i
    cdef double sum_ = 0.0
    if s.event.slack >= 0.0:
        return s.event.slack
    for i in range(TL_NPORT(m)):
        sum_ += fabs(s.end.port[i])
    for i in range(TL_NF(m)):
        sum_ += fabs(s.end.tau[i])
    for i in range(TL_N(m)):
        sum_ += fabs(s.g[i])
    s.event.slack = SUM_ROUNDING * sum_ + LEAST_ROUNDING
    return s.event.slack


cdef double decided_to(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """To what a decision knows the torque of element i, which sticks: the shift of the boxed problem lowers it, the torques that
    remove what rounding has left of slips are beside the others, and one that lets it slip by TOL_R in a step moves nothing."""
    cdef int32_t j, nf = TL_NF(m)
    cdef double own, largest = 0.0, leftovers = 0.0
    for j in range(nf):
        own = s.gears.W0[j * nf + j]
        if s.mode[j] == MODE_STUCK and own > 0.0:
            leftovers += fabs(leftover(m, s, j)) / own
            if own > largest:
                largest = own
    own = s.gears.W0[i * nf + i]
    return leftovers + ((TOL_R / m.h + shift_of(largest, own) * fabs(s.now.tau[i])) / own if own > 0.0 else 0.0)


cdef inline double side_exceeded(const tl_model* m, const tl_state* s, int32_t i, int32_t side, double slack) noexcept nogil:
    """Fraction of the trial at which the torque of element i, which sticks, reaches lim_b (side 0) or -lim_f (1) beyond rounding,
    or NO_EVENT. One that has just been decided to hold at its limit goes on until it is HOLDS times as far beyond it as the boxed
    problem accepts, so that each decision has something new to decide."""
    cdef double sgn = 1.0 if side == 0 else -1.0, lm = 0.0, held
    cdef double l1 = (s.end.lim_b[i] if side == 0 else s.end.lim_f[i]) - sgn * s.end.tau[i]
    cdef double l0 = (s.now.lim_b[i] if side == 0 else s.now.lim_f[i]) - sgn * s.now.tau[i]
    if l1 >= -slack and not (s.four and m.unresolved):
        return NO_EVENT
    held = HOLDS * (slack + force_slack(s.now.tau[i]))
    # (with driven motions a decision that changes nothing may be wrong by more than rounding)
    if s.event.decided and l0 <= held and TL_ND(m) + TL_NVG(m) == 0:
        held += HOLDS * decided_to(m, s, i)
        slack = 0.0
    else:
        held = 0.0
    l0 += held
    l1 += held
    if s.four:
        lm = (s.em.lim_b[i] if side == 0 else s.em.lim_f[i]) - sgn * s.em.tau[i] + held
        if m.unresolved and lm < -slack and l0 > 0.0:
            # an unresolved oscillation may pass the limit in the middle only
            return 0.5 * l0 / (l0 - lm)
    return NO_EVENT if l1 >= -slack else values_fall(l0, lm, l1, s.four, slack)


cdef inline double gives_way_at(const tl_model* m, tl_state* s, int32_t i, double slack, double first, double end) noexcept nogil:
    """Where the torque of element i, which sticks, reaches a limit, into s.event.slip_x; the first event so far or that one. Both sides: a
    limit that follows a vanishing normal force ends below 0, and then both are passed."""
    cdef double x
    cdef int32_t side
    for side in range(2):
        x = side_exceeded(m, s, i, side, slack)
        if x < s.event.slip_x[i]:
            s.event.slip_x[i] = x
        first = sooner(x, first, end)
    return first


cdef inline double slip_over_at(const tl_model* m, tl_state* s, int32_t i, int32_t k) noexcept nogil:
    """Fraction of the trial at which the slip of element i (row k), which slides, comes to zero, or NO_EVENT."""
    cdef double h = s.h, sgn = <double>s.mode[i], r0 = sgn * s.now.w[k], c2, c3
    if s.four and m.unresolved and r0 > TOL_R and sgn * s.em.w[k] < -TOL_R:
        # an unresolved oscillation turns back in the middle: friction must not push it
        return 0.5 * r0 / (r0 - sgn * s.em.w[k])
    if not turns_round(m, s, s.end, i, k):
        return NO_EVENT
    c2 = 0.5 * h * sgn * row_dot(m, k, s.end.hs1)
    c3 = h * sgn * row_dot(m, k, s.s2) / 3.0 if s.four else 0.0
    return cubic_falls(r0, h * sgn * s.wa[k], c2, c3, TOL_R)


cdef inline double find_event(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of h of the earliest event of the trial in [0, end]; NO_EVENT if there is none. After ask_all.

    sliding: relative speed comes to zero; stuck: torque reaches its static limit; normal force appears or vanishes.
    """
    cdef int32_t c, i
    cdef double first = NO_EVENT, slack = -1.0
    s.event.slack = -1.0
    for c in range(s.event.n_asked):
        i = s.event.asked[c]
        s.event.slip_x[i] = NO_EVENT
        s.event.press_x[i] = NO_EVENT
        if presses_otherwise(m, s, s.end, i):
            s.event.press_x[i] = contact_at(m, s, i)
            first = sooner(s.event.press_x[i], first, end)
        if s.mode[i] == MODE_STUCK:
            if slack < 0.0:
                slack = torque_rounding(m, s)
            first = gives_way_at(m, s, i, slack, first, end)
        elif s.mode[i] != MODE_FREE:
            s.event.slip_x[i] = slip_over_at(m, s, i, TL_FR_ROW(m, i))
            first = sooner(s.event.slip_x[i], first, end)
    return first


cdef inline void find_toggled(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Elements whose normal force appears or vanishes at the fraction x of the trial, into s.event.toggled."""
    cdef int32_t c, i
    for i in range(TL_NF(m)):
        s.event.toggled[i] = 0
    for c in range(s.event.n_asked):
        i = s.event.asked[c]
        s.event.toggled[i] = together(s.event.press_x[i], x)


cdef inline void toggle_pressed(const tl_model* m, tl_state* s) noexcept nogil:
    """These elements change their flag."""
    cdef int32_t i
    for i in range(TL_NF(m)):
        if s.event.toggled[i] & 1:
            s.pressed[i] = 1 - s.pressed[i]
