# Row speeds from independent speeds and back, for any driveline (sparse rows).

cdef inline void gather(const tl_model* m, tl_cvec x, tl_vec y) noexcept nogil:
    """y[k] = sum row_val*x[row_idx] for the rows used by force elements."""
    cdef int32_t k, q
    cdef double acc
    for k in range(m.nhot):
        q = m.row_ptr[k]
        acc = m.row_val[q] * x[m.row_idx[q]]
        q += 1
        while q < m.row_ptr[k + 1]:
            acc = acc + m.row_val[q] * x[m.row_idx[q]]
            q += 1
        y[k] = acc


cdef inline void scatter(const tl_model* m, tl_cvec F, tl_vec g) noexcept nogil:
    """g = R^T F."""
    cdef int32_t k, q
    for k in range(m.n):
        g[k] = 0.0
    for k in range(m.nhot):
        for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
            g[m.row_idx[q]] = g[m.row_idx[q]] + m.row_val[q] * F[k]


cdef inline double lin_dot(const tl_model* m, int32_t i, const double* x) noexcept nogil:
    """Row of compliance i times x."""
    cdef int32_t q = m.row_ptr[m.lin[i].row], end = m.row_ptr[m.lin[i].row + 1]
    cdef double acc = m.row_val[q] * x[m.row_idx[q]]
    q += 1
    while q < end:
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
        q += 1
    return acc


cdef inline void each_capacity(const tl_model* m, tl_state* s, tl_cvec w, tl_cvec p, double theta, tl_eval* e,
                               int32_t* hint) noexcept nogil:
    """capacity() of every element whose capacity can change."""
    cdef int32_t i
    for i in range(m.nf):
        if not m.fr[i].fixed:
            capacity(m, s, w[m.fr[i].row], p, theta, e, hint, i, m.fr[i].row, m.fr[i].src,
                     m.fr[i].src_idx, m.fr[i].both)


cdef inline void each_due(const tl_model* m, tl_state* s, tl_cvec w, tl_cvec p, double theta, tl_eval* e,
                          int32_t* hint) noexcept nogil:
    """The same where s.due says so."""
    cdef int32_t i
    for i in range(m.nf):
        if s.due[i]:
            capacity(m, s, w[m.fr[i].row], p, theta, e, hint, i, m.fr[i].row, m.fr[i].src,
                     m.fr[i].src_idx, m.fr[i].both)


cdef inline void each_slide(const tl_model* m, const tl_state* s, tl_eval* e, double* F) noexcept nogil:
    cdef int32_t i
    for i in range(m.nf):
        if m.fr[i].src < 4:
            slide(m, s, e, F, i, m.fr[i].row)
        else:
            e.tau[i] = 0.0                        # losses and bilateral elements are found with the accelerations


cdef inline int32_t any_disturbed(const tl_model* m, const tl_state* s, const tl_eval* e) noexcept nogil:
    cdef int32_t i, bad = 0
    for i in range(m.nf):
        bad |= disturbed(m, s, e, i, m.fr[i].row, m.fr[i].src)
    return bad
