# Which elements stick and which slide from here on: the boxed problem over the next h, and what follows from it.

#: part of h over which a decision looks ahead. Short: it then finds the mode of this instant, and later events of the same
#: step get a split of their own. Not 0: a torque that has just reached its limit must be seen to go beyond it.
cdef double LOOK_AHEAD = 1.0 / 32.0


cdef inline double trend(double now, double end, double ahead) noexcept nogil:
    """Mean over the look-ahead of a quantity that is moving from `now` to `end`."""
    return now + ahead * (end - now)


cdef void decide(const tl_model* m, tl_state* s, double x, int32_t known, int32_t everything,
                 double part) noexcept nogil:
    """Modes of all pressed elements at rest, by the boxed problem over a look-ahead, and the accelerations that follow.

    x, known: cut of the trial that led here (its end values carry the trend of forces and limits over the interval).
    everything = 1: plain impulse step (Moreau): all pressed elements enter with their speeds, and the state is advanced
    by part*h with the mean acceleration found; always well posed, takes energy out only.
    """
    cdef int32_t i, j, k, n = TL_N(m), nf = TL_NF(m), nc = 0, c, again, rounds, piv
    cdef double h = m.h, r, acc, lf, lb, ahead = 0.0, span = m.h if everything else LOOK_AHEAD * m.h
    cdef double* W = s.box_w
    cdef const double* inverse = m.Sinv if everything else m.Minv
    cdef const double* response = m.W if everything else m.W0
    cdef double* b
    cdef double* lo_
    cdef double* hi_
    cdef double* tau
    cdef double* work
    cdef int32_t* cand = s.box_i
    cdef int32_t* side = s.box_i + nf
    cdef int32_t* released = s.box_i + 2 * nf
    cdef int64_t old
    b = W + nf * nf
    lo_ = b + nf
    hi_ = lo_ + nf
    tau = hi_ + nf
    work = tau + nf
    if known and x < 0.999999:
        ahead = 0.5 * LOOK_AHEAD / (1.0 - x)
    s.counters[TL_C_DECISIONS] += 1
    # who takes part: pressed elements at rest; the others slide as their speed says
    for i in range(nf):
        k = TL_FR_ROW(m, i)
        r = s.now.w[k]
        s.stuck_list[i] = <int32_t>s.mode[i]          # mode before, for the log
        if m.fr_fwd[i] != 2 and m.fr_bwd[i] != 2 and s.pressed[i] == 0:
            s.mode[i] = 2
            continue
        if everything or fabs(r) <= TOL_R or (m.fr_bwd[i] == 2 and r < 0.0) or (m.fr_fwd[i] == 2 and r > 0.0):
            cand[nc] = i
            side[nc] = 0 if s.mode[i] == 0 else (-1 if s.mode[i] == 1 else (1 if s.mode[i] == -1 else 0))
            released[nc] = 1 if (everything and fabs(r) > TOL_R) else 0
            nc += 1
            s.mode[i] = 2                             # no sliding force of its own below
        else:
            s.mode[i] = 1 if r > 0.0 else -1
    if nc > 0:
        # force on u without the candidates, mean over the span
        for i in range(TL_NHOT(m)):
            s.F[i] = 0.0
        for i in range(TL_NPORT(m)):
            s.F[TL_PORT_ROW(m, i)] += trend(s.now.port[i], s.end.port[i], ahead)
        for i in range(nf):
            if s.mode[i] == 1:
                s.F[TL_FR_ROW(m, i)] -= trend(s.now.cap_f[i], s.end.cap_f[i], ahead)
            elif s.mode[i] == -1:
                s.F[TL_FR_ROW(m, i)] += trend(s.now.cap_b[i], s.end.cap_b[i], ahead)
        if TL_NLIN(m) > 0:
            for i in range(n):
                s.v1[i] = s.now.z[i] + 0.5 * span * s.now.u[i]
            subtract_compliances(m, s, s.v1, s.now.u, s.F)
        scatter(m, s.F, s.g)
        for i in range(n):
            acc = 0.0
            for j in range(n):
                acc += inverse[i * n + j] * s.g[j]
            s.am[i] = acc
        for c in range(nc):
            i = cand[c]
            b[c] = row_dot(m, TL_FR_ROW(m, i), s.am) + s.now.w[TL_FR_ROW(m, i)] / span
            for j in range(nc):
                W[c * nc + j] = response[i * nf + cand[j]]
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
            if boxed_solve(nc, W, b, lo_, hi_, tau, side, work, &piv):
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
        old = s.stuck_list[i]
        if s.mode[i] != old:
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
        if s.mode[i] == 0 and s.now.w[TL_FR_ROW(m, i)] != 0.0:
            any_stuck = 1
    if any_stuck:
        # u <- P0 M u: the projection that conserves momentum
        for i in range(n):
            acc = 0.0
            for j in range(n):
                acc += m.M[i * n + j] * s.now.u[j]
            s.v1[i] = acc
        matvec(s.pat.P0, n, n, s.v1, s.now.u)
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
        s.F[TL_FR_ROW(m, i)] += s.now.tau[i]
    if TL_NLIN(m) > 0:
        subtract_compliances(m, s, s.now.z, s.now.u, s.F)
    scatter(m, s.F, s.g)
    matvec(s.pat.P0, n, n, s.g, s.now.a)
    matvec(s.pat.T0, nf, n, s.g, s.v1)
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
            s.am[i] += m.SinvBt[cand[c] * n + i] * tau[c]
    for i in range(n):
        s.end.u[i] = s.now.u[i] + dt * s.am[i]
        s.now.z[i] += dt * (s.now.u[i] + 0.5 * dt * s.am[i])
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
    cdef int32_t i, j, n = TL_N(m), hit = -1
    cdef double r, acc, e0 = 0.0, e1 = 0.0
    for i in range(TL_NF(m)):
        r = s.now.w[TL_FR_ROW(m, i)]
        s.box_i[i] = <int32_t>s.mode[i]
        if (m.fr_bwd[i] == 2 and r < -TOL_R) or (m.fr_fwd[i] == 2 and r > TOL_R):
            hit = i
    if hit < 0:
        return 0
    for i in range(TL_NF(m)):
        r = s.now.w[TL_FR_ROW(m, i)]
        if (m.fr_bwd[i] == 2 and r < TOL_R) or (m.fr_fwd[i] == 2 and r > -TOL_R):
            s.mode[i] = 0
        else:
            s.mode[i] = 2
    s.pat = pattern_of(m, s)
    for i in range(n):
        acc = 0.0
        for j in range(n):
            acc += m.M[i * n + j] * s.now.u[j]
        s.v1[i] = acc
        e0 += 0.5 * acc * s.now.u[i]
    matvec(s.pat.P0, n, n, s.v1, s.now.u)
    for i in range(n):
        e1 += 0.5 * s.v1[i] * s.now.u[i]
    s.e_fr[hit] += e0 - e1
    gather(m, s.now.u, s.now.w)
    for i in range(TL_NF(m)):
        s.mode[i] = s.box_i[i]
    return 1
