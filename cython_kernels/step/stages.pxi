# The stages of a step in models with losses, driven flanges or contacts: accelerations, constraint torques, reactions.
#
#   A v = g + B_s^T tau + R^T tau_loss,    B_s v = alpha (driven) or 0,    tau_loss = -(k r + c),  r linear in v and forces
#
# with A = S, A4 or M; `stages` as in points.pxi. The response X of the reactions to the losses is that of the lock pattern.
#
# Equations: (29), (30), (56) to (59).

cdef inline int32_t staged(const tl_model* m) noexcept nogil:
    """1 when the model has any of these groups."""
    return TL_NLS(m) + TL_NCON(m) + TL_ND(m) + TL_NVG(m) > 0


cdef void constraint_forces(const tl_model* m, tl_state* s, int32_t stages, const double* A,
                            const double* v) noexcept nogil:
    """Torques of the elements at rest and of the driven ones: Tn (A v - g), into tau of each stage."""
    cdef int32_t i, st, count = stages if stages > 0 else 1
    missing_forces(s, count * TL_N(m), A, v, s.g)
    for st in range(count):
        for i in range(TL_NF(m)):
            if s.mode[i] == MODE_STUCK:
                stage_eval(s, stages, st).tau[i] = share_of_missing(m, s, i, st)


cdef void respond_to(const tl_model* m, tl_state* s, int32_t stages, const double* A, const double* P, const double* g,
                     const double* ad, double* v, double* tau) noexcept nogil:
    """Accelerations v (stages*n) after forces g and prescribed accelerations ad, and the torques tau (stages*nvg) of the gears."""
    cdef int32_t d, st, count = stages if stages > 0 else 1, N = count * TL_N(m)
    answer_driven(m, s, N, A, P, g, ad, v)
    missing_forces(s, N, A, v, g)
    for st in range(count):
        for d in range(TL_NVG(m)):
            tau[st * TL_NVG(m) + d] = share_of_missing(m, s, m.vg[d].fr, st)


cdef inline double speed_after(const tl_model* m, const tl_state* s, int32_t stages, int32_t st, int32_t k, const double* v,
                               double own) noexcept nogil:
    """Speed of row k at a stage after the accelerations v; own: 1 with what does not depend on them, else 0."""
    cdef int32_t n = TL_N(m)
    cdef double u = own * row_dot(m, k, s.now.u), a = own * row_dot(m, k, s.now.a)
    if stages == 0:
        return u
    if stages == 1:
        return u + 0.5 * s.h * (a + row_dot(m, k, v))
    if st == 0:
        return u + s.h * to_middle(a, row_dot(m, k, v), row_dot(m, k, v + n))
    return u + s.h * to_end(a, row_dot(m, k, v), row_dot(m, k, v + n))


cdef void moving_terms(const tl_model* m, const tl_state* s, int32_t stages, const double* v, const double* tau, double own,
                       double* y) noexcept nogil:
    """Both terms of every gear and stage after accelerations v and torques tau: y (2, stages*nvg)."""
    cdef int32_t d, st, c, count = stages if stages > 0 else 1, k = count * TL_NVG(m)
    cdef double more
    cdef const double* a
    cdef const tl_ratio* r
    for st in range(count):
        a = v + st * TL_N(m)
        for d in range(TL_NVG(m)):
            r = &s.gears.now[d]
            c = st * TL_NVG(m) + d
            more = r.i[st] - s.ratio[d]
            y[c] = (more * row_dot(m, m.vg[d].row_b, a) + r.share[st] * row_dot(m, m.vg[d].row_a, a)
                    + r.rate[st] * speed_after(m, s, stages, st, m.vg[d].row_b, v, own))
            y[k + c] = -more * tau[c]


cdef void move_unit(const tl_model* m, const tl_state* s, int32_t stages, int32_t c, double x, double* g, double* ad) noexcept nogil:
    """Adds x times term c of moving_terms: a prescribed acceleration of the gear's row, or a force along its side b."""
    cdef int32_t j, k = (stages if stages > 0 else 1) * TL_NVG(m), n = TL_N(m)
    cdef int32_t st = (c % k) // TL_NVG(m), d = c % TL_NVG(m)
    if c < k:
        for j in range(n):
            ad[st * n + j] += x * s.pat.Tn[j * TL_NF(m) + m.vg[d].fr]
        return
    add_along(m, m.vg[d].row_b, x, g + st * n)


cdef void moving_stages(const tl_model* m, tl_state* s, int32_t stages, const double* A, const double* P,
                        double* v) noexcept nogil:
    """linear_stages with the ratios of the stages; s.g and s.ad are left as they were. In s.ad the gears have what
    drive_stages gave them: the terms here come on top."""
    cdef int32_t c, d, i, st, n = TL_N(m), count = stages if stages > 0 else 1, N = count * n, k = count * TL_NVG(m), size = 2 * k
    cdef int64_t here = mark(s)
    cdef double* L = scratch(s, size * size)
    cdef double* x = scratch(s, size)
    cdef double* y = scratch(s, size)
    cdef double* tau = scratch(s, k)
    cdef double* g = scratch(s, N)
    cdef double* ad = scratch(s, N)
    respond_to(m, s, stages, A, P, s.g, s.ad, v, tau)
    moving_terms(m, s, stages, v, tau, 1.0, x)
    for st in range(count):
        for d in range(TL_NVG(m)):
            x[st * TL_NVG(m) + d] -= gear_rate(m, s, d, stages, st)
    for c in range(size):
        for i in range(N):
            g[i] = 0.0
            ad[i] = 0.0
        move_unit(m, s, stages, c, 1.0, g, ad)
        respond_to(m, s, stages, A, P, g, ad, v, tau)
        moving_terms(m, s, stages, v, tau, 0.0, y)
        for i in range(size):
            L[i * size + c] = (1.0 if i == c else 0.0) - y[i]
    for i in range(N):
        g[i] = s.g[i]
        ad[i] = s.ad[i]
    if not lu_solve(L, size, x, 1):
        for c in range(size):
            move_unit(m, s, stages, c, x[c], s.g, s.ad)
    answer_driven(m, s, N, A, P, s.g, s.ad, v)
    constraint_forces(m, s, stages, A, v)
    for i in range(N):
        s.g[i] = g[i]
        s.ad[i] = ad[i]
    release(s, here)


cdef inline void linear_stages(const tl_model* m, tl_state* s, int32_t stages, const double* A, const double* P,
                               double* v) noexcept nogil:
    """v from s.g with the elements at rest held, driven flanges and ratios moved; then the constraint torques."""
    if moving(m):
        moving_stages(m, s, stages, A, P, v)
    else:
        answer_held(m, s, TL_N(m) * (stages if stages > 0 else 1), A, P, s.g, v)
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


#: of a torque, and of 1 N.m: losses beside changing ratios that change less are found
cdef double SAME_LOSS = 1e-12

cdef enum:
    BESIDE_RATIOS = 30       # with changing ratios, to which the response of the pattern is the first approximation; 3 or 4 are usual


cdef struct tl_moving:
    int32_t k              # losses that move
    int32_t* loss          # (k)
    double* tau            # (stages, k) their torques
    double change          # of these in the last round, relative


cdef int32_t moving_torques(const tl_model* m, tl_state* s, int32_t stages, const double* X, tl_moving* p) noexcept nogil:
    """Their torques tau = -(k r + c) over the stages, r as they stand with the response X to what is added; 1 where nothing balances
    them."""
    cdef int32_t c, d, l, r, st, singular, k = p.k, nls = TL_NLS(m), count = stages if stages > 0 else 1, size = k * count
    cdef double slope, const_, more
    cdef int64_t here = mark(s)
    cdef double* L = scratch(s, size * size)
    cdef tl_eval* e
    p.change = 0.0
    for st in range(count):
        e = stage_eval(s, stages, st)
        for c in range(k):
            l = p.loss[c]
            loss_law(m, s, l, e.w[m.fr[m.ls[l].fr].row], stage_theta(s, stages, st), s.branch[l], s.mode[m.ls[l].fr],
                     &slope, &const_)
            p.tau[st * k + c] = -(slope * e.rea[l] + const_) - e.tau[m.ls[l].fr]
            for r in range(count):
                for d in range(k):
                    L[(st * k + c) * size + r * k + d] = slope * X[(st * nls + l) * count * nls + r * nls + p.loss[d]]
            L[(st * k + c) * size + st * k + c] += 1.0
    singular = lu_solve(L, size, p.tau, 1)
    for st in range(count):
        for c in range(k):
            more = fabs(p.tau[st * k + c])
            p.tau[st * k + c] += stage_eval(s, stages, st).tau[m.ls[p.loss[c]].fr]
            more /= 1.0 + fabs(p.tau[st * k + c])
            p.change = more if more > p.change else p.change
    release(s, here)
    return singular


cdef void push_moving(const tl_model* m, tl_state* s, int32_t stages, const tl_moving* p, int32_t undo) noexcept nogil:
    """Their torques into s.g, tau and the capacities of each stage; undo: out of s.g again."""
    cdef int32_t c, i, st
    cdef double tau
    cdef tl_eval* e
    for st in range(stages if stages > 0 else 1):
        e = stage_eval(s, stages, st)
        for c in range(p.k):
            i = m.ls[p.loss[c]].fr
            tau = p.tau[st * p.k + c]
            if not undo:
                e.tau[i] = tau
                e.cap_f[i] = fabs(tau)
                e.cap_b[i] = fabs(tau)
            add_along(m, m.fr[i].row, -tau if undo else tau, s.g + st * TL_N(m))


cdef void solve_stages(const tl_model* m, tl_state* s, int32_t stages, double* v) noexcept nogil:
    """Accelerations v (stages*n), torques of the elements at rest, of driven flanges and of losses, from s.g, which is left
    as it was; tau, rea of each stage are set."""
    cdef int32_t l, st, it, nls = TL_NLS(m)
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
            # (a solution before this one has left it there)
            for st in range(stages if stages > 0 else 1):
                stage_eval(s, stages, st).tau[m.ls[l].fr] = 0.0
    stage_motion(m, s, stages, v)
    reactions(m, s, stages, v)
    for it in range(BESIDE_RATIOS):
        if p.k == 0 or moving_torques(m, s, stages, s.pat.X0 if stages == 0 else s.pat.X, &p):
            break
        push_moving(m, s, stages, &p, 0)
        linear_stages(m, s, stages, A, P, v)
        stage_motion(m, s, stages, v)
        reactions(m, s, stages, v)
        # undone, so that the caller may solve again from the forces it has assembled
        push_moving(m, s, stages, &p, 1)
        if not moving(m) or p.change <= SAME_LOSS:
            break
        if it == BESIDE_RATIOS - 1 and stages > 0:
            s.unsolved = 1
    release(s, here)


cdef inline void answer_forces(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Accelerations s.v2 of the stages of a trial that answer s.g with the elements at rest held."""
    if staged(m):
        solve_stages(m, s, stages, s.v2)
    elif stages == 1:
        hold_trial(m, s, s.g, s.v2)
    else:
        hold4(m, s.pat, s.g, s.v2)
