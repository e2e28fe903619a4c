# The present instant behind a jump: forces, regimes, ends, modes, accelerations and torques are found anew.
#
# Equations: none: section 6, jumps of inputs.

cdef void now(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Forces of the present instant into the state (after a jump of an input, or a fresh start)."""
    cdef int32_t i
    gather(m, s.now.u, s.now.w)
    gather(m, s.now.a, s.wa)
    choose_governors(m, s)
    eval_forces(m, s, s.now, s.now.u, theta, s.xi)
    for i in range(TL_NJO(m)):
        joint_jump(m, s, i, theta)


cdef void meet_instant(const tl_model* m, tl_state* s, double theta, int64_t fresh) noexcept nogil:
    """Forces, modes, accelerations of the present instant after a jump. fresh: the state itself is new; else only the
    forces have changed, and modes are found anew where an element is touched."""
    cdef int32_t i, touched = 0, nf = TL_NF(m)
    s.quiet = 0
    if fresh:
        relax_speeds(m, s, theta)
    if fresh and m.unresolved:
        forget_excess(m, s)
    if TL_NCON(m) > 0 and fresh:
        find_regimes(m, s)
    if TL_NST(m) > 0 and fresh:
        find_ends(m, s)
    now(m, s, theta)
    for i in range(nf):
        if (s.now.raw[i] > 0.0) != (s.pressed[i] != 0):
            s.pressed[i] = 1 if s.now.raw[i] > 0.0 else 0
            touched = 1
    if TL_NST(m) > 0:
        touched |= meet_dogs(m, s)
    if touched:
        each_capacity(m, s, s.now.w, s.now.p, theta, s.now, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))
    for i in range(TL_NRX(m)):
        touched |= m.rx[i].fr >= 0
    if fresh:
        touched = 1
    if not touched:
        settle(m, s)
        for i in range(nf):
            if s.mode[i] == MODE_STUCK and (s.now.tau[i] > s.now.lim_b[i] or s.now.tau[i] < -s.now.lim_f[i]):
                touched = 1
    if touched:
        for i in range(nf + 1):
            if not stop_blocked(m, s):
                break
        decide(m, s, 0.0, 0)
    s.fresh[0] = 0
