# Forces that change steeply with the speed, found with the accelerations: Newton's method, and what follows from its answer.
# The equations are those of steep.pxi.
#
# Equations: (34), (65).

#: of the largest force of these laws: what is left is rounding
cdef double STEEP_TOL = 1e-13
#: of a force: found again with so little change it is what it was
cdef double STEEP_SAME = 1e-12
#: of the terms of a speed, and of SLOW: its rounding
cdef double STEEP_ROUNDING = 1e-15
#: of the largest force: forces further off when the rounds are over are counted (TL_C_STEEP)
cdef double STEEP_UNSOLVED = 1e-6

cdef enum:
    STEEP_ROUNDS = 100     # 1 to 3 are usual
    STAGE_ROUNDS = 12      # with losses or changing ratios; 2 or 3 are usual
    STEEP_TRIES = 8        # of them for the responses as they are, or a part of them
    ALONE_ROUNDS = 60      # for one force alone; 2 or 3 are usual, halving alone needs 53


cdef inline double speed_of(const tl_steep* p, int32_t r, double* size) noexcept nogil:
    """Speed of unknown r with the forces found so far; size: of its terms."""
    cdef int32_t q
    cdef double w = p.w[r], term
    size[0] = fabs(w)
    for q in range(p.size):
        term = p.part * p.H[r * p.size + q] * p.k[q]
        w += term
        size[0] += fabs(term)
    return w


cdef double balance_alone(const tl_model* m, tl_state* s, const tl_steep* p, int32_t r, double x, double other) noexcept nogil:
    """The speed of unknown r that balances it while the others stay as they are, from x on: x = y + H law(x)."""
    cdef double H = p.part * p.H[r * p.size + r], y = x - H * p.k[r], lo = 0.0, hi = 0.0, f, g, slope = 0.0, next
    cdef int32_t it, below = 0, above = 0
    for it in range(ALONE_ROUNDS):
        f = steep_law(m, s, p, r, x, other, &slope, NULL)
        g = x - y - H * f
        if not fabs(g) > STEEP_ROUNDING * (fabs(x) + fabs(y) + fabs(H * f)):
            break
        if g > 0.0:
            hi = x
            above = 1
        else:
            lo = x
            below = 1
        slope = 1.0 - H * slope
        next = x - g / slope if slope > 0.0 else x - g
        if below and above and not lo < next < hi:
            next = 0.5 * (lo + hi)
        if next == x:
            break
        x = next
    return x


cdef double make_linear(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """Each law becomes linear about the speed that balances it alone. By how much a force misses its law, of the largest; 0 where that
    is rounding."""
    cdef int32_t r
    cdef double x, size, other = 0.0, far = 0.0, slope = 0.0, scale = 0.0
    for r in range(p.size):
        scale = larger(scale, fabs(p.k[r]))
    for r in range(p.size):
        x = speed_of(p, r, &size)
        if p.law[p.of[r]].other:
            other = speed_of(p, r + p.law[p.of[r]].other, &slope)
        p.b[r] = steep_law(m, s, p, r, x, other, &slope, NULL)
        scale = larger(scale, fabs(p.b[r]))
        # rounding of the speed counts as often as the law is steep
        x = fabs(p.b[r] - p.k[r]) - STEEP_ROUNDING * (size + SLOW) * fabs(slope)
        far = x if not x <= far else far
    if not far > STEEP_TOL * scale:
        return 0.0
    for r in range(p.size):
        x = speed_of(p, r, &size)
        if p.law[p.of[r]].other:
            other = speed_of(p, r + p.law[p.of[r]].other, &slope)
        p.x[r] = balance_alone(m, s, p, r, x, other)
        p.across[r] = 0.0
        p.f[r] = steep_law(m, s, p, r, p.x[r], other, &p.slope[r], &p.across[r]) - p.across[r] * other
    return far / scale


cdef int32_t linear_forces(const tl_steep* p) noexcept nogil:
    """All forces together, each law linear; 1 where nothing balances them, and they stay."""
    cdef int32_t r, q, o
    for r in range(p.size):
        o = r + p.law[p.of[r]].other
        p.b[r] = p.f[r] + p.slope[r] * (p.w[r] - p.x[r]) + p.across[r] * p.w[o]
        for q in range(p.size):
            p.A[r * p.size + q] = (1.0 if q == r else 0.0) - p.part * (
                p.slope[r] * p.H[r * p.size + q] + p.across[r] * p.H[o * p.size + q])
    if lu_solve(p.A, p.size, p.b, 1):
        return 1
    memcpy(p.k, p.b, p.size * sizeof(double))
    return 0


cdef double find_forces(const tl_model* m, tl_state* s, tl_steep* p) noexcept nogil:
    """All unknowns. By how much one misses its law in the end, of the largest."""
    cdef int32_t it = 0, tries = 0
    cdef double left = 0.0, done = 0.0, length = 1.0
    p.part = 1.0
    memcpy(p.known, p.k, p.size * sizeof(double))
    while it < STEEP_ROUNDS:
        left = make_linear(m, s, p)
        if left == 0.0:
            if p.part == 1.0:
                break
            # as far as that again
            done = p.part
            memcpy(p.known, p.k, p.size * sizeof(double))
        elif tries < STEEP_TRIES and not linear_forces(p):
            it += 1
            tries += 1
            continue
        else:
            memcpy(p.k, p.known, p.size * sizeof(double))
            length *= 0.25
        length *= 2.0
        p.part = done + length if done + length < 1.0 else 1.0
        length = p.part - done
        tries = 0
        it += 1
    return left if p.part == 1.0 else 1.0


cdef int32_t take_force(const tl_model* m, tl_state* s, const tl_steep* p, int32_t l) noexcept nogil:
    """What force l is at the stages, and how it acts there; 1 when it acts otherwise than it did."""
    cdef const tl_along* law = p.law + l
    cdef int32_t r, st, found = 0
    cdef double acts, acted, tau = 0.0, size, theta
    cdef tl_eval* e
    for st in range(p.stages):
        e = stage_eval(s, p.stages, st)
        acts = share_of_now(p, law, st) * force_of(s.now, law)[0]
        for r in range(p.size):
            if p.of[r] == l:
                acts += share_of(p, law, p.at[r], st) * p.k[r]
                tau = p.k[r]
        acted = p.acted[l * p.stages + st]
        found |= fabs(acts - acted) > STEEP_SAME * (fabs(acts) + fabs(acted))
        add_along(m, law.row, acts - acted, s.g + st * TL_N(m))
        force_of(e, law)[0] = acts
    if law.fr >= 0:
        for st in range(p.stages):
            e = stage_eval(s, p.stages, st)
            if law.sgn > 0.0:
                e.cap_f[law.fr] = -e.tau[law.fr]
            else:
                e.cap_b[law.fr] = e.tau[law.fr]
        return found
    if law.form == AT_MEAN:
        # the law at the end, whose speed is as far beyond the mean as the mean is beyond that of now
        r = 0
        while p.of[r] != l:
            r += 1
        theta = s.theta + s.part
        tau = port_force(m, s, law.port, 2.0 * speed_of(p, r, &size) - s.now.w[law.row], 0.0, theta, s.xi1)
    s.eased[s.n_eased] = law.port
    s.eased_by[s.n_eased] = s.end.port[law.port] - tau
    s.end.port[law.port] = tau
    s.n_eased += 1
    return found


cdef int32_t solve_steep(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Steep forces, solved together with the speeds; 1 when they were not those that were there already.

    On entry a1 (or v2 = [am, a1]) answers s.g with the forces at predicted speeds; on return s.g holds those found here.
    """
    cdef int32_t l, found = 0, laws = TL_NF(m) + TL_NPORT(m), most = 3 * laws
    cdef int64_t here = mark(s)
    cdef tl_steep p
    p.stages = stages
    p.nl = 0
    p.size = 0
    p.law = <tl_along*>scratch(s, laws * (sizeof(tl_along) // sizeof(double)))
    p.of = scratch_ints(s, most)
    p.at = scratch_ints(s, most)
    find_steep(m, s, &p)
    p.H = scratch(s, p.size * p.size)
    p.A = scratch(s, p.size * p.size)
    p.w = scratch(s, p.size)
    p.k = scratch(s, p.size)
    p.x = scratch(s, p.size)
    p.f = scratch(s, p.size)
    p.slope = scratch(s, p.size)
    p.across = scratch(s, p.size)
    p.b = scratch(s, p.size)
    p.known = scratch(s, p.size)
    p.acted = scratch(s, p.nl * stages)
    if p.size > 0:
        lay_steep(m, s, &p)
    s.n_eased = 0
    if p.size > 0:
        if not find_forces(m, s, &p) <= STEEP_UNSOLVED:
            s.counters[TL_C_STEEP] += 1
            s.unsolved = TL_NED(m) > 0
        for l in range(p.nl):
            found |= take_force(m, s, &p, l)
    release(s, here)
    return found


cdef void move_steeply(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Steep forces and the accelerations that answer them. Losses and changing ratios answer forces in a way that the responses of the
    pattern do not have, so forces are found again from the motion they give."""
    cdef int32_t it = 0, rounds = STAGE_ROUNDS if TL_NLS(m) > 0 or moving(m) else 1
    while it < rounds and solve_steep(m, s, stages):
        answer_forces(m, s, stages)
        it += 1


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
