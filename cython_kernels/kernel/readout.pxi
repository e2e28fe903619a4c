# How the outputs of a state are read: planned once per state, so that a tick takes three passes without decisions.
#
#   shared    what several outputs show: speed, angle and acceleration of every row that one shows; power, capacity and mode
#             of the friction elements; inputs
#   single    outputs with a law of their own (output_law), the kinetic energy
#   gather    every output from its place; the few with a gain are multiplied then
#
# Drivelines with precompiled outputs have a function of their own instead (core/compile/readout_source.py), bit for bit equal.
#
# Sums have the order of row_dot: an output has the bits of its law evaluated by itself.
#
# Needs: kernel_outputs.pxi (output_law, show_inputs), state_memory.pxi.

cdef int32_t _distinct(list wanted, dict place) except -1:
    """place[key] = position of each wanted key, in ascending order; how many there are."""
    for key in sorted(set(wanted)):
        place[key] = len(place)
    return <int32_t>len(place)


cdef int plan_rows(KernelState self, list rows, dict place) except -1:
    """Rows as a first term each and further terms in the order of row_dot; an empty row is 0 times something."""
    cdef tl_model* m = self.model.ptr
    cdef tl_readout* r = &self.ptr.readout
    cdef int32_t at, k, q
    r.n_row = _distinct(rows, place)
    r.first = <tl_row_first*>zeros(self, r.n_row * sizeof(tl_row_first))
    r.term = <tl_row_term*>zeros(self, m.row_ptr[m.nrow] * sizeof(tl_row_term))
    cdef double* values = <double*>zeros(self, 3 * r.n_row * sizeof(double))
    r.w, r.phi, r.a = values, values + r.n_row, values + 2 * r.n_row
    for k, at in place.items():
        r.first[at].row = k
        for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
            if q == m.row_ptr[k]:
                r.first[at].idx, r.first[at].val = m.row_idx[q], m.row_val[q]
            else:
                r.term[r.n_term].row, r.term[r.n_term].idx, r.term[r.n_term].val = at, m.row_idx[q], m.row_val[q]
                r.n_term += 1
    return 0


cdef int plan_kinetic(KernelState self) except -1:
    """1/2 u^T M u as a list of products."""
    cdef tl_model* m = self.model.ptr
    cdef tl_readout* r = &self.ptr.readout
    cdef int32_t i, j
    cdef double v
    r.square = <tl_square*>zeros(self, m.n * (m.n + 1) // 2 * sizeof(tl_square))
    for i in range(m.n):
        for j in range(i, m.n):
            v = m.M[i * m.n + j]
            if v != 0.0:
                r.square[r.n_square].i, r.square[r.n_square].j = i, j
                r.square[r.n_square].val = v if j > i else 0.5 * v
                r.n_square += 1
    return 0


cdef const double* output_place(const tl_model* m, const tl_state* s, const tl_eval* now, int32_t kind,
                                int32_t k) noexcept:
    """Where an output of this kind stands in the state while `now` is the present instant; NULL: it has a law."""
    cdef int32_t p_poly = m.ntq, p_eng = m.ntq + m.npoly, p_turb = p_eng + m.neng + m.ntc
    if kind == OUT_FRICTION:
        return now.tau + k
    if kind == OUT_TORQUE or kind == OUT_PORT:
        return now.port + k
    if kind == OUT_PRESSURE:
        return now.p + k
    if kind == OUT_INPUT:
        return s.readout.inp + k
    if kind == OUT_ENGINE:
        return now.port + p_eng + k
    if kind == OUT_TURBINE:
        return now.port + p_turb + k
    if kind == OUT_POLY:
        return now.port + p_poly + k
    if kind == OUT_FRICTION_HEAT:
        return s.e_fr + k
    if kind == OUT_DISSIPATION:
        return s.e_lin + k
    if kind == OUT_TORQUE_WORK or kind == OUT_PORT_WORK:
        return s.e_port + k
    if kind == OUT_POLY_WORK:
        return s.e_port + p_poly + k
    if kind == OUT_ENGINE_WORK:
        return s.e_port + p_eng + k
    if kind == OUT_CONTACT_LOSS:
        return s.e_con + k
    if kind == OUT_TEMPERATURE:
        return s.T + k
    if kind == OUT_RATIO:
        return s.ratio + k
    if kind == OUT_ATTITUDE:
        return s.att + k
    return NULL


cdef int plan_readout(KernelState self) except -1:
    """Once, when the memory of the state is laid out."""
    cdef tl_model* m = self.model.ptr
    cdef tl_state* s = self.ptr
    cdef tl_readout* r = &s.readout
    cdef const tl_out* o
    cdef const double* found
    cdef int32_t i, at, parity, k
    shown = [(m.out[i].kind, m.out[i].idx) for i in range(m.nout)]
    elements, rows = {}, {}
    r.n_fr = _distinct([k for kind, k in shown if kind in (OUT_MODE, OUT_CAPACITY, OUT_FRICTION_POWER)], elements)
    plan_rows(self, [k for kind, k in shown if kind in (OUT_SPEED, OUT_ANGLE, OUT_ACCELERATION)]
              + [m.fr[k].row for k in elements], rows)
    r.fr = <tl_read_fr*>zeros(self, r.n_fr * sizeof(tl_read_fr))
    cdef double* values = <double*>zeros(self, 3 * r.n_fr * sizeof(double))
    r.power, r.cap, r.mode = values, values + r.n_fr, values + 2 * r.n_fr
    for k, at in elements.items():
        r.fr[at].fr, r.fr[at].row, r.fr[at].bilateral = k, rows[m.fr[k].row], m.fr[k].src == BILATERAL
    r.inp = <double*>zeros(self, m.nin * sizeof(double))
    r.joint = <double*>zeros(self, TL_JOINT_OUTPUTS * m.njo * sizeof(double))
    r.single = <double*>zeros(self, (m.nout + 1) * sizeof(double))
    r.single_out = <int32_t*>zeros(self, m.nout * sizeof(int32_t))
    r.scaled = <int32_t*>zeros(self, m.nout * sizeof(int32_t))
    for parity in range(2):
        r.source[parity] = <const double**>zeros(self, m.nout * sizeof(double*))
    for i in range(m.nout):
        o = &m.out[i]
        if o.gain != 1.0:
            r.scaled[r.n_scaled] = i
            r.n_scaled += 1
        for parity in range(2):
            if o.kind == OUT_SPEED:
                found = r.w + <int32_t>rows[o.idx]
            elif o.kind == OUT_ANGLE:
                found = r.phi + <int32_t>rows[o.idx]
            elif o.kind == OUT_ACCELERATION:
                found = r.a + <int32_t>rows[o.idx]
            elif o.kind == OUT_MODE:
                found = r.mode + <int32_t>elements[o.idx]
            elif o.kind == OUT_CAPACITY:
                found = r.cap + <int32_t>elements[o.idx]
            elif o.kind == OUT_FRICTION_POWER:
                found = r.power + <int32_t>elements[o.idx]
            else:
                found = output_place(m, s, &s.ev[parity], o.kind, o.idx)
            r.source[parity][i] = found if found != NULL else r.single + r.n_single
        if o.kind == OUT_KINETIC and r.kinetic == NULL:
            r.kinetic = r.single + m.nout
            plan_kinetic(self)
        if o.kind == OUT_KINETIC:
            r.source[0][i] = r.source[1][i] = r.kinetic
        elif found == NULL:
            r.single_out[r.n_single] = i
            r.n_single += 1
    return 0


cdef inline void read_rows(const tl_readout* r, const tl_eval* now, const double* row_off) noexcept nogil:
    """w = row u, phi = row z + off, a = row a of all rows shown."""
    cdef const tl_row_first* f = r.first
    cdef const tl_row_term* t = r.term
    cdef const tl_row_term* end = t + r.n_term
    cdef const double* u = now.u
    cdef const double* z = now.z
    cdef const double* rate = now.a
    cdef double* w = r.w
    cdef double* phi = r.phi
    cdef double* a = r.a
    cdef int32_t i, n = r.n_row
    for i in range(n):
        # 0 + x: no sum of row_dot is -0
        w[i] = 0.0 + f[i].val * u[f[i].idx]
        phi[i] = 0.0 + f[i].val * z[f[i].idx]
        a[i] = 0.0 + f[i].val * rate[f[i].idx]
    while t < end:
        w[t.row] += t.val * u[t.idx]
        phi[t.row] += t.val * z[t.idx]
        a[t.row] += t.val * rate[t.idx]
        t += 1
    for i in range(n):
        phi[i] += row_off[f[i].row]


cdef inline double read_kinetic(const tl_readout* r, const double* u) noexcept nogil:
    """1/2 u^T M u from the entries of M that are not zero, each pair once."""
    cdef const tl_square* q = r.square
    cdef const tl_square* end = q + r.n_square
    cdef double e = 0.0
    while q < end:
        e += q.val * u[q.i] * u[q.j]
        q += 1
    return e


cdef inline void read_friction(const tl_readout* r, const tl_state* s) noexcept nogil:
    """Power, capacity and mode."""
    cdef const tl_read_fr* f = r.fr
    cdef const tl_read_fr* end = f + r.n_fr
    cdef const tl_eval* now = s.now
    cdef double* power = r.power
    cdef double* cap = r.cap
    cdef double* mode = r.mode
    while f < end:
        power[0] = -now.tau[f.fr] * r.w[f.row]
        cap[0] = larger(now.cap_f[f.fr], now.cap_b[f.fr])
        mode[0] = shown_mode(s.mode[f.fr], f.bilateral, r.w[f.row], r.a[f.row])
        power += 1
        cap += 1
        mode += 1
        f += 1


cdef void tl_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """All outputs now, in SI units. Real-time: yes."""
    if m.unresolved and s.pat.n_fast > 0:
        read_true(m, s, out)
    else:
        read_motion(m, s, out)


cdef inline void read_motion(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """The same of the motion as it stands in the state."""
    if m.read_fn != NULL:
        m.read_fn(m, s, out)
    else:
        read_any(m, s, out)


cdef void read_true(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """The same without what the motion of the method has too much of modes that decay within a step (step/fast_modes.pxi): one
    instant from which accelerations, torques, reactions and powers follow. Speeds, angles and energies are those of the method,
    by which contacts, stops and friction are decided and energy closes."""
    cdef int32_t i
    cdef size_t moved = m.n * sizeof(double)
    cdef tl_eval* now = s.now
    excess_now(m, s)
    memcpy(s.kept, now.u, moved)
    memcpy(s.kept + m.n, now.z, moved)
    memcpy(s.kept + 2 * m.n, now.a, moved)
    memcpy(s.kept + 3 * m.n, now.tau, m.nf * sizeof(double))
    for i in range(m.n):
        now.u[i] -= s.excess.u[i]
        now.z[i] -= s.excess.z[i]
        now.a[i] -= s.excess.a[i]
    for i in range(m.nf):
        if s.mode[i] == MODE_STUCK and m.fr[i].src == BILATERAL:
            now.tau[i] -= s.excess.tau[i]    # of the others it is off already
    read_motion(m, s, out)
    memcpy(now.u, s.kept, moved)
    memcpy(now.z, s.kept + m.n, moved)
    memcpy(now.a, s.kept + 2 * m.n, moved)
    memcpy(now.tau, s.kept + 3 * m.n, m.nf * sizeof(double))
    for i in range(m.nout):
        if m.out[i].kind == OUT_SPEED:
            out[i] = m.out[i].gain * row_dot(m, m.out[i].idx, now.u)
        elif m.out[i].kind == OUT_ANGLE:
            out[i] = m.out[i].gain * row_angle(m, s, m.out[i].idx)
        elif m.out[i].kind == OUT_KINETIC:
            out[i] = m.out[i].gain * kinetic_energy(m, s)
        elif m.out[i].kind == OUT_POTENTIAL:
            out[i] = m.out[i].gain * potential(m, s)


cdef void read_any(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """All outputs of a driveline without a function of its own."""
    cdef const tl_readout* r = &s.readout
    cdef const double** source = r.source[s.parity[0] & 1]
    cdef double* to = out
    cdef double* end = out + m.nout
    cdef int32_t i
    read_rows(r, s.now, s.row_off)
    read_friction(r, s)
    memcpy(r.inp, s.inp if s.held else s.inp + 2 * m.nin, m.nin * sizeof(double))
    if m.njo > 0:
        read_joints(m, s)
    for i in range(r.n_single):
        r.single[i] = output_law(m, s, &m.out[r.single_out[i]])
    if r.kinetic != NULL:
        r.kinetic[0] = read_kinetic(r, s.now.u)
    while end - to >= 8:
        to[0] = source[0][0]
        to[1] = source[1][0]
        to[2] = source[2][0]
        to[3] = source[3][0]
        to[4] = source[4][0]
        to[5] = source[5][0]
        to[6] = source[6][0]
        to[7] = source[7][0]
        to += 8
        source += 8
    while to < end:
        to[0] = source[0][0]
        to += 1
        source += 1
    for i in range(r.n_scaled):
        out[r.scaled[i]] *= m.out[r.scaled[i]].gain
