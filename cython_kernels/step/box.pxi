# The boxed problem of one instant or interval: who takes part, within which limits, and what the others do to it.
#
# Equations: (38).

cdef extern from *:
    """
    /* part of h within which what rounding has left of a slip at rest is removed */
    #define TL_LONGEST_LOOK (1.0 / 32.0)
    """
    const double LONGEST_LOOK "TL_LONGEST_LOOK"


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
    box.W = next_doubles(&block, nb * nb)
    box.b = next_doubles(&block, nb)
    box.lo = next_doubles(&block, nb)
    box.hi = next_doubles(&block, nb)
    box.tau = next_doubles(&block, nb)
    box.y = next_doubles(&block, nb)
    box.work = next_doubles(&block, nb * nb + 3 * nb)
    box.cand = next_ints(&block, nb)
    box.rows = next_ints(&block, nb)
    box.side = next_ints(&block, nb)
    box.released = next_ints(&block, nb)
    box.guess = next_ints(&block, nb)
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
    """Ways element i lets nothing go: those of a free wheel, of a stop that is at an end, or of teeth."""
    if is_stop(m, i) and s.at_end[m.fr[i].src_idx] == ENGAGED:
        return FORWARD | BACKWARD
    if is_stop(m, i):
        return FORWARD if s.at_end[m.fr[i].src_idx] > 0 else (BACKWARD if s.at_end[m.fr[i].src_idx] < 0 else 0)
    return (FORWARD if m.fr[i].fwd == BLOCKED else 0) | (BACKWARD if m.fr[i].bwd == BLOCKED else 0)


cdef inline double leftover(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Acceleration that would remove what is left of the slip of element i at rest within the longest look-ahead."""
    return s.now.w[m.fr[i].row] / (LONGEST_LOOK * m.h)


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
