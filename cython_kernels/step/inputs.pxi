# Inputs of a step: what has changed since the last one, and what follows for the present instant.
#
# Commands of actuators are taken over and nothing else happens. An input that only torques and forces given from outside
# follow shifts the accelerations and the torques of the elements at rest by what the lock pattern says, F its row:
#
#   a <- a + P0 F dF      tau <- tau + T0 F dF
#
# Anything else is a jump: forces, modes and accelerations of the instant are found anew (meet_instant, instant.pxi).
#
# Equations: (28), (30).

#: of the supply pressure: a command that jumps by less changes the slope of a force too little for predicted speeds to tell: the
#: capacity is off by some 1e-7 of it in one step
cdef double SLIGHT_COMMAND = 1e-3
#: of the acceleration: a jump of it across which a trial is not predicted
cdef double RATE_JUMP = 1e-6


cdef enum:
    IN_JUMP = 1            # of in_direct (derive.py)
    IN_TORQUE = 2


cdef inline int32_t shifts(const tl_model* m) noexcept nogil:
    """1 where a torque that jumps shifts the instant: its response is formed, and nothing but friction follows it."""
    return not staged(m) and TL_NTH(m) == 0 and TL_N(m) <= TL_FORMED


cdef inline void command(const tl_model* m, tl_state* s, int32_t i, double jump) noexcept nogil:
    """Input i, which has jumped by so much, is a command of actuators, or none."""
    cdef int32_t k
    if m.in_act[i] < 0:
        return
    for k in range(TL_NACT(m)):
        if m.act[k].input == i:
            s.lists.due_holds &= s.lists.still[k] < STILL
            s.lists.still[k] = 0
    s.lists.moving = 1
    if fabs(jump) > SLIGHT_COMMAND * m.act[m.in_act[i]].p_max:
        history_jumps(s)


cdef inline int32_t held_inputs(const tl_model* m, tl_state* s, double* chk) noexcept nogil:
    """Takes over inputs that are held over the step; what they act on. chk: not 0 when one is not finite, which is not taken over,
    so that the next step sees it, too."""
    cdef int32_t i, acts = 0
    if equal_bits(s.inp, s.in_last, TL_NIN(m)):
        return 0
    for i in range(TL_NIN(m)):
        chk[0] += s.inp[i] - s.inp[i]
        if s.inp[i] != s.in_last[i] and chk[0] == 0.0:
            command(m, s, i, s.inp[i] - s.in_last[i])
            s.in_last[i] = s.inp[i]
            acts |= m.in_direct[i]
    return acts


cdef int32_t curved_inputs(const tl_model* m, tl_state* s, double* chk) noexcept nogil:
    """The same for inputs with three values in the step; their polynomials."""
    cdef int32_t i, nin = TL_NIN(m), acts = 0
    cdef double i0, im, i1
    for i in range(nin):
        i0 = s.inp[i]
        im = s.inp[nin + i]
        i1 = s.inp[2 * nin + i]
        chk[0] += (i0 - i0) + (im - im) + (i1 - i1)
        s.in_c[i] = i0
        s.in_c[nin + i] = 4.0 * im - 3.0 * i0 - i1
        s.in_c[2 * nin + i] = 2.0 * i0 - 4.0 * im + 2.0 * i1
        if i0 != s.in_last[i]:
            acts |= m.in_direct[i]
            command(m, s, i, i0 - s.in_last[i])
        s.in_last[i] = i1
        s.lists.moving |= m.in_act[i] >= 0
    return acts


cdef inline void add_column(tl_cvec column, int32_t rows, double f, tl_vec y) noexcept nogil:
    """y += f times a column of so many rows."""
    cdef int32_t i
    for i in range(rows):
        y[i] += f * column[i]


cdef int32_t shift_torques(const tl_model* m, tl_state* s) noexcept nogil:
    """The torques that inputs give, and what they change of the instant; 1 when an element at rest is beyond its limit."""
    cdef int32_t i, q, k, row, beyond = 0
    cdef double new, f
    cdef const double* column
    for i in range(TL_NTQ(m)):
        k = m.tq[i].input
        if k < 0:
            continue
        new = m.tq[i].constant
        new += m.tq[i].gain * input_at(m, s, k, 0.0)
        f = new - s.now.port[i]
        if f == 0.0:
            continue
        s.now.port[i] = new
        row = TL_PORT_ROW(m, i)
        for q in range(m.row_ptr[row], m.row_ptr[row + 1]):
            column = s.pat.T0 + m.row_idx[q] * lanes(TL_N(m) + TL_NF(m))
            add_column(column, TL_N(m), m.row_val[q] * f, s.now.a)
            add_column(column + TL_N(m), TL_NF(m), m.row_val[q] * f, s.now.tau)
    for i in range(TL_NF(m)):
        if s.mode[i] == MODE_STUCK:
            beyond |= (s.now.tau[i] > s.now.lim_b[i]) | (s.now.tau[i] < -s.now.lim_f[i])
    return beyond


cdef void renew_instant(const tl_model* m, tl_state* s) noexcept nogil:
    """At the start of a step that goes on: accelerations with the rates the ratios have from here on."""
    cdef int32_t i, n = TL_N(m)
    cdef double off = 0.0, size = 0.0
    cdef int64_t here = mark(s)
    cdef double* a = scratch(s, n)
    memcpy(a, s.now.a, n * sizeof(double))
    list_modes(m, s)
    settle(m, s)
    for i in range(n):
        off = fabs(s.now.a[i] - a[i]) if fabs(s.now.a[i] - a[i]) > off else off
        size = fabs(a[i]) if fabs(a[i]) > size else size
    release(s, here)
    if off > RATE_JUMP * size:
        forget_history(m, s)


cdef int32_t ready_bilateral(const tl_model* m, tl_state* s) noexcept nogil:
    """At the start of a step: ratios of now, all bilateral elements held, flanges at their references. 1 after a jump."""
    cdef int32_t i, new = 0
    if moving(m):
        new = ratios_now(m, s, 0.0)
        take_ratios(m, s)
    elif TL_NVG(m) > 0 and set_ratios(m, s):
        set_ratio_rows(m, s)
        new = 1
    for i in range(TL_NF(m)):
        if m.fr[i].src == BILATERAL and s.mode[i] != MODE_STUCK:
            s.mode[i] = MODE_STUCK
            s.pressed[i] = 1
            new = 1
    if new:
        s.pat = pattern_of(m, s)
    if not moving(m):
        return hold_driven(m, s, 0.0) | new
    if s.fresh[0]:
        meet_ratios(m, s, 0.0)
    new |= hold_driven(m, s, 0.0)
    if new:
        forget_history(m, s)
    elif not s.held:
        renew_instant(m, s)
    return new


cdef inline int start_of_step(const tl_model* m, tl_state* s, double last) noexcept nogil:
    """Inputs of the step, up to its fraction `last`; after a jump (or a fresh start) forces, and modes where they are touched.
    1 when an input is not a finite number (an element that is not pressed would not let it be seen in the state)."""
    cdef int32_t acts = 0
    cdef double chk = 0.0
    if not s.held:
        acts = curved_inputs(m, s, &chk)
    else:
        acts = held_inputs(m, s, &chk)
    if TL_NPS(m) > 0:
        poses_begin(m, s)
    if chk != 0.0:                            # inf - inf and NaN are NaN
        return 1
    if TL_NACT(m) > 0 and (s.lists.moving or s.quiet < LISTED or s.fresh[0]):
        if begin_pressures(m, s, 0.0, last):
            acts |= IN_JUMP
    if TL_ND(m) + TL_NVG(m) > 0 and ready_bilateral(m, s):
        acts |= IN_JUMP
    if not (acts or s.fresh[0]):
        return 0
    if acts == IN_TORQUE and shifts(m) and not s.fresh[0] and not shift_torques(m, s):
        return 0
    history_jumps(s)
    meet_instant(m, s, 0.0, s.fresh[0])
    if TL_NTH(m) > 0:
        heat_rates(m, s, 0.0, 0.0)           # the heat has jumped: no curvature
    return 0
