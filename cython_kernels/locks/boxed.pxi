# The boxed problem: who of the candidates sticks, who slides. See the head of locks.pyx.

cdef inline double shift_of(double largest, double own) noexcept nogil:
    """Shift of a diagonal element: the same for all, which selects the least-norm split; but never so much that it would
    let an element creep that is far heavier than the others."""
    return SHIFT * (largest if largest < 1e3 * own else 1e3 * own)


cdef int boxed_solve(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                     int32_t* side, double* work, int32_t* pivots) noexcept nogil:
    """Boxed linear complementarity problem; see the head of this file.

    W (k, k) row-major symmetric positive semidefinite, b (k), lo <= 0 <= hi (k, may be infinite). On entry side (k)
    is the first guess, on return the answer: 0 inside (sticks), -1 at lo (slides forward), +1 at hi (backward).
    tau (k): the forces. work: k*k + 3*k doubles. pivots: number of changes. Returns 0, or 1 when the
    fallback was taken. An order of the candidates with a small bandwidth of W is cheap (see chol).
    """
    cdef double* A = work
    cdef double* x = work + k * k
    cdef double* y = x + k
    cdef int32_t* first = <int32_t*>(y + k)
    cdef int32_t i, j, nf, it, bad, best = k + 1, patience = 5, pick, limit = 10 * k + 20
    cdef double acc, diag = 0.0, yscale, tscale
    pivots[0] = 0
    for i in range(k):
        # a driven flange may be all but massless: it must not set the scale
        if W[i * k + i] > diag and (lo[i] > -1e300 or hi[i] < 1e300):
            diag = W[i * k + i]
    for i in range(k):
        if side[i] < 0 and lo[i] < -1e300:
            side[i] = 0
        if side[i] > 0 and hi[i] > 1e300:
            side[i] = 0
    for it in range(limit):
        # forces at the bounds, then the inside ones from W_FF tau_F = -(b_F + W_FA tau_A)
        for i in range(k):
            if side[i] < 0:
                tau[i] = lo[i]
            elif side[i] > 0:
                tau[i] = hi[i]
        nf = 0
        for i in range(k):
            if side[i] == 0:
                acc = -b[i]
                for j in range(k):
                    if side[j] != 0:
                        acc -= W[i * k + j] * tau[j]
                x[nf] = acc
                nf += 1
        pick = 0
        for i in range(k):
            if side[i] == 0:
                bad = 0
                for j in range(k):
                    if side[j] == 0:
                        A[pick * nf + bad] = W[i * k + j] + (shift_of(diag, W[i * k + i]) if i == j else 0.0)
                        bad += 1
                pick += 1
        if nf > 0:
            if chol(A, nf, first):
                break
            chol_solve(A, nf, first, x)
        nf = 0
        for i in range(k):
            if side[i] == 0:
                tau[i] = x[nf]
                nf += 1
        # residuals; ties within rounding are accepted as they are
        bad = 0
        pick = -1
        for i in range(k):
            y[i] = 0.0
            if side[i] == 0:
                tscale = 1e-12 * (1.0 + fabs(tau[i]))
                if tau[i] < lo[i] - tscale or tau[i] > hi[i] + tscale:
                    bad += 1
                    pick = i
            else:
                acc = b[i]
                yscale = fabs(b[i])
                for j in range(k):
                    acc += W[i * k + j] * tau[j]
                    yscale += fabs(W[i * k + j] * tau[j])
                y[i] = acc + shift_of(diag, W[i * k + i]) * tau[i]
                yscale = 1e-11 * yscale
                if (side[i] < 0 and y[i] < -yscale) or (side[i] > 0 and y[i] > yscale):
                    bad += 1
                    pick = i
                else:
                    y[i] = 0.0
        if bad == 0:
            return 0
        pivots[0] += 1
        if bad < best:
            best = bad
            patience = 5
        else:
            patience -= 1
        for i in range(k):
            if patience < 0 and i != pick:
                continue
            if side[i] == 0:
                tscale = 1e-12 * (1.0 + fabs(tau[i]))
                if tau[i] < lo[i] - tscale:
                    side[i] = -1
                elif tau[i] > hi[i] + tscale:
                    side[i] = 1
            elif y[i] != 0.0:
                side[i] = 0
    # bound hit: projected Gauss-Seidel from rest, each sweep lowers the kinetic energy at the end of the interval
    for i in range(k):
        tau[i] = 0.0
    for it in range(50):
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
    return 1


cdef void boxed_refine(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                       const int32_t* side, double* work) noexcept nogil:
    """Forces tau of what sticks once more from what boxed_solve has left of their slips with its shift: W tau + b = 0 to
    1e-18 of the free motion instead of 1e-9. Directly after a boxed_solve that returned 0: work holds its factors."""
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
