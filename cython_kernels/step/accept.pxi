# Taking a trial, whole or truncated: the energy balance of works and heat by the quadrature of the method itself, and the new present instant.
#
# A trial in which a slip turns round beyond rounding, so that friction would give heat back, is refused (counted), and the step
# goes on with a method that cannot (advance.pxi). Friction with a coefficient below 0 gives energy by its law; that is taken as it
# is and counted (TL_C_HEAT). Models with joint shafts take trials whole, never truncated, and ask about the energy of these before
# (joints_refuse).
#
# Equations: (43), (45).

#: of the energy turned over in a trial of three points: what contacts with an exponent may give beyond their potential
cdef double BALANCE_TOL = 1e-6
#: of the energy turned over in a truncated trial, of two points and of three: what springs may keep beyond what they take. Beyond it
#: the trial is made again with the length that is used. The error is of the order (h omega)^3 or (h omega)^5
cdef double TRUNCATION_TOL_2 = 1e-5
cdef double TRUNCATION_TOL_4 = 1e-4


cdef inline double slip_heat(const tl_model* m, const tl_state* s, int32_t i, double x, tl_cvec wm, tl_cvec w1, int32_t four) noexcept nogil:
    """Heat of sliding element i up to the fraction x of the trial, with the speeds wm in the middle (three points) and w1 at the end
    of the part taken."""
    cdef int32_t k = TL_FR_ROW(m, i)
    return -work_on(m, s, four, k, x, wm[k], w1[k], s.now.tau[i], s.em.tau[i], s.end.tau[i])


cdef inline double balance_heat(const tl_model* m, tl_state* s, int32_t i, double x, tl_cvec wm, tl_cvec w1, int32_t four,
                             double least) noexcept nogil:
    """Adds the heat of sliding element i to the balance, unless it is below 0; it or `least`, whichever is less. What is tied turns nothing
    into heat: its slip is rounding."""
    cdef double heat = slip_heat(m, s, i, x, wm, w1, four)
    if heat >= 0.0:
        s.e_fr[i] += heat
    elif heat < least and not s.tied[i]:
        return heat
    return least


cdef inline int32_t balance_friction(const tl_model* m, tl_state* s, double x, tl_cvec wm, tl_cvec w1, int32_t four) noexcept nogil:
    """Adds the heat of the sliding elements to the balance; 1 when one of them gives heat back (nothing is added then)."""
    cdef int32_t i
    cdef double least = 0.0
    if s.quiet:                                # the list of what slides holds
        for i in range(s.lists.n_sliding):
            least = balance_heat(m, s, s.lists.sliding[i], x, wm, w1, four, least)
    else:
        for i in range(TL_NF(m)):
            if s.mode[i] & 1:                  # sliding either way
                least = balance_heat(m, s, i, x, wm, w1, four, least)
    if least < 0.0:
        return take_back(m, s, x, wm, w1, four)
    return 0


cdef inline int32_t pushes(const tl_state* s, int32_t i) noexcept nogil:
    """1 when element i is pressed and yet acts along its slip at one of the trial's ends: its friction coefficient is below 0
    there, or the slip has ended before. (A capacity below 0 after a normal force that has vanished within the trial does not
    count: the trial is truncated there.)"""
    return (s.now.raw[i] > 0.0 and s.mode[i] * s.now.tau[i] > 0.0) or (s.end.raw[i] > 0.0 and s.mode[i] * s.end.tau[i] > 0.0)


cdef inline int32_t coefficient_below_0(const tl_model* m, int32_t i, double slip) noexcept nogil:
    """1 when the curve of element i says so at that slip, or at standstill behind its end."""
    cdef int32_t hint = 0
    if m.fr[i].mu < 0:
        return m.fr[i].cap0 < 0.0
    return table1(&m.tab1[m.fr[i].mu], slip if slip > 0.0 else 0.0, &hint) < 0.0


cdef inline void count_heat(const tl_model* m, tl_state* s, int32_t i, double slip0, double slip1) noexcept nogil:
    """Element i has given heat back between two slips (in the sense of its mode): by which cause."""
    s.counters[TL_C_HEAT] += 1
    s.counters[TL_C_BEYOND] += not (coefficient_below_0(m, i, slip0) or coefficient_below_0(m, i, slip1))


cdef int32_t take_back(const tl_model* m, tl_state* s, double x, const double* wm, const double* w1,
                       int32_t four) noexcept nogil:
    """After balance_friction met heat below 0: rounding of the slip is left at 0 (0 is returned); a slip that has turned round
    restores the balance (1); what acts along its slip all the same is added as it is, and counted."""
    cdef int32_t i, k, bad = 0
    cdef double heat
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and not pushes(s, i):
            heat = slip_heat(m, s, i, x, wm, w1, four)
            bad |= heat < -TOL_R * x * s.h * (fabs(s.now.tau[i]) + fabs(s.end.tau[i]) + (fabs(s.em.tau[i]) if four else 0.0)) and (
                s.end.raw[i] >= 0.0)
    for i in range(TL_NF(m)):
        if s.mode[i] & 1:
            heat = slip_heat(m, s, i, x, wm, w1, four)
            if bad:
                s.e_fr[i] -= heat if heat > 0.0 else 0.0
            elif heat < 0.0 and pushes(s, i):
                s.e_fr[i] += heat
                k = TL_FR_ROW(m, i)
                count_heat(m, s, i, s.mode[i] * s.now.w[k], s.mode[i] * s.end.w[k])
    return bad


cdef inline void motion_taken(const tl_model* m, tl_state* s, double x, int32_t four, tl_cvec* wm, tl_cvec* w1) noexcept nogil:
    """Row speeds in the middle (three points) and at the end of the part x of the trial that is taken. For x < 1 s.end.u, s.end.z and
    s.um become those of the part."""
    wm[0] = s.em.w
    w1[0] = s.end.w
    if x == 1.0:
        return
    angles_at(m, four, x, s.h, s.now.u, s.now.z, s.now.a, s.end.hs1, s.s2, s.end.z)
    speeds_at(m, four, x, s.h, s.now.u, s.now.a, s.end.hs1, s.s2, s.end.u)
    gather(m, s.end.u, s.event.w)
    w1[0] = s.event.w
    if four:
        speeds_at(m, 1, 0.5 * x, s.h, s.now.u, s.now.a, s.end.hs1, s.s2, s.um)
        gather(m, s.um, s.event.wm)
        wm[0] = s.event.wm


cdef int32_t brakes_drive(const tl_model* m, const tl_state* s) noexcept nogil:
    """1 when an eddy-current brake would give heat back in a trial of three points: two points take over."""
    cdef int32_t i, k, p = TL_NTQ(m) + TL_NPOLY(m) + TL_NENG(m) + 2 * TL_NTC(m)
    for i in range(TL_NED(m)):
        k = m.ed[i].row
        if work_on(m, s, 1, k, 1.0, s.em.w[k], s.end.w[k], s.now.port[p + i], s.em.port[p + i], s.end.port[p + i]) > 0.0:
            return 1
    return 0


cdef inline int32_t balance_works(const tl_model* m, tl_state* s, double x, int32_t four) noexcept nogil:
    """Energy balance of the trial up to the fraction x. 1: refused, and nothing is added."""
    cdef int32_t i, k
    cdef tl_cvec w0 = s.now.w
    cdef tl_cvec wm
    cdef tl_cvec w1
    cdef tl_cvec p0 = s.now.port
    cdef tl_cvec pm = s.em.port
    cdef tl_cvec p1 = s.end.port
    if four and ((m.unresolved and gives_energy(m, s)) or (TL_NED(m) > 0 and brakes_drive(m, s))):
        return 1
    motion_taken(m, s, x, four, &wm, &w1)
    if balance_friction(m, s, x, wm, w1, four):
        return 1
    for i in range(TL_NPORT(m)):
        k = TL_PORT_ROW(m, i)
        s.e_port[i] += work_on(m, s, four, k, x, wm[k], w1[k], p0[i], pm[i], p1[i])
    if not four and s.n_eased > 0:
        eased_works(m, s, x, w1)
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        s.e_lin[i] += m.lin[i].d * work_on(m, s, four, k, x, wm[k], w1[k], w0[k], s.em.w[k], s.end.w[k])
    if TL_NCON(m) > 0:
        contact_balance(m, s, x)
    if TL_ND(m) > 0:
        driven_balance(m, s, x, wm, w1, four)
    if moving(m):
        ratio_balance(m, s, x, wm, w1, four)
    if TL_NJO(m) > 0:
        joint_balance(m, s, four)
    if TL_NBO(m) > 0:
        turn_bodies(m, s, x * s.h, w0, wm if four else NULL, w1, s.theta + x * s.part)
    return 0


cdef inline int32_t balance_trial(const tl_model* m, tl_state* s, double x, int32_t four) noexcept nogil:
    """balance_works, with the order as a constant."""
    return balance_works(m, s, x, 1) if four else balance_works(m, s, x, 0)


cdef inline double spring_error(const tl_model* m, const tl_state* s, int32_t k, double c, double x, double* turned) noexcept nogil:
    """Energy a spring c along row k takes from its potential beyond its work if the trial is truncated at x; adds to turned."""
    cdef double[5] p
    cdef double[4] v
    cdef double q0, qx, q1, wx, work
    along_row(m, s, k, s.now.w[k], s.wa[k], p, v)
    q0 = p[0]
    qx = angle_at(p, x)
    q1 = angle_at(p, 1.0)
    wx = poly_at(v[0], v[1], v[2], v[3], x)
    turned[0] += c * (fabs(q0 * qx) + qx * qx)
    # the mean of q0 does work on both sides of the comparison alike
    if not s.four:
        return c * (0.25 * x * s.h * (v[0] + wx) * x * q1 - 0.5 * qx * qx)
    work = x * s.h * work4(v[0], poly_at(v[0], v[1], v[2], v[3], 0.5 * x), wx, 0.0,
                           at(0.0, angle_at(p, 0.5), q1, 0.5 * x), at(0.0, angle_at(p, 0.5), q1, x))
    return c * (work - 0.5 * qx * qx)


cdef inline int32_t truncation_makes_energy(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """1 when springs would keep noticeably more or less than they take if the trial were truncated at x on its polynomial."""
    cdef int32_t i, k
    cdef double c, d, error = 0.0, turned = 0.0, tolerance = TRUNCATION_TOL_4 if s.four else TRUNCATION_TOL_2
    for i in range(TL_NLIN(m)):
        error += spring_error(m, s, TL_LIN_ROW(m, i), m.lin[i].c, x, &turned)
    for i in range(TL_NCON(m)):
        contact_stiffness(m, s, i, &c, &d)
        if c != 0.0:
            error += spring_error(m, s, m.con[i].row, c, x, &turned)
    if fabs(error) <= tolerance * turned:
        return 0
    for i in range(TL_NF(m)):
        if s.mode[i] & 1:
            k = TL_FR_ROW(m, i)
            turned += 0.5 * x * s.h * fabs(s.now.tau[i] * s.now.w[k])
    return fabs(error) > tolerance * turned


cdef inline int32_t of_joint(const tl_model* m, int32_t i) noexcept nogil:
    """1 where spring i is the mean of a joint shaft: its deflection is not what is stored."""
    cdef int32_t k
    for k in range(TL_NJO(m)):
        if m.jo[k].lin == i:
            return 1
    return 0


cdef int32_t gives_energy(const tl_model* m, tl_state* s) noexcept nogil:
    """1 when a trial of three points turns friction round in its middle, or lets a contact with an exponent give energy.
    (Springs and dampers cannot, by (45).)"""
    cdef int32_t i
    cdef double c, d
    cdef tl_balance b
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and s.mode[i] * s.em.w[TL_FR_ROW(m, i)] < -TOL_R:
            return 1
    if TL_NCON(m) == 0 or m.ncurved == 0:
        return 0
    b.turned = 0.0
    b.made = 0.0
    for i in range(TL_NF(m)):
        if s.mode[i] & 1:
            b.turned += s.h * fabs(s.em.tau[i] * s.em.w[TL_FR_ROW(m, i)])
    for i in range(TL_NPORT(m) - 2 * TL_NJO(m)):
        b.turned += s.h * fabs(s.em.port[i] * row_dot(m, TL_PORT_ROW(m, i), s.um))
    for i in range(TL_NLIN(m)):
        if TL_NJO(m) > 0 and of_joint(m, i):
            continue
        turned_along(m, s, TL_LIN_ROW(m, i), m.lin[i].c, m.lin[i].d, &b)
    for i in range(TL_NCON(m)):
        contact_stiffness(m, s, i, &c, &d)
        if curved(m, i):
            gap_balance(m, s, i, &b)
            continue
        turned_along(m, s, m.con[i].row, c, d, &b)
    return fabs(b.made) > BALANCE_TOL * b.turned


cdef inline void keep_curvature(const tl_model* m, tl_cvec s2, tl_vec hs1, tl_vec hs2) noexcept nogil:
    """How the acceleration goes on behind a whole trial of three points."""
    cdef int32_t i
    for i in range(TL_N(m)):
        hs1[i] += 2.0 * s2[i]
        hs2[i] = s2[i]


cdef inline void take_whole(const tl_model* m, tl_state* s, int32_t four) noexcept nogil:
    """The end of the trial becomes the present instant."""
    cdef tl_eval* swap = s.now
    cdef void** others = other_views(s)
    cdef void* other = others[0]
    take_governed(m, s, 1.0)
    if m.act_fills:
        fill_levels(m, s, s.theta + s.part)
    if four:
        keep_curvature(m, s.s2, s.end.hs1, s.hs2)
    s.now = s.end
    s.end = swap
    others[0] = others[1]
    others[1] = other
    s.parity[0] ^= 1
    if relaxes_at_once(m):
        relax_accelerations(m, s, s.theta + s.part)


cdef inline int32_t accept(const tl_model* m, tl_state* s, double theta, double x, int32_t renewed) noexcept nogil:
    """Make the trial at the fraction x the present state. theta: where in the step's inputs the trial began; renewed: behind
    it the capacities that are due are formed anew. Returns 1 when it is refused: the present state and the balance are as
    before."""
    cdef int32_t i, n = TL_N(m), four = s.four
    if s.unsolved:
        return 1
    if balance_trial(m, s, x, four):
        return 1
    if m.unresolved:
        keep_excess(m, s)
    s.hist[0] = HISTORY_HOLDS
    if x == 1.0:
        take_whole(m, s, four)
        if s.n_eased > 0:
            forget_history(m, s)             # the polynomial is that of the forces that acted
        return 0
    take_governed(m, s, x)
    reach_pressures(m, s, theta + x * s.part)
    for i in range(n):
        s.now.u[i] = s.end.u[i]
        s.now.z[i] = s.end.z[i]
    rates_at(m, x, s.now.a, s.end.hs1, s.s2)
    if not renewed:
        for i in range(n):
            s.now.hs1[i] = s.end.hs1[i] + 2.0 * x * s.s2[i]
            s.hs2[i] = s.s2[i]
    for i in range(TL_NHOT(m)):
        s.now.w[i] = s.event.w[i]
    lerp(forces_of(s.now), forces_of(s.em), forces_of(s.end), TL_NPORT(m) + 6 * TL_NF(m), x, four)
    if TL_NLS(m) > 0:
        lerp(s.now.rea, s.em.rea, s.end.rea, TL_NLS(m), x, four)
    relax_speeds(m, s, theta + x * s.part)
    relax_accelerations(m, s, theta + x * s.part)
    return 0
