# Sliding elements whose capacity rises so steeply with the slip that their torque at a predicted speed would be wrong: it is
# found with the accelerations of the trial. The unknowns are the torques tau of these elements at each stage,
#
#   tau_r = -sgn cap_r(x_r)        x_r = sgn w_r        w = w* + H (tau - tau*)
#
# H the responses of the slips to the torques, tau* the torques at predicted speeds. Each cap_r is a piecewise linear curve, so the
# solution is that of a linear system once it is known on which segment of its curve each element is. As long as the others keep
# their torques, an element is on the segment where
#
#   x_r + H_rr cap_r(x_r) = x*_r + H_rr cap*_r        (the left side rises with x_r, however steep the curve is)
#
# and the segments are looked for in turn with the torques until none changes: one round for a single element. This is the
# active-set form of Newton's method for piecewise linear equations (M. Hintermueller, K. Ito, K. Kunisch, The primal-dual active
# set strategy as a semismooth Newton method, SIAM J. Optim. 13 (2003) 865-888).
#
# Needs: forces.pxi, other_length.pxi, box.pxi (add_along), locks (lu_solve).

#: of the largest capacity: torques further off when the rounds are over are counted (TL_C_STEEP)
cdef double STEEP_UNSOLVED = 1e-6

cdef enum:
    SEGMENT_ROUNDS = 16    # 1 to 3 are usual
    ALL_AT_ONCE = 8        # of them the first, in which all elements may change their segment; then one does
    NOWHERE = -2           # instead of a segment, before the first round


cdef inline void add_torque(const tl_model* m, const tl_state* s, tl_eval* e, int32_t i, double more, double* g) noexcept nogil:
    """Sliding element i has so much more torque, and the capacity that goes with it."""
    e.tau[i] += more
    if s.mode[i] == MODE_FORWARD:
        e.cap_f[i] = -e.tau[i]
    else:
        e.cap_b[i] = e.tau[i]
    add_along(m, TL_FR_ROW(m, i), more, g)


cdef inline int32_t acts_along(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when element i has a capacity against the slip it has."""
    return (m.fr[i].fwd if s.mode[i] > 0 else m.fr[i].bwd) == 1


cdef struct tl_slides:
    # the unknowns: torques of elements that are steep, at each stage
    int32_t nc             # elements
    int32_t* el            # (nc)
    int32_t stages
    int32_t size           # nc * stages
    int32_t* on            # (size) segment of its curve each is on: j from point j on, -1 before the first
    double* H              # (size, size) responses of the slips to the torques
    double* A              # (size, size) matrix of a round
    double* w              # (size) slips without these torques
    double* tau            # (size)


cdef inline tl_eval* eval_of(tl_state* s, const tl_slides* p, int32_t r) noexcept nogil:
    """The instant of unknown r."""
    return s.end if r >= p.size - p.nc else s.em


cdef void respond_column(const tl_model* m, const tl_state* s, int32_t stages, int32_t by, int32_t at, double* col) noexcept nogil:
    """col (stages*n): speeds at the stages that answer a torque of 1 along row `by` at the stage `at`."""
    cdef int32_t i, j, n = TL_N(m)
    cdef double h = s.h, am, a1
    cdef const double* P
    memset(col, 0, stages * n * sizeof(double))
    for j in range(m.row_ptr[by], m.row_ptr[by + 1]):
        if stages == 1:
            axpy(0.5 * h * m.row_val[j], s.pat.P + m.row_idx[j] * n, col, 0, n)
            continue
        P = s.pat.P4 + (at * n + m.row_idx[j]) * 2 * n
        for i in range(n):
            am = P[i]
            a1 = P[n + i]
            col[i] += m.row_val[j] * h * to_middle(0.0, am, a1)
            col[n + i] += m.row_val[j] * h * to_end(0.0, am, a1)
    if other_span(m, s):
        axpy(0.5 * h * s.bend * row_dot(m, by, s.along), s.along, col, 0, n)


cdef void lay_slides(const tl_model* m, tl_state* s, tl_slides* p) noexcept nogil:
    """Responses, slips and room for the rest in scratch memory."""
    cdef int32_t r, q, n = TL_N(m), size = p.nc * p.stages
    cdef double* col
    p.size = size
    p.on = scratch_ints(s, size)
    p.H = scratch(s, size * size)
    p.A = scratch(s, size * size)
    p.w = scratch(s, size)
    p.tau = scratch(s, size)
    col = scratch(s, p.stages * n)
    for q in range(size):
        p.on[q] = NOWHERE
        p.tau[q] = eval_of(s, p, q).tau[p.el[q % p.nc]]
        respond_column(m, s, p.stages, TL_FR_ROW(m, p.el[q % p.nc]), q // p.nc, col)
        for r in range(size):
            p.H[r * size + q] = row_dot(m, TL_FR_ROW(m, p.el[r % p.nc]), col + r // p.nc * n)
    stage_motion(m, s, p.stages, s.end.a if p.stages == 1 else s.v2)
    for r in range(size):
        p.w[r] = row_dot(m, TL_FR_ROW(m, p.el[r % p.nc]), s.us + r // p.nc * n)
        for q in range(size):
            p.w[r] -= p.H[r * size + q] * p.tau[q]


cdef inline double slip_of_unknown(const tl_slides* p, int32_t r) noexcept nogil:
    """Slip of unknown r with the torques found so far."""
    cdef int32_t d
    cdef double w = p.w[r]
    for d in range(p.size):
        w += p.H[r * p.size + d] * p.tau[d]
    return w


cdef inline double segment_law(const tl_table1* t, int32_t j, double* slope) noexcept nogil:
    """The line of segment j of a curve: its value at 0, and its slope. Outside the curve goes on as table1 does."""
    cdef int32_t k = 0 if j < 0 else j
    slope[0] = 0.0
    if j >= t.n - 1:
        slope[0] = t.dy[t.n - 2] if t.linear and t.n > 1 else 0.0
    elif j >= 0 or t.linear:
        slope[0] = t.dy[k]
    return t.y[k] - slope[0] * t.x[k]


cdef inline int32_t find_segment(const tl_table1* t, double f, double y, int32_t j) noexcept nogil:
    """The segment of the curve on which x + f curve(x) = y, looked for from segment j on."""
    while j + 1 < t.n and t.x[j + 1] + f * t.y[j + 1] < y:
        j += 1
    while j >= 0 and t.x[j] + f * t.y[j] >= y:
        j -= 1
    return j


cdef int32_t find_segments(const tl_model* m, tl_state* s, tl_slides* p, int32_t most) noexcept nogil:
    """The segment of each unknown with the torques of the others; up to `most` of them change. How many have."""
    cdef int32_t r, i, j, found = 0
    cdef const int32_t* hint = s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m)
    cdef double y, H
    for r in range(p.size):
        i = p.el[r % p.nc]
        H = p.H[r * p.size + r]
        y = s.mode[i] * (slip_of_unknown(p, r) - H * p.tau[r])
        j = hint[i] if p.on[r] == NOWHERE else p.on[r]
        j = find_segment(&m.tab1[m.fr[i].mu], H * m.fr[i].cgeo * eval_of(s, p, r).raw[i], y, j)
        if j != p.on[r] and found < most:
            p.on[r] = j
            found += 1
    return found


cdef int32_t segment_torques(const tl_model* m, tl_state* s, tl_slides* p) noexcept nogil:
    """Torques with each unknown on its segment; 1 where nothing balances them, and they stay."""
    cdef int32_t r, d, i, singular
    cdef int64_t here = mark(s)
    cdef double* x = scratch(s, p.size)
    cdef double sgn, fn, slope
    for r in range(p.size):
        i = p.el[r % p.nc]
        sgn = <double>s.mode[i]
        fn = m.fr[i].cgeo * eval_of(s, p, r).raw[i] if acts_along(m, s, i) else 0.0
        x[r] = -sgn * fn * segment_law(&m.tab1[m.fr[i].mu], p.on[r], &slope) - fn * slope * p.w[r]
        for d in range(p.size):
            p.A[r * p.size + d] = fn * slope * p.H[r * p.size + d] + (1.0 if d == r else 0.0)
    singular = lu_solve(p.A, p.size, x, 1)
    if not singular:
        memcpy(p.tau, x, p.size * sizeof(double))
    release(s, here)
    return singular


cdef int32_t off_their_curves(const tl_model* m, tl_state* s, const tl_slides* p) noexcept nogil:
    """1 when a torque is not what its curve says at the slip it gives."""
    cdef int32_t r, i, hint = 0
    cdef double cap, worst = 0.0, scale = 0.0
    for r in range(p.size):
        i = p.el[r % p.nc]
        cap = 0.0
        if acts_along(m, s, i):
            cap = m.fr[i].cgeo * eval_of(s, p, r).raw[i] * table1(&m.tab1[m.fr[i].mu], s.mode[i] * slip_of_unknown(p, r), &hint)
        scale = larger(scale, fabs(cap))
        worst = larger(worst, fabs(p.tau[r] + s.mode[i] * cap))
    return worst > STEEP_UNSOLVED * scale


cdef void slide_implicitly(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Torques of the sliding elements whose capacity rises steeply with the slip, solved together with their speeds.

    On entry a1 (or v2 = [am, a1]) answers s.g with the torques at predicted speeds; on return s.g holds those found here.
    """
    cdef int32_t i, r, it = 0
    cdef int64_t here = mark(s)
    cdef tl_eval* e
    cdef tl_slides p
    p.nc = 0
    p.stages = stages
    p.el = scratch_ints(s, TL_NF(m))
    for i in range(TL_NF(m)):
        if s.mode[i] & 1 and not s.tied[i] and (s.end.steep[i] or (stages == 2 and s.em.steep[i])):
            p.el[p.nc] = i
            p.nc += 1
    if p.nc > 0:
        lay_slides(m, s, &p)
        while it < SEGMENT_ROUNDS and find_segments(m, s, &p, p.size if it < ALL_AT_ONCE else 1):
            it = SEGMENT_ROUNDS if segment_torques(m, s, &p) else it + 1
        if it == SEGMENT_ROUNDS and off_their_curves(m, s, &p):
            s.counters[TL_C_STEEP] += 1
        for r in range(p.size):
            e = eval_of(s, &p, r)
            i = p.el[r % p.nc]
            add_torque(m, s, e, i, p.tau[r] - e.tau[i], s.g + r // p.nc * TL_N(m))
    release(s, here)
