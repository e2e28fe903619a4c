# Products with the matrices of a lock pattern: accelerations and torques of the elements at rest that answer a force, at an
# instant (P0, T0), in a trial of two points (P, T) and of three points (P4, T4).
#
# The matrices of trials of another length than h are made anew each time (pattern_of_length, locks.pyx).
#
# Equations: (28) to (31).

cdef inline void hold(const tl_model* m, const tl_pattern* q, const double* g, double* a) noexcept nogil:
    """a = P g: accelerations of the step with the elements at rest held."""
    cdef int32_t i
    if TL_N(m) > TL_FORMED and q.narrow:
        for i in range(TL_N(m)):
            a[i] = dot(q.P + i * TL_N(m), g, q.range[2 * i], q.range[2 * i + 1])
    else:
        matvec(q.P, TL_N(m), TL_N(m), g, a)


cdef inline void hold4(const tl_model* m, const tl_pattern* q, const double* g, double* a) noexcept nogil:
    """a = P4 g: accelerations of both stages; without compliances they do not depend on each other."""
    if TL_N(m) > TL_FORMED and TL_NLIN(m) == 0:
        hold(m, q, g, a)
        hold(m, q, g + TL_N(m), a + TL_N(m))
    else:
        matvec(q.P4, 2 * TL_N(m), 2 * TL_N(m), g, a)


cdef inline void hold_now(const tl_model* m, const tl_pattern* q, const double* g, double* a) noexcept nogil:
    """a = P0 g: the same for an instant."""
    cdef int32_t i, n = TL_N(m)
    if TL_N(m) > TL_FORMED and q.narrow0:
        for i in range(n):
            a[i] = dot(q.P0 + i * n, g, q.range[2 * n + 2 * i], q.range[2 * n + 2 * i + 1])
    else:
        matvec(q.P0, n, n, g, a)


cdef inline tl_pattern* pattern_now(const tl_model* m, tl_state* s) noexcept nogil:
    """pattern_of, looked up here where all patterns are kept and this one is known."""
    cdef int32_t i
    cdef uint64_t key = 0
    if m.direct_cache and TL_NCON(m) == 0:
        for i in range(TL_NF(m)):
            key |= <uint64_t>(s.mode[i] == MODE_STUCK) << i
        if s.build.cache[key].valid:
            return &s.build.cache[key]
    return pattern_of(m, s)


cdef void shorten(const tl_model* m, tl_state* s, double part) noexcept nogil:
    """The next trial spans part*h: matrices of that length."""
    s.part = part
    s.h = part * m.h
    s.pat = pattern_of_length(m, s, 2 if s.four else 1, s.h)


cdef inline void whole_length(const tl_model* m, tl_state* s) noexcept nogil:
    """The next trial spans h again."""
    s.part = 1.0
    s.h = m.h
    s.pat = pattern_now(m, s)


cdef inline void hold_trial(const tl_model* m, tl_state* s, const double* g, tl_vec a) noexcept nogil:
    """a = P g for the length of the trial, two points; up to TL_FORMED speeds the torques follow: torques_at_rest."""
    cdef int32_t i, n = TL_N(m)
    if n > TL_FORMED:
        hold(m, s.pat, g, a)
        return
    matvec(s.pat.T, lanes(n + TL_NF(m)), n, g, s.both)
    for i in range(n):
        a[i] = s.both[i]


cdef inline void add_along(const tl_model* m, int32_t k, double f, double* g) noexcept nogil:
    """g += f times row k."""
    cdef int32_t q
    for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
        g[m.row_idx[q]] += m.row_val[q] * f


cdef inline void missing_forces(tl_state* s, int32_t N, const double* A, const double* v, const double* g) noexcept nogil:
    """s.rho (N) = A v - g: what the constraints must give for the accelerations v."""
    cdef int32_t i, j
    cdef double acc
    for i in range(N):
        acc = -g[i]
        for j in range(N):
            acc += A[i * N + j] * v[j]
        s.rho[i] = acc


cdef inline double share_of_missing(const tl_model* m, const tl_state* s, int32_t i, int32_t st) noexcept nogil:
    """Torque of the held element i in s.rho of a stage: row i of Tn times it."""
    cdef int32_t j, n = TL_N(m)
    cdef double acc = 0.0
    for j in range(n):
        acc += s.pat.Tn[j * TL_NF(m) + i] * s.rho[st * n + j]
    return acc


cdef void held_torques(const tl_model* m, tl_state* s, const double* S, const double* g, const double* a,
                       double* tau) noexcept nogil:
    """Torques Tn (S a - g) of the elements at rest (the others are left alone), where T is not formed."""
    cdef int32_t i, n = TL_N(m)
    cdef const int32_t* rows = s.pat.range + 4 * n
    for i in range(n):
        s.rho[i] = dot(S + i * n, a, m.S_range[2 * i], m.S_range[2 * i + 1]) - g[i]
    for i in range(s.pat.ns):
        tau[rows[2 * TL_NF(m) + i]] = dot(s.pat.T + i * n, s.rho, rows[2 * i], rows[2 * i + 1])


cdef inline const double* torques_at_rest(const tl_model* m, tl_state* s, const double* S, const double* g, const double* a) noexcept nogil:
    """Torques (nf) of the elements at rest after hold_trial or hold_instant; only of those."""
    if TL_N(m) <= TL_FORMED:
        return s.both + TL_N(m)
    held_torques(m, s, S, g, a, s.v1)
    return s.v1


cdef inline void missing_torques(const tl_model* m, tl_state* s, const double* A, const double* a, const double* g,
                                 double* tau) noexcept nogil:
    """Torques tau (nf) = Tn (A a - g) that hold the elements of the pattern while g accelerates with a; 0 of the others."""
    missing_forces(s, TL_N(m), A, a, g)
    matvec(s.pat.Tn, TL_NF(m), TL_N(m), s.rho, tau)


cdef inline void answer_driven(const tl_model* m, tl_state* s, int32_t N, const double* A, const double* P, const double* g,
                               const double* ad, double* v) noexcept nogil:
    """v (N) = P (g - A ad) + ad: accelerations that answer forces g where the held rows have the accelerations ad."""
    cdef int32_t i, j
    cdef double acc
    for i in range(N):
        acc = g[i]
        for j in range(N):
            acc -= A[i * N + j] * ad[j]
        s.rho[i] = acc
    matvec(P, N, N, s.rho, v)
    for i in range(N):
        v[i] += ad[i]


cdef inline void answer_held(const tl_model* m, tl_state* s, int32_t N, const double* A, const double* P, const double* g,
                        double* v) noexcept nogil:
    """v (N): accelerations that answer forces g with the elements at rest held and the driven flanges moved."""
    if TL_ND(m) + TL_NVG(m) > 0:
        answer_driven(m, s, N, A, P, g, s.ad, v)
    else:
        matvec(P, N, N, g, v)


cdef inline void hold_instant(const tl_model* m, tl_state* s, const double* f, double* a) noexcept nogil:
    """Accelerations a now from the force f with the elements of the pattern held and the driven flanges moved."""
    cdef int32_t i, n = TL_N(m)
    if TL_ND(m) + TL_NVG(m) > 0:
        answer_driven(m, s, n, m.M, s.pat.P0, f, s.ad, a)
    elif n <= TL_FORMED:
        matvec(s.pat.T0, lanes(n + TL_NF(m)), n, f, s.both)
        for i in range(n):
            a[i] = s.both[i]
    else:
        hold_now(m, s.pat, f, a)
