# Points of a trial: the instant that belongs to a stage, its time as a fraction of the step, inputs, temperatures and motion
# there, and the history that the next trial is predicted from.
#
# `stages` counts the unknown points of a trial: 1 (order 2: the end), 2 (order 4: middle and end), or 0 (the present instant).
#
# Equations: (8) to (13).

cdef enum:
    # of s.quiet: the lists of quiet.pxi hold; they hold, and capacities follow inputs that change within the step
    LISTED = 2
    FOLLOWING = 3
    # of s.lists.still: so many steps in a row a pressure has not moved, so that both instants and the middle hold the same value
    STILL = 2


cdef double UNLIMITED = 1e301          # stands for an unlimited torque; finite, so that interpolation stays finite


cdef inline double input_at(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Input i at the fraction theta of the step: held, or the quadratic through its start, middle and end."""
    cdef int32_t nin = TL_NIN(m)
    if s.held:
        return s.inp[i]
    return s.in_c[i] + theta * (s.in_c[nin + i] + theta * s.in_c[2 * nin + i])


cdef inline double input_slope(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Change of input i with the fraction of the step."""
    cdef int32_t nin = TL_NIN(m)
    return 0.0 if s.held else s.in_c[nin + i] + 2.0 * theta * s.in_c[2 * nin + i]


cdef inline double temperature(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Temperature of node i at the fraction theta of the step: parabola from its start, or from the last event in it."""
    cdef double dt = (theta - s.T_theta) * m.h
    return s.T[i] + dt * (s.T_rate[i] + 0.5 * dt * s.T_curve[i])


cdef inline tl_eval* stage_eval(tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """The instant a stage belongs to."""
    if stages == 0:
        return s.now
    return s.end if st == stages - 1 else s.em


cdef inline double stage_theta(const tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """Where in the step's inputs a stage lies."""
    if stages == 0:
        return s.theta
    return s.theta + (s.part if st == stages - 1 else 0.5 * s.part)


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


cdef inline void forget_history(const tl_model* m, tl_state* s) noexcept nogil:
    """The slope of the acceleration is not that of what follows."""
    cdef int32_t i
    s.hist[0] = 0
    for i in range(TL_N(m)):
        s.now.hs1[i] = 0.0
    if m.order == 4:
        for i in range(TL_N(m)):
            s.hs2[i] = 0.0


cdef void history_of_part(const tl_model* m, tl_state* s, const double* hs1, const double* s2, double x) noexcept nogil:
    """How the acceleration goes on over the first part x of a trial in which it changed by hs1 and s2: what the next
    trial, of that length, is predicted from."""
    cdef int32_t i
    s.hist[0] = HISTORY_HOLDS
    for i in range(TL_N(m)):
        s.now.hs1[i] = x * hs1[i]
    if s.four:
        for i in range(TL_N(m)):
            s.hs2[i] = x * x * s2[i]


cdef inline void history_jumps(tl_state* s) noexcept nogil:
    """Forces or their slopes jump: how accelerations go on is not known as well as it was."""
    if s.hist[0]:
        s.hist[0] = HISTORY_JUMPED
