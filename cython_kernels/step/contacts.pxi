# Contacts: springs with play. Piecewise linear, so each regime has matrices of its own and its ends are events.
#
# With x = phi - hi > 0 beyond the upper side of the play (x = phi - lo < 0 beyond the lower one), tc = c x, td = d w
# (with an exponent: tc = c x^n, see gaps.pxi):
#   regime 0        open                                   tau = 0
#   regime +-1      spring and damper                      tau = tc + td
#   regime +-2      damper limited to the spring's torque  tau = 2 tc        (td beyond tc; kind 0 only)
#   regime +-3      in the flank, but it would pull        tau = 0           (tc + td against tc)
# The sign is that of the side. The force along the row is -tau. Kind 0: Modelica's ElastoBacklash; 1: ElastoBacklash2.
#
# Hard stops (lo <= phi <= hi) are met where the way to one of their ends ends; they are numbered after the contacts here.
# At an end a stop is a friction element that holds one way (box.pxi: blocked). A dog clutch is a stop whose end is a speed, and
# which holds both ways then until its torque is small enough (dogs.pxi).
#
# Equations: (54).

cdef inline double lin_law(const tl_model* m, int32_t i, double q, double w) noexcept nogil:
    """Torque of compliance i at the angle q and the speed w of its row: c*(q - phi0) + d*w."""
    return m.lin[i].c * (q - m.lin[i].phi0) + m.lin[i].d * w


cdef inline double lin_force(const tl_model* m, int32_t i, const double* z, const double* u) noexcept nogil:
    """The same at angles z and speeds u."""
    return lin_law(m, i, lin_dot(m, i, z) + m.row_off[TL_LIN_ROW(m, i)], lin_dot(m, i, u))


cdef inline void subtract_contacts(const tl_model* m, const tl_state* s, const double* z, const double* u,
                                   double* F, int32_t law) noexcept nogil:
    """F[row] += force of each contact at angles z and speeds u; law 0: without those that are curved."""
    cdef int32_t i, k
    for i in range(TL_NCON(m)):
        if not law and curved(m, i):
            continue
        k = m.con[i].row
        F[k] += contact_force(m, s, i, row_dot(m, k, z) + m.row_off[k], row_dot(m, k, u))


cdef inline void subtract_compliances(const tl_model* m, const tl_state* s, const double* z, const double* u,
                               double* F, int32_t law) noexcept nogil:
    """F[row] -= torque of each compliance. law 0: of contacts with an exponent nothing, rows.pxi finds it."""
    cdef int32_t i
    for i in range(TL_NLIN(m)):
        F[TL_LIN_ROW(m, i)] -= lin_force(m, i, z, u)
    if TL_NCON(m) > 0:
        subtract_contacts(m, s, z, u, F, law)


cdef inline int64_t regime_at(const tl_model* m, int32_t i, double phi, double w) noexcept nogil:
    """Regime of contact i at an angle and a speed."""
    cdef double x, tc, td
    cdef int64_t side = 0
    if phi > m.con[i].hi:
        side = 1
        x = phi - m.con[i].hi
    elif phi < m.con[i].lo:
        side = -1
        x = phi - m.con[i].lo
    else:
        return 0
    tc = deflection_force(m, i, x) * side
    td = m.con[i].d * w * side
    if tc + td <= 0.0:
        return CONTACT_PULLED * side
    return CONTACT_LIMITED * side if td > tc and m.con[i].kind == ELASTO_BACKLASH else side


cdef void find_regimes(const tl_model* m, tl_state* s) noexcept nogil:
    """Regimes from the present angles and speeds (start, restored by hand)."""
    cdef int32_t i, k
    for i in range(TL_NCON(m)):
        k = m.con[i].row
        s.regime[i] = regime_at(m, i, row_angle(m, s, k), row_dot(m, k, s.now.u))


cdef inline int32_t contact_row(const tl_model* m, int32_t i) noexcept nogil:
    """Row of a contact, or of a stop."""
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        return m.fr[m.st[i - TL_NCON(m)].fr].row
    return m.con[i].row


cdef inline int64_t contact_regime(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Its regime; of a stop the end it is at."""
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        return s.at_end[i - TL_NCON(m)]
    return s.regime[i]


#: of the size of an angle: a stop so near to an end is at it
cdef double AT_END = 1e-12
#: of what a margin is formed from: so near to the end of its regime a contact is at it
cdef double AT_EDGE = 1e-11
#: of the same: so far beyond the end of its regime a contact has left it
cdef double BEYOND = 1e-9
#: of the same: rounding of a margin on the polynomials of a trial
cdef double MARGIN_ROUNDING = 1e-13
#: of the length of a trial: events so near to each other happen at once
cdef double AT_ONCE = 1e-12


cdef void find_ends(const tl_model* m, tl_state* s) noexcept nogil:
    """Ends the stops are at, from the present angles and speeds (start, restored by hand)."""
    cdef int32_t i, j, k
    cdef double phi, w, near
    for j in range(TL_NST(m)):
        k = m.fr[m.st[j].fr].row
        phi = row_angle(m, s, k)
        w = row_dot(m, k, s.now.u)
        near = AT_END * (fabs(phi) + (1.0 if m.st[j].hi - m.st[j].lo > 1.0 else m.st[j].hi - m.st[j].lo))
        s.at_end[j] = 0
        if is_dog(m, j):
            pass                             # (meet_dogs asks for it)
        elif phi >= m.st[j].hi - near and w >= -TOL_R:
            s.at_end[j] = 1
        elif phi <= m.st[j].lo + near and w <= TOL_R:
            s.at_end[j] = -1
        stop_limits(m, s, j)


cdef enum:
    SAMPLES = 8            # points of a step at which the ends of a regime are looked for before the root is refined


cdef inline double way_to_end(const tl_model* m, const tl_state* s, int32_t j, int32_t which, double phi) noexcept nogil:
    """What is left from the angle phi to the upper (0) or lower end of stop j that is at none of them. Rounding may have
    left it a little beyond: then it is reached when it goes further, not where others hold it."""
    cdef double now = row_angle(m, s, m.fr[m.st[j].fr].row)
    if which == 0:
        return larger(m.st[j].hi, now) - phi
    return phi + larger(-m.st[j].lo, -now)


cdef inline double contact_margin(const tl_model* m, const tl_state* s, int32_t i, int32_t which, const double* p,
                                  const double* v, double x) noexcept nogil:
    """What must stay >= 0 for the regime of contact i to go on: `which` counts its ends (see contact_after)."""
    cdef int64_t q = contact_regime(m, s, i), side = 1 if q > 0 else -1
    cdef double phi = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))
    cdef double w = v[0] + x * (v[1] + x * (v[2] + x * v[3])), tc, td
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        if is_dog(m, i - TL_NCON(m)):
            return teeth_margin(m, s, i - TL_NCON(m), which, w)
        if q != 0:
            return 1.0                   # it is there
        return way_to_end(m, s, i - TL_NCON(m), which, phi)
    if q == CONTACT_OPEN:
        return m.con[i].hi - phi if which == 0 else phi - m.con[i].lo
    phi = side * (phi - (m.con[i].hi if q > 0 else m.con[i].lo))
    if which == 0:
        return phi if q != CONTACT_LIMITED * side else 1.0
    tc = deflection_force(m, i, phi)
    td = m.con[i].d * w * side
    if q == CONTACT_BOTH * side:
        return tc + td if which == 1 else (tc - td if m.con[i].kind == ELASTO_BACKLASH else 1.0)
    if q == CONTACT_LIMITED * side:
        # it closes: before it comes apart it has turned round, and this end is passed
        if which == 1 and tc < -BEYOND * fabs(td):
            return -fabs(td) - fabs(tc)
        return td - tc if which == 1 else 1.0
    return -(tc + td) if which == 1 else 1.0


cdef inline int64_t contact_after(const tl_model* m, const tl_state* s, int32_t i, int32_t which) noexcept nogil:
    """Regime that follows when the end `which` of the present one is reached."""
    cdef int64_t q = contact_regime(m, s, i), side = 1 if q > 0 else -1
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        if is_dog(m, i - TL_NCON(m)):
            return 0 if q == ENGAGED else ENGAGED
        return 1 if which == 0 else -1
    if q == CONTACT_OPEN:
        side = 1 if which == 0 else -1
        return CONTACT_LIMITED * side if m.con[i].kind == ELASTO_BACKLASH and m.con[i].d > 0.0 else side
    if which == 0:
        return CONTACT_OPEN
    if q == CONTACT_BOTH * side:
        return CONTACT_PULLED * side if which == 1 else CONTACT_LIMITED * side
    return side


cdef double contact_left_at(const tl_margin* g, double x) noexcept nogil:
    """contact_margin of contact g.i at the fraction x of the trial."""
    return contact_margin(g.m, g.s, g.i, g.which, g.p, g.v, x)


cdef inline void margin_of_contact(const tl_model* m, const tl_state* s, int32_t i, tl_margin* g) noexcept nogil:
    """That of contact i on the polynomials of the trial; its end `which` is to be set."""
    g.at = contact_left_at
    g.m = m
    g.s = s
    g.i = i
    row_polynomial(m, s, contact_row(m, i), g.p, g.v)


cdef inline int32_t goes_out(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when the angle of contact i moves towards the end of its regime that find_contact saw."""
    cdef double w = row_dot(m, contact_row(m, i), s.now.u)
    cdef int64_t q = contact_regime(m, s, i)
    if q == 0:
        return w > TOL_R if s.event.contact_which[i] == 0 else w < -TOL_R
    return s.event.contact_which[i] == 0 and (w < -TOL_R if q > 0 else w > TOL_R)


cdef inline int32_t pulls_first(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when spring and damper of contact i both act in a trial of three points: before it comes apart it would pull."""
    return s.four and i < TL_NCON(m) and m.con[i].d > 0.0 and (s.regime[i] == CONTACT_BOTH or s.regime[i] == -CONTACT_BOTH)


cdef double contact_passed(const tl_model* m, tl_state* s, int32_t i, double* x) noexcept nogil:
    """By how much, relative to what it is formed of, the trial's end is beyond the regime of contact i; 0: it is not.

    contact_which and contact_next are set; x: fraction of the trial at which a straight line would reach the end."""
    cdef int32_t c, which, found = -1, ends = 3 if contact_regime(m, s, i) != 0 else 2, pulls = pulls_first(m, s, i)
    cdef double over, worst = BEYOND, f0, f1 = 0.0
    for c in range(ends):
        which = c ^ pulls if c < 2 else c    # whether it pulls is asked before whether it is apart, then whether it is limited
        s.event.contact_which[i] = which
        f1 = contact_left(m, s, s.end, i)
        over = -f1 / contact_size(m, s, i, which)
        if over > worst:
            worst = over
            found = which
        if ends == 3 and (found == 0 or (pulls and found > 0)):
            break                            # apart: what the force would be there does not matter
    if found < 0:
        return 0.0
    s.event.contact_which[i] = found
    s.event.contact_next[i] = contact_after(m, s, i, found)
    f1 = contact_left(m, s, s.end, i)
    f0 = contact_left(m, s, s.now, i)
    x[0] = f0 / (f0 - f1)
    if f0 <= AT_EDGE * contact_size(m, s, i, found):
        # at it, by rounding: straight out, or it leaves and comes back
        x[0] = 0.0 if goes_out(m, s, i) else 0.5
    return worst


cdef int32_t parts_first(const tl_model* m, tl_state* s, int32_t i) noexcept nogil:
    """1 when contact i, looked for at another end of its regime, is apart at the end of the trial: that comes first, and
    is what is looked for from here on."""
    cdef int32_t which = s.event.contact_which[i]
    if i >= TL_NCON(m) or s.regime[i] == CONTACT_OPEN or which == 0 or (which == 1 and pulls_first(m, s, i)):
        return 0
    s.event.contact_which[i] = 0
    if contact_left(m, s, s.end, i) >= -BEYOND * contact_size(m, s, i, 0):
        s.event.contact_which[i] = which
        return 0
    s.event.contact_next[i] = contact_after(m, s, i, 0)
    return 1


cdef double find_contact(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of the trial at which the first contact leaves its regime or stop is reached, NO_EVENT if none does or is."""
    cdef int32_t i, j
    cdef double x, first = NO_EVENT
    cdef double[SAMPLES] points
    cdef tl_margin g
    for j in range(SAMPLES):
        points[j] = end * (j + 1) / SAMPLES
    for i in range(TL_NCON(m) + TL_NST(m)):
        s.event.contact_x[i] = NO_EVENT
        if contact_regime(m, s, i) == ENGAGED and i >= TL_NCON(m):
            s.event.contact_x[i] = teeth_part(m, s, i - TL_NCON(m))
            s.event.contact_next[i] = s.event.contact_which[i] = 0
            first = sooner(s.event.contact_x[i], first, end)
            continue
        if m.unresolved and end == 1.0 and contact_passed(m, s, i, &x) > 0.0:
            # the end is A-stable, the polynomial need not pass through it
            s.event.contact_x[i] = x
            first = x if x < first else first
            continue
        if contact_regime(m, s, i) != 0 and (i >= TL_NCON(m) or (m.unresolved and not s.four)):
            continue
        margin_of_contact(m, s, i, &g)
        for g.which in range(3 if contact_regime(m, s, i) != 0 else 2):
            x = first_below(&g, 0.0, points, SAMPLES, MARGIN_ROUNDING * contact_size(m, s, i, g.which))
            if x < s.event.contact_x[i]:
                s.event.contact_x[i] = x
                s.event.contact_next[i] = contact_after(m, s, i, g.which)
                s.event.contact_which[i] = g.which
        if i >= TL_NCON(m) and not happens(s.event.contact_x[i]) and end == 1.0 and contact_passed(m, s, i, &x) > 0.0:
            s.event.contact_x[i] = x               # the trapezoidal rule ends beyond its own polynomial
        if s.event.contact_x[i] < first:
            first = s.event.contact_x[i]
    return first


cdef int32_t beside_polynomial(const tl_model* m, const tl_state* s, double x) noexcept nogil:
    """1 when a stop that is reached at the fraction x of the trial would not be at its end if the trial were truncated there."""
    cdef int32_t i
    cdef tl_margin g
    for i in range(TL_NCON(m), TL_NCON(m) + TL_NST(m)):
        if s.event.contact_x[i] <= x and x > 0.0 and contact_regime(m, s, i) != ENGAGED:
            margin_of_contact(m, s, i, &g)
            g.which = s.event.contact_which[i]
            if fabs(g.at(&g, x)) > BEYOND * contact_size(m, s, i, g.which):
                return 1
    return 0


cdef inline double contact_left(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i) noexcept nogil:
    """What is left to the end of the regime of contact i that find_contact saw, at the instant e."""
    cdef double[5] p
    cdef double[4] v
    cdef int32_t k = contact_row(m, i)
    if contact_regime(m, s, i) == ENGAGED and i >= TL_NCON(m):
        return teeth_left(m, s, e, i - TL_NCON(m))
    p[0] = row_dot(m, k, e.z) + m.row_off[k]
    v[0] = row_dot(m, k, e.u)
    p[1] = p[2] = p[3] = p[4] = v[1] = v[2] = v[3] = 0.0
    return contact_margin(m, s, i, s.event.contact_which[i], p, v, 0.0)


cdef inline double contact_size(const tl_model* m, const tl_state* s, int32_t i, int32_t which) noexcept nogil:
    """Size of what a margin of contact i compares, from the trial's ends: what rounding is measured by."""
    cdef int32_t k = contact_row(m, i)
    cdef double c = m.con[i].c if i < TL_NCON(m) else 0.0
    cdef double size = fabs(row_angle(m, s, k)) + s.h * fabs(row_dot(m, k, s.now.u))
    if i >= TL_NCON(m) and is_dog(m, i - TL_NCON(m)):
        return teeth_size(m, s, i - TL_NCON(m))
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        return size + (0.0 if size > 0.0 else 1.0)
    if which > 0 and s.regime[i] != CONTACT_OPEN:
        if curved(m, i):
            c = deflection_slope(m, i, larger(fabs(contact_deflection(m, s, i, row_angle(m, s, k))),
                                              fabs(contact_deflection(m, s, i, row_dot(m, k, s.end.z) + m.row_off[k]))))
        size = c * size + m.con[i].d * fabs(row_dot(m, k, s.now.u))
    return size


cdef void switch_contacts(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Contacts whose regime ends at the fraction x of the trial enter the next one."""
    cdef int32_t i
    for i in range(TL_NCON(m)):
        if s.event.contact_x[i] <= x + AT_ONCE:
            s.regime[i] = s.event.contact_next[i]


cdef void contact_balance(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Heat of the contacts up to the fraction x of the trial: what the spring does not keep. Before the state is replaced;
    s.end (s.um) hold the state at x."""
    cdef int32_t i, k
    cdef int64_t q
    cdef double x0, x1, e
    for i in range(TL_NCON(m)):
        q = s.regime[i]
        if q == CONTACT_OPEN:
            continue
        k = m.con[i].row
        x0 = contact_deflection(m, s, i, row_angle(m, s, k))
        x1 = contact_deflection(m, s, i, row_dot(m, k, s.end.z) + m.row_off[k])
        if curved(m, i):
            e = deflection_energy(m, i, x1) - deflection_energy(m, i, x0)
        else:
            e = 0.5 * m.con[i].c * (x1 * x1 - x0 * x0)
        if q == CONTACT_LIMITED or q == -CONTACT_LIMITED:
            s.e_con[i] += e
        elif q == CONTACT_PULLED or q == -CONTACT_PULLED:
            s.e_con[i] -= e
        else:
            s.e_con[i] += x * s.h * m.con[i].d * contact_damping(m, s, i, x)


cdef double contact_damping(const tl_model* m, const tl_state* s, int32_t i, double x) noexcept nogil:
    """Mean square of the speed of contact i up to the fraction x of the trial, as the trial has it (accept.pxi)."""
    cdef double[5] p
    cdef double[4] v
    cdef double[3] f
    cdef double y = 0.5 * x, w1 = row_dot(m, m.con[i].row, s.end.u)
    row_polynomial(m, s, m.con[i].row, p, v)
    if not s.four:
        return 0.25 * (v[0] + w1) * twice_mean(v[0], v[0] + v[1] + v[2], x)
    f[0] = v[0]
    f[1] = poly_at(v[0], v[1], v[2], v[3], 0.5)
    f[2] = poly_at(v[0], v[1], v[2], v[3], 1.0)
    return work4(v[0], poly_at(v[0], v[1], v[2], v[3], y), w1, v[0], at(f[0], f[1], f[2], y), at(f[0], f[1], f[2], x))
