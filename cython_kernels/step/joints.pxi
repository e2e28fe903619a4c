# Shafts between two joints: a spring whose ends turn by the ripple of universal joints (model/joints.pxd).
#
#   D = q_a + r_a(q_a + theta_a, beta_a) - q_b - r_b(q_b + theta_b, beta_b) - D0        tau = c D + d D'
#   torque on a: -tau g_a, on b: +tau g_b, g = dD/dq
#
# The mean, c (q_a - q_b) + d (w_a - w_b), is a spring and damper of the model; what is left of both torques, the ripple, are two
# ports that are solved for with the accelerations (rows.pxi). A trial ends where a fork would turn further than its points carry
# (joint_reach); one of three points that leaves energy open is made again (joints_refuse, advance.pxi).
#
# Equations: (60) to (64).

#: rad over the room of the joint (model/joints.pxd): so far a fork turns within a trial
cdef double TURN_LIMIT = 0.3
#: of that: a trial in which a fork turns further, since its speed has changed, is made again with half the length
cdef double TURN_EXCESS = 2.0
#: rad: over a smaller turn the slope of a difference quotient is that of its limit, half the second derivative
cdef double SMALL_TURN = 1e-5
#: of the energy turned over: what the joint shafts may give in a trial of three points beyond what they have
cdef double JOINT_BALANCE = 1e-6


cdef enum:
    JOINT_PARTS = 100      # trials that a step is divided into at most, events not counted
    JOINT_PARTS_FOUR = 24  # with three points, which take three times the work


cdef struct tl_joint:
    double q              # phi_a - phi_b and its rate
    double w
    double qa
    double qb
    double wa
    double wb
    double psi            # angle of the zero references against each other, where carriers move
    double D              # twist and its rate
    double rate
    double tau
    double bending        # power of the inputs that bend the joints, W
    tl_bend[2] b
    tl_ride ride          # motion of bodies that carry the ends
    double[12] over       # derivative of the twist by that, along their axes


cdef inline int32_t rides(const tl_model* m, int32_t i, int32_t end) noexcept nogil:
    """1 when an end of joint shaft i is on a body."""
    return m.jo[i].pose >= 0 and m.ps[m.jo[i].pose].body[end] >= 0


cdef inline int32_t ride_row(const tl_model* m, int32_t i, int32_t k) noexcept nogil:
    """Row k of the bodies of joint shaft i: six of end a, six of end b."""
    return body_row(m, m.ps[m.jo[i].pose].body[k // 6], k % 6)


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
    cdef double beta, drift = 0.0, by_inputs
    cdef tl_shaft h
    j.qa = qa
    j.qb = qb
    j.psi = 0.0
    if o.pose >= 0:
        shaft_at(m, s, o.pose, theta, &j.ride, &h)
        drift = posed_drift(m, i, &h, qa, qb, j.b, j.over, &by_inputs)
        j.psi = unwrapped(h.psi - m.ps[o.pose].psi0, s.ps[TL_POSE_STATE * o.pose])
    for k in range(2 if o.pose < 0 else 0):
        beta = o.bend[k] if o.bend_in[k] < 0 else input_at(m, s, o.bend_in[k], theta)
        bend(o.hooke[k], (qa if k == 0 else qb) + o.theta[k], bent(beta), &j.b[k])
        if beta == bent(beta):
            drift += (1.0 if k == 0 else -1.0) * j.b[k].rb * bend_rate(m, s, o.bend_in[k], theta)
    j.D = j.q + j.b[0].r - j.b[1].r + j.psi - o.D0
    # g = 1 + what the joint adds: nothing is lost where shafts are straight
    j.rate = j.w + (j.b[0].g - 1.0) * j.wa - (j.b[1].g - 1.0) * j.wb + drift
    j.tau = o.c * j.D + o.d * j.rate
    j.bending = j.tau * (by_inputs if o.pose >= 0 else drift)


cdef inline int32_t joint_port(const tl_model* m, int32_t i, int32_t k) noexcept nogil:
    """Port of the torque on flange a (0) or b (1) of joint shaft i; from 2 on those of the bodies of end a, then b."""
    if k < 2:
        return TL_NPORT(m) - (2 - k) * TL_NJO(m) + i
    return TL_NPORT(m) - 2 * TL_NJO(m) - TL_NWR(m) + m.ps[m.jo[i].pose].force[(k - 2) // 6] + (k - 2) % 6


cdef void joint_forces(const tl_model* m, int32_t i, const tl_joint* j, double* port) noexcept nogil:
    """Forces of joint shaft i: the ripple on its flanges, what their torques are beyond those of the mean, and all on bodies."""
    cdef double mean = m.jo[i].c * j.q + m.jo[i].d * j.w
    cdef int32_t k
    port[joint_port(m, i, 0)] = mean - j.tau * j.b[0].g
    port[joint_port(m, i, 1)] = j.tau * j.b[1].g - mean
    for k in range(12):
        if rides(m, i, k // 6):
            port[joint_port(m, i, 2 + k)] = -j.tau * j.over[k]


cdef inline double way_to(const tl_model* m, const tl_state* s, const double* w, int32_t k, double dt) noexcept nogil:
    """How far row k goes until its speed is w[k], dt after now: by the parabola through both speeds with the present rate."""
    return dt * (2.0 / 3.0 * s.now.w[k] + w[k] / 3.0 + dt * s.wa[k] / 6.0) if dt > 0.0 else 0.0


cdef inline double predicted(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t k, double dt) noexcept nogil:
    """Angle of row k where its speed is e.w, dt after now."""
    return turned_angle(m, s, k) + way_to(m, s, e.w, k, dt)


cdef void ride_on(const tl_model* m, const tl_state* s, int32_t i, const double* w, double dt, int32_t straight,
                  tl_joint* j) noexcept nogil:
    """Motion of the bodies of joint shaft i to the row speeds w, dt after now; straight: with w all along."""
    cdef int32_t k, row
    for k in range(12):
        if rides(m, i, k // 6):
            row = ride_row(m, i, k)
            j.ride.speed[k] = w[row]
            j.ride.way[k] = dt * w[row] if straight else way_to(m, s, w, row, dt)


cdef void joint_ports(const tl_model* m, const tl_state* s, tl_eval* e, double theta) noexcept nogil:
    """Forces of all joint shafts, at the row speeds e.w and at the fraction theta of the step."""
    cdef int32_t i
    cdef double dt = (theta - s.theta) * m.h
    cdef tl_joint j
    for i in range(TL_NJO(m)):
        j.q = predicted(m, s, e, m.jo[i].row, dt)
        j.w = e.w[m.jo[i].row]
        j.wa = e.w[m.jo[i].row_a]
        j.wb = e.w[m.jo[i].row_b]
        ride_on(m, s, i, e.w, dt, 0, &j)
        joint_law(m, s, i, theta, predicted(m, s, e, m.jo[i].row_a, dt), predicted(m, s, e, m.jo[i].row_b, dt), &j)
        joint_forces(m, i, &j, e.port)


cdef void joint_at(const tl_model* m, const tl_state* s, int32_t i, double theta, const double* u, const double* z,
                   tl_joint* j) noexcept nogil:
    """Joint shaft i at the speeds u and angles z."""
    cdef int32_t a = m.jo[i].row_a, b = m.jo[i].row_b, k = m.jo[i].row
    j.q = row_dot(m, k, z) + m.row_off[k]
    j.w = row_dot(m, k, u)
    j.wa = row_dot(m, a, u)
    j.wb = row_dot(m, b, u)
    for k in range(12):
        if rides(m, i, k // 6):
            j.ride.speed[k] = row_dot(m, ride_row(m, i, k), u)
            j.ride.way[k] = row_dot(m, ride_row(m, i, k), z) - row_dot(m, ride_row(m, i, k), s.now.z)
    joint_law(m, s, i, theta, row_dot(m, a, z) + m.row_off[a], row_dot(m, b, z) + m.row_off[b], j)


cdef void joint_now(const tl_model* m, tl_state* s, int32_t i, double theta) noexcept nogil:
    """Ports of joint shaft i in the present instant, behind an event: those of its state, not of the polynomial of the trial."""
    cdef tl_joint j
    joint_at(m, s, i, theta, s.now.u, s.now.z, &j)
    joint_forces(m, i, &j, s.now.port)


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


cdef struct tl_plane:
    # of one joint: with phi the angle of its flange, sin(beta) cos(x) = s1 cos(phi) + s2 sin(phi)
    double s1
    double s2
    double k              # cos(beta)


cdef void joint_planes(const tl_model* m, const tl_state* s, int32_t i, double theta, const tl_shaft* h, tl_plane* p) noexcept nogil:
    """Planes of both joints of joint shaft i at the fraction theta of the step, where h is the shaft between carriers that move."""
    cdef const tl_jo* o = &m.jo[i]
    cdef int32_t k
    cdef double beta, by
    for k in range(2):
        if o.pose < 0:
            beta = bent(o.bend[k] if o.bend_in[k] < 0 else input_at(m, s, o.bend_in[k], theta))
            p[k].s1 = sin(beta) * cos(o.theta[k])
            p[k].s2 = -sin(beta) * sin(o.theta[k])
            p[k].k = cos(beta)
            continue
        p[k].s1 = h.side[k].s1
        p[k].s2 = h.side[k].s2
        p[k].k = h.side[k].k
        if p[k].k < LEAST_COS:
            by = sqrt(p[k].s1 * p[k].s1 + p[k].s2 * p[k].s2)
            by = LARGEST_SIN / by if by > 0.0 else 0.0
            p[k].s1 *= by
            p[k].s2 *= by
            p[k].k = LEAST_COS


cdef inline double turn_quotient(int32_t hooke, const tl_plane* p, double phi, double turn) noexcept nogil:
    """(y(phi + turn) - y(phi))/turn of the angle y that a joint passes on, to rounding for small turns, too:
    tan(y1 - y0) = cos(beta) sin(turn)/(cos(turn) - sin(beta)^2 cos(x0) cos(x1))."""
    cdef double p0 = p.s1 * cos(phi) + p.s2 * sin(phi), p1 = p.s1 * cos(phi + turn) + p.s2 * sin(phi + turn)
    if not hooke:
        return 1.0
    if turn == 0.0:
        return p.k / (1.0 - p0 * p0)
    return unwrapped(atan2(p.k * sin(turn), cos(turn) - p0 * p1), turn) / turn


cdef struct tl_joint_mean:
    # of a joint shaft over a trial of two points
    double tau
    double rise           # of the twist
    double drift          # of that, what bending has done
    double[2] g           # difference quotients of both joints
    double[2] dg          # and their derivatives with respect to the angle at the end
    double[12] over       # derivative of the twist by what bodies do, in the middle


cdef void joint_mean(const tl_model* m, const tl_state* s, int32_t i, const tl_joint* j0, const tl_joint* j1,
                     tl_joint_mean* o) noexcept nogil:
    """The means of joint shaft i between j0 and j1 at both ends of the trial."""
    cdef const tl_jo* f = &m.jo[i]
    cdef tl_plane[2] plane
    cdef double[2] turn
    cdef int32_t k
    cdef double theta = s.theta + 0.5 * s.part, by_inputs = 0.0, size = 0.0
    cdef tl_shaft h
    cdef tl_ride ride
    cdef tl_bend[2] b
    turn[0] = j1.qa - j0.qa
    turn[1] = j1.qb - j0.qb
    if f.pose >= 0:
        for k in range(12):
            if rides(m, i, k // 6):
                # (the speeds go straight from those of the start to those of the end)
                ride.speed[k] = 0.5 * (j0.ride.speed[k] + j1.ride.speed[k])
                ride.way[k] = 0.125 * s.h * (3.0 * j0.ride.speed[k] + j1.ride.speed[k])
        shaft_at(m, s, f.pose, theta, &ride, &h)
        posed_drift(m, i, &h, j0.qa + 0.5 * turn[0], j0.qb + 0.5 * turn[1], b, o.over, &by_inputs)
    joint_planes(m, s, i, theta, &h, plane)
    for k in range(2):
        o.g[k] = turn_quotient(f.hooke[k], &plane[k], j0.qa if k == 0 else j0.qb, turn[k])
        o.dg[k] = (j1.b[k].g - o.g[k]) / turn[k] if fabs(turn[k]) > SMALL_TURN else 0.5 * j1.b[k].dg
    o.rise = j1.D - j0.D
    o.tau = 0.5 * f.c * (j0.D + j1.D) + f.d * o.rise / s.h
    o.drift = 0.0
    if f.pose >= 0 or f.bend_in[0] >= 0 or f.bend_in[1] >= 0:
        o.drift = o.rise - o.g[0] * turn[0] + o.g[1] * turn[1]
    for k in range(12):
        if rides(m, i, k // 6):
            o.drift -= o.over[k] * j1.ride.way[k]
            size += j1.ride.way[k] * j1.ride.way[k]
    if by_inputs != 0.0 or size == 0.0:
        return
    # no input moves: the derivative by the bodies becomes a discrete gradient, and the shaft gives or takes no energy
    for k in range(12):
        if rides(m, i, k // 6):
            o.over[k] += o.drift * j1.ride.way[k] / size
    o.drift = 0.0


cdef double joint_reach(const tl_model* m, const tl_state* s) noexcept nogil:
    """Fraction of the step that a trial from the present instant may span, as far as the joints turn."""
    cdef tl_joint j
    cdef int32_t i
    cdef double turns, most = 0.0
    for i in range(TL_NJO(m)):
        joint_at(m, s, i, s.theta, s.now.u, s.now.z, &j)
        turns = larger(fabs(j.wa) / j.b[0].room, fabs(j.wb) / j.b[1].room)
        most = turns if turns > most else most
    return TURN_LIMIT / (most * m.h) if most * m.h > TURN_LIMIT else 1.0


cdef int32_t turned_beyond(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when a fork turns further in the trial than its points carry."""
    cdef tl_joint j0
    cdef tl_joint j1
    cdef int32_t i
    cdef double a, b
    for i in range(TL_NJO(m)):
        joint_at(m, s, i, s.theta, s.now.u, s.now.z, &j0)
        joint_at(m, s, i, s.theta + s.part, s.end.u, s.end.z, &j1)
        a = j0.b[0].room if j0.b[0].room < j1.b[0].room else j1.b[0].room
        b = j0.b[1].room if j0.b[1].room < j1.b[1].room else j1.b[1].room
        if not (fabs(j1.qa - j0.qa) <= TURN_EXCESS * TURN_LIMIT * a and fabs(j1.qb - j0.qb) <= TURN_EXCESS * TURN_LIMIT * b):
            return 1
    return 0


cdef struct tl_joint_share:
    # of a joint shaft in a trial
    double heat
    double bending        # work of what bends it
    double work           # of its torques on both flanges, and its forces on bodies
    double stored         # change of its elastic energy


cdef void joint_share4(const tl_model* m, const tl_state* s, int32_t i, const double* zm, tl_joint* j, tl_joint_share* o) noexcept nogil:
    """The shares of joint shaft i in a trial of three points, by Simpson's rule; j (3): the shaft at the points."""
    cdef const tl_jo* f = &m.jo[i]
    cdef int32_t p
    cdef double weight
    cdef double[3] fa
    cdef double[3] fb
    o.heat = 0.0
    o.bending = 0.0
    joint_at(m, s, i, s.theta, s.now.u, s.now.z, &j[0])
    joint_at(m, s, i, s.theta + 0.5 * s.part, s.um, zm, &j[1])
    joint_at(m, s, i, s.theta + s.part, s.end.u, s.end.z, &j[2])
    for p in range(3):
        weight = (4.0 if p == 1 else 1.0) * s.h / 6.0
        o.heat += weight * f.d * j[p].rate * j[p].rate
        o.bending += weight * j[p].bending
        fa[p] = -j[p].tau * j[p].b[0].g
        fb[p] = j[p].tau * j[p].b[1].g
    o.work = (work_on(m, s, 1, f.row_a, 1.0, j[1].wa, j[2].wa, fa[0], fa[1], fa[2])
              + work_on(m, s, 1, f.row_b, 1.0, j[1].wb, j[2].wb, fb[0], fb[1], fb[2]))
    for p in range(12):
        if rides(m, i, p // 6):
            o.work += work_on(m, s, 1, ride_row(m, i, p), 1.0, j[1].ride.speed[p], j[2].ride.speed[p],
                              -j[0].tau * j[0].over[p], -j[1].tau * j[1].over[p], -j[2].tau * j[2].over[p])
    o.stored = 0.5 * f.c * (j[2].D - j[0].D) * (j[2].D + j[0].D)


cdef inline double along_inertia(const tl_model* m, int32_t k) noexcept nogil:
    """Inertia along row k; 0 for one that does not move."""
    cdef int32_t p, q
    cdef double inverse = 0.0
    for p in range(m.row_ptr[k], m.row_ptr[k + 1]):
        for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
            inverse += m.row_val[p] * m.row_val[q] * m.Minv[m.row_idx[p] * TL_N(m) + m.row_idx[q]]
    return 1.0 / inverse if inverse > 0.0 else 0.0


cdef inline void middle_angles(const tl_model* m, const tl_state* s, double* zm) noexcept nogil:
    """Angles zm in the middle of a trial of three points."""
    cdef int32_t i
    for i in range(TL_N(m)):
        zm[i] = s.now.z[i] + s.h * to_middle(s.now.u[i], s.um[i], s.end.u[i])


cdef double turning_gives(const tl_model* m, const tl_state* s) noexcept nogil:
    """Energy that forces on bodies give in a trial of three points beyond what their powers at these say: what the turning of axes adds
    has none."""
    cdef int32_t i, k, first = TL_NPORT(m) - 2 * TL_NJO(m) - TL_NWR(m) - 6 * TL_NBO(m)
    cdef double made = 0.0
    for i in range(first, first + 6 * TL_NBO(m)):
        k = TL_PORT_ROW(m, i)
        made += (work_on(m, s, 1, k, 1.0, row_dot(m, k, s.um), row_dot(m, k, s.end.u), s.now.port[i], s.em.port[i], s.end.port[i])
                 - s.h / 6.0 * (s.now.port[i] * s.now.w[k] + 4.0 * s.em.port[i] * row_dot(m, k, s.um)
                                + s.end.port[i] * row_dot(m, k, s.end.u)))
    return made


cdef double joints_give(const tl_model* m, tl_state* s) noexcept nogil:
    """Energy that joint shafts, and bodies that carry them, give or take in a trial of three points beyond what they have, of that turned
    over."""
    cdef tl_joint[3] j
    cdef tl_joint_share o
    cdef int32_t i
    cdef double made = turning_gives(m, s) if TL_NWR(m) > 0 else 0.0, turned = 0.0
    cdef int64_t here = mark(s)
    cdef double* zm = scratch(s, TL_N(m))
    middle_angles(m, s, zm)
    for i in range(TL_NJO(m)):
        joint_share4(m, s, i, zm, j, &o)
        made += o.work + o.stored + o.heat - o.bending
        turned += (fabs(o.work) + o.heat + fabs(o.bending) + 0.5 * m.jo[i].c * j[0].D * j[0].D
                   + 0.5 * along_inertia(m, m.jo[i].row_a) * j[0].wa * j[0].wa
                   + 0.5 * along_inertia(m, m.jo[i].row_b) * j[0].wb * j[0].wb)
    release(s, here)
    return fabs(made) / turned if turned > 0.0 else 0.0


cdef void joint_balance(const tl_model* m, tl_state* s, int32_t four) noexcept nogil:
    """Heat and work of bending in the trial (its end is in s.end), elastic energy there."""
    cdef tl_joint[3] j
    cdef tl_joint_share o
    cdef tl_joint_mean mean
    cdef int32_t i
    cdef int64_t here = mark(s)
    cdef double* zm = scratch(s, TL_N(m))
    if four:
        middle_angles(m, s, zm)
    for i in range(TL_NJO(m)):
        if four:
            joint_share4(m, s, i, zm, j, &o)
        else:
            joint_at(m, s, i, s.theta, s.now.u, s.now.z, &j[0])
            joint_at(m, s, i, s.theta + s.part, s.end.u, s.end.z, &j[2])
            joint_mean(m, s, i, &j[0], &j[2], &mean)
            o.heat = m.jo[i].d * mean.rise * mean.rise / s.h
            o.bending = mean.tau * mean.drift
        s.e_jo[3 * i] += o.heat
        s.e_jo[3 * i + 1] += o.bending
        s.e_jo[3 * i + 2] = 0.5 * m.jo[i].c * j[2].D * j[2].D
        turned_to(m, s, i, &j[2])
    release(s, here)
