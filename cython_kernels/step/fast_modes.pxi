# Modes that decay within a step (locks/fast_modes.pxi): what the trial has of them too much.
#
# The method multiplies a mode u = v e^(-mu t) by R(z), z = -mu h, instead of e^z. It keeps that motion, and with it its balance of
# energy; the excess over the true one is followed here and taken off wherever a torque is compared with a limit, and off everything
# that is read (kernel/readout.pxi). In the derivative of the mode its part e at the start of the trial shows as
#
#   -mu e (1, R)         two points        R = (1 + z/2)/(1 - z/2)
#   -mu e (1, R_m, R)    three             R = (1 + z/2 + z^2/12)/(1 - z/2 + z^2/12)        R_m = (1 + R)/2 + z (1 - R)/8
#
# Equations: (50), (51).

#: relative: an excess with more kinetic energy in the modes of another lock pattern than it had is none of them, and is forgotten:
#: these modes are not orthogonal, and an excess that goes to and fro between two patterns would grow
cdef double GROWS = 1e-6

cdef inline double complex complex_exp(double complex z) noexcept nogil:
    cdef double complex y = cos(z.imag)
    y.imag = sin(z.imag)
    return exp(z.real) * y


cdef void follow_excess(const tl_model* m, tl_state* s) noexcept nogil:
    """Excess at the end of the trial into s.excess_end; takes it off the torques of the elements at rest, in the middle, too."""
    cdef int32_t k
    cdef const double complex* at
    cdef double complex z, R, Rm, total, true_part, den
    clear_excess(m, s)
    for k in range(s.pat.n_fast):
        at = fast_mode(m, s, k)
        z = -s.h * at[0]
        total = mode_part(m, at, s.now.u, s.now.a)
        if s.four:
            den = 1.0 - 0.5 * z + z * z * (1.0 / 12.0)
            R = (1.0 + 0.5 * z + z * z * (1.0 / 12.0)) / den
            Rm = 0.5 * (1.0 + R) - z * z / (8.0 * den)
            total = total - 2.0 * mode_part(m, at, s.um, s.am) + mode_part(m, at, s.end.u, s.end.a)
            total = total * (4.0 * den / (z * z))
        else:
            den = 1.0 - 0.5 * z
            R = (1.0 + 0.5 * z) / den
            total = (total - mode_part(m, at, s.end.u, s.end.a)) * (-den / z)
        total = -total / at[0]
        true_part = total - mode_part(m, at, s.excess_z, s.excess_u)
        if s.four:
            add_excess_torques(m, at, Rm * total - complex_exp(0.5 * z) * true_part, s.excess.tau_m)
        add_excess(m, s, at, R * total - complex_exp(z) * true_part)
    take_off_held(m, s, s.excess.tau, s.end.tau)
    if s.four:
        take_off_held(m, s, s.excess.tau_m, s.em.tau)


cdef inline void take_off_held(const tl_model* m, const tl_state* s, const double* excess, double* tau) noexcept nogil:
    """Takes the excess off the torques of the elements at rest. What is always held has no limit, and its torque does work: it
    keeps that of the method."""
    cdef int32_t i
    for i in range(TL_NF(m)):
        if s.mode[i] == MODE_STUCK and m.fr[i].src != BILATERAL:
            tau[i] -= excess[i]


cdef inline void settle_excess(const tl_model* m, tl_state* s) noexcept nogil:
    """The same for the torques of the present instant, which have been found from its motion. Where the lock pattern or the regime
    of a contact has changed, the excess goes on as far as it lies in the modes that hold now."""
    excess_now(m, s)
    if kinetic_size(m, s.excess.u) > (1.0 + GROWS) * kinetic_size(m, s.excess_u):
        forget_excess(m, s)
        return
    keep_excess(m, s)
    take_off_held(m, s, s.excess.tau, s.now.tau)


cdef inline double kinetic_size(const tl_model* m, const double* u) noexcept nogil:
    """u^T M u."""
    cdef int32_t i
    cdef double size = 0.0
    for i in range(TL_N(m)):
        size += u[i] * dot(m.M + i * TL_N(m), u, m.S_range[2 * i], m.S_range[2 * i + 1])
    return size


cdef inline void keep_excess(const tl_model* m, tl_state* s) noexcept nogil:
    """That of the end of the trial is that of the present instant from here on."""
    memcpy(s.excess_z, s.excess.z, TL_N(m) * sizeof(double))
    memcpy(s.excess_u, s.excess.u, TL_N(m) * sizeof(double))


cdef inline void forget_excess(const tl_model* m, tl_state* s) noexcept nogil:
    """The motion has been set anew, or damped: it has none."""
    memset(s.excess_z, 0, TL_N(m) * sizeof(double))
    memset(s.excess_u, 0, TL_N(m) * sizeof(double))
