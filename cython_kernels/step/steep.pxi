# Forces along rows that change so steeply with the speed that they would be wrong at a predicted speed: friction of sliding
# elements, and ports. They are found with the accelerations of the trial. The unknowns are forces k at points of the trial,
#
#   k_r = law_r(x_r)        x = w + H k
#
# x the speeds the laws are taken at, H their responses to the forces. Each round finds, for each force alone, the speed that
# balances it while the others stay as they are,
#
#   x_r = y_r + H_rr law_r(x_r)        y_r = x_r - H_rr k_r
#
# (its left side less its right rises with x_r where the law falls, however steeply), and solves for all forces together with
# every law linear about that speed: Newton's method. Where laws are piecewise linear the segments are right after a few rounds and the
# answer is exact (M. Hintermueller, K. Ito, K. Kunisch, The primal-dual active set strategy as a semismooth Newton method, SIAM
# J. Optim. 13 (2002) 865-888). Where the rounds do not end, forces are followed from small multiples of H to H.
#
# Which points, and how the forces act at the stages, depends on the form:
#
#   AT_NODES     friction: at the stages, as everything else. A slip ends in an event, so what it would do beyond does not matter.
#   FROM_START   ports: Lobatto IIIC. A port has no event at standstill: the motion comes to rest along the steep part of the law, and
#                Lobatto IIIA, which does not damp what it does not resolve, would ring for ever. IIIC takes the law at a third
#                speed, too, at the start, and lets nothing of an unresolved speed be left (L-stable). Both have the same weights and
#                nodes, so orders 2 and 4 are kept.
#   AT_MEAN      eddy-current brakes with two points: the law at the mean speed, whose heat never falls.
#
# Forces at the start of the trial, tau_0, are what they were, so what acts at the stages makes the impulses those of the form:
#
#   FROM_START   two points: k_0 + k_1 - tau_0 at the end            three: k_m + (k_0 - tau_0)/4 in the middle, k_1 at the end
#   AT_MEAN      2 k - tau_0 at the end
#
# Equations: (34) to (36), (65).

#: rad/s, m/s: a speed of which ends of segments, and the shape of laws, are no smaller part
cdef double SLOW = 1e-3
#: of the speed, and of SLOW: over so much of it the slope of a port is a difference quotient
cdef double STEEP_APART = 1e-7

cdef enum:
    AT_NODES = 0           # forms
    FROM_START = 1
    AT_MEAN = 2
    START = -1             # a point: the start of the trial; the others are numbered as the stages


cdef struct tl_along:
    # a force along a row by a law of the speed
    int32_t row
    int32_t fr             # its friction element, or -1:
    int32_t port           # its port
    int32_t form
    int32_t other          # converters: how many laws further the other side is, 1 or -1; else 0
    double sgn             # friction: the way it slides
    const tl_table1* curve


cdef struct tl_steep:
    int32_t stages
    int32_t nl             # forces
    tl_along* law          # (nl)
    double* acted          # (nl, stages) how each has acted so far
    int32_t size           # unknowns
    double part            # of the responses
    int32_t* of            # (size) force of each unknown
    int32_t* at            # (size) its point
    double* H              # (size, size) responses of the speeds to the unknowns
    double* A              # (size, size) matrix of a round
    double* w              # (size) speeds without the unknowns
    double* k              # (size)
    double* x              # (size) speed each law is linear about,
    double* f              # (size) its force there,
    double* slope          # (size) its slope,
    double* across         # (size) and its slope over the speed of the other side
    double* b              # (size) forces of a round
    double* known          # (size) forces with a part of the responses


cdef inline int32_t acts_along(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when friction element i has a capacity against the slip it has."""
    return (m.fr[i].fwd if s.mode[i] > 0 else m.fr[i].bwd) == CAPPED


cdef inline double* force_of(tl_eval* e, const tl_along* q) noexcept nogil:
    """Where an instant holds a force."""
    return &e.tau[q.fr] if q.fr >= 0 else &e.port[q.port]


cdef inline double share_of(const tl_steep* p, const tl_along* q, int32_t at, int32_t st) noexcept nogil:
    """How much of the force at a point acts at a stage."""
    if q.form == AT_MEAN:
        return 2.0
    if at == START:
        return 1.0 if p.stages == 1 else (0.25 if st == 0 else 0.0)
    return 1.0 if at == st else 0.0


cdef inline double share_of_now(const tl_steep* p, const tl_along* q, int32_t st) noexcept nogil:
    """And how much of that at the start."""
    if q.form == AT_NODES or (p.stages == 2 and st == 1):
        return 0.0
    return -1.0 if p.stages == 1 else -0.25


cdef inline double inner(int32_t stages, int32_t at, int32_t point) noexcept nogil:
    """FROM_START: how much further the speed at a point is than at its stage (at the start: than now), per force at another point and
    response: Lobatto IIIC less what acts at the stages."""
    if at == START and stages == 1:
        return 0.5 if point == START else -0.5
    if at == START:
        return -1.0 / 3.0 if point == 0 else 1.0 / 6.0
    if at == 0 and stages == 2:
        return -1.0 / 24.0 if point == 1 else 1.0 / 12.0
    return 0.0


cdef inline void add_law(tl_steep* p, int32_t row, int32_t fr, int32_t port, int32_t form, int32_t other, double sgn,
                         const tl_table1* curve) noexcept nogil:
    cdef tl_along* q = p.law + p.nl
    q.row = row
    q.fr = fr
    q.port = port
    q.form = form
    q.other = other
    q.sgn = sgn
    q.curve = curve
    p.nl += 1


cdef inline int32_t passes(const tl_state* s, int32_t stages, int32_t row, double lo, double hi) noexcept nogil:
    """1 when a point of the trial is where a torque is steep."""
    return passes_steep(s, s.end, row, lo, hi) or (stages == 2 and passes_steep(s, s.em, row, lo, hi))


cdef inline int32_t steep_converter(const tl_model* m, const tl_eval* e, int32_t i) noexcept nogil:
    """1 when the torques of a converter are steep at an instant."""
    cdef int32_t[3] hint
    cdef double pump, turbine
    cdef int64_t steep = 0
    hint[0] = hint[1] = hint[2] = 0
    converter_torques(m, i, e.w[m.tc[i].row_p], e.w[m.tc[i].row_t], hint, &pump, &turbine, &steep)
    return steep != 0


cdef void find_steep(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """The forces and the unknowns."""
    cdef int32_t i, l, st, port = TL_NTQ(m), two = p.stages == 2
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and not s.tied[i] and (s.end.steep[i] or (two and s.em.steep[i])):
            add_law(p, TL_FR_ROW(m, i), i, -1, AT_NODES, 0, <double>s.mode[i], &m.tab1[m.fr[i].mu])
    for i in range(TL_NPOLY(m)):
        if steep_resistance(m, s.end, i) or (two and steep_resistance(m, s.em, i)):
            add_law(p, m.poly[i].row, -1, port + i, FROM_START, 0, 0.0, NULL)
    port += TL_NPOLY(m)
    for i in range(TL_NENG(m)):
        if passes(s, p.stages, m.eng[i].row, m.eng[i].steep_lo, m.eng[i].steep_hi):
            add_law(p, m.eng[i].row, -1, port + i, FROM_START, 0, 0.0, NULL)
    port += TL_NENG(m)
    for i in range(TL_NTC(m)):
        if steep_converter(m, s.end, i) or (two and steep_converter(m, s.em, i)):
            add_law(p, m.tc[i].row_p, -1, port + i, FROM_START, 1, 0.0, NULL)
            add_law(p, m.tc[i].row_t, -1, port + TL_NTC(m) + i, FROM_START, -1, 0.0, NULL)
    port += 2 * TL_NTC(m)
    for i in range(TL_NED(m)):
        add_law(p, m.ed[i].row, -1, port + i, FROM_START if two else AT_MEAN, 0, 0.0, NULL)
    port += TL_NED(m)
    for i in range(TL_NCV(m)):
        if passes(s, p.stages, m.cv[i].row, m.cv[i].steep_lo, m.cv[i].steep_hi):
            add_law(p, m.cv[i].row, -1, port + i, FROM_START, 0, 0.0, NULL)
    port += TL_NCV(m)
    for i in range(TL_NWD(m)):
        if passes(s, p.stages, m.wd[i].row, m.wd[i].steep_lo, m.wd[i].steep_hi):
            add_law(p, m.wd[i].row, -1, port + i, FROM_START, 0, 0.0, NULL)
    for st in range(START, p.stages):
        for l in range(p.nl):
            if st >= 0 or p.law[l].form == FROM_START:
                p.of[p.size] = l
                p.at[p.size] = st
                p.size += 1


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


cdef double steep_law(const tl_model* m, tl_state* s, const tl_steep* p, int32_t r, double x, double other, double* slope,
                      double* across) noexcept nogil:
    """Force of unknown r at the speed x and its slope; over both speeds where it has two and `across` is asked for."""
    cdef const tl_along* q = p.law + p.of[r]
    cdef int32_t st = p.at[r], hint = 0
    cdef double f, d = STEEP_APART * (SLOW + fabs(x)), theta, c
    cdef const double* xi = s.xi
    if q.fr >= 0:
        c = m.fr[q.fr].cgeo * stage_eval(s, p.stages, st).raw[q.fr] if acts_along(m, s, q.fr) else 0.0
        slope[0] = -c * table1_slope(q.curve, q.sgn * x, &hint)
        return -q.sgn * c * table1(q.curve, q.sgn * x, &hint)
    theta = s.theta
    if q.form == AT_MEAN:
        theta += 0.5 * s.part
    elif st >= 0:
        theta = stage_theta(s, p.stages, st)
        xi = s.xi1 if st == p.stages - 1 else s.xim
    f = port_force(m, s, q.port, x, other, theta, xi)
    slope[0] = (port_force(m, s, q.port, x + d, other, theta, xi) - f) / d
    if across != NULL and q.other:
        d = STEEP_APART * (SLOW + fabs(other))
        across[0] = (port_force(m, s, q.port, x, other + d, theta, xi) - f) / d
    return f


cdef inline double acts_at(const tl_state* s, tl_eval* e, const tl_along* law) noexcept nogil:
    """How a force acts at a stage as it stands."""
    cdef int32_t c
    cdef double acts = force_of(e, law)[0]
    for c in range(s.n_eased):
        if s.eased[c] == law.port and e == s.end:
            acts += s.eased_by[c]
    return acts


cdef void add_response(const tl_model* m, const tl_state* s, int32_t stages, int32_t row, int32_t at, double f, double* w) noexcept nogil:
    """w (stages*n) += speeds at the stages that answer a force f along a row at the stage `at`."""
    cdef int32_t i, j, n = TL_N(m)
    cdef double x
    cdef const double* P
    if f == 0.0:
        return
    for j in range(m.row_ptr[row], m.row_ptr[row + 1]):
        x = s.h * f * m.row_val[j]
        if stages == 1:
            axpy(0.5 * x, s.pat.P + m.row_idx[j] * n, w, 0, n)
            continue
        P = s.pat.P4 + (at * n + m.row_idx[j]) * 2 * n
        for i in range(n):
            w[i] += x * to_middle(0.0, P[i], P[n + i])
            w[n + i] += x * to_end(0.0, P[i], P[n + i])


cdef inline double speed_at(const tl_model* m, const tl_state* s, const tl_steep* p, int32_t r, const double* u, double now) noexcept nogil:
    """Speed that the law of unknown r is taken at, but for `inner`; u: speeds at the stages, now: the present one."""
    cdef const tl_along* q = p.law + p.of[r]
    if p.at[r] == START:
        return now
    if q.form == AT_MEAN:
        return 0.5 * (now + row_dot(m, q.row, u))
    return row_dot(m, q.row, u + p.at[r] * TL_N(m))


cdef void lay_steep(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """Responses, and speeds without the unknowns."""
    cdef int32_t r, q, l, st, j, i, n = TL_N(m)
    cdef int64_t here = mark(s)
    cdef double* col = scratch(s, p.stages * n)
    cdef double* at_once = scratch(s, n)
    cdef double x
    cdef const tl_along* law
    stage_motion(m, s, p.stages, s.end.a if p.stages == 1 else s.v2)
    for l in range(p.nl):
        law = p.law + l
        for st in range(p.stages):
            p.acted[l * p.stages + st] = acts_at(s, stage_eval(s, p.stages, st), law)
            x = share_of_now(p, law, st) * force_of(s.now, law)[0] - p.acted[l * p.stages + st]
            add_response(m, s, p.stages, law.row, st, x, s.us)
    for r in range(p.size):
        p.w[r] = speed_at(m, s, p, r, s.us, s.now.w[p.law[p.of[r]].row])
        p.k[r] = force_of(stage_eval(s, p.stages, p.at[r] if p.at[r] >= 0 else 0), p.law + p.of[r])[0]
    for q in range(p.size):
        law = p.law + p.of[q]
        memset(col, 0, p.stages * n * sizeof(double))
        for st in range(p.stages):
            add_response(m, s, p.stages, law.row, st, share_of(p, law, p.at[q], st), col)
        for r in range(p.size):
            p.H[r * p.size + q] = speed_at(m, s, p, r, col, 0.0)
        if law.form != FROM_START:
            continue
        memset(at_once, 0, n * sizeof(double))
        for j in range(m.row_ptr[law.row], m.row_ptr[law.row + 1]):
            axpy(s.h * m.row_val[j], s.pat.P0 + m.row_idx[j] * n, at_once, 0, n)
        for r in range(p.size):
            if p.law[p.of[r]].form == FROM_START:
                x = row_dot(m, p.law[p.of[r]].row, at_once)
                p.H[r * p.size + q] += x * inner(p.stages, p.at[r], p.at[q])
                if p.stages == 2 and p.at[r] == 0 and p.at[q] == START:
                    p.w[r] -= 0.125 * x * force_of(s.now, law)[0]
    release(s, here)
