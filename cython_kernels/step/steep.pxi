# Forces along rows that rise so steeply with the speed that they would be wrong at a predicted speed: friction of sliding elements
# and ports with a curve. They are found with the accelerations of the trial. The unknowns are the forces tau at the stages,
#
#   tau_r = -sgn f_r curve_r(x_r)        x_r = sgn w_r        w = w* + H (tau - tau*)
#
# H the responses of the speeds along the rows to the forces, tau* the forces at predicted speeds. Each curve is piecewise linear, so the
# solution is that of a linear system once it is known on which segment of its curve each force is. As long as the others stay as
# they are, a force is on the segment where
#
#   x_r + H_rr f_r curve_r(x_r) = x*_r - sgn H_rr tau*_r        (the left side rises with x_r, however steep the curve is)
#
# and the segments are looked for in turn with the forces until none changes: one round for a single force. This is the
# active-set form of Newton's method for piecewise linear equations (M. Hintermueller, K. Ito, K. Kunisch, The primal-dual active
# set strategy as a semismooth Newton method, SIAM J. Optim. 13 (2002) 865-888).
#
# The force of a port has no event at standstill: the motion comes to rest along the steep part of its curve. Points
# of Lobatto do not damp what they do not resolve, and it would ring for ever. Where the step is that long, the force is *eased*: it acts over the whole step
# with the value of its end, which divides what is left of the speed by 1 + z in each step, z = h slope H (backward Euler in
# this force alone, L-stable). The force at the start, tau_0, stays what it was, so the stages act with
#
#   two points:     2 tau - tau_0 at the end                     three:   5/4 tau - 1/4 tau_0 in the middle, tau at the end
#
# whose means over the step are tau. On the steep part the speed is off by h tau'/(2 slope): the less, the steeper.
#
# Equations: (34) to (36).

#: of the largest force of these curves: forces further off when the rounds are over are counted (TL_C_STEEP)
cdef double STEEP_UNSOLVED = 1e-6

#: h/2 * slope * compliance, over STIFF (derive.py): 1, beyond which what has not decayed within a step changes its sign in the next
cdef double RINGING = 5.0

cdef enum:
    SEGMENT_ROUNDS = 16    # 1 to 3 are usual
    ALL_AT_ONCE = 8        # of them the first, in which all forces may change their segment; then one does
    NOWHERE = -2           # instead of a segment, before the first round


cdef struct tl_along:
    # a force along a row by a curve of the speed: tau = -sgn f curve(sgn w)
    int32_t row
    int32_t fr             # its friction element, or -1:
    int32_t port           # its port
    int32_t eased          # 1: over the whole step it has the value of the end
    double sgn
    const tl_table1* curve


cdef struct tl_steep:
    int32_t stages
    int32_t nl             # forces
    tl_along* law          # (nl)
    int32_t size           # unknowns: each force at each stage, of those that are eased the end
    int32_t* of            # (size) force of each unknown
    int32_t* at            # (size) its stage
    int32_t* on            # (size) segment of its curve it is on: j from point j on, -1 before the first
    double* H              # (size, size) responses of the speeds to the unknowns
    double* A              # (size, size) matrix of a round
    double* w              # (size) speeds without the unknowns
    double* tau            # (size)


cdef inline int32_t acts_along(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when friction element i has a capacity against the slip it has."""
    return (m.fr[i].fwd if s.mode[i] > 0 else m.fr[i].bwd) == CAPPED


cdef inline double* force_of(tl_eval* e, const tl_along* q) noexcept nogil:
    """Where an instant holds a force."""
    return &e.tau[q.fr] if q.fr >= 0 else &e.port[q.port]


cdef inline double factor_of(const tl_model* m, const tl_state* s, const tl_eval* e, const tl_along* q) noexcept nogil:
    """f of a force at an instant."""
    if q.fr < 0:
        return -m.cv[q.port - curve_port(m, 0)].gain
    return m.fr[q.fr].cgeo * e.raw[q.fr] if acts_along(m, s, q.fr) else 0.0


cdef inline double share_of_end(const tl_steep* p, int32_t st) noexcept nogil:
    """How much of its end an eased force has at a stage; the rest of 1 is that of its start."""
    return 1.0 if st == 1 else (2.0 if p.stages == 1 else 1.25)


cdef void find_steep(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """The forces and the unknowns."""
    cdef int32_t i, l, st
    cdef tl_along* q
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and not s.tied[i] and (s.end.steep[i] or (p.stages == 2 and s.em.steep[i])):
            q = p.law + p.nl
            q.row = TL_FR_ROW(m, i)
            q.fr = i
            q.sgn = <double>s.mode[i]
            q.curve = &m.tab1[m.fr[i].mu]
            q.eased = 0
            p.nl += 1
    for i in range(TL_NCV(m)):
        if steep_curve(m, s, i, s.end) or (p.stages == 2 and steep_curve(m, s, i, s.em)):
            q = p.law + p.nl
            q.row = m.cv[i].row
            q.fr = -1
            q.port = curve_port(m, i)
            q.sgn = 1.0
            q.curve = &m.tab1[m.cv[i].tab1]
            q.eased = m.cv[i].stiff > RINGING
            p.nl += 1
    for st in range(p.stages):
        for l in range(p.nl):
            if st == p.stages - 1 or not p.law[l].eased:
                p.of[p.size] = l
                p.at[p.size] = st
                p.on[p.size] = NOWHERE
                p.size += 1


cdef void add_response(const tl_model* m, const tl_state* s, int32_t stages, int32_t row, int32_t at, double f, double* w) noexcept nogil:
    """w (stages*n) += speeds at the stages that answer a force f along a row at the stage `at`."""
    cdef int32_t i, j, n = TL_N(m)
    cdef double x
    cdef const double* P
    for j in range(m.row_ptr[row], m.row_ptr[row + 1]):
        x = s.h * f * m.row_val[j]
        if stages == 1:
            axpy(0.5 * x, s.pat.P + m.row_idx[j] * n, w, 0, n)
            continue
        P = s.pat.P4 + (at * n + m.row_idx[j]) * 2 * n
        for i in range(n):
            w[i] += x * to_middle(0.0, P[i], P[n + i])
            w[n + i] += x * to_end(0.0, P[i], P[n + i])
    if other_span(m, s):
        axpy(0.5 * s.h * f * s.length.bend * row_dot(m, row, s.length.along), s.length.along, w, 0, n)


cdef void lay_steep(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """Responses, and speeds without the unknowns."""
    cdef int32_t r, q, l, st, n = TL_N(m)
    cdef int64_t here = mark(s)
    cdef double* col = scratch(s, p.stages * n)
    cdef double f
    cdef const tl_along* law
    stage_motion(m, s, p.stages, s.end.a if p.stages == 1 else s.v2)
    for l in range(p.nl):
        law = p.law + l
        for st in range(p.stages):
            f = -force_of(stage_eval(s, p.stages, st), law)[0]
            if law.eased:
                f += (1.0 - share_of_end(p, st)) * force_of(s.now, law)[0]
            add_response(m, s, p.stages, law.row, st, f, s.us)
    for q in range(p.size):
        law = p.law + p.of[q]
        memset(col, 0, p.stages * n * sizeof(double))
        if law.eased:
            for st in range(p.stages):
                add_response(m, s, p.stages, law.row, st, share_of_end(p, st), col)
        else:
            add_response(m, s, p.stages, law.row, p.at[q], 1.0, col)
        for r in range(p.size):
            p.H[r * p.size + q] = row_dot(m, p.law[p.of[r]].row, col + p.at[r] * n)
        p.w[q] = row_dot(m, law.row, s.us + p.at[q] * n)
        p.tau[q] = force_of(stage_eval(s, p.stages, p.at[q]), law)[0]
    release(s, here)


cdef inline double speed_of(const tl_steep* p, int32_t r) noexcept nogil:
    """Speed along the row of unknown r with the forces found so far."""
    cdef int32_t q
    cdef double w = p.w[r]
    for q in range(p.size):
        w += p.H[r * p.size + q] * p.tau[q]
    return w


cdef inline double segment_law(const tl_table1* t, int32_t j, double* slope) noexcept nogil:
    """The line of segment j of a curve: its value at 0, and its slope. Outside the curve goes on as table1 does."""
    cdef int32_t k = 0 if j < 0 else (j if j < t.n - 1 else t.n - 2)
    slope[0] = t.dy[k] if 0 <= j < t.n - 1 or (t.linear and t.n > 1) else 0.0
    k = 0 if j < 0 else j
    return t.y[k] - slope[0] * t.x[k]


cdef inline int32_t find_segment(const tl_table1* t, double f, double y) noexcept nogil:
    """The segment of the curve on which x + f curve(x) = y."""
    cdef int32_t lo = 0, hi = t.n, j
    while lo < hi:
        j = (lo + hi) // 2
        if t.x[j] + f * t.y[j] < y:
            lo = j + 1
        else:
            hi = j
    return lo - 1


cdef int32_t find_segments(const tl_model* m, tl_state* s, tl_steep* p, int32_t most) noexcept nogil:
    """The segment of each unknown with the forces of the others; up to `most` of them change. How many have."""
    cdef int32_t r, j, found = 0
    cdef const tl_along* law
    cdef double f, y, H
    for r in range(p.size):
        law = p.law + p.of[r]
        H = p.H[r * p.size + r]
        f = factor_of(m, s, stage_eval(s, p.stages, p.at[r]), law)
        y = law.sgn * (speed_of(p, r) - H * p.tau[r])
        j = find_segment(law.curve, H * f, y)
        if j != p.on[r] and found < most:
            p.on[r] = j
            found += 1
    return found


cdef int32_t segment_forces(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """Forces with each unknown on its segment; 1 where nothing balances them, and they stay."""
    cdef int32_t r, q, singular
    cdef int64_t here = mark(s)
    cdef double* x = scratch(s, p.size)
    cdef const tl_along* law
    cdef double f, slope
    for r in range(p.size):
        law = p.law + p.of[r]
        f = factor_of(m, s, stage_eval(s, p.stages, p.at[r]), law)
        x[r] = -law.sgn * f * segment_law(law.curve, p.on[r], &slope)
        x[r] -= f * slope * p.w[r]
        for q in range(p.size):
            p.A[r * p.size + q] = f * slope * p.H[r * p.size + q] + (1.0 if q == r else 0.0)
    singular = lu_solve(p.A, p.size, x, 1)
    if not singular:
        memcpy(p.tau, x, p.size * sizeof(double))
    release(s, here)
    return singular


cdef int32_t off_their_curves(const tl_model* m, tl_state* s, const tl_steep* p) noexcept nogil:
    """1 when a force is not what its curve says at the speed it gives."""
    cdef int32_t r, hint = 0
    cdef const tl_along* law
    cdef double f, worst = 0.0, scale = 0.0
    for r in range(p.size):
        law = p.law + p.of[r]
        f = factor_of(m, s, stage_eval(s, p.stages, p.at[r]), law) * table1(law.curve, law.sgn * speed_of(p, r), &hint)
        scale = larger(scale, fabs(f))
        worst = larger(worst, fabs(p.tau[r] + law.sgn * f))
    return worst > STEEP_UNSOLVED * scale


cdef void take_force(const tl_model* m, tl_state* s, const tl_steep* p, int32_t l, int32_t st, double tau) noexcept nogil:
    """Force l is tau at its stage; an eased one acts with what it has at the start, too."""
    cdef const tl_along* law = p.law + l
    cdef tl_eval* e = stage_eval(s, p.stages, st)
    cdef double old = force_of(e, law)[0], acts = tau
    if law.eased:
        acts = share_of_end(p, st) * tau + (1.0 - share_of_end(p, st)) * force_of(s.now, law)[0]
    if law.eased and p.stages == 1:
        s.eased[s.n_eased] = law.port
        s.eased_by[s.n_eased] = acts - tau
        s.n_eased += 1
    else:
        tau = acts
    force_of(e, law)[0] = tau
    if law.fr >= 0:
        if law.sgn > 0.0:
            e.cap_f[law.fr] = -tau
        else:
            e.cap_b[law.fr] = tau
    add_along(m, law.row, acts - old, s.g + st * TL_N(m))


cdef void solve_steep(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Steep forces, solved together with the speeds.

    On entry a1 (or v2 = [am, a1]) answers s.g with the forces at predicted speeds; on return s.g holds those found here.
    """
    cdef int32_t r, l, it = 0, most = TL_NF(m) + TL_NCV(m)
    cdef int64_t here = mark(s)
    cdef tl_steep p
    s.n_eased = 0
    p.stages = stages
    p.nl = 0
    p.size = 0
    p.law = <tl_along*>scratch(s, most * sizeof(tl_along) // sizeof(double))
    p.of = scratch_ints(s, 2 * most)
    p.at = scratch_ints(s, 2 * most)
    p.on = scratch_ints(s, 2 * most)
    find_steep(m, s, &p)
    p.H = scratch(s, p.size * p.size)
    p.A = scratch(s, p.size * p.size)
    p.w = scratch(s, p.size)
    p.tau = scratch(s, p.size)
    if p.size > 0:
        lay_steep(m, s, &p)
        while it < SEGMENT_ROUNDS and find_segments(m, s, &p, p.size if it < ALL_AT_ONCE else 1):
            it = SEGMENT_ROUNDS if segment_forces(m, s, &p) else it + 1
        if it == SEGMENT_ROUNDS and off_their_curves(m, s, &p):
            s.counters[TL_C_STEEP] += 1
        for r in range(p.size):
            l = p.of[r]
            take_force(m, s, &p, l, p.at[r], p.tau[r])
            if p.law[l].eased and stages == 2:
                take_force(m, s, &p, l, 0, p.tau[r])
    release(s, here)


cdef void settle_eased(const tl_model* m, tl_state* s) noexcept nogil:
    """Behind a trial of two points: accelerations and torques of the elements at rest at its end, with the forces of the end alone."""
    cdef int32_t c, i, j, n = TL_N(m), nf = TL_NF(m)
    cdef int64_t here = mark(s)
    cdef double* f = scratch(s, n)
    cdef double* a = scratch(s, n)
    cdef double* tau = scratch(s, nf)
    memset(f, 0, n * sizeof(double))
    memset(tau, 0, nf * sizeof(double))
    for c in range(s.n_eased):
        add_along(m, TL_PORT_ROW(m, s.eased[c]), -s.eased_by[c], f)
    hold_now(m, s.pat, f, a)
    for j in range(n):
        axpy(dot(m.M + j * n, a, 0, n) - f[j], s.pat.Tn + j * nf, tau, 0, nf)
        s.end.a[j] += a[j]
    for i in range(nf):
        if s.mode[i] == MODE_STUCK:
            s.end.tau[i] += tau[i]
    release(s, here)


cdef void eased_works(const tl_model* m, tl_state* s, double x, tl_cvec w1) noexcept nogil:
    """What eased forces of two points have done beyond what their ends say, up to the fraction x, into the works."""
    cdef int32_t c, k
    for c in range(s.n_eased):
        k = TL_PORT_ROW(m, s.eased[c])
        s.e_port[s.eased[c]] += work2(0.25 * x * s.h, x, s.now.w[k], w1[k], 0.0, s.eased_by[c])
