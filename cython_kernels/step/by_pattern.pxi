# The boxed problem of a decision with lock patterns instead of factors: an assignment of sides is tried with the pattern of those
# that stick, which is the one the step goes on with where the guess is right.
#
# Needs: box.pxi, decide.pxi (leftover, free_inverse), trial.pxi (held_torques), other_length.pxi (pattern_now), driven.pxi.

cdef void backward(const tl_model* m, const tl_pattern* p, const double* tau, double* back) noexcept nogil:
    """back (n) = Tn^T tau: times a row in the span of the stuck ones, the torque the least-norm split gives it."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef const int32_t* rows = p.range + 4 * n
    for j in range(n):
        back[j] = 0.0
    if TL_N(m) <= TL_FORMED:
        for i in range(nf):
            if tau[i] != 0.0:
                for j in range(n):
                    back[j] += p.Tn[j * nf + i] * tau[i]
    if TL_N(m) > TL_FORMED:
        for i in range(p.ns):
            axpy(tau[rows[2 * nf + i]], p.T + i * n, back, rows[2 * i], rows[2 * i + 1])


cdef enum:
    PATTERN_TRIES = 4      # assignments checked with their lock patterns before the boxed problem is factorised


cdef inline double take_sides(const tl_model* m, tl_state* s, tl_box* box, double* f) noexcept nogil:
    """Modes and torques of the candidates as box.side says; f: force with those at their limits. Returns nothing stuck
    would have: sum of |force| weighted with root, the bound on all accelerations."""
    cdef int32_t c, i, n = TL_N(m)
    cdef double gamma = 0.0
    memcpy(f, s.g, n * sizeof(double))
    for c in range(box.nc):
        i = box.cand[c]
        s.mode[i] = MODE_STUCK
        if box.side[c] == 0:
            continue
        box.tau[c] = box.lo[c] if box.side[c] < 0 else box.hi[c]
        if fabs(box.tau[c]) > NO_LIMIT:
            box.side[c] = 0
            continue
        s.mode[i] = MODE_FREE
        add_along(m, m.fr[i].row, box.tau[c], f)
    for i in range(n):
        gamma += s.root[i] * fabs(f[i])
    return gamma


cdef inline int32_t check_stuck(tl_box* box, int32_t c, double tau) noexcept nogil:
    """1 when candidate c is held with more than its limit: it changes sides."""
    cdef double tol = TORQUE_ROUNDING * (1.0 + fabs(tau))
    box.tau[c] = tau
    box.y[c] = 0.0
    if tau < box.lo[c] - tol:
        box.side[c] = -1
        return 1
    if tau > box.hi[c] + tol:
        box.side[c] = 1
        return 1
    return 0


cdef inline int32_t check_sliding(const tl_model* m, const tl_state* s, tl_box* box, int32_t c, const double* a,
                           double gamma) noexcept nogil:
    """Slip of candidate c at its limit into box.y, 0 for a tie; 1 when it goes the wrong way: back to rest."""
    cdef int32_t q, i = box.cand[c]
    cdef double y = 0.0, tol = 0.0, share = leftover(m, s, i)
    for q in range(m.row_ptr[m.fr[i].row], m.row_ptr[m.fr[i].row + 1]):
        y += m.row_val[q] * a[m.row_idx[q]]
        tol += fabs(m.row_val[q]) * s.root[m.row_idx[q]]
    y += share
    box.y[c] = y if fabs(y) > TORQUE_ROUNDING * gamma * tol + 2.0 * fabs(share) else 0.0
    if box.y[c] != 0.0 and (box.side[c] < 0) == (y < 0.0):
        box.side[c] = 0
        return 1
    return 0


cdef inline int32_t check_tie(const tl_model* m, tl_box* box, int32_t c, const double* back) noexcept nogil:
    """Candidate c is at its limit and the others keep it at rest: 1 when the least-norm split would give it less."""
    cdef double y = box.tau[c] - row_dot(m, m.fr[box.cand[c]].row, back)
    cdef double tol = TORQUE_ROUNDING * (1.0 + 2.0 * fabs(box.tau[c]) + fabs(y))
    if (box.side[c] < 0 and y < -tol) or (box.side[c] > 0 and y > tol):
        box.side[c] = 0
        return 1
    return 0


cdef inline int32_t held_by_pattern(const tl_model* m, tl_state* s, tl_box* box, int32_t* pivots) noexcept nogil:
    """The boxed problem with the lock pattern of an assignment instead of factors of the candidates: torques of those
    that stick from the pattern, slips of the others from its accelerations. What is violated changes sides, all at once.

    Needs s.g (force without the candidates); the pattern of a right guess is the one the step goes on with. An element
    at its limit that the others keep at rest all the same (a tie) takes the side the least-norm split gives it.
    Returns 1 when an assignment holds, 0 after PATTERN_TRIES.
    """
    cdef int32_t i, c, n = TL_N(m), bad, tied, t
    cdef double gamma
    cdef double* f = s.v2                    # (n) force with the candidates at their limits, (n) torques seen from u
    cdef double* back = s.v2 + n
    cdef double* a = s.am
    cdef double* held = s.v1
    cdef const double* inverse
    if TL_ND(m) + TL_NVG(m) > 0:
        for c in range(box.nc):
            s.mode[box.cand[c]] = MODE_FREE
        inverse = free_inverse(m, s, box.ahead)
        for i in range(n):
            s.root[i] = sqrt(fabs(inverse[i * n + i]))
    for t in range(PATTERN_TRIES):
        gamma = take_sides(m, s, box, f)
        s.pat = pattern_now(m, s)
        if TL_ND(m) + TL_NVG(m) > 0:
            drive_stages(m, s, 0, box.ahead)
        hold_instant(m, s, s.pat, f, a)
        if TL_ND(m) + TL_NVG(m) == 0 and n <= TL_FORMED:
            held = s.both + n                # where held_instant would take them from
        else:
            held_instant(m, s, s.pat, f, a, held)
        bad = 0
        tied = 0
        for c in range(box.nc):
            if box.side[c] == 0:
                bad += check_stuck(box, c, held[box.cand[c]])
            elif check_sliding(m, s, box, c, a, gamma):
                bad += 1
            elif box.y[c] == 0.0:
                if not tied:
                    tied = 1
                    backward(m, s.pat, held, back)
                bad += check_tie(m, box, c, back)
        if bad == 0:
            return 1
        pivots[0] += 1
    for c in range(box.nc):
        s.mode[box.cand[c]] = MODE_FREE
    return 0
