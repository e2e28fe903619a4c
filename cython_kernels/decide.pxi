# Which elements stick and which slide from here on: the boxed problem over the next h, and what follows from it.

#: part of h over which a decision looks ahead. Short: it then finds the mode of this instant, and later events of the same
#: step get a split of their own. Not 0: a torque that has just reached its limit must be seen to go beyond it.
cdef double LOOK_AHEAD = 1.0 / 32.0


cdef inline double trend(double now, double end, double ahead) noexcept nogil:
    """Mean over the look-ahead of a quantity that is moving from `now` to `end`."""
    return now + ahead * (end - now)


cdef inline int32_t reaches(double t, double limit) noexcept nogil:
    return t > 1e-12 and t >= limit * (1.0 - 1e-9)


cdef inline int32_t likely_side(const tl_model* m, const tl_state* s, int32_t i, int32_t k,
                                double ahead) noexcept nogil:
    """First guess for a candidate: stuck (0) unless its torque is passing its limit, or it has just begun to slide and
    goes on doing so. Only the work depends on it, not the answer."""
    cdef int32_t q
    cdef double t, lb, lf
    if s.mode[i] == 0:
        t = trend(s.now.tau[i], s.end.tau[i], ahead)
        lb = trend(s.now.lim_b[i], s.end.lim_b[i], ahead)
        lf = trend(s.now.lim_f[i], s.end.lim_f[i], ahead)
        if reaches(t, lb) or reaches(s.now.tau[i], s.now.lim_b[i]):
            return 1
        if reaches(-t, lf) or reaches(-s.now.tau[i], s.now.lim_f[i]):
            return -1
        return 0
    if s.mode[i] == 2:
        return 0
    t = 0.0
    lb = 0.0
    for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
        t += m.row_val[q] * s.now.a[m.row_idx[q]]
        lb += fabs(m.row_val[q] * s.now.a[m.row_idx[q]])
    return -<int32_t>s.mode[i] if s.mode[i] * t >= -1e-9 * lb else 0


cdef void free_motion(const tl_model* m, tl_state* s, int32_t nc, const int32_t* cand, const double* inverse,
                      const double* response, double span, double* W, double* b) noexcept nogil:
    """The boxed problem of the candidates: accelerations am without their torques, slips b, responses W."""
    cdef int32_t c, i, j, n = TL_N(m), nf = TL_NF(m)
    cdef double acc
    for i in range(n):
        acc = 0.0
        for j in range(n):
            acc += inverse[i * n + j] * s.g[j]
        s.am[i] = acc
    for c in range(nc):
        i = cand[c]
        b[c] = row_dot(m, m.fr_row[i], s.am) + s.now.w[m.fr_row[i]] / span
        if TL_ND(m) + TL_NVG(m) > 0 and m.fr_src[i] == 5:
            b[c] = slip_of(m, s, i, s.am) - driven_acceleration(m, s, i)
        for j in range(nc):
            W[c * nc + j] = response[i * nf + cand[j]]


cdef void backward(const tl_model* m, const tl_pattern* p, const double* tau, double* back) noexcept nogil:
    """back (n) = Tn^T tau: times a row in the span of the stuck ones, the torque the least-norm split gives it."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef const int32_t* rows = p.range + 4 * n
    for j in range(n):
        back[j] = 0.0
        if TL_N(m) <= TL_FORMED:
            for i in range(nf):
                back[j] += p.Tn[j * nf + i] * tau[i]
    if TL_N(m) > TL_FORMED:
        for i in range(p.ns):
            axpy(tau[rows[2 * nf + i]], p.T + i * n, back, rows[2 * i], rows[2 * i + 1])


cdef enum:
    PATTERN_TRIES = 4      # assignments checked with their lock patterns before the boxed problem is factorised


cdef int32_t held_by_pattern(const tl_model* m, tl_state* s, int32_t nc, const int32_t* cand, const double* lo_,
                             const double* hi_, double* tau, int32_t* side, double span,
                             int32_t* pivots) noexcept nogil:
    """The boxed problem with the lock pattern of an assignment instead of factors of the candidates: torques of those
    that stick from the pattern, slips of the others from its accelerations. What is violated changes sides, all at once.

    Needs s.g (force without the candidates); the pattern of a right guess is the one the step goes on with. An element
    at its limit that the others keep at rest all the same (a tie) takes the side the least-norm split gives it.
    Returns 1 when an assignment holds, 0 after PATTERN_TRIES.
    """
    cdef int32_t i, j, c, q, n = TL_N(m), nf = TL_NF(m), bad, tied, t
    cdef double gamma, y, tol, share
    cdef double* f = s.v2                    # (n) force with the candidates at their limits, (n) torques seen from u
    cdef double* back = s.v2 + n
    cdef double* a = s.um
    cdef double* root = s.rho + n            # (n) square roots of the diagonal of M^-1
    cdef double* held = s.v1
    cdef tl_pattern* p
    for t in range(PATTERN_TRIES):
        for i in range(n):
            f[i] = s.g[i]
        for c in range(nc):
            i = cand[c]
            if (side[c] < 0 and lo_[c] < -1e300) or (side[c] > 0 and hi_[c] > 1e300):
                side[c] = 0
            s.mode[i] = 0
            if side[c] != 0:
                s.mode[i] = 2
                tau[c] = lo_[c] if side[c] < 0 else hi_[c]
                for q in range(m.row_ptr[m.fr_row[i]], m.row_ptr[m.fr_row[i] + 1]):
                    f[m.row_idx[q]] += m.row_val[q] * tau[c]
        s.pat = pattern_of(m, s)
        p = s.pat
        hold_now(m, p, f, a)
        if n <= TL_FORMED:
            far_matvec(p.T0, nf, n, f, held)
        else:
            held_torques(m, s, m.M, f, a, held)
        # bound on the terms of every acceleration, and so on its rounding: |P0_ij| <= sqrt(Minv_ii Minv_jj)
        gamma = 0.0
        for i in range(n):
            root[i] = sqrt(m.Minv[i * n + i])
            gamma += root[i] * fabs(f[i])
        bad = 0
        tied = 0
        for c in range(nc):
            i = cand[c]
            if side[c] == 0:
                tau[c] = held[i]
                tol = 1e-12 * (1.0 + fabs(tau[c]))
                if tau[c] < lo_[c] - tol:
                    side[c] = -1
                    bad += 1
                elif tau[c] > hi_[c] + tol:
                    side[c] = 1
                    bad += 1
                continue
            y = 0.0
            tol = 0.0
            for q in range(m.row_ptr[m.fr_row[i]], m.row_ptr[m.fr_row[i] + 1]):
                j = m.row_idx[q]
                y += m.row_val[q] * a[j]
                tol += fabs(m.row_val[q]) * root[j]
            share = s.now.w[m.fr_row[i]] / span
            y += share
            tol = 1e-12 * gamma * tol + 2.0 * fabs(share)
            if fabs(y) > tol:
                if (side[c] < 0) == (y < 0.0):
                    side[c] = 0
                    bad += 1
                continue
            if not tied:
                tied = 1
                backward(m, p, held, back)
            y = tau[c] - row_dot(m, m.fr_row[i], back)
            tol = 1e-12 * (1.0 + 2.0 * fabs(tau[c]) + fabs(y))
            if (side[c] < 0 and y < -tol) or (side[c] > 0 and y > tol):
                side[c] = 0
                bad += 1
        if bad == 0:
            return 1
        pivots[0] += 1
    for c in range(nc):
        s.mode[cand[c]] = 2
    return 0


cdef void decide(const tl_model* m, tl_state* s, double x, int32_t known, int32_t everything,
                 double part) noexcept nogil:
    """Modes of all pressed elements at rest, by the boxed problem over a look-ahead, and the accelerations that follow.

    x, known: cut of the trial that led here (its end values carry the trend of forces and limits over the interval).
    everything = 1: plain impulse step (Moreau): all pressed elements enter with their speeds, and the state is advanced
    by part*h with the mean acceleration found; always well posed, takes energy out only.
    """
    cdef int32_t i, j, k, n = TL_N(m), nf = TL_NF(m), nc = 0, c, again, rounds, piv
    cdef int32_t by_pattern = not (everything or TL_NLS(m) + TL_ND(m) + TL_NVG(m) > 0)
    cdef double h = m.h, r, acc, lf, lb, ahead = 0.0, span = m.h if everything else LOOK_AHEAD * m.h
    cdef double* W = s.box_w
    cdef const double* inverse = m.Sinv if everything else m.Minv
    cdef const double* response = s.W if everything else s.W0
    cdef double* b
    cdef double* lo_
    cdef double* hi_
    cdef double* tau
    cdef double* work
    cdef int32_t* cand = s.box_i
    cdef int32_t* side = s.box_i + nf
    cdef int32_t* released = s.box_i + 2 * nf
    cdef int32_t* before = s.box_i + 3 * nf
    cdef int32_t* guess = s.box_i + 4 * nf
    b = W + nf * nf
    lo_ = b + nf
    hi_ = lo_ + nf
    tau = hi_ + nf
    work = tau + nf
    if known and x < 0.999999:
        ahead = 0.5 * LOOK_AHEAD / ((1.0 - x) * s.part)
    s.counters[TL_C_DECISIONS] += 1
    # who takes part: pressed elements at rest; the others slide as their speed says
    for j in range(nf):
        i = j if TL_NLS(m) > 0 else m.fr_order[j]
        k = m.fr_row[i]
        r = s.now.w[k]
        before[i] = <int32_t>s.mode[i]                # for the log
        if TL_ND(m) + TL_NVG(m) > 0 and m.fr_src[i] == 5:
            cand[nc] = i
            side[nc] = 0
            released[nc] = 0
            nc += 1
            s.mode[i] = 2
            continue
        if m.fr_fwd[i] != 2 and m.fr_bwd[i] != 2 and s.pressed[i] == 0:
            s.mode[i] = 2
            continue
        if everything or fabs(r) <= TOL_R or (m.fr_bwd[i] == 2 and r < 0.0) or (m.fr_fwd[i] == 2 and r > 0.0):
            cand[nc] = i
            side[nc] = likely_side(m, s, i, k, ahead) if by_pattern else (0 if s.mode[i] == 2 else -<int32_t>s.mode[i])
            released[nc] = 1 if (everything and fabs(r) > TOL_R) else 0
            nc += 1
            s.mode[i] = 2                             # no sliding force of its own below
        else:
            s.mode[i] = 1 if r > 0.0 else -1
    if nc > 0 or TL_NLS(m) > 0:
        # force on u without the candidates, mean over the span
        for i in range(TL_NHOT(m)):
            s.F[i] = 0.0
        for i in range(TL_NPORT(m)):
            s.F[TL_PORT_ROW(m, i)] += trend(s.now.port[i], s.end.port[i], ahead)
        for i in range(nf):
            if TL_NLS(m) > 0 and m.fr_src[i] >= 4:
                s.em.tau[i] = 0.0                     # among the unknowns
                continue
            acc = 0.0
            if s.mode[i] == 1:
                acc = -trend(s.now.cap_f[i], s.end.cap_f[i], ahead)
            elif s.mode[i] == -1:
                acc = trend(s.now.cap_b[i], s.end.cap_b[i], ahead)
            s.F[TL_FR_ROW(m, i)] += acc
            s.em.tau[i] = acc
        if TL_NLIN(m) + TL_NCON(m) > 0:
            # springs and dampers in the middle of the span, as the motion goes on
            for i in range(n):
                s.v1[i] = s.now.z[i] + 0.5 * span * s.now.u[i]
                s.v2[i] = s.now.u[i] + (0.5 * span * s.now.a[i] if known else 0.0)
            subtract_compliances(m, s, s.v1, s.v2, s.F)
        scatter(m, s.F, s.g)
        if not by_pattern:
            free_motion(m, s, nc, cand, inverse, response, span, W, b)
        if TL_NLS(m) > 0:
            # reactions without the torques to be found
            for i in range(TL_NPORT(m)):
                s.em.port[i] = trend(s.now.port[i], s.end.port[i], ahead)
            if TL_NLIN(m) + TL_NCON(m) > 0:
                reactions_of(m, s, &s.em, s.am, s.v2, s.v1)
            else:
                reactions_of(m, s, &s.em, s.am, s.now.u, s.now.z)
        rounds = 0
        while True:
            for c in range(nc):
                i = cand[c]
                if released[c]:
                    lf = trend(s.now.cap_f[i], s.end.cap_f[i], ahead) if m.fr_fwd[i] != 2 else s.now.lim_f[i]
                    lb = trend(s.now.cap_b[i], s.end.cap_b[i], ahead) if m.fr_bwd[i] != 2 else s.now.lim_b[i]
                else:
                    lf = trend(s.now.lim_f[i], s.end.lim_f[i], ahead) if m.fr_fwd[i] != 2 else s.now.lim_f[i]
                    lb = trend(s.now.lim_b[i], s.end.lim_b[i], ahead) if m.fr_bwd[i] != 2 else s.now.lim_b[i]
                lo_[c] = -lf if lf > 0.0 else 0.0
                hi_[c] = lb if lb > 0.0 else 0.0
            piv = 0
            if by_pattern:
                for c in range(nc):
                    guess[c] = side[c]
                if not held_by_pattern(m, s, nc, cand, lo_, hi_, tau, side, span, &piv):
                    by_pattern = 0
                    free_motion(m, s, nc, cand, inverse, response, span, W, b)
                    for c in range(nc):
                        side[c] = guess[c]
            if by_pattern:
                pass
            elif TL_NLS(m) > 0:
                if decide_losses(m, s, nc, cand, b, lo_, hi_, tau, side, inverse, &piv):
                    s.counters[TL_C_RELAXED] += 1
            elif boxed_solve(nc, W, b, lo_, hi_, tau, side, work, &piv):
                s.counters[TL_C_RELAXED] += 1
            s.counters[TL_C_PIVOTS] += piv
            if piv > s.counters[TL_C_PIVOTS_MAX]:
                s.counters[TL_C_PIVOTS_MAX] = piv
            # an element that breaks away falls back to its sliding capacity; that may free others
            again = 0
            for c in range(nc):
                if side[c] != 0 and not released[c]:
                    released[c] = 1
                    if m.fr_peak[cand[c]] != 1.0 or m.fr_hold[cand[c]] > 0.0:
                        again = 1
            rounds += 1
            if not again or rounds > nf + 1:
                break
        for c in range(nc):
            s.mode[cand[c]] = 0 if side[c] == 0 else (1 if side[c] < 0 else -1)
        if everything:
            impulse_advance(m, s, nc, cand, tau, part)
    if everything:
        # held to the end of the interval: at rest but for the creep of the shift in the boxed problem, which settle removes
        for i in range(nf):
            if s.mode[i] == 0 and fabs(s.now.w[TL_FR_ROW(m, i)]) > 1e-6:
                s.mode[i] = 1 if s.now.w[TL_FR_ROW(m, i)] > 0.0 else -1
    for i in range(nf):
        if s.mode[i] != before[i]:
            log_mode_change(s, i)
    s.pat = pattern_of(m, s)
    s.hist[0] = 0
    for i in range(n):
        s.now.hs1[i] = 0.0
        s.hs2[i] = 0.0
    settle(m, s)


cdef void settle(const tl_model* m, tl_state* s) noexcept nogil:
    """With the modes known: remove the rounding left in stuck rows, then the acceleration and torques of this instant."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef double acc
    cdef int32_t any_stuck = 0
    for i in range(nf):
        if s.mode[i] == 0 and s.now.w[TL_FR_ROW(m, i)] != 0.0 and not (TL_ND(m) + TL_NVG(m) > 0 and m.fr_src[i] == 5):
            any_stuck = 1
    if any_stuck:
        # u <- P0 M u: the projection that conserves momentum
        if TL_ND(m) + TL_NVG(m) > 0:
            for i in range(nf):
                s.g[i] = slip_of(m, s, i, s.now.u)
            project(m, s, s.g)
        else:
            for i in range(n):
                s.v1[i] = dot(m.M + i * n, s.now.u, m.S_range[2 * i], m.S_range[2 * i + 1])
            hold_now(m, s.pat, s.v1, s.now.u)
            gather(m, s.now.u, s.now.w)
    for i in range(TL_NHOT(m)):
        s.F[i] = 0.0
    for i in range(TL_NPORT(m)):
        s.F[TL_PORT_ROW(m, i)] += s.now.port[i]
    for i in range(nf):
        if s.mode[i] == 1:
            s.now.tau[i] = -s.now.cap_f[i]
        elif s.mode[i] == -1:
            s.now.tau[i] = s.now.cap_b[i]
        else:
            s.now.tau[i] = 0.0
        if TL_NLS(m) > 0 and m.fr_src[i] == 4:
            s.now.tau[i] = 0.0
        s.F[TL_FR_ROW(m, i)] += s.now.tau[i]
    if TL_NLIN(m) + TL_NCON(m) > 0:
        subtract_compliances(m, s, s.now.z, s.now.u, s.F)
    scatter(m, s.F, s.g)
    if staged(m):
        drive_stages(m, s, 0)
        solve_stages(m, s, 0, s.v2)
        for i in range(n):
            s.now.a[i] = s.v2[i]
        loss_limits(m, s, 0)
        return
    hold_now(m, s.pat, s.g, s.now.a)
    if n <= TL_FORMED:
        far_matvec(s.pat.T0, nf, n, s.g, s.v1)
    else:
        held_torques(m, s, m.M, s.g, s.now.a, s.v1)
    for i in range(nf):
        if s.mode[i] == 0:
            s.now.tau[i] = s.v1[i]


cdef void impulse_advance(const tl_model* m, tl_state* s, int32_t nc, const int32_t* cand, const double* tau,
                          double part) noexcept nogil:
    """Advance by part*h with the mean acceleration a_m = am + S^-1 B^T tau of the impulse step."""
    cdef int32_t i, k, c, n = TL_N(m), nf = TL_NF(m)
    cdef double dt = part * m.h, w1
    for i in range(nf):
        s.now.tau[i] = -s.now.cap_f[i] if s.mode[i] == 1 else (s.now.cap_b[i] if s.mode[i] == -1 else 0.0)
    for c in range(nc):
        s.now.tau[cand[c]] = tau[c]
        for i in range(n):
            s.am[i] += s.SinvBt[cand[c] * n + i] * tau[c]
    for i in range(n):
        s.end.u[i] = s.now.u[i] + dt * s.am[i]
        # on the chord of the whole step: whatever the springs, no energy is added
        s.now.z[i] += dt * (s.now.u[i] + 0.5 * (m.h if m.stiff_cut else dt) * s.am[i])
    gather(m, s.end.u, s.em.w)
    for i in range(TL_NPORT(m)):
        k = TL_PORT_ROW(m, i)
        s.e_port[i] += 0.5 * dt * s.now.port[i] * (s.now.w[k] + s.em.w[k])
    for i in range(nf):
        k = TL_FR_ROW(m, i)
        s.e_fr[i] -= 0.5 * dt * s.now.tau[i] * (s.now.w[k] + s.em.w[k])
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        w1 = 0.5 * (s.now.w[k] + s.em.w[k])
        s.e_lin[i] += dt * m.lin_d[i] * w1 * w1
    for i in range(n):
        s.now.u[i] = s.end.u[i]
        s.now.a[i] = s.am[i]
    for i in range(TL_NHOT(m)):
        s.now.w[i] = s.em.w[i]


cdef inline void log_mode_change(tl_state* s, int32_t i) noexcept nogil:
    """Append (step, time, element, mode) to the ring."""
    cdef int64_t j = s.log_n % s.log_size
    s.log_step[j] = s.step_no[0]
    s.log_t[j] = s.t[0]
    s.log_el[j] = i
    s.log_mode[j] = <int32_t>s.mode[i]
    s.log_n += 1


cdef int stop_blocked(const tl_model* m, tl_state* s) noexcept nogil:
    """A free wheel that is found turning the blocked way (initial values, a speed set by hand) stops in an impact:
    projection of the speeds, which conserves momentum and takes energy out; the loss counts as its heat. Returns 1 when
    there was one; the impact may drive another into its stop, so it is called until it finds none."""
    cdef int32_t i, hit = -1
    cdef double r, e0 = 0.0, e1 = 0.0
    for i in range(TL_NF(m)):
        r = s.now.w[TL_FR_ROW(m, i)]
        s.box_i[i] = <int32_t>s.mode[i]
        if TL_ND(m) + TL_NVG(m) > 0 and m.fr_src[i] == 5:
            continue
        if (m.fr_bwd[i] == 2 and r < -TOL_R) or (m.fr_fwd[i] == 2 and r > TOL_R):
            hit = i
    if hit < 0:
        return 0
    for i in range(TL_NF(m)):
        r = s.now.w[TL_FR_ROW(m, i)]
        if TL_ND(m) + TL_NVG(m) > 0 and m.fr_src[i] == 5:
            s.mode[i] = 0
        elif (m.fr_bwd[i] == 2 and r < TOL_R) or (m.fr_fwd[i] == 2 and r > -TOL_R):
            s.mode[i] = 0
        else:
            s.mode[i] = 2
    s.pat = pattern_of(m, s)
    e0 = kinetic_energy(m, s)
    if TL_ND(m) + TL_NVG(m) > 0:
        for i in range(TL_NF(m)):
            s.g[i] = slip_of(m, s, i, s.now.u)
    project(m, s, s.g)
    e1 = kinetic_energy(m, s)
    s.e_fr[hit] += e0 - e1
    for i in range(TL_NF(m)):
        s.mode[i] = s.box_i[i]
    return 1
