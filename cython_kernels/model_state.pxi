# The state: memory of everything that changes, and its views for Python.

cdef void refresh(const tl_model* m, tl_state* s) noexcept:
    """Pointers that follow from the values (after the block was written as a whole)."""
    s.now = &s.ev[s.parity[0] & 1]
    s.end = &s.ev[1 - (s.parity[0] & 1)]
    s.pat = pattern_of(m, s)
    cdef int32_t i
    for i in range(m.nact):
        s.cmd[i] = s.in_last[m.act_in[i]]
        if s.cmd[i] < 0.0:
            s.cmd[i] = 0.0
        elif s.cmd[i] > m.act_p_max[i]:
            s.cmd[i] = m.act_p_max[i]
    fixed_capacities(m, &s.ev[0])
    fixed_capacities(m, &s.ev[1])
    fixed_capacities(m, &s.em)


cdef void fixed_capacities(const tl_model* m, tl_eval* e) noexcept nogil:
    """Capacities that never change; eval_forces leaves them alone."""
    cdef int32_t i
    for i in range(m.nf):
        if m.fr_fixed[i]:
            e.raw[i] = m.fr_fixed_val[5 * i]
            e.cap_f[i] = m.fr_fixed_val[5 * i + 1]
            e.cap_b[i] = m.fr_fixed_val[5 * i + 2]
            e.lim_f[i] = m.fr_fixed_val[5 * i + 3]
            e.lim_b[i] = m.fr_fixed_val[5 * i + 4]
            e.steep[i] = 0.0


cdef double* _take(double** cursor, int64_t count) noexcept:
    cdef double* at = cursor[0]
    cursor[0] += count
    return at


cdef void* zeros(KernelState self, int64_t nbytes) except NULL:
    """Zeroed memory kept alive by the state."""
    arr = np.zeros(max(8, nbytes), dtype=np.uint8)
    self._keep.append(arr)
    return cnp.PyArray_DATA(arr)


cdef void eval_block(const tl_model* m, tl_eval* e, double* mem) noexcept:
    """Lay the vectors of one instant into mem."""
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
        cdef tl_model* m = model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t n = m.n, nf = m.nf, nm = 2 * m.n + m.nf + 4
        cdef double* cur
        # state proper
        s.nev = 4 * n + m.nhot + m.nport + 7 * nf + m.nact
        s.nfix = n + m.nport + nf + m.nact + m.neng + m.nin + m.nlin + 1
        s.nx = s.nfix + 2 * s.nev
        s.nk = 2 * nf + 4 + TL_COUNTERS
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
        s.t = _take(&cur, 1)
        eval_block(m, &s.ev[0], _take(&cur, s.nev))
        eval_block(m, &s.ev[1], _take(&cur, s.nev))
        s.mode = s.k
        s.pressed = s.k + nf
        s.step_no = s.k + 2 * nf
        s.fresh = s.step_no + 1
        s.hist = s.step_no + 2
        s.parity = s.step_no + 3
        s.counters = s.step_no + 4
        # scratch
        s.inp = <double*>zeros(self, 3 * m.nin * sizeof(double))
        s.in_c = <double*>zeros(self, 3 * m.nin * sizeof(double))
        eval_block(m, &s.em, <double*>zeros(self, s.nev * sizeof(double)))
        cur = <double*>zeros(self, (3 * n + m.neng + 2 * m.nact + 2 * m.nhot + 3 * nm) * sizeof(double))
        s.um = _take(&cur, n)
        s.am = _take(&cur, n)
        s.s2 = _take(&cur, n)
        s.xi1 = _take(&cur, m.neng)
        s.fill1 = _take(&cur, m.nact)
        s.F = _take(&cur, m.nhot)
        s.wa = _take(&cur, m.nhot)
        s.cmd = _take(&cur, m.nact)
        s.g = _take(&cur, nm)
        s.v1 = _take(&cur, nm)
        s.v2 = _take(&cur, nm)
        s.box_w = <double*>zeros(self, (8 * nf * nf + 16 * nf + 2 * n + 16) * sizeof(double))
        s.box_i = <int32_t*>zeros(self, (4 * nf + 4) * sizeof(int32_t))
        s.hint = <int32_t*>zeros(self, (2 * m.neng + 3 * m.ntc + nf + 4) * sizeof(int32_t))
        s.key = <uint64_t*>zeros(self, m.nkey * sizeof(uint64_t))
        s.stuck_list = <int32_t*>zeros(self, (nf + 1) * sizeof(int32_t))
        s.pat_work = <double*>zeros(self, (n * n + nf * n + n + 16 * n * n + 8 * n + nf * n + nf * nf + 64) * sizeof(double))
        s.log_size = 1 << 16
        s.log_step = <int64_t*>zeros(self, s.log_size * sizeof(int64_t))
        s.log_t = <double*>zeros(self, s.log_size * sizeof(double))
        s.log_el = <int32_t*>zeros(self, s.log_size * sizeof(int32_t))
        s.log_mode = <int32_t*>zeros(self, s.log_size * sizeof(int32_t))
        # lock patterns
        cdef int64_t two = m.nlin > 0, four = m.order == 4, i
        cdef int64_t per = n * n + n * nf + two * (n * n + n * nf) + four * 4 * n * n + n * nf
        s.cache = <tl_pattern*>zeros(self, m.ncache * sizeof(tl_pattern))
        cur = <double*>zeros(self, m.ncache * per * sizeof(double))
        cdef uint64_t* keys = <uint64_t*>zeros(self, m.ncache * m.nkey * sizeof(uint64_t))
        for i in range(m.ncache):
            s.cache[i].key = keys + i * m.nkey
            s.cache[i].P = _take(&cur, n * n)
            s.cache[i].T = _take(&cur, n * nf)
            s.cache[i].P0 = _take(&cur, n * n) if two else s.cache[i].P
            s.cache[i].T0 = _take(&cur, n * nf) if two else s.cache[i].T
            s.cache[i].P4 = _take(&cur, 4 * n * n) if four else NULL
            s.cache[i].Tn = _take(&cur, n * nf)
        self.reset()

    def reset(self):
        """Back to the initial values of the model, at time 0."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        memset(s.x, 0, s.nx * sizeof(double))
        memset(s.k, 0, s.nk * sizeof(int64_t))
        refresh(m, s)
        u0 = np.ascontiguousarray(self.model.arrays["u0"], dtype=np.float64)
        z0 = np.ascontiguousarray(self.model.arrays["z0"], dtype=np.float64)
        for i in range(m.n):
            s.now.u[i] = u0[i]
            s.now.z[i] = z0[i]
        for i in range(m.nf):
            s.mode[i] = 2
        s.fresh[0] = 1
        s.status = 0
        s.log_n = 0
        s.held = 0
        refresh(m, s)

    def warm(self):
        """Build every lock pattern now, so that none is built in a tick; only where all of them are kept."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t i, j
        if not m.direct_cache:
            return 0
        old = [s.mode[j] for j in range(m.nf)]
        for i in range(m.ncache):
            for j in range(m.nf):
                s.mode[j] = 0 if (i >> j) & 1 else 2
            pattern_of(m, s)
        for j in range(m.nf):
            s.mode[j] = old[j]
        s.pat = pattern_of(m, s)
        return m.ncache

    def lock_matrices(self):
        """Matrices of the present set of stuck elements: P (n, n), a = P g, and T (nf, n), tau = T g (see locks.pyx)."""
        n, nf = self.model.ptr.n, self.model.ptr.nf
        P = vector(self.ptr.pat.P, n * n).reshape(n, n).T
        T = vector(self.ptr.pat.T, n * nf).reshape(n, nf).T
        return P.copy(), T.copy()

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
        memcpy(self.ptr.x, other.ptr.x, self.ptr.nx * sizeof(double))
        memcpy(self.ptr.k, other.ptr.k, self.ptr.nk * sizeof(int64_t))
        self.ptr.status = other.ptr.status
        refresh(self.model.ptr, self.ptr)

    def to_bytes(self):
        """The state proper as bytes (restore with from_bytes on the same model)."""
        return (<char*>self.ptr.x)[: self.ptr.nx * sizeof(double)] + (<char*>self.ptr.k)[: self.ptr.nk * sizeof(int64_t)]

    def from_bytes(self, bytes data not None):
        """Inverse of to_bytes; ValueError when the length does not fit the model."""
        cdef int64_t nx = self.ptr.nx * sizeof(double), nk = self.ptr.nk * sizeof(int64_t)
        if len(data) != nx + nk:
            raise ValueError(f"state of {len(data)} bytes, this model needs {nx + nk}")
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
        return vector(self.ptr.now.z, self.model.ptr.n)

    @z.setter
    def z(self, value):
        v = np.ascontiguousarray(value, dtype=np.float64)
        if v.shape != (self.model.ptr.n,):
            raise ValueError(f"z: shape {v.shape}, expected ({self.model.ptr.n},)")
        memcpy(self.ptr.now.z, cnp.PyArray_DATA(v), v.nbytes)
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
            self.ptr.fill[i] = 1.0 if v[i] > self.model.ptr.act_p_return[i] else 0.0
        self.ptr.fresh[0] = 1

    @property
    def modes(self):
        """Modes (nf): -1 backward, 0 stuck, 1 forward, 2 free."""
        return np.array([self.ptr.mode[i] for i in range(self.model.ptr.nf)], dtype=np.int64)

    @property
    def step_no(self):
        return self.ptr.step_no[0]

    @property
    def time(self):
        """Simulated time, s."""
        return self.ptr.t[0]

    @property
    def status(self):
        return self.ptr.status

    @property
    def counters(self):
        """Work counters since the start: events, most splits in a step, fallbacks, decisions, pivots, evaluations."""
        return {name: int(self.ptr.counters[i]) for i, name in enumerate(COUNTER_NAMES)}

    @property
    def energies(self):
        """Work and heat since the start, J: port work (torque sources, polynomials, engines, pumps, turbines; positive =
        into the driveline), friction heat, damper heat, kinetic and potential energy now."""
        cdef tl_model* m = self.model.ptr
        work = vector(self.ptr.e_port, m.nport)
        a, b, c, d = m.ntq, m.ntq + m.npoly, m.ntq + m.npoly + m.neng, m.ntq + m.npoly + m.neng + m.ntc
        return {"torque": work[:a], "poly": work[a:b], "engine": work[b:c], "pump": work[c:d], "turbine": work[d:],
                "friction": vector(self.ptr.e_fr, m.nf), "damper": vector(self.ptr.e_lin, m.nlin),
                "kinetic": kinetic(m, self.ptr), "potential": potential(m, self.ptr)}
