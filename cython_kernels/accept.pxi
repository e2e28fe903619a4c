# Taking a trial, whole or cut: the books of work and heat, and the new present instant.

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
    cdef double h = s.h, xh = x * s.h, q = 0.25 * x * s.h, f1, ws
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
    if TL_NCON(m) > 0:
        contact_books(m, s, x)
    if TL_ND(m) > 0:
        driven_books(m, s, x)


cdef void accept4(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """As accept2 for order 4: work by Simpson's rule on the collocation polynomials."""
    cdef int32_t i, k, n = TL_N(m)
    cdef double h = s.h, xh = x * s.h, q = x * s.h / 6.0, y = 0.5 * x, w0, wm, w1
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
    if TL_NCON(m) > 0:
        contact_books(m, s, x)
    if TL_ND(m) > 0:
        driven_books(m, s, x)
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
        s.xi[i] = idle_integrator(m, s, i, x * s.part)
    advance_actuators(m, s, theta, x * s.part, 2, s.em.p, s.fill1)
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
    if TL_NLS(m) > 0:
        lerp(s.now.rea, s.em.rea, s.end.rea, TL_NLS(m), x, four)
