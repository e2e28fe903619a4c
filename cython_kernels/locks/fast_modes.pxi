# Modes of a lock pattern that decay within a step: what step/fast_modes.pxi needs to know about them.
#
# With the elements at rest held, springs and dampers along rows b_i alone move the shafts by
#
#   M u' = -sum b_i (c_i b_i.z + d_i b_i.u)
#
# A mode u = v e^(-mu t), z = -v/mu e^(-mu t) has the row speeds w_i = b_i.v with
#
#   mu w = W Gamma w      W_ij = b_i.P0 b_j      Gamma = diag(d_i - c_i/mu)
#
# which is solved by nonlinear inverse iteration (Voss 2014, sec. 4.1), begun from the modes of the dampers alone (the symmetric
# problem of sqrt(d) W sqrt(d), by Jacobi rotations) with both roots of mu^2 - lambda mu + kappa. Of a complex pair one is kept.
# M and K are symmetric, so the left vectors of the modes are (K v/mu, M v): with them a motion (u, u') has the part
#
#   (u.K v/mu + u'.M v)/N      N = v.M v - v.K v/mu^2
#
# of the derivative of the mode.
#
# Needs: lu_solve of locks.pyx, arena.pxd, laws.pxd.

#: mu h beyond which a mode is kept. Order 2 is wrong by (mu h)^3/12 of a jump in the step behind it, here 1e-5
cdef double UNRESOLVED = 0.05
#: mu h of a mode that swings faster than it decays, below which it is left to the method: it swings on behind the step in truth,
#: too, and friction beside it is decided by the swing that the method has
cdef double SWINGS_ON = 0.5
#: of mu: an inverse iteration has ended
cdef double MODE_FOUND = 1e-9
#: of v.M v: N below it belongs to a double root, whose two modes are one
cdef double DOUBLE_ROOT = 1e-3
#: of the first one's own part: a mode that has so much of another has been found twice
cdef double FOUND_TWICE = 0.3

cdef enum:
    ROTATIONS = 12         # of all pairs: 6 to 8 are usual
    ITERATIONS = 12        # of the inverse iteration: it converges quadratically


cdef struct tl_springs:
    # springs, dampers and contacts of a pattern
    int32_t count
    double* c              # (count)
    double* d              # (count)
    double* PB             # (count, n) P0 b_i
    double* W              # (count, count)
    double complex* w      # (count) row speeds of the mode that is looked for
    double complex* rhs    # (count)
    double complex* T      # (count, count)
    double complex* v      # (n) its speeds


cdef inline int32_t spring_row(const tl_model* m, int32_t i) noexcept nogil:
    """Row of spring i; contacts are numbered after the others."""
    return m.lin[i].row if i < m.nlin else m.con[i - m.nlin].row


cdef void lay_springs(const tl_model* m, tl_state* s, const tl_pattern* q, tl_springs* p) noexcept nogil:
    """Room for them in scratch memory; constants, responses."""
    cdef int32_t i, j, l, n = m.n, row
    p.count = m.nlin + m.ncon
    p.c = scratch(s, p.count)
    p.d = scratch(s, p.count)
    p.PB = scratch(s, p.count * n)
    p.W = scratch(s, p.count * p.count)
    p.w = <double complex*>scratch(s, 2 * p.count)
    p.rhs = <double complex*>scratch(s, 2 * p.count)
    p.T = <double complex*>scratch(s, 2 * p.count * p.count)
    p.v = <double complex*>scratch(s, 2 * n)
    memset(p.PB, 0, p.count * n * sizeof(double))
    for i in range(p.count):
        if i < m.nlin:
            p.c[i] = m.lin[i].c
            p.d[i] = m.lin[i].d
        else:
            contact_stiffness(m, s, i - m.nlin, p.c + i, p.d + i)
        row = spring_row(m, i)
        for l in range(m.row_ptr[row], m.row_ptr[row + 1]):
            axpy(m.row_val[l], q.P0 + m.row_idx[l] * n, p.PB + i * n, 0, n)
    for i in range(p.count):
        for j in range(p.count):
            p.W[i * p.count + j] = row_dot(m, spring_row(m, i), p.PB + j * n)


cdef void jacobi(double* A, double* V, int32_t k) noexcept nogil:
    """Eigenvalues of the symmetric A (k, k) onto its diagonal, eigenvectors into the columns of V."""
    cdef int32_t sweep, i, j, l
    cdef double t, x, y, c, sn
    memset(V, 0, k * k * sizeof(double))
    for i in range(k):
        V[i * k + i] = 1.0
    for sweep in range(ROTATIONS):
        for i in range(k):
            for j in range(i + 1, k):
                x = A[i * k + j]
                if x * x <= 1e-32 * fabs(A[i * k + i] * A[j * k + j]):
                    continue
                t = (A[j * k + j] - A[i * k + i]) / (2.0 * x)
                t = (1.0 if t >= 0.0 else -1.0) / (fabs(t) + sqrt(1.0 + t * t))
                c = 1.0 / sqrt(1.0 + t * t)
                sn = t * c
                for l in range(k):
                    x = A[l * k + i]
                    y = A[l * k + j]
                    A[l * k + i] = c * x - sn * y
                    A[l * k + j] = sn * x + c * y
                for l in range(k):
                    x = A[i * k + l]
                    y = A[j * k + l]
                    A[i * k + l] = c * x - sn * y
                    A[j * k + l] = sn * x + c * y
                for l in range(k):
                    x = V[l * k + i]
                    y = V[l * k + j]
                    V[l * k + i] = c * x - sn * y
                    V[l * k + j] = sn * x + c * y


cdef inline double size2(double complex x) noexcept nogil:
    return x.real * x.real + x.imag * x.imag


cdef int complex_solve(double complex* A, int32_t k, double complex* x) noexcept nogil:
    """x <- A^-1 x by elimination with row pivoting; A is overwritten. 1 if singular."""
    cdef int32_t i, j, l, piv
    cdef double complex f
    for j in range(k):
        piv = j
        for i in range(j + 1, k):
            if size2(A[i * k + j]) > size2(A[piv * k + j]):
                piv = i
        if not size2(A[piv * k + j]) > 0.0:
            return 1
        if piv != j:
            for l in range(k):
                f = A[j * k + l]
                A[j * k + l] = A[piv * k + l]
                A[piv * k + l] = f
            f = x[j]
            x[j] = x[piv]
            x[piv] = f
        for i in range(j + 1, k):
            f = A[i * k + j] / A[j * k + j]
            for l in range(j + 1, k):
                A[i * k + l] = A[i * k + l] - f * A[j * k + l]
            x[i] = x[i] - f * x[j]
    for j in range(k - 1, -1, -1):
        for i in range(j + 1, k):
            x[j] = x[j] - A[j * k + i] * x[i]
        x[j] = x[j] / A[j * k + j]
    return 0


cdef int32_t refine(tl_springs* p, double complex* mu) noexcept nogil:
    """Row speeds p.w and decay mu of a mode from what they are nearly; w is scaled to a largest speed of 1. 1: found."""
    cdef int32_t i, j, it, k = p.count, at
    cdef double complex f, before
    cdef double least
    for it in range(ITERATIONS):
        at = 0
        for i in range(k):
            if size2(p.w[i]) > size2(p.w[at]):
                at = i
        f = p.w[at]
        if not size2(f) > 0.0:
            return 0
        for i in range(k):
            p.w[i] = p.w[i] / f
        for i in range(k):
            p.rhs[i] = p.w[i]
            for j in range(k):
                p.rhs[i] = p.rhs[i] - p.W[i * k + j] * p.c[j] / (mu[0] * mu[0]) * p.w[j]
                p.T[i * k + j] = -p.W[i * k + j] * (p.d[j] - p.c[j] / mu[0])
            p.T[i * k + i] = p.T[i * k + i] + mu[0]
        if complex_solve(p.T, k, p.rhs):
            return 1                         # mu is right to the last bit
        before = mu[0]
        mu[0] = before - 1.0 / p.rhs[at]
        f = p.rhs[at]
        for i in range(k):
            p.w[i] = p.rhs[i] / f
        least = MODE_FOUND * MODE_FOUND * size2(mu[0])
        if size2(mu[0] - before) <= 1e-12 * least:
            return 1
    return size2(mu[0] - before) <= least


cdef inline double complex part_of(const double* mode, int32_t n, const double complex* v, double complex mu) noexcept nogil:
    """Part that the motion u = v, u' = -mu v has of a mode that is kept."""
    cdef int32_t j
    cdef double complex acc = 0.0
    cdef const double complex* at = <const double complex*>mode
    for j in range(n):
        acc = acc + (at[1 + n + j] - mu * at[1 + 2 * n + j]) * v[j]
    return acc


cdef void keep_mode(const tl_model* m, tl_pattern* q, tl_springs* p, double complex mu) noexcept nogil:
    """The mode p.w, mu as the next of the pattern, unless it is one of those already."""
    cdef int32_t i, j, l, row, n = m.n, nf = m.nf
    cdef double* mode = q.fast + q.n_fast * TL_FAST_SIZE(n, nf)
    cdef double complex* at = <double complex*>mode
    cdef double complex* left_u = at + 1 + n
    cdef double complex* left_a = at + 1 + 2 * n
    cdef double complex* held = at + 1 + 3 * n
    cdef double complex f, N = 0.0, inert = 0.0
    cdef double twice = 2.0 if mu.imag != 0.0 else 1.0
    for j in range(n):
        p.v[j] = 0.0
        left_u[j] = 0.0
        left_a[j] = 0.0
    for i in range(p.count):
        f = (p.d[i] - p.c[i] / mu) * p.w[i] / mu
        for j in range(n):
            p.v[j] = p.v[j] + f * p.PB[i * n + j]
    for i in range(q.n_fast):
        mode = q.fast + i * TL_FAST_SIZE(n, nf)
        if size2(part_of(mode, n, p.v, mu)) > FOUND_TWICE * FOUND_TWICE * size2((<double complex*>mode)[0]):
            return
    for i in range(p.count):
        row = spring_row(m, i)
        f = p.c[i] * p.w[i] / mu
        for l in range(m.row_ptr[row], m.row_ptr[row + 1]):
            left_u[m.row_idx[l]] = left_u[m.row_idx[l]] + m.row_val[l] * f
        N = N - f / mu * p.w[i]
    for j in range(n):
        for l in range(n):
            left_a[j] = left_a[j] + m.M[j * n + l] * p.v[l]
        inert = inert + p.v[j] * left_a[j]
    N = N + inert
    if not size2(N) > DOUBLE_ROOT * DOUBLE_ROOT * size2(inert):
        return
    # what the elements at rest carry: -mu M v + sum b_i (d_i - c_i/mu) w_i
    for i in range(nf):
        f = 0.0
        for j in range(n):
            f = f - q.Tn[j * nf + i] * mu * left_a[j]
        for l in range(p.count):
            f = f + (p.d[l] - p.c[l] / mu) * p.w[l] * row_on(m, spring_row(m, l), q.Tn + i, nf)
        held[i] = f
    at[0] = mu
    for j in range(n):
        at[1 + j] = p.v[j]
        left_u[j] = left_u[j] * (twice / N)
        left_a[j] = left_a[j] * (twice / N)
    q.n_fast += 1


cdef inline double row_on(const tl_model* m, int32_t k, const double* x, int32_t stride) noexcept nogil:
    """Row k times the vector x, of which every stride-th number is meant."""
    cdef int32_t l
    cdef double acc = 0.0
    for l in range(m.row_ptr[k], m.row_ptr[k + 1]):
        acc += m.row_val[l] * x[m.row_idx[l] * stride]
    return acc


cdef inline double complex complex_root(double x) noexcept nogil:
    cdef double complex y = 0.0
    if x >= 0.0:
        y.real = sqrt(x)
    else:
        y.imag = sqrt(-x)
    return y


cdef inline int32_t ends_within(double complex mu, double h) noexcept nogil:
    """1 where a mode has decayed so much within a step that it is followed."""
    return mu.real * h > (SWINGS_ON if fabs(mu.imag) > mu.real else UNRESOLVED)


cdef void find_fast(const tl_model* m, tl_state* s, tl_pattern* q) noexcept nogil:
    """The modes of the pattern q that the step does not resolve. Real-time: yes (bounded, cube of the springs and dampers)."""
    cdef int32_t i, j, k, root
    cdef int64_t here = mark(s)
    cdef double x, kappa
    cdef double* A
    cdef double* V
    cdef tl_springs p
    cdef double complex mu
    q.n_fast = 0
    if q.fast == NULL:
        return
    lay_springs(m, s, q, &p)
    A = scratch(s, p.count * p.count)
    V = scratch(s, p.count * p.count)
    for i in range(p.count):
        for j in range(p.count):
            A[i * p.count + j] = sqrt(p.d[i] * p.d[j]) * p.W[i * p.count + j]
    jacobi(A, V, p.count)
    for k in range(p.count):
        x = A[k * p.count + k]
        if not x * m.h > UNRESOLVED:
            continue
        for root in range(2):
            kappa = 0.0
            for i in range(p.count):
                p.w[i] = 0.0
                for j in range(p.count):
                    p.w[i] = p.w[i] + p.W[i * p.count + j] * sqrt(p.d[j]) * V[j * p.count + k]
                kappa += p.c[i] * p.w[i].real * p.w[i].real / x
            mu = complex_root(0.25 * x * x - kappa)
            if root == 1 and mu.imag != 0.0:
                break
            mu = 0.5 * x + (mu if root == 0 else -mu)
            # of a root that is lost in rounding the other one tells it: their product is kappa
            if root == 1:
                mu = kappa / (0.5 * x + complex_root(0.25 * x * x - kappa))
            if not mu.real * m.h > UNRESOLVED:
                continue
            if refine(&p, &mu) and ends_within(mu, m.h) and q.n_fast < 2 * p.count:
                keep_mode(m, q, &p, mu)
    release(s, here)
