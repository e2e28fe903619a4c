# Modes that decay within a step (locks/fast_modes.pxi): the trial has them wrong, and what is read with them.
#
# Collocation at Lobatto's points brings a decay by e^z, z = -mu h, to R(z) instead, whose size tends to 1: torque and acceleration
# of a small inertia behind a strong damper then stay for many steps what they were at a jump. The rest of the motion is right, and
# a part e of such a mode shows in the trial as what no smooth motion does: the derivative of the mode has the parts
#
#   -mu e (1, R)         two points, of which a smooth motion has the same at both        R = (1 + z/2)/(1 - z/2)
#   -mu e (1, R_m, R)    three, of which a smooth motion has a straight line              R = (1 + z/2 + z^2/12)/(1 - z/2 + z^2/12)
#
# with R_m = (1 + R)/2 + z (1 - R)/8. So e is known, and the end of the trial is moved along the mode by (e^z - R) e: exact for a
# jump of forces that are constant or (three points) linear in the step, whatever z; of smooth forces wrong by the order of the step
# in the mode alone, which is M-orthogonal to the rest. The trial's own balance of energy is that of the end before it is moved; what
# the move takes out is heat of the dampers.
#
# Needs: gather, laws.pxd. Models with springs or dampers that the step does not resolve (stiff_cut) only.

cdef inline double complex complex_exp(double complex z) noexcept nogil:
    cdef double complex y = cos(z.imag)
    y.imag = sin(z.imag)
    return exp(z.real) * y


cdef inline double complex derivative_part(const tl_model* m, const double complex* at, const double* u,
                                           const double* a) noexcept nogil:
    """Part of the derivative of a mode that the motion (u, u' = a) has."""
    cdef int32_t j, n = TL_N(m)
    cdef double complex acc = 0.0
    for j in range(n):
        acc = acc + at[1 + n + j] * u[j] + at[1 + 2 * n + j] * a[j]
    return acc


cdef void add_move(const tl_model* m, tl_state* s, const double complex* at, const double complex* by) noexcept nogil:
    """Adds the move by[0] along one mode, by[1] of its middle, by[2] and by[3] of the polynomial, to what all modes have."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef double complex f
    cdef double size = by[0].real * by[0].real + by[0].imag * by[0].imag
    for j in range(n):
        f = at[1 + j] * by[0]
        s.fast_u[j] += f.real
        s.fast_z[j] -= (f / at[0]).real
        s.fast_a[j] -= (f * at[0]).real
        s.fast_s1[j] += (at[1 + j] * by[2]).real
        s.fast_s2[j] += (at[1 + j] * by[3]).real
    for i in range(nf):
        s.fast_tau[i] += (at[1 + 3 * n + i] * by[0]).real
        s.fast_tau_m[i] += (at[1 + 3 * n + i] * by[1]).real
    for i in range(TL_NLIN(m) + TL_NCON(m)):
        s.fast_heat[i] += at[1 + 3 * n + nf + i].real * size


cdef void settle_fast(const tl_model* m, tl_state* s) noexcept nogil:
    """Finds how far the end of the trial is moved along its modes, and moves it."""
    cdef int32_t k
    cdef const double complex* at
    cdef double complex z, R, Rm, part, den
    cdef double complex[4] by
    # the work of contacts and stops along a move is not known: their drivelines go without
    if TL_NCON(m) > 0 or TL_NST(m) > 0:
        return
    by[1] = by[3] = 0.0
    memset(s.fast_u, 0, TL_FAST_MOVE(TL_N(m), TL_NF(m), TL_NLIN(m) + TL_NCON(m)) * sizeof(double))
    for k in range(s.pat.n_fast):
        at = <const double complex*>(s.pat.fast + k * TL_FAST_SIZE(TL_N(m), TL_NF(m), TL_NLIN(m) + TL_NCON(m)))
        z = -s.h * at[0]
        part = derivative_part(m, at, s.now.u, s.now.a)
        if s.four:
            den = 1.0 - 0.5 * z + z * z * (1.0 / 12.0)
            R = (1.0 + 0.5 * z + z * z * (1.0 / 12.0)) / den
            Rm = 0.5 * (1.0 + R) - z * z / (8.0 * den)
            part = part - 2.0 * derivative_part(m, at, s.um, s.am) + derivative_part(m, at, s.end.u, s.end.a)
            part = part * (4.0 * den / (z * z))
            by[1] = -part * (complex_exp(0.5 * z) - Rm) / at[0]
            by[2] = part * (-3.0 + 4.0 * Rm - R)
            by[3] = part * (2.0 - 4.0 * Rm + 2.0 * R)
        else:
            den = 1.0 - 0.5 * z
            R = (1.0 + 0.5 * z) / den
            part = (part - derivative_part(m, at, s.end.u, s.end.a)) * (-den / z)
            by[2] = part * (R - 1.0)
        by[0] = -part * (complex_exp(z) - R) / at[0]
        add_move(m, s, at, by)
    move_fast(m, s, 1.0)


cdef void move_fast(const tl_model* m, tl_state* s, double sign) noexcept nogil:
    """Moves the end of the trial, and the torques held in its middle, as settle_fast has found, or (-1) back."""
    cdef int32_t i
    for i in range(TL_N(m)):
        s.end.u[i] += sign * s.fast_u[i]
        s.end.z[i] += sign * s.fast_z[i]
        s.end.a[i] += sign * s.fast_a[i]
    for i in range(TL_NF(m)):
        if s.mode[i] == MODE_STUCK:
            s.end.tau[i] += sign * s.fast_tau[i]
            s.em.tau[i] += sign * s.fast_tau_m[i]
    gather(m, s.end.u, s.end.w)


cdef double heat_of_move(const tl_model* m, const tl_state* s) noexcept nogil:
    """Energy that the move takes out of the end of the trial, which has not been moved, or has been moved back."""
    cdef int32_t i, k
    cdef double c, d, more, e = 0.0
    for i in range(TL_N(m)):
        e -= s.fast_u[i] * (dot(m.M + i * TL_N(m), s.end.u, m.S_range[2 * i], m.S_range[2 * i + 1])
                            + 0.5 * dot(m.M + i * TL_N(m), s.fast_u, m.S_range[2 * i], m.S_range[2 * i + 1]))
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        more = row_dot(m, k, s.fast_z)
        e -= m.lin[i].c * more * (row_dot(m, k, s.end.z) + m.row_off[k] - m.lin[i].phi0 + 0.5 * more)
    for i in range(TL_NCON(m)):
        k = m.con[i].row
        contact_stiffness(m, s, i, &c, &d)
        if c != 0.0:
            more = row_dot(m, k, s.fast_z)
            e -= c * more * (contact_deflection(m, s, i, row_dot(m, k, s.end.z) + m.row_off[k]) + 0.5 * more)
    return e


cdef void take_move(const tl_model* m, tl_state* s) noexcept nogil:
    """Behind the balance of a trial that is taken whole: moves its end again, gives the dampers the heat of the move by their part
    in the modes, and leaves the polynomial without what it has too much of the modes, which is no history."""
    cdef int32_t i
    cdef double total = 0.0, heat = heat_of_move(m, s)
    move_fast(m, s, 1.0)
    for i in range(TL_NLIN(m) + TL_NCON(m)):
        total += s.fast_heat[i]
    if total > 0.0:
        for i in range(TL_NLIN(m)):
            s.e_lin[i] += heat * (s.fast_heat[i] / total)
        for i in range(TL_NCON(m)):
            s.e_con[i] += heat * (s.fast_heat[TL_NLIN(m) + i] / total)
    for i in range(TL_N(m)):
        s.end.hs1[i] -= s.fast_s1[i]
        if s.four:
            s.s2[i] -= s.fast_s2[i]
