# The instant behind a decision: what rounding has left of slips at rest, accelerations, torques; and the log of modes.
#
# Equations: (29), (30).

#: rad/s or m/s: less is left of a slip at rest as it is. Rounding leaves 4e-12 of the 4HP22 car's in 5000 steps without an event.
cdef double REMOVED = 1e-11


cdef inline int32_t logged_mode(const tl_state* s, int32_t i) noexcept nogil:
    """Mode as the log has it: an element at its limit that others hold at rest has not begun to slide."""
    return 0 if s.tied[i] else <int32_t>s.mode[i]


cdef void list_modes(const tl_model* m, tl_state* s) noexcept nogil:
    """Who slides and who sticks; what is free carries nothing in any trial."""
    cdef int32_t i
    s.lists.n_sliding = 0
    s.lists.n_sticking = 0
    for i in range(TL_NF(m)):
        if s.mode[i] == MODE_FREE:
            s.now.tau[i] = 0.0
            s.end.tau[i] = 0.0
            s.em.tau[i] = 0.0
        elif s.mode[i] == MODE_STUCK:
            s.lists.sticking[s.lists.n_sticking] = i
            s.lists.n_sticking += 1
        else:
            s.lists.sliding[s.lists.n_sliding] = i
            s.lists.n_sliding += 1


cdef inline void remove_slips(const tl_model* m, tl_state* s) noexcept nogil:
    """What rounding has left of the slips of the elements that stick, by the projection that conserves momentum."""
    cdef int32_t c, i, n = TL_N(m)
    cdef int32_t any_stuck = 0, left = 0, stopped = 0, driven = TL_ND(m) + TL_NVG(m) > 0
    cdef double most = 0.0 if driven else REMOVED
    for c in range(s.lists.n_sticking):
        i = s.lists.sticking[c]
        left |= s.now.w[TL_FR_ROW(m, i)] != 0.0
        if fabs(s.now.w[TL_FR_ROW(m, i)]) > most and not (driven and m.fr[i].src == BILATERAL):
            any_stuck = 1
    if not any_stuck:
        # what cannot move at all has no speed, to the bit: its angle stays
        for i in range(n if left and s.pat.locked and not driven else 0):
            if s.now.u[i] != 0.0 and s.pat.P0[i * n + i] == 0.0 and not relaxing(m, i):
                s.now.u[i] = 0.0
                stopped = 1
        if stopped:
            gather(m, s.now.u, s.now.w)
        return
    stop_slips(m, s)


cdef inline void settle(const tl_model* m, tl_state* s) noexcept nogil:
    """With the modes known: what is left of slips at rest, accelerations and torques of this instant."""
    settle_motion(m, s)
    if m.unresolved:
        settle_excess(m, s)


cdef void settle_motion(const tl_model* m, tl_state* s) noexcept nogil:
    """The same of the motion as the method has it."""
    cdef int32_t c, i, n = TL_N(m)
    cdef const double* held
    list_modes(m, s)
    remove_slips(m, s)
    port_rows(m, s.now.port, s.F)
    for c in range(s.lists.n_sliding):
        i = s.lists.sliding[c]
        s.now.tau[i] = sliding_torque(s, s.now, i)
        if TL_NLS(m) > 0 and m.fr[i].src == LOSS:
            s.now.tau[i] = 0.0
        s.F[TL_FR_ROW(m, i)] += s.now.tau[i]
    if TL_NLIN(m) + TL_NCON(m) > 0:
        subtract_compliances(m, s, s.now.z, s.now.u, s.F, 1)
    scatter(m, s.F, s.g)
    if staged(m):
        for c in range(s.lists.n_sticking):
            s.now.tau[s.lists.sticking[c]] = 0.0
        drive_stages(m, s, 0, 0.0)
        solve_stages(m, s, 0, s.v2)
        for i in range(n):
            s.now.a[i] = s.v2[i]
        relax_accelerations(m, s, s.theta)
        loss_limits(m, s, 0)
        return
    hold_instant(m, s, s.g, s.now.a)
    relax_accelerations(m, s, s.theta)
    held = torques_at_rest(m, s, m.M, s.g, s.now.a)
    for c in range(s.lists.n_sticking):
        i = s.lists.sticking[c]
        s.now.tau[i] = held[i]


cdef inline void log_mode_change(const tl_model* m, tl_state* s, int32_t i) noexcept nogil:
    """Append (step, time, element, mode) to the ring."""
    cdef int64_t j = s.log.n % s.log.size
    s.log.step[j] = s.step_no[0]
    s.log.t[j] = (<double>s.step_no[0] + s.fraction[0] + s.theta) * m.h
    s.log.element[j] = i
    s.log.mode[j] = logged_mode(s, i)
    s.log.n += 1


cdef void restore_law(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """After trials of two points: accelerations and torques of the instant at the fraction `end` by the law. (Those of the
    trial make the means right.)"""
    cdef int32_t i, found = TL_NJO(m) > 0 or s.n_eased > 0
    for i in range(TL_NCON(m)):
        found |= pressing(m, s, i)
    s.theta = end
    for i in range(TL_NJO(m)):
        joint_now(m, s, i, end)
    if TL_NWR(m) > 0:
        body_ports(m, s, s.now.w, end, first_body_port(m, s.now))
    if found:
        list_modes(m, s)
        settle(m, s)


cdef inline int32_t some_tie_slides(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when an element at its limit that others held at rest slides after all."""
    cdef int32_t i
    for i in range(TL_NF(m)):
        if s.tied[i] and fabs(s.now.w[TL_FR_ROW(m, i)]) > TOL_R:
            return 1
    return 0


cdef void end_ties(const tl_model* m, tl_state* s) noexcept nogil:
    """Such elements have their sliding capacity from here on."""
    cdef int32_t i
    s.ties = 0
    for i in range(TL_NF(m)):
        if s.tied[i] and fabs(s.now.w[TL_FR_ROW(m, i)]) > TOL_R:
            s.tied[i] = 0
            log_mode_change(m, s, i)
        s.ties |= s.tied[i]
    forget_history(m, s)
    settle(m, s)
