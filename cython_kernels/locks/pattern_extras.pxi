# What a lock pattern holds beyond the stuck rows: stiffness of contacts, responses of losses, rows of variable gears.
# Needs: model/laws.pxd, model/lobatto.pxd.

cdef void form_matrix(const tl_model* m, tl_state* s, int32_t stages, double h, double* A) noexcept nogil:
    """A (N, N), N = stages*n, = I x M + h L x D + h^2 L^2 x K for the length h, with what the contacts add in their regimes."""
    cdef int32_t n = m.n, N = stages * m.n, i, j, l, k, a, b
    cdef double c, d, hd, hk
    for a in range(stages):
        for b in range(stages):
            hd = h * weight(stages, a, b)
            hk = h * h * weight_2(stages, a, b)
            for i in range(n):
                for j in range(n):
                    A[(a * n + i) * N + b * n + j] = (m.M[i * n + j] if a == b else 0.0) + hd * m.D[i * n + j] + hk * m.K[i * n + j]
            for i in range(m.ncon):
                contact_stiffness(m, s, i, &c, &d)
                if c == 0.0 and d == 0.0:
                    continue
                k = m.con[i].row
                for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
                    for l in range(m.row_ptr[k], m.row_ptr[k + 1]):
                        A[(a * n + m.row_idx[j]) * N + b * n + m.row_idx[l]] += m.row_val[j] * m.row_val[l] * (hd * d + hk * c)


cdef void respond(const tl_model* m, tl_state* s, tl_pattern* q, int32_t stages, const double* A, const double* P, int32_t l,
                  int32_t st, double* X, double h) noexcept nogil:
    """Column (st, l) of X: change of every reaction at every stage for a unit torque of loss l at the stage st."""
    cdef int32_t n = m.n, nf = m.nf, nls = m.nls, count = stages if stages > 0 else 1, N = n * count, i, j, k, r, t, re
    cdef double acc, c, d
    cdef int64_t here = mark(s)
    cdef double* g = scratch(s, N)              # force
    cdef double* v = scratch(s, N)              # acceleration
    cdef double* u = scratch(s, N)              # speed
    cdef double* z = scratch(s, N)              # angle
    cdef double* rho = scratch(s, N)            # force of what is held
    for i in range(N):
        g[i] = 0.0
    k = m.fr[m.ls[l].fr].row
    for j in range(m.row_ptr[k], m.row_ptr[k + 1]):
        g[st * n + m.row_idx[j]] += m.row_val[j]
    for i in range(N):
        acc = 0.0
        for j in range(N):
            acc += P[j * N + i] * g[j]
        v[i] = acc
    for i in range(N):
        acc = -g[i]
        for j in range(N):
            acc += A[i * N + j] * v[j]
        rho[i] = acc
        u[i] = 0.0
        z[i] = 0.0
    for i in range(n):
        if stages == 1:
            u[i] = 0.5 * h * v[i]
            z[i] = h * h * m.beta * v[i]
        elif stages == 2:
            u[i] = h * to_middle(0.0, v[i], v[n + i])
            u[n + i] = h * to_end(0.0, v[i], v[n + i])
            z[i] = h * to_middle(0.0, u[i], u[n + i])
            z[n + i] = h * to_end(0.0, u[i], u[n + i])
    for t in range(count):
        for r in range(nls):
            re = m.ls[r].re
            acc = m.re_fr[re * nf + m.ls[l].fr] if t == st else 0.0
            for i in range(n):
                acc += m.re_A[re * n + i] * v[t * n + i]
                for j in range(nf):
                    acc += m.re_fr[re * nf + j] * q.Tn[i * nf + j] * rho[t * n + i]
            for i in range(m.nlin):
                k = m.lin[i].row
                acc -= m.re_lin[re * m.nlin + i] * (m.lin[i].c * row_dot(m, k, z + t * n) + m.lin[i].d * row_dot(m, k, u + t * n))
            for i in range(m.ncon):
                k = m.con[i].row
                contact_stiffness(m, s, i, &c, &d)
                acc -= m.re_con[re * m.ncon + i] * (c * row_dot(m, k, z + t * n) + d * row_dot(m, k, u + t * n))
            X[(t * nls + r) * count * nls + st * nls + l] = acc
    release(s, here)


cdef void set_ratio_rows(const tl_model* m, tl_state* s) noexcept nogil:
    """Rows w_a - ratio*w_b of the variable gears, their responses; every pattern must then be built anew."""
    cdef int32_t n = m.n, nf = m.nf, d, i, j, l, q
    cdef double acc
    cdef double* B = s.gears.own_rows              # (nf, n), then W (nf, nf), W0 (nf, nf), SinvBt (nf, n)
    cdef double* W = B + nf * n
    cdef double* W0 = W + nf * nf
    cdef double* Sb = W0 + nf * nf
    cdef int64_t here = mark(s)
    cdef double* Mb = scratch(s, n)             # M^-1 B^T
    for d in range(m.nvg):
        i = m.vg[d].fr
        for j in range(n):
            B[i * n + j] = 0.0
        for q in range(m.row_ptr[m.vg[d].row_a], m.row_ptr[m.vg[d].row_a + 1]):
            B[i * n + m.row_idx[q]] += m.row_val[q]
        for q in range(m.row_ptr[m.vg[d].row_b], m.row_ptr[m.vg[d].row_b + 1]):
            B[i * n + m.row_idx[q]] -= s.ratio[d] * m.row_val[q]
        for j in range(n):
            acc = 0.0
            for l in range(n):
                acc += m.Sinv[j * n + l] * B[i * n + l]
            Sb[i * n + j] = acc
    for d in range(m.nvg):
        i = m.vg[d].fr
        for j in range(n):
            acc = 0.0
            for l in range(n):
                acc += m.Minv[j * n + l] * B[i * n + l]
            Mb[j] = acc
        for j in range(nf):
            acc = 0.0
            for l in range(n):
                acc += B[j * n + l] * Mb[l]
            W0[i * nf + j] = acc
            W0[j * nf + i] = acc
            acc = 0.0
            for l in range(n):
                acc += B[j * n + l] * Sb[i * n + l]
            W[i * nf + j] = acc
            W[j * nf + i] = acc
    release(s, here)
    for i in range(m.ncache):
        s.build.cache[i].valid = 0
