# The state: memory of everything that changes, and its views for Python.
# Needs: state_memory.pxi, kernel_outputs.pxi, readout.pxi, locks (pattern_of).

cdef void refresh(const tl_model* m, tl_state* s) noexcept nogil:
    """Pointers that follow from the values (after the block was written as a whole)."""
    cdef int32_t present = s.parity[0] & 1, i
    s.now, s.end = &s.ev[present], &s.ev[1 - present]
    s.others_behind[0], s.others_behind[1] = s.now.u, s.end.u
    if m.nvg > 0:
        set_ratio_rows(m, s)
    s.pat = pattern_of(m, s)
    s.quiet = 0
    s.lists.pattern = NULL
    rigid_offsets(m, s)
    fixed_capacities(m, &s.ev[0])
    fixed_capacities(m, &s.ev[1])
    fixed_capacities(m, s.em)
    for i in range(m.nst):
        stop_limits(m, s, i)
    s.ties = 0
    for i in range(m.nf):
        if s.tied[i]:
            s.ties = 1


cdef void fixed_capacities(const tl_model* m, tl_eval* e) noexcept nogil:
    """Capacities that never change; eval_forces leaves them alone."""
    cdef int32_t i
    for i in range(m.nf):
        if m.fr[i].fixed == FIXED_LOSS:
            e.raw[i] = 1.0
        elif m.fr[i].fixed == FIXED_VALUE:
            e.raw[i] = m.fr[i].fixed_val[0]
            e.cap_f[i] = m.fr[i].fixed_val[1]
            e.cap_b[i] = m.fr[i].fixed_val[2]
            e.lim_f[i] = m.fr[i].fixed_val[3]
            e.lim_b[i] = m.fr[i].fixed_val[4]
            e.steep[i] = 0.0


cdef void tl_state_take(const tl_model* m, tl_state* s, const double* x, const int64_t* k) noexcept nogil:
    """Take over the values (x, k) of a state of the same structure. Real-time: yes (at most one lock pattern built)."""
    memcpy(s.x, x, s.nx * sizeof(double))
    memcpy(s.k, k, s.nk * sizeof(int64_t))
    s.status = 0
    refresh(m, s)


cdef vector(const double* at, int64_t count):
    """Copy of a C vector as an array."""
    out = np.empty(count)
    if count:
        memcpy(cnp.PyArray_DATA(out), at, count * sizeof(double))
    return out


cdef class KernelState:
    """Everything that changes: speeds, angles, pressures, modes, energies (one block), and scratch memory."""

    def __cinit__(self):
        self.ptr = <tl_state*>calloc(1, sizeof(tl_state))
        if self.ptr == NULL:
            raise MemoryError()
        self._keep = []

    def __dealloc__(self):
        free(self.ptr)

    def __init__(self, KernelModel model not None):
        self.model = model
        self._state_proper()
        lay_trials(self, self.model.ptr, self.ptr)
        self._scratch_of_groups()
        self._lists()
        self._patterns()
        plan_readout(self)
        self.reset()

    def _state_proper(self):
        """What is copied, restored and hashed: one block of doubles, one of whole numbers, and the two instants in them."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t n = m.n, nf = m.nf, i
        cdef double* cur
        s.nev = 4 * n + m.nhot + m.nport + 7 * nf + m.nact + m.nls
        s.nfix = n + m.nport + nf + m.nact + m.neng + m.nin + m.nlin + 1 + m.ncon + 3 * m.nth + m.nths + m.nvg + 7 * m.nbo + m.nrm
        s.nfix += 3 * m.njo + TL_POSE_STATE * m.nps + (2 * n if m.unresolved else 0)
        s.nx = s.nfix + 2 * s.nev
        s.nk = 3 * nf + m.ncon + m.nls + m.nst + 4 + TL_COUNTERS
        s.x = <double*>zeros(self, s.nx * sizeof(double))
        s.k = <int64_t*>zeros(self, s.nk * sizeof(int64_t))
        cur = s.x
        s.hs2 = _take(&cur, n)
        s.fill = _take(&cur, m.nact)
        s.xi = _take(&cur, m.neng)
        s.in_last = _take(&cur, m.nin)
        s.e_port = _take(&cur, m.nport)
        s.e_fr = _take(&cur, nf)
        s.e_lin = _take(&cur, m.nlin)
        s.e_con = _take(&cur, m.ncon)
        s.T = _take(&cur, m.nth)
        s.T_rate = _take(&cur, m.nth)
        s.T_curve = _take(&cur, m.nth)
        s.th_e = _take(&cur, m.nths)
        s.ratio = _take(&cur, m.nvg)
        s.att = _take(&cur, 7 * m.nbo)
        s.e_jo = _take(&cur, 3 * m.njo)
        s.ps = _take(&cur, TL_POSE_STATE * m.nps)
        s.fraction = _take(&cur, 1)
        s.turned = _take(&cur, m.nrm)
        s.excess_z = _take(&cur, n if m.unresolved else 0)
        s.excess_u = _take(&cur, n if m.unresolved else 0)
        s.row_off = <double*>zeros(self, m.nrow * sizeof(double))
        s.ev = <tl_eval*>zeros(self, 4 * sizeof(tl_eval))
        for i in range(2):
            if eval_block(m, &s.ev[i], _take(&cur, s.nev)) != s.nev:
                raise AssertionError(f"the vectors of an instant do not take {s.nev} doubles")
        s.mode = s.k
        s.pressed = s.k + nf
        s.tied = s.k + 2 * nf
        s.regime = s.k + 3 * nf
        s.branch = s.regime + m.ncon
        s.at_end = s.branch + m.nls
        s.step_no = s.at_end + m.nst
        s.fresh = s.step_no + 1
        s.hist = s.step_no + 2
        s.parity = s.step_no + 3
        s.counters = s.step_no + 4

    def _lists(self):
        """Lists of elements, scratch of lock patterns, log of modes."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t n = m.n, nf = m.nf
        s.build.key = <uint64_t*>zeros(self, m.nkey * sizeof(uint64_t))
        s.lists.sliding = <int32_t*>zeros(self, 4 * (nf + 1) * sizeof(int32_t))
        s.lists.sticking = s.lists.sliding + nf + 1
        s.lists.due = s.lists.sticking + nf + 1
        s.event.asked = s.lists.due + nf + 1
        s.lists.still = <int32_t*>zeros(self, m.nact * sizeof(int32_t))
        s.lists.product = <double*>zeros(self, (m.order // 2) ** 2 * n * (n + nf + 4) * sizeof(double))
        s.lists.v = <double*>zeros(self, lanes(2 * (n + nf)) * sizeof(double))
        s.eased = <int32_t*>zeros(self, m.nport * sizeof(int32_t))
        s.eased_by = <double*>zeros(self, m.nport * sizeof(double))
        s.held_tau = <double*>zeros(self, 2 * nf * sizeof(double))
        s.build.stuck = <int32_t*>zeros(self, (nf + 1) * sizeof(int32_t))
        s.build.work = <double*>zeros(self, build_scratch(n, nf) * sizeof(double))
        s.build.ranges = <int32_t*>zeros(self, 5 * n * sizeof(int32_t))
        s.log.size = 1 << 16
        s.log.step = <int64_t*>zeros(self, s.log.size * sizeof(int64_t))
        s.log.t = <double*>zeros(self, s.log.size * sizeof(double))
        s.log.element = <int32_t*>zeros(self, s.log.size * sizeof(int32_t))
        s.log.mode = <int32_t*>zeros(self, s.log.size * sizeof(int32_t))

    def _patterns(self):
        """Memory of the lock patterns; pattern_size in derive.py counts the same."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t n = m.n, nf = m.nf, i, block = (2 if m.order == 4 else 1) * m.nls
        cdef int64_t two = m.nlin + m.ncon > 0, four = m.order == 4, own = m.ncon > 0, formed = n <= TL_FORMED
        cdef int64_t torque = n * (lanes(n + nf) if formed else nf)
        cdef int64_t seen = min(n, m.nlin + m.ncon + m.nrx)
        cdef int64_t torques = four and formed and m.nls + m.ncon + m.nd + m.nvg == 0
        cdef int64_t fast = fast_modes(self.model.arrays, m.unresolved) * TL_FAST_SIZE(n, nf)
        s.build.cache = <tl_pattern*>zeros(self, m.ncache * sizeof(tl_pattern))
        cdef double* memory = <double*>zeros(self, m.ncache * m.pattern_size * sizeof(double))
        cdef uint64_t* keys = <uint64_t*>zeros(self, m.ncache * m.nkey * sizeof(uint64_t))
        cdef int64_t per = 0 if formed else 4 * n + 3 * nf, size
        cdef int32_t* ranges = <int32_t*>zeros(self, (m.ncache + 1) * per * sizeof(int32_t))
        cdef double* cur = memory
        cdef tl_pattern* q
        for i in range(m.ncache):
            q = &s.build.cache[i]
            q.key = keys + i * m.nkey
            q.P = _take(&cur, n * n)
            q.range = ranges + i * per
            q.T = _take(&cur, torque)
            q.P0 = _take(&cur, n * n) if two else q.P
            q.T0 = _take(&cur, torque) if formed and two else q.T
            q.Pr = _take(&cur, n * n) if two else q.P
            q.Tr = _take(&cur, torque) if formed and two else q.T
            q.Z = _take(&cur, n * seen)
            q.seen = _take(&cur, 3 * seen * (seen + nf))
            q.P4 = _take(&cur, 4 * n * n) if four else NULL
            q.T4 = _take(&cur, 4 * n * nf) if torques else NULL
            q.Tn = _take(&cur, n * nf)
            q.S = _take(&cur, n * n) if own else m.S
            q.A4 = _take(&cur, 4 * n * n) if own and four else m.A4
            q.X = _take(&cur, block * block)
            q.X0 = _take(&cur, m.nls * m.nls)
            q.fast = _take(&cur, fast) if fast else NULL
            if cur - memory != (i + 1) * m.pattern_size:
                raise AssertionError(f"a lock pattern takes {cur - memory} doubles, {m.pattern_size} were reserved")
        size = 2 * n * n + torque + (8 * n * n if four else 0) + (4 * n * nf if torques else 0) + block * block
        cur = <double*>zeros(self, size * sizeof(double))
        q = &s.length.built
        q.P = _take(&cur, n * n)
        q.T = _take(&cur, torque)
        q.P4 = _take(&cur, 4 * n * n) if four else NULL
        q.T4 = _take(&cur, 4 * n * nf) if torques else NULL
        q.S = _take(&cur, n * n)
        q.A4 = _take(&cur, 4 * n * n) if four else NULL
        q.X = _take(&cur, block * block)
        q.range = ranges + m.ncache * per
        cur = <double*>zeros(self, TL_EXCESS(n, nf) * sizeof(double))
        s.excess.u = _take(&cur, n)
        s.excess.z = _take(&cur, n)
        s.excess.a = _take(&cur, n)
        s.excess.tau = _take(&cur, nf)
        s.excess.tau_m = _take(&cur, nf)
        s.kept = <double*>zeros(self, (3 * n + nf) * sizeof(double))

    def _scratch_of_groups(self):
        """Scratch of losses, driven flanges, contacts, variable gears and the thermal network."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t n = m.n, nf = m.nf, own = n * nf + 2 * nf * nf + n * nf, i
        cdef double* cur = <double*>zeros(self, (10 * n + m.nlin + 2 * m.ncon + m.nst + 2 * m.nvg + 2 * m.nls) * sizeof(double))
        s.rho = _take(&cur, 2 * n)
        s.ad = _take(&cur, 2 * n)
        s.decision.z = _take(&cur, n)
        s.decision.u = _take(&cur, n)
        s.zs = _take(&cur, 2 * n)
        s.us = _take(&cur, 2 * n)
        s.f_lin = _take(&cur, m.nlin)
        s.f_con = _take(&cur, m.ncon)
        s.event.contact_x = <double*>zeros(self, (m.ncon + m.nst + m.nlu) * sizeof(double))
        s.gears.rate = _take(&cur, m.nvg)
        s.gears.next = _take(&cur, m.nvg)
        s.gears.now = <tl_ratio*>zeros(self, m.nvg * sizeof(tl_ratio))
        s.event.branch_x = _take(&cur, m.nls)
        s.rea_size = _take(&cur, m.nls)
        s.event.contact_next = <int64_t*>zeros(self, (m.ncon + m.nst) * sizeof(int64_t))
        s.event.contact_which = <int32_t*>zeros(self, (m.ncon + m.nst) * sizeof(int32_t))
        s.arena.size = arena_size(m)
        s.arena.memory = <double*>zeros(self, s.arena.size * sizeof(double))
        s.gears.B = m.B
        s.gears.W = m.W
        s.gears.W0 = m.W0
        s.gears.SinvBt = m.SinvBt
        if m.nvg > 0:
            s.gears.own_rows = <double*>zeros(self, own * sizeof(double))
            memcpy(s.gears.own_rows, m.B, n * nf * sizeof(double))
            memcpy(s.gears.own_rows + n * nf, m.W, nf * nf * sizeof(double))
            memcpy(s.gears.own_rows + n * nf + nf * nf, m.W0, nf * nf * sizeof(double))
            memcpy(s.gears.own_rows + n * nf + 2 * nf * nf, m.SinvBt, n * nf * sizeof(double))
            s.gears.B = s.gears.own_rows
            s.gears.W = s.gears.own_rows + n * nf
            s.gears.W0 = s.gears.W + nf * nf
            s.gears.SinvBt = s.gears.W0 + nf * nf

    def reset(self):
        """Back to the initial values of the model, at time 0."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        memset(s.x, 0, s.nx * sizeof(double))
        memset(s.k, 0, s.nk * sizeof(int64_t))
        refresh(m, s)
        u0 = np.ascontiguousarray(self.model.arrays.u0, dtype=np.float64)
        z0 = np.ascontiguousarray(self.model.arrays.z0, dtype=np.float64)
        for i in range(m.n):
            s.now.u[i] = u0[i]
            s.now.z[i] = z0[i]
        for i in range(m.nf):
            s.mode[i] = MODE_FREE
        for i in range(m.nact):
            s.now.p[i] = m.act[i].p0
            s.fill[i] = 1.0 if m.act[i].p0 > m.act[i].p_return else 0.0
        for i in range(m.nth):
            s.T[i] = m.th[i].T0
        for i in range(m.nbo):
            memcpy(&s.att[7 * <int>i], m.bo[<int>i].q, 4 * sizeof(double))
            memcpy(&s.att[7 * <int>i + 4], m.bo[<int>i].r, 3 * sizeof(double))
        s.fresh[0] = 1
        s.status = 0
        s.log.n = 0
        s.held = 0
        refresh(m, s)
        turn_back(m, s)

    def warm(self):
        """Build every lock pattern now, so that none is built in a tick; only where all of them are kept."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t i, j
        if not m.direct_cache or m.nvg > 0:
            return 0
        old = [s.mode[j] for j in range(m.nf)]
        for i in range((<int64_t>1) << m.nf):
            for j in range(m.nf):
                s.mode[j] = 0 if (i >> j) & 1 else 2
            pattern_of(m, s)
        for j in range(m.nf):
            s.mode[j] = old[j]
        s.pat = pattern_of(m, s)
        return m.ncache

    def touch(self):
        """Write to every page of the state's memory now, so that none is first touched in a tick."""
        for memory in self._keep:
            memory[::4096] = memory[::4096].copy()

    def lock_matrices(self):
        """Matrices of the present set of stuck elements: P (n, n), a = P g, and T (nf, n), tau = T g (see locks.pyx)."""
        n, nf = self.model.ptr.n, self.model.ptr.nf
        P = vector(self.ptr.pat.P, n * n).reshape(n, n).T
        if n > TL_FORMED:
            Tn = vector(self.ptr.pat.Tn, n * nf).reshape(n, nf).T
            S = vector(<double*>self.ptr.pat.S, n * n).reshape(n, n)
            return P.copy(), Tn @ (S @ P - np.eye(n))
        both = vector(self.ptr.pat.T, n * lanes(n + nf)).reshape(n, -1).T
        return P.copy(), both[n : n + nf].copy()

    @property
    def slope(self):
        """Change of the acceleration over the last step (n), used by the predictor."""
        return vector(self.ptr.now.hs1, self.model.ptr.n)

    @property
    def idle_integral(self):
        """Integrator of each idle controller, N.m."""
        return vector(self.ptr.xi, self.model.ptr.neng)

    def copy(self):
        """An independent state of the same model with the same values."""
        other = KernelState(self.model)
        other.restore(self)
        return other

    def restore(self, KernelState other not None):
        """Take over the values of another state of the same model."""
        if other.ptr.nx != self.ptr.nx or other.ptr.nk != self.ptr.nk:
            raise ValueError("the states belong to models of different structure")
        claim(self.ptr, False)
        claim(other.ptr, False)
        memcpy(self.ptr.x, other.ptr.x, self.ptr.nx * sizeof(double))
        memcpy(self.ptr.k, other.ptr.k, self.ptr.nk * sizeof(int64_t))
        self.ptr.status = other.ptr.status
        refresh(self.model.ptr, self.ptr)

    def to_bytes(self):
        """The state proper as bytes (restore with from_bytes on the same model)."""
        claim(self.ptr, False)
        return (<char*>self.ptr.x)[: self.ptr.nx * sizeof(double)] + (<char*>self.ptr.k)[: self.ptr.nk * sizeof(int64_t)]

    def from_bytes(self, bytes data not None):
        """Inverse of to_bytes; ValueError when the length does not fit the model."""
        cdef int64_t nx = self.ptr.nx * sizeof(double), nk = self.ptr.nk * sizeof(int64_t)
        if len(data) != nx + nk:
            raise ValueError(f"state of {len(data)} bytes, this model needs {nx + nk}")
        claim(self.ptr, False)
        memcpy(self.ptr.x, <const char*>data, nx)
        memcpy(self.ptr.k, <const char*>data + nx, nk)
        refresh(self.model.ptr, self.ptr)

    def hash(self):
        """64-bit hash of the state proper (values and modes; not the work counters)."""
        return int(tl_state_hash(self.model.ptr, self.ptr))

    @property
    def u(self):
        """Independent speeds (n), rad/s or m/s."""
        return vector(self.ptr.now.u, self.model.ptr.n)

    @u.setter
    def u(self, value):
        v = np.ascontiguousarray(value, dtype=np.float64)
        if v.shape != (self.model.ptr.n,):
            raise ValueError(f"u: shape {v.shape}, expected ({self.model.ptr.n},)")
        memcpy(self.ptr.now.u, cnp.PyArray_DATA(v), v.nbytes)
        self.ptr.fresh[0] = 1
        self.ptr.hist[0] = 0

    @property
    def z(self):
        """Integrals of the independent speeds (n), rad or m."""
        cdef tl_model* m = self.model.ptr
        return vector(self.ptr.now.z, m.n) + vector(self.ptr.turned, m.nrm) @ vector(m.rm_z, m.nrm * m.n).reshape(m.nrm, m.n)

    @z.setter
    def z(self, value):
        v = np.ascontiguousarray(value, dtype=np.float64)
        if v.shape != (self.model.ptr.n,):
            raise ValueError(f"z: shape {v.shape}, expected ({self.model.ptr.n},)")
        memcpy(self.ptr.now.z, cnp.PyArray_DATA(v), v.nbytes)
        memset(self.ptr.turned, 0, self.model.ptr.nrm * sizeof(double))
        rigid_offsets(self.model.ptr, self.ptr)
        turn_back(self.model.ptr, self.ptr)
        self.ptr.fresh[0] = 1
        self.ptr.hist[0] = 0

    @property
    def a(self):
        """Accelerations (n)."""
        return vector(self.ptr.now.a, self.model.ptr.n)

    @property
    def tau(self):
        """Friction forces along their rows (nf), N.m or N."""
        return vector(self.ptr.now.tau, self.model.ptr.nf)

    @property
    def capacity(self):
        """Sliding capacity against forward and backward motion (2, nf)."""
        return np.stack([vector(self.ptr.now.cap_f, self.model.ptr.nf), vector(self.ptr.now.cap_b, self.model.ptr.nf)])

    @property
    def p(self):
        """Actuator pressures (nact), Pa."""
        return vector(self.ptr.now.p, self.model.ptr.nact)

    @p.setter
    def p(self, value):
        v = np.ascontiguousarray(np.broadcast_to(value, (self.model.ptr.nact,)), dtype=np.float64)
        memcpy(self.ptr.now.p, cnp.PyArray_DATA(v), v.nbytes)
        for i in range(self.model.ptr.nact):
            self.ptr.fill[i] = 1.0 if v[i] > self.model.ptr.act[i].p_return else 0.0
        self.ptr.fresh[0] = 1

    @property
    def temperatures(self):
        """Temperatures of the thermal nodes, K."""
        return vector(self.ptr.T, self.model.ptr.nth)

    @temperatures.setter
    def temperatures(self, value):
        v = np.ascontiguousarray(np.broadcast_to(value, (self.model.ptr.nth,)), dtype=np.float64)
        memcpy(self.ptr.T, cnp.PyArray_DATA(v), v.nbytes)

    @property
    def regimes(self):
        """Regimes of the contacts (see contacts.pxi)."""
        return np.array([self.ptr.regime[i] for i in range(self.model.ptr.ncon)], dtype=np.int64)

    @property
    def branches(self):
        """Branches of the losses: 0 law A, 1 law B (see losses.pxi)."""
        return np.array([self.ptr.branch[i] for i in range(self.model.ptr.nls)], dtype=np.int64)

    @property
    def modes(self):
        """Modes (nf): -1 backward, 0 stuck, 1 forward, 2 free."""
        return np.array([self.ptr.mode[i] for i in range(self.model.ptr.nf)], dtype=np.int64)

    @property
    def scratch(self):
        """Doubles of scratch memory: most taken so far, reserved, taken now (between steps: none)."""
        return self.ptr.arena.most, self.ptr.arena.size, self.ptr.arena.used

    @property
    def quiet(self):
        """Whether the last step was a quiet one (quiet.pxi)."""
        return self.ptr.quiet > 1

    @property
    def step_no(self):
        return self.ptr.step_no[0]

    @property
    def fraction(self):
        """Part of the step behind step_no that is done, 0 <= fraction < 1."""
        return self.ptr.fraction[0]

    @property
    def time(self):
        """Simulated time, s: (step_no + fraction) times the length of a step, never a sum of steps."""
        return (self.ptr.step_no[0] + self.ptr.fraction[0]) * self.model.ptr.h

    @property
    def status(self):
        return self.ptr.status

    @property
    def counters(self):
        """Work counters since the start: events, most splits in a step, fallbacks, decisions, pivots, evaluations."""
        return {name: int(self.ptr.counters[i]) for i, name in enumerate(COUNTER_NAMES)}

    @property
    def energies(self):
        """Work (positive: into the driveline) and heat since the start, kinetic and potential energy now, J (energies_of)."""
        return energies_of(self)
