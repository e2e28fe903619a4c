"""Which friction elements stick, and what follows from it.

Two things live here, both outside the warm path of a step:

*Lock pattern.* For a set of stuck elements with rows B_s (w_rel = B_s u) the step needs the acceleration from a force
with the rows held at rest, a = P g, and the torques that hold them, tau = T g. With Z an orthonormal basis of the null
space of B_s:

    P = Z (Z^T S Z)^-1 Z^T            S = M + h/2 D + h^2/4 K (M alone for the acceleration of an instant)
    T = (B_s^T)^+ (S P - I)           least-norm split when more elements stick than there are degrees of freedom

The matrices depend on the set only, so they are cached by it; a pattern that occurred before costs one look-up.

*Boxed problem.* Find tau with  lo <= tau <= hi  and  y = W tau + b  such that  y = 0 inside the box,
y >= 0 at lo (the element slides forward), y <= 0 at hi. W = B S^-1 B^T is positive semidefinite; a relative shift of
1e-9 makes it definite, which selects the least-norm solution. Block principal pivoting (Judice and Pires 1994) with
the single pivots of Murty (1974) as the finite safeguard: work is bounded, and a bound that is hit ends in projected
Gauss-Seidel sweeps, which can only take energy out.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.model cimport tl_model, tl_pattern, tl_state

#: rows whose part outside the span of the others is below this share of their length count as dependent
cdef double RANK_TOL = 1e-9
#: relative shift of the diagonal: selects the least-norm split; a creep of 1e-9 of the free motion in *decisions* only
cdef double SHIFT = 1e-9


cdef int chol(double* A, int32_t k) noexcept nogil:
    """In-place lower Cholesky factor of A (k, k) row-major; returns 0, or 1 if not positive definite."""
    cdef int32_t i, j, l
    cdef double acc
    for j in range(k):
        acc = A[j * k + j]
        for l in range(j):
            acc -= A[j * k + l] * A[j * k + l]
        if not acc > 0.0:
            return 1
        A[j * k + j] = sqrt(acc)
        for i in range(j + 1, k):
            acc = A[i * k + j]
            for l in range(j):
                acc -= A[i * k + l] * A[j * k + l]
            A[i * k + j] = acc / A[j * k + j]
    return 0


cdef void chol_solve(const double* L, int32_t k, double* x) noexcept nogil:
    """x <- (L L^T)^-1 x."""
    cdef int32_t i, l
    cdef double acc
    for i in range(k):
        acc = x[i]
        for l in range(i):
            acc -= L[i * k + l] * x[l]
        x[i] = acc / L[i * k + i]
    for i in range(k - 1, -1, -1):
        acc = x[i]
        for l in range(i + 1, k):
            acc -= L[l * k + i] * x[l]
        x[i] = acc / L[i * k + i]


cdef int lu_solve(double* A, int32_t k, double* X, int32_t nrhs) noexcept nogil:
    """X (k, nrhs) <- A^-1 X by elimination with row pivoting; A is overwritten. 0, or 1 if singular."""
    cdef int32_t i, j, l, piv
    cdef double best, f, tmp
    for j in range(k):
        piv = j
        best = fabs(A[j * k + j])
        for i in range(j + 1, k):
            if fabs(A[i * k + j]) > best:
                best = fabs(A[i * k + j])
                piv = i
        if not best > 0.0:
            return 1
        if piv != j:
            for l in range(k):
                tmp = A[j * k + l]
                A[j * k + l] = A[piv * k + l]
                A[piv * k + l] = tmp
            for l in range(nrhs):
                tmp = X[j * nrhs + l]
                X[j * nrhs + l] = X[piv * nrhs + l]
                X[piv * nrhs + l] = tmp
        for i in range(j + 1, k):
            f = A[i * k + j] / A[j * k + j]
            if f != 0.0:
                for l in range(j + 1, k):
                    A[i * k + l] -= f * A[j * k + l]
                for l in range(nrhs):
                    X[i * nrhs + l] -= f * X[j * nrhs + l]
    for j in range(k - 1, -1, -1):
        for l in range(nrhs):
            f = X[j * nrhs + l]
            for i in range(j + 1, k):
                f -= A[j * k + i] * X[i * nrhs + l]
            X[j * nrhs + l] = f / A[j * k + j]
    return 0


cdef void projector(int32_t n, int32_t p, const double* Z, const double* S, double* P, double* work) noexcept nogil:
    """P (n, n) = Z (Z^T S Z)^-1 Z^T with Z stored as p rows of length n; work: n*p + p*p + p doubles."""
    cdef double* SZ = work             # (p, n): S z_i
    cdef double* A = work + n * p      # (p, p)
    cdef double* x = A + p * p         # (p)
    cdef int32_t i, j, l
    cdef double acc
    for i in range(p):
        for j in range(n):
            acc = 0.0
            for l in range(n):
                acc += S[j * n + l] * Z[i * n + l]
            SZ[i * n + j] = acc
    for i in range(p):
        for j in range(p):
            acc = 0.0
            for l in range(n):
                acc += Z[i * n + l] * SZ[j * n + l]
            A[i * p + j] = acc
    chol(A, p)
    for j in range(n):                 # column j of P = Z A^-1 Z^T e_j
        for i in range(p):
            x[i] = Z[i * n + j]
        chol_solve(A, p, x)
        for l in range(n):
            acc = 0.0
            for i in range(p):
                acc += Z[i * n + l] * x[i]
            P[j * n + l] = acc


cdef void holding(const tl_model* m, const double* Tn, const double* S, const double* P, double* T,
                  double* work) noexcept nogil:
    """T (column j at j*nf) = Tn (S P - I): the torque that holds the stuck rows against a force."""
    cdef int32_t n = m.n, nf = m.nf, i, j, l
    cdef double acc
    for j in range(n):
        for i in range(n):
            acc = -1.0 if i == j else 0.0
            for l in range(n):
                acc += S[i * n + l] * P[j * n + l]
            work[i] = acc
        for i in range(nf):
            acc = 0.0
            for l in range(n):
                acc += Tn[l * nf + i] * work[l]
            T[j * nf + i] = acc


cdef void build(const tl_model* m, tl_state* s, tl_pattern* q, const int32_t* list_, int32_t ns) noexcept nogil:
    """Fill the matrices of the pattern whose stuck elements are list_[0:ns]."""
    cdef int32_t n = m.n, nf = m.nf, i, j, l, k = 0, p = 0, rep
    cdef double* Q = s.pat_work          # (n, n) orthonormal rows: first the span of B_s, then its complement Z
    cdef double* L = Q + n * n           # (ns, n) B_s Q^T
    cdef double* work = L + nf * n + n
    cdef double* v = work
    cdef double* LL = work + n
    cdef double norm, norm0, acc
    cdef const double* row
    # orthonormal basis: Gram-Schmidt, twice is enough
    for i in range(ns + n):
        for j in range(n):
            if i < ns:
                v[j] = m.B[list_[i] * n + j]
            else:
                v[j] = 1.0 if i - ns == j else 0.0
        norm0 = 0.0
        for j in range(n):
            norm0 += v[j] * v[j]
        for rep in range(2):
            for l in range(k + p):
                acc = 0.0
                for j in range(n):
                    acc += Q[l * n + j] * v[j]
                for j in range(n):
                    v[j] -= acc * Q[l * n + j]
        norm = 0.0
        for j in range(n):
            norm += v[j] * v[j]
        if k + p < n and norm > (RANK_TOL * RANK_TOL * norm0 if i < ns else 1e-6 / n):
            norm = 1.0 / sqrt(norm)
            for j in range(n):
                Q[(k + p) * n + j] = v[j] * norm
            if i < ns:
                k += 1
            else:
                p += 1
    # least-norm split Tn = L (L^T L)^-1 Q, L = B_s Q^T (ns, k)
    memset(q.Tn, 0, n * nf * sizeof(double))
    if k > 0:
        for i in range(ns):
            for l in range(k):
                acc = 0.0
                for j in range(n):
                    acc += m.B[list_[i] * n + j] * Q[l * n + j]
                L[i * k + l] = acc
        for l in range(k):
            for j in range(k):
                acc = 0.0
                for i in range(ns):
                    acc += L[i * k + l] * L[i * k + j]
                LL[l * k + j] = acc
        chol(LL, k)
        for j in range(n):
            for l in range(k):
                v[l] = Q[l * n + j]
            chol_solve(LL, k, v)
            for i in range(ns):
                acc = 0.0
                for l in range(k):
                    acc += L[i * k + l] * v[l]
                q.Tn[j * nf + list_[i]] = acc
    projector(n, p, Q + k * n, m.S, q.P, work)
    holding(m, q.Tn, m.S, q.P, q.T, work)
    if q.P0 != q.P:
        projector(n, p, Q + k * n, m.M, q.P0, work)
        holding(m, q.Tn, m.M, q.P0, q.T0, work)
    if m.order == 4:
        build4(m, q, Q + k * n, p, work)
    q.valid = 1


cdef void build4(const tl_model* m, tl_pattern* q, const double* Z, int32_t p, double* work) noexcept nogil:
    """P4 = (I x Z) [(I x Z)^T A4 (I x Z)]^-1 (I x Z)^T, both (2n, 2n); stored by columns."""
    cdef int32_t n = m.n, n2 = 2 * m.n, p2 = 2 * p, i, j, l, bi, bj
    cdef double* A = work                    # (2p, 2p)
    cdef double* X = A + p2 * p2             # (2p, 2n)
    cdef double* t = X + p2 * n2             # (n)
    cdef double acc
    for bi in range(2):
        for bj in range(2):
            for j in range(p):
                for i in range(n):
                    acc = 0.0
                    for l in range(n):
                        acc += m.A4[(bi * n + i) * n2 + bj * n + l] * Z[j * n + l]
                    t[i] = acc
                for i in range(p):
                    acc = 0.0
                    for l in range(n):
                        acc += Z[i * n + l] * t[l]
                    A[(bi * p + i) * p2 + bj * p + j] = acc
    memset(X, 0, p2 * n2 * sizeof(double))
    for bi in range(2):
        for i in range(p):
            for j in range(n):
                X[(bi * p + i) * n2 + bi * n + j] = Z[i * n + j]
    lu_solve(A, p2, X, n2)
    for j in range(n2):
        for bi in range(2):
            for l in range(n):
                acc = 0.0
                for i in range(p):
                    acc += Z[i * n + l] * X[(bi * p + i) * n2 + j]
                q.P4[j * n2 + bi * n + l] = acc


cdef tl_pattern* pattern_of(const tl_model* m, tl_state* s) noexcept nogil:
    """The pattern of the elements with mode 0; built when it is not in the cache. Real-time: yes (bounded, n^3)."""
    cdef int32_t i, ns = 0
    cdef uint64_t hsh = 0
    cdef tl_pattern* q
    cdef int same = 1
    for i in range(m.nkey):
        s.key[i] = 0
    for i in range(m.nf):
        if s.mode[i] == 0:
            s.key[i >> 6] |= (<uint64_t>1) << (i & 63)
            s.stuck_list[ns] = i
            ns += 1
    if m.direct_cache:
        q = &s.cache[s.key[0]]
    else:
        for i in range(m.nkey):
            hsh = (hsh ^ s.key[i]) * <uint64_t>0x9E3779B97F4A7C15
            hsh ^= hsh >> 29
        q = &s.cache[hsh & <uint64_t>(m.ncache - 1)]
    if q.valid:
        for i in range(m.nkey):
            if q.key[i] != s.key[i]:
                same = 0
        if same:
            return q
    build(m, s, q, s.stuck_list, ns)
    for i in range(m.nkey):
        q.key[i] = s.key[i]
    return q


cdef int boxed_solve(int32_t k, const double* W, const double* b, const double* lo, const double* hi, double* tau,
                     int32_t* side, double* work, int32_t* pivots) noexcept nogil:
    """Boxed linear complementarity problem; see the head of this file.

    W (k, k) row-major symmetric positive semidefinite, b (k), lo <= 0 <= hi (k, may be infinite). On entry side (k)
    is the first guess, on return the answer: 0 inside (sticks), -1 at lo (slides forward), +1 at hi (backward).
    tau (k): the forces. work: k*k + 3*k doubles. pivots: number of changes. Returns 0, or 1 when the fallback was taken.
    """
    cdef double* A = work
    cdef double* x = work + k * k
    cdef double* y = x + k
    cdef int32_t i, j, nf, it, bad, best = k + 1, patience = 5, pick, limit = 10 * k + 20
    cdef double acc, shift, diag = 0.0, yscale, tscale
    pivots[0] = 0
    for i in range(k):
        if W[i * k + i] > diag:
            diag = W[i * k + i]
    shift = SHIFT * diag
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
                        A[pick * nf + bad] = W[i * k + j] + (shift if i == j else 0.0)
                        bad += 1
                pick += 1
        if nf > 0:
            if chol(A, nf):
                break
            chol_solve(A, nf, x)
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
                y[i] = acc + shift * tau[i]
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
