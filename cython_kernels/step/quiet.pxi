# The quiet step: inputs are held (or there are no actuators), no mode has changed and none does. It is the trial and its acceptance
# without what could not have changed, in the same order of operations: the same bits as the general path, which goes on from this
# trial where something happens in it.
#
# What is left out: capacities of elements that do not slip while their pressure does not move (all instants hold them
# already), pressures that have arrived at their commands, torque rows of elements that do not stick.
#
# Equations: none: trial.pxi and accept.pxi without what cannot have changed.

cdef inline int32_t may_be_quiet(const tl_model* m) noexcept nogil:
    """1 for models whose steps can be quiet at all. Not those with temperatures, which forces follow within the step."""
    return not staged(m) and not m.unresolved and TL_NTH(m) + TL_NST(m) + TL_NJO(m) + TL_NED(m) == 0 and TL_N(m) <= TL_FORMED


cdef void list_due(const tl_model* m, tl_state* s, int32_t begins) noexcept nogil:
    """Elements whose capacity may change: they slip, their pressure moves, or their input does. In the step in which the lists
    begin: all but those of a fixed capacity."""
    cdef int32_t i, src, due
    s.lists.n_due = 0
    for i in range(TL_NF(m)):
        src = m.fr[i].src
        if begins:
            due = not m.fr[i].fixed
        elif src == ACTUATED:
            due = s.lists.still[m.fr[i].src_idx] < STILL or slips(m, s, i)
        else:
            due = (not s.held and (src == NORMALIZED or src == CAPACITY)) or slips(m, s, i)
        s.lists.due[s.lists.n_due] = i
        s.lists.n_due += due


cdef void list_elements(const tl_model* m, tl_state* s) noexcept nogil:
    """Who slides, who sticks; the matrix of accelerations and stuck torques, one below the other."""
    cdef int32_t i, nf = TL_NF(m)
    list_modes(m, s)
    for i in range(TL_NACT(m)):
        s.lists.still[i] = 0
    list_due(m, s, 1)
    s.lists.due_holds = 0
    s.lists.moving = 1
    if s.lists.pattern != s.pat or not m.direct_cache:
        s.lists.pattern = s.pat
        if m.order == 4:
            stack_rows(m, s, s.pat.P4, s.pat.T4, 2 * nf, 2)
        else:
            stack_rows(m, s, s.pat.P, s.pat.T + TL_N(m), lanes(TL_N(m) + nf), 1)


cdef void stack_rows(const tl_model* m, tl_state* s, const double* P, const double* T, int32_t column,
                     int32_t stages) noexcept nogil:
    """s.lists.product: P (stages*n, stages*n), and below it the rows of T (stages*nf, stages*n; a column each `column` numbers)
    of the elements that stick; rows of zeros up to whole lanes."""
    cdef int32_t i, j, st, n = stages * TL_N(m), nf = TL_NF(m), c = s.lists.n_sticking, rows = lanes(n + stages * c)
    s.lists.rows = rows
    memset(s.lists.product, 0, n * rows * sizeof(double))
    for j in range(n):
        memcpy(s.lists.product + j * rows, P + j * n, n * sizeof(double))
        for st in range(stages):
            for i in range(c):
                s.lists.product[j * rows + n + st * c + i] = T[j * column + st * nf + s.lists.sticking[i]]


cdef void move_pressures(const tl_model* m, tl_state* s, int32_t begins) noexcept nogil:
    """Pressures of the trial, and whose capacity may change with them; all of them in the step in which they were listed."""
    cdef int32_t k, same, four = m.order == 4, fills = m.act_fills, moving = begins, still, after
    cdef double p, middle, end
    for k in range(TL_NACT(m)):
        if s.lists.still[k] == STILL:
            continue                             # all instants hold it already
        p = s.now.p[k]
        end = pressure_at(m, s, k, 1.0)
        middle = pressure_at(m, s, k, 0.5) if four else end
        s.end.p[k] = end
        if four:
            s.em.p[k] = middle
        # whether the trial leaves the pressure and the fill level as they are
        same = end == p and middle == p
        if fills:
            same &= s.press[k].filling == 0.0 or (s.press[k].filling < 0.0 and s.fill[k] == 0.0)
        still = s.lists.still[k]
        if not same and still == 0:
            moving = 1
            continue
        after = still + 1 if same else 0
        s.lists.still[k] = after
        s.lists.due_holds &= (still < STILL) == (after < STILL)
        moving |= after < STILL
    s.lists.moving = moving
    if not begins and not s.lists.due_holds:
        list_due(m, s, 0)
        s.lists.due_holds = 1


cdef inline void quiet_forces(const tl_model* m, tl_state* s, tl_eval* e, const double* u, double theta,
                              const double* xi) noexcept nogil:
    """eval_forces at the speeds u, capacities where they are due; of e.w only what these need."""
    s.counters[TL_C_EVALS] += 1
    if TL_NBO(m) > 0:
        gather(m, u, e.w)
    else:
        gather_ports(m, u, e.w)
    eval_ports(m, s, e, theta, xi)
    each_due(m, s, u, e.p, theta, e, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))


cdef inline void quiet_rows(const tl_model* m, const tl_state* s, tl_eval* e, double* F, int32_t uneven) noexcept nogil:
    """assemble, for the elements that slide. uneven: some may be tied."""
    cdef int32_t i, c
    cdef double t
    port_rows(m, e.port, F)
    for c in range(s.lists.n_sliding):
        i = s.lists.sliding[c]
        t = -e.cap_f[i] if s.mode[i] == MODE_FORWARD else e.cap_b[i]
        if uneven:
            t = sliding_torque(s, e, i)
        F[TL_FR_ROW(m, i)] += t
        e.tau[i] = t


cdef inline int32_t still_stick(const tl_state* s, tl_eval* e, const double* tau) noexcept nogil:
    """Torques of the elements that stick, in their order; 1 when none is beyond its limit."""
    cdef int32_t c, i, hold = 1
    cdef double t
    for c in range(s.lists.n_sticking):
        i = s.lists.sticking[c]
        t = tau[c]
        e.tau[i] = t
        if t > e.lim_b[i] or t < -e.lim_f[i]:
            hold = 0
    return hold


cdef void quiet_steep(const tl_model* m, tl_state* s, int32_t stages, double* v) noexcept nogil:
    """Steep forces, and the accelerations v that follow from them."""
    memcpy(s.v2, v, stages * TL_N(m) * sizeof(double))
    solve_rows(m, s, stages, 1, 0)
    matvec(s.lists.product, s.lists.rows, stages * TL_N(m), s.g, v)


cdef inline int32_t quiet_motion(const tl_model* m, tl_state* s, int32_t uneven, int32_t stages) noexcept nogil:
    """The rest of a trial behind the forces; uneven: some elements are steep, or tied. 1 when all that stick still do."""
    cdef int32_t st, hold = 1, n = TL_N(m)
    cdef tl_eval* e
    cdef double* v = s.lists.v
    for st in range(stages):
        quiet_rows(m, s, stage_eval(s, stages, st), s.F, uneven)
        springs_ahead(m, s, stages, st, s.F)
        scatter(m, s.F, s.g + st * n)
    matvec(s.lists.product, s.lists.rows, stages * n, s.g, v)
    if uneven and s.stiff:
        quiet_steep(m, s, stages, v)
    for st in range(stages):
        hold = still_stick(s, stage_eval(s, stages, st), v + stages * n + st * s.lists.n_sticking)
    correct(m, s, stages, v)
    end_motion(m, s, stages)
    stage_rows(m, s, stages)
    return hold


cdef int32_t uneven_motion(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    return quiet_motion(m, s, 1, 2) if stages == 2 else quiet_motion(m, s, 1, 1)


cdef inline int32_t quiet_trial(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """The trial; 1 when all that stick still do."""
    cdef int32_t st
    predict(m, s, stages)
    for st in range(stages):
        quiet_forces(m, s, stage_eval(s, stages, st), stage_speeds(s, stages, st), node(stages, st), stage_idle(s, stages, st))
    if s.stiff or s.ties:
        return uneven_motion(m, s, stages)
    return quiet_motion(m, s, 0, stages)


cdef inline int32_t stays_quiet(const tl_model* m, tl_state* s, int32_t moved) noexcept nogil:
    """0 when something happens in the trial (what `disturbed` asks for; still_stick has asked already), or its end is
    not finite. moved: whether a pressure has."""
    cdef int32_t i, c, bad = 0
    cdef double chk = 0.0
    cdef const tl_eval* e = s.end
    for i in range(TL_N(m)):
        chk += e.u[i]
    bad = chk - chk != 0.0
    if moved:
        for c in range(s.lists.n_due):
            i = s.lists.due[c]
            bad |= (e.raw[i] > 0.0) != (s.pressed[i] != 0)
    for c in range(s.lists.n_sliding):
        i = s.lists.sliding[c]
        bad |= turns_round(m, s, e, i, TL_FR_ROW(m, i))
    bad = bad or (TL_NENG(m) > 0 and idle_regime_ends(m, s))
    return not (bad or pieces_change(m, s))


cdef inline int32_t make_quiet_trial(const tl_model* m, tl_state* s, int32_t* moved, int32_t* hold) noexcept nogil:
    """The trial of a step from the present state, with its inputs taken over, in which nothing may happen: whether a pressure moves in
    it, and whether all that stick still do. 0: no trial was made, since the general path has more to do."""
    cdef int32_t begins = s.quiet == 1
    if not s.hist[0] or (s.held and s.quiet == FOLLOWING) or (m.order == 4 and s.hist[0] == HISTORY_JUMPED):
        return 0
    if begins:
        list_elements(m, s)
        s.quiet = LISTED
    elif not s.held:
        s.lists.moving = 1
    if not s.held and s.quiet != FOLLOWING:
        s.quiet = FOLLOWING
        s.lists.due_holds = 0
    if s.ties and some_tie_slides(m, s):
        return 0
    quiet_rates(m, s, s.now.a, s.wa)
    choose_governors(m, s)
    s.stiff = 0
    s.n_eased = 0
    s.unsolved = 0
    moved[0] = s.lists.moving
    if moved[0]:
        move_pressures(m, s, begins)
    if m.order == 4:
        if not s.look.known:
            hold_look_ups(m, s)
        s.hint = s.look.held
        hold[0] = quiet_trial(m, s, 2)
        s.hint = s.look.free
    else:
        hold[0] = quiet_trial(m, s, 1)
    return 1


cdef inline int32_t take_quiet_trial(const tl_model* m, tl_state* s, int32_t moved, int32_t hold) noexcept nogil:
    """1 when nothing happens in that trial, and the step is done. Else the present state and the balance are as before."""
    if s.n_eased > 0 or s.unsolved or not hold or not stays_quiet(m, s, moved) or balance_trial(m, s, 1.0, m.order == 4):
        return 0
    s.hist[0] = HISTORY_HOLDS
    take_whole(m, s, m.order == 4)
    s.step_no[0] += 1
    return 1


cdef inline void complete_trial(const tl_model* m, tl_state* s) noexcept nogil:
    """What the general path asks for besides, of a quiet trial in which something happens."""
    gather(m, s.now.a, s.wa)
    s.look.known = 0                             # of the end of the trial it is not
    if s.n_eased > 0 and not s.four:
        settle_eased(m, s)
