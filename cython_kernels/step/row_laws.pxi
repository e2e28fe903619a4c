# Laws along rows whose forces are unknowns of a trial: each a force k = law(x, w) of the angle x and the speed w of its row, with
# its slopes. All are solved for together (rows.pxi). A group of laws may follow the motion of the rows of all of them: both sides of
# a converter, the flanges of a joint shaft and the bodies that carry it. Which points, and how the forces act at the stages, depends
# on the form (tau_0: force at the start):
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
    int32_t group          # how many laws follow the motion of each other's rows, one behind the other
    int32_t place          # which of them it is


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
    double other_w         # of the next row of its group: the speed,
    double other_dx        # and what the unknowns add
    double other_dw
    double f               # the law there,
    double* on             # (2 for each row of its group) its slopes on x and w, then on those of the next ones, round,
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
    int32_t widest         # laws in the largest group
    tl_unknown* un         # (size)
    double* on             # (size, 2 widest)
    double* Hx             # (size, size) responses of angles to the unknowns; NULL: no law follows an angle
    double* Hw             # (size, size) and of speeds
    double* A              # (size, size) matrix of a round
    double* b              # (size)
    double part            # of the responses


cdef inline int32_t acts_along(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when friction element i has a capacity against the slip it has."""
    return (m.fr[i].fwd if s.mode[i] > 0 else m.fr[i].bwd) == CAPPED


cdef inline void add_law(tl_rows* p, int32_t kind, int32_t i, int32_t row, int32_t port, int32_t form, int32_t group,
                         int32_t place) noexcept nogil:
    cdef tl_row_law* law = p.law + p.nl
    law.kind = kind
    law.i = i
    law.row = row
    law.port = port
    law.form = form
    law.group = group
    law.place = place
    p.nl += 1


cdef inline int32_t fellow(const tl_row_law* law, int32_t k) noexcept nogil:
    """How much further the k-th next law of its group is, round."""
    return (law.place + k) % law.group - law.place


cdef void find_steep_ports(const tl_model* m, tl_state* s, tl_rows* p) noexcept nogil:
    """Laws of the ports that are steep at a point of the trial; both sides of a converter one behind the other."""
    cdef int32_t port, pump, form, tc = TL_NTQ(m) + TL_NPOLY(m) + TL_NENG(m), ed = tc + 2 * TL_NTC(m)
    for port in range(TL_NPORT(m)):
        pump = tc <= port < tc + TL_NTC(m)
        if (tc <= port < ed and not pump) or not (steep_port(m, s, s.end, port) or (p.stages == 2 and steep_port(m, s, s.em, port))):
            continue
        form = AT_MEAN if ed <= port < ed + TL_NED(m) and p.stages == 1 else FROM_START
        add_law(p, OF_PORT, port, TL_PORT_ROW(m, port), port, form, 1 + pump, 0)
        if pump:
            add_law(p, OF_PORT, port + TL_NTC(m), TL_PORT_ROW(m, port + TL_NTC(m)), port + TL_NTC(m), form, 2, 1)


cdef int32_t find_laws(const tl_model* m, tl_state* s, tl_rows* p, int32_t steep) noexcept nogil:
    """The laws of the trial; steep: some friction or port may be. How many unknowns they have."""
    cdef int32_t i, k, l, port, size = 0, group, place
    p.nl = 0
    if steep:
        for i in range(TL_NF(m)):
            if s.mode[i] & 1 and not s.tied[i] and (s.end.steep[i] or (p.stages == 2 and s.em.steep[i])):
                add_law(p, OF_FRICTION, i, TL_FR_ROW(m, i), -1, AT_NODES, 1, 0)
        find_steep_ports(m, s, p)
    for i in range(TL_NJO(m)):
        group = 2 + 6 * (rides(m, i, 0) + rides(m, i, 1))
        place = 0
        for k in range(14):
            if k < 2 or rides(m, i, (k - 2) // 6):
                port = joint_port(m, i, k)
                add_law(p, OF_JOINT, i, TL_PORT_ROW(m, port), port, AT_NODES, group, place)
                place += 1
    if TL_NCON(m) > 0 and m.ncurved > 0:
        for i in range(TL_NCON(m)):
            if pressing(m, s, i):
                add_law(p, OF_CONTACT, i, m.con[i].row, -1, AT_NODES, 1, 0)
    p.widest = 2
    for l in range(p.nl):
        size += p.stages + (p.law[l].form == FROM_START)
        p.widest = p.law[l].group if p.law[l].group > p.widest else p.widest
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
    if law.group > 1:
        d = STEEP_APART * (SLOW + fabs(u.other_w))
        u.on[3] = (port_force(m, s, law.i, u.w, u.other_w + d, theta, xi) - u.f) / d


cdef struct tl_joint_laws:
    # of a joint shaft: forces along the rows of its group are `mean` times the force of the mean less tau times over
    double tau
    double[14] over       # derivatives of the twist
    double[14] on_x       # slopes of tau on the motion along the rows
    double[14] on_w
    double[2] curve       # slopes of tau*over of both flanges on their own angles, with tau held


cdef void lay_joint_laws(const tl_model* m, const tl_state* s, const tl_rows* p, const tl_row_law* law, double q, double w, double now,
                         const tl_joint_laws* o, tl_unknown* a) noexcept nogil:
    """Forces of a joint shaft and their slopes. q, w: twist of the mean and its rate; now: what part of the present forces is
    taken off."""
    cdef double c = m.jo[law.i].c, d = m.jo[law.i].d, mean, both
    cdef int32_t r, k, j
    for r in range(law.group):
        mean = 1.0 - 2.0 * r if r < 2 else 0.0
        a[r].f = mean * (c * q + d * w) - o.tau * o.over[r] - now * s.now.port[law[r].port]
        for j in range(law.group):
            k = r + fellow(law + r, j)
            both = (1.0 if k == r else -1.0) if r < 2 and k < 2 else 0.0
            a[r].on[2 * j] = both * c - o.over[r] * o.on_x[k]
            a[r].on[2 * j + 1] = both * d - o.over[r] * o.on_w[k]
        if r < 2:
            a[r].on[0] -= o.curve[r]


cdef void joint_laws(const tl_model* m, const tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* a,
                     tl_joint* j) noexcept nogil:
    """All forces of a joint shaft, with its motion in j: on its flanges what they are beyond those of the mean."""
    cdef double c = m.jo[law.i].c, d = m.jo[law.i].d, along = c
    cdef tl_joint j0
    cdef tl_joint_mean o
    cdef tl_joint_laws laws
    cdef int32_t k, n = 2, means = p.stages == 1
    if means:
        # end forces of two points, which make the means those of joint_mean
        joint_at(m, s, law.i, s.theta, s.now.u, s.now.z, &j0)
        joint_mean(m, s, law.i, &j0, j, &o)
        along = c + 2.0 * d / s.h
    laws.tau = 2.0 * o.tau if means else j.tau
    laws.over[0] = o.g[0] if means else j.b[0].g
    laws.over[1] = -(o.g[1] if means else j.b[1].g)
    for k in range(12):
        if rides(m, law.i, k // 6):
            laws.over[n] = o.over[k] if means else j.over[k]
            n += 1
    for k in range(n):
        laws.on_x[k] = along * laws.over[k]
        laws.on_w[k] = 0.0 if means else d * laws.over[k]
    if not means:
        laws.on_x[0] += d * j.b[0].dg * j.wa
        laws.on_x[1] -= d * j.b[1].dg * j.wb
    laws.curve[0] = laws.tau * (o.dg[0] if means else j.b[0].dg)
    laws.curve[1] = -laws.tau * (o.dg[1] if means else j.b[1].dg)
    if means:
        lay_joint_laws(m, s, p, law, j0.q + j.q, j0.w + j.w, 1.0, &laws, a)
    else:
        lay_joint_laws(m, s, p, law, j.q, j.w, 0.0, &laws, a)
    for k in range(n):
        a[k].size = fabs(j.tau) + c * (1.0 + fabs(j.q)) * SMALL_TWIST
        a[k].rounding = c * (1.0 + fabs(j.qa) + fabs(j.qb)) * larger(1.0, fabs(laws.over[k]))


cdef void joint_of(const tl_model* m, const tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* a) noexcept nogil:
    """All forces of a joint shaft at the motion of its unknowns, from a on."""
    cdef tl_unknown* b = a + 1
    cdef tl_unknown* u = a + 2
    cdef int32_t k = m.jo[law.i].row, n = TL_N(m), row
    cdef tl_joint j
    # (the twist from its own row: the difference of both angles has lost its digits)
    j.q = row_dot(m, k, s.zs + a.at * n) + m.row_off[k] + a.dx - b.dx
    j.w = row_dot(m, k, s.us + a.at * n) + a.dw - b.dw
    j.wa = a.w
    j.wb = b.w
    for k in range(12):
        if rides(m, law.i, k // 6):
            row = ride_row(m, law.i, k)
            j.ride.speed[k] = u.w
            j.ride.way[k] = u.x - m.row_off[row] - row_dot(m, row, s.now.z)
            u += 1
    joint_law(m, s, law.i, stage_theta(s, p.stages, a.at), a.x, b.x, &j)
    joint_laws(m, s, p, law, a, &j)


cdef void predict_joint(const tl_model* m, tl_state* s, const tl_rows* p, const tl_row_law* law, tl_unknown* a) noexcept nogil:
    """All forces of a joint shaft at the speeds e.w that the forces of the trial were taken at, as joint_ports has it; at the present
    ones where the shaft is so stiff that its present acceleration, which changes within the trial, leads further away than a trial
    carries. (The motion that answers forces at predicted angles is far off where the shaft is stiff.)"""
    cdef tl_unknown* b = a + 1
    cdef tl_unknown* u = a + 2
    cdef int32_t k, row, straight
    cdef const tl_eval* e = stage_eval(s, p.stages, a.at)
    cdef const tl_jo* f = &m.jo[law.i]
    cdef double theta = stage_theta(s, p.stages, a.at), dt = (theta - s.theta) * m.h
    cdef double qa = predicted(m, s, e, f.row_a, dt), qb = predicted(m, s, e, f.row_b, dt)
    cdef double ca = turned_angle(m, s, f.row_a) + dt * s.now.w[f.row_a], cb = turned_angle(m, s, f.row_b) + dt * s.now.w[f.row_b]
    cdef const double* w = e.w
    cdef tl_joint j
    j.q = predicted(m, s, e, f.row, dt)
    straight = not (fabs(qa - ca) <= TURN_LIMIT and fabs(qb - cb) <= TURN_LIMIT)
    if straight:
        w = s.now.w
        j.q = turned_angle(m, s, f.row) + dt * w[f.row]
        qa = ca
        qb = cb
    j.w = w[f.row]
    j.wa = w[f.row_a]
    j.wb = w[f.row_b]
    ride_on(m, s, law.i, w, dt, straight, &j)
    joint_law(m, s, law.i, theta, qa, qb, &j)
    joint_laws(m, s, p, law, a, &j)
    a.dx = qa - a.x0
    a.dw = j.wa - a.w0
    b.dx = qb - b.x0
    b.dw = j.wb - b.w0
    for k in range(12):
        if rides(m, law.i, k // 6):
            row = ride_row(m, law.i, k)
            u.dx = j.ride.way[k] + row_dot(m, row, s.now.z) + m.row_off[row] - u.x0
            u.dw = j.ride.speed[k] - u.w0
            u += 1


cdef void law_of(const tl_model* m, tl_state* s, const tl_rows* p, int32_t r) noexcept nogil:
    """The law of unknown r at its motion, its slopes, size and rounding; those of a joint shaft with that of flange a."""
    cdef tl_unknown* u = p.un + r
    cdef const tl_row_law* law = p.law + u.law
    if law.kind == OF_JOINT:
        if law.place == 0:
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
