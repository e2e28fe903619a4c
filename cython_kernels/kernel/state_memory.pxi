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


cdef int lay_trials(KernelState self, const tl_model* m, tl_state* s) except -1:
    """Inputs, the other two instants, vectors of a trial, the boxed problem."""
    cdef int64_t n = m.n, nf = m.nf, nm = 2 * m.n + m.nf + 4, hints, i
    cdef double* cur
    s.inp = <double*>zeros(self, 3 * m.nin * sizeof(double))
    s.in_c = <double*>zeros(self, 3 * m.nin * sizeof(double))
    for i in range(2, 4):
        eval_block(m, &s.ev[i], <double*>zeros(self, s.nev * sizeof(double)))
        s.others_behind[i] = s.ev[i].u
    s.em, s.ex = &s.ev[2], &s.ev[3]
    cur = <double*>zeros(self, (6 * n + 2 * m.neng + 4 * m.nhot + 3 * nm + nf + 4) * sizeof(double))
    s.um = _take(&cur, n)
    s.am = _take(&cur, n)
    s.s2 = _take(&cur, n)
    s.length.s2_longer = _take(&cur, n)
    s.taken = _take(&cur, n)
    s.xim = _take(&cur, m.neng)
    s.xi1 = _take(&cur, m.neng)
    s.F = _take(&cur, m.nhot)
    s.wa = _take(&cur, m.nhot)
    s.event.w = _take(&cur, m.nhot)
    s.event.wm = _take(&cur, m.nhot)
    s.g = _take(&cur, nm)
    s.v1 = _take(&cur, nm)
    s.v2 = _take(&cur, nm)
    s.both = _take(&cur, lanes(n + nf))
    s.event.slip_x = <double*>zeros(self, nf * sizeof(double))
    s.event.press_x = <double*>zeros(self, nf * sizeof(double))
    s.decision.logged = <int64_t*>zeros(self, 2 * nf * sizeof(int64_t))
    s.decision.before = s.decision.logged + nf
    s.event.toggled = <int32_t*>zeros(self, nf * sizeof(int32_t))
    s.xi_held = <int32_t*>zeros(self, 2 * m.neng * sizeof(int32_t))
    s.gives = s.xi_held + m.neng
    s.press = <tl_curve*>zeros(self, m.nact * sizeof(tl_curve))
    s.part = 1.0
    s.h = m.h
    hints = 2 * m.neng + 3 * m.ntc + nf + 2 * m.ncv + 4 * m.nls + 4
    s.look.free = <int32_t*>zeros(self, 2 * hints * sizeof(int32_t))
    s.look.held = s.look.free + hints
    s.look.now = <tl_piece*>zeros(self, m.nlu * sizeof(tl_piece))
    s.look.list = <int32_t*>zeros(self, m.nlu * sizeof(int32_t))
    s.hint = s.look.free
    return 0


cdef int64_t arena_size(const tl_model* m) noexcept nogil:
    """Doubles of scratch memory that are enough for everything that takes of it, one within the other (arena.pxd)."""
    cdef int64_t n = m.n, nf = m.nf, nls = m.nls, nth = m.nth, k = nf + 2 * (m.ncon + m.nst) + nls
    cdef int64_t joints = (2 * m.njo + m.nwr) * (m.order // 2), widest = 14 if m.nwr > 0 else 2
    cdef int64_t losses = 5 * (k + 1) + 2 * k * k + (nls + 2) * k + 4 * n + nls * (nls + 4) if nls else 0
    cdef int64_t stages = nls + 1 + 4 * nls * nls + 2 * nls
    cdef int64_t heat = nth * nth + 4 * nth, curved = m.ncurved * (m.order // 2), box = nf + 2 * (m.ncon + m.nst)
    cdef int64_t boxed = 2 * box * box + 8 * box + 5 * (box + 1) // 2 + 5
    cdef int64_t gaps = 3 * box if curved else 0
    cdef int64_t ports = m.npoly + m.neng + 2 * m.ntc + m.ned + m.ncv + m.nwd, laws = nf + m.nport + 2 * m.njo + m.nwr + m.ncurved
    cdef int64_t forces = (m.order // 2) * nf + (m.order // 2 + 1) * ports + joints + curved
    cdef int64_t rows = 3 * forces * forces + (20 + 2 * widest) * forces + 6 * laws + 6 * n
    cdef int64_t gears = 16 * m.nvg * m.nvg + 10 * m.nvg + 5 * n if m.nvg else 0
    cdef int64_t springs = m.nlin + m.ncon, fast = springs * (n + 5 * springs + 6) + 2 * n if m.unresolved else 0
    return fast + losses + stages + heat + gaps + gears + rows + boxed + 12 * n + 2 * nf + m.nrx + (m.nhot if m.nwr else 0)
