# Shafts between two joints: a spring whose ends turn by the ripple of universal joints (model/joints.pxd).
#
#   D = q_a + r_a(q_a + theta_a, beta_a) - q_b - r_b(q_b + theta_b, beta_b) - D0        tau = c D + d D'
#   torque on a: -tau g_a, on b: +tau g_b, g = dD/dq: what goes in comes out, but for heat, elastic energy, and the work
#   tau (dD/dbeta) beta' of what bends the joints
#
# The mean of it, c (q_a - q_b) + d (w_a - w_b), is a spring and damper of the model and implicit in its constant
# matrices; what is left of both torques, the ripple, are two ports. In a trial they are solved for together with the
# accelerations (joints_solve.pxi), so that no stiffness asks for a shorter step.
#
# Needs: model/joints.pxd, forces.pxi (input_at), poses.pxi.

include "poses.pxi"


cdef struct tl_joint:
    double q              # phi_a - phi_b and its rate
    double w
    double wa
    double wb
    double psi            # angle of the zero references against each other, where carriers move
    double D              # twist and its rate
    double rate
    double tau
    double bending        # power of what bends the joints, W
    tl_bend[2] b


cdef inline double bend_rate(const tl_model* m, const tl_state* s, int32_t k, double theta) noexcept nogil:
    """Rate of the input k; 0 for one that is held over the step: it moves in jumps between steps."""
    cdef int32_t nin = TL_NIN(m)
    if k < 0 or s.held:
        return 0.0
    return (s.in_c[nin + k] + 2.0 * theta * s.in_c[2 * nin + k]) * m.inv_h


cdef inline void joint_law(const tl_model* m, const tl_state* s, int32_t i, double theta, double qa, double qb,
                           tl_joint* j) noexcept nogil:
    """Twist, torque and their derivatives from j.q, j.w, j.wa, j.wb and the angles of both flanges."""
    cdef const tl_jo* o = &m.jo[i]
    cdef int32_t k
    cdef double beta, drift = 0.0
    j.psi = 0.0
    if o.pose >= 0:
        drift = posed_drift(m, s, i, theta, qa, qb, j.b, &j.psi)
    for k in range(2 if o.pose < 0 else 0):
        beta = o.bend[k] if o.bend_in[k] < 0 else input_at(m, s, o.bend_in[k], theta)
        bend(o.hooke[k], (qa if k == 0 else qb) + o.theta[k], bent(beta), &j.b[k])
        if beta == bent(beta):
            drift += (1.0 if k == 0 else -1.0) * j.b[k].rb * bend_rate(m, s, o.bend_in[k], theta)
    j.D = j.q + j.b[0].r - j.b[1].r + j.psi - o.D0
    # g = 1 + what the joint adds: nothing is lost where shafts are straight
    j.rate = j.w + (j.b[0].g - 1.0) * j.wa - (j.b[1].g - 1.0) * j.wb + drift
    j.tau = o.c * j.D + o.d * j.rate
    j.bending = j.tau * drift


cdef inline void joint_forces(const tl_model* m, int32_t i, const tl_joint* j, double* on_a, double* on_b) noexcept nogil:
    """Ripple: what the torques on the flanges are beyond those of the mean."""
    cdef double mean = m.jo[i].c * j.q + m.jo[i].d * j.w
    on_a[0] = mean - j.tau * j.b[0].g
    on_b[0] = j.tau * j.b[1].g - mean


cdef inline double predicted(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t k, double dt) noexcept nogil:
    """Angle of row k where its speed is e.w, dt after now: by the parabola through both speeds with the present rate."""
    cdef double q = turned_angle(m, s, k)
    if dt <= 0.0:
        return q
    return q + dt * (2.0 / 3.0 * s.now.w[k] + e.w[k] / 3.0 + dt * s.wa[k] / 6.0)


cdef void joint_ports(const tl_model* m, const tl_state* s, tl_eval* e, double theta, double* port) noexcept nogil:
    """Torques on a, then on b, of all joint shafts, at the row speeds e.w and at the fraction theta of the step."""
    cdef int32_t i, njo = TL_NJO(m)
    cdef double dt = (theta - s.theta) * m.h
    cdef tl_joint j
    for i in range(njo):
        j.q = predicted(m, s, e, m.jo[i].row, dt)
        j.w = e.w[m.jo[i].row]
        j.wa = e.w[m.jo[i].row_a]
        j.wb = e.w[m.jo[i].row_b]
        joint_law(m, s, i, theta, predicted(m, s, e, m.jo[i].row_a, dt), predicted(m, s, e, m.jo[i].row_b, dt), &j)
        joint_forces(m, i, &j, port + i, port + njo + i)


cdef void joint_at(const tl_model* m, const tl_state* s, int32_t i, double theta, const double* u, const double* z,
                   tl_joint* j) noexcept nogil:
    """Joint shaft i at the speeds u and angles z."""
    cdef int32_t a = m.jo[i].row_a, b = m.jo[i].row_b, k = m.jo[i].row
    j.q = row_dot(m, k, z) + m.row_off[k]
    j.w = row_dot(m, k, u)
    j.wa = row_dot(m, a, u)
    j.wb = row_dot(m, b, u)
    joint_law(m, s, i, theta, row_dot(m, a, z) + m.row_off[a], row_dot(m, b, z) + m.row_off[b], j)


cdef void joint_now(const tl_model* m, tl_state* s, int32_t i, double theta) noexcept nogil:
    """Ports of joint shaft i in the present instant, after a cut: those of its state, not of the polynomial of the trial."""
    cdef tl_joint j
    cdef int32_t first = TL_NPORT(m) - 2 * TL_NJO(m)
    joint_at(m, s, i, theta, s.now.u, s.now.z, &j)
    joint_forces(m, i, &j, s.now.port + first + i, s.now.port + first + TL_NJO(m) + i)


cdef inline void turned_to(const tl_model* m, tl_state* s, int32_t i, const tl_joint* j) noexcept nogil:
    """The references of joint shaft i have turned against each other as far as j says."""
    if m.jo[i].pose >= 0:
        s.ps[TL_POSE_STATE * m.jo[i].pose] = j.psi


cdef void joint_jump(const tl_model* m, tl_state* s, int32_t i, double theta) noexcept nogil:
    """A bend angle that has jumped twists the shaft at once: the elastic energy that it gives or takes is its work. So is what
    the shaft between moving carriers bears at the start: they have brought it there from where it was put together."""
    cdef tl_joint j
    cdef double stored
    cdef int32_t brought = m.jo[i].pose >= 0 and s.ps[TL_POSE_STATE * m.jo[i].pose + 1] == 1.0
    joint_at(m, s, i, theta, s.now.u, s.now.z, &j)
    stored = 0.5 * m.jo[i].c * j.D * j.D
    if brought:
        s.ps[TL_POSE_STATE * m.jo[i].pose + 1] = 2.0
    if brought or not s.fresh[0]:
        s.e_jo[3 * i + 1] += stored - s.e_jo[3 * i + 2]
    s.e_jo[3 * i + 2] = stored
    turned_to(m, s, i, &j)


cdef void joint_books(const tl_model* m, tl_state* s, double x, int32_t four) noexcept nogil:
    """Heat and work of bending up to the fraction x of the trial (its end is in s.end), elastic energy there: Simpson's rule
    with three points, the trapezoidal rule with two."""
    cdef int32_t i, p, n = TL_N(m)
    cdef double xh = x * s.h, y = 0.5 * x, weight
    cdef tl_joint j
    cdef int64_t here = mark(s)
    cdef double* u = scratch(s, n)
    cdef double* z = scratch(s, n)
    cdef const double* at_u
    cdef const double* at_z
    if four:
        for i in range(n):
            u[i] = s.now.u[i] + y * s.h * (s.now.a[i] + y * (0.5 * s.end.hs1[i] + y * s.s2[i] / 3.0))
            z[i] = s.now.z[i] + y * s.h * (s.now.u[i] + y * s.h * (0.5 * s.now.a[i] + y * (s.end.hs1[i] / 6.0
                                                                                        + y * s.s2[i] / 12.0)))
    for i in range(TL_NJO(m)):
        for p in range(3):
            if p == 1 and not four:
                continue
            weight = (4.0 if p == 1 else 1.0) * xh / 6.0 if four else 0.5 * xh
            at_u = s.now.u if p == 0 else (u if p == 1 else s.end.u)
            at_z = s.now.z if p == 0 else (z if p == 1 else s.end.z)
            joint_at(m, s, i, s.theta + 0.5 * p * x * s.part, at_u, at_z, &j)
            s.e_jo[3 * i] += weight * m.jo[i].d * j.rate * j.rate
            s.e_jo[3 * i + 1] += weight * j.bending
        s.e_jo[3 * i + 2] = 0.5 * m.jo[i].c * j.D * j.D
        turned_to(m, s, i, &j)
    release(s, here)


# In the impulse step the ripple is that of the middle of the interval, its heat what the shaft has taken and does not store.

cdef void joint_middle(const tl_model* m, tl_state* s, int32_t i, double done, double part) noexcept nogil:
    """Ports of joint shaft i in the middle of the interval, as far as the present speeds say."""
    cdef tl_joint j
    cdef int32_t a = m.jo[i].row_a, b = m.jo[i].row_b, first = TL_NPORT(m) - 2 * TL_NJO(m)
    cdef double ahead = 0.5 * part * m.h
    j.w = row_dot(m, m.jo[i].row, s.now.u)
    j.wa = row_dot(m, a, s.now.u)
    j.wb = row_dot(m, b, s.now.u)
    j.q = turned_angle(m, s, m.jo[i].row) + ahead * j.w
    joint_law(m, s, i, done + 0.5 * part, turned_angle(m, s, a) + ahead * j.wa, turned_angle(m, s, b) + ahead * j.wb, &j)
    joint_forces(m, i, &j, s.now.port + first + i, s.now.port + first + TL_NJO(m) + i)


cdef void joint_passed(const tl_model* m, tl_state* s, int32_t i, const double* w, double dt) noexcept nogil:
    """What joint shaft i takes over dt at the mean row speeds w, from its ports and from the spring of its mean."""
    cdef int32_t first = TL_NPORT(m) - 2 * TL_NJO(m)
    cdef double q = turned_angle(m, s, m.jo[i].row) + 0.5 * dt * w[m.jo[i].row]
    cdef double mean = m.jo[i].c * q + m.jo[i].d * w[m.jo[i].row]
    s.e_jo[3 * i] += dt * (mean * w[m.jo[i].row] - s.now.port[first + i] * w[m.jo[i].row_a]
                           - s.now.port[first + TL_NJO(m) + i] * w[m.jo[i].row_b]) + s.e_jo[3 * i + 2]


cdef void joint_kept(const tl_model* m, tl_state* s, int32_t i, double theta) noexcept nogil:
    """After joint_passed: of that, what joint shaft i stores."""
    cdef tl_joint j
    joint_at(m, s, i, theta, s.now.u, s.now.z, &j)
    s.e_jo[3 * i] -= 0.5 * m.jo[i].c * j.D * j.D
    turned_to(m, s, i, &j)
