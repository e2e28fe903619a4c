# The trial: one step over the full h with the modes held. Order 2 (two points) or 4 (three points).
#
# Equations: (9) to (18).

#: of a speed (or of 1 rad/s or m/s), or of a friction torque: how far it may be off where forces are taken at it
cdef double MISPREDICTED = 1e-3
#: the same for three points behind a jump of forces or their slopes: the fourth order is kept down to errors of this size
cdef double FORESEEN = 1e-8


cdef enum:
    PASSES = 3             # of a trial of three points: each leaves an error smaller by a power of h
    BODY_PASSES = 12       # with joint shafts on bodies, whose speeds swing with those: 2 to 4 are usual


cdef inline void predict(const tl_model* m, double h, tl_cvec u, tl_cvec a, tl_cvec hs1, tl_vec u1) noexcept nogil:
    """u1 = u + h (a + slope/2): speeds at the end if the acceleration goes on as it did."""
    cdef int32_t i
    for i in range(TL_N(m)):
        u1[i] = u[i] + h * (a[i] + 0.5 * hs1[i])


cdef inline int32_t off(double found, double taken, double share) noexcept nogil:
    """1 where a speed is not the one that forces were taken at; share: of it, or of 1 rad/s or m/s."""
    return fabs(found - taken) > share * (1.0 + fabs(found))


cdef inline int32_t correct_and_ask(const tl_model* m, double h, tl_cvec u, tl_cvec a, tl_cvec a1, tl_vec u1,
                                    tl_vec before, double share) noexcept nogil:
    """u1 = u + h/2 (a + a1); 1 where one of the speeds u1, which go into `before`, was off."""
    cdef int32_t i, found = 0
    for i in range(TL_N(m)):
        before[i] = u1[i]
        u1[i] = u[i] + 0.5 * h * (a[i] + a1[i])
        found |= off(u1[i], before[i], share)
    return found


cdef inline int32_t mispredicted(const tl_model* m, const tl_state* s, const tl_eval* e, const double* u, const double* before,
                                 double share) noexcept nogil:
    """1 where speeds u rather than `before`, which the forces e were taken at, change one of these: the speed of a port is
    off, or the capacity of an element that slides changes by as much. (Where it is steep it has been found with the speeds.)"""
    cdef int32_t i, k, hint
    cdef double taken, cap
    for i in range(TL_NPORT(m)):
        k = TL_PORT_ROW(m, i)
        if off(row_dot(m, k, u), row_dot(m, k, before), share):
            return 1
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and slips(m, s, i) and not e.steep[i]:
            hint = s.hint[2 * TL_NENG(m) + 3 * TL_NTC(m) + i]
            taken = e.cap_f[i] if s.mode[i] == MODE_FORWARD else e.cap_b[i]
            if taken != 0.0:
                cap = friction_at(m, i, e.raw[i], s.mode[i] * row_dot(m, TL_FR_ROW(m, i), u), &hint)
                if fabs(cap - taken) > share * fabs(cap):
                    return 1
    return 0


cdef inline void finish2(const tl_model* m, double h, tl_cvec u, tl_cvec z, tl_cvec a, tl_cvec a1, tl_vec u1, tl_vec z1,
                         tl_vec s1) noexcept nogil:
    """Speeds and angles at the end, and the polynomial a + s1 x of the acceleration (s2 stays 0)."""
    cdef int32_t i
    cdef double b0 = h * h * (0.5 - m.beta), b1 = h * h * m.beta
    for i in range(TL_N(m)):
        u1[i] = u[i] + 0.5 * h * (a[i] + a1[i])
        z1[i] = z[i] + h * u[i] + b0 * a[i] + b1 * a1[i]
        s1[i] = a1[i] - a[i]


cdef inline void springs_at_end(const tl_model* m, const tl_state* s, double h, double b0) noexcept nogil:
    """F[row] -= force of the springs and dampers at the end, as far as it does not depend on the acceleration there."""
    cdef int32_t i, k
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        s.F[k] -= lin_law(m, i, lin_dot(m, i, s.now.z) + m.row_off[k] + h * s.now.w[k] + b0 * s.wa[k],
                          s.now.w[k] + 0.5 * h * s.wa[k])


cdef inline void accelerate(const tl_model* m, tl_state* s, int32_t stages, int64_t steep) noexcept nogil:
    """Accelerations of the stages that answer s.g, and with them the forces of laws along rows, which go into s.g, too. steep: some
    law is steep at the speed it has."""
    if staged(m):
        drive_stages(m, s, stages, 0.0)
    answer_forces(m, s, stages)
    if steep or TL_NJO(m) > 0 or (TL_NCON(m) > 0 and m.ncurved > 0):
        find_along_rows(m, s, stages, steep != 0)


cdef inline void trial2(const tl_model* m, tl_state* s, double theta, int32_t passes) noexcept nogil:
    """Trial over h from the present state with the modes held, order 2. Writes u1, z1, a1, s1, s2, end.

        S a1 = f1 - D (u + h/2 a) - K (q + h u + h^2 (1/2 - beta) a) + B_s^T tau1
    """
    cdef int32_t i, k, again
    cdef double h = s.h, b0 = h * h * (0.5 - m.beta)
    cdef const double* held
    cdef double share = FORESEEN if TL_NWR(m) > 0 else MISPREDICTED
    cdef tl_eval* e = s.end
    gather(m, s.now.a, s.wa)
    choose_governors(m, s)
    pressures(m, s, theta + s.part, e.p)
    predict(m, h, s.now.u, s.now.a, s.now.hs1, s.end.u)
    while True:
        govern2(m, s)
        s.n_eased = 0
        eval_forces(m, s, e, s.end.u, theta + s.part, s.xi1)
        if TL_NWR(m) > 0:
            mean_body_ports(m, s, e)
        assemble(m, s, e, s.F)
        springs_at_end(m, s, h, b0)
        for i in range(TL_NCON(m)):
            if curved(m, i):
                continue
            k = m.con[i].row
            s.F[k] += contact_force(m, s, i, row_dot(m, k, s.now.z) + m.row_off[k] + h * s.now.w[k] + b0 * s.wa[k],
                                    s.now.w[k] + 0.5 * h * s.wa[k])
        scatter(m, s.F, s.g)
        accelerate(m, s, 1, s.stiff)
        passes -= 1
        if passes <= 0 or s.unsolved:
            break
        again = correct_and_ask(m, h, s.now.u, s.now.a, s.end.a, s.end.u, s.taken, share) and mispredicted(m, s, e, s.end.u, s.taken, share)
        if not again and (not m.stiff_cut or TL_NWR(m) > 0):
            break
    finish2(m, h, s.now.u, s.now.z, s.now.a, s.end.a, s.end.u, s.end.z, s.end.hs1)
    govern2(m, s)
    if staged(m):
        loss_limits(m, s, 1)
    else:
        held = torques_at_rest(m, s, s.pat.S, s.g, s.end.a)
        for i in range(TL_NF(m)):
            if s.mode[i] == MODE_STUCK:
                e.tau[i] = held[i]
    if s.n_eased > 0:
        settle_eased(m, s)
    gather(m, s.end.u, e.w)


cdef inline void start4(const tl_model* m, double h, tl_cvec u, tl_cvec a, tl_cvec s1, tl_cvec s2, tl_vec um, tl_vec u1, tl_vec um0,
                        tl_vec u10) noexcept nogil:
    """Predicted speeds of the middle (um) and the end (u1), and the parts of them (um0, u10) that do not depend on the accelerations
    of the step."""
    cdef int32_t i
    for i in range(TL_N(m)):
        um[i] = u[i] + h * (0.5 * a[i] + 0.125 * s1[i] + s2[i] * (1.0 / 24.0))
        u1[i] = u[i] + h * (a[i] + 0.5 * s1[i] + s2[i] * (1.0 / 3.0))
        um0[i] = u[i] + h * (5.0 / 24.0) * a[i]
        u10[i] = u[i] + h * (1.0 / 6.0) * a[i]


cdef inline void predict4(const tl_model* m, tl_state* s, double h) noexcept nogil:
    """start4 of the state: what does not depend on the accelerations goes into s.v1."""
    start4(m, h, s.now.u, s.now.a, s.now.hs1, s.hs2, s.um, s.end.u, s.v1, s.v1 + TL_N(m))


cdef inline void angles4(const tl_model* m, double h, double share, double share_m, double share_1, tl_cvec z0, tl_cvec u0, tl_cvec um,
                         tl_cvec u1, tl_vec z) noexcept nogil:
    """Angles z at a point of the trial: z0 and the speeds at its three points with their shares."""
    cdef int32_t i
    for i in range(TL_N(m)):
        z[i] = z0[i] + h * (share * u0[i] + um[i] * share_m + u1[i] * share_1)


cdef inline void springs4(const tl_model* m, tl_state* s, double h, int32_t stage, double* F) noexcept nogil:
    """F[row] -= forces of springs, dampers and contacts in the middle (0) or at the end (1), as far as they do not depend
    on the accelerations there; after predict4."""
    cdef int32_t n = TL_N(m)
    if TL_NLIN(m) + TL_NCON(m) == 0:
        return
    if stage == 0:
        angles4(m, h, 5.0 / 24.0, 1.0 / 3.0, -1.0 / 24.0, s.now.z, s.now.u, s.v1, s.v1 + n, s.v2)
    else:
        angles4(m, h, 1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0, s.now.z, s.now.u, s.v1, s.v1 + n, s.v2)
    subtract_compliances(m, s, s.v2, s.v1 + stage * n, F, 0)


cdef inline void correct4(const tl_model* m, double h, tl_cvec v, tl_cvec um0, tl_cvec u10, tl_vec am, tl_vec a1, tl_vec um,
                          tl_vec u1) noexcept nogil:
    """Accelerations v = [am, a1] and the speeds that follow from them."""
    cdef int32_t i, n = TL_N(m)
    for i in range(n):
        am[i] = v[i]
        a1[i] = v[n + i]
        um[i] = um0[i] + h * (v[i] * (1.0 / 3.0) - v[n + i] * (1.0 / 24.0))
        u1[i] = u10[i] + h * (v[i] * (2.0 / 3.0) + v[n + i] * (1.0 / 6.0))


cdef inline void take4(const tl_model* m, tl_state* s, double h, const double* v) noexcept nogil:
    """correct4 of the state, after predict4, and the integrals of the idle controllers at these speeds."""
    correct4(m, h, v, s.v1, s.v1 + TL_N(m), s.am, s.end.a, s.um, s.end.u)
    govern4(m, s)


cdef inline void rates4(const tl_model* m, tl_cvec a0, tl_cvec am, tl_cvec a1, tl_vec s1, tl_vec s2) noexcept nogil:
    """The polynomial a0 + s1 x + s2 x^2 of the acceleration."""
    cdef int32_t i
    for i in range(TL_N(m)):
        s1[i] = -3.0 * a0[i] + 4.0 * am[i] - a1[i]
        s2[i] = 2.0 * a0[i] - 4.0 * am[i] + 2.0 * a1[i]


cdef inline void finish4(const tl_model* m, tl_state* s, double h) noexcept nogil:
    """Angles at the end, the polynomial of the acceleration, row speeds of both points."""
    angles4(m, h, 1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0, s.now.z, s.now.u, s.um, s.end.u, s.end.z)
    rates4(m, s.now.a, s.am, s.end.a, s.end.hs1, s.s2)
    gather(m, s.um, s.em.w)
    gather(m, s.end.u, s.end.w)


cdef inline int32_t foreseen(const tl_model* m, tl_cvec u, tl_cvec taken) noexcept nogil:
    """1 when the speeds u are those that forces were taken at."""
    cdef int32_t i
    for i in range(TL_N(m)):
        if off(u[i], taken[i], FORESEEN):
            return 0
    return 1


cdef void held4(const tl_model* m, tl_state* s) noexcept nogil:
    """Torques of the elements at rest in the middle and at the end; g as solved for, v2 = [am, a1]."""
    cdef int32_t i, n = TL_N(m), nf = TL_NF(m)
    if n <= TL_FORMED:
        matvec(s.pat.T4, 2 * nf, 2 * n, s.g, s.held_tau)
    elif TL_NLIN(m) == 0:
        held_torques(m, s, m.M, s.g, s.v2, s.held_tau)
        held_torques(m, s, m.M, s.g + n, s.v2 + n, s.held_tau + nf)
    else:
        missing_forces(s, 2 * n, s.pat.A4, s.v2, s.g)
        matvec(s.pat.Tn, nf, n, s.rho, s.held_tau)
        matvec(s.pat.Tn, nf, n, s.rho + n, s.held_tau + nf)
    for i in range(nf):
        if s.mode[i] == MODE_STUCK:
            s.em.tau[i] = s.held_tau[i]
            s.end.tau[i] = s.held_tau[nf + i]


cdef void trial4(const tl_model* m, tl_state* s, double theta, int32_t passes) noexcept nogil:
    """As trial2 with points 0, 1/2, 1: Hermite-Simpson, order 4. Also writes am, um, em. passes: at least so many."""
    cdef int32_t n = TL_N(m), done = 0, missed, again
    cdef int64_t stiff
    cdef double h = s.h
    gather(m, s.now.a, s.wa)
    choose_governors(m, s)
    pressures(m, s, theta + 0.5 * s.part, s.em.p)
    pressures(m, s, theta + s.part, s.end.p)
    predict4(m, s, h)
    govern4(m, s)
    while True:
        eval_forces(m, s, s.em, s.um, theta + 0.5 * s.part, s.xim)
        stiff = s.stiff
        eval_forces(m, s, s.end, s.end.u, theta + s.part, s.xi1)
        assemble(m, s, s.em, s.F)
        springs4(m, s, h, 0, s.F)
        scatter(m, s.F, s.g)
        assemble(m, s, s.end, s.F)
        springs4(m, s, h, 1, s.F)
        scatter(m, s.F, s.g + n)
        accelerate(m, s, 2, s.stiff or stiff)
        memcpy(s.taken, s.end.u, n * sizeof(double))
        take4(m, s, h, s.v2)
        done += 1
        missed = not foreseen(m, s.end.u, s.taken)
        again = s.hist[0] == HISTORY_JUMPED and missed and mispredicted(m, s, s.end, s.end.u, s.taken, FORESEEN)
        if TL_NWR(m) > 0 and missed and done < BODY_PASSES and not s.unsolved:
            continue
        if done >= PASSES or (done >= passes and not again):
            break
    if staged(m):
        loss_limits(m, s, 2)
    elif s.pat.ns > 0:
        held4(m, s)
    finish4(m, s, h)


cdef inline void trial(const tl_model* m, tl_state* s, double done) noexcept nogil:
    """A trial of the length s.h from the present state; more passes when there is no history to predict from. (Two points
    need none where the speeds were predicted well: with the acceleration alone the error is of the third order, once.)"""
    s.n_eased = 0
    s.unsolved = 0
    if s.four:
        hold_look_ups(m, s)
        s.hint = s.look.held
        trial4(m, s, done, (2 if moving(m) else 1) if s.hist[0] else 3)
        s.hint = s.look.free
    else:
        trial2(m, s, done, BODY_PASSES if TL_NWR(m) > 0 else 1 if s.hist[0] else 2)
    s.look.known = 0                             # of the end of the trial it is not
    if m.stiff_cut:
        follow_excess(m, s)
