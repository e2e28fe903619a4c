# Row speeds from independent speeds and back, for any driveline (sparse rows).
#
# Equations: (6).

cdef inline double hot_dot(const tl_model* m, int32_t k, const double* x) noexcept nogil:
    """Row k times x: sum row_val*x[row_idx]."""
    cdef int32_t q = m.row_ptr[k], end = m.row_ptr[k + 1]
    cdef double acc = m.row_val[q] * x[m.row_idx[q]]
    q += 1
    while q < end:
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
        q += 1
    return acc


cdef inline void gather(const tl_model* m, tl_cvec x, tl_vec y) noexcept nogil:
    """y[k] = sum row_val*x[row_idx] for the rows used by force elements."""
    cdef int32_t i, n = m.nhot
    cdef const int32_t* idx = m.hot_idx
    cdef const int32_t* row = m.hot_row
    cdef const double* val = m.hot_val
    for i in range(n):
        y[i] = val[i] * x[idx[i]]
    idx += n
    val += n
    for i in range(m.nhot_more):
        y[row[i]] = y[row[i]] + val[i] * x[idx[i]]


cdef inline void gather_ports(const tl_model* m, tl_cvec x, tl_vec y) noexcept nogil:
    """The same for the rows of the ports."""
    cdef int32_t i, k
    for i in range(m.nport):
        k = m.port_row[i]
        y[k] = hot_dot(m, k, x)


cdef inline void quiet_rates(const tl_model* m, const tl_state* s, tl_cvec x, tl_vec y) noexcept nogil:
    """The same for the rows whose rates a quiet step asks for: of engines, springs and dampers, of what slides, of ports
    for their work (order 4); all of them where bodies ask for those of their angular velocities. Precompiled: all."""
    cdef int32_t i, k
    if m.nbo > 0:
        gather(m, x, y)
        return
    for i in range(m.neng):
        k = m.eng[i].row
        y[k] = hot_dot(m, k, x)
    for i in range(m.nlin):
        k = m.lin[i].row
        y[k] = hot_dot(m, k, x)
    if m.order == 4:
        gather_ports(m, x, y)
    for i in range(s.lists.n_sliding):
        k = m.fr[s.lists.sliding[i]].row
        y[k] = hot_dot(m, k, x)


cdef inline void port_rows(const tl_model* m, tl_cvec port, tl_vec F) noexcept nogil:
    """F[k] = sum of the forces of the ports along row k."""
    cdef int32_t i
    for i in range(m.nhot):
        F[i] = 0.0
    for i in range(m.nport):
        F[m.port_row[i]] += port[i]


cdef inline void scatter(const tl_model* m, tl_cvec F, tl_vec g) noexcept nogil:
    """g = R^T F."""
    cdef int32_t k, q
    cdef const int32_t* idx = m.row_idx
    cdef const int32_t* row = m.row_of
    cdef const double* val = m.row_val
    for k in range(m.n):
        g[k] = 0.0
    for q in range(m.nhot + m.nhot_more):
        g[idx[q]] = g[idx[q]] + val[q] * F[row[q]]


cdef inline double lin_dot(const tl_model* m, int32_t i, const double* x) noexcept nogil:
    """Row of compliance i times x."""
    return hot_dot(m, m.lin[i].row, x)
