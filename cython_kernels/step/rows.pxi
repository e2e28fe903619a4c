# One solver for all laws along rows (row_laws.pxi), with the accelerations of a trial. The unknowns are forces k at points of it,
#
#   k_r = law_r(x_r, w_r)        x = x0 + Hx k,   w = w0 + Hw k
#
# x and w the angles and speeds the laws are taken at, Hx and Hw their responses to the forces by the lock pattern. Newton's method: in
# each round every law becomes linear, one that falls with its own motion about the motion that balances it alone. Where the rounds do
# not end, forces are followed from small multiples of the responses to the whole. Losses and changing ratios answer forces in a way
# that the pattern does not have: then forces are found again from the motion they give.
#
# Equations: (34) to (36), (65).

#: of the largest size of these laws: what is left is rounding
cdef double LAW_TOL = 1e-13
#: of a force: found again with so little change it is what it was
cdef double SAME_FORCE = 1e-12
#: of what a law gives of the terms of its motion: its rounding
cdef double LAW_ROUNDING = 1e-15
#: of the largest size: with more left when the rounds are over the forces are not found, and the trial is refused
cdef double UNSOLVED = 1e-9

cdef enum:
    LAW_ROUNDS = 100       # 1 to 3 are usual
    LAW_TRIES = 12         # of them for the responses as they are, or a part of them
    AGAIN_ROUNDS = 60      # with losses or changing ratios; 2 or 3 are usual
    ALONE_ROUNDS = 60      # for one force alone; 2 or 3 are usual, halving alone needs 53


cdef inline double* force_of(tl_eval* e, const tl_row_law* law) noexcept nogil:
    """Where an instant holds a force; NULL for those of contacts."""
    if law.kind == OF_FRICTION:
        return &e.tau[law.i]
    return &e.port[law.port] if law.port >= 0 else NULL


cdef inline double share_of(const tl_rows* p, const tl_row_law* law, int32_t at, int32_t st) noexcept nogil:
    """How much of the force at a point acts at a stage."""
    if law.form == AT_MEAN:
        return 2.0
    if at == START:
        return 1.0 if p.stages == 1 else (0.25 if st == 0 else 0.0)
    return 1.0 if at == st else 0.0


cdef inline double share_of_now(const tl_rows* p, const tl_row_law* law, int32_t st) noexcept nogil:
    """And how much of that at the start."""
    if law.form == AT_NODES or (p.stages == 2 and st == 1):
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


cdef void acting(const tl_model* m, tl_state* s, tl_rows* p) noexcept nogil:
    """How the forces act at the stages as they stand, and the unknowns that say so."""
    cdef int32_t l, st, c, r = 0
    cdef double* f
    for l in range(p.nl):
        for st in range(p.stages):
            f = force_of(stage_eval(s, p.stages, st), p.law + l)
            p.acted[l * p.stages + st] = f[0] if f != NULL else 0.0
        for c in range(s.n_eased):
            if p.law[l].kind == OF_PORT and s.eased[c] == p.law[l].port:
                p.acted[(l + 1) * p.stages - 1] += s.eased_by[c]
    for st in range(START, p.stages):
        for l in range(p.nl):
            if st >= 0 or p.law[l].form == FROM_START:
                f = force_of(stage_eval(s, p.stages, st if st >= 0 else 0), p.law + l)
                p.un[r].law = l
                p.un[r].at = st
                p.un[r].k = f[0] if f != NULL else 0.0
                p.un[r].apart = 0.0
                p.un[r].on = p.on + 2 * p.widest * r
                p.un[r].other_w = p.un[r].other_dx = p.un[r].other_dw = 0.0
                r += 1


cdef void add_response(const tl_model* m, const tl_state* s, const tl_rows* p, int32_t row, int32_t at, double f, double* u,
                       double* z) noexcept nogil:
    """u, z (stages*n) += speeds and angles at the stages that answer a force f along a row at the stage `at`."""
    cdef int32_t i, j, n = TL_N(m)
    cdef double x, um, u1
    cdef const double* P
    if f == 0.0:
        return
    for j in range(m.row_ptr[row], m.row_ptr[row + 1]):
        x = s.h * f * m.row_val[j]
        if p.stages == 1:
            P = s.pat.P + m.row_idx[j] * n
            axpy(0.5 * x, P, u, 0, n)
            if p.Hx != NULL:
                axpy(m.beta * s.h * x, P, z, 0, n)
            continue
        P = s.pat.P4 + (at * n + m.row_idx[j]) * 2 * n
        for i in range(n):
            um = x * to_middle(0.0, P[i], P[n + i])
            u1 = x * to_end(0.0, P[i], P[n + i])
            u[i] += um
            u[n + i] += u1
            if p.Hx != NULL:
                z[i] += s.h * to_middle(0.0, um, u1)
                z[n + i] += s.h * to_end(0.0, um, u1)


cdef inline double speed_at(const tl_model* m, const tl_rows* p, int32_t r, const double* u, double now) noexcept nogil:
    """Speed that the law of unknown r is taken at, but for `inner`; u: speeds at the stages, now: the present one."""
    cdef const tl_row_law* law = p.law + p.un[r].law
    if p.un[r].at == START:
        return now
    if law.form == AT_MEAN:
        return 0.5 * (now + row_dot(m, law.row, u))
    return row_dot(m, law.row, u + p.un[r].at * TL_N(m))


cdef void at_once(const tl_model* m, const tl_state* s, const tl_rows* p, int32_t q, double* col) noexcept nogil:
    """What `inner` adds to the responses to unknown q, and to the speeds without the unknowns. col: n doubles."""
    cdef int32_t j, r, n = TL_N(m)
    cdef const tl_row_law* law = p.law + p.un[q].law
    cdef double x
    memset(col, 0, n * sizeof(double))
    for j in range(m.row_ptr[law.row], m.row_ptr[law.row + 1]):
        axpy(s.h * m.row_val[j], s.pat.P0 + m.row_idx[j] * n, col, 0, n)
    for r in range(p.size):
        if p.law[p.un[r].law].form == FROM_START:
            x = row_dot(m, p.law[p.un[r].law].row, col)
            p.Hw[r * p.size + q] += x * inner(p.stages, p.un[r].at, p.un[q].at)
            if p.stages == 2 and p.un[r].at == 0 and p.un[q].at == START:
                p.un[r].apart -= 0.125 * x * force_of(s.now, law)[0]


cdef void lay_responses(const tl_model* m, tl_state* s, tl_rows* p) noexcept nogil:
    """Responses of all unknowns to each of them."""
    cdef int32_t r, q, st, n = TL_N(m)
    cdef int64_t here = mark(s)
    cdef double* u = scratch(s, p.stages * n)
    cdef double* z = scratch(s, p.stages * n)
    cdef const tl_row_law* law
    for q in range(p.size):
        law = p.law + p.un[q].law
        memset(u, 0, p.stages * n * sizeof(double))
        memset(z, 0, p.stages * n * sizeof(double))
        for st in range(p.stages):
            add_response(m, s, p, law.row, st, share_of(p, law, p.un[q].at, st), u, z)
        for r in range(p.size):
            p.Hw[r * p.size + q] = speed_at(m, p, r, u, 0.0)
            if p.Hx != NULL:
                p.Hx[r * p.size + q] = row_dot(m, p.law[p.un[r].law].row, z + p.un[r].at * n) if p.un[r].at >= 0 else 0.0
        if law.form == FROM_START:
            at_once(m, s, p, q, u)
    release(s, here)


cdef void free_motion_of_rows(const tl_model* m, tl_state* s, tl_rows* p) noexcept nogil:
    """Motion without the unknowns into s.us and s.zs, and along the rows of all unknowns."""
    cdef int32_t l, r, q, st, k, n = TL_N(m)
    cdef double x
    cdef const tl_row_law* law
    stage_motion(m, s, p.stages, s.v2)
    for l in range(p.nl):
        law = p.law + l
        for st in range(p.stages):
            x = -p.acted[l * p.stages + st]
            if law.form != AT_NODES:
                x += share_of_now(p, law, st) * force_of(s.now, law)[0]
            add_response(m, s, p, law.row, st, x, s.us, s.zs)
    for r in range(p.size):
        k = p.law[p.un[r].law].row
        p.un[r].w0 = speed_at(m, p, r, s.us, s.now.w[k]) + p.un[r].apart
        p.un[r].x0 = row_dot(m, k, s.zs + p.un[r].at * n) + m.row_off[k] if p.un[r].at >= 0 else 0.0


cdef void move_rows(tl_rows* p) noexcept nogil:
    """The motion along the rows of all unknowns with the forces found so far."""
    cdef int32_t r, q
    cdef double term
    cdef tl_unknown* u
    for r in range(p.size):
        u = p.un + r
        u.dx = u.dw = 0.0
        u.terms_x = fabs(u.x0)
        u.terms_w = fabs(u.w0)
        for q in range(p.size):
            term = p.part * p.Hw[r * p.size + q] * p.un[q].k
            u.dw += term
            u.terms_w += fabs(term)
            if p.Hx != NULL:
                term = p.part * p.Hx[r * p.size + q] * p.un[q].k
                u.dx += term
                u.terms_x += fabs(term)
        u.w = u.w0 + u.dw
        u.x = u.x0 + u.dx
    for r in range(p.size):
        q = r + fellow(p.law + p.un[r].law, 1) if p.law[p.un[r].law].group > 1 else r
        if q != r:
            p.un[r].other_w = p.un[q].w
            p.un[r].other_dw = p.un[q].dw
            p.un[r].other_dx = p.un[q].dx


cdef void balance_alone(const tl_model* m, tl_state* s, const tl_rows* p, int32_t r) noexcept nogil:
    """The motion of unknown r that balances it while the others stay as they are: of its angle, y + H law, for a contact, of its speed
    else."""
    cdef tl_unknown* u = p.un + r
    cdef int32_t it, below = 0, above = 0, angle = p.law[u.law].kind == OF_CONTACT
    cdef double Hx = p.part * p.Hx[r * p.size + r] if p.Hx != NULL else 0.0, Hw = p.part * p.Hw[r * p.size + r]
    cdef double H = Hx if angle else Hw, rate = Hw / Hx if Hx > 0.0 else 0.0
    cdef double y = (u.x if angle else u.w) - H * u.k, yw = u.w - Hw * u.k, yx = u.x - Hx * u.k
    cdef double x = u.x if angle else u.w, lo = 0.0, hi = 0.0, g, slope, next
    for it in range(ALONE_ROUNDS):
        law_of(m, s, p, r)
        g = x - y - H * u.f
        if not fabs(g) > LAW_ROUNDING * (fabs(x) + fabs(y) + fabs(H * u.f)):
            break
        if g > 0.0:
            hi = x
            above = 1
        else:
            lo = x
            below = 1
        slope = 1.0 - H * (u.on[0] + rate * u.on[1] if angle else u.on[1])
        next = x - g / slope if slope > 0.0 else x - g
        if below and above and not lo < next < hi:
            next = 0.5 * (lo + hi)
        if next == x:
            break
        x = next
        if angle:
            u.x = x
            u.w = yw + rate * (x - yx)
        else:
            u.w = x
    u.dx = u.x - u.x0
    u.dw = u.w - u.w0


cdef double make_linear(const tl_model* m, tl_state* s, tl_rows* p, int32_t predict) noexcept nogil:
    """Each law becomes linear. By how much a force misses its law, of the largest size; 0 where that is rounding. predict: joint
    shafts about the motion that was predicted for them."""
    cdef int32_t r
    cdef double miss, far = 0.0, scale = 0.0
    cdef const tl_row_law* law
    move_rows(p)
    for r in range(p.size):
        law_of(m, s, p, r)
        scale = larger(scale, larger(fabs(p.un[r].k), p.un[r].size))
    for r in range(p.size):
        miss = fabs(p.un[r].f - p.un[r].k) - LAW_ROUNDING * p.un[r].rounding
        far = miss if not miss <= far else far
    if not far > LAW_TOL * scale:
        return 0.0
    for r in range(p.size):
        law = p.law + p.un[r].law
        if law.kind != OF_JOINT:
            balance_alone(m, s, p, r)
        elif predict and law.place == 0:
            predict_joint(m, s, p, law, p.un + r)
    return far / scale


cdef int32_t linear_forces(const tl_rows* p) noexcept nogil:
    """All forces together, each law linear; 1 where nothing balances them, and they stay."""
    cdef int32_t r, q, o, k, n = p.size
    cdef const tl_unknown* u
    cdef const tl_row_law* law
    for r in range(n):
        u = p.un + r
        law = p.law + u.law
        p.b[r] = u.f
        for q in range(n):
            p.A[r * n + q] = 1.0 if q == r else 0.0
        for k in range(law.group):
            o = r + fellow(law, k)
            if k == 0 or law.kind == OF_JOINT:
                p.b[r] = p.b[r] - u.on[2 * k] * p.un[o].dx - u.on[2 * k + 1] * p.un[o].dw
            else:
                p.b[r] = p.b[r] - u.on[2 * k] * u.other_dx - u.on[2 * k + 1] * u.other_dw
            for q in range(n):
                p.A[r * n + q] -= p.part * u.on[2 * k + 1] * p.Hw[o * n + q]
                if p.Hx != NULL:
                    p.A[r * n + q] -= p.part * u.on[2 * k] * p.Hx[o * n + q]
    if lu_solve(p.A, n, p.b, 1):
        return 1
    for r in range(n):
        p.un[r].k = p.b[r]
    return 0


cdef double find_forces(const tl_model* m, tl_state* s, tl_rows* p, int32_t predict) noexcept nogil:
    """All unknowns. By how much one misses its law in the end, of the largest size."""
    cdef int32_t it = 0, tries = 0, r
    cdef double left = 0.0, done = 0.0, length = 1.0
    p.part = 1.0
    for r in range(p.size):
        p.un[r].known = p.un[r].k
    while it < LAW_ROUNDS:
        left = make_linear(m, s, p, predict and it == 0)
        if left == 0.0:
            if p.part == 1.0:
                break
            # as far as that again
            done = p.part
            for r in range(p.size):
                p.un[r].known = p.un[r].k
        elif tries < LAW_TRIES and not linear_forces(p):
            it += 1
            tries += 1
            continue
        elif (p.part == 1.0 and left <= UNSOLVED) or TL_NJO(m) > 0:
            # as near as rounding lets it; or a joint, whose laws do not fall with its motion, and may have other solutions
            break
        else:
            for r in range(p.size):
                p.un[r].k = p.un[r].known
            length *= 0.25
        length *= 2.0
        p.part = done + length if done + length < 1.0 else 1.0
        length = p.part - done
        tries = 0
        it += 1
    return left if p.part == 1.0 else 1.0


cdef int32_t take_force(const tl_model* m, tl_state* s, tl_rows* p, int32_t l) noexcept nogil:
    """What force l is at the stages, and how it acts there; 1 when it acts otherwise than it did."""
    cdef const tl_row_law* law = p.law + l
    cdef int32_t r, st, found = 0, mean = 0
    cdef double acts, acted, tau = 0.0
    cdef tl_eval* e
    for st in range(p.stages):
        e = stage_eval(s, p.stages, st)
        acts = share_of_now(p, law, st) * force_of(s.now, law)[0] if law.form != AT_NODES else 0.0
        for r in range(p.size):
            if p.un[r].law == l:
                acts += share_of(p, law, p.un[r].at, st) * p.un[r].k
                tau = p.un[r].k
                mean = r
        acted = p.acted[l * p.stages + st]
        found |= fabs(acts - acted) > SAME_FORCE * (fabs(acts) + fabs(acted))
        add_along(m, law.row, acts - acted, s.g + st * TL_N(m))
        p.acted[l * p.stages + st] = acts
        if law.kind != OF_CONTACT:
            force_of(e, law)[0] = acts
        if law.kind == OF_FRICTION:
            if s.mode[law.i] == MODE_FORWARD:
                e.cap_f[law.i] = -acts
            else:
                e.cap_b[law.i] = acts
    if law.form == AT_NODES:
        return found
    if law.form == AT_MEAN:
        # the law at the end, whose speed is as far beyond the mean as the mean is beyond that of now
        tau = port_force(m, s, law.i, 2.0 * p.un[mean].w - s.now.w[law.row], 0.0, s.theta + s.part, s.xi1)
    s.eased[s.n_eased] = law.port
    s.eased_by[s.n_eased] = s.end.port[law.port] - tau
    s.end.port[law.port] = tau
    s.n_eased += 1
    return found


cdef int32_t solve_rows(const tl_model* m, tl_state* s, int32_t stages, int32_t steep, int32_t rounds) noexcept nogil:
    """Forces of all laws along rows and the accelerations that answer them; s.unsolved: not found. steep: some friction or port may be.

    On entry s.v2 answers s.g with the forces at predicted motion; on return s.g holds those found here. rounds: how
    often they are found from the motion they give; 0: once, the accelerations are the caller's to find. 1 when the forces were not
    those that were there already."""
    cdef int32_t l, it = 0, found = 1, laws = (TL_NF(m) + TL_NPORT(m) if steep else 0) + 2 * TL_NJO(m) + TL_NWR(m) + m.ncurved
    cdef int64_t here = mark(s)
    cdef tl_rows p
    p.stages = stages
    p.law = <tl_row_law*>scratch(s, (laws * sizeof(tl_row_law) + 7) // sizeof(double))
    p.size = find_laws(m, s, &p, steep)
    if p.size == 0:
        s.n_eased = 0
        release(s, here)
        return 0
    p.un = <tl_unknown*>scratch(s, p.size * (sizeof(tl_unknown) // sizeof(double)))
    p.on = scratch(s, 2 * p.widest * p.size)
    p.acted = scratch(s, p.nl * stages)
    p.Hw = scratch(s, p.size * p.size)
    p.Hx = scratch(s, p.size * p.size) if TL_NJO(m) + m.ncurved > 0 else NULL
    p.A = scratch(s, p.size * p.size)
    p.b = scratch(s, p.size)
    acting(m, s, &p)
    lay_responses(m, s, &p)
    while found:
        free_motion_of_rows(m, s, &p)
        if not find_forces(m, s, &p, it == 0) <= UNSOLVED:
            s.unsolved = 1
            break
        s.n_eased = 0
        found = 0
        for l in range(p.nl):
            found |= take_force(m, s, &p, l)
        it += 1
        if rounds == 0:
            break
        if found:
            answer_forces(m, s, stages)
        if it == rounds:
            break
    release(s, here)
    return found


cdef void find_along_rows(const tl_model* m, tl_state* s, int32_t stages, int32_t steep) noexcept nogil:
    """Forces of all laws along rows, and the accelerations that answer them."""
    cdef int32_t again = TL_NLS(m) > 0 or moving(m)
    solve_rows(m, s, stages, steep, AGAIN_ROUNDS if again else 1)


cdef void settle_eased(const tl_model* m, tl_state* s) noexcept nogil:
    """Behind a trial of two points: accelerations and torques of the elements at rest at its end, with the forces of the end alone."""
    cdef int32_t c, i, j, n = TL_N(m), nf = TL_NF(m)
    cdef int64_t here = mark(s)
    cdef double* f = scratch(s, n)
    cdef double* a = scratch(s, n)
    cdef double* tau = scratch(s, nf)
    memset(f, 0, n * sizeof(double))
    for c in range(s.n_eased):
        add_along(m, TL_PORT_ROW(m, s.eased[c]), -s.eased_by[c], f)
    hold_now(m, s.pat, f, a)
    missing_torques(m, s, m.M, a, f, tau)
    for j in range(n):
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
