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


cdef inline tl_vec stage_speeds(const tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """Speeds of a stage, as the trial holds them."""
    if stages == 0:
        return s.now.u
    return s.end.u if st == stages - 1 else s.um


cdef inline double* stage_idle(const tl_state* s, int32_t stages, int32_t st) noexcept nogil:
    """Integrals of the idle controllers at a stage."""
    return s.xi1 if st == stages - 1 else s.xim


cdef inline void move_speeds(const tl_model* m, int32_t stages, int32_t st, double h, tl_cvec u, tl_cvec a, tl_cvec am, tl_cvec a1,
                             tl_vec found) noexcept nogil:
    """Speeds at a stage, (8) to (10), from the start (u, a) and the accelerations of the stages."""
    cdef int32_t i
    for i in range(TL_N(m)):
        found[i] = u[i] + 0.5 * h * (a[i] + a1[i]) if stages == 1 else u[i] + h * to_stage(2, st, a[i], am[i], a1[i])


cdef inline void move_angles(const tl_model* m, int32_t stages, int32_t st, double h, tl_cvec z, tl_cvec u, tl_cvec a, tl_cvec um,
                             tl_cvec u1, tl_cvec a1, tl_vec found) noexcept nogil:
    """Angles at a stage, (11) to (13), from the start and the motion of the stages."""
    cdef int32_t i
    for i in range(TL_N(m)):
        if stages == 1:
            found[i] = z[i] + h * u[i] + h * h * ((0.5 - m.beta) * a[i] + m.beta * a1[i])
        else:
            found[i] = z[i] + h * to_stage(stages, st, u[i], um[i], u1[i])


cdef void stage_motion(const tl_model* m, tl_state* s, int32_t stages, const double* v) noexcept nogil:
    """Speeds us and angles zs of the stages that go with the accelerations v."""
    cdef int32_t i, st, n = TL_N(m), last = n * (stages - 1)
    if stages == 0:
        for i in range(n):
            s.us[i] = s.now.u[i]
            s.zs[i] = s.now.z[i]
    for st in range(stages):
        move_speeds(m, stages, st, s.h, s.now.u, s.now.a, v, v + last, s.us + st * n)
    for st in range(stages):
        move_angles(m, stages, st, s.h, s.now.z, s.now.u, s.now.a, s.us, s.us + last, v + last, s.zs + st * n)


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
