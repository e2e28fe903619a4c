# Coordinates without inertia that relax (core/compile/relaxing.py): their speed is the angle of a row, u_q = row.z + off, so
# that springs and dampers balance along them. The trial finds them with all others. What is left to do are speeds and accelerations
# where a state is not the end of a trial. No impulse moves them: P0 is 0 there. While friction in series with the springs sticks, the
# shaft moves with the other side.
#
# Equations: (52), (53).

cdef inline int32_t relaxing(const tl_model* m, int32_t coord) noexcept nogil:
    """1 where the coordinate is one of them."""
    cdef int32_t i, found = 0
    for i in range(TL_NRX(m)):
        found |= m.rx[i].coord == coord
    return found


cdef inline int32_t goes_along(const tl_model* m, const tl_state* s, int32_t j) noexcept nogil:
    """1 where friction holds shaft j to its other side."""
    return m.rx[j].fr >= 0 and s.mode[m.rx[j].fr] == MODE_STUCK


cdef double sliding_rate(const tl_model* m, const tl_state* s, int32_t j, int32_t order, double x) noexcept nogil:
    """Torque of the friction element behind shaft j, which slides or is free, or its first or second derivative with time, at the
    fraction x of the step; 0 where there is none."""
    cdef int32_t i = m.rx[j].fr, k
    cdef double rate = 0.0
    cdef const tl_curve* f
    if i < 0 or order == 0:
        return 0.0 if i < 0 else s.now.tau[i]
    if m.fr[i].src == CONSTANT or not s.mode[i] & 1:
        return 0.0
    k = m.fr[i].src_idx
    if m.fr[i].src == ACTUATED:
        f = &s.press[k]
        rate = f.rest * exp(-f.rate * (x - f.begin)) * (-f.rate if order == 1 else f.rate * f.rate)
        rate = m.fr[i].ga * (rate + (f.q[1] + 2.0 * x * f.q[2] if order == 1 else 2.0 * f.q[2]))
    elif order == 1:
        rate = m.fr[i].gain * input_slope(m, s, k, x)
    elif not s.held:
        rate = m.fr[i].gain * 2.0 * s.in_c[2 * TL_NIN(m) + k]
    return -<double>s.mode[i] * m.fr[i].cap0 * rate * (m.inv_h if order == 1 else m.inv_h * m.inv_h)


cdef inline void relax_speeds(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Speeds of the present instant, at the fraction x of the step, from its angles; row speeds of the force elements likewise. Not
    behind a trial that does not resolve how they relax: what is left of its balance would come back times h/2 d(u_q)/dq."""
    cdef int32_t i, c, q
    for i in range(TL_NRX(m)):
        if goes_along(m, s, i):
            continue
        q = m.rx[i].coord
        s.now.u[q] = row_angle(m, s, m.rx[i].row) + m.rx[i].gain * sliding_rate(m, s, i, m.rx[i].elastic, x)
        c = m.rx[i].con
        if c >= 0:
            s.now.u[q] += m.rx[i].gain * contact_force(m, s, c, row_angle(m, s, m.con[c].row), 0.0)
    if TL_NRX(m) > 0:
        gather(m, s.now.u, s.now.w)


cdef inline void relax_accelerations(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Accelerations of the present instant, at the fraction x of the step: how the angles of these rows change. Where a step does
    not resolve that by far, the one with which a trial of two points predicts its own answer, u1 = -u0 and z1 = z0, so that nothing
    large cancels."""
    cdef int32_t i, c, q
    for i in range(TL_NRX(m)):
        if goes_along(m, s, i):
            continue
        q = m.rx[i].coord
        c = m.rx[i].con
        if not m.rx[i].resolved:
            s.now.a[q] = -4.0 * m.inv_h * s.now.u[q]
            continue
        s.now.a[q] = row_dot(m, m.rx[i].row, s.now.u) + m.rx[i].gain * sliding_rate(m, s, i, 1 + m.rx[i].elastic, x)
        if c >= 0 and s.regime[c] != 0:
            s.now.a[q] -= m.rx[i].gain * m.con[c].c * row_dot(m, m.con[c].row, s.now.u)


cdef inline int32_t relaxes_at_once(const tl_model* m) noexcept nogil:
    """1 where a step is far from resolving how they relax: three points would hold a deflection for many steps (their
    stability function tends to 1), and form small differences of large numbers."""
    return TL_NRX(m) > 0 and not m.rx[0].resolved


cdef inline double* keep_relaxing(const tl_model* m, tl_state* s) noexcept nogil:
    """Their speeds, aside from an impulse on all others; restore_relaxing gives the room back."""
    cdef int32_t i
    cdef double* kept = NULL
    if TL_NRX(m) > 0:
        kept = scratch(s, TL_NRX(m))
    for i in range(TL_NRX(m)):
        kept[i] = s.now.u[m.rx[i].coord]
    return kept


cdef inline void restore_relaxing(const tl_model* m, tl_state* s, const double* kept) noexcept nogil:
    cdef int32_t i
    for i in range(TL_NRX(m)):
        if not goes_along(m, s, i):
            s.now.u[m.rx[i].coord] = kept[i]
    if TL_NRX(m) > 0:
        release(s, mark(s) - TL_NRX(m))
