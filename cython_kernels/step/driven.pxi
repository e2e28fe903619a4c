# Bilateral elements: driven flanges (prescribed motion) and gears of variable ratio. They are always held, their slip
# follows a prescribed acceleration: with B_s^+ the pseudo-inverse of the held rows, a = B_s^+ alpha + (free part).
#
# Equations: none: section 12, driven motions.

cdef double BESSEL_A = 1.3617     # Bessel filter of second order (damping 0.866), as in Modelica
cdef double BESSEL_B = 0.6180


cdef inline double slip_of(const tl_model* m, const tl_state* s, int32_t i, const double* u) noexcept nogil:
    """Dense row of element i times u; the rows of variable gears are the state's own."""
    cdef int32_t j
    cdef double acc = 0.0
    for j in range(TL_N(m)):
        acc += s.gears.B[i * TL_N(m) + j] * u[j]
    return acc


cdef void filter_stages(const tl_model* m, tl_state* s, int32_t d, int32_t stages, double* alpha) noexcept nogil:
    """Accelerations alpha (stages) of a flange that follows its reference through a filter (kinds 1 and 2).

    The filter is linear in the flange's own motion, alpha = k0(t) - kw w - kp phi, and is collocated like the rest:
    implicitly, so that no f_crit is too high for the step.
    """
    cdef int32_t k = m.fr[m.drv[d].fr].row, i, n = TL_N(m)
    cdef double h = s.h, wc = m.drv[d].p[0], kw = wc, kp = 0.0, kr = wc, w0, a0, p0, a, b, c, e, det
    cdef double[2] f
    if m.drv[d].kind == DRIVEN_POSITION_FILTER:
        kp = wc * wc / BESSEL_B
        kw = BESSEL_A * wc / BESSEL_B
        kr = kp
    w0 = row_dot(m, k, s.now.u)
    a0 = row_dot(m, k, s.now.a)
    p0 = row_dot(m, k, s.now.z) + s.row_off[k]
    for i in range(stages):
        f[i] = kr * input_at(m, s, m.drv[d].inputs[0], stage_theta(s, stages, i))
    if stages == 1:
        f[0] -= kw * (w0 + 0.5 * h * a0) + kp * (p0 + h * w0 + h * h * (0.5 - m.beta) * a0)
        alpha[0] = f[0] / (1.0 + kw * 0.5 * h + kp * h * h * m.beta)
        return
    # weights of Lobatto IIIA and their square, see derive.py
    f[0] -= kw * (w0 + h * (5.0 / 24.0) * a0) + kp * (p0 + 0.5 * h * w0 + h * h * (1.0 / 16.0) * a0)
    f[1] -= kw * (w0 + h * (1.0 / 6.0) * a0) + kp * (p0 + h * w0 + h * h * (1.0 / 6.0) * a0)
    a = 1.0 + kw * h / 3.0 + kp * h * h / 12.0
    b = -kw * h / 24.0 - kp * h * h / 48.0
    c = kw * h * (2.0 / 3.0) + kp * h * h / 3.0
    e = 1.0 + kw * h / 6.0
    det = a * e - b * c
    alpha[0] = (f[0] * e - b * f[1]) / det
    alpha[1] = (a * f[1] - c * f[0]) / det


cdef inline double drive(const tl_model* m, const tl_state* s, int32_t d, double theta, double w,
                         double phi) noexcept nogil:
    """Acceleration that driven flange d prescribes at the fraction theta of the step, at its speed w and angle phi.

    0 Accelerate: a_ref.  1 Speed with filter: (w_ref - w) 2 pi f_crit.  2 Position with filter: Bessel, second order.
    3 exact Speed: the derivative of w_ref.  4 exact Position, Move: the acceleration that goes with them.
    """
    cdef const int32_t* q = m.drv[d].inputs
    cdef int32_t kind = m.drv[d].kind
    cdef double wc = m.drv[d].p[0]
    if kind == DRIVEN_ACCELERATION:
        return input_at(m, s, q[0], theta)
    if kind == DRIVEN_SPEED_FILTER:
        return wc * (input_at(m, s, q[0], theta) - w)
    if kind == DRIVEN_POSITION_FILTER:
        return ((input_at(m, s, q[0], theta) - phi) * wc - BESSEL_A * w) * (wc / BESSEL_B)
    return input_at(m, s, q[1 if kind == DRIVEN_SPEED else 2], theta)


cdef void drive_stages(const tl_model* m, tl_state* s, int32_t stages, double ahead) noexcept nogil:
    """Prescribed accelerations of the stages into s.ad; speeds and angles of the flanges as predicted. ahead: how long after the
    present instant (stages 0), of h."""
    cdef int32_t d, i, j, st, k, n = TL_N(m), nf = TL_NF(m), count = stages if stages > 0 else 1
    cdef double alpha, x, w
    cdef double[2] filtered
    for i in range(count * n):
        s.ad[i] = 0.0
    if moving(m):
        stage_ratios(m, s, stages)
    for st in range(count):
        x = stage_theta(s, stages, st) + ahead
        for d in range(TL_ND(m)):
            i = m.drv[d].fr
            k = m.fr[i].row
            if stages > 0 and (m.drv[d].kind == DRIVEN_SPEED_FILTER or m.drv[d].kind == DRIVEN_POSITION_FILTER):
                filter_stages(m, s, d, stages, filtered)
                alpha = filtered[st]
            else:
                w = row_dot(m, k, s.now.u)
                alpha = drive(m, s, d, x, w + ahead * m.h * row_dot(m, k, s.now.a), row_angle(m, s, k) + ahead * m.h * w)
            for j in range(n):
                s.ad[st * n + j] += s.pat.Tn[j * nf + i] * alpha
        for d in range(TL_NVG(m)):
            # (w_a - i w_b)' = 0
            i = m.vg[d].fr
            alpha = gear_rate(m, s, d, stages, st) + (gear_change(m, s, d, x, ahead) if ahead > 0.0 and moving(m) else 0.0)
            for j in range(n):
                s.ad[st * n + j] += s.pat.Tn[j * nf + i] * alpha


cdef void project(const tl_model* m, tl_state* s, const double* target) noexcept nogil:
    """Speeds whose held rows have the slips target (nf): u <- u_p + P0 M (u - u_p). Momentum of the rest is kept."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef double acc
    cdef double* kept
    for j in range(n):
        acc = 0.0
        if TL_ND(m) + TL_NVG(m) > 0:
            for i in range(nf):
                if s.mode[i] == MODE_STUCK and m.fr[i].src == BILATERAL:
                    acc += s.pat.Tn[j * nf + i] * target[i]
        s.v2[j] = acc
    for i in range(n):
        acc = 0.0
        for j in range(n):
            acc += m.M[i * n + j] * (s.now.u[j] - s.v2[j])
        s.v1[i] = acc
    kept = keep_relaxing(m, s)
    matvec(s.pat.P0, n, n, s.v1, s.now.u)
    for j in range(n):
        s.now.u[j] += s.v2[j]
    restore_relaxing(m, s, kept)
    gather(m, s.now.u, s.now.w)


cdef void stop_slips(const tl_model* m, tl_state* s) noexcept nogil:
    """What sticks comes to rest (s.pat), driven flanges go on as they do: momentum of the rest is kept."""
    cdef int32_t i
    cdef int64_t here = mark(s)
    cdef double* target = scratch(s, TL_NF(m))
    if TL_ND(m) + TL_NVG(m) > 0:
        for i in range(TL_NF(m)):
            target[i] = slip_of(m, s, i, s.now.u)
    project(m, s, target)
    release(s, here)


cdef double impulse_work(const tl_model* m, tl_state* s, const double* of_losses) noexcept nogil:
    """Work of the drivers when the speeds change at once from s.us to those of now, into the balance: the impulse of each times the
    mean of its slips before and after. The sum of all. of_losses (n): impulses of the losses of gears."""
    cdef int32_t i, n = TL_N(m)
    cdef double work, total = 0.0
    for i in range(n):
        s.v1[i] = s.now.u[i] - s.us[i]
    missing_forces(s, n, m.M, s.v1, of_losses)
    for i in range(TL_NF(m)):
        if m.fr[i].src == BILATERAL:
            work = share_of_missing(m, s, i, 0) * 0.5 * (slip_of(m, s, i, s.us) + slip_of(m, s, i, s.now.u))
            s.e_fr[i] -= work
            total += work
    return total


cdef void driven_balance(const tl_model* m, tl_state* s, double x, tl_cvec wm, tl_cvec w1, int32_t four) noexcept nogil:
    """Work of the drivers up to the fraction x of a trial, as heat of opposite sign; wm, w1: row speeds in the middle (three points)
    and at the end of that part."""
    cdef int32_t d, i, k
    for d in range(TL_ND(m)):
        i = m.drv[d].fr
        k = m.fr[i].row
        s.e_fr[i] -= work_on(m, s, four, k, x, wm[k], w1[k], s.now.tau[i], s.em.tau[i], s.end.tau[i])


cdef const double* free_inverse(const tl_model* m, tl_state* s, double ahead) noexcept nogil:
    """M^-1 with the bilateral elements and friction in series with springs held (all others have a mode that is not 0); s.ad: what
    they are driven with `ahead` (of h) after now."""
    if TL_ND(m) + TL_NVG(m) + TL_NRX(m) == 0:
        return m.Minv
    s.pat = pattern_now(m, s)
    if TL_ND(m) + TL_NVG(m) > 0:
        drive_stages(m, s, 0, ahead)
    return s.pat.P0
