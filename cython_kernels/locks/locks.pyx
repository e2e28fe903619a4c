"""Which friction elements stick, and what follows from it.

Two things live here, both outside the warm path of a step:

*Lock pattern.* For a set of stuck elements with rows B_s (w_rel = B_s u) the step needs the acceleration from a force
with the rows held at rest, a = P g, and the torques that hold them, tau = T g. With Z a basis of the null space of B_s:

    P = Z (Z^T S Z)^-1 Z^T            S = M + h/2 D + h^2/4 K (M alone for the acceleration of an instant)
    T = Tn (S P - I)                  Tn = (B_s^T)^+: least-norm split when more elements stick than speeds are held

The matrices depend on the set only, whatever was built before, so they are cached by it: a pattern that occurred before
costs one look-up, and results do not depend on what the cache holds. Building one (lock_build.pxi) skips what is zero:
in a chain the work follows the blocks that move together. T itself is formed for small drivelines only (TL_FORMED);
beyond, tau = Tn (S a - g).

*Boxed problem.* Find tau with  lo <= tau <= hi  and  y = W tau + b  such that  y = 0 inside the box,
y >= 0 at lo (the element slides forward), y <= 0 at hi. W = B P B^T is positive semidefinite, with P the inverse of the inertia
(decisions, impacts) or of the matrix of the interval (impulse step). A relative shift of 1e-9 makes it definite, so the answer
is unique; locks.pxd says what the shift selects. Block principal pivoting (Judice and Pires 1994) comes first. Where it makes no
progress, single pivots follow (Murty 1974), which are finite for a definite matrix but may need more rounds than the bound of
10 k + 20. A problem that meets the bound ends in projected Gauss-Seidel sweeps and is counted: its answer is not the solution,
but no worse than no torque at all (boxed.pxi).
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.model.laws cimport contact_stiffness, curved, row_dot
from torqueloop.cython_kernels.model.arena cimport mark, release, scratch
from torqueloop.cython_kernels.model.lobatto cimport to_end, to_middle, weight, weight_2
from torqueloop.cython_kernels.model.model cimport BILATERAL, CONTACT_BOTH, CONTACT_LIMITED, MODE_STUCK, TL_FAST_SIZE, TL_FORMED, lanes, tl_model, tl_pattern, tl_state
from torqueloop.cython_kernels.locks.vectors cimport axpy, dot

#: rows whose part outside the span of the others is below this share of their length count as dependent
cdef double RANK_TOL = 1e-9
#: of the length of a coordinate, times 1/n: what others leave of it when it is added to a basis that lacks dimensions
cdef double REST_TOL = 1e-6

cdef int chol(double* A, int32_t k, int32_t* first) noexcept nogil:
    """In-place lower Cholesky factor of A (k, k) row-major; returns 0, or 1 if not positive definite.

    Zeros before the first entry of a row stay zeros and are skipped; first (k) receives where the rows begin.
    """
    cdef int32_t i, j, l, f
    cdef double acc
    for i in range(k):
        f = 0
        while f < i and A[i * k + f] == 0.0:
            f += 1
        first[i] = f
        for j in range(f, i + 1):
            acc = A[i * k + j]
            for l in range(f if f > first[j] else first[j], j):
                acc -= A[i * k + l] * A[j * k + l]
            if j < i:
                A[i * k + j] = acc / A[j * k + j]
            else:
                if not acc > 0.0:
                    return 1
                A[i * k + i] = sqrt(acc)
    return 0


cdef void chol_solve(const double* L, int32_t k, const int32_t* first, double* x) noexcept nogil:
    """x <- (L L^T)^-1 x."""
    cdef int32_t i, l
    cdef double acc
    for i in range(k):
        acc = x[i]
        for l in range(first[i], i):
            acc -= L[i * k + l] * x[l]
        x[i] = acc / L[i * k + i]
    for i in range(k - 1, -1, -1):
        x[i] /= L[i * k + i]
        axpy(-x[i], L + i * k, x, first[i], i)


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


include "pattern_extras.pxi"
include "fast_modes.pxi"
include "lock_build.pxi"
include "boxed.pxi"


cdef tl_pattern* pattern_of(const tl_model* m, tl_state* s) noexcept nogil:
    """The pattern of the elements with mode 0; built when it is not in the cache. Real-time: yes (bounded, n^3)."""
    cdef int32_t i, way, ns = 0
    cdef int64_t r
    cdef uint64_t hsh = 0
    cdef tl_pattern* q
    cdef tl_pattern* oldest
    cdef int same
    for i in range(m.nkey):
        s.build.key[i] = 0
    for i in range(m.nf):
        if s.mode[i] == MODE_STUCK:
            s.build.key[i >> 6] |= (<uint64_t>1) << (i & 63)
            s.build.stuck[ns] = i
            ns += 1
    for i in range(m.ncon):
        # two bits for each contact: open or without force, spring and damper, doubled spring
        r = s.regime[i] if s.regime[i] >= 0 else -s.regime[i]
        if (r == CONTACT_BOTH or r == CONTACT_LIMITED) and not curved(m, i):
            r = (r - 1) + m.nf + 2 * i
            s.build.key[r >> 6] |= (<uint64_t>1) << (r & 63)
    if m.direct_cache:
        oldest = &s.build.cache[s.build.key[0]]
        if oldest.valid:
            return oldest
    else:
        # sets of four; the one used least recently gives way
        for i in range(m.nkey):
            hsh = (hsh ^ s.build.key[i]) * <uint64_t>0x9E3779B97F4A7C15
            hsh ^= hsh >> 29
        oldest = NULL
        s.build.clock += 1
        for way in range(4):
            q = &s.build.cache[4 * (hsh & <uint64_t>(m.ncache // 4 - 1)) + way]
            if not q.valid:
                q.used = 0
            else:
                same = 1
                for i in range(m.nkey):
                    if q.key[i] != s.build.key[i]:
                        same = 0
                if same:
                    q.used = s.build.clock
                    return q
            if oldest == NULL or q.used < oldest.used:
                oldest = q
        oldest.used = s.build.clock
    build(m, s, oldest, s.build.stuck, ns, m.h)
    for i in range(m.nkey):
        oldest.key[i] = s.build.key[i]
    return oldest


cdef tl_pattern* pattern_of_length(const tl_model* m, tl_state* s, int32_t stages, double h) noexcept nogil:
    """The pattern of the elements with mode 0 for a trial of `stages` stages and the length h: what depends on the length is made anew
    each time, from what the pattern of whole steps holds. Real-time: yes (p^3 for p springs and dampers; n^3 where that pattern is not
    known)."""
    cdef tl_pattern* whole = pattern_of(m, s)
    cdef tl_pattern* q = &s.length.built
    if m.nlin + m.ncon == 0:
        return whole
    q.ns = whole.ns
    q.n_seen = whole.n_seen
    q.n_fast = whole.n_fast
    q.locked = whole.locked
    q.narrow0 = whole.narrow0
    q.Pr = whole.Pr
    q.Tr = whole.Tr
    q.Z = whole.Z
    q.seen = whole.seen
    q.P0 = whole.P0
    q.T0 = whole.T0
    q.Tn = whole.Tn
    q.X0 = whole.X0
    q.fast = whole.fast
    if m.n > TL_FORMED:
        q.T = whole.T
        memcpy(q.range, whole.range, (4 * m.n + 3 * m.nf) * sizeof(int32_t))
    if m.n > TL_FORMED or m.nls + m.ncon + m.nd + m.nvg > 0:
        form_matrix(m, s, stages, h, <double*>(q.A4 if stages == 2 else q.S))
    build_length(m, s, q, s.build.stuck, stages, h)
    return q
