# Losses: friction along the row w whose torque depends on a reaction r (the torque a gear transmits, a mesh force).
#
#   w > 0:  loss = max(kA r + cA, kB r + cB)
#   w < 0:  loss = min(kA r - cA, kB r - cB)
#   w = 0:  anything between the two that keeps it so
#
# tau = -loss acts along the row. The two linear laws belong to the two directions of power; the one that holds is the
# `branch` (0: A, 1: B), and its change, where both agree, is an event. LossyGear: kA = 1 - eta1, kB = 1 - 1/eta2,
# cA = |tbf1|, cB = |tbf2|, r the torque on flange_a; a mesh with force-pole offset f: kA = f, kB = -f, r the mesh force.

# Decisions know the torques to the shift of the boxed problem (1e-9); events must not ask again about less than that.
cdef double BRANCH_TOL = 1e-8          # of the terms compared, for a change of branch
cdef double ROUNDING = 1e-9            # of a reaction, relative to the terms it is a sum of
cdef double RANGE_TOL = 1e-8           # of the torque of a loss at rest, at the end of its range
cdef double NIL = 1e-11                # N.m or N: a driveline at rest without load has torques of rounding only


cdef inline void loss_terms(const tl_model* m, const tl_state* s, int32_t l, double w, double theta, double* kA, double* cA,
                            double* kB, double* cB) noexcept nogil:
    """The two laws of loss l at the speed w (or at its input)."""
    cdef const int32_t* t = m.ls[l].tab
    cdef double x = fabs(w) if m.ls[l].input < 0 else input_at(m, s, m.ls[l].input, theta)
    cdef int32_t* hint = s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m) + TL_NF(m) + 2 * TL_NCV(m) + 4 * l
    kA[0] = table1(&m.tab1[t[0]], x, hint)
    kB[0] = table1(&m.tab1[t[1]], x, hint + 1)
    cA[0] = fabs(table1(&m.tab1[t[2]], x, hint + 2))
    cB[0] = fabs(table1(&m.tab1[t[3]], x, hint + 3))
    if m.ls[l].form == 0:
        kA[0] = 1.0 - kA[0]
        kB[0] = 1.0 - 1.0 / kB[0]


cdef inline void loss_law(const tl_model* m, const tl_state* s, int32_t l, double w, double theta, int64_t branch,
                          int64_t mode, double* slope, double* const_) noexcept nogil:
    """loss = slope*r + const_ in a branch while sliding (mode 1 or -1)."""
    cdef double kA, cA, kB, cB
    loss_terms(m, s, l, w, theta, &kA, &cA, &kB, &cB)
    slope[0] = kB if branch else kA
    const_[0] = (cB if branch else cA) * mode


cdef inline void loss_range(const tl_model* m, const tl_state* s, int32_t l, double r, double theta, double* least,
                            double* most) noexcept nogil:
    """What the loss can be at rest while the reaction is r, to within the rounding of r: an unloaded gear at rest has the
    range 0 and must not be asked about again because of it."""
    cdef double kA, cA, kB, cB, x, y
    loss_terms(m, s, l, 0.0, theta, &kA, &cA, &kB, &cB)
    x = kA * r + cA
    y = kB * r + cB
    most[0] = x if x > y else y
    x = kA * r - cA
    y = kB * r - cB
    least[0] = x if x < y else y
    x = ROUNDING * (fabs(kA) + fabs(kB)) * s.rea_size[l]
    most[0] += x
    least[0] -= x


cdef inline double branch_margin(const tl_model* m, const tl_state* s, int32_t l, double w, double r, double theta,
                                 double* scale) noexcept nogil:
    """>= 0 while the branch of loss l holds; scale: size of its terms."""
    cdef double kA, cA, kB, cB, d
    loss_terms(m, s, l, w, theta, &kA, &cA, &kB, &cB)
    d = (kA - kB) * r * s.mode[m.ls[l].fr] + (cA - cB)
    scale[0] = fabs(kA - kB) * (fabs(r) + s.rea_size[l]) + fabs(cA) + fabs(cB) + NIL / BRANCH_TOL
    return -d if s.branch[l] else d


cdef void loss_limits(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Limits of the losses at rest, from the reactions of each stage."""
    cdef int32_t l, i, st, count = stages if stages > 0 else 1
    cdef double least, most, slack
    cdef tl_eval* e
    for st in range(count):
        e = stage_eval(s, stages, st)
        for l in range(TL_NLS(m)):
            i = m.ls[l].fr
            if s.mode[i] == 0:
                loss_range(m, s, l, e.rea[l], stage_theta(s, stages, st), &least, &most)
                slack = RANGE_TOL * (fabs(least) + fabs(most) + fabs(e.tau[i])) + NIL
                e.lim_f[i] = most + slack
                e.lim_b[i] = slack - least


cdef double find_branch(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of the trial at which the first loss changes its branch, 2 if none does."""
    cdef int32_t l, i, k
    cdef double first = 2.0, x, g0, gm, g1, scale, s0, c1, c2
    for l in range(TL_NLS(m)):
        s.branch_x[l] = 2.0
        i = m.ls[l].fr
        if not s.mode[i] & 1:
            continue
        k = m.fr[i].row
        g1 = branch_margin(m, s, l, s.end.w[k], s.end.rea[l], s.theta + s.part, &scale)
        g0 = branch_margin(m, s, l, s.now.w[k], s.now.rea[l], s.theta, &s0)
        if s0 > scale:
            scale = s0
        if g1 >= -BRANCH_TOL * scale:
            continue
        c1 = g1 - g0
        c2 = 0.0
        if s.four:
            gm = branch_margin(m, s, l, s.em.w[k], s.em.rea[l], s.theta + 0.5 * s.part, &s0)
            c1 = -3.0 * g0 + 4.0 * gm - g1
            c2 = 2.0 * g0 - 4.0 * gm + 2.0 * g1
        if fabs(g0) <= BRANCH_TOL * scale and c1 > 0.0 and c2 < 0.0:
            x = -c1 / c2                     # rises from its boundary and comes back
            if x > 1.0:
                x = 1.0
        else:
            x = first_root(g0, c1, c2, 0.0, 1.0)
        if x <= end:
            s.branch_x[l] = x
            if x < first:
                first = x
    return first


cdef void switch_branches(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Losses whose branch ends at the fraction x of the trial go over to the other one."""
    cdef int32_t l
    for l in range(TL_NLS(m)):
        if s.branch_x[l] <= x + 1e-12:
            s.branch[l] = 1 - s.branch[l]
            s.branch_x[l] = 2.0


cdef enum:
    TRIES = 20000          # most assignments looked at when pivoting finds none


cdef void held_by_unit(const tl_model* m, tl_state* s, int32_t el, const double* a, double* tau) noexcept nogil:
    """Torques tau (nf) of the bilateral elements that go with the accelerations a of a unit torque of element el."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    for j in range(n):
        s.us[j] = dot(m.M + j * n, a, 0, n) - s.B[el * n + j]
    for i in range(nf):
        tau[i] = 0.0
    for j in range(n):
        axpy(s.us[j], s.pat.Tn + j * nf, tau, 0, nf)


cdef int32_t decide_losses(const tl_model* m, tl_state* s, tl_box* box, int32_t* pivots) noexcept nogil:
    """The boxed problem of decide() with losses: modes of the candidates and branches of all moving losses.

    The limits of a loss depend on its reaction, which depends on all torques, so the matrix is not symmetric. Pivoting
    on violated conditions, all at once, then one at a time; then all assignments in order (TRIES at most).
    s.am: accelerations without the unknown torques; s.em.rea: reactions that go with them. Returns 0, or 1 when no
    consistent assignment was found (everything undecided is then held).
    """
    cdef int32_t nc = box.nc, n = TL_N(m), nf = TL_NF(m), nls = TL_NLS(m), k = nc, c, d, i, j, l, it, bad, best, patience, t, pick
    cdef const double* inverse
    cdef int32_t* side = box.side
    cdef int32_t* el = s.li                  # (nf) each: elements, their loss or -1, branch, proposal, branch before
    cdef int32_t* ls = el + nf
    cdef int32_t* br = ls + nf
    cdef int32_t* digit = br + nf
    cdef int32_t* old = digit + nf
    cdef double* WW
    cdef double* bb
    cdef double* RX
    cdef double* A
    cdef double* x
    cdef double* col
    cdef double acc, y, yscale, r, least, most, slack, slope, const_, D, scale, largest = 0.0
    for c in range(nc):
        el[c] = box.cand[c]
        s.mode[box.cand[c]] = 2              # an earlier round has left the mode it tried
    inverse = free_inverse(m, s)
    for l in range(nls):
        if s.mode[m.ls[l].fr] & 1:           # moving, not a candidate
            el[k] = m.ls[l].fr
            side[k] = -1 if s.mode[m.ls[l].fr] == 1 else 1
            k += 1
    for c in range(k):
        ls[c] = -1
        br[c] = 0
        for l in range(nls):
            if m.ls[l].fr == el[c]:
                ls[c] = l
                br[c] = <int32_t>s.branch[l]
        old[c] = br[c]
    WW = s.lw                                # (k, k) response of the slips, (nls, k) of the reactions
    bb = WW + k * k
    RX = bb + k
    A = RX + nls * k
    x = A + k * k
    col = x + k
    for d in range(k):
        for i in range(n):
            acc = 0.0
            for j in range(n):
                acc += inverse[i * n + j] * s.B[el[d] * n + j]
            col[i] = acc
        for c in range(k):
            acc = 0.0
            for i in range(n):
                acc += s.B[el[c] * n + i] * col[i]
            WW[c * k + d] = acc
        if TL_ND(m) + TL_NVG(m) > 0:
            held_by_unit(m, s, el[d], col, box.work)
        for l in range(nls):
            acc = m.re_fr[m.ls[l].re * nf + el[d]]
            for i in range(n):
                acc += m.re_A[m.ls[l].re * n + i] * col[i]
            if TL_ND(m) + TL_NVG(m) > 0:
                for i in range(nf):
                    acc += m.re_fr[m.ls[l].re * nf + i] * box.work[i]
            RX[l * k + d] = acc
    for c in range(nc):
        bb[c] = box.b[c]
        if WW[c * k + c] > largest:
            largest = WW[c * k + c]
    pivots[0] = 0
    best = k + 1
    patience = 5
    for c in range(k):
        digit[c] = 0
    t = 0
    it = 0
    while True:
        # solve for the present assignment
        for c in range(k):
            for d in range(k):
                A[c * k + d] = 0.0
            if c < nc and side[c] == 0:
                for d in range(k):
                    A[c * k + d] = WW[c * k + d]
                # selects the least-norm split where more are held than can move, as in boxed_solve
                A[c * k + c] += 1e-9 * (largest if largest < 1e3 * WW[c * k + c] else 1e3 * WW[c * k + c])
                x[c] = -bb[c]
            elif ls[c] >= 0:
                l = ls[c]
                loss_law(m, s, l, s.now.w[m.fr[el[c]].row], s.theta, br[c], -side[c], &slope, &const_)
                for d in range(k):
                    A[c * k + d] = slope * RX[l * k + d]
                A[c * k + c] += 1.0
                x[c] = -(slope * s.em.rea[l] + const_)
            else:
                A[c * k + c] = 1.0
                x[c] = box.lo[c] if side[c] < 0 else box.hi[c]
        bad = 0
        pick = -1
        if lu_solve(A, k, x, 1):
            bad = k + 1
        else:
            for c in range(k):
                l = ls[c]
                r = 0.0
                if l >= 0:
                    r = s.em.rea[l]
                    for d in range(k):
                        r += RX[l * k + d] * x[d]
                if c < nc:
                    y = bb[c]
                    yscale = fabs(bb[c])
                    for d in range(k):
                        y += WW[c * k + d] * x[d]
                        yscale += fabs(WW[c * k + d] * x[d])
                    box.y[c] = y if fabs(y) > SLIP_ROUNDING * yscale else 0.0
                # what is violated, and what the element would rather do: written to digit as a proposal
                digit[c] = 0
                if c < nc and side[c] == 0:
                    if l >= 0:
                        loss_range(m, s, l, r, s.theta, &least, &most)
                        slack = 0.5 * RANGE_TOL * (fabs(least) + fabs(most) + fabs(x[c])) + 0.5 * NIL
                        if -x[c] > most + slack:
                            digit[c] = -1
                        elif -x[c] < least - slack:
                            digit[c] = 1
                    else:
                        slack = 1e-12 * (1.0 + fabs(x[c]))
                        if x[c] < box.lo[c] - slack:
                            digit[c] = -1
                        elif x[c] > box.hi[c] + slack:
                            digit[c] = 1
                elif c < nc and ((side[c] < 0 and y < -1e-11 * yscale) or (side[c] > 0 and y > 1e-11 * yscale)):
                    digit[c] = 2             # back to rest
                elif l >= 0:
                    s.mode[el[c]] = -side[c]
                    s.branch[l] = br[c]
                    D = branch_margin(m, s, l, s.now.w[m.fr[el[c]].row], r, s.theta, &scale)
                    if D < -BRANCH_TOL * scale:
                        digit[c] = 3         # the other law
                if digit[c] != 0:
                    bad += 1
                    pick = c
        if bad == 0:
            break
        pivots[0] += 1
        it += 1
        if t == 0 and it < 10 * k + 20 and bad <= k:
            if bad < best:
                best = bad
                patience = 5
            else:
                patience -= 1
            for c in range(k):
                if digit[c] == 0 or (patience < 0 and c != pick):
                    continue
                if digit[c] == 3:
                    br[c] = 1 - br[c]
                elif digit[c] == 2:
                    side[c] = 0
                else:
                    side[c] = digit[c]
                    if ls[c] >= 0:
                        # the law that holds on that side at the present reaction
                        l = ls[c]
                        r = s.em.rea[l]
                        for d in range(k):
                            r += RX[l * k + d] * x[d]
                        s.mode[el[c]] = -side[c]
                        s.branch[l] = 0
                        br[c] = 1 if branch_margin(m, s, l, 0.0, r, s.theta, &scale) < 0.0 else 0
            continue
        # all assignments one after the other, held first: a number in mixed radix
        if t >= TRIES:
            break
        i = t
        for c in range(k):
            if c >= nc:
                br[c] = i % 2
                i = i // 2
            elif ls[c] >= 0:
                j = i % 5
                i = i // 5
                side[c] = 0 if j == 0 else (-1 if j < 3 else 1)
                br[c] = 1 if j == 2 or j == 4 else 0
            else:
                j = i % 3
                i = i // 3
                side[c] = 0 if j == 0 else (-1 if j == 1 else 1)
        if i > 0:
            break                            # all seen
        t += 1
    if bad != 0:
        # held; moving losses go on in their branch (their torques are found by settle)
        for c in range(nc):
            side[c] = 0
        for c in range(k):
            x[c] = 0.0
            br[c] = old[c]
    for c in range(nc):
        box.tau[c] = x[c]
    for c in range(k):
        if ls[c] >= 0:
            s.branch[ls[c]] = br[c]
            if c >= nc:
                s.mode[el[c]] = -side[c]
    return 1 if bad != 0 else 0
