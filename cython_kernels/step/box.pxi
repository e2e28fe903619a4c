# The boxed problem of one instant or interval: who takes part, within which limits, and what the others do to it.
# Needs: step_imports.pxi, gather.


cdef struct tl_box:
    int32_t nc             # candidates
    int32_t* cand          # (nc) their elements
    int32_t* rows          # (nc) and the rows of these
    int32_t* side          # (nc) 0 sticks, -1 at lo (slides forward), 1 at hi
    int32_t* released      # (nc) 1: has the sliding capacity only
    int32_t* guess         # (nc) side to begin with
    double* W              # (nc, nc) response of the slips to the torques
    double* b              # (nc) slips without them
    double* lo             # (nc)
    double* hi             # (nc)
    double* tau            # (nc)
    double* y              # (nc) slip found; 0: none but rounding
    double* work           # scratch of boxed_solve
    double ahead           # of h: how long after the instant driven flanges are asked what they do


cdef inline int32_t box_room(const tl_model* m) noexcept nogil:
    """Most candidates there may be: all elements, both sides of all contacts and stops."""
    return TL_NF(m) + 2 * (TL_NCON(m) + TL_NST(m))


cdef inline tl_box take_box(const tl_model* m, tl_state* s) noexcept nogil:
    """A problem without candidates, in scratch memory: the caller marks and releases it."""
    cdef int32_t nb = box_room(m)
    cdef tl_box box
    cdef double* block = scratch(s, 2 * nb * nb + 8 * nb + 5 * ((nb + 1) // 2))
    box.nc = 0
    box.ahead = 0.0
    box.W = cut(&block, nb * nb)
    box.b = cut(&block, nb)
    box.lo = cut(&block, nb)
    box.hi = cut(&block, nb)
    box.tau = cut(&block, nb)
    box.y = cut(&block, nb)
    box.work = cut(&block, nb * nb + 3 * nb)
    box.cand = cut_ints(&block, nb)
    box.rows = cut_ints(&block, nb)
    box.side = cut_ints(&block, nb)
    box.released = cut_ints(&block, nb)
    box.guess = cut_ints(&block, nb)
    return box


cdef inline int32_t bilateral(const tl_model* m, int32_t i) noexcept nogil:
    """1 for driven flanges and gears of variable ratio: always held, they do not take part."""
    return TL_ND(m) + TL_NVG(m) > 0 and m.fr[i].src == BILATERAL


cdef inline int32_t engaged(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when element i can carry a torque at all: pressed, a free wheel, or a stop at an end."""
    return blocked(m, s, i) != 0 or s.pressed[i] != 0


cdef enum:
    FORWARD = 1            # ways an element may block: w > 0
    BACKWARD = 2           # w < 0


cdef inline int32_t is_stop(const tl_model* m, int32_t i) noexcept nogil:
    """1 for hard stops: they hold at the ends of their range only."""
    return TL_NST(m) > 0 and m.fr[i].src == STOP


cdef inline int32_t blocked(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Ways element i lets nothing go: those of a free wheel, or of a stop that is at an end."""
    if is_stop(m, i):
        return FORWARD if s.at_end[m.fr[i].src_idx] > 0 else (BACKWARD if s.at_end[m.fr[i].src_idx] < 0 else 0)
    return (FORWARD if m.fr[i].fwd == BLOCKED else 0) | (BACKWARD if m.fr[i].bwd == BLOCKED else 0)


cdef inline void add_along(const tl_model* m, int32_t k, double f, double* g) noexcept nogil:
    """g += f times row k."""
    cdef int32_t q
    for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
        g[m.row_idx[q]] += m.row_val[q] * f


cdef void responses(const tl_model* m, tl_state* s, const tl_box* box, const double* P) noexcept nogil:
    """box.W from an inverse P (n, n) of the inertia: responses of the slips along rows (nc) to torques along them."""
    cdef int32_t c, d, i, q, n = TL_N(m), nc = box.nc
    cdef double* col = s.us
    for d in range(nc):
        for i in range(n):
            col[i] = 0.0
        for q in range(m.row_ptr[box.rows[d]], m.row_ptr[box.rows[d] + 1]):
            axpy(m.row_val[q], P + m.row_idx[q] * n, col, 0, n)
        for c in range(d + 1):
            box.W[c * nc + d] = row_dot(m, box.rows[c], col)
            box.W[d * nc + c] = box.W[c * nc + d]


cdef inline void hold_instant(const tl_model* m, tl_state* s, const tl_pattern* p, const double* f, double* a) noexcept nogil:
    """Accelerations a now from the force f with the elements of pattern p held and the driven flanges moved."""
    cdef int32_t i, n = TL_N(m)
    if TL_ND(m) + TL_NVG(m) == 0 and n <= TL_FORMED:
        pattern_matvec(p.T0, lanes(n + TL_NF(m)), n, f, s.both)
        for i in range(n):
            a[i] = s.both[i]
        return
    if TL_ND(m) + TL_NVG(m) == 0:
        hold_now(m, p, f, a)
        return
    for i in range(n):
        s.us[i] = f[i] - dot(m.M + i * n, s.ad, 0, n)
    hold_now(m, p, s.us, a)
    for i in range(n):
        a[i] += s.ad[i]


cdef inline void held_instant(const tl_model* m, tl_state* s, const tl_pattern* p, const double* f, const double* a,
                       double* tau) noexcept nogil:
    """Torques tau (nf) that hold the elements of pattern p while f accelerates with a; of the others 0 or as they were.
    After hold_instant."""
    cdef int32_t i, j, n = TL_N(m), nf = TL_NF(m)
    cdef double miss
    if TL_ND(m) + TL_NVG(m) == 0:
        if n <= TL_FORMED:
            for i in range(nf):
                tau[i] = s.both[n + i]
        else:
            held_torques(m, s, m.M, f, a, tau)
        return
    for i in range(nf):
        tau[i] = 0.0
    for j in range(n):
        miss = dot(m.M + j * n, a, 0, n) - f[j]
        axpy(miss, p.Tn + j * nf, tau, 0, nf)


cdef void find_slips(tl_box* box) noexcept nogil:
    """box.y = W tau + b; 0 where it is rounding."""
    cdef int32_t c, d, nc = box.nc
    cdef double size
    for c in range(nc):
        box.y[c] = box.b[c]
        size = fabs(box.b[c])
        for d in range(nc):
            box.y[c] += box.W[c * nc + d] * box.tau[d]
            size += fabs(box.W[c * nc + d] * box.tau[d])
        if fabs(box.y[c]) <= RATE_ROUNDING * size:
            box.y[c] = 0.0


cdef inline void count_pivots(tl_state* s, int32_t pivots) noexcept nogil:
    s.counters[TL_C_PIVOTS] += pivots
    if pivots > s.counters[TL_C_PIVOTS_MAX]:
        s.counters[TL_C_PIVOTS_MAX] = pivots


cdef inline void forget_history(const tl_model* m, tl_state* s) noexcept nogil:
    """The slope of the acceleration is not that of what follows."""
    cdef int32_t i
    s.hist[0] = 0
    for i in range(TL_N(m)):
        s.now.hs1[i] = 0.0
    if m.order == 4:
        for i in range(TL_N(m)):
            s.hs2[i] = 0.0
