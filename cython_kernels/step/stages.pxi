# The stages of a step in models with losses, driven flanges or contacts: accelerations, constraint torques, reactions.
#
# `stages` is 1 (order 2: the end), 2 (order 4: middle and end) or 0 (the present instant). The linear problem is
#
#   A v = g + B_s^T tau + R^T tau_loss,    B_s v = alpha (driven) or 0,    tau_loss = -(k r + c),  r linear in v and forces
#
# with A = S, A4 or M. Its solution for given g is P (g - A ad) + ad; the loss torques are found by a small system over
# the stages, from the response X of the reactions to them, which depends on the lock pattern only.
#
# Needs: losses.pxi, ratios.pxi (moving_stages), trial.pxi (lin_force), model/laws.pxd, model/lobatto.pxd.

cdef inline int32_t staged(const tl_model* m) noexcept nogil:
    """1 when the model has any of these groups."""
    return TL_NLS(m) + TL_NCON(m) + TL_ND(m) + TL_NVG(m) > 0


cdef void stage_motion(const tl_model* m, tl_state* s, int32_t stages, const double* v) noexcept nogil:
    """Speeds us and angles zs of the stages that go with the accelerations v."""
    cdef int32_t i, n = TL_N(m)
    cdef double h = s.h
    if stages == 0:
        for i in range(n):
            s.us[i] = s.now.u[i]
            s.zs[i] = s.now.z[i]
    elif stages == 1:
        for i in range(n):
            s.us[i] = s.now.u[i] + 0.5 * h * (s.now.a[i] + v[i])
            s.zs[i] = s.now.z[i] + h * s.now.u[i] + h * h * ((0.5 - m.beta) * s.now.a[i] + m.beta * v[i])
    else:
        for i in range(n):
            s.us[i] = s.now.u[i] + h * to_middle(s.now.a[i], v[i], v[n + i])
            s.us[n + i] = s.now.u[i] + h * to_end(s.now.a[i], v[i], v[n + i])
            s.zs[i] = s.now.z[i] + h * to_middle(s.now.u[i], s.us[i], s.us[n + i])
            s.zs[n + i] = s.now.z[i] + h * to_end(s.now.u[i], s.us[i], s.us[n + i])


cdef inline tl_eval* stage_eval(tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """The instant a stage belongs to."""
    if stages == 0:
        return s.now
    return s.end if st == stages - 1 else s.em


cdef void constraint_forces(const tl_model* m, tl_state* s, int32_t stages, const double* A,
                            const double* v) noexcept nogil:
    """Torques of the elements at rest and of the driven ones: Tn (A v - g), into tau of each stage."""
    cdef int32_t i, j, st, n = TL_N(m), nf = TL_NF(m), count = stages if stages > 0 else 1, N
    cdef double acc
    cdef tl_eval* e
    N = count * n
    for i in range(N):
        acc = -s.g[i]
        for j in range(N):
            acc += A[i * N + j] * v[j]
        s.rho[i] = acc
    for st in range(count):
        e = stage_eval(s, stages, st)
        for i in range(nf):
            if s.mode[i] == MODE_STUCK:
                acc = 0.0
                for j in range(n):
                    acc += s.pat.Tn[j * nf + i] * s.rho[st * n + j]
                e.tau[i] = acc


cdef inline void linear_stages(const tl_model* m, tl_state* s, int32_t stages, const double* A, const double* P,
                               double* v) noexcept nogil:
    """v from s.g with the elements at rest held, driven flanges and ratios moved; then the constraint torques."""
    if moving(m):
        moving_stages(m, s, stages, A, P, v)
    else:
        held_stages(m, s, stages, A, P, v)


cdef void held_stages(const tl_model* m, tl_state* s, int32_t stages, const double* A, const double* P,
                      double* v) noexcept nogil:
    """v from s.g with the elements at rest held and the driven flanges moved; then the constraint torques."""
    cdef int32_t i, j, n = TL_N(m), N = n * stages if stages > 0 else n
    cdef double acc
    if TL_ND(m) + TL_NVG(m) > 0:
        for i in range(N):
            acc = s.g[i]
            for j in range(N):
                acc -= A[i * N + j] * s.ad[j]
            s.rho[i] = acc
        matvec(P, N, N, s.rho, v)
        for i in range(N):
            v[i] += s.ad[i]
    else:
        matvec(P, N, N, s.g, v)
    constraint_forces(m, s, stages, A, v)


cdef void reactions_of(const tl_model* m, tl_state* s, tl_eval* e, const double* a, const double* u,
                       const double* z) noexcept nogil:
    """Reactions the losses depend on, from accelerations a, speeds u, angles z, and the forces of e; into e.rea."""
    cdef int32_t i, l, r, k, nf = TL_NF(m)
    cdef double acc, size, term
    for i in range(TL_NLIN(m)):
        s.f_lin[i] = -lin_force(m, i, z, u)
    for i in range(TL_NCON(m)):
        k = m.con[i].row
        s.f_con[i] = contact_force(m, s, i, row_dot(m, k, z) + m.row_off[k], row_dot(m, k, u))
    for l in range(TL_NLS(m)):
        r = m.ls[l].re
        acc = 0.0
        size = 0.0
        for i in range(TL_N(m)):
            term = m.re_A[r * TL_N(m) + i] * a[i]
            acc += term
            size += fabs(term)
        for i in range(TL_NPORT(m)):
            term = m.re_port[r * TL_NPORT(m) + i] * e.port[i]
            acc += term
            size += fabs(term)
        for i in range(nf):
            term = m.re_fr[r * nf + i] * e.tau[i]
            acc += term
            size += fabs(term)
        for i in range(TL_NLIN(m)):
            term = m.re_lin[r * TL_NLIN(m) + i] * s.f_lin[i]
            acc += term
            size += fabs(term)
        for i in range(TL_NCON(m)):
            term = m.re_con[r * TL_NCON(m) + i] * s.f_con[i]
            acc += term
            size += fabs(term)
        e.rea[l] = acc
        s.rea_size[l] = size


cdef void reactions(const tl_model* m, tl_state* s, int32_t stages, const double* v) noexcept nogil:
    """Reactions of each stage from its accelerations, forces and motion (us, zs)."""
    cdef int32_t st, n = TL_N(m)
    for st in range(stages if stages > 0 else 1):
        reactions_of(m, s, stage_eval(s, stages, st), v + st * n, s.us + st * n, s.zs + st * n)


cdef struct tl_moving:
    int32_t k              # losses that move
    int32_t* loss          # (k)
    double* tau            # (stages, k) their torques


cdef int32_t moving_torques(const tl_model* m, tl_state* s, int32_t stages, const double* X, tl_moving* p) noexcept nogil:
    """Their torques tau = -(k r + c) over the stages, r with the response X to them; 1 where nothing balances them."""
    cdef int32_t c, d, l, r, st, singular, k = p.k, nls = TL_NLS(m), count = stages if stages > 0 else 1, size = k * count
    cdef double slope, const_
    cdef int64_t here = mark(s)
    cdef double* L = scratch(s, size * size)
    cdef tl_eval* e
    for st in range(count):
        e = stage_eval(s, stages, st)
        for c in range(k):
            l = p.loss[c]
            loss_law(m, s, l, e.w[m.fr[m.ls[l].fr].row], stage_theta(s, stages, st), s.branch[l], s.mode[m.ls[l].fr],
                     &slope, &const_)
            p.tau[st * k + c] = -(slope * e.rea[l] + const_)
            for r in range(count):
                for d in range(k):
                    L[(st * k + c) * size + r * k + d] = slope * X[(st * nls + l) * count * nls + r * nls + p.loss[d]]
            L[(st * k + c) * size + st * k + c] += 1.0
    singular = lu_solve(L, size, p.tau, 1)
    release(s, here)
    return singular


cdef void push_moving(const tl_model* m, tl_state* s, int32_t stages, const tl_moving* p, int32_t undo) noexcept nogil:
    """Their torques into s.g, tau and the capacities of each stage; undo: out of s.g again."""
    cdef int32_t c, i, j, st
    cdef double dt
    cdef tl_eval* e
    for st in range(stages if stages > 0 else 1):
        e = stage_eval(s, stages, st)
        for c in range(p.k):
            i = m.ls[p.loss[c]].fr
            dt = p.tau[st * p.k + c]
            if not undo:
                e.tau[i] = dt
                e.cap_f[i] = fabs(dt)
                e.cap_b[i] = fabs(dt)
            for j in range(m.row_ptr[m.fr[i].row], m.row_ptr[m.fr[i].row + 1]):
                if undo:
                    s.g[st * TL_N(m) + m.row_idx[j]] -= m.row_val[j] * dt
                else:
                    s.g[st * TL_N(m) + m.row_idx[j]] += m.row_val[j] * dt


cdef void solve_stages(const tl_model* m, tl_state* s, int32_t stages, double* v) noexcept nogil:
    """Accelerations v (stages*n), torques of the elements at rest, of driven flanges and of losses, from s.g, which is left
    as it was; tau, rea of each stage are set."""
    cdef int32_t l, nls = TL_NLS(m)
    cdef const double* A = m.M if stages == 0 else (s.pat.S if stages == 1 else s.pat.A4)
    cdef const double* P = s.pat.P0 if stages == 0 else (s.pat.P if stages == 1 else s.pat.P4)
    cdef int64_t here = mark(s)
    cdef tl_moving p
    linear_stages(m, s, stages, A, P, v)
    if nls == 0:
        return
    p.k = 0
    p.loss = scratch_ints(s, nls)
    p.tau = scratch(s, 2 * nls)
    for l in range(nls):
        if s.mode[m.ls[l].fr] & 1:
            p.loss[p.k] = l
            p.k += 1
    stage_motion(m, s, stages, v)
    reactions(m, s, stages, v)
    if p.k > 0 and not moving_torques(m, s, stages, s.pat.X0 if stages == 0 else s.pat.X, &p):
        push_moving(m, s, stages, &p, 0)
        linear_stages(m, s, stages, A, P, v)
        stage_motion(m, s, stages, v)
        reactions(m, s, stages, v)
        # undone, so that the caller may solve again from the forces it has assembled
        push_moving(m, s, stages, &p, 1)
    release(s, here)


cdef inline double stage_theta(const tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """Where in the step's inputs a stage lies."""
    if stages == 0:
        return s.theta
    return s.theta + (s.part if st == stages - 1 else 0.5 * s.part)
