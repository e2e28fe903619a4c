# Sliding elements whose capacity rises so steeply with the slip that their torque at a predicted speed would be wrong: it is
# found with the accelerations of the trial. Needs: forces.pxi, other_length.pxi, box.pxi (add_along), lists.pxi (list_modes).

#: of the largest capacity met: a torque so near to what its curve says is found, down to rounding
cdef double STEEP_TOL = 1e-13
#: of the same: one that is further off at the end of all rounds is counted (TL_C_STEEP)
cdef double STEEP_UNSOLVED = 1e-6

cdef enum:
    #: rounds of the torque of steep sliding elements; 2 to 4 are usual, more are needed where mu(w) has a sharp knee
    ROUNDS = 16
    TANGENTS = 8           # of them the first with tangents
    LAST_TANGENTS = 3      # and the last


cdef inline void add_torque(const tl_model* m, const tl_state* s, tl_eval* e, int32_t i, double more, double* g) noexcept nogil:
    """Sliding element i has so much more torque, and the capacity that goes with it."""
    e.tau[i] += more
    if s.mode[i] == MODE_FORWARD:
        e.cap_f[i] = -e.tau[i]
    else:
        e.cap_b[i] = e.tau[i]
    add_along(m, TL_FR_ROW(m, i), more, g)


cdef inline double response(const tl_model* m, const tl_state* s, int32_t on, int32_t by) noexcept nogil:
    """Slip along row `on` at the end of a trial of two points for a torque of 1 along row `by`: h/2 row P row^T."""
    cdef int32_t j, q, n = TL_N(m)
    cdef double H = 0.0
    for j in range(m.row_ptr[on], m.row_ptr[on + 1]):
        for q in range(m.row_ptr[by], m.row_ptr[by + 1]):
            H += m.row_val[j] * m.row_val[q] * s.pat.P[m.row_idx[j] * n + m.row_idx[q]]
    if other_span(m, s):
        H += s.bend * row_dot(m, on, s.along) * row_dot(m, by, s.along)
    return 0.5 * s.h * H


cdef inline double slip_ahead(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """Slip along row k at the end of a trial of two points with the accelerations it has so far."""
    return s.now.w[k] + 0.5 * s.h * (s.wa[k] + row_dot(m, k, s.end.a))


cdef inline int32_t acts_along(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when element i has a capacity against the slip it has."""
    return (m.fr[i].fwd if s.mode[i] > 0 else m.fr[i].bwd) == 1


cdef inline void slide_together(const tl_model* m, tl_state* s, int32_t nc, const int32_t* el) noexcept nogil:
    """slide_implicitly for two points and elements el (nc) on one row, which have one slip: their torques together are one unknown.
    Tangents, which end on the right segment of the table, and the chord where the tangent would turn the slip round."""
    cdef int32_t c, i, it, hint, k = TL_FR_ROW(m, el[0])
    cdef tl_eval* e = s.end
    cdef const int32_t* hints = s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m)
    cdef double sgn = <double>s.mode[el[0]], H = response(m, s, k, k), w = sgn * slip_ahead(m, s, k)
    cdef double r, x, cap, slope, one, tau = 0.0, fn0 = 0.0, dfn = 0.0, dt = 0.0, best = 0.0, best_r = 0.0, scale = 0.0
    for c in range(nc):
        i = el[c]
        tau += e.tau[i]
        if acts_along(m, s, i):
            fn0 += m.fr[i].cap0 * e.raw[i]
            dfn += m.fr[i].dmu * m.fr[i].cgeo * e.raw[i]
    for it in range(ROUNDS + 1):
        x = w + sgn * H * dt
        cap = 0.0
        slope = 0.0
        for c in range(nc):
            i = el[c]
            if acts_along(m, s, i):
                hint = hints[i]
                cap += m.fr[i].cgeo * e.raw[i] * table1_slope(&m.tab1[m.fr[i].mu], x, &hint, &one)
                slope += m.fr[i].cgeo * e.raw[i] * one
        r = -(tau + dt + sgn * cap)
        if it == 0 or fabs(r) < fabs(best_r):
            best_r = r
            best = dt
        scale = fabs(cap) if fabs(cap) > scale else scale
        if fabs(r) <= STEEP_TOL * scale or it == ROUNDS:
            break
        if x <= 0.0:
            slope = dfn if it == 0 else 0.0
        elif slope < 0.0 or TANGENTS <= it < ROUNDS - LAST_TANGENTS or x + sgn * H * r / (1.0 + slope * H) < 0.0:
            slope = (cap - fn0) / x
        dt += r / (1.0 + slope * H if slope > 0.0 else 1.0)
    if fabs(best_r) > STEEP_UNSOLVED * scale:
        s.counters[TL_C_STEEP] += 1
    x = w + sgn * H * best
    for c in range(1, nc):
        # each has what its curve says; the first what is left
        i = el[c]
        hint = hints[i]
        cap = m.fr[i].cgeo * e.raw[i] * table1_slope(&m.tab1[m.fr[i].mu], x, &hint, &one) if acts_along(m, s, i) else 0.0
        cap = -sgn * cap - e.tau[i]
        add_torque(m, s, e, i, cap, s.g)
        best -= cap
    add_torque(m, s, e, el[0], best, s.g)


cdef void slide_one(const tl_model* m, tl_state* s, const int32_t* el) noexcept nogil:
    """The same for one element: without loops in a precompiled step."""
    slide_together(m, s, 1, el)


cdef void slide_some(const tl_model* m, tl_state* s, int32_t nc, const int32_t* el) noexcept nogil:
    slide_together(m, s, nc, el)


cdef void stage_responses(const tl_model* m, const tl_state* s, int32_t nc, const int32_t* el, double* H, double* w,
                          double* col) noexcept nogil:
    """For three points: H (2nc, 2nc), responses of the slips in the middle and at the end to torques there; w (2nc), slips that the
    accelerations v2 give; col (n): scratch."""
    cdef int32_t i, j, k, c, d, st, r, n = TL_N(m), size = 2 * nc
    cdef double h = s.h
    cdef const double* P
    cdef double[2][2] B4 = [[1.0 / 3.0, -1.0 / 24.0], [2.0 / 3.0, 1.0 / 6.0]]
    for d in range(nc):
        k = m.fr[el[d]].row
        for r in range(2):
            for st in range(2):
                for i in range(n):
                    col[i] = 0.0
                for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
                    P = s.pat.P4 + (r * n + m.row_idx[j]) * 2 * n
                    for i in range(n):
                        col[i] += h * (B4[st][0] * P[i] + B4[st][1] * P[n + i]) * m.row_val[j]
                for c in range(nc):
                    H[(st * nc + c) * size + r * nc + d] = row_dot(m, m.fr[el[c]].row, col)
    for st in range(2):
        for i in range(n):
            col[i] = s.now.u[i] + h * ((5.0 / 24.0 if st == 0 else 1.0 / 6.0) * s.now.a[i] + B4[st][0] * s.v2[i]
                                       + B4[st][1] * s.v2[n + i])
        for c in range(nc):
            w[st * nc + c] = row_dot(m, m.fr[el[c]].row, col)


cdef struct tl_slides:
    # several unknowns: torques of elements that are steep, at each stage
    int32_t nc             # elements
    const int32_t* el      # (nc)
    int32_t stages
    int32_t size           # nc * stages
    double* H              # (size, size) responses of the slips to the torques
    double* A              # (size, size) matrix of a round
    double* w              # (size) slips without more torque
    double* dt             # (size) what the torques have more
    double* x              # (size) what is missing, then the step
    double* best           # (size) dt with the least missing
    double scale           # largest capacity so far


cdef void lay_slides(const tl_model* m, tl_state* s, tl_slides* p) noexcept nogil:
    """Responses, slips and room for them in scratch memory."""
    cdef int32_t c, d, k, nc = p.nc, size = p.nc * p.stages
    cdef double* col
    p.size = size
    p.scale = 0.0
    p.H = scratch(s, size * size)
    p.A = scratch(s, size * size)
    p.w = scratch(s, size)
    p.dt = scratch(s, size)
    p.x = scratch(s, size)
    p.best = scratch(s, size)
    col = scratch(s, TL_N(m))
    memset(p.dt, 0, size * sizeof(double))
    if p.stages == 2:
        stage_responses(m, s, nc, p.el, p.H, p.w, col)
        return
    for c in range(nc):
        k = m.fr[p.el[c]].row
        for d in range(nc):
            p.H[c * nc + d] = response(m, s, k, m.fr[p.el[d]].row)
        p.w[c] = slip_ahead(m, s, k)


cdef double slide_row(const tl_model* m, const tl_state* s, tl_slides* p, int32_t st, int32_t c, int32_t it) noexcept nogil:
    """Row of the round `it` for element c of the stage st; by how much its torque misses what its curve says."""
    cdef int32_t d, i = p.el[c], row = st * p.nc + c, hint = 0
    cdef const tl_eval* e = s.end if st == p.stages - 1 else s.em
    cdef double acc = p.w[row], sgn = <double>s.mode[i], fn = m.fr[i].cgeo * e.raw[i], cap, slope, miss, more = 0.0
    for d in range(p.size):
        acc += p.H[row * p.size + d] * p.dt[d]
    acc = sgn * acc
    cap = fn * table1_slope(&m.tab1[m.fr[i].mu], acc, &hint, &slope)
    slope = slope * fn
    if acc <= 0.0:
        slope = 0.0
        if it < TANGENTS:
            # the curve goes on straight: a tangent that has gone beyond standstill comes back from there
            slope = m.fr[i].dmu * fn
            more = slope * acc
    elif TANGENTS <= it < ROUNDS - LAST_TANGENTS:
        # chord from standstill: for a rising curve that flattens it cannot overshoot back across zero
        slope = (cap - m.fr[i].cap0 * e.raw[i]) / acc
    if slope < 0.0:
        slope = 0.0
    if (m.fr[i].fwd if sgn > 0.0 else m.fr[i].bwd) != CAPPED:
        cap = 0.0
        slope = 0.0
        more = 0.0
    miss = -(e.tau[i] + p.dt[row] + sgn * cap)
    if fabs(cap) > p.scale:
        p.scale = fabs(cap)
    p.x[row] = miss - sgn * more
    for d in range(p.size):
        p.A[row * p.size + d] = slope * p.H[row * p.size + d] + (1.0 if d == row else 0.0)
    return fabs(miss)


cdef double slide_rounds(const tl_model* m, const tl_state* s, tl_slides* p) noexcept nogil:
    """Rounds until every torque is what its curve says; how much one misses it by with the best, p.best."""
    cdef int32_t c, d, st, it
    cdef double miss, worst, least = 0.0
    for it in range(ROUNDS + 1):
        worst = 0.0
        for st in range(p.stages):
            for c in range(p.nc):
                miss = slide_row(m, s, p, st, c, it)
                worst = miss if miss > worst else worst
        if it == 0 or worst < least:
            least = worst
            memcpy(p.best, p.dt, p.size * sizeof(double))
        if worst <= STEEP_TOL * p.scale or it == ROUNDS:
            break
        if p.size == 1 and p.A[0] != 0.0:
            p.x[0] /= p.A[0]
        elif lu_solve(p.A, p.size, p.x, 1):
            break
        for d in range(p.size):
            p.dt[d] += p.x[d]
    return least


cdef void slide_apart(const tl_model* m, tl_state* s, int32_t stages, int32_t nc, const int32_t* el) noexcept nogil:
    """slide_implicitly for elements el (nc) with slips of their own, or three points: a system of torques."""
    cdef int32_t c, st
    cdef int64_t here = mark(s)
    cdef tl_slides p
    p.nc = nc
    p.el = el
    p.stages = stages
    lay_slides(m, s, &p)
    if slide_rounds(m, s, &p) > STEEP_UNSOLVED * p.scale:
        s.counters[TL_C_STEEP] += 1
    for st in range(stages):
        for c in range(nc):
            add_torque(m, s, s.end if st == stages - 1 else s.em, el[c], p.best[st * nc + c], s.g + st * TL_N(m))
    release(s, here)


cdef void slide_implicitly(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Torques of the sliding elements whose capacity rises steeply with the slip, solved together with their speeds.

    With tau = -sgn*cap(|w|) and w = w* + H (tau - tau*), H the response of the slips to the torques over the stages of
    the step, the residual tau + sgn*cap(|w|) = 0 is solved by rounds with tangents, which are exact once the segment of the
    table is the right one, then, if they do not end, with chords from standstill, which come down to the solution from
    above, and at last with tangents again.
    On entry a1 (or v2 = [am, a1]) answers s.g with the explicit torques; on return s.g holds the implicit ones.
    """
    cdef int32_t i, c, nc = 0, one_row = stages == 1
    cdef int32_t* el = s.steep_el
    if not (s.quiet or s.listed):
        list_modes(m, s)
    for c in range(s.n_sliding):
        i = s.sliding[c]
        if not s.tied[i] and (s.end.steep[i] or (stages == 2 and s.em.steep[i])):
            el[nc] = i
            one_row &= TL_FR_ROW(m, i) == TL_FR_ROW(m, el[0]) and s.mode[i] == s.mode[el[0]]
            nc += 1
    if nc == 0:
        return
    if not one_row:
        slide_apart(m, s, stages, nc, el)
    elif nc == 1:
        slide_one(m, s, el)
    else:
        slide_some(m, s, nc, el)
