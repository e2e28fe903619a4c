# Impacts: what moves a way it is blocked (a free wheel after a jump, a stop that has just been reached) is brought to rest
# at once, as plastic impacts are.
#
#     M (u+ - u-) = B^T L,    r+ = B u+,    L pushes back only, r+ does not go the blocked way, L r+ = 0
#
# (Moreau). It conserves momentum and takes energy out. Friction of finite capacity has no impulse in no time.
#
# Equations: (41), (42).

cdef int32_t find_impacts(const tl_model* m, tl_state* s, tl_box* box) noexcept nogil:
    """Candidates: what is blocked and does not move away. 1 when one of them moves the blocked way."""
    cdef int32_t i, way, hit = 0
    cdef double r
    for i in range(TL_NF(m)):
        way = 0 if bilateral(m, i) else blocked(m, s, i)
        r = s.now.w[TL_FR_ROW(m, i)]
        s.decision.before[i] = s.mode[i]
        if not ((way & FORWARD and r > -TOL_R) or (way & BACKWARD and r < TOL_R)):
            continue
        if (way & FORWARD and r > TOL_R) or (way & BACKWARD and r < -TOL_R):
            hit = 1
        box.rows[box.nc] = TL_FR_ROW(m, i)
        box.cand[box.nc] = i
        box.side[box.nc] = 0
        box.b[box.nc] = r
        box.lo[box.nc] = -UNLIMITED if way & FORWARD else 0.0
        box.hi[box.nc] = UNLIMITED if way & BACKWARD else 0.0
        box.nc += 1
    return hit


cdef int stop_blocked(const tl_model* m, tl_state* s) noexcept nogil:
    """All impacts of this instant; what is lost counts as heat of the elements hit. Returns 1 when there was one: it may
    drive another element into its end, so it is called until it finds none."""
    cdef int32_t i, c, piv = 0
    cdef double lost, share = 0.0, heat
    cdef int64_t here = mark(s)
    cdef tl_box box = take_box(m, s)
    cdef const double* inverse
    cdef double* of_losses = scratch(s, TL_N(m))
    if not find_impacts(m, s, &box):
        release(s, here)
        return 0
    for i in range(TL_NF(m)):
        s.mode[i] = MODE_STUCK if bilateral(m, i) else MODE_FREE
    inverse = free_inverse(m, s, 0.0)
    responses(m, s, &box, inverse)
    boxed_solve(box.nc, box.W, box.b, box.lo, box.hi, box.tau, box.side, box.work, &piv)
    count_pivots(s, piv)
    for c in range(box.nc):
        if box.side[c] == 0:
            s.mode[box.cand[c]] = MODE_STUCK
    s.pat = pattern_of(m, s)
    lost = kinetic_energy(m, s)
    memcpy(s.us, s.now.u, TL_N(m) * sizeof(double))
    memset(of_losses, 0, TL_N(m) * sizeof(double))
    stop_slips(m, s)
    if TL_NLS(m) > 0:
        lost -= lose_impulse(m, s, s.us, of_losses)
    lost -= kinetic_energy(m, s)
    if TL_ND(m) + TL_NVG(m) > 0:
        lost += impulse_work(m, s, of_losses)
    for c in range(box.nc):
        share += fabs(box.tau[c] * box.b[c])
    for c in range(box.nc):
        heat = lost * fabs(box.tau[c] * box.b[c]) / share if share > 0.0 else 0.0
        s.e_fr[box.cand[c]] += heat if heat > 0.0 else 0.0
    for i in range(TL_NF(m)):
        s.mode[i] = s.decision.before[i]
    release(s, here)
    return 1


cdef void reach_ends(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Stops reached at the fraction x of the trial: plastic impacts, until nothing moves beyond an end any more."""
    cdef int32_t i, j, hit = 0
    for j in range(TL_NST(m)):
        if s.event.contact_x[TL_NCON(m) + j] <= x + AT_ONCE:
            s.at_end[j] = s.event.contact_next[TL_NCON(m) + j]
            stop_limits(m, s, j)
            hit = 1
    if hit:
        for i in range(TL_NF(m) + 1):
            if not stop_blocked(m, s):
                break
