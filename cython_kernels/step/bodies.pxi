# Rigid bodies that carry rotors (gyrostats), in axes fixed to them: bias forces, gravity, and how they turn in space.
#
#   H' + omega x H = T        H = I omega + sum J n w        (three rows of the model)
#   m (v' + omega x v) = f    v: velocity of the mass centre, along the axes of the body
#
# -omega x H, -m omega x v and gravity are ports. A quaternion q turns from the axes of the body to those of the world.
#
# Equations: (66).

cdef inline void cross(const double* a, const double* b, double* c) noexcept nogil:
    c[0] = a[1] * b[2] - a[2] * b[1]
    c[1] = a[2] * b[0] - a[0] * b[2]
    c[2] = a[0] * b[1] - a[1] * b[0]


cdef inline void turned(const double* q, const double* v, double* out) noexcept nogil:
    """out = R v: from the axes of the body to those of the world."""
    cdef int32_t k
    cdef double[3] t
    cdef double[3] tt
    cross(q + 1, v, t)
    cross(q + 1, t, tt)
    for k in range(3):
        out[k] = v[k] + 2.0 * (q[0] * t[k] + tt[k])


cdef inline void turned_back(const double* q, const double* v, double* out) noexcept nogil:
    """out = R^T v: from the axes of the world to those of the body."""
    cdef int32_t k
    cdef double[4] back
    back[0] = q[0]
    for k in range(1, 4):
        back[k] = -q[k]
    turned(back, v, out)


#: rad: below it sin(a)/a is taken by its series (three terms: exact to rounding)
cdef double SMALL_ANGLE = 1e-3


cdef inline void turn_by(const double* q, const double* theta, double* out) noexcept nogil:
    """out = q exp(theta/2), with length 1."""
    cdef int32_t k
    cdef double[4] p
    cdef double a2 = 0.25 * (theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2]), a = sqrt(a2), f, size
    # sin(a)/a; by its series where rounding would matter
    f = 0.5 * (sin(a) / a if a > SMALL_ANGLE else 1.0 - a2 / 6.0 * (1.0 - a2 / 20.0))
    p[0] = q[0] * cos(a) - f * (q[1] * theta[0] + q[2] * theta[1] + q[3] * theta[2])
    cross(q + 1, theta, p + 1)
    size = p[0] * p[0]
    for k in range(3):
        p[1 + k] = q[1 + k] * cos(a) + f * (q[0] * theta[k] + p[1 + k])
        size += p[1 + k] * p[1 + k]
    size = 1.0 / sqrt(size)
    for k in range(4):
        out[k] = p[k] * size


cdef inline void three(const double* w, int32_t x, int32_t y, int32_t z, double* out) noexcept nogil:
    """Row speeds x, y, z."""
    out[0] = w[x]
    out[1] = w[y]
    out[2] = w[z]


cdef inline int32_t body_row(const tl_model* m, int32_t i, int32_t k) noexcept nogil:
    """Row k of body i: its angular velocity about x, y, z, the velocity of its mass centre along them (in turn in its record)."""
    return (&m.bo[i].wx)[k]


cdef inline void spin(const tl_model* m, int32_t i, const double* w, double* out) noexcept nogil:
    """Angular velocity of body i from the row speeds w."""
    three(w, m.bo[i].wx, m.bo[i].wy, m.bo[i].wz, out)


cdef void attitude(const tl_model* m, const tl_state* s, int32_t i, const double* w, double theta,
                   double* q) noexcept nogil:
    """Quaternion of body i at the fraction theta of the step, where the row speeds are w: from now, with the parabola
    through the angular velocities there and here that has their present rates (s.wa)."""
    cdef int32_t k
    cdef double dt = (theta - s.att_theta) * m.h
    cdef double[3] w0
    cdef double[3] w1
    cdef double[3] rate
    cdef double[3] angle
    memcpy(q, s.att + 7 * i, 4 * sizeof(double))
    if dt <= 0.0:
        return
    spin(m, i, s.now.w, w0)
    spin(m, i, s.wa, rate)
    spin(m, i, w, w1)
    cross(w0, w1, angle)
    for k in range(3):
        angle[k] = dt * (2.0 / 3.0 * w0[k] + w1[k] / 3.0 + dt * (rate[k] / 6.0 + angle[k] / 12.0))
    turn_by(q, angle, q)


cdef void gimbal_torque(const tl_model* m, const tl_state* s, int32_t i, double theta, const double* q,
                        double* T) noexcept nogil:
    """Adds the torques of inputs about the three axes a body is hinged by in turn, x, y, z: T.e_k = tau_k with e_1 = x of
    the world, e_2 = y after the first turn, e_3 = z of the body. Not finite where e_1 and e_3 are parallel."""
    cdef int32_t k
    cdef double[3] x_axis
    cdef double[3] ex
    cdef double[3] tau
    cdef double c, sz, cz, Tx, Ty
    for k in range(3):
        x_axis[k] = 1.0 if k == 0 else 0.0
        tau[k] = input_at(m, s, m.bo[i].tau[k], theta)
    turned_back(q, x_axis, ex)                # cos(b) cos(c), -cos(b) sin(c), sin(b)
    c = sqrt(ex[0] * ex[0] + ex[1] * ex[1])
    cz = ex[0] / c
    sz = -ex[1] / c
    # e_2 = (sz, cz, 0): T.ex = tau_0, T.e_2 = tau_1, T.e_3 = tau_2
    Tx = (tau[0] - ex[2] * tau[2]) / c
    Ty = tau[1]
    T[0] += cz * Tx + sz * Ty
    T[1] += -sz * Tx + cz * Ty
    T[2] += tau[2]


cdef inline double* first_body_port(const tl_model* m, const tl_eval* e) noexcept nogil:
    """Where an instant holds the forces of body_ports."""
    return e.port + TL_NPORT(m) - 2 * TL_NJO(m) - TL_NWR(m) - 6 * TL_NBO(m)


cdef void body_ports(const tl_model* m, const tl_state* s, const double* u, double theta, double* port) noexcept nogil:
    """Torques about x, y, z and forces along them, each for all bodies in turn, at the row speeds u."""
    cdef int32_t i, k, nbo = TL_NBO(m)
    cdef double[3] w
    cdef double[3] v
    cdef double[3] H
    cdef double[3] T
    cdef double[3] f
    cdef double[3] g
    cdef double[4] q
    for i in range(nbo):
        attitude(m, s, i, u, theta, q)
        spin(m, i, u, w)
        three(u, m.bo[i].vx, m.bo[i].vy, m.bo[i].vz, v)
        three(u, m.bo[i].hx, m.bo[i].hy, m.bo[i].hz, H)
        cross(H, w, T)
        cross(v, w, f)
        turned_back(q, m.bo[i].g, g)
        if m.bo[i].tau[0] >= 0:
            gimbal_torque(m, s, i, theta, q, T)
        for k in range(3):
            port[k * nbo + i] = T[k]
            port[(3 + k) * nbo + i] = m.bo[i].m * (f[k] + g[k])


cdef void mean_body_ports(const tl_model* m, tl_state* s, tl_eval* e) noexcept nogil:
    """Forces at the end e of a trial of two points that make their means over it those of the mean speeds: what the turning of axes adds
    then does no work, however the speeds swing."""
    cdef int64_t here = mark(s)
    cdef double* w = scratch(s, TL_NHOT(m))
    cdef double* port = first_body_port(m, e)
    cdef const double* was = first_body_port(m, s.now)
    cdef int32_t i
    for i in range(TL_NHOT(m)):
        w[i] = 0.5 * (s.now.w[i] + e.w[i])
    body_ports(m, s, w, s.theta + 0.5 * s.part, port)
    for i in range(6 * TL_NBO(m)):
        port[i] = 2.0 * port[i] - was[i]
    release(s, here)


cdef void body_after(const double* was, double dt, const double* w0, const double* wm, const double* w1,
                     double* at) noexcept nogil:
    """Attitude and place `at` of a body, dt after `was`. w0, wm, w1 (6): its rates and velocities at start, middle and end."""
    cdef int32_t k
    cdef double[3] half
    cdef double[3] angle
    cdef double[3] a
    cdef double[3] b
    cdef double[3] c
    cdef double[4] q
    cross(w0, wm, half)
    cross(w0, w1, angle)
    for k in range(3):
        half[k] = dt * ((5.0 * w0[k] + 8.0 * wm[k] - w1[k]) / 24.0 + dt * half[k] / 48.0)
        angle[k] = dt * ((w0[k] + 4.0 * wm[k] + w1[k]) / 6.0 + dt * angle[k] / 12.0)
    # place: Simpson's rule for R v
    turned(was, w0 + 3, a)
    turn_by(was, half, q)
    turned(q, wm + 3, b)
    turn_by(was, angle, at)
    turned(at, w1 + 3, c)
    for k in range(3):
        at[4 + k] = was[4 + k] + dt / 6.0 * (a[k] + 4.0 * b[k] + c[k])


cdef void turn_bodies(const tl_model* m, tl_state* s, double dt, const double* w0, const double* wm, const double* w1,
                      double theta) noexcept nogil:
    """Attitudes and places dt later, at the fraction theta of the step. w0, wm, w1: row speeds at start, middle and end;
    wm = NULL: the mean of both."""
    cdef int32_t i, k, row
    cdef double[6] a
    cdef double[6] b
    cdef double[6] c
    for i in range(TL_NBO(m)):
        for k in range(6):
            row = body_row(m, i, k)
            a[k] = w0[row]
            c[k] = w1[row]
            b[k] = 0.5 * (a[k] + c[k]) if wm == NULL else wm[row]
        body_after(s.att + 7 * i, dt, a, b, c, s.att + 7 * i)
    s.att_theta = theta
