# Contacts with an exponent, c x^n (Hertz: 3/2): no part in the matrices of the lock patterns, their forces are found as those of other
# laws along rows (rows.pxi). Three points take the law itself; a trial whose work then leaves energy open against the potential V is
# refused (gap_balance). Two points take the discrete gradient, and the acceleration behind such a step is found again from the law
# (restore_law). The impulse step takes dV/dx at its end (press_gaps).
#
# Equations: (55).

cdef enum:
    PRESS_ROUNDS = 60      # of the impulse step
    PRESS_FREELY = 12
    DEPTH_ROUNDS = 100     # of one side alone


#: of the deflection: closer points have their difference quotient from inside (Gauss, two points)
cdef double GAP_NEAR = 1e-3
#: of the depth: so near to the one its law is linear about
cdef double PRESS_TOL = 1e-9
#: of the depth of one side alone: it is found
cdef double DEPTH_TOL = 1e-14
#: of the response of a row: stiffness of a side that is not touched in the impulse step
cdef double GAP_SOFT = 1e-12


cdef inline double gap_mean(const tl_model* m, int32_t i, double x0, double x1, double* slope) noexcept nogil:
    """(V(x1) - V(x0))/(x1 - x0) of contact i; slope: its derivative with respect to x1."""
    cdef double dx = x1 - x0, g = 0.5 / sqrt(3.0), a, b, mean
    if fabs(dx) <= GAP_NEAR * larger(fabs(x0), fabs(x1)):
        a = 0.5 * (x0 + x1) - g * dx
        b = 0.5 * (x0 + x1) + g * dx
        slope[0] = 0.5 * ((0.5 - g) * deflection_slope(m, i, a) + (0.5 + g) * deflection_slope(m, i, b))
        return 0.5 * (deflection_force(m, i, a) + deflection_force(m, i, b))
    mean = (deflection_energy(m, i, x1) - deflection_energy(m, i, x0)) / dx
    slope[0] = (deflection_force(m, i, x1) - mean) / dx
    return mean


cdef inline double gap_law(const tl_model* m, const tl_state* s, int32_t i, int32_t stages, double phi, double w, double* on_x,
                           double* on_w) noexcept nogil:
    """Force along its row of contact i at a stage with the angle phi and the speed w, and its derivatives."""
    cdef double both = 1.0 if s.regime[i] == CONTACT_BOTH or s.regime[i] == -CONTACT_BOTH else 2.0, x0, f
    cdef double x = contact_deflection(m, s, i, phi)
    on_w[0] = -m.con[i].d if both == 1.0 else 0.0
    if stages == 1:
        x0 = contact_deflection(m, s, i, row_angle(m, s, m.con[i].row))
        f = 2.0 * gap_mean(m, i, x0, x, on_x) - deflection_force(m, i, x0)
        on_x[0] *= -2.0 * both
    else:
        f = deflection_force(m, i, x)
        on_x[0] = -both * deflection_slope(m, i, x)
    return on_w[0] * w - both * f


cdef inline int32_t pressing(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 where contact i is a curved one that pushes."""
    cdef int64_t r = s.regime[i] if s.regime[i] >= 0 else -s.regime[i]
    return curved(m, i) and (r == CONTACT_BOTH or r == CONTACT_LIMITED)


cdef struct tl_balance:
    double turned          # sum of the absolute energies, J
    double made            # energy that contacts with an exponent give beyond what their potential loses


cdef void turned_along(const tl_model* m, const tl_state* s, int32_t k, double c, double d,
                       tl_balance* b) noexcept nogil:
    """Adds what a spring c with a damper d along row k turns over in a trial of three points."""
    cdef double h = s.h, w0 = row_dot(m, k, s.now.u), wm = row_dot(m, k, s.um), w1 = row_dot(m, k, s.end.u)
    cdef double q0 = row_dot(m, k, s.now.z) + m.row_off[k], dq = h * (w0 + 4.0 * wm + w1) / 6.0
    b.turned += fabs(c * dq * q0) + c * dq * dq + d * h * (w0 * w0 + 4.0 * wm * wm + w1 * w1) / 6.0


cdef void gap_balance(const tl_model* m, const tl_state* s, int32_t i, tl_balance* b) noexcept nogil:
    """Adds contact i over a trial of three points: what its elastic energy gives beyond what it loses, of all that is
    turned over, the energy of motion along its row included."""
    cdef int32_t k = m.con[i].row
    cdef double h = s.h, w0 = row_dot(m, k, s.now.u), wm = row_dot(m, k, s.um), w1 = row_dot(m, k, s.end.u)
    cdef double x0, xm, x1, stored, both
    if not pressing(m, s, i):
        return
    both = 1.0 if s.regime[i] == CONTACT_BOTH or s.regime[i] == -CONTACT_BOTH else 2.0
    if both == 1.0:
        turned_along(m, s, k, 0.0, m.con[i].d, b)
    x0 = contact_deflection(m, s, i, row_angle(m, s, k))
    xm = x0 + h * to_middle(w0, wm, w1)
    x1 = x0 + h * to_end(w0, wm, w1)
    stored = deflection_energy(m, i, x1) - deflection_energy(m, i, x0)
    b.made += both * (stored - h * work4(w0, wm, w1, deflection_force(m, i, x0), deflection_force(m, i, xm), deflection_force(m, i, x1)))
    b.turned += both * fabs(stored) + deflection_energy(m, i, x0)
    b.turned += 0.5 * w0 * w0 * along_inertia(m, k)


# In the impulse step a side is a row with the law N = k x1 - q, linear about a depth that is found by rounds.
