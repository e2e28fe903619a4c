# Laws along rows whose forces are unknowns of a trial: each a force k = law(x, w) of the angle x and the speed w of its row, with
# its slopes. All are solved for together (rows.pxi). A port and a joint shaft may follow the motion of a second row: the other side of
# a converter, the other flange. Which points, and how the forces act at the stages, depends on the form (tau_0: force at the start):
#
#   AT_NODES     friction, contacts with an exponent, joint shafts: at the stages
#   FROM_START   ports: Lobatto IIIC, which takes the law at the start, too
#                two points: k_0 + k_1 - tau_0 at the end            three: k_m + (k_0 - tau_0)/4 in the middle, k_1 at the end
#   AT_MEAN      eddy-current brakes with two points, whose heat never falls: 2 k - tau_0 at the end
#
# Equations: (34) to (36), (55), (60), (62), (63), (65).

#: rad/s, m/s: a speed of which ends of segments, and the shape of laws, are no smaller part
cdef double SLOW = 1e-3
#: of the speed, and of SLOW: over so much of it the slope of a port is a difference quotient
cdef double STEEP_APART = 1e-7
#: rad: part of a radian of twist whose torque counts as the size of the torques of a joint shaft where there is less
cdef double SMALL_TWIST = 1e-3

cdef enum:
    OF_FRICTION = 0        # kinds of laws
    OF_PORT = 1
    OF_CONTACT = 2
    OF_JOINT = 3
    AT_NODES = 0           # forms
    FROM_START = 1
    AT_MEAN = 2
    START = -1             # a point: the start of the trial; the others are numbered as the stages


cdef struct tl_row_law:
    int32_t kind
    int32_t i              # which friction element, port, contact or joint shaft
    int32_t row
    int32_t port           # where an instant holds its force, -1: friction holds it in tau, a contact nowhere
    int32_t form
    int32_t other          # how many laws further the row is whose motion it follows, too: 1, -1; 0: none


cdef struct tl_unknown:
    # the force of a law at one point of the trial
    int32_t law
    int32_t at             # the point
    double k               # the force
    double known           # that of a part of the responses
    double x0              # angle and speed of its row without the unknowns
    double w0
    double apart           # what of the force at the start the speed in the middle does not have
    double x               # those the law is taken at,
    double w
    double dx              # and what the unknowns add to the first to give these
    double dw
    double other_w         # of the other row: the speed,
    double other_dx        # and what the unknowns add
    double other_dw
    double f               # the law there,
    double[4] on           # its slopes on x and w, and on those of the other row,
    double size            # the size of its terms,
    double terms_x         # sum of the absolute terms of x and w
    double terms_w
    double rounding        # and its own, in units of the last place


cdef struct tl_rows:
    int32_t stages
    int32_t nl
    tl_row_law* law        # (nl)
    double* acted          # (nl, stages) how each force has acted so far
    int32_t size
    tl_unknown* un         # (size)
    double* Hx             # (size, size) responses of angles to the unknowns; NULL: no law follows an angle
    double* Hw             # (size, size) and of speeds
    double* A              # (size, size) matrix of a round
    double* b              # (size)
    double part            # of the responses


cdef inline int32_t acts_along(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when friction element i has a capacity against the slip it has."""
    return (m.fr[i].fwd if s.mode[i] > 0 else m.fr[i].bwd) == CAPPED


cdef inline void add_law(tl_rows* p, int32_t kind, int32_t i, int32_t row, int32_t port, int32_t form, int32_t other) noexcept nogil:
    cdef tl_row_law* law = p.law + p.nl
    law.kind = kind
    law.i = i
    law.row = row
    law.port = port
    law.form = form
    law.other = other
    p.nl += 1


cdef void find_steep_ports(const tl_model* m, tl_state* s, tl_rows* p) noexcept nogil:
    """Laws of the ports that are steep at a point of the trial; both sides of a converter one behind the other."""
    cdef int32_t port, pump, form, tc = TL_NTQ(m) + TL_NPOLY(m) + TL_NENG(m), ed = tc + 2 * TL_NTC(m)
    for port in range(TL_NPORT(m)):
        pump = tc <= port < tc + TL_NTC(m)
        if (tc <= port < ed and not pump) or not (steep_port(m, s, s.end, port) or (p.stages == 2 and steep_port(m, s, s.em, port))):
            continue
        form = AT_MEAN if ed <= port < ed + TL_NED(m) and p.stages == 1 else FROM_START
        add_law(p, OF_PORT, port, TL_PORT_ROW(m, port), port, form, pump)
        if pump:
            add_law(p, OF_PORT, port + TL_NTC(m), TL_PORT_ROW(m, port + TL_NTC(m)), port + TL_NTC(m), form, -1)


cdef int32_t find_laws(const tl_model* m, tl_state* s, tl_rows* p, int32_t steep) noexcept nogil:
    """The laws of the trial; steep: some friction or port may be. How many unknowns they have."""
    cdef int32_t i, l, size = 0, first = TL_NPORT(m) - 2 * TL_NJO(m)
    p.nl = 0
    if steep:
        for i in range(TL_NF(m)):
            if s.mode[i] & 1 and not s.tied[i] and (s.end.steep[i] or (p.stages == 2 and s.em.steep[i])):
                add_law(p, OF_FRICTION, i, TL_FR_ROW(m, i), -1, AT_NODES, 0)
        find_steep_ports(m, s, p)
    for i in range(TL_NJO(m)):
        add_law(p, OF_JOINT, i, m.jo[i].row_a, first + i, AT_NODES, 1)
        add_law(p, OF_JOINT, i, m.jo[i].row_b, first + TL_NJO(m) + i, AT_NODES, -1)
    if TL_NCON(m) > 0 and m.ncurved > 0:
        for i in range(TL_NCON(m)):
            if pressing(m, s, i):
                add_law(p, OF_CONTACT, i, m.con[i].row, -1, AT_NODES, 0)
    for l in range(p.nl):
        size += p.stages + (p.law[l].form == FROM_START)
    return size


cdef double port_force(const tl_model* m, const tl_state* s, int32_t port, double w, double other, double theta,
                       const double* xi) noexcept nogil:
    """Torque of a port at the speed w of its row; other: that of the other side of a converter."""
    cdef int32_t i = port - TL_NTQ(m)
    cdef int32_t[3] hint
    cdef double pump, turbine
    cdef int64_t steep = 0
    hint[0] = hint[1] = hint[2] = 0
    if i < TL_NPOLY(m):
        return resistance(m, i, w)
    i -= TL_NPOLY(m)
    if i < TL_NENG(m):
        return engine_torque(m, s, i, w, theta, hint) + idle_torque(m, s, i, w, xi[i])
    i -= TL_NENG(m)
    if i < TL_NTC(m):
        converter_torques(m, i, w, other, hint, &pump, &turbine, &steep)
        return pump
    i -= TL_NTC(m)
    if i < TL_NTC(m):
        converter_torques(m, i, other, w, hint, &pump, &turbine, &steep)
        return turbine
    i -= TL_NTC(m)
    if i < TL_NED(m):
        return eddy_torque(m, s, i, w, theta)
    i -= TL_NED(m)
    if i < TL_NCV(m):
        return curve_force(m, s, i, w, theta, hint)
    return drag_torque(m, s, i - TL_NCV(m), w, theta)


cdef void friction_law(const tl_model* m, tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* u) noexcept nogil:
    """Torque of a sliding element at the slip u.w, mu beyond the end of the slip as at standstill."""
    cdef int32_t hint = 0
    cdef double sgn = <double>s.mode[law.i], fn = stage_eval(s, p.stages, u.at).raw[law.i] if acts_along(m, s, law.i) else 0.0
    u.on[1] = -m.fr[law.i].cgeo * fn * table1_slope(&m.tab1[m.fr[law.i].mu], sgn * u.w, &hint)
    u.f = -sgn * friction_at(m, law.i, fn, sgn * u.w, &hint)


cdef void port_law(const tl_model* m, const tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* u) noexcept nogil:
    """Torque of a port at the speed u.w; its slopes are difference quotients."""
    cdef double d = STEEP_APART * (SLOW + fabs(u.w)), theta = s.theta
    cdef const double* xi = s.xi
    if law.form == AT_MEAN:
        theta += 0.5 * s.part
    elif u.at >= 0:
        theta = stage_theta(s, p.stages, u.at)
        xi = s.xi1 if u.at == p.stages - 1 else s.xim
    u.f = port_force(m, s, law.i, u.w, u.other_w, theta, xi)
    u.on[1] = (port_force(m, s, law.i, u.w + d, u.other_w, theta, xi) - u.f) / d
    if law.other:
        d = STEEP_APART * (SLOW + fabs(u.other_w))
        u.on[3] = (port_force(m, s, law.i, u.w, u.other_w + d, theta, xi) - u.f) / d


cdef inline void joint_slopes(const tl_model* m, int32_t i, const tl_joint* j, double* on_a, double* on_b) noexcept nogil:
    """Slopes of both forces on the angle and the speed of their own flange, and on those of the other one."""
    cdef double c = m.jo[i].c, d = m.jo[i].d, ga = j.b[0].g, gb = j.b[1].g
    cdef double on_qa = c * ga + d * j.b[0].dg * j.wa, on_qb = -c * gb - d * j.b[1].dg * j.wb
    on_a[0], on_a[1], on_a[2], on_a[3] = c - ga * on_qa - j.tau * j.b[0].dg, d - ga * d * ga, -c - ga * on_qb, ga * d * gb - d
    on_b[0], on_b[1], on_b[2], on_b[3] = c + gb * on_qb + j.tau * j.b[1].dg, d - gb * d * gb, gb * on_qa - c, gb * d * ga - d


cdef inline void mean_slopes(const tl_model* m, const tl_state* s, int32_t i, const tl_joint* j, const tl_joint_mean* o,
                             double* on_a, double* on_b) noexcept nogil:
    """Slopes of the end forces of two points, which make the means those of joint_mean."""
    cdef double c = m.jo[i].c, d = m.jo[i].d, along = c + 2.0 * d / s.h
    cdef double on_qa = along * j.b[0].g, on_qb = -along * j.b[1].g
    on_a[0], on_a[1], on_a[2], on_a[3] = c - o.g[0] * on_qa - 2.0 * o.tau * o.dg[0], d, -c - o.g[0] * on_qb, -d
    on_b[0], on_b[1], on_b[2], on_b[3] = o.g[1] * on_qb + 2.0 * o.tau * o.dg[1] + c, d, o.g[1] * on_qa - c, -d


cdef void joint_laws(const tl_model* m, const tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* a,
                     tl_joint* j) noexcept nogil:
    """Both torques of a joint shaft, with its motion in j: what they are beyond those of the mean."""
    cdef tl_unknown* b = a + 1
    cdef double c = m.jo[law.i].c, d = m.jo[law.i].d
    cdef tl_joint j0
    cdef tl_joint_mean o
    if p.stages == 1:
        joint_at(m, s, law.i, s.theta, s.now.u, s.now.z, &j0)
        joint_mean(m, s, law.i, &j0, j, &o)
        a.f = c * (j0.q + j.q) + d * (j0.w + j.w) - 2.0 * o.tau * o.g[0] - s.now.port[law.port]
        b.f = 2.0 * o.tau * o.g[1] - c * (j0.q + j.q) - d * (j0.w + j.w) - s.now.port[law.port + TL_NJO(m)]
        mean_slopes(m, s, law.i, j, &o, a.on, b.on)
    else:
        joint_forces(m, law.i, j, &a.f, &b.f)
        joint_slopes(m, law.i, j, a.on, b.on)
    a.size = fabs(j.tau) + c * (1.0 + fabs(j.q)) * SMALL_TWIST
    a.rounding = c * (1.0 + fabs(j.qa) + fabs(j.qb))
    b.size = a.size
    b.rounding = a.rounding


cdef void joint_of(const tl_model* m, const tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* a) noexcept nogil:
    """Both torques of a joint shaft at the motion of both unknowns."""
    cdef tl_unknown* b = a + 1
    cdef int32_t k = m.jo[law.i].row, n = TL_N(m)
    cdef tl_joint j
    # (the twist from its own row: the difference of both angles has lost its digits)
    j.q = row_dot(m, k, s.zs + a.at * n) + m.row_off[k] + a.dx - b.dx
    j.w = row_dot(m, k, s.us + a.at * n) + a.dw - b.dw
    j.wa = a.w
    j.wb = b.w
    joint_law(m, s, law.i, stage_theta(s, p.stages, a.at), a.x, b.x, &j)
    joint_laws(m, s, p, law, a, &j)


cdef void predict_joint(const tl_model* m, tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* a) noexcept nogil:
    """Both torques of a joint shaft at the speeds e.w that the forces of the trial were taken at, as joint_ports has it; at the present
    ones where the shaft is so stiff that its present acceleration, which changes within the trial, leads further away than a trial
    carries. (The motion that answers forces at predicted angles is far off where the shaft is stiff.)"""
    cdef tl_unknown* b = a + 1
    cdef const tl_eval* e = stage_eval(s, p.stages, a.at)
    cdef const tl_jo* f = &m.jo[law.i]
    cdef double theta = stage_theta(s, p.stages, a.at), dt = (theta - s.theta) * m.h
    cdef double qa = predicted(m, s, e, f.row_a, dt), qb = predicted(m, s, e, f.row_b, dt)
    cdef double ca = turned_angle(m, s, f.row_a) + dt * s.now.w[f.row_a], cb = turned_angle(m, s, f.row_b) + dt * s.now.w[f.row_b]
    cdef const double* w = e.w
    cdef tl_joint j
    j.q = predicted(m, s, e, f.row, dt)
    if not (fabs(qa - ca) <= TURN_LIMIT and fabs(qb - cb) <= TURN_LIMIT):
        w = s.now.w
        j.q = turned_angle(m, s, f.row) + dt * w[f.row]
        qa = ca
        qb = cb
    j.w = w[f.row]
    j.wa = w[f.row_a]
    j.wb = w[f.row_b]
    joint_law(m, s, law.i, theta, qa, qb, &j)
    joint_laws(m, s, p, law, a, &j)
    a.dx = b.other_dx = qa - a.x0
    a.dw = b.other_dw = j.wa - a.w0
    b.dx = a.other_dx = qb - b.x0
    b.dw = a.other_dw = j.wb - b.w0


cdef void law_of(const tl_model* m, tl_state* s, const tl_rows* p, int32_t r) noexcept nogil:
    """The law of unknown r at its motion, its slopes, size and rounding; that of flange b with that of flange a."""
    cdef tl_unknown* u = p.un + r
    cdef const tl_row_law* law = p.law + u.law
    if law.kind == OF_JOINT:
        if law.other > 0:
            joint_of(m, s, p, law, u)
        return
    u.on[0] = u.on[1] = u.on[2] = u.on[3] = 0.0
    if law.kind == OF_FRICTION:
        friction_law(m, s, p, law, u)
    elif law.kind == OF_PORT:
        port_law(m, s, p, law, u)
    else:
        u.f = gap_law(m, s, law.i, p.stages, u.x, u.w, &u.on[0], &u.on[1])
    u.size = fabs(u.f) + fabs(u.on[1] * u.w if law.kind == OF_CONTACT else 0.0)
    u.rounding = fabs(u.on[0]) * (u.terms_x + fabs(m.row_off[law.row])) + fabs(u.on[1]) * (u.terms_w + (SLOW if law.kind != OF_CONTACT else 0.0))
