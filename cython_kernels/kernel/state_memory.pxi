# Memory of a state: blocks of zeros that it keeps alive, and vectors laid into them.

cdef double* _take(double** cursor, int64_t count) noexcept:
    cdef double* at = cursor[0]
    cursor[0] += count
    return at


cdef void* zeros(KernelState self, int64_t nbytes) except NULL:
    """Zeroed memory kept alive by the state."""
    arr = np.zeros(max(8, nbytes), dtype=np.uint8)
    self._keep.append(arr)
    return cnp.PyArray_DATA(arr)


cdef int64_t eval_block(const tl_model* m, tl_eval* e, double* mem) noexcept:
    """Lay the vectors of one instant into mem, in the order of tl_eval; how many doubles they take."""
    cdef double* cur = mem
    e.u = _take(&cur, m.n)
    e.z = _take(&cur, m.n)
    e.a = _take(&cur, m.n)
    e.hs1 = _take(&cur, m.n)
    e.w = _take(&cur, m.nhot)
    e.port = _take(&cur, m.nport)
    e.tau = _take(&cur, m.nf)
    e.cap_f = _take(&cur, m.nf)
    e.cap_b = _take(&cur, m.nf)
    e.lim_f = _take(&cur, m.nf)
    e.lim_b = _take(&cur, m.nf)
    e.raw = _take(&cur, m.nf)
    e.steep = _take(&cur, m.nf)
    e.p = _take(&cur, m.nact)
    e.rea = _take(&cur, m.nls)
    return cur - mem


cdef int64_t arena_size(const tl_model* m) noexcept nogil:
    """Doubles of scratch memory that are enough for everything that takes of it, one within the other (arena.pxd)."""
    cdef int64_t n = m.n, nf = m.nf, nls = m.nls, nth = m.nth, k = nf + 2 * (m.ncon + m.nst) + nls
    cdef int64_t joints = 2 * m.njo * (m.order // 2)
    cdef int64_t losses = 5 * (k + 1) + 2 * k * k + (nls + 2) * k + n if nls else 0
    cdef int64_t stages = nls + 1 + 4 * nls * nls + 2 * nls
    cdef int64_t shafts = 3 * joints * joints + joints + 2 * n + m.njo + 1
    cdef int64_t heat = nth * nth + 4 * nth, curved = m.ncurved * (m.order // 2), box = nf + 2 * (m.ncon + m.nst)
    cdef int64_t gaps = 3 * curved * curved + 3 * curved + m.ncurved + 2 + 4 * n + 3 * box if curved else 0
    cdef int64_t gears = 16 * m.nvg * m.nvg + 10 * m.nvg + 5 * n if m.nvg else 0
    return losses + stages + shafts + heat + gaps + gears + 10 * n + nf + m.nrx
