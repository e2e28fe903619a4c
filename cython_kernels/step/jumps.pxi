# Jumps of speed: of driven flanges and ratios, and what losses take from the impulses that gears then pass on.
#
#     L = -k R,    R = R0 + X0 L,    k = kA where (kA - kB) R w >= 0, else kB        ((56) without cA and cB)
#
# L: impulse of a loss along its row, R: impulse of the reaction it depends on, R0: without losses, X0: response of the reactions.
# w: the mean of the speeds before and after.
#
# Equations: (41), (56).

#: of a speed, or of 1 rad/s or m/s: drift of a held motion that is taken out
cdef double DRIFT = 1e-13

cdef enum:
    LOSS_ROUNDS = 8        # times the directions of power are found anew; 1 or 2 are usual


cdef void reaction_impulses(const tl_model* m, tl_state* s, const double* u0, double* R) noexcept nogil:
    """R (nls): impulses of the reactions when the speeds have jumped from u0 by those of what is held."""
    cdef int32_t i, l, r, n = TL_N(m), nf = TL_NF(m)
    cdef double acc
    cdef int64_t here = mark(s)
    cdef double* du = scratch(s, n)
    cdef double* none = scratch(s, n)
    for i in range(n):
        du[i] = s.now.u[i] - u0[i]
        none[i] = 0.0
    missing_forces(s, n, m.M, du, none)
    for l in range(TL_NLS(m)):
        r = m.ls[l].re
        acc = 0.0
        for i in range(n):
            acc += m.re_A[r * n + i] * du[i]
        for i in range(nf):
            if s.mode[i] == MODE_STUCK and m.re_fr[r * nf + i] != 0.0:
                acc += m.re_fr[r * nf + i] * share_of_missing(m, s, i, 0)
        R[l] = acc
    release(s, here)


cdef int32_t loss_impulses(const tl_model* m, tl_state* s, const double* w, const double* R0, double* L) noexcept nogil:
    """L (nls): impulses of the losses that turn, at the mean speeds w (nls) of the jump; 0 where there is none, or nothing balances
    them."""
    cdef int32_t c, d, l, it, again, singular, nls = TL_NLS(m)
    cdef double kA, kB, cA, cB, R
    cdef int64_t here = mark(s)
    cdef double* A = scratch(s, nls * nls)
    cdef double* k = scratch(s, nls)
    for l in range(nls):
        L[l] = 0.0
        k[l] = 0.0
    for it in range(LOSS_ROUNDS):
        again = 0
        for l in range(nls):
            if fabs(w[l]) <= TOL_R:
                continue
            loss_terms(m, s, l, w[l], s.theta, &kA, &cA, &kB, &cB)
            R = R0[l]
            for d in range(nls):
                R += s.pat.X0[l * nls + d] * L[d]
            R = kA if (kA - kB) * R * w[l] >= 0.0 else kB
            again |= R != k[l]
            k[l] = R
        if not again:
            break
        for c in range(nls):
            L[c] = -k[c] * R0[c]
            for d in range(nls):
                A[c * nls + d] = (1.0 if c == d else 0.0) + k[c] * s.pat.X0[c * nls + d]
        singular = lu_solve(A, nls, L, 1)
        if singular:
            for l in range(nls):
                L[l] = 0.0
            break
    release(s, here)
    for l in range(nls):
        if L[l] != 0.0:
            return 1
    return 0


cdef double lose_impulse(const tl_model* m, tl_state* s, const double* u0, double* g) noexcept nogil:
    """After a jump from u0 to s.now.u with the pattern s.pat: what losses take from it, their impulses into g (n). Their heat, which
    is added to the balance: each pushes against the mean of its speeds before and after, so it is not below 0."""
    cdef int32_t i, l, k, n = TL_N(m)
    cdef double heat, total = 0.0
    cdef int64_t here = mark(s)
    cdef double* R = scratch(s, TL_NLS(m))
    cdef double* L = scratch(s, TL_NLS(m))
    cdef double* w = scratch(s, TL_NLS(m))
    cdef double* du = scratch(s, n)
    for i in range(n):
        g[i] = 0.0
    for l in range(TL_NLS(m)):
        k = m.fr[m.ls[l].fr].row
        w[l] = 0.5 * (row_dot(m, k, u0) + row_dot(m, k, s.now.u))
    reaction_impulses(m, s, u0, R)
    if loss_impulses(m, s, w, R, L):
        for l in range(TL_NLS(m)):
            add_along(m, m.fr[m.ls[l].fr].row, L[l], g)
        matvec(s.pat.P0, n, n, g, du)
        for i in range(n):
            s.now.u[i] += du[i]
        for l in range(TL_NLS(m)):
            k = m.fr[m.ls[l].fr].row
            heat = -0.5 * L[l] * (row_dot(m, k, u0) + row_dot(m, k, s.now.u))
            s.e_fr[m.ls[l].fr] += heat
            total += heat
        gather(m, s.now.u, s.now.w)
    release(s, here)
    return total


cdef int32_t hold_driven(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Exactly driven flanges at their reference: speeds by projection, angles along the held rows. Drift of rounding and
    collocation, or a jump of the reference (an impact; the driver does the work): then 1."""
    cdef int32_t d, i, j, n = TL_N(m), nf = TL_NF(m), off = 0, jump = 0
    cdef double e, ref, w
    cdef int64_t here = mark(s)
    cdef double* target = scratch(s, nf)         # slips of the held rows
    cdef double* lost
    for d in range(TL_ND(m)):
        i = m.drv[d].fr
        w = slip_of(m, s, i, s.now.u)
        target[i] = w
        if s.step_no[0] == 0 and s.fraction[0] == 0.0 and theta == 0.0 and s.fresh[0]:
            # filters start settled: Modelica's initial equations w = w_ref, phi = phi_ref
            ref = input_at(m, s, m.drv[d].inputs[0], 0.0)
            if m.drv[d].kind == DRIVEN_SPEED_FILTER:
                target[i] = ref
                off |= ref != w
                jump |= ref != w
            elif m.drv[d].kind == DRIVEN_POSITION_FILTER:
                e = ref - row_dot(m, m.fr[i].row, s.now.z) - s.row_off[m.fr[i].row]
                for j in range(n):
                    s.now.z[j] += s.pat.Tn[j * nf + i] * e
        if m.drv[d].kind >= DRIVEN_SPEED:
            ref = input_at(m, s, m.drv[d].inputs[0 if m.drv[d].kind == DRIVEN_SPEED else 1], theta)
            if fabs(ref - w) > DRIFT * (1.0 + fabs(ref)):
                off = 1
            if fabs(ref - w) > JUMP * (1.0 + fabs(ref)):
                jump = 1
            target[i] = ref
            if m.drv[d].kind == DRIVEN_POSITION:
                e = input_at(m, s, m.drv[d].inputs[0], theta) - row_dot(m, m.fr[i].row, s.now.z) - s.row_off[m.fr[i].row]
                if e != 0.0:
                    for j in range(n):
                        s.now.z[j] += s.pat.Tn[j * nf + i] * e
    for d in range(TL_NVG(m)):
        i = m.vg[d].fr
        target[i] = 0.0
        w = slip_of(m, s, i, s.now.u)
        ref = 1.0 + fabs(row_dot(m, m.vg[d].row_a, s.now.u))
        if fabs(w) > DRIFT * ref:
            off = 1
        if fabs(w) > JUMP * ref:
            jump = 1
    if off:
        for j in range(n):
            s.us[j] = s.now.u[j]
        project(m, s, target)
        lost = scratch(s, n)                 # impulses of losses
        memset(lost, 0, n * sizeof(double))
        if jump and TL_NLS(m) > 0:
            lose_impulse(m, s, s.us, lost)
        impulse_work(m, s, lost)
    release(s, here)
    return jump


cdef void meet_ratios(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Rows of the ratios of this instant, speeds that fit them. The ratio over a speed follows what that changes."""
    cdef int32_t it
    for it in range(MEETINGS):
        ratios_now(m, s, theta)
        take_ratios(m, s)
        hold_driven(m, s, theta)
