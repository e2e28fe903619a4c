# The boxed problem of a decision with losses, whose limits depend on the torques that are looked for.
#
# Equations: (39), (56).

cdef enum:
    TRIES = 20000          # most assignments looked at when pivoting finds none


cdef enum:
    # what a candidate would rather do than what is tried
    STAY = 0
    TO_LO = -1             # slide with what limits it backward
    TO_HI = 1
    TO_REST = 2
    TO_OTHER_LAW = 3


cdef struct tl_loss_box:
    # decide_losses: candidates of the box first, then the losses that move
    int32_t nc
    int32_t k              # all of them
    int32_t* el            # (k) their elements
    int32_t* ls            # (k) and losses, -1: none
    int32_t* br            # (k) law that is tried
    int32_t* ask           # (k) what it would rather do
    int32_t* old           # (k) law before
    double* W              # (k, k) response of the slips to the torques
    double* R              # (nls, k) of the reactions
    double* b              # (nc) slips without them
    double* A              # (k, k) equations of the present assignment
    double* x              # (k) their solution: the torques
    double* col            # (n) accelerations of one of them


cdef tl_loss_box lay_losses(const tl_model* m, tl_state* s, const tl_box* box) noexcept nogil:
    """Who takes part; what is taken of the scratch memory is the caller's to give back."""
    cdef int32_t c, l, nls = TL_NLS(m), most = box.nc + nls
    cdef tl_loss_box p
    p.nc = p.k = box.nc
    p.el = scratch_ints(s, most)
    p.ls = scratch_ints(s, most)
    p.br = scratch_ints(s, most)
    p.ask = scratch_ints(s, most)
    p.old = scratch_ints(s, most)
    for c in range(box.nc):
        p.el[c] = box.cand[c]
    for l in range(nls):
        if s.mode[m.ls[l].fr] & 1:           # moving, not a candidate
            p.el[p.k] = m.ls[l].fr
            box.side[p.k] = -1 if s.mode[m.ls[l].fr] == MODE_FORWARD else 1
            p.k += 1
    p.W = scratch(s, p.k * p.k)
    p.b = scratch(s, p.k)
    p.R = scratch(s, nls * p.k)
    p.A = scratch(s, p.k * p.k)
    p.x = scratch(s, p.k)
    p.col = scratch(s, TL_N(m))
    for c in range(p.k):
        p.ls[c] = -1
        p.br[c] = 0
        p.ask[c] = STAY
        for l in range(nls):
            if m.ls[l].fr == p.el[c]:
                p.ls[c] = l
                p.br[c] = <int32_t>s.branch[l]
        p.old[c] = p.br[c]
    return p


cdef void loss_responses(const tl_model* m, tl_state* s, const tl_box* box, const double* inverse,
                         tl_loss_box* p) noexcept nogil:
    """What the torques do to slips and reactions."""
    cdef int32_t c, d, i, j, l, n = TL_N(m), nf = TL_NF(m), nls = TL_NLS(m), k = p.k
    cdef double* col = p.col
    cdef double acc
    for d in range(k):
        for i in range(n):
            acc = 0.0
            for j in range(n):
                acc += inverse[i * n + j] * s.gears.B[p.el[d] * n + j]
            col[i] = acc
        for c in range(k):
            acc = 0.0
            for i in range(n):
                acc += s.gears.B[p.el[c] * n + i] * col[i]
            p.W[c * k + d] = acc
        if TL_ND(m) + TL_NVG(m) > 0:
            missing_torques(m, s, m.M, col, s.gears.B + p.el[d] * n, box.work)
        for l in range(nls):
            acc = m.re_fr[m.ls[l].re * nf + p.el[d]]
            for i in range(n):
                acc += m.re_A[m.ls[l].re * n + i] * col[i]
            if TL_ND(m) + TL_NVG(m) > 0:
                for i in range(nf):
                    acc += m.re_fr[m.ls[l].re * nf + i] * box.work[i]
            p.R[l * k + d] = acc
    for c in range(p.nc):
        p.b[c] = box.b[c]


cdef inline int32_t held(const tl_box* box, const tl_loss_box* p, int32_t c) noexcept nogil:
    """1 when candidate c is tried at rest."""
    return c < p.nc and box.side[c] == 0


cdef int32_t loss_torques(const tl_model* m, const tl_state* s, const tl_box* box, double largest,
                          tl_loss_box* p) noexcept nogil:
    """Torques p.x of the present assignment; 1 when they are not determined. largest: response of a candidate."""
    cdef int32_t c, d, k = p.k
    cdef double slope, const_
    for c in range(k):
        for d in range(k):
            p.A[c * k + d] = 0.0
        if held(box, p, c):
            for d in range(k):
                p.A[c * k + d] = p.W[c * k + d]
            # selects the least-norm split where more are held than can move, as in boxed_solve
            p.A[c * k + c] += shift_of(largest, p.W[c * k + c])
            p.x[c] = -p.b[c]
        elif p.ls[c] >= 0:
            loss_law(m, s, p.ls[c], s.now.w[m.fr[p.el[c]].row], s.theta, p.br[c], -box.side[c], &slope, &const_)
            for d in range(k):
                p.A[c * k + d] = slope * p.R[p.ls[c] * k + d]
            p.A[c * k + c] += 1.0
            p.x[c] = -(slope * s.em.rea[p.ls[c]] + const_)
        else:
            p.A[c * k + c] = 1.0
            p.x[c] = box.lo[c] if box.side[c] < 0 else box.hi[c]
    return lu_solve(p.A, k, p.x, 1)


cdef inline double reaction_with(const tl_state* s, const tl_loss_box* p, int32_t l) noexcept nogil:
    """Reaction of loss l with the torques p.x."""
    cdef int32_t d
    cdef double r = s.em.rea[l]
    for d in range(p.k):
        r += p.R[l * p.k + d] * p.x[d]
    return r


cdef inline double slip_with(const tl_loss_box* p, int32_t c, double* scale) noexcept nogil:
    """Slip of candidate c with the torques p.x; scale: size of its terms."""
    cdef int32_t d
    cdef double y = p.b[c]
    scale[0] = fabs(p.b[c])
    for d in range(p.k):
        y += p.W[c * p.k + d] * p.x[d]
        scale[0] += fabs(p.W[c * p.k + d] * p.x[d])
    return y


cdef int32_t held_asks(const tl_model* m, const tl_state* s, const tl_box* box, const tl_loss_box* p, int32_t c,
                       double r) noexcept nogil:
    """What candidate c, tried at rest, would rather do; r: the reaction it depends on if it is a loss."""
    cdef double least, most, slack
    if p.ls[c] >= 0:
        loss_range(m, s, p.ls[c], r, s.theta, &least, &most)
        slack = 0.5 * RANGE_TOL * (fabs(least) + fabs(most) + fabs(p.x[c])) + 0.5 * NIL
        return TO_LO if -p.x[c] > most + slack else (TO_HI if -p.x[c] < least - slack else STAY)
    slack = TORQUE_ROUNDING * (1.0 + fabs(p.x[c]))
    return TO_LO if p.x[c] < box.lo[c] - slack else (TO_HI if p.x[c] > box.hi[c] + slack else STAY)


cdef int32_t loss_asks(const tl_model* m, tl_state* s, tl_box* box, const tl_loss_box* p, int32_t c) noexcept nogil:
    """What c would rather do with the torques p.x; box.y[c]: its slip, 0: none but rounding."""
    cdef int32_t l = p.ls[c]
    cdef double y = 0.0, size = 0.0, scale, r = reaction_with(s, p, l) if l >= 0 else 0.0
    if c < p.nc:
        y = slip_with(p, c, &size)
        box.y[c] = y if fabs(y) > SLIP_ROUNDING * size else 0.0
    if held(box, p, c):
        return held_asks(m, s, box, p, c, r)
    if c < p.nc and ((box.side[c] < 0 and y < -RATE_ROUNDING * size) or (box.side[c] > 0 and y > RATE_ROUNDING * size)):
        return TO_REST
    if l >= 0:
        s.mode[p.el[c]] = -box.side[c]
        s.branch[l] = p.br[c]
        y = branch_margin(m, s, l, s.now.w[m.fr[p.el[c]].row], r, s.theta, &scale)
        if y < -BRANCH_TOL * scale:
            return TO_OTHER_LAW
    return STAY


cdef void loss_pivot(const tl_model* m, tl_state* s, tl_box* box, tl_loss_box* p, int32_t only) noexcept nogil:
    """Each gets what it asks for, or `only` one (-1: each)."""
    cdef int32_t c
    cdef double r, scale
    for c in range(p.k):
        if p.ask[c] == STAY or (only >= 0 and c != only):
            continue
        if p.ask[c] == TO_OTHER_LAW:
            p.br[c] = 1 - p.br[c]
        elif p.ask[c] == TO_REST:
            box.side[c] = 0
        else:
            box.side[c] = p.ask[c]
            if p.ls[c] >= 0:
                # the law that holds on that side at the present reaction
                s.mode[p.el[c]] = -box.side[c]
                s.branch[p.ls[c]] = 0
                r = reaction_with(s, p, p.ls[c])
                p.br[c] = 1 if branch_margin(m, s, p.ls[c], 0.0, r, s.theta, &scale) < 0.0 else 0


cdef int32_t next_assignment(tl_box* box, tl_loss_box* p, int32_t number) noexcept nogil:
    """Assignment `number` of all, held first: a number in mixed radix. 0 when there are not so many."""
    cdef int32_t c, j, rest = number
    for c in range(p.k):
        if c >= p.nc:
            p.br[c] = rest % 2
            rest = rest // 2
        elif p.ls[c] >= 0:
            j = rest % 5
            rest = rest // 5
            box.side[c] = 0 if j == 0 else (-1 if j < 3 else 1)
            p.br[c] = 1 if j == 2 or j == 4 else 0
        else:
            j = rest % 3
            rest = rest // 3
            box.side[c] = 0 if j == 0 else (-1 if j == 1 else 1)
    return rest == 0


cdef void take_losses(const tl_model* m, tl_state* s, tl_box* box, tl_loss_box* p, int32_t found) noexcept nogil:
    """Torques, modes and laws that were found. Else all are held; moving losses go on in their law (their torques are
    found by settle)."""
    cdef int32_t c
    if not found:
        for c in range(p.nc):
            box.side[c] = 0
        for c in range(p.k):
            p.x[c] = 0.0
            p.br[c] = p.old[c]
    for c in range(p.nc):
        box.tau[c] = p.x[c]
    for c in range(p.k):
        if p.ls[c] >= 0:
            s.branch[p.ls[c]] = p.br[c]
            if c >= p.nc:
                s.mode[p.el[c]] = -box.side[c]


cdef int32_t decide_losses(const tl_model* m, tl_state* s, tl_box* box, int32_t* pivots) noexcept nogil:
    """The boxed problem of decide() with losses: modes of the candidates and branches of all moving losses.

    The limits of a loss depend on its reaction, which depends on all torques, so the matrix is not symmetric. Pivoting
    on violated conditions, all at once, then one at a time; then all assignments in order (TRIES at most).
    s.am: accelerations without the unknown torques; s.em.rea: reactions that go with them. Returns 0, or 1 when no
    consistent assignment was found (everything undecided is then held).
    """
    cdef int32_t c, number = 0, it = 0, bad, best, patience = PATIENCE, pick
    cdef double largest = 0.0
    cdef tl_loss_box p
    for c in range(box.nc):
        s.mode[box.cand[c]] = MODE_FREE      # an earlier round has left the mode it tried
    cdef const double* inverse = free_inverse(m, s, box.ahead)
    cdef int64_t here = mark(s)
    p = lay_losses(m, s, box)
    loss_responses(m, s, box, inverse, &p)
    for c in range(p.nc):
        if p.W[c * p.k + c] > largest:
            largest = p.W[c * p.k + c]
    pivots[0] = 0
    best = p.k + 1
    while True:
        bad = 0
        pick = -1
        if loss_torques(m, s, box, largest, &p):
            bad = p.k + 1
        else:
            for c in range(p.k):
                p.ask[c] = loss_asks(m, s, box, &p, c)
                if p.ask[c] != STAY:
                    bad += 1
                    pick = c
        if bad == 0:
            break
        pivots[0] += 1
        it += 1
        if number == 0 and it < 10 * p.k + 20 and bad <= p.k:
            if bad < best:
                best = bad
                patience = PATIENCE
            else:
                patience -= 1
            loss_pivot(m, s, box, &p, pick if patience < 0 else -1)
            continue
        if number >= TRIES or not next_assignment(box, &p, number):
            break
        number += 1
    take_losses(m, s, box, &p, bad == 0)
    release(s, here)
    return 1 if bad != 0 else 0
