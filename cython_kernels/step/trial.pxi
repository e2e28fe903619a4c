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


cdef inline void predict(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Speeds at the stages if the acceleration goes on as it did, and the integrals of the idle controllers there."""
    if stages == 2:
        speeds_at(m, 1, 0.5, s.h, s.now.u, s.now.a, s.now.hs1, s.hs2, s.um)
    speeds_at(m, stages == 2, 1.0, s.h, s.now.u, s.now.a, s.now.hs1, s.hs2, s.end.u)
    govern(m, s, stages)


cdef inline int32_t off(double found, double taken, double share) noexcept nogil:
    """1 where a speed is not the one that forces were taken at; share: of it, or of 1 rad/s or m/s."""
    return fabs(found - taken) > share * (1.0 + fabs(found))


cdef inline int32_t foreseen(const tl_model* m, tl_cvec u, tl_cvec taken, double share) noexcept nogil:
    """1 when the speeds u are those that forces were taken at."""
    cdef int32_t i, found = 1
    for i in range(TL_N(m)):
        found &= not off(u[i], taken[i], share)
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


cdef inline void springs_ahead(const tl_model* m, const tl_state* s, int32_t stages, int32_t st, double* F) noexcept nogil:
    """F[row] -= forces of springs, dampers and contacts at a stage, as far as they do not depend on the accelerations of the stages."""
    cdef int32_t i, k
    cdef double h = s.h, way = h * node(stages, st), b = h * start_weight(stages, st), b2 = h * h * start_weight_2(stages, st, m.beta)
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        F[k] -= lin_law(m, i, lin_dot(m, i, s.now.z) + m.row_off[k] + way * s.now.w[k] + b2 * s.wa[k], s.now.w[k] + b * s.wa[k])
    for i in range(TL_NCON(m)):
        if not curved(m, i):
            k = m.con[i].row
            F[k] += contact_force(m, s, i, row_dot(m, k, s.now.z) + m.row_off[k] + way * s.now.w[k] + b2 * s.wa[k],
                                  s.now.w[k] + b * s.wa[k])


cdef inline void accelerate(const tl_model* m, tl_state* s, int32_t stages, int64_t steep) noexcept nogil:
    """Accelerations s.v2 of the stages that answer s.g, and with them the forces of laws along rows, which go into s.g, too. steep: some
    law is steep at the speed it has."""
    if staged(m):
        drive_stages(m, s, stages, 0.0)
    answer_forces(m, s, stages)
    if steep or TL_NJO(m) > 0 or (TL_NCON(m) > 0 and m.ncurved > 0):
        find_along_rows(m, s, stages, steep != 0)


cdef inline void correct(const tl_model* m, tl_state* s, int32_t stages, const double* v) noexcept nogil:
    """Accelerations v of the stages, the speeds that follow from them, and the integrals of the idle controllers at these; s.taken:
    the speeds at the end before."""
    cdef int32_t n = TL_N(m), last = n * (stages - 1)
    if stages == 2 or not s.quiet:
        memcpy(s.taken, s.end.u, n * sizeof(double))
    memcpy(s.end.a, v + last, n * sizeof(double))
    if stages == 2:
        memcpy(s.am, v, n * sizeof(double))
        move_speeds(m, 2, 0, s.h, s.now.u, s.now.a, v, v + n, s.um)
    move_speeds(m, stages, stages - 1, s.h, s.now.u, s.now.a, v, v + last, s.end.u)
    govern(m, s, stages)


cdef inline void rates_of(const tl_model* m, int32_t stages, tl_cvec a0, tl_cvec am, tl_cvec a1, tl_vec s1, tl_vec s2) noexcept nogil:
    """The polynomial a0 + s1 x + s2 x^2 of the acceleration (two points: s2 stays 0)."""
    cdef int32_t i
    for i in range(TL_N(m)):
        if stages == 1:
            s1[i] = a1[i] - a0[i]
        else:
            s1[i] = -3.0 * a0[i] + 4.0 * am[i] - a1[i]
            s2[i] = 2.0 * a0[i] - 4.0 * am[i] + 2.0 * a1[i]


cdef inline void end_motion(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Angles at the end, and how the acceleration goes on."""
    move_angles(m, stages, stages - 1, s.h, s.now.z, s.now.u, s.now.a, s.um, s.end.u, s.end.a, s.end.z)
    rates_of(m, stages, s.now.a, s.am, s.end.a, s.end.hs1, s.s2)


cdef inline void stage_rows(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Row speeds of the stages."""
    cdef int32_t st
    for st in range(stages):
        gather(m, stage_speeds(s, stages, st), stage_eval(s, stages, st).w)


cdef void held4(const tl_model* m, tl_state* s) noexcept nogil:
    """s.held_tau: torques of all elements at rest in the middle and at the end of a trial of three points."""
    cdef int32_t n = TL_N(m), nf = TL_NF(m)
    if n <= TL_FORMED:
        matvec(s.pat.T4, 2 * nf, 2 * n, s.g, s.held_tau)
    elif TL_NLIN(m) == 0:
        held_torques(m, s, m.M, s.g, s.v2, s.held_tau)
        held_torques(m, s, m.M, s.g + n, s.v2 + n, s.held_tau + nf)
    else:
        missing_forces(s, 2 * n, s.pat.A4, s.v2, s.g)
        matvec(s.pat.Tn, nf, n, s.rho, s.held_tau)
        matvec(s.pat.Tn, nf, n, s.rho + n, s.held_tau + nf)


cdef inline void hold_stages(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Torques of the elements at rest at the stages, which answer s.g with the accelerations s.v2."""
    cdef int32_t i, st, nf = TL_NF(m)
    cdef const double* tau = s.held_tau
    if stages == 1:
        tau = torques_at_rest(m, s, s.pat.S, s.g, s.v2)
    else:
        held4(m, s)
    for st in range(stages):
        for i in range(nf):
            if s.mode[i] == MODE_STUCK:
                stage_eval(s, stages, st).tau[i] = tau[st * nf + i]


cdef inline int32_t asks_again(const tl_model* m, const tl_state* s, int32_t stages, double share) noexcept nogil:
    """1 when a trial whose speeds were not foreseen evaluates its forces once more. Three points that go on from a trial before need no
    more, but beside joint shafts on bodies."""
    if stages == 2 and s.hist[0] != HISTORY_JUMPED:
        return TL_NWR(m) > 0
    return (stages == 2 and TL_NWR(m) > 0) or mispredicted(m, s, s.end, s.end.u, s.taken, share)


cdef inline void trial_of(const tl_model* m, tl_state* s, double theta, int32_t stages, int32_t least, int32_t most,
                          double share) noexcept nogil:
    """Trial over s.h from the present state with the modes held. Writes accelerations, speeds and instants of the stages, and the motion
    at the end. least, most: evaluations of the forces; share: of a speed, beyond which they are evaluated again."""
    cdef int32_t st, n = TL_N(m), done = 0
    cdef int64_t steep
    cdef tl_eval* e
    gather(m, s.now.a, s.wa)
    choose_governors(m, s)
    for st in range(stages):
        pressures(m, s, theta + node(stages, st) * s.part, stage_eval(s, stages, st).p)
    predict(m, s, stages)
    while True:
        steep = 0
        s.n_eased = 0
        for st in range(stages):
            e = stage_eval(s, stages, st)
            eval_forces(m, s, e, stage_speeds(s, stages, st), theta + node(stages, st) * s.part, stage_idle(s, stages, st))
            steep |= s.stiff
            if TL_NWR(m) > 0 and stages == 1:
                mean_body_ports(m, s, e)
            assemble(m, s, e, s.F)
            springs_ahead(m, s, stages, st, s.F)
            scatter(m, s.F, s.g + st * n)
        accelerate(m, s, stages, steep)
        correct(m, s, stages, s.v2)
        done += 1
        if done >= most or s.unsolved or (done >= least and (foreseen(m, s.end.u, s.taken, share) or not asks_again(m, s, stages, share))):
            break
    end_motion(m, s, stages)
    if staged(m):
        loss_limits(m, s, stages)
    elif s.pat.ns > 0:
        hold_stages(m, s, stages)
    if stages == 1 and s.n_eased > 0:
        settle_eased(m, s)
    stage_rows(m, s, stages)


cdef inline void trial(const tl_model* m, tl_state* s, double done) noexcept nogil:
    """A trial of the length s.h from the present state; more evaluations when there is no history to predict from. (Two points
    need none where the speeds were predicted well: with the acceleration alone the error is of the third order, once.)"""
    cdef int32_t known = s.hist[0] != 0, most = BODY_PASSES if TL_NWR(m) > 0 else 0
    s.n_eased = 0
    s.unsolved = 0
    if s.four:
        hold_look_ups(m, s)
        s.hint = s.look.held
        trial_of(m, s, done, 2, PASSES if not known else 2 if moving(m) else 1, most if most > 0 else PASSES, FORESEEN)
        s.hint = s.look.free
    elif most > 0:
        trial_of(m, s, done, 1, 1, most, FORESEEN)
    else:
        trial_of(m, s, done, 1, 1 if known or not m.unresolved else 2, 1 if known else 2, MISPREDICTED)
    s.look.known = 0                             # of the end of the trial it is not
    if m.unresolved:
        follow_excess(m, s)
