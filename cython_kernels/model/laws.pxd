"""What the step, the lock patterns and the outputs share: rows, kinetic energy, laws of contacts and stops. Real-time: yes."""

from libc.math cimport fabs, pow, rint
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.model.model cimport CONTACT_BOTH, CONTACT_LIMITED, CONTACT_OPEN, ENGAGED, tl_eval, tl_model, tl_state


cdef inline double row_dot(const tl_model* m, int32_t k, const double* x) noexcept nogil:
    """Row k times x (a row may be empty: an output that is 0 by the constraints)."""
    cdef int32_t q = m.row_ptr[k], end = m.row_ptr[k + 1]
    cdef double acc = 0.0
    while q < end:
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
        q += 1
    return acc


cdef inline double kinetic_energy(const tl_model* m, const tl_state* s) noexcept nogil:
    """1/2 u^T M u."""
    cdef int32_t i, j
    cdef double e = 0.0, p
    for i in range(m.n):
        p = 0.0
        for j in range(m.S_range[2 * i], m.S_range[2 * i + 1]):
            p += m.M[i * m.n + j] * s.now.u[j]
        e += 0.5 * s.now.u[i] * p
    return e


cdef inline double row_angle(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """Angle of row k now."""
    return row_dot(m, k, s.now.z) + s.row_off[k]


cdef inline double turned_angle(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """Angle of row k of a joint shaft now, but for whole turns."""
    return row_dot(m, k, s.now.z) + m.row_off[k]


cdef enum:
    RIGID_EVERY = 64       # steps between two looks at the angles (a power of two)

cdef extern from *:
    """
    /* rad or m: so far a coordinate goes before it is taken back. A twist formed from such angles is off by 2e-13 of 1 rad */
    #define TL_FAR 1000.0
    """
    const double FAR "TL_FAR"


cdef inline void rigid_offsets(const tl_model* m, tl_state* s) noexcept nogil:
    """s.row_off from s.turned."""
    cdef int32_t j, k
    for k in range(m.nrow):
        s.row_off[k] = m.row_off[k]
        for j in range(m.nrm):
            s.row_off[k] += m.rm_row[j * m.nrow + k] * s.turned[j]


cdef inline void turn_back(const tl_model* m, tl_state* s) noexcept nogil:
    """Coordinates that have gone far are taken back along rigid motions, which no spring sees: twists keep their digits
    however long a shaft turns. Angles that are shown, or given, have the rest in s.row_off."""
    cdef int32_t i, j, moved = 0
    cdef double far
    for j in range(m.nrm):
        far = s.now.z[m.rm_at[j]]
        if fabs(far) <= FAR:
            continue
        if m.rm_unit[j] > 0.0:
            far = m.rm_unit[j] * rint(far / m.rm_unit[j])
        for i in range(m.n):
            s.now.z[i] -= m.rm_z[j * m.n + i] * far
        s.turned[j] += far
        moved = 1
    if moved:
        rigid_offsets(m, s)


# Contacts: the regimes are those of contacts.pxi.


cdef inline double contact_deflection(const tl_model* m, const tl_state* s, int32_t i, double phi) noexcept nogil:
    """How far the angle phi is beyond the side of the play that contact i touches."""
    return phi - (m.con[i].hi if s.regime[i] > 0 else m.con[i].lo)


cdef inline int32_t curved(const tl_model* m, int32_t i) noexcept nogil:
    """1 where the force of contact i is another power of its deflection than the first."""
    return m.ncurved > 0 and m.con[i].n != 1.0


cdef inline double deflection_force(const tl_model* m, int32_t i, double x) noexcept nogil:
    """c x^n of contact i, odd in x: a trial may end a little beyond the side of the play."""
    if not curved(m, i):
        return m.con[i].c * x
    return m.con[i].c * pow(x, m.con[i].n) if x >= 0.0 else -m.con[i].c * pow(-x, m.con[i].n)


cdef inline double deflection_slope(const tl_model* m, int32_t i, double x) noexcept nogil:
    """Its derivative."""
    if not curved(m, i):
        return m.con[i].c
    return m.con[i].n * m.con[i].c * pow(fabs(x), m.con[i].n - 1.0)


cdef inline double deflection_energy(const tl_model* m, int32_t i, double x) noexcept nogil:
    """Its integral: elastic energy of contact i."""
    if not curved(m, i):
        return 0.5 * m.con[i].c * x * x
    return m.con[i].c / (m.con[i].n + 1.0) * pow(fabs(x), m.con[i].n + 1.0)


cdef inline void contact_stiffness(const tl_model* m, const tl_state* s, int32_t i, double* c, double* d) noexcept nogil:
    """What contact i in its regime adds to the matrices; 0 where it is curved (gaps.pxi)."""
    cdef int64_t r = s.regime[i] if s.regime[i] >= 0 else -s.regime[i]
    if curved(m, i):
        c[0] = 0.0
        d[0] = 0.0
        return
    c[0] = m.con[i].c if r == CONTACT_BOTH else (2.0 * m.con[i].c if r == CONTACT_LIMITED else 0.0)
    d[0] = m.con[i].d if r == CONTACT_BOTH else 0.0


cdef inline double contact_force(const tl_model* m, const tl_state* s, int32_t i, double phi, double w) noexcept nogil:
    """Force of contact i along its row at the angle phi and speed w, in its present regime."""
    cdef double c, d
    cdef int64_t r
    if curved(m, i):
        r = s.regime[i] if s.regime[i] >= 0 else -s.regime[i]
        c = deflection_force(m, i, contact_deflection(m, s, i, phi))
        return -(c + m.con[i].d * w) if r == CONTACT_BOTH else (-2.0 * c if r == CONTACT_LIMITED else 0.0)
    contact_stiffness(m, s, i, &c, &d)
    if c == 0.0 and d == 0.0:
        return 0.0
    return -(c * contact_deflection(m, s, i, phi) + d * w)


cdef inline double contact_loss(const tl_model* m, const tl_state* s, int32_t i, double phi, double w) noexcept nogil:
    """Power of contact i that its spring does not keep, at the angle phi and speed w."""
    cdef int64_t q = s.regime[i]
    if q == CONTACT_OPEN:
        return 0.0
    if q == CONTACT_BOTH or q == -CONTACT_BOTH:
        return m.con[i].d * w * w
    if curved(m, i):
        w = w * deflection_force(m, i, contact_deflection(m, s, i, phi))
        return w if q == CONTACT_LIMITED or q == -CONTACT_LIMITED else -w
    w = w * contact_deflection(m, s, i, phi)
    return m.con[i].c * (w if q == CONTACT_LIMITED or q == -CONTACT_LIMITED else -w)


cdef inline void stop_limits(const tl_model* m, tl_state* s, int32_t j) noexcept nogil:
    """Limits of stop j at the end it is at: it holds against motion beyond that end, and never pulls. Teeth hold both ways."""
    cdef int32_t i = m.st[j].fr, k
    cdef int64_t side = s.at_end[j]
    cdef tl_eval* e
    for k in range(3):
        e = s.now if k == 0 else s.end if k == 1 else s.em
        e.raw[i] = m.fr[i].fixed_val[0] if side != 0 else 0.0
        e.cap_f[i] = 0.0
        e.cap_b[i] = 0.0
        e.lim_f[i] = m.fr[i].fixed_val[3] if side > 0 else 0.0
        e.lim_b[i] = m.fr[i].fixed_val[4] if side < 0 or side == ENGAGED else 0.0
        e.steep[i] = 0.0
    s.pressed[i] = side != 0


# Outputs that both readers of them form (kernel/readout.pxi, precompiled ones).


cdef inline double spring_energy(const tl_model* m, int32_t i, double phi) noexcept nogil:
    """1/2 c (phi - phi0)^2 of compliance i at the angle phi of its row."""
    cdef double x = phi - m.lin[i].phi0
    return 0.5 * m.lin[i].c * x * x


cdef inline double spring_law(const tl_model* m, int32_t i, double phi, double w) noexcept nogil:
    """Force of compliance i along its row at the angle phi and speed w."""
    return -(m.lin[i].c * (phi - m.lin[i].phi0) + m.lin[i].d * w)


cdef inline double damper_law(const tl_model* m, int32_t i, double w) noexcept nogil:
    """Heat flow of compliance i at the speed w of its row."""
    return m.lin[i].d * w * w


cdef inline double potential(const tl_model* m, const tl_state* s) noexcept nogil:
    """sum 1/2 c (phi - phi0)^2; of a joint shaft 1/2 c D^2."""
    cdef int32_t i
    cdef double e = 0.0, x
    for i in range(m.nlin):
        e += spring_energy(m, i, row_angle(m, s, m.lin[i].row))
    for i in range(m.ncon):
        if s.regime[i] != CONTACT_OPEN:
            x = contact_deflection(m, s, i, row_angle(m, s, m.con[i].row))
            e += deflection_energy(m, i, x)
    for i in range(m.njo):
        x = row_angle(m, s, m.jo[i].row)
        e += s.e_jo[3 * i + 2] - 0.5 * m.jo[i].c * x * x
    return e


cdef inline double spring_force(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Force of compliance i along its row now."""
    cdef int32_t r = m.lin[i].row
    return spring_law(m, i, row_angle(m, s, r), row_dot(m, r, s.now.u))


cdef inline double damper_power(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Heat flow of compliance i."""
    return damper_law(m, i, row_dot(m, m.lin[i].row, s.now.u))


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a >= b else b


cdef extern from *:
    """
    /* slip [rad/s] and its rate [rad/s^2] below which an element at its limit is shown as stuck */
    #define TL_REST_SPEED 1e-9
    #define TL_REST_RATE 1e-6
    """
    const double REST_SPEED "TL_REST_SPEED"
    const double REST_RATE "TL_REST_RATE"


cdef inline double shown_mode(int64_t mode, int32_t bilateral, double w, double a) noexcept nogil:
    """Mode as it is shown: an element at its limit while others hold its shafts at rest is stuck, it does not slide."""
    if mode & 1 and not bilateral and fabs(w) < REST_SPEED and fabs(a) < REST_RATE:
        return 0.0
    return <double>mode
