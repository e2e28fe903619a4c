# The quiet step: inputs are held (or there are no actuators), no mode has changed and none does. It is the trial and its acceptance without what could
# not have changed, in the same order of operations: the same bits as the general path, which begins anew where this one
# finds that something happens.
#
# Needs: forces.pxi, trial.pxi, accept.pxi. Writes s.end, s.em and scratch only, until it is sure.
#
# What is left out: capacities of elements that do not slip while their pressure does not move (all instants hold them
# already), pressures that have arrived at their commands, torque rows of elements that do not stick.

cdef enum:
    #: of s.quiet: the lists hold; the same, and capacities follow inputs that are not held
    LISTED = 2
    FOLLOWING = 3
    TAKEN = 1              # of quiet_step: the step is done
    TRIED = 2              # its trial is made, and something happens in it
    STILL = 2              # steps in a row without a change after which both instants and the middle hold the same


cdef inline int32_t may_be_quiet(const tl_model* m) noexcept nogil:
    """1 for models whose steps can be quiet at all. Not those with temperatures, which forces follow within the step."""
    return not staged(m) and not m.stiff_cut and TL_NTH(m) + TL_NST(m) + TL_NJO(m) == 0 and TL_N(m) <= TL_FORMED


cdef inline int32_t slips(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when the capacity of element i follows its slip."""
    return s.mode[i] != 0 and s.pressed[i] and not m.fr[i].fixed and m.fr[i].mu >= 0


cdef void list_elements(const tl_model* m, tl_state* s) noexcept nogil:
    """Who slides, who sticks; the matrix of accelerations and stuck torques, one below the other."""
    cdef int32_t i, nf = TL_NF(m)
    s.n_sliding = 0
    s.n_sticking = 0
    for i in range(nf):
        s.due[i] = not m.fr[i].fixed
        if s.mode[i] & 1:
            s.sliding[s.n_sliding] = i
            s.n_sliding += 1
        if s.mode[i] == 0:
            s.sticking[s.n_sticking] = i
            s.n_sticking += 1
    for i in range(TL_NACT(m)):
        s.still[i] = 0
    s.moving = 1
    if s.held_pat != s.pat or not m.direct_cache:
        s.held_pat = s.pat
        if m.order == 4:
            stack_rows(m, s, s.pat.P4, s.pat.T4, 2)
        else:
            stack_rows(m, s, s.pat.P, s.pat.T, 1)


cdef inline int32_t lanes(int32_t rows) noexcept nogil:
    """Rows filled up to whole lanes."""
    return (rows + TL_LANES - 1) // TL_LANES * TL_LANES


cdef void stack_rows(const tl_model* m, tl_state* s, const double* P, const double* T, int32_t stages) noexcept nogil:
    """s.held_by: P (stages*n, stages*n), and below it the rows of T (stages*nf, stages*n) that are not zero; rows of
    zeros up to whole lanes."""
    cdef int32_t i, j, st, n = stages * TL_N(m), nf = TL_NF(m), c = s.n_sticking, rows = lanes(n + stages * c)
    s.held_rows = rows
    memset(s.held_by, 0, n * rows * sizeof(double))
    for j in range(n):
        memcpy(s.held_by + j * rows, P + j * n, n * sizeof(double))
        for st in range(stages):
            for i in range(c):
                s.held_by[j * rows + n + st * c + i] = T[(j * stages + st) * nf + s.sticking[i]]


cdef inline int32_t rests(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """1 when the trial leaves the pressure of actuator k and its fill level as they are, to the bit."""
    return same_bits(s.end.p + k, s.now.p + k, 1) and (m.order == 2 or same_bits(s.em.p + k, s.now.p + k, 1)) and (
        m.act_simple or same_bits(s.fill1 + k, s.fill + k, 1))


cdef void move_pressures(const tl_model* m, tl_state* s, int32_t listed) noexcept nogil:
    """Pressures of the trial, and whose capacity may change with them; all of them in the step in which they were listed."""
    cdef int32_t i, k
    s.moving = 0
    if m.order == 4:
        advance_actuators(m, s, 0.0, 0.5, 1, s.em.p, s.fill1)
    advance_actuators(m, s, 0.0, 1.0, 0, s.end.p, s.fill1)
    for k in range(TL_NACT(m)):
        if not rests(m, s, k):
            s.still[k] = 0
        elif s.still[k] < STILL:
            s.still[k] += 1
        s.moving |= s.still[k] < STILL
    s.moving |= listed
    if listed:
        return
    for i in range(TL_NF(m)):
        s.due[i] = slips(m, s, i) or (m.fr[i].src == 2 and s.still[m.fr[i].src_idx] < STILL) or (
            not s.held and (m.fr[i].src == 1 or m.fr[i].src == 3))


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


cdef inline void quiet_rates(const tl_model* m, tl_state* s) noexcept nogil:
    """s.wa as far as the quiet step asks for it."""
    cdef int32_t c, k
    if TL_NBO(m) > 0:
        # bodies: the rates of their angular velocities, of rows of their own
        gather(m, s.now.a, s.wa)
        return
    gather_rates(m, s.now.a, s.wa)
    if m.order == 4:
        gather_ports(m, s.now.a, s.wa)
    for c in range(s.n_sliding):
        k = TL_FR_ROW(m, s.sliding[c])
        s.wa[k] = hot_dot(m, k, s.now.a)


cdef inline void quiet_rows(const tl_model* m, const tl_state* s, tl_eval* e, double* F) noexcept nogil:
    """assemble, for the elements that slide."""
    cdef int32_t i, c
    cdef double t
    for i in range(TL_NHOT(m)):
        F[i] = 0.0
    for i in range(TL_NPORT(m)):
        F[TL_PORT_ROW(m, i)] += e.port[i]
    for c in range(s.n_sliding):
        i = s.sliding[c]
        t = -e.cap_f[i] if s.mode[i] == 1 else e.cap_b[i]
        F[TL_FR_ROW(m, i)] += t
        e.tau[i] = t


cdef inline int32_t quiet_trial2(const tl_model* m, tl_state* s) noexcept nogil:
    """trial2. 0: it is none of a quiet step."""
    cdef int32_t i, c, n = TL_N(m)
    cdef double h = m.h
    cdef tl_eval* e = s.end
    cdef double* v = s.box_w
    predict(m, h, s.now.u, s.now.a, s.now.hs1, e.u)
    quiet_forces(m, s, e, e.u, 1.0, s.xi1)
    if s.stiff:
        return 0
    quiet_rows(m, s, e, s.F)
    springs_at_end(m, s, h, h * h * (0.5 - m.beta))
    scatter(m, s.F, s.g)
    padded_matvec(s.held_by, s.held_rows, n, s.g, v)
    for i in range(n):
        e.a[i] = v[i]
    correct(m, h, s.now.u, s.now.a, e.a, e.u)
    finish2(m, h, s.now.u, s.now.z, s.now.a, e.a, e.z, e.hs1)
    gather(m, e.u, e.w)
    for c in range(s.n_sticking):
        e.tau[s.sticking[c]] = v[n + c]
    return 1


cdef inline int32_t quiet_trial4(const tl_model* m, tl_state* s) noexcept nogil:
    """trial4. 0: it is none of a quiet step."""
    cdef int32_t c, n = TL_N(m)
    cdef double h = m.h
    cdef double* v = s.box_w
    start4(m, s, h)
    quiet_forces(m, s, &s.em, s.um, 0.5, s.xi)
    quiet_forces(m, s, s.end, s.end.u, 1.0, s.xi1)
    if s.stiff:
        return 0
    quiet_rows(m, s, &s.em, s.F)
    springs4(m, s, h, 0, s.F)
    scatter(m, s.F, s.g)
    quiet_rows(m, s, s.end, s.F)
    springs4(m, s, h, 1, s.F)
    scatter(m, s.F, s.g + n)
    padded_matvec(s.held_by, s.held_rows, 2 * n, s.g, v)
    correct4(m, s, h, v)
    finish4(m, s, h)
    for c in range(s.n_sticking):
        s.em.tau[s.sticking[c]] = v[2 * n + c]
        s.end.tau[s.sticking[c]] = v[2 * n + s.n_sticking + c]
    return 1


cdef inline int32_t stays_quiet(const tl_model* m, const tl_state* s, int32_t moved) noexcept nogil:
    """0 when something happens in the trial (what `disturbed` asks for), or its end is not finite. moved: whether a
    pressure has."""
    cdef int32_t i, k, c, bad = 0
    cdef double t, chk = 0.0
    cdef const tl_eval* e = s.end
    for i in range(TL_N(m)):
        chk += e.u[i]
    bad = chk - chk != 0.0
    if moved:
        for i in range(TL_NF(m)):
            bad |= (e.raw[i] > 0.0) != (s.pressed[i] != 0)
    for c in range(s.n_sticking):
        i = s.sticking[c]
        bad |= (e.tau[i] > e.lim_b[i]) | (e.tau[i] < -e.lim_f[i])
    for c in range(s.n_sliding):
        i = s.sliding[c]
        k = TL_FR_ROW(m, i)
        t = <double>s.mode[i]
        bad |= (t * e.w[k] < -TOL_R) | ((t * s.now.w[k] + 0.5 * m.h * t * s.wa[k] < 0.0) & (t * s.now.w[k] > TOL_R))
    return not bad


cdef inline int32_t quiet_step(const tl_model* m, tl_state* s) noexcept nogil:
    """The step from the present state with its inputs taken over, if nothing happens in it: TAKEN. Else nothing has been
    done: TRIED when its trial has been made, which is that of the general path then, else 0."""
    cdef int32_t i, moved, listed = s.quiet == 1
    if not s.hist[0] or s.ties or (s.held and s.quiet == FOLLOWING):
        return 0
    if listed:
        list_elements(m, s)
        s.quiet = LISTED
    elif not s.held:
        s.moving = 1
    if not s.held:
        s.quiet = FOLLOWING
    quiet_rates(m, s)
    for i in range(TL_NENG(m)):
        s.xi1[i] = idle_integrator(m, s, i, 1.0)
    s.stiff = 0
    moved = s.moving
    if moved:
        move_pressures(m, s, listed)
    if m.order == 4:
        if not quiet_trial4(m, s):
            return 0
        if not stays_quiet(m, s, moved) or accept4(m, s, 1.0):
            return TRIED
    else:
        if not quiet_trial2(m, s):
            return 0
        if not stays_quiet(m, s, moved) or accept2(m, s, 1.0):
            return TRIED
    take_whole(m, s, m.order == 4)
    s.t[0] += m.h
    s.step_no[0] += 1
    return TAKEN


cdef void take_over(const tl_model* m, tl_state* s) noexcept nogil:
    """The rest of the general trial after that of a quiet step."""
    cdef int32_t i
    gather(m, s.now.a, s.wa)
    for i in range(TL_NF(m)):
        if s.mode[i] == 2:
            s.end.tau[i] = 0.0
            if m.order == 4:
                s.em.tau[i] = 0.0
