# The ripple of joint shafts in a trial: solved for together with the accelerations, while the matrices stay constant.
#
# The forces F (two ports a shaft and stage) answer the angles q and speeds w of their rows, and these answer the forces by
# what the lock pattern says, q = q* + H (F - F*), so the residual F(q, w) - F = 0 is a small problem of its own: Newton's
# method on it, with the response of the pattern and the derivatives of the law. Where a shaft is resolved or nearly
# straight the first round ends it; with one that is unresolved the mean is as stiff as the law, and the rounds converge
# as fast as the ripple is smaller than the mean, or quadratically.
#
# Equations: (60), (62), (63).

#: rad: part of a radian of twist whose force counts as the size of the forces where there is less
cdef double SMALL_TWIST = 1e-3
#: of their size: how far forces may be off before the step is counted as one whose law was not solved
cdef double JOINT_UNSOLVED = 1e-6

cdef enum:
    JOINT_ROUNDS = 12      # 1 to 3 are usual


#: N.m over the size of the torques: what is left is rounding
cdef double JOINT_TOL = 1e-13
#: of the stiffness times the angles: rounding of the torques
cdef double JOINT_ROUNDING = 1e-15


cdef inline int32_t joint_row(const tl_model* m, int32_t c) noexcept nogil:
    """Row of port c of the joint shafts: a of all, then b of all."""
    return m.jo[c].row_a if c < TL_NJO(m) else m.jo[c - TL_NJO(m)].row_b


cdef void row_responses(const tl_model* m, tl_state* s, int32_t stages, const int32_t* rows, int32_t nc, double* Hq,
                        double* Hw) noexcept nogil:
    """Angles Hq and speeds Hw of nc rows at each stage per force along one of them at a stage."""
    cdef int32_t c, d, k, j, i, r, n = TL_N(m), N = stages * nc
    cdef double h = s.h, am, a1, wm, w1
    cdef const double* P
    cdef int64_t here = mark(s)
    cdef double* col = scratch(s, stages * n)
    for r in range(stages):
        for d in range(nc):
            k = rows[d]
            for i in range(stages * n):
                col[i] = 0.0
            for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
                P = s.pat.P + m.row_idx[j] * n if stages == 1 else s.pat.P4 + (r * n + m.row_idx[j]) * 2 * n
                for i in range(stages * n):
                    col[i] += P[i] * m.row_val[j]
            for c in range(nc):
                am = row_dot(m, rows[c], col)
                i = c * N + r * nc + d
                if stages == 1:
                    Hw[i] = 0.5 * h * am
                    Hq[i] = m.beta * h * h * am
                    continue
                a1 = row_dot(m, rows[c], col + n)
                wm = h * to_middle(0.0, am, a1)
                w1 = h * to_end(0.0, am, a1)
                Hw[i] = wm
                Hw[nc * N + i] = w1
                Hq[i] = h * to_middle(0.0, wm, w1)
                Hq[nc * N + i] = h * to_end(0.0, wm, w1)
    release(s, here)


cdef inline void joint_slopes(const tl_model* m, int32_t i, const tl_joint* j, double[4] on_a, double[4] on_b) noexcept nogil:
    """Derivatives of both forces with respect to q_a, q_b, w_a, w_b."""
    cdef int32_t k
    cdef double c = m.jo[i].c, d = m.jo[i].d, ga = j.b[0].g, gb = j.b[1].g
    cdef double[4] dtau
    cdef double[4] mean
    dtau[0] = c * ga + d * j.b[0].dg * j.wa
    dtau[1] = -c * gb - d * j.b[1].dg * j.wb
    dtau[2] = d * ga
    dtau[3] = -d * gb
    mean[0], mean[1], mean[2], mean[3] = c, -c, d, -d
    for k in range(4):
        on_a[k] = mean[k] - ga * dtau[k]
        on_b[k] = gb * dtau[k] - mean[k]
    on_a[0] -= j.tau * j.b[0].dg
    on_b[1] += j.tau * j.b[1].dg


cdef inline void mean_slopes(const tl_model* m, const tl_state* s, int32_t i, const tl_joint* j, const tl_joint_mean* o,
                             double[4] on_a, double[4] on_b) noexcept nogil:
    """The same of the end forces of two points, which make the means those of joint_mean."""
    cdef double c = m.jo[i].c, d = m.jo[i].d, along = c + 2.0 * d / s.h
    cdef double dtau_a = along * j.b[0].g, dtau_b = -along * j.b[1].g
    on_a[0] = c - o.g[0] * dtau_a - 2.0 * o.tau * o.dg[0]
    on_a[1] = -c - o.g[0] * dtau_b
    on_b[0] = o.g[1] * dtau_a - c
    on_b[1] = o.g[1] * dtau_b + 2.0 * o.tau * o.dg[1] + c
    on_a[2], on_a[3], on_b[2], on_b[3] = d, -d, -d, d


cdef inline void joint_motion(const tl_model* m, int32_t i, const double* u, const double* z, double* x) noexcept nogil:
    """q_a, q_b, w_a, w_b at the speeds u and angles z."""
    x[0] = row_dot(m, m.jo[i].row_a, z) + m.row_off[m.jo[i].row_a]
    x[1] = row_dot(m, m.jo[i].row_b, z) + m.row_off[m.jo[i].row_b]
    x[2] = row_dot(m, m.jo[i].row_a, u)
    x[3] = row_dot(m, m.jo[i].row_b, u)


cdef inline void joint_predicted(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i, double theta,
                                 tl_joint* j) noexcept nogil:
    """Joint shaft i at the predicted speeds e.w, as joint_ports has it; at the present ones where the shaft is so stiff that its
    present acceleration, which changes within the trial, leads further away than a trial carries."""
    cdef double dt = (theta - s.theta) * m.h, far = TURN_LIMIT
    cdef const tl_jo* f = &m.jo[i]
    cdef double qa = predicted(m, s, e, f.row_a, dt), qb = predicted(m, s, e, f.row_b, dt)
    cdef double a = turned_angle(m, s, f.row_a) + dt * s.now.w[f.row_a], b = turned_angle(m, s, f.row_b) + dt * s.now.w[f.row_b]
    cdef const double* w = e.w
    j.q = predicted(m, s, e, f.row, dt)
    if not (fabs(qa - a) <= far and fabs(qb - b) <= far):
        w = s.now.w
        j.q = turned_angle(m, s, f.row) + dt * w[f.row]
        qa = a
        qb = b
    j.w = w[f.row]
    j.wa = w[f.row_a]
    j.wb = w[f.row_b]
    joint_law(m, s, i, theta, qa, qb, j)


cdef double joint_residual(const tl_model* m, const tl_state* s, int32_t i, int32_t stages, int32_t st, int32_t first_round,
                           double* force, double[2][4] slope, double* rounding) noexcept nogil:
    """Forces of joint shaft i at a stage by the law and their derivatives; the size of its torque. rounding: raised to that of
    its forces.

    In the first round the motion that answers forces at predicted angles is far off where the shaft is stiff: the law is
    linear about the prediction, not about that motion."""
    cdef int32_t k, at = TL_NPORT(m) - 2 * TL_NJO(m) + i, n = TL_N(m)
    cdef double theta = stage_theta(s, stages, st)
    cdef double[4] away
    cdef tl_joint j
    cdef tl_joint j0
    cdef tl_joint_mean o
    if first_round:
        joint_predicted(m, s, stage_eval(s, stages, st), i, theta, &j)
    else:
        joint_at(m, s, i, theta, s.us + st * n, s.zs + st * n, &j)
    if stages == 1:
        joint_at(m, s, i, s.theta, s.now.u, s.now.z, &j0)
        joint_mean(m, s, i, &j0, &j, &o)
        force[0] = m.jo[i].c * (j0.q + j.q) + m.jo[i].d * (j0.w + j.w) - 2.0 * o.tau * o.g[0] - s.now.port[at]
        force[1] = 2.0 * o.tau * o.g[1] - m.jo[i].c * (j0.q + j.q) - m.jo[i].d * (j0.w + j.w) - s.now.port[at + TL_NJO(m)]
        mean_slopes(m, s, i, &j, &o, slope[0], slope[1])
    else:
        joint_forces(m, i, &j, &force[0], &force[1])
        joint_slopes(m, i, &j, slope[0], slope[1])
    if first_round:
        joint_motion(m, i, s.us + st * n, s.zs + st * n, away)
        away[0] -= j.qa
        away[1] -= j.qb
        away[2] -= j.wa
        away[3] -= j.wb
        for k in range(4):
            force[0] += slope[0][k] * away[k]
            force[1] += slope[1][k] * away[k]
    rounding[0] = larger(rounding[0], JOINT_ROUNDING * m.jo[i].c * (1.0 + fabs(j.qa) + fabs(j.qb)))
    return fabs(j.tau) + m.jo[i].c * (1.0 + fabs(j.q)) * SMALL_TWIST


cdef void push_joints(const tl_model* m, tl_state* s, int32_t stages, const double* more) noexcept nogil:
    """So much more force at the ports of each stage, and the accelerations that answer it."""
    cdef int32_t st, c, nc = 2 * TL_NJO(m)
    for st in range(stages):
        for c in range(nc):
            stage_eval(s, stages, st).port[TL_NPORT(m) - nc + c] += more[st * nc + c]
            add_along(m, joint_row(m, c), more[st * nc + c], s.g + st * TL_N(m))
    answer_forces(m, s, stages)


cdef void solve_joints(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Forces of the joint shafts at the stages of the trial, into s.g, the ports of each stage, and the accelerations;
    s.unsolved: not found."""
    cdef int32_t i, k, c, x, st, it, njo = TL_NJO(m), nc = 2 * njo, N = stages * nc
    cdef int32_t first = TL_NPORT(m) - nc
    cdef int64_t here = mark(s)
    cdef double* Hq = scratch(s, N * N)
    cdef double* Hw = scratch(s, N * N)
    cdef double* A = scratch(s, N * N)
    cdef double* b = scratch(s, N)
    cdef int32_t* rows = scratch_ints(s, nc)
    cdef double[2] force
    cdef double[2][4] slope
    cdef double worst = 0.0, scale = 0.0, rounding = 0.0, size
    for c in range(nc):
        rows[c] = joint_row(m, c)
    row_responses(m, s, stages, rows, nc, Hq, Hw)
    for it in range(JOINT_ROUNDS + 1):
        stage_motion(m, s, stages, s.end.a if stages == 1 else s.v2)
        worst = 0.0
        scale = 0.0
        for st in range(stages):
            for i in range(njo):
                size = joint_residual(m, s, i, stages, st, it == 0, force, slope, &rounding)
                scale = size if size > scale else scale
                for k in range(2):
                    c = k * njo + i
                    x = st * nc + c
                    b[x] = force[k] - stage_eval(s, stages, st).port[first + c]
                    # (a force that is not a number is not found, either)
                    worst = fabs(b[x]) if not fabs(b[x]) <= worst else worst
                    for c in range(N):
                        A[x * N + c] = (1.0 if c == x else 0.0) - (
                            slope[k][0] * Hq[(st * nc + i) * N + c] + slope[k][1] * Hq[(st * nc + njo + i) * N + c]
                            + slope[k][2] * Hw[(st * nc + i) * N + c] + slope[k][3] * Hw[(st * nc + njo + i) * N + c])
        if (it > 0 and worst <= JOINT_TOL * scale + rounding) or it == JOINT_ROUNDS or lu_solve(A, N, b, 1):
            break
        push_joints(m, s, stages, b)
    if not worst <= JOINT_UNSOLVED * scale:
        s.unsolved = 1
    release(s, here)
