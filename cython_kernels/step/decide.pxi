# Which elements stick and which slide from here on: the boxed problem over a short look-ahead, and what follows from it.
#
# Equations: (38) to (40).

cdef extern from *:
    """
    /* of a limit: what holds with so much of it is about to reach it. A guess to begin with, SLIGHT (shortened.pxi) is finer */
    #define TL_REACHED (1.0 - 1e-6)
    /* of a trial: truncated beyond it, it has no rest whose trend says what follows */
    #define TL_TREND_TO (1.0 - 1e-6)
    /* of a limit: a torque of springs so near to it has reached it */
    #define TL_AT_CAPACITY 1e-9
    """
    const double REACHED "TL_REACHED"
    const double TREND_TO "TL_TREND_TO"
    const double AT_CAPACITY "TL_AT_CAPACITY"


cdef inline double trend(double now, double end, double ahead) noexcept nogil:
    """Mean over the look-ahead of a quantity that is moving from `now` to `end`."""
    return now + ahead * (end - now) if ahead > 0.0 else now


cdef inline int32_t likely_side(const tl_state* s, int32_t i) noexcept nogil:
    """First guess for a candidate: at the limit that its torque has reached, else at rest. Only the work depends on it."""
    if s.tied[i]:
        return -<int32_t>s.mode[i]
    if s.mode[i] != MODE_STUCK:
        return 0
    if fabs(s.now.tau[i]) <= TORQUE_ROUNDING:
        return 0
    return 1 if s.now.tau[i] >= REACHED * s.now.lim_b[i] else (-1 if -s.now.tau[i] >= REACHED * s.now.lim_f[i] else 0)


cdef void free_motion(const tl_model* m, tl_state* s, tl_box* box) noexcept nogil:
    """The boxed problem of the candidates: accelerations am without their torques, slips b, responses W; with losses the
    reactions, too."""
    cdef int32_t c, d, i, n = TL_N(m), nf = TL_NF(m), nc = box.nc
    cdef const double* inverse
    for c in range(nc):
        s.mode[box.cand[c]] = MODE_FREE
    inverse = free_inverse(m, s, box.ahead)
    if TL_ND(m) + TL_NVG(m) > 0:
        hold_instant(m, s, s.g, s.am)
        missing_torques(m, s, m.M, s.am, s.g, box.work)
        for i in range(nf):
            if bilateral(m, i):
                s.em.tau[i] = box.work[i]
    else:
        for i in range(n):
            s.am[i] = dot(inverse + i * n, s.g, 0, n)
    for c in range(nc):
        box.rows[c] = m.fr[box.cand[c]].row
        box.b[c] = row_dot(m, box.rows[c], s.am) + leftover(m, s, box.cand[c])
    if TL_ND(m) + TL_NVG(m) + TL_NRX(m) > 0:
        responses(m, s, box, inverse)
        return
    for c in range(nc):
        for d in range(nc):
            box.W[c * nc + d] = s.gears.W0[box.cand[c] * nf + box.cand[d]]


cdef inline void forces_alone(const tl_model* m, tl_state* s, double ahead) noexcept nogil:
    """s.em.port, s.F: forces of the ports, mean over the look-ahead, and along their rows."""
    cdef int32_t i
    for i in range(TL_NPORT(m)):
        s.em.port[i] = trend(s.now.port[i], s.end.port[i], ahead)
    port_rows(m, s.em.port, s.F)


cdef inline void force_of_sliding(const tl_model* m, tl_state* s, int32_t i, double ahead) noexcept nogil:
    """Element i, which slides or is free, adds its force to s.F; those of gears and drivers are among the unknowns."""
    cdef double f = 0.0
    if s.mode[i] == MODE_FORWARD:
        f = -trend(s.now.cap_f[i], s.end.cap_f[i], ahead)
    elif s.mode[i] == MODE_BACKWARD:
        f = trend(s.now.cap_b[i], s.end.cap_b[i], ahead)
    if TL_NLS(m) + TL_ND(m) + TL_NVG(m) > 0:
        s.em.tau[i] = 0.0 if m.fr[i].src >= LOSS else f
        if m.fr[i].src >= LOSS:
            return
    s.F[TL_FR_ROW(m, i)] += f


cdef inline void find_candidates(const tl_model* m, tl_state* s, tl_box* box, double ahead) noexcept nogil:
    """Who takes part: pressed elements at rest, neighbours together, so that their matrices are narrow; the others slide as their
    speed says, s.F: their force and that of the ports."""
    cdef int32_t i, j, k, way, side
    cdef double r
    forces_alone(m, s, ahead)
    for j in range(TL_NF(m)):
        i = m.fr_order[j]
        k = TL_FR_ROW(m, i)
        r = s.now.w[k]
        if TL_NLS(m) + TL_ND(m) + TL_NVG(m) > 0:
            s.em.tau[i] = 0.0
        if bilateral(m, i):
            s.mode[i] = MODE_STUCK
            continue
        side = likely_side(s, i)
        s.tied[i] = 0
        if TL_NRX(m) > 0 and m.fr[i].serial:
            # its mode is known: choose_serial
            if s.mode[i] & 1:
                force_of_sliding(m, s, i, ahead)
            continue
        way = blocked(m, s, i)
        if way == 0 and not s.pressed[i]:
            s.mode[i] = MODE_FREE
            continue
        if fabs(r) <= TOL_R or (way & BACKWARD and r < 0.0) or (way & FORWARD and r > 0.0):
            box.cand[box.nc] = i
            box.side[box.nc] = side
            box.released[box.nc] = 0
            box.nc += 1
            s.mode[i] = MODE_FREE                             # no sliding force of its own below
        else:
            s.mode[i] = MODE_FORWARD if r > 0.0 else MODE_BACKWARD
            force_of_sliding(m, s, i, ahead)
    s.ties = 0


cdef double span_of_regimes(const tl_model* m, tl_state* s) noexcept nogil:
    """How long the look-ahead may be for springs, s: half of the way to where the first contact would leave its regime at
    the present speeds. Beyond it the law of the regime is another: a side that lets go would be taken to pull."""
    cdef int32_t i, which
    cdef double[5] p
    cdef double[4] v
    cdef double f0, f1, span = m.look_ahead * m.h
    for i in range(TL_NCON(m)):
        p[0] = row_angle(m, s, m.con[i].row)
        p[1] = 0.0
        v[0] = row_dot(m, m.con[i].row, s.now.u)
        v[1] = p[2] = p[3] = p[4] = v[2] = v[3] = 0.0
        for which in range(3 if s.regime[i] != 0 else 2):
            p[1] = 0.0
            f0 = contact_margin(m, s, i, which, p, v, 0.0)
            p[1] = span * v[0]
            f1 = contact_margin(m, s, i, which, p, v, 1.0)
            if f0 > 0.0 and f1 < 0.0:
                span *= 0.5 * f0 / (f0 - f1)
    return span


cdef inline void force_ahead(const tl_model* m, tl_state* s, double ahead, double span, int32_t known) noexcept nogil:
    """s.g: force on u without the candidates, mean over the look-ahead (`span`: that of springs, s); after find_candidates."""
    cdef int32_t i, n = TL_N(m)
    if TL_NLIN(m) + TL_NCON(m) > 0:
        # springs and dampers in the middle of the span, as the motion goes on
        for i in range(n):
            s.decision.z[i] = s.now.z[i] + 0.5 * span * s.now.u[i]
            s.decision.u[i] = s.now.u[i] + (0.5 * span * s.now.a[i] if known else 0.0)
        if s.decision.without_excess:
            excess_now(m, s)
            for i in range(n):
                s.decision.z[i] -= s.excess.z[i] + 0.5 * span * s.excess.u[i]
                s.decision.u[i] -= s.excess.u[i] + (0.5 * span * s.excess.a[i] if known else 0.0)
        subtract_compliances(m, s, s.decision.z, s.decision.u, s.F, 1)
    scatter(m, s.F, s.g)


cdef void reactions_ahead(const tl_model* m, tl_state* s) noexcept nogil:
    """Reactions without the torques to be found; after free_motion."""
    if TL_NLIN(m) + TL_NCON(m) > 0:
        reactions_of(m, s, s.em, s.am, s.decision.u, s.decision.z)
    else:
        reactions_of(m, s, s.em, s.am, s.now.u, s.now.z)


cdef inline void limit_ahead(const tl_model* m, const tl_state* s, tl_box* box, double ahead) noexcept nogil:
    """Limits of the candidates: static, or sliding once they have been seen to slide; free wheels block without limit."""
    cdef int32_t c, i
    cdef double lf, lb
    for c in range(box.nc):
        i = box.cand[c]
        if box.released[c]:
            lf = trend(s.now.cap_f[i], s.end.cap_f[i], ahead) if m.fr[i].fwd != BLOCKED else s.now.lim_f[i]
            lb = trend(s.now.cap_b[i], s.end.cap_b[i], ahead) if m.fr[i].bwd != BLOCKED else s.now.lim_b[i]
        else:
            lf = trend(s.now.lim_f[i], s.end.lim_f[i], ahead) if m.fr[i].fwd != BLOCKED else s.now.lim_f[i]
            lb = trend(s.now.lim_b[i], s.end.lim_b[i], ahead) if m.fr[i].bwd != BLOCKED else s.now.lim_b[i]
        box.lo[c] = -lf if lf > 0.0 else 0.0
        box.hi[c] = lb if lb > 0.0 else 0.0


cdef inline int32_t release_sliding(const tl_model* m, tl_box* box) noexcept nogil:
    """Candidates that slide have their sliding capacity from here on; 1 when that is less than they were taken with. One
    at its limit that does not slide keeps it."""
    cdef int32_t c, again = 0
    for c in range(box.nc):
        if box.side[c] != 0 and not box.released[c] and box.y[c] != 0.0:
            box.released[c] = 1
            if m.fr[box.cand[c]].peak != 1.0 or m.fr[box.cand[c]].hold > 0.0:
                again = 1
    return again


cdef inline void solve_ahead(const tl_model* m, tl_state* s, tl_box* box, double ahead) noexcept nogil:
    """Sides of the candidates. An element that breaks away falls back to its sliding capacity; that may free others."""
    cdef int32_t piv, rounds
    free_motion(m, s, box)
    if TL_NLS(m) > 0:
        reactions_ahead(m, s)
    for rounds in range(TL_NF(m) + 2):
        limit_ahead(m, s, box, ahead)
        piv = 0
        if TL_NLS(m) > 0:
            s.counters[TL_C_RELAXED] += decide_losses(m, s, box, &piv)
        else:
            s.counters[TL_C_RELAXED] += boxed_solve(box.nc, box.W, box.b, box.lo, box.hi, box.tau, box.side, box.work, &piv)
            find_slips(box)
        count_pivots(s, piv)
        if not release_sliding(m, box):
            break


cdef void free_ends(const tl_model* m, tl_state* s) noexcept nogil:
    """Stops that do not hold any more, or carry nothing because others hold: without a torque."""
    cdef int32_t i, j
    for j in range(TL_NST(m)):
        i = m.st[j].fr
        if s.mode[i] != MODE_STUCK:
            s.mode[i] = MODE_FREE
            s.tied[i] = 0


cdef int32_t end_pulls(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when a stop would have to pull now to hold."""
    cdef int32_t i, j
    for j in range(TL_NST(m)):
        i = m.st[j].fr
        if s.mode[i] == MODE_STUCK and (s.now.tau[i] > s.now.lim_b[i] or s.now.tau[i] < -s.now.lim_f[i]):
            return 1
    return 0


cdef void leave_ends(const tl_model* m, tl_state* s) noexcept nogil:
    """Stops that do not hold: not at their end from here on."""
    cdef int32_t j
    for j in range(TL_NST(m)):
        if s.mode[m.st[j].fr] != MODE_STUCK:
            s.at_end[j] = 0
            stop_limits(m, s, j)


cdef void choose_serial(const tl_model* m, tl_state* s) noexcept nogil:
    """Modes of friction in series with springs and dampers, from the torque these would hold it with now: no inertia lies between,
    so that no acceleration enters. Sets its torque, and speed (elastic: angle) of the shaft between; what a spring gives that lets
    go at once is heat of the friction."""
    cdef int32_t i, j, k, q, slid, way
    cdef double along, torque, rate, limit, limit_rate, size, new
    for j in range(TL_NRX(m)):
        i = m.rx[j].fr
        if i < 0:
            continue
        k = TL_FR_ROW(m, i)
        q = m.rx[j].coord
        slid = s.decision.logged[i] & 1
        along = s.now.u[q] - row_dot(m, k, s.now.u) / m.rx[j].share          # speed of the shaft if it sticks
        torque = (s.now.z[q] if m.rx[j].elastic else along - row_angle(m, s, m.rx[j].row)) / m.rx[j].gain
        rate = (along if m.rx[j].elastic else s.now.a[q] - row_dot(m, m.rx[j].row, s.now.u)) / m.rx[j].gain
        way = MODE_BACKWARD if torque > 0.0 else MODE_FORWARD
        size = fabs(torque)
        s.mode[i] = way if s.pressed[i] else MODE_FREE
        limit_rate = -way * sliding_rate(m, s, j, 1, s.theta)
        limit = s.now.cap_b[i]
        if s.pressed[i] and not slid:
            limit = s.now.lim_b[i]
            limit_rate *= m.fr[i].peak
        if s.pressed[i] and (size < limit * (1.0 - AT_CAPACITY) or (
                not slid and size <= limit * (1.0 + AT_CAPACITY) and -way * rate <= limit_rate)):
            s.mode[i] = MODE_STUCK
            s.now.tau[i] = torque
            s.now.u[q] = along
            continue
        new = 0.0 if s.mode[i] == MODE_FREE else -way * s.now.cap_b[i]
        s.now.tau[i] = new
        if m.rx[j].elastic:
            s.e_fr[i] += 0.5 * (torque + new) * (torque - new) * m.rx[j].gain * m.rx[j].share
            s.now.z[q] = m.rx[j].gain * new
        s.now.u[q] = row_angle(m, s, m.rx[j].row) + m.rx[j].gain * sliding_rate(m, s, j, m.rx[j].elastic, s.theta)
        if s.mode[i] != MODE_FREE and way * row_dot(m, k, s.now.u) < (TOL_R if slid else -TOL_R):
            s.mode[i] = MODE_STUCK
            s.now.tau[i] = new if m.rx[j].elastic else torque
            s.now.u[q] = along
    if TL_NRX(m) > 0:
        gather(m, s.now.u, s.now.w)


cdef void decide_over(const tl_model* m, tl_state* s, double ahead, double span, int32_t known) noexcept nogil:
    """Modes by the forces over the look-ahead (`span`: that of springs, s), accelerations and torques of this instant."""
    cdef int32_t i, c
    cdef int64_t here = mark(s)
    cdef tl_box box = take_box(m, s)
    box.ahead = 0.5 * m.look_ahead if ahead > 0.0 else 0.0
    choose_serial(m, s)
    find_candidates(m, s, &box, ahead)
    if box.nc > 0 or TL_NLS(m) > 0:
        force_ahead(m, s, ahead, span, known)
        solve_ahead(m, s, &box, ahead)
        for c in range(box.nc):
            i = box.cand[c]
            s.mode[i] = 0 if box.side[c] == 0 else (1 if box.side[c] < 0 else -1)
            s.tied[i] = box.side[c] != 0 and not box.released[c]
            s.ties |= s.tied[i]
    release(s, here)
    if TL_NST(m) > 0:
        free_ends(m, s)
    s.pat = pattern_now(m, s)
    forget_history(m, s)
    settle(m, s)


cdef int32_t turns_back(const tl_model* m, const tl_state* s, double least) noexcept nogil:
    """1 when an element begins to slide one way while its slip accelerates the other way, by more than `least` (rad/s2, m/s2)."""
    cdef int32_t i
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and not s.tied[i] and fabs(s.now.w[TL_FR_ROW(m, i)]) <= TOL_R and (
                s.mode[i] * row_dot(m, TL_FR_ROW(m, i), s.now.a) < -least):
            return 1
    return 0


cdef void decide(const tl_model* m, tl_state* s, double x, int32_t known) noexcept nogil:
    """Modes of all pressed elements at rest, by the boxed problem over a look-ahead, and the accelerations that follow.

    x, known: where the trial that led here was truncated (its end values carry the trend of forces and limits over the interval).
    """
    cdef int32_t i
    cdef double ahead = 0.0, span = span_of_regimes(m, s) if TL_NCON(m) > 0 else m.look_ahead * m.h
    if known and x < TREND_TO:
        ahead = 0.5 * m.look_ahead / ((1.0 - x) * s.part)
    s.counters[TL_C_DECISIONS] += 1
    for i in range(TL_NF(m)):
        s.decision.logged[i] = logged_mode(s, i)
    s.decision.without_excess = m.unresolved and s.pat.n_fast > 0
    decide_over(m, s, ahead, span, known)
    if s.decision.without_excess:
        s.decision.without_excess = 0
        if turns_back(m, s, 0.0):
            # what slides has to go the way the method moves it
            decide_over(m, s, ahead, span, known)
    elif known and TL_ND(m) + TL_NVG(m) == 0 and turns_back(m, s, 2.0 * TOL_R / (m.look_ahead * m.h)):
        # the slip would go the other way first: it rests until its torque reaches the limit
        decide_over(m, s, 0.0, 0.0, known)
    if TL_NST(m) > 0:
        if end_pulls(m, s):
            # springs swing within the look-ahead and press what they pull now: this instant alone
            decide_over(m, s, 0.0, 0.0, known)
        leave_ends(m, s)
    for i in range(TL_NF(m)):
        if logged_mode(s, i) != s.decision.logged[i]:
            log_mode_change(m, s, i)
