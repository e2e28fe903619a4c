# One row of the force elements, in the order of operations of `gather`. Needs: step_imports.pxi.

cdef inline double hot_dot(const tl_model* m, int32_t k, const double* x) noexcept nogil:
    """Row k times x: sum row_val*x[row_idx]."""
    cdef int32_t q = m.row_ptr[k], end = m.row_ptr[k + 1]
    cdef double acc = m.row_val[q] * x[m.row_idx[q]]
    q += 1
    while q < end:
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
        q += 1
    return acc
