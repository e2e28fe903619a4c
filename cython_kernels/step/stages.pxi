# The stages of a step in models with losses, driven flanges or contacts: accelerations, constraint torques, reactions.
#
# `stages` is 1 (order 2: the end), 2 (order 4: middle and end) or 0 (the present instant). The linear problem is
#
#   A v = g + B_s^T tau + R^T tau_loss,    B_s v = alpha (driven) or 0,    tau_loss = -(k r + c),  r linear in v and forces
#
# with A = S, A4 or M. Its solution for given g is P (g - A ad) + ad; the loss torques are found by a small system over
# the stages, from the response X of the reactions to them, which depends on the lock pattern only.

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
            s.us[i] = s.now.u[i] + h * (5.0 / 24.0 * s.now.a[i] + v[i] / 3.0 - v[n + i] / 24.0)
            s.us[n + i] = s.now.u[i] + h * (s.now.a[i] / 6.0 + v[i] * (2.0 / 3.0) + v[n + i] / 6.0)
            s.zs[i] = s.now.z[i] + h * (5.0 / 24.0 * s.now.u[i] + s.us[i] / 3.0 - s.us[n + i] / 24.0)
            s.zs[n + i] = s.now.z[i] + h * (s.now.u[i] / 6.0 + s.us[i] * (2.0 / 3.0) + s.us[n + i] / 6.0)


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


cdef void linear_stages(const tl_model* m, tl_state* s, int32_t stages, const double* A, const double* P,
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
        k = TL_LIN_ROW(m, i)
        s.f_lin[i] = -(m.lin[i].c * (lin_dot(m, i, z) + m.row_off[k] - m.lin[i].phi0) + m.lin[i].d * lin_dot(m, i, u))
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


cdef void solve_stages(const tl_model* m, tl_state* s, int32_t stages, double* v) noexcept nogil:
    """Accelerations v (stages*n), torques of the elements at rest, of driven flanges and of losses, from s.g.

    On return s.g holds the loss torques as well, and tau, rea of each stage are set.
    """
    cdef int32_t c, d, j, l, r, st, k = 0, size, n = TL_N(m), nls = TL_NLS(m), count = stages if stages > 0 else 1
    cdef const double* A = m.M if stages == 0 else (s.pat.S if stages == 1 else s.pat.A4)
    cdef const double* P = s.pat.P0 if stages == 0 else (s.pat.P if stages == 1 else s.pat.P4)
    cdef const double* X = s.pat.X0 if stages == 0 else s.pat.X
    cdef double slope, const_, dt
    cdef double* L
    cdef double* b
    cdef tl_eval* e
    linear_stages(m, s, stages, A, P, v)
    if nls == 0:
        return
    for l in range(nls):
        if s.mode[m.ls[l].fr] & 1:
            s.li[k] = l
            k += 1
    stage_motion(m, s, stages, v)
    reactions(m, s, stages, v)
    if k == 0:
        return
    size = k * count
    L = s.lw
    b = L + size * size
    for st in range(count):
        e = stage_eval(s, stages, st)
        for c in range(k):
            l = s.li[c]
            loss_law(m, s, l, e.w[m.fr[m.ls[l].fr].row], stage_theta(s, stages, st), s.branch[l], s.mode[m.ls[l].fr],
                     &slope, &const_)
            b[st * k + c] = -(slope * e.rea[l] + const_)
            for r in range(count):
                for d in range(k):
                    L[(st * k + c) * size + r * k + d] = slope * X[(st * nls + l) * count * nls + r * nls + s.li[d]]
            L[(st * k + c) * size + st * k + c] += 1.0
    if lu_solve(L, size, b, 1):
        return
    for st in range(count):
        e = stage_eval(s, stages, st)
        for c in range(k):
            l = m.ls[s.li[c]].fr
            dt = b[st * k + c]
            e.tau[l] = dt
            e.cap_f[l] = fabs(dt)
            e.cap_b[l] = fabs(dt)
            for j in range(m.row_ptr[m.fr[l].row], m.row_ptr[m.fr[l].row + 1]):
                s.g[st * n + m.row_idx[j]] += m.row_val[j] * dt
    linear_stages(m, s, stages, A, P, v)
    stage_motion(m, s, stages, v)
    reactions(m, s, stages, v)
    # undone, so that the caller may solve again from the forces it has assembled
    for st in range(count):
        for c in range(k):
            l = m.ls[s.li[c]].fr
            dt = b[st * k + c]
            for j in range(m.row_ptr[m.fr[l].row], m.row_ptr[m.fr[l].row + 1]):
                s.g[st * n + m.row_idx[j]] -= m.row_val[j] * dt


cdef inline double stage_theta(const tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """Where in the step's inputs a stage lies."""
    if stages == 0:
        return s.theta
    return s.theta + (s.part if st == stages - 1 else 0.5 * s.part)
