# The instant behind a decision: what rounding has left of slips at rest, accelerations, torques; and the log of modes.

cdef void settle(const tl_model* m, tl_state* s) noexcept nogil:
    """With the modes known, and listed (list_modes): remove the rounding left in stuck rows, then the acceleration and torques
    of this instant."""
    cdef int32_t c, i, n = TL_N(m), nf = TL_NF(m)
    cdef int32_t any_stuck = 0
    for c in range(s.n_sticking):
        i = s.sticking[c]
        if s.now.w[TL_FR_ROW(m, i)] != 0.0 and not (TL_ND(m) + TL_NVG(m) > 0 and m.fr[i].src == 5):
            any_stuck = 1
    if any_stuck:
        # u <- P0 M u: the projection that conserves momentum
        if TL_ND(m) + TL_NVG(m) > 0:
            for i in range(nf):
                s.g[i] = slip_of(m, s, i, s.now.u)
            project(m, s, s.g)
        else:
            for i in range(n):
                s.v1[i] = dot(m.M + i * n, s.now.u, m.S_range[2 * i], m.S_range[2 * i + 1])
            hold_now(m, s.pat, s.v1, s.now.u)
            gather(m, s.now.u, s.now.w)
    for i in range(TL_NHOT(m)):
        s.F[i] = 0.0
    for i in range(TL_NPORT(m)):
        s.F[TL_PORT_ROW(m, i)] += s.now.port[i]
    for c in range(s.n_sliding):
        i = s.sliding[c]
        s.now.tau[i] = sliding_torque(s, s.now, i)
        if TL_NLS(m) > 0 and m.fr[i].src == 4:
            s.now.tau[i] = 0.0
        s.F[TL_FR_ROW(m, i)] += s.now.tau[i]
    if TL_NLIN(m) + TL_NCON(m) > 0:
        subtract_compliances(m, s, s.now.z, s.now.u, s.F, 1)
    scatter(m, s.F, s.g)
    if staged(m):
        for c in range(s.n_sticking):
            s.now.tau[s.sticking[c]] = 0.0
        drive_stages(m, s, 0)
        solve_stages(m, s, 0, s.v2)
        for i in range(n):
            s.now.a[i] = s.v2[i]
        loss_limits(m, s, 0)
        return
    hold_instant(m, s, s.pat, s.g, s.now.a)
    held_instant(m, s, s.pat, s.g, s.now.a, s.v1)
    for c in range(s.n_sticking):
        i = s.sticking[c]
        s.now.tau[i] = s.v1[i]


cdef inline void log_mode_change(tl_state* s, int32_t i) noexcept nogil:
    """Append (step, time, element, mode) to the ring."""
    cdef int64_t j = s.log_n % s.log_size
    s.log_step[j] = s.step_no[0]
    s.log_t[j] = s.t[0]
    s.log_el[j] = i
    s.log_mode[j] = logged_mode(s, i)
    s.log_n += 1
