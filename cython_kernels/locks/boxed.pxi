# The boxed problem: who of the candidates sticks, who slides. See the head of locks.pyx.
#
# Equations: (39), (40).

cdef enum:
    SWEEPS = 50            # of projected Gauss-Seidel


cdef inline int32_t without_limit(double limit) noexcept nogil:
    return limit < -NO_LIMIT or limit > NO_LIMIT


cdef double boxed_begin(int32_t k, const double* W, const double* lo, const double* hi, int32_t* side) noexcept nogil:
    """Guesses at limits that are none begin inside; returns the largest response of a candidate."""
    cdef int32_t i
    cdef double diag = 0.0
    for i in range(k):
        # a driven flange may be all but massless: it must not set the scale
        if W[i * k + i] > diag and not (without_limit(lo[i]) and without_limit(hi[i])):
            diag = W[i * k + i]
    for i in range(k):
        if (side[i] < 0 and without_limit(lo[i])) or (side[i] > 0 and without_limit(hi[i])):
            side[i] = 0
    return diag


cdef int boxed_forces(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                      const int32_t* side, double diag, double* work) noexcept nogil:
    """Forces tau with these sides: at the bounds, the inside ones from W_FF tau_F = -(b_F + W_FA tau_A). 1: W_FF is not
    definite."""
    cdef double* A = work
    cdef double* x = work + k * k
    cdef int32_t* first = <int32_t*>(x + 2 * k)
    cdef int32_t i, j, row = 0, column, nf = 0
    cdef double acc
    for i in range(k):
        if side[i] < 0:
            tau[i] = lo[i]
        elif side[i] > 0:
            tau[i] = hi[i]
    for i in range(k):
        if side[i] == 0:
            acc = -b[i]
            for j in range(k):
                if side[j] != 0:
                    acc -= W[i * k + j] * tau[j]
            x[nf] = acc
            nf += 1
    if nf == 0:
        return 0
    for i in range(k):
        if side[i] == 0:
            column = 0
            for j in range(k):
                if side[j] == 0:
                    A[row * nf + column] = W[i * k + j] + (shift_of(diag, W[i * k + i]) if i == j else 0.0)
                    column += 1
            row += 1
    if chol(A, nf, first):
        return 1
    chol_solve(A, nf, first, x)
    nf = 0
    for i in range(k):
        if side[i] == 0:
            tau[i] = x[nf]
            nf += 1
    return 0


cdef int32_t boxed_violated(int32_t k, const double* W, const double* b, const double* lo, const double* hi,
                            const double* tau, const int32_t* side, double diag, double* y, int32_t* last) noexcept nogil:
    """How many candidates contradict their side, the last of them; y (k): slips of those that slide the wrong way, else 0.
    Ties within rounding are accepted as they are."""
    cdef int32_t i, j, bad = 0
    cdef double acc, scale
    last[0] = -1
    for i in range(k):
        y[i] = 0.0
        if side[i] == 0:
            scale = force_slack(tau[i])
            if tau[i] < lo[i] - scale or tau[i] > hi[i] + scale:
                bad += 1
                last[0] = i
            continue
        acc = b[i]
        scale = fabs(b[i])
        for j in range(k):
            acc += W[i * k + j] * tau[j]
            scale += fabs(W[i * k + j] * tau[j])
        acc = acc + shift_of(diag, W[i * k + i]) * tau[i]
        scale = RATE_ROUNDING * scale
        if (side[i] < 0 and acc < -scale) or (side[i] > 0 and acc > scale):
            y[i] = acc
            bad += 1
            last[0] = i
    return bad


cdef void boxed_pivot(int32_t k, const double* lo, const double* hi, const double* tau, const double* y, int32_t* side,
                      int32_t only) noexcept nogil:
    """What contradicts its side changes it: all of it, or `only` one (-1: all)."""
    cdef int32_t i
    cdef double slack
    for i in range(k):
        if only >= 0 and i != only:
            continue
        if side[i] == 0:
            slack = force_slack(tau[i])
            if tau[i] < lo[i] - slack:
                side[i] = -1
            elif tau[i] > hi[i] + slack:
                side[i] = 1
        elif y[i] != 0.0:
            side[i] = 0


cdef void boxed_sweep(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                      int32_t* side) noexcept nogil:
    """Projected Gauss-Seidel from tau = 0: no sweep raises 1/2 tau.W tau + b.tau. In the impulse step that is, but for a constant,
    the kinetic energy at the end of the interval, which is then at most that without the candidates."""
    cdef int32_t i, j, it
    cdef double acc
    for i in range(k):
        tau[i] = 0.0
    for it in range(SWEEPS):
        for i in range(k):
            acc = b[i]
            for j in range(k):
                acc += W[i * k + j] * tau[j]
            if W[i * k + i] > 0.0:
                tau[i] -= acc / W[i * k + i]
            if tau[i] < lo[i]:
                tau[i] = lo[i]
            if tau[i] > hi[i]:
                tau[i] = hi[i]
    for i in range(k):
        side[i] = -1 if tau[i] <= lo[i] else (1 if tau[i] >= hi[i] else 0)


cdef void boxed_refine(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                       const int32_t* side, double* work) noexcept nogil:
    """One step of iterative refinement for the forces of what sticks: it lowers what the shift has left of their slips from SHIFT to
    about SHIFT^2 of the free motion, where no limit clips it. work holds the factors of boxed_forces for these sides."""
    cdef double* x = work + k * k
    cdef int32_t i, j, nf = 0
    cdef double acc
    for i in range(k):
        if side[i] == 0:
            acc = -b[i]
            for j in range(k):
                acc -= W[i * k + j] * tau[j]
            x[nf] = acc
            nf += 1
    if nf == 0:
        return
    chol_solve(work, nf, <int32_t*>(x + 2 * k), x)
    nf = 0
    for i in range(k):
        if side[i] == 0:
            tau[i] += x[nf]
            tau[i] = lo[i] if tau[i] < lo[i] else hi[i] if tau[i] > hi[i] else tau[i]
            nf += 1


cdef int boxed_solve(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                     int32_t* side, double* work, int32_t* pivots) noexcept nogil:
    """Boxed linear complementarity problem; see the head of locks.pyx.

    W (k, k) row-major symmetric positive semidefinite, b (k), lo <= 0 <= hi (k, may be infinite). On entry side (k)
    is the first guess, on return the answer: 0 inside (sticks), -1 at lo (slides forward), +1 at hi (backward).
    tau (k): the forces. work: k*k + 3*k doubles. pivots: number of changes. Returns 0, or 1 when the
    fallback was taken. An order of the candidates with a small bandwidth of W is cheap (see chol).
    """
    cdef double* y = work + k * k + k
    cdef int32_t it, bad, last, best = k + 1, patience = PATIENCE
    cdef double diag = boxed_begin(k, W, lo, hi, side)
    pivots[0] = 0
    for it in range(10 * k + 20):
        if boxed_forces(k, W, b, lo, hi, tau, side, diag, work):
            break
        bad = boxed_violated(k, W, b, lo, hi, tau, side, diag, y, &last)
        if bad == 0:
            boxed_refine(k, W, b, lo, hi, tau, side, work)
            return 0
        pivots[0] += 1
        if bad < best:
            best = bad
            patience = PATIENCE
        else:
            patience -= 1
        boxed_pivot(k, lo, hi, tau, y, side, last if patience < 0 else -1)
    boxed_sweep(k, W, b, lo, hi, tau, side)
    return 1
