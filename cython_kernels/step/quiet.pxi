# The quiet step: order 2, no input that acts on forces has changed, no mode has changed and none does. It is the trial and
# its acceptance without what could not have changed, in the same order of operations: the same bits as the general path,
# which begins anew where this one finds that something happens.
#
# Needs: forces.pxi, trial.pxi, accept.pxi. Writes s.end and scratch only, until it is sure.
#
# What is left out: capacities of elements that do not slip while no pressure moves (both instants hold them already),
# pressures that have arrived at their commands, torque rows of elements that do not stick.

cdef extern from *:
    """
    /* 1: the same bits */
    static inline int tl_same(const double* a, const double* b, int count)
    {
        uint64_t x, y, diff = 0;
        int i;
        for (i = 0; i < count; i++) {
            memcpy(&x, a + i, 8);
            memcpy(&y, b + i, 8);
            diff |= x ^ y;
        }
        return diff == 0;
    }
    """
    int same_bits "tl_same"(const double* a, const double* b, int count) noexcept nogil


cdef inline int32_t may_be_quiet(const tl_model* m) noexcept nogil:
    """1 for models whose steps can be quiet at all. Not those with temperatures, which forces follow within the step."""
    return m.order == 2 and not staged(m) and not m.stiff_cut and TL_NTH(m) + TL_NST(m) == 0 and TL_N(m) <= TL_FORMED


cdef void list_elements(const tl_model* m, tl_state* s) noexcept nogil:
    """Who slides, whose capacity follows its slip; the matrix of accelerations and stuck torques, one below the other."""
    cdef int32_t i, j, c, n = TL_N(m), nf = TL_NF(m), rows
    s.n_sliding = 0
    s.n_slipping = 0
    for i in range(nf):
        if s.mode[i] & 1:
            s.sliding[s.n_sliding] = i
            s.n_sliding += 1
        if s.mode[i] != 0 and s.pressed[i] and not m.fr[i].fixed and m.fr[i].mu >= 0:
            s.slipping[s.n_slipping] = i
            s.n_slipping += 1
    c = 0
    for i in range(nf):
        if s.mode[i] == 0:
            s.sticking[c] = i
            c += 1
    s.n_sticking = c
    if s.held_pat != s.pat or not m.direct_cache:
        s.held_pat = s.pat
        rows = n + c
        for j in range(n):
            memcpy(s.held_by + j * rows, s.pat.P + j * n, n * sizeof(double))
            for i in range(c):
                s.held_by[j * rows + n + i] = s.pat.T[j * nf + s.sticking[i]]
    s.settled = 0


cdef int32_t only_commands(const tl_model* m, tl_state* s) noexcept nogil:
    """1 when the inputs that have changed are finite commands of actuators; takes them over, as start_of_step does."""
    cdef int32_t i
    cdef double chk = 0.0
    for i in range(TL_NIN(m)):
        if s.inp[i] != s.in_last[i]:
            chk += s.inp[i] - s.inp[i]
            if m.in_direct[i]:
                return 0
    if chk != 0.0:
        return 0
    for i in range(TL_NIN(m)):
        if s.inp[i] != s.in_last[i]:
            s.in_last[i] = s.inp[i]
            if m.in_act[i] >= 0:
                s.cmd[m.in_act[i]] = clipped_command(m, m.in_act[i], s.inp[i])
    s.settled = 0
    return 1


cdef int32_t quiet_step(const tl_model* m, tl_state* s) noexcept nogil:
    """The step from the present state, if nothing happens in it: 1. Else 0, and nothing has been done."""
    cdef int32_t i, k, c, n = TL_N(m), moved
    cdef double h = m.h, b0 = h * h * (0.5 - m.beta), t, chk = 0.0
    cdef tl_eval* e = s.end
    cdef double* v = s.v1
    if s.fresh[0] or not s.hist[0] or s.ties:
        return 0
    if not same_bits(s.inp, s.in_last, TL_NIN(m)) and not only_commands(m, s):
        return 0
    if s.quiet == 1:
        list_elements(m, s)
        s.quiet = 2
    gather(m, s.now.a, s.wa)
    for i in range(TL_NENG(m)):
        s.xi1[i] = idle_integrator(m, s, i, 1.0)
    predict(m, h, s.now.u, s.now.a, s.now.hs1, e.u)
    gather(m, e.u, e.w)
    s.counters[TL_C_EVALS] += 1
    s.stiff = 0
    eval_ports(m, s, e, 1.0, s.xi1)
    if s.settled < 2:
        advance_actuators(m, s, 0.0, 1.0, 0, e.p, s.fill1)
        if same_bits(e.p, s.now.p, TL_NACT(m)) and (m.act_simple or same_bits(s.fill1, s.fill, TL_NACT(m))):
            s.settled += 1
        else:
            s.settled = 0
        each_capacity(m, s, e.w, e.p, 1.0, e, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))
        moved = 0
        for i in range(TL_NF(m)):
            moved |= (e.raw[i] > 0.0) != (s.pressed[i] != 0)
        if moved:
            s.settled = 0
            return 0
    else:
        for c in range(s.n_slipping):
            i = s.slipping[c]
            capacity(m, s, e.w[TL_FR_ROW(m, i)], e.p, 1.0, e, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m), i,
                     TL_FR_ROW(m, i), m.fr[i].src, m.fr[i].src_idx, m.fr[i].both)
    if s.stiff:
        return 0
    for i in range(TL_NHOT(m)):
        s.F[i] = 0.0
    for i in range(TL_NPORT(m)):
        s.F[TL_PORT_ROW(m, i)] += e.port[i]
    for c in range(s.n_sliding):
        i = s.sliding[c]
        t = -e.cap_f[i] if s.mode[i] == 1 else e.cap_b[i]
        s.F[TL_FR_ROW(m, i)] += t
        e.tau[i] = t
    springs_at_end(m, s, h, b0)
    scatter(m, s.F, s.g)
    matvec(s.held_by, n + s.n_sticking, n, s.g, v)
    for i in range(n):
        e.a[i] = v[i]
    correct(m, h, s.now.u, s.now.a, e.a, e.u)
    for i in range(n):
        chk += e.u[i]
    if chk - chk != 0.0:
        return 0
    finish2(m, h, s.now.u, s.now.z, s.now.a, e.a, e.z, e.hs1)
    gather(m, e.u, e.w)
    moved = 0
    for c in range(s.n_sticking):
        i = s.sticking[c]
        t = v[n + c]
        e.tau[i] = t
        moved |= (t > e.lim_b[i]) | (t < -e.lim_f[i])
    for c in range(s.n_sliding):
        i = s.sliding[c]
        k = TL_FR_ROW(m, i)
        t = <double>s.mode[i]
        moved |= (t * e.w[k] < -TOL_R) | ((t * s.now.w[k] + 0.5 * h * t * s.wa[k] < 0.0) & (t * s.now.w[k] > TOL_R))
    if moved:
        s.settled = 0
        return 0
    if accept(m, s, 0.0, 1.0):
        s.settled = 0
        return 0
    s.t[0] += h
    s.step_no[0] += 1
    return 1
