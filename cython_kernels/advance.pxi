# One step: trial with the modes held, events located on its collocation polynomial, decisions by the boxed problem.
#
#   M u' = f(u, t) - D u - K q + B^T tau        B_s u = 0 for the elements that stick
#
# Lobatto IIIA collocation with two points (order 2, the trapezoidal rule) or three (order 4): linear part (D, K) implicit,
# nonlinear torques at predicted speeds. Torques at both ends of the step are known, so sticking elements are checked where
# they matter, and the speed of every sliding element is a polynomial on the step, so an event is a root of it. The step is
# always tried over the full h and cut on its polynomial: one set of matrices, whatever the length between two events.

cdef enum:
    MAX_SPLITS = 12        # events handled one by one in a step; 6 was the worst seen in a full-throttle run

cdef double TOL_R = 1e-9   # rad/s or m/s: rounding of a relative speed of 1e3 rad/s formed from several shafts; no physics


cdef inline void predict(const tl_model* m, tl_cvec u, tl_cvec a, tl_cvec hs1, tl_vec u1) noexcept nogil:
    """u1 = u + h (a + slope/2): speeds at the end if the acceleration goes on as it did."""
    cdef int32_t i
    for i in range(TL_N(m)):
        u1[i] = u[i] + m.h * (a[i] + 0.5 * hs1[i])


cdef inline void correct(const tl_model* m, tl_cvec u, tl_cvec a, tl_cvec a1, tl_vec u1) noexcept nogil:
    """u1 = u + h/2 (a + a1)."""
    cdef int32_t i
    for i in range(TL_N(m)):
        u1[i] = u[i] + 0.5 * m.h * (a[i] + a1[i])


cdef inline void finish2(const tl_model* m, tl_cvec u, tl_cvec z, tl_cvec a, tl_cvec a1, tl_vec z1,
                         tl_vec s1) noexcept nogil:
    """Angles at the end, and the polynomial a + s1 x of the acceleration (s2 stays 0)."""
    cdef int32_t i
    cdef double h = m.h, b0 = h * h * (0.5 - m.beta), b1 = h * h * m.beta
    for i in range(TL_N(m)):
        z1[i] = z[i] + h * u[i] + b0 * a[i] + b1 * a1[i]
        s1[i] = a1[i] - a[i]


cdef inline void trial2(const tl_model* m, tl_state* s, double theta, int32_t passes) noexcept nogil:
    """Trial over h from the present state with the modes held, order 2. Writes u1, z1, a1, s1, s2, end.

        S a1 = f1 - D (u + h/2 a) - K (q + h u + h^2 (1/2 - beta) a) + B_s^T tau1
    """
    cdef int32_t i, k, n = TL_N(m), nf = TL_NF(m)
    cdef double h = m.h, b0 = h * h * (0.5 - m.beta)
    cdef tl_eval* e = s.end
    gather(m, s.now.a, s.wa)
    advance_actuators(m, s, theta, 1.0, 0, e.p, s.fill1)
    for i in range(TL_NENG(m)):
        s.xi1[i] = idle_integrator(m, s, i, 1.0)
    predict(m, s.now.u, s.now.a, s.now.hs1, s.end.u)
    while True:
        eval_forces(m, s, e, s.end.u, theta + 1.0, s.xi1)
        assemble(m, s, e, s.F)
        for i in range(TL_NLIN(m)):
            # deformation and its rate as far as they do not depend on a1
            k = TL_LIN_ROW(m, i)
            s.F[k] -= (m.lin_c[i] * (lin_dot(m, i, s.now.z) + m.row_off[k] + h * s.now.w[k] + b0 * s.wa[k] - m.lin_phi0[i])
                       + m.lin_d[i] * (s.now.w[k] + 0.5 * h * s.wa[k]))
        scatter(m, s.F, s.g)
        matvec(s.pat.P, n, n, s.g, s.end.a)
        if s.stiff:
            slide_implicitly(m, s, 1)
            matvec(s.pat.P, n, n, s.g, s.end.a)
        matvec(s.pat.T, nf, n, s.g, s.v1)
        correct(m, s.now.u, s.now.a, s.end.a, s.end.u)
        passes -= 1
        if passes <= 0:
            break
    finish2(m, s.now.u, s.now.z, s.now.a, s.end.a, s.end.z, s.end.hs1)
    for i in range(nf):
        if s.mode[i] == 0:
            e.tau[i] = s.v1[i]
    gather(m, s.end.u, e.w)


cdef void trial4(const tl_model* m, tl_state* s, double theta, int32_t passes) noexcept nogil:
    """As trial2 with points 0, 1/2, 1: Hermite-Simpson, order 4. Also writes am, um, em."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef int64_t stiff
    cdef double h = m.h, um0
    cdef double* um0v = s.v1
    cdef double* u10v = s.v1 + n
    cdef double* zv = s.v2
    gather(m, s.now.a, s.wa)
    advance_actuators(m, s, theta, 0.5, 1, s.em.p, s.fill1)
    advance_actuators(m, s, theta, 1.0, 0, s.end.p, s.fill1)
    for i in range(TL_NENG(m)):
        s.xi1[i] = idle_integrator(m, s, i, 1.0)
    for i in range(n):
        s.um[i] = s.now.u[i] + h * (0.5 * s.now.a[i] + 0.125 * s.now.hs1[i] + s.hs2[i] / 24.0)
        s.end.u[i] = s.now.u[i] + h * (s.now.a[i] + 0.5 * s.now.hs1[i] + s.hs2[i] / 3.0)
        um0v[i] = s.now.u[i] + h * (5.0 / 24.0) * s.now.a[i]
        u10v[i] = s.now.u[i] + h * (1.0 / 6.0) * s.now.a[i]
    while True:
        eval_forces(m, s, &s.em, s.um, theta + 0.5, s.xi)
        stiff = s.stiff
        eval_forces(m, s, s.end, s.end.u, theta + 1.0, s.xi1)
        assemble(m, s, &s.em, s.F)
        if TL_NLIN(m) > 0:
            for i in range(n):
                zv[i] = s.now.z[i] + h * (5.0 / 24.0 * s.now.u[i] + um0v[i] / 3.0 - u10v[i] / 24.0)
            subtract_compliances(m, s, zv, um0v, s.F)
        scatter(m, s.F, s.g)
        assemble(m, s, s.end, s.F)
        if TL_NLIN(m) > 0:
            for i in range(n):
                zv[i] = s.now.z[i] + h * (s.now.u[i] / 6.0 + um0v[i] * (2.0 / 3.0) + u10v[i] / 6.0)
            subtract_compliances(m, s, zv, u10v, s.F)
        scatter(m, s.F, s.g + n)
        matvec(s.pat.P4, 2 * n, 2 * n, s.g, s.v2)
        if s.stiff or stiff:
            slide_implicitly(m, s, 2)
            matvec(s.pat.P4, 2 * n, 2 * n, s.g, s.v2)
        for i in range(n):
            s.am[i] = s.v2[i]
            s.end.a[i] = s.v2[n + i]
            s.um[i] = um0v[i] + h * (s.am[i] / 3.0 - s.end.a[i] / 24.0)
            s.end.u[i] = u10v[i] + h * (s.am[i] * (2.0 / 3.0) + s.end.a[i] / 6.0)
        passes -= 1
        if passes <= 0:
            break
    for i in range(n):
        s.end.z[i] = s.now.z[i] + h * (s.now.u[i] / 6.0 + s.um[i] * (2.0 / 3.0) + s.end.u[i] / 6.0)
        s.end.hs1[i] = -3.0 * s.now.a[i] + 4.0 * s.am[i] - s.end.a[i]
        s.s2[i] = 2.0 * s.now.a[i] - 4.0 * s.am[i] + 2.0 * s.end.a[i]
    # torques of the stuck elements: rho = A4 [am, a1] - g is the force missing in the balance
    for i in range(2 * n):
        um0 = -s.g[i]
        for j in range(2 * n):
            um0 += m.A4[i * 2 * n + j] * s.v2[j]
        s.v1[i] = um0
    matvec(s.pat.Tn, nf, n, s.v1, s.box_w)
    matvec(s.pat.Tn, nf, n, s.v1 + n, s.box_w + nf)
    for i in range(nf):
        if s.mode[i] == 0:
            s.em.tau[i] = s.box_w[i]
            s.end.tau[i] = s.box_w[nf + i]
    gather(m, s.um, s.em.w)
    gather(m, s.end.u, s.end.w)


cdef void slide_implicitly(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Torques of the sliding elements whose capacity rises steeply with the slip, solved together with their speeds.

    With tau = -sgn*cap(|w|) and w = w* + H (tau - tau*), H the response of the slips to the torques over the stages of
    the step, Newton on the residual tau + sgn*cap(|w|) = 0: three rounds, the table being nearly straight between.
    On entry a1 (or v2 = [am, a1]) answers s.g with the explicit torques; on return s.g holds the implicit ones.
    """
    cdef int32_t i, j, k, c, d, st, r, n = TL_N(m), nf = TL_NF(m), nc = 0, size, it, hint = 0
    cdef int32_t* el = s.box_i
    cdef double* H
    cdef double* A
    cdef double* w
    cdef double* dt
    cdef double* x
    cdef double* col
    cdef double* P
    cdef double h = m.h, acc, sgn, cap, slope, fn
    cdef tl_eval* e
    cdef double[2][2] B4 = [[1.0 / 3.0, -1.0 / 24.0], [2.0 / 3.0, 1.0 / 6.0]]
    for i in range(nf):
        if (s.mode[i] == 1 or s.mode[i] == -1) and (s.end.slope[i] > 0.0 or (stages == 2 and s.em.slope[i] > 0.0)):
            el[nc] = i
            nc += 1
    if nc == 0:
        return
    size = nc * stages
    H = s.box_w
    A = H + size * size
    w = A + size * size
    dt = w + size
    x = dt + size
    col = x + size
    # H: response of the slip at stage st to a torque at stage r
    for d in range(nc):
        k = m.fr_row[el[d]]
        for r in range(stages):
            for st in range(stages):
                for i in range(n):
                    col[i] = 0.0
                for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
                    for i in range(n):
                        if stages == 1:
                            col[i] += 0.5 * h * s.pat.P[m.row_idx[j] * n + i] * m.row_val[j]
                        else:
                            P = s.pat.P4 + (r * n + m.row_idx[j]) * 2 * n
                            col[i] += h * (B4[st][0] * P[i] + B4[st][1] * P[n + i]) * m.row_val[j]
                for c in range(nc):
                    H[(st * nc + c) * size + r * nc + d] = row_dot(m, m.fr_row[el[c]], col)
    # slips that the explicit torques give
    for st in range(stages):
        for i in range(n):
            if stages == 1:
                col[i] = s.now.u[i] + 0.5 * h * (s.now.a[i] + s.end.a[i])
            else:
                col[i] = s.now.u[i] + h * ((5.0 / 24.0 if st == 0 else 1.0 / 6.0) * s.now.a[i] + B4[st][0] * s.v2[i]
                                       + B4[st][1] * s.v2[n + i])
        for c in range(nc):
            w[st * nc + c] = row_dot(m, m.fr_row[el[c]], col)
            dt[st * nc + c] = 0.0
    for it in range(3):
        for st in range(stages):
            e = s.end if st == stages - 1 else &s.em
            for c in range(nc):
                i = el[c]
                sgn = <double>s.mode[i]
                acc = w[st * nc + c]
                for d in range(size):
                    acc += H[(st * nc + c) * size + d] * dt[d]
                fn = e.raw[i] if e.raw[i] > 0.0 else 0.0
                cap = m.fr_cgeo[i] * fn * table1_slope(&m.tab1[m.fr_mu[i]], sgn * acc, &hint, &slope)
                slope = slope * m.fr_cgeo[i] * fn if sgn * acc > 0.0 else 0.0
                if (m.fr_fwd[i] if sgn > 0.0 else m.fr_bwd[i]) != 1:
                    cap = 0.0
                    slope = 0.0
                x[st * nc + c] = -(e.tau[i] + dt[st * nc + c] + sgn * cap)
                for d in range(size):
                    A[(st * nc + c) * size + d] = slope * H[(st * nc + c) * size + d] + (1.0 if d == st * nc + c else 0.0)
        if lu_solve(A, size, x, 1):
            return
        for d in range(size):
            dt[d] += x[d]
    for st in range(stages):
        e = s.end if st == stages - 1 else &s.em
        for c in range(nc):
            i = el[c]
            e.tau[i] += dt[st * nc + c]
            if s.mode[i] == 1:
                e.cap_f[i] = -e.tau[i]
            else:
                e.cap_b[i] = e.tau[i]
            k = TL_FR_ROW(m, i)
            for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
                s.g[st * n + m.row_idx[j]] += m.row_val[j] * dt[st * nc + c]


cdef inline double idle_integrator(const tl_model* m, const tl_state* s, int32_t i, double part) noexcept nogil:
    """xi' = ki*(w_idle - w), kept in [0, tau_idle_max]: torque the idle controller has integrated."""
    cdef double x = s.xi[i] + part * m.h * m.eng_ki[i] * (m.eng_w_idle[i] - s.now.w[m.eng_row[i]])
    if x < 0.0:
        x = 0.0
    if x > m.eng_tau_idle_max[i]:
        x = m.eng_tau_idle_max[i]
    return x


cdef inline double row_dot(const tl_model* m, int32_t k, const double* x) noexcept nogil:
    """Row k times x."""
    cdef int32_t q = m.row_ptr[k]
    cdef double acc = m.row_val[q] * x[m.row_idx[q]]
    q += 1
    while q < m.row_ptr[k + 1]:
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
        q += 1
    return acc


cdef inline void subtract_compliances(const tl_model* m, const tl_state* s, const double* z, const double* u,
                               double* F) noexcept nogil:
    """F[row] -= c*(row.z + off - phi0) + d*row.u."""
    cdef int32_t i, k
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        F[k] -= m.lin_c[i] * (lin_dot(m, i, z) + m.row_off[k] - m.lin_phi0[i]) + m.lin_d[i] * lin_dot(m, i, u)


cdef inline double poly_at(double c0, double c1, double c2, double c3, double x) noexcept nogil:
    return c0 + x * (c1 + x * (c2 + x * c3))


cdef double first_root(double c0, double c1, double c2, double c3, double end) noexcept nogil:
    """A root in [0, end] of the cubic, which is > 0 at 0 (or touches it) and < 0 at end: bisection with Newton steps."""
    cdef double lo = 0.0, hi = end, x, f, d
    cdef int32_t it
    if c0 <= 0.0:
        return 0.0
    if c2 == 0.0 and c3 == 0.0:
        x = -c0 / c1
        return x if x < end else end
    x = end * c0 / (c0 - poly_at(c0, c1, c2, c3, end))
    for it in range(60):
        f = poly_at(c0, c1, c2, c3, x)
        if f > 0.0:
            lo = x
        else:
            hi = x
        d = c1 + x * (2.0 * c2 + 3.0 * x * c3)
        if d != 0.0:
            d = x - f / d
        else:
            d = -1.0
        if not (lo < d < hi):
            d = 0.5 * (lo + hi)
        if fabs(d - x) <= 1e-15 * end:
            break
        x = d
    return x


cdef inline int32_t disturbed(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i, int32_t k,
                              int32_t source) noexcept nogil:
    """1 when the trial asks for a search because of element i (row k): normal force, static limit, slip."""
    cdef int64_t mode = s.mode[i]
    cdef double sgn, r0
    cdef int32_t bad = 0
    if source != 0:
        bad = (e.raw[i] > 0.0) != (s.pressed[i] != 0)
    if mode == 0:
        bad |= (e.tau[i] > e.lim_b[i]) | (e.tau[i] < -e.lim_f[i])
    elif mode != 2:
        sgn = <double>mode
        r0 = sgn * s.now.w[k]
        bad |= (sgn * e.w[k] < -TOL_R) | ((r0 + 0.5 * m.h * sgn * s.wa[k] < 0.0) & (r0 > TOL_R))
    return bad


cdef double find_event(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of h of the earliest event of the trial in [0, end]; 2 if there is none.

    sliding: relative speed comes to zero; stuck: torque reaches its static limit; normal force appears or vanishes.
    """
    cdef int32_t i, k, n = TL_N(m)
    cdef int64_t mode
    cdef double first = 2.0, r0, r1, v0, sl1, sl2, c1, c2, c3, x, sgn, t0, t1, l0, l1, tm, lm, h = m.h, at_end
    cdef int32_t four = m.order == 4
    for i in range(TL_NF(m)):
        mode = s.mode[i]
        k = TL_FR_ROW(m, i)
        if m.fr_src[i] != 0 and (s.end.raw[i] > 0.0) != (s.pressed[i] != 0):
            # normal force appears or vanishes
            x = s.now.raw[i] / (s.now.raw[i] - s.end.raw[i]) if s.now.raw[i] != s.end.raw[i] else 0.0
            if x < 0.0 or (s.now.raw[i] > 0.0) != (s.pressed[i] != 0):
                x = 0.0
            if x <= end and x < first:
                first = x
        if mode == 0:
            t0 = s.now.tau[i]
            t1 = s.end.tau[i]
            if t1 > s.end.lim_b[i] or t1 < -s.end.lim_f[i]:
                sgn = 1.0 if t1 > s.end.lim_b[i] else -1.0
                l0 = s.now.lim_b[i] if sgn > 0.0 else s.now.lim_f[i]
                l1 = s.end.lim_b[i] if sgn > 0.0 else s.end.lim_f[i]
                l0 = l0 - sgn * t0
                l1 = l1 - sgn * t1
                if four:
                    lm = (s.em.lim_b[i] if sgn > 0.0 else s.em.lim_f[i]) - sgn * s.em.tau[i]
                    c1 = -3.0 * l0 + 4.0 * lm - l1
                    c2 = 2.0 * l0 - 4.0 * lm + 2.0 * l1
                else:
                    c1 = l1 - l0
                    c2 = 0.0
                x = first_root(l0, c1, c2, 0.0, 1.0)
                if x <= end and x < first:
                    first = x
        elif mode != 2:
            sgn = <double>mode
            r0 = sgn * s.now.w[k]
            r1 = sgn * s.end.w[k]
            v0 = sgn * s.wa[k]
            if r1 < -TOL_R:
                c1 = h * v0
                c2 = 0.5 * h * sgn * row_dot(m, k, s.end.hs1)
                c3 = h * sgn * row_dot(m, k, s.s2) / 3.0 if four else 0.0
                x = first_root(r0, c1, c2, c3, 1.0)
                if x <= end and x < first:
                    first = x
            elif v0 < 0.0 and r0 > TOL_R and r0 + 0.5 * h * v0 < 0.0:
                # speed falls and rises again within the step: does it touch zero in between?
                c1 = h * v0
                c2 = 0.5 * h * sgn * row_dot(m, k, s.end.hs1)
                if c2 > 0.0 and c1 + 2.0 * c2 > 0.0:
                    x = -0.5 * c1 / c2
                    at_end = r0 + x * (c1 + x * c2)
                    if at_end < -TOL_R:
                        x = first_root(r0, c1, c2, 0.0, x)
                        if x <= end and x < first:
                            first = x
    return first


cdef inline void lerp(double* v0, const double* vm, const double* v1, int32_t count, double x, int32_t four) noexcept nogil:
    """v0 <- value at x of the polynomial through v0, (vm,) v1."""
    cdef int32_t i
    if four:
        for i in range(count):
            v0[i] = v0[i] + x * ((-3.0 * v0[i] + 4.0 * vm[i] - v1[i]) + x * (2.0 * v0[i] - 4.0 * vm[i] + 2.0 * v1[i]))
    else:
        for i in range(count):
            v0[i] = v0[i] + x * (v1[i] - v0[i])


cdef inline double at(double v0, double vm, double v1, double x) noexcept nogil:
    return v0 + x * ((-3.0 * v0 + 4.0 * vm - v1) + x * (2.0 * v0 - 4.0 * vm + 2.0 * v1))


cdef inline void accept2(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Books of the trial up to the fraction x of h. Work of each element = mean force times mean speed times time: with
    the trapezoidal rule the energy balance then closes to rounding, step by step. For x < 1 also cuts u1, z1."""
    cdef int32_t i, k, n = TL_N(m)
    cdef double h = m.h, xh = x * m.h, q = 0.25 * x * m.h, f1, ws
    cdef tl_cvec w0 = s.now.w
    cdef tl_cvec w1 = s.end.w
    cdef tl_cvec p0 = s.now.port
    cdef tl_cvec p1 = s.end.port
    cdef tl_cvec t0 = s.now.tau
    cdef tl_cvec t1 = s.end.tau
    if x != 1.0:
        # cut: state at x on the polynomial
        for i in range(n):
            s.end.z[i] = s.now.z[i] + xh * s.now.u[i] + xh * xh * (0.5 * s.now.a[i] + (1.0 / 6.0) * x * s.end.hs1[i])
            s.end.u[i] = s.now.u[i] + xh * (s.now.a[i] + 0.5 * x * s.end.hs1[i])
        gather(m, s.end.u, s.em.w)
        w1 = s.em.w
    # forces at the cut are linear between the ends: f0 + f(x) = (2 - x) f0 + x f1
    for i in range(TL_NPORT(m)):
        k = TL_PORT_ROW(m, i)
        s.e_port[i] += q * ((2.0 - x) * p0[i] + x * p1[i]) * (w0[k] + w1[k])
    for i in range(TL_NF(m)):
        if s.mode[i] & 1:                      # sliding either way
            k = TL_FR_ROW(m, i)
            s.e_fr[i] -= q * ((2.0 - x) * t0[i] + x * t1[i]) * (w0[k] + w1[k])
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        ws = w0[k] + w1[k]
        s.e_lin[i] += q * m.lin_d[i] * ws * ws


cdef void accept4(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """As accept2 for order 4: work by Simpson's rule on the collocation polynomials."""
    cdef int32_t i, k, n = TL_N(m)
    cdef double h = m.h, xh = x * m.h, q = x * m.h / 6.0, y = 0.5 * x, w0, wm, w1, xi
    if x != 1.0:
        for i in range(n):
            s.end.z[i] = s.now.z[i] + xh * s.now.u[i] + xh * xh * (0.5 * s.now.a[i] + x * (s.end.hs1[i] / 6.0 + x * s.s2[i] / 12.0))
            s.end.u[i] = s.now.u[i] + xh * (s.now.a[i] + x * (0.5 * s.end.hs1[i] + x * s.s2[i] / 3.0))
            s.um[i] = s.now.u[i] + y * h * (s.now.a[i] + y * (0.5 * s.end.hs1[i] + y * s.s2[i] / 3.0))
    for i in range(TL_NPORT(m)):
        k = TL_PORT_ROW(m, i)
        wm = row_dot(m, k, s.um)
        w1 = row_dot(m, k, s.end.u)
        s.e_port[i] += q * (s.now.port[i] * s.now.w[k] + 4.0 * at(s.now.port[i], s.em.port[i], s.end.port[i], y) * wm
                            + at(s.now.port[i], s.em.port[i], s.end.port[i], x) * w1)
    for i in range(TL_NF(m)):
        if s.mode[i] != 2 and s.mode[i] != 0:
            k = TL_FR_ROW(m, i)
            wm = row_dot(m, k, s.um)
            w1 = row_dot(m, k, s.end.u)
            s.e_fr[i] -= q * (s.now.tau[i] * s.now.w[k] + 4.0 * at(s.now.tau[i], s.em.tau[i], s.end.tau[i], y) * wm
                              + at(s.now.tau[i], s.em.tau[i], s.end.tau[i], x) * w1)
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        w0 = s.now.w[k]
        wm = row_dot(m, k, s.um)
        w1 = row_dot(m, k, s.end.u)
        s.e_lin[i] += q * m.lin_d[i] * (w0 * w0 + 4.0 * wm * wm + w1 * w1)
    if x != 1.0:
        gather(m, s.end.u, s.em.w)


cdef inline void accept(const tl_model* m, tl_state* s, double theta, double x) noexcept nogil:
    """Make the trial at the fraction x the present state. theta: where in the step's inputs the trial began."""
    cdef int32_t i, n = TL_N(m), nf = TL_NF(m), four = m.order == 4
    cdef tl_eval* swap
    if four:
        accept4(m, s, x)
    else:
        accept2(m, s, x)
    s.hist[0] = 1
    if x == 1.0:
        for i in range(TL_NENG(m)):
            s.xi[i] = s.xi1[i]
        if not m.act_simple:
            for i in range(TL_NACT(m)):
                s.fill[i] = s.fill1[i]
        if four:
            for i in range(n):
                s.end.hs1[i] += 2.0 * s.s2[i]
                s.hs2[i] = s.s2[i]
        swap = s.now
        s.now = s.end
        s.end = swap
        s.parity[0] ^= 1
        return
    for i in range(TL_NENG(m)):
        s.xi[i] = idle_integrator(m, s, i, x)
    advance_actuators(m, s, theta, x, 2, s.em.p, s.fill1)
    for i in range(TL_NACT(m)):
        s.now.p[i] = s.em.p[i]
        s.fill[i] = s.fill1[i]
    for i in range(n):
        s.now.u[i] = s.end.u[i]
        s.now.z[i] = s.end.z[i]
        s.now.a[i] = s.now.a[i] + x * (s.end.hs1[i] + x * s.s2[i])
        s.now.hs1[i] = s.end.hs1[i] + 2.0 * x * s.s2[i]
        s.hs2[i] = s.s2[i]
    for i in range(TL_NHOT(m)):
        s.now.w[i] = s.em.w[i]
    lerp(s.now.port, s.em.port, s.end.port, TL_NPORT(m), x, four)
    lerp(s.now.tau, s.em.tau, s.end.tau, nf, x, four)
    lerp(s.now.cap_f, s.em.cap_f, s.end.cap_f, nf, x, four)
    lerp(s.now.cap_b, s.em.cap_b, s.end.cap_b, nf, x, four)
    lerp(s.now.lim_f, s.em.lim_f, s.end.lim_f, nf, x, four)
    lerp(s.now.lim_b, s.em.lim_b, s.end.lim_b, nf, x, four)
    lerp(s.now.raw, s.em.raw, s.end.raw, nf, x, four)


cdef inline double trend(double now, double end, double x, int32_t known) noexcept nogil:
    """Mean over the next h of a quantity that a trial, cut at x, saw move from `now` to `end`."""
    if not known:
        return now
    return now + 0.5 * (end - now) / (1.0 - x)


cdef void decide(const tl_model* m, tl_state* s, double x, int32_t known, double theta, int32_t everything,
                 double part) noexcept nogil:
    """Modes of all pressed elements at rest, by the boxed problem over the next h, and the accelerations that follow.

    x, known: cut of the trial that led here (its end values carry the trend of forces and limits over the interval).
    everything = 1: plain impulse step (Moreau): all pressed elements enter with their speeds, and the state is advanced
    by part*h with the mean acceleration found; always well posed, takes energy out only.
    """
    cdef int32_t i, j, k, n = TL_N(m), nf = TL_NF(m), nc = 0, c, again, rounds, piv
    cdef double h = m.h, r, lo, hi, acc, lf, lb, cf, cb
    cdef double* W = s.box_w
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
    if known and x > 0.999999:
        known = 0
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
        # force on u without the candidates, mean over h
        for i in range(TL_NHOT(m)):
            s.F[i] = 0.0
        for i in range(TL_NPORT(m)):
            s.F[TL_PORT_ROW(m, i)] += trend(s.now.port[i], s.end.port[i], x, known)
        for i in range(nf):
            if s.mode[i] == 1:
                s.F[TL_FR_ROW(m, i)] -= trend(s.now.cap_f[i], s.end.cap_f[i], x, known)
            elif s.mode[i] == -1:
                s.F[TL_FR_ROW(m, i)] += trend(s.now.cap_b[i], s.end.cap_b[i], x, known)
        if TL_NLIN(m) > 0:
            for i in range(n):
                s.v1[i] = s.now.z[i] + 0.5 * h * s.now.u[i]
            subtract_compliances(m, s, s.v1, s.now.u, s.F)
        scatter(m, s.F, s.g)
        for i in range(n):
            acc = 0.0
            for j in range(n):
                acc += m.Sinv[i * n + j] * s.g[j]
            s.am[i] = acc
        for c in range(nc):
            i = cand[c]
            b[c] = row_dot(m, TL_FR_ROW(m, i), s.am) + s.now.w[TL_FR_ROW(m, i)] * m.inv_h
            for j in range(nc):
                W[c * nc + j] = m.W[i * nf + cand[j]]
        rounds = 0
        while True:
            for c in range(nc):
                i = cand[c]
                if released[c]:
                    lf = trend(s.now.cap_f[i], s.end.cap_f[i], x, known) if m.fr_fwd[i] != 2 else s.now.lim_f[i]
                    lb = trend(s.now.cap_b[i], s.end.cap_b[i], x, known) if m.fr_bwd[i] != 2 else s.now.lim_b[i]
                else:
                    lf = trend(s.now.lim_f[i], s.end.lim_f[i], x, known) if m.fr_fwd[i] != 2 else s.now.lim_f[i]
                    lb = trend(s.now.lim_b[i], s.end.lim_b[i], x, known) if m.fr_bwd[i] != 2 else s.now.lim_b[i]
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


cdef void now(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Forces of the present instant into the state (after a jump of an input, or a fresh start)."""
    cdef int32_t i, nf = TL_NF(m)
    for i in range(TL_NACT(m)):
        s.end.p[i] = s.now.p[i]
    eval_forces(m, s, s.end, s.now.u, theta, s.xi)
    for i in range(TL_NHOT(m)):
        s.now.w[i] = s.end.w[i]
    for i in range(TL_NPORT(m)):
        s.now.port[i] = s.end.port[i]
    for i in range(nf):
        s.now.cap_f[i] = s.end.cap_f[i]
        s.now.cap_b[i] = s.end.cap_b[i]
        s.now.lim_f[i] = s.end.lim_f[i]
        s.now.lim_b[i] = s.end.lim_b[i]
        s.now.raw[i] = s.end.raw[i]


cdef void start_of_step(const tl_model* m, tl_state* s) noexcept nogil:
    """Inputs of the step; after a jump of a direct one (or a fresh start) forces, and modes where they are touched."""
    cdef int32_t i, nin = TL_NIN(m), nf = TL_NF(m), jump = 0, touched = 0
    cdef double i0, im, i1
    if s.held:
        for i in range(nin):
            if s.inp[i] != s.in_last[i]:
                jump |= m.in_direct[i]
                s.in_last[i] = s.inp[i]
                if m.in_act[i] >= 0:
                    s.cmd[m.in_act[i]] = clipped_command(m, m.in_act[i], s.inp[i])
    else:
        for i in range(nin):
            i0 = s.inp[i]
            im = s.inp[nin + i]
            i1 = s.inp[2 * nin + i]
            s.in_c[i] = i0
            s.in_c[nin + i] = 4.0 * im - 3.0 * i0 - i1
            s.in_c[2 * nin + i] = 2.0 * i0 - 4.0 * im + 2.0 * i1
            if i0 != s.in_last[i]:
                jump |= m.in_direct[i]
            s.in_last[i] = i1
            if m.in_act[i] >= 0:
                s.cmd[m.in_act[i]] = clipped_command(m, m.in_act[i], i1)
    if not (jump or s.fresh[0]):
        return
    now(m, s, 0.0)
    for i in range(nf):
        if (s.now.raw[i] > 0.0) != (s.pressed[i] != 0):
            s.pressed[i] = 1 if s.now.raw[i] > 0.0 else 0
            touched = 1
    if s.fresh[0]:
        touched = 1
    if not touched:
        settle(m, s)
        for i in range(nf):
            if s.mode[i] == 0 and (s.now.tau[i] > s.now.lim_b[i] or s.now.tau[i] < -s.now.lim_f[i]):
                touched = 1
    if touched:
        for i in range(nf + 1):
            if not stop_blocked(m, s):
                break
        decide(m, s, 0.0, 0, 0.0, 0, 0.0)
    s.fresh[0] = 0


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


cdef int advance(const tl_model* m, tl_state* s, double dt) noexcept nogil:
    """Advance by dt <= h with the inputs s.inp (values at 0, h/2 and h of the branch that holds now).

    Returns 0, or 1 when the state is not finite any more. Real-time: yes; work is bounded by MAX_SPLITS.
    """
    cdef int32_t i, n = TL_N(m), splits = 0, passes
    cdef double done = 0.0, end = dt / m.h, x, chk
    if dt == m.h:
        end = 1.0
    start_of_step(m, s)
    while True:
        passes = 1 if s.hist[0] else 2
        if m.order == 4:
            trial4(m, s, done, passes if s.hist[0] else 3)
        else:
            trial2(m, s, done, passes)
        chk = 0.0
        for i in range(n):
            chk += s.end.u[i]
        if chk - chk != 0.0:                  # inf or NaN somewhere
            s.status = 1
            return 1
        x = find_event(m, s, end - done) if any_disturbed(m, s, s.end) else 2.0
        if x > 1.5:
            accept(m, s, done, end - done if end - done < 1.0 else 1.0)
            break
        s.counters[TL_C_EVENTS] += 1
        splits += 1
        toggle_pressed(m, s, x)
        if x > 0.0:
            s.t[0] += x * m.h
            accept(m, s, done, x)
            s.t[0] -= x * m.h
            done += x
        if splits > MAX_SPLITS:
            s.counters[TL_C_FALLBACKS] += 1
            decide(m, s, x, 0, done, 1, end - done)
            if TL_NACT(m) > 0 and end > done:
                advance_actuators(m, s, done, end - done, 2, s.end.p, s.fill1)
                for i in range(TL_NACT(m)):
                    s.now.p[i] = s.end.p[i]
                    s.fill[i] = s.fill1[i]
            s.fresh[0] = 1
            break
        s.t[0] += done * m.h
        decide(m, s, x, 1, done, 0, 0.0)
        s.t[0] -= done * m.h
        if end - done < 1e-12:
            break
    if splits > s.counters[TL_C_SPLITS_MAX]:
        s.counters[TL_C_SPLITS_MAX] = splits
    s.t[0] += dt
    if dt == m.h:
        s.step_no[0] += 1
    else:
        # parts of a step (time events offline): the step number follows the time
        s.step_no[0] = <int64_t>(s.t[0] * m.inv_h + 1e-6)
    return 0


cdef void toggle_pressed(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Elements whose normal force appears or vanishes at the fraction x of the trial change their flag."""
    cdef int32_t i
    cdef double y
    for i in range(TL_NF(m)):
        if m.fr_src[i] != 0 and (s.end.raw[i] > 0.0) != (s.pressed[i] != 0):
            y = s.now.raw[i] / (s.now.raw[i] - s.end.raw[i]) if s.now.raw[i] != s.end.raw[i] else 0.0
            if y < 0.0 or (s.now.raw[i] > 0.0) != (s.pressed[i] != 0):
                y = 0.0
            if y <= x + 1e-9:
                s.pressed[i] = 1 - s.pressed[i]
