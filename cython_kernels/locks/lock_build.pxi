# Building a lock pattern: an orthonormal basis of the speeds, sorted by what holds them, and the matrices on it.
#
# Rows of the basis Q, found one after the other by Gram-Schmidt:
#
#   span of the stuck rows B_s | what the springs, dampers and contacts see of the rest, Z_e | the rest, Z_r
#
# No compliance acts on Z_r, so with Z_e made M-orthogonal to it the two parts do not mix:
#
#   P = Z_r (Z_r^T M Z_r)^-1 Z_r^T  +  Z_e (Z_e^T S Z_e)^-1 Z_e^T
#
# and the motion of a driveline as a whole is exact however stiff its springs are (in the sum S = M + h^2/4 K the
# inertia would be lost in the rounding of K). Every row knows the range of its entries that are not zero. What depends on the length
# of a trial, and on how many stages it has, are small matrices on Z_e alone: of them the pattern keeps the parts of M, D and K.
#
# Needs: pattern_extras.pxi, chol and lu_solve of locks.pyx, vectors.pxd.

cdef int64_t build_scratch(int64_t n, int64_t nf) noexcept nogil:
    """Doubles of scratch that building a pattern takes at most: basis, rows of what sticks, `split` or add_part behind them; or
    add_seen."""
    cdef int64_t basis = 3 * n * n + (nf + 1) * n + 3 * n + nf, four = 8 * n * n + 4 * n * nf
    return basis if basis > four else four


cdef struct tl_basis:
    int32_t n
    int32_t count
    double* Q             # (n, n) orthonormal rows
    int32_t* lo           # (n) first entry of a row that is not zero
    int32_t* hi           # (n) one past the last
    double* left          # (n) squared length of what the rows so far leave of each unit vector
    double* v             # (n) scratch


cdef int32_t extend(tl_basis* b, const int32_t* idx, const double* val, int32_t nnz, double tol,
                    double* coef) noexcept nogil:
    """Orthogonalise a sparse row and append it unless (squared) less than the share tol of it is new. Returns 1 when it
    was appended; coef (n) receives the coefficients of the row in the basis. A second pass where the first one
    cancelled more than half: twice is enough (Daniel et al. 1976)."""
    cdef int32_t n = b.n, l, q, lo = n, hi = 0, rlo, rhi
    cdef double norm0, norm, acc
    cdef double* row
    memset(b.v, 0, n * sizeof(double))
    memset(coef, 0, n * sizeof(double))
    for q in range(nnz):
        b.v[idx[q]] += val[q]
        lo = idx[q] if idx[q] < lo else lo
        hi = idx[q] + 1 if idx[q] >= hi else hi
    norm0 = dot(b.v, b.v, lo, hi)
    rlo = lo
    rhi = hi
    for l in range(b.count):
        if b.lo[l] < rhi and b.hi[l] > rlo:
            row = b.Q + l * n
            acc = 0.0
            for q in range(nnz):
                acc += row[idx[q]] * val[q]
            if acc != 0.0:
                coef[l] = acc
                axpy(-acc, row, b.v, b.lo[l], b.hi[l])
                lo = b.lo[l] if b.lo[l] < lo else lo
                hi = b.hi[l] if b.hi[l] > hi else hi
    if b.count == n:
        return 0
    norm = dot(b.v, b.v, lo, hi)
    if not norm > tol * norm0:
        return 0
    if norm < 0.5 * norm0:
        for l in range(b.count):
            rlo = b.lo[l] if b.lo[l] > lo else lo
            rhi = b.hi[l] if b.hi[l] < hi else hi
            if rlo < rhi:
                row = b.Q + l * n
                acc = dot(row, b.v, rlo, rhi)
                if acc != 0.0:
                    coef[l] += acc
                    axpy(-acc, row, b.v, b.lo[l], b.hi[l])
                    lo = b.lo[l] if b.lo[l] < lo else lo
                    hi = b.hi[l] if b.hi[l] > hi else hi
        norm = dot(b.v, b.v, lo, hi)
        if not norm > tol * norm0:
            return 0
    norm = sqrt(norm)
    row = b.Q + b.count * n
    memset(row, 0, n * sizeof(double))
    acc = 1.0 / norm
    for q in range(lo, hi):
        row[q] = b.v[q] * acc
        b.left[q] -= row[q] * row[q]
    coef[b.count] = norm
    b.lo[b.count] = lo
    b.hi[b.count] = hi
    b.count += 1
    return 1


cdef inline void take_from(double f, const double* X, const int32_t* xlo, const int32_t* xhi, int32_t n, int32_t l,
                           double* y, int32_t* lo, int32_t* hi) noexcept nogil:
    """y -= f * row l of X, and the range of y that is not zero."""
    if f != 0.0 and xlo[l] < xhi[l]:
        axpy(-f, X + l * n, y, xlo[l], xhi[l])
        if xlo[l] < lo[0]:
            lo[0] = xlo[l]
        if xhi[l] > hi[0]:
            hi[0] = xhi[l]


cdef void add_part(const tl_model* m, const tl_pattern* q, const int32_t* list_, int32_t p, const double* Z, const int32_t* zlo,
                   const int32_t* zhi, const double* S, double* P, double* T, double* work, int32_t* iwork) noexcept nogil:
    """P (n, n) += Z (Z^T S Z)^-1 Z^T = X^T U with U = X = L^-1 Z; Z: p rows. Where T is formed the same goes into it, and below it
    what the elements list_ carry of it, Tn S P. work: n*p + p*p + n + nf doubles, iwork: 3*p."""
    cdef int32_t n = m.n, nf = m.nf, i, j, l, c, rows = lanes(n + nf)
    cdef double* U = work              # (p, n) S z_i, then U
    cdef double* A = work + n * p      # (p, p)
    cdef double* t = A + p * p         # (n) S u_i
    cdef double* y = t + n             # (ns) what carries it
    cdef int32_t* first = iwork
    cdef int32_t* lo = iwork + p
    cdef int32_t* hi = iwork + 2 * p
    cdef const double* X = U
    cdef double f
    for i in range(p):
        memset(U + i * n, 0, n * sizeof(double))
        for l in range(zlo[i], zhi[i]):
            f = Z[i * n + l]
            if f != 0.0:
                axpy(f, S + l * n, U + i * n, m.S_range[2 * l], m.S_range[2 * l + 1])
        for j in range(i + 1):
            A[i * p + j] = dot(Z + j * n, U + i * n, zlo[j], zhi[j])
    if chol(A, p, first):
        # no inertia that can be (a body lighter than its rotors): the compiler lets it pass where nothing sticks
        for i in range(p):
            for j in range(p):
                A[i * p + j] = dot(Z + j * n, U + i * n, zlo[j], zhi[j])
            lo[i] = 0
            hi[i] = n
        memcpy(U, Z, p * n * sizeof(double))
        lu_solve(A, p, U, n)
        X = Z
    else:
        for i in range(p):
            memcpy(U + i * n, Z + i * n, n * sizeof(double))
            lo[i] = zlo[i]
            hi[i] = zhi[i]
            for l in range(first[i], i):
                take_from(A[i * p + l], U, lo, hi, n, l, U + i * n, lo + i, hi + i)
            f = 1.0 / A[i * p + i]
            for j in range(lo[i], hi[i]):
                U[i * n + j] *= f
    for i in range(p):
        for j in range(lo[i], hi[i]):
            if X[i * n + j] != 0.0:
                axpy(X[i * n + j], U + i * n, P + j * n, lo[i], hi[i])
        if n > TL_FORMED:
            continue
        memset(t, 0, n * sizeof(double))
        for l in range(lo[i], hi[i]):
            if U[i * n + l] != 0.0:
                axpy(U[i * n + l], S + l * n, t, m.S_range[2 * l], m.S_range[2 * l + 1])
        for c in range(q.ns):
            y[c] = 0.0
            for l in range(n):
                y[c] += t[l] * q.Tn[l * nf + list_[c]]
        for j in range(lo[i], hi[i]):
            f = X[i * n + j]
            if f != 0.0:
                axpy(f, U + i * n, T + j * rows, lo[i], hi[i])
                for c in range(q.ns):
                    T[j * rows + n + list_[c]] += f * y[c]


cdef inline void keep_row(const tl_model* m, tl_pattern* q, int32_t i, int32_t r, const double* x, int32_t lo,
                          int32_t hi) noexcept nogil:
    """x, zero outside lo .. hi, as the row of Tn of element i, the r-th of those that stick."""
    cdef int32_t n = m.n, nf = m.nf, j
    for j in range(lo, hi):
        q.Tn[j * nf + i] = x[j]
    if n > TL_FORMED:
        memcpy(q.T + r * n, x, n * sizeof(double))
        q.range[4 * n + 2 * r] = lo
        q.range[4 * n + 2 * r + 1] = hi
        q.range[4 * n + 2 * nf + r] = i


cdef int32_t find_ranges(int32_t n, const double* P, int32_t* range_) noexcept nogil:
    """Range of each row of P that is not zero; 1 when they are short."""
    cdef int32_t i, lo, hi, total = 0
    for i in range(n):
        lo = 0
        hi = n
        while lo < n and P[i * n + lo] == 0.0:
            lo += 1
        while hi > lo and P[i * n + hi - 1] == 0.0:
            hi -= 1
        range_[2 * i] = lo
        range_[2 * i + 1] = hi
        total += hi - lo
    return 2 * total < n * n


cdef void split(const tl_model* m, tl_pattern* q, const int32_t* list_, int32_t ns, int32_t k, const tl_basis* b,
                const double* L, double* work, int32_t* iwork) noexcept nogil:
    """Tn = L (L^T L)^-1 Q with the coefficients L (ns, n) of the stuck rows in the first k rows of the basis. When they
    are independent L is lower triangular, and Tn = L^-T Q. work: k*k + k*n + n doubles, iwork: 3*n."""
    cdef int32_t n = m.n, nf = m.nf, i, j, l, lo, hi
    cdef double f
    cdef double* X = work              # (k, n)
    cdef double* LL = X + k * n        # (k, k)
    cdef double* t = LL + k * k        # (n)
    cdef int32_t* first = iwork
    cdef int32_t* xlo = iwork + n
    cdef int32_t* xhi = iwork + 2 * n
    memset(q.Tn, 0, n * nf * sizeof(double))
    for i in range(k):
        memcpy(X + i * n, b.Q + i * n, n * sizeof(double))
        xlo[i] = b.lo[i]
        xhi[i] = b.hi[i]
    if ns == k:
        for i in range(k - 1, -1, -1):
            for l in range(i + 1, k):
                take_from(L[l * n + i], X, xlo, xhi, n, l, X + i * n, xlo + i, xhi + i)
            f = 1.0 / L[i * n + i]
            for j in range(xlo[i], xhi[i]):
                X[i * n + j] *= f
            keep_row(m, q, list_[i], i, X + i * n, xlo[i], xhi[i])
        return
    memset(LL, 0, k * k * sizeof(double))
    for i in range(ns):
        lo = 0
        while lo < k and L[i * n + lo] == 0.0:
            lo += 1
        for l in range(lo, k):
            f = L[i * n + l]
            if f != 0.0:
                axpy(f, L + i * n, LL + l * k, lo, l + 1)
    chol(LL, k, first)
    for i in range(k):
        for l in range(first[i], i):
            take_from(LL[i * k + l], X, xlo, xhi, n, l, X + i * n, xlo + i, xhi + i)
        f = 1.0 / LL[i * k + i]
        for j in range(xlo[i], xhi[i]):
            X[i * n + j] *= f
    for i in range(k - 1, -1, -1):
        f = 1.0 / LL[i * k + i]
        for j in range(xlo[i], xhi[i]):
            X[i * n + j] *= f
        for l in range(first[i], i):
            take_from(LL[i * k + l], X, xlo, xhi, n, i, X + l * n, xlo + l, xhi + l)
    for i in range(ns):
        memset(t, 0, n * sizeof(double))
        lo = n
        hi = 0
        for l in range(k):
            take_from(-L[i * n + l], X, xlo, xhi, n, l, t, &lo, &hi)
        keep_row(m, q, list_[i], i, t, lo, hi)


cdef void apart(const tl_model* m, tl_basis* b, int32_t e, int32_t r, const double* Pr, double* t) noexcept nogil:
    """Make the e rows before the last r of the basis M-orthogonal to those: z <- z - P_r M z. t: n doubles."""
    cdef int32_t n = m.n, i, l
    cdef double* z
    for i in range(n - r - e, n - r):
        z = b.Q + i * n
        memset(t, 0, n * sizeof(double))
        for l in range(b.lo[i], b.hi[i]):
            if z[l] != 0.0:
                axpy(z[l], m.M + l * n, t, 0, n)
        for l in range(n):
            if t[l] != 0.0:
                axpy(-t[l], Pr + l * n, z, 0, n)
        b.lo[i] = 0
        b.hi[i] = n


cdef inline int32_t contains(const int32_t* list_, int32_t ns, int32_t i) noexcept nogil:
    """1 where element i is one of the list."""
    cdef int32_t k, found = 0
    for k in range(ns):
        found |= list_[k] == i
    return found


cdef void extend_seen(const tl_model* m, const tl_state* s, tl_basis* b, double* coef) noexcept nogil:
    """Append what springs, dampers and contacts, in their present regimes, see. coef (n): scratch."""
    cdef int32_t i, row
    cdef double c, d
    for i in range(m.nlin + m.ncon):
        if i < m.nlin:
            row = m.lin[i].row
            c = m.lin[i].c
            d = m.lin[i].d
        else:
            row = m.con[i - m.nlin].row
            contact_stiffness(m, s, i - m.nlin, &c, &d)
        if b.count < m.n and (c != 0.0 or d != 0.0):
            extend(b, m.row_idx + m.row_ptr[row], m.row_val + m.row_ptr[row], m.row_ptr[row + 1] - m.row_ptr[row],
                   RANK_TOL * RANK_TOL, coef)


cdef void build(const tl_model* m, tl_state* s, tl_pattern* q, const int32_t* list_, int32_t ns,
                double h) noexcept nogil:
    """Fill the matrices of the pattern whose stuck elements are list_[0:ns], for trials of the length h."""
    cdef int32_t n = m.n, i, j, k, e, r, row, relaxed, alone = 0, rows = lanes(m.n + m.nf)
    cdef double one = 1.0
    cdef tl_basis b
    cdef double* L = s.build.work + n * n            # (ns, n)
    cdef double* work
    cdef int32_t* iwork
    b.n = n
    b.count = 0
    b.Q = s.build.work
    b.left = L + (m.nf + 1) * n
    b.v = b.left + n
    b.lo = s.build.ranges
    b.hi = b.lo + n
    work = b.v + n
    iwork = b.hi + n
    for j in range(n):
        b.left[j] = 1.0
    for i in range(ns):
        if m.nvg > 0 and m.fr[list_[i]].src == BILATERAL:
            # rows of variable gears are those of the state
            for j in range(n):
                iwork[j] = j
            extend(&b, iwork, s.gears.B + list_[i] * n, n, RANK_TOL * RANK_TOL, L + i * n)
            continue
        row = m.row_ptr[m.fr[list_[i]].row]
        extend(&b, m.row_idx + row, m.row_val + row, m.row_ptr[m.fr[list_[i]].row + 1] - row, RANK_TOL * RANK_TOL,
               L + i * n)
    k = b.count
    for i in range(m.nrx):
        # first: what follows has no part of them, so that no force of an instant moves them (P0), but where friction holds them
        if not contains(list_, ns, m.rx[i].fr):
            alone += 1
            extend(&b, &m.rx[i].coord, &one, 1, 0.0, L + m.nf * n)
    relaxed = b.count - k
    extend_seen(m, s, &b, L + m.nf * n)
    e = b.count - k
    for j in range(n):
        if b.count < n and b.left[j] > REST_TOL / n:
            extend(&b, &j, &one, 1, REST_TOL / n, L + m.nf * n)
    r = b.count - k - e
    q.ns = ns
    split(m, q, list_, ns, k, &b, L, work, iwork)
    # the part no compliance acts on
    memset(q.Pr, 0, n * n * sizeof(double))
    if n <= TL_FORMED:
        memset(q.Tr, 0, n * rows * sizeof(double))
        for j in range(n):
            for i in range(ns):
                q.Tr[j * rows + n + list_[i]] = -q.Tn[j * m.nf + list_[i]]
    add_part(m, q, list_, r, b.Q + (k + e) * n, b.lo + k + e, b.hi + k + e, m.M, q.Pr, q.Tr, work, iwork)
    q.n_seen = e
    if e > 0:
        apart(m, &b, e, r, q.Pr, work)
        memcpy(q.Z, b.Q + k * n, e * n * sizeof(double))
        for i in range(3):
            project(m, s, q, list_, i, s.build.work)
    if q.P0 != q.P:
        add_seen(m, s, q, list_, relaxed, 0, 0.0, q.P0, q.T0 if n <= TL_FORMED else NULL)
    if m.ncon > 0:
        form_matrix(m, s, 1, h, <double*>q.S)
        if m.order == 4:
            form_matrix(m, s, 2, h, <double*>q.A4)
    build_length(m, s, q, list_, 1, h)
    if m.order == 4:
        build_length(m, s, q, list_, 2, h)
    if n > TL_FORMED:
        q.narrow0 = find_ranges(n, q.P0, q.range + 2 * n)
    for i in range(m.nls):
        respond(m, s, q, 0, m.M, q.P0, i, 0, q.X0, h)
    row = 0
    for i in range(n):
        row += q.P0[i * n + i] == 0.0
    q.locked = row > alone                   # (those that relax are moved by no force)
    find_fast(m, s, q)
    q.valid = 1


cdef void project(const tl_model* m, tl_state* s, tl_pattern* q, const int32_t* list_, int32_t part, double* t) noexcept nogil:
    """Part M (0), D (1) or K (2) of the matrix of a trial on the rows of Z (p, p), and below it, where T is formed, what the elements
    list_ carry of it (p, ns): into q.seen. t: n doubles of scratch."""
    cdef int32_t n = m.n, p = q.n_seen, i, j, l
    cdef const double* X = m.M if part == 0 else (m.D if part == 1 else m.K)
    cdef double* on = q.seen + part * p * (p + m.nf)
    cdef double* carried = on + p * p
    cdef double c, d, f
    for j in range(p):
        for i in range(n):
            t[i] = dot(X + i * n, q.Z + j * n, m.S_range[2 * i], m.S_range[2 * i + 1])
        for i in range(m.ncon if part > 0 else 0):
            contact_stiffness(m, s, i, &c, &d)
            f = (d if part == 1 else c) * row_dot(m, m.con[i].row, q.Z + j * n)
            for l in range(m.row_ptr[m.con[i].row], m.row_ptr[m.con[i].row + 1]):
                t[m.row_idx[l]] += m.row_val[l] * f
        for i in range(p):
            on[i * p + j] = dot(q.Z + i * n, t, 0, n)
        for i in range(q.ns if n <= TL_FORMED else 0):
            carried[j * m.nf + i] = 0.0
            for l in range(n):
                carried[j * m.nf + i] += t[l] * q.Tn[l * m.nf + list_[i]]


cdef void add_seen(const tl_model* m, tl_state* s, const tl_pattern* q, const int32_t* list_, int32_t first, int32_t stages, double h,
                   double* P, double* T) noexcept nogil:
    """P and, where T is not NULL, T of the stages of a trial of the length h (0: of an instant), stored by columns:

        P = I x P_r + (I x Z)^T [(I x Z) A (I x Z)^T]^-1 (I x Z)        A = I x M + h L x D + h^2 L^2 x K
        T = I x T_r + (I x Tn) A (P - I x P_r)

    with the rows of Z from `first` on. A column of T has P above it where there is one stage."""
    cdef int32_t n = m.n, nf = m.nf, ns = q.ns if T != NULL else 0, all_ = q.n_seen, p = all_ - first, count = stages if stages > 0 else 1
    cdef int32_t k = count * p, N = count * n, rows = lanes(n + nf), column = 2 * nf if stages == 2 else rows, i, j, l, a, b
    cdef double* A = s.build.work            # (k, k)
    cdef double* X = A + k * k               # (k, N)
    cdef double* Y = X + k * N               # (k, count*ns) what the stuck elements carry of A (I x Z)^T
    cdef double* torques = T if stages == 2 else T + n
    cdef const double* M = q.seen
    cdef const double* D = M + all_ * (all_ + nf)
    cdef const double* K = D + all_ * (all_ + nf)
    cdef double d, c, f
    memset(X, 0, k * N * sizeof(double))
    for a in range(count):
        for b in range(count):
            d = h * weight(stages, a, b)
            c = h * h * weight_2(stages, a, b)
            for i in range(p):
                for j in range(p):
                    l = (first + i) * all_ + first + j
                    A[(a * p + i) * k + b * p + j] = (M[l] if a == b else 0.0) + d * D[l] + c * K[l]
            for j in range(p):
                for i in range(ns):
                    l = all_ * all_ + (first + j) * nf + i
                    Y[(b * p + j) * count * ns + a * ns + i] = (M[l] if a == b else 0.0) + d * D[l] + c * K[l]
        for i in range(p):
            memcpy(X + (a * p + i) * N + a * n, q.Z + (first + i) * n, n * sizeof(double))
    lay_rest(m, q, count, P, T)
    lu_solve(A, k, X, N)
    for j in range(N):
        for a in range(count):
            for i in range(p):
                f = X[(a * p + i) * N + j]
                if f == 0.0:
                    continue
                axpy(f, q.Z + (first + i) * n, P + j * N + a * n, 0, n)
                if T != NULL and stages < 2:
                    axpy(f, q.Z + (first + i) * n, T + j * rows, 0, n)
                for b in range(count):
                    for l in range(ns):
                        torques[j * column + b * nf + list_[l]] += f * Y[(a * p + i) * count * ns + b * ns + l]


cdef inline void lay_rest(const tl_model* m, const tl_pattern* q, int32_t count, double* P, double* T) noexcept nogil:
    """I x P_r and I x T_r, where they are not there already: what no compliance acts on."""
    cdef int32_t n = m.n, nf = m.nf, N = count * n, rows = lanes(n + nf), j, a
    if P == q.Pr:
        return
    if count == 1:
        memcpy(P, q.Pr, n * n * sizeof(double))
        if T != NULL:
            memcpy(T, q.Tr, n * rows * sizeof(double))
        return
    memset(P, 0, N * N * sizeof(double))
    if T != NULL:
        memset(T, 0, N * 2 * nf * sizeof(double))
    for a in range(count):
        for j in range(n):
            memcpy(P + (a * n + j) * N + a * n, q.Pr + j * n, n * sizeof(double))
            if T != NULL:
                memcpy(T + (a * n + j) * 2 * nf + a * nf, q.Tr + j * rows + n, nf * sizeof(double))


cdef void build_length(const tl_model* m, tl_state* s, tl_pattern* q, const int32_t* list_, int32_t stages, double h) noexcept nogil:
    """What of a pattern depends on the length of the step: matrices of `stages` stages."""
    cdef int32_t l, st
    if stages == 2:
        add_seen(m, s, q, list_, 0, 2, h, q.P4, q.T4)
    else:
        add_seen(m, s, q, list_, 0, 1, h, q.P, q.T if m.n <= TL_FORMED else NULL)
        if m.n > TL_FORMED:
            q.narrow = find_ranges(m.n, q.P, q.range)
    if 2 * stages == m.order:
        for l in range(m.nls):
            for st in range(stages):
                respond(m, s, q, stages, q.A4 if stages == 2 else q.S, q.P4 if stages == 2 else q.P, l, st, q.X, h)
