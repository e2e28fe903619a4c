# Integrators of laws: the idle controllers of engines.
#
#   e = w_idle - w,  xi' = ki e within [0, tau_idle_max],  torque = kp e + xi within [0, tau_idle_max]
#
# The limits are followed as regimes: what has left its range is held at the limit, and where a regime ends is an event.
#
# Equations: (69).

#: of the largest torque: an integral so near to a limit is at it, a torque so near is judged by its slope
cdef double AT_LIMIT = 1e-12
#: of the largest torque: so far beyond its regime a torque or an integral has left it
cdef double PAST_LIMIT = 1e-11


cdef inline void choose_governors(const tl_model* m, tl_state* s) noexcept nogil:
    """Regimes of the idle controllers from now on; s.wa: row accelerations now."""
    cdef int32_t i, k
    cdef double e, limit, near, rate, torque
    for i in range(TL_NENG(m)):
        limit = m.eng[i].tau_idle_max
        s.gives[i] = -1
        s.xi_held[i] = 1
        if limit <= 0.0:
            continue
        k = m.eng[i].row
        e = m.eng[i].w_idle - s.now.w[k]
        near = AT_LIMIT * limit
        rate = m.eng[i].ki * (e if fabs(e) > TOL_R else -s.wa[k])
        if s.xi[i] <= near:
            s.xi[i] = 0.0
            s.xi_held[i] = rate <= 0.0
        elif s.xi[i] >= limit - near:
            s.xi[i] = limit
            s.xi_held[i] = rate >= 0.0
        else:
            s.xi_held[i] = 0
        torque = m.eng[i].kp * e + s.xi[i]
        if torque < -near:
            continue
        # as near to a limit as `near` the slope says
        rate = (0.0 if s.xi_held[i] else m.eng[i].ki * e) - m.eng[i].kp * s.wa[k]
        if torque > near or rate >= 0.0:
            s.gives[i] = torque > limit + near or (torque >= limit - near and rate > 0.0)


cdef inline void govern(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Integrals at the stages, from the speeds there."""
    cdef int32_t i, k, st
    cdef double wm, w1
    for i in range(TL_NENG(m)):
        k = m.eng[i].row
        wm = row_dot(m, k, s.um) if stages == 2 else 0.0
        w1 = row_dot(m, k, s.end.u)
        for st in range(stages):
            stage_idle(s, stages, st)[i] = s.xi[i] + (0.0 if s.xi_held[i] else m.eng[i].ki * s.h * (
                node(stages, st) * m.eng[i].w_idle - to_stage(stages, st, s.now.w[k], wm, w1)))


cdef inline double governed(const tl_model* m, const tl_state* s, int32_t i, double x, double* w) noexcept nogil:
    """Integral of idle controller i at the fraction x of the trial, in its regime; w: the speed there."""
    cdef double[5] p
    cdef double[4] v
    cdef int32_t k = m.eng[i].row
    along_row(m, s, k, s.now.w[k], s.wa[k], p, v)
    w[0] = poly_at(v[0], v[1], v[2], v[3], x)
    if s.xi_held[i]:
        return s.xi[i]
    return s.xi[i] + m.eng[i].ki * (x * s.h * m.eng[i].w_idle - angle_at(p, x))


cdef inline void take_governed(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """The integrals at the fraction x of the trial are those of now."""
    cdef int32_t i
    cdef double w
    for i in range(TL_NENG(m)):
        if not s.xi_held[i]:
            s.xi[i] = governed(m, s, i, x, &w)


cdef inline double idle_margin(const tl_model* m, const tl_state* s, int32_t i, double xi, double w) noexcept nogil:
    """What is left to the ends of the regimes of idle controller i at an integral and a speed, N.m; below 0 beyond one of them."""
    cdef double limit = m.eng[i].tau_idle_max, e = m.eng[i].w_idle - w, torque = m.eng[i].kp * e + xi, left
    if s.gives[i] == 0:
        left = torque if torque < limit - torque else limit - torque
    else:
        left = -torque if s.gives[i] < 0 else torque - limit
    if m.eng[i].ki == 0.0:
        return left
    if s.xi_held[i]:
        # (the time of a step makes of it a torque)
        torque = m.eng[i].ki * m.h * (-e if xi <= 0.0 else e)
        return torque if torque < left else left
    left = xi if xi < left else left
    return limit - xi if limit - xi < left else left


cdef inline int32_t idle_past(const tl_model* m, const tl_state* s, int32_t i, double xi, double w) noexcept nogil:
    """1 beyond one of these ends. (A controller that gives nothing, its integral at 0, goes on so above its speed.)"""
    if s.gives[i] < 0 and s.xi_held[i] and w > m.eng[i].w_idle and xi <= 0.0:
        return 0
    return idle_margin(m, s, i, xi, w) < -PAST_LIMIT * m.eng[i].tau_idle_max


cdef inline int32_t idle_regime_ends(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when a point of the trial is beyond the regime of an idle controller."""
    cdef int32_t i, k, past = 0
    for i in range(TL_NENG(m)):
        if m.eng[i].tau_idle_max > 0.0:
            k = m.eng[i].row
            past |= idle_past(m, s, i, s.xi1[i], s.end.w[k])
            if s.four:
                past |= idle_past(m, s, i, s.xim[i], s.em.w[k])
    return past


cdef double idle_left(const tl_margin* g, double x) noexcept nogil:
    """The margin of idle controller g.i at the fraction x of the trial."""
    cdef double w = 0.0, xi = governed(g.m, g.s, g.i, x, &w)
    return idle_margin(g.m, g.s, g.i, xi, w)


cdef double find_idle(const tl_model* m, const tl_state* s, double end) noexcept nogil:
    """Fraction of the trial, up to `end`, at which a regime of an idle controller ends; NO_EVENT if none does."""
    cdef double first = NO_EVENT
    cdef double[2] points
    cdef tl_margin g
    if not idle_regime_ends(m, s):
        return NO_EVENT
    points[0], points[1] = 0.5, 1.0
    g.at = idle_left
    g.m = m
    g.s = s
    for g.i in range(TL_NENG(m)):
        if m.eng[g.i].tau_idle_max > 0.0:
            first = sooner(first_below(&g, 0.0, points, 2, PAST_LIMIT * m.eng[g.i].tau_idle_max), first, end)
    return first
