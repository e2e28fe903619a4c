# Outputs, energies and the hash of a state.

cdef double potential(const tl_model* m, const tl_state* s) noexcept nogil:
    """sum 1/2 c (phi - phi0)^2."""
    cdef int32_t i, k
    cdef double e = 0.0, x
    for i in range(m.nlin):
        k = m.lin_row[i]
        x = row_angle(m, s, k) - m.lin_phi0[i]
        e += 0.5 * m.lin_c[i] * x * x
    for i in range(m.ncon):
        if s.regime[i] != 0:
            x = contact_deflection(m, s, i, row_angle(m, s, m.con_row[i]))
            e += 0.5 * m.con_c[i] * x * x
    return e


cdef double spring_force(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Force of compliance i along its row now."""
    cdef int32_t r = m.lin_row[i]
    return -(m.lin_c[i] * (row_angle(m, s, r) - m.lin_phi0[i])
             + m.lin_d[i] * row_dot(m, r, s.now.u))


cdef double reaction_now(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """Reaction k now, from accelerations and forces."""
    cdef int32_t i, r
    cdef double v = 0.0
    for i in range(m.n):
        v += m.re_A[k * m.n + i] * s.now.a[i]
    for i in range(m.nport):
        v += m.re_port[k * m.nport + i] * s.now.port[i]
    for i in range(m.nf):
        v += m.re_fr[k * m.nf + i] * s.now.tau[i]
    for i in range(m.nlin):
        v += m.re_lin[k * m.nlin + i] * spring_force(m, s, i)
    for i in range(m.ncon):
        r = m.con_row[i]
        v += m.re_con[k * m.ncon + i] * contact_force(m, s, i, row_angle(m, s, r), row_dot(m, r, s.now.u))
    return v


cdef double mode_now(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Mode of element i. One that is at its limit while others hold its shafts at rest is stuck: it does not slide."""
    cdef int64_t q = s.mode[i]
    if q & 1 and m.fr_src[i] != 5:
        if -1e-9 < row_dot(m, m.fr_row[i], s.now.u) < 1e-9 and -1e-6 < row_dot(m, m.fr_row[i], s.now.a) < 1e-6:
            return 0.0
    return <double>q


cdef int tl_step(const tl_model* m, tl_state* s) noexcept nogil:
    """One step of h with the inputs s.inp (3, nin). Real-time: yes."""
    return m.step_fn(m, s, m.h)


cdef void tl_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """All outputs now, in SI units. Real-time: yes."""
    cdef int32_t i, k, kind
    cdef double v
    cdef int32_t p_poly = m.ntq, p_eng = m.ntq + m.npoly, p_pump = p_eng + m.neng, p_turb = p_pump + m.ntc
    for i in range(m.nout):
        kind = m.out_kind[i]
        k = m.out_idx[i]
        v = 0.0
        if kind == 0:
            v = row_dot(m, k, s.now.u)
        elif kind == 1:
            v = row_dot(m, k, s.now.z) + m.row_off[k]
        elif kind == 2:
            v = row_dot(m, k, s.now.a)
        elif kind == 3:
            v = s.now.tau[k]
        elif kind == 4:
            v = mode_now(m, s, k)
        elif kind == 5:
            v = s.now.cap_f[k] if s.now.cap_f[k] >= s.now.cap_b[k] else s.now.cap_b[k]
        elif kind == 6:
            v = s.now.port[k]
        elif kind == 7:
            v = s.now.p[k]
        elif kind == 8:
            v = s.inp[k] if s.held else s.inp[2 * m.nin + k]
        elif kind == 9:
            v = spring_force(m, s, k)
        elif kind == 10:
            v = s.now.port[p_eng + k]
        elif kind == 11:
            v = -s.now.port[p_pump + k]
        elif kind == 12:
            v = s.now.port[p_turb + k]
        elif kind == 13:
            v = s.now.port[p_poly + k]
        elif kind == 14:
            v = s.e_fr[k]
        elif kind == 15:
            v = s.e_lin[k]
        elif kind == 16:
            v = s.e_port[k]
        elif kind == 17:
            v = s.e_port[p_poly + k]
        elif kind == 18:
            v = s.e_port[p_eng + k]
        elif kind == 19:
            v = -(s.e_port[p_pump + k] + s.e_port[p_turb + k])
        elif kind == 20:
            v = kinetic_energy(m, s)
        elif kind == 21:
            v = potential(m, s)
        elif kind == 22:
            v = reaction_now(m, s, k)
        elif kind == 23:
            v = contact_force(m, s, k, row_angle(m, s, m.con_row[k]), row_dot(m, m.con_row[k], s.now.u))
        elif kind == 24:
            v = s.e_con[k]
        elif kind == 25:
            v = s.T[k]
        elif kind == 26:
            v = s.now.port[k]
        elif kind == 27:
            v = s.e_port[k]
        elif kind == 28:
            v = <double>s.branch[k]
        elif kind == 29:
            v = <double>s.regime[k]
        elif kind == 30:
            v = s.ratio[k]
        elif kind == 31:
            v = -s.now.tau[k] * row_dot(m, m.fr_row[k], s.now.u)
        elif kind == 32:
            v = row_dot(m, m.lin_row[k], s.now.u)
            v = m.lin_d[k] * v * v
        elif kind == 33:
            v = contact_loss(m, s, k, row_angle(m, s, m.con_row[k]), row_dot(m, m.con_row[k], s.now.u))
        elif kind == 34:
            v = s.now.port[k] * row_dot(m, m.port_row[k], s.now.u)
        elif kind == 35:
            v = reaction_now(m, s, k) * row_dot(m, m.out_aux[i], s.now.u)
        out[i] = m.out_gain[i] * v + m.out_off[i]


cdef inline uint64_t mix(uint64_t hsh, const void* data, int64_t words) noexcept nogil:
    """Take `words` 64-bit words into the hash."""
    cdef int64_t i
    cdef uint64_t word
    for i in range(words):
        memcpy(&word, <const char*>data + 8 * i, 8)
        hsh = (hsh ^ word) * <uint64_t>0x9E3779B97F4A7C15
        hsh ^= hsh >> 32
    return hsh


cdef uint64_t tl_state_hash(const tl_model* m, const tl_state* s) noexcept nogil:
    """Hash of all values, modes and the step number. Real-time: yes."""
    cdef uint64_t hsh = mix(<uint64_t>0xCBF29CE484222325, s.x, s.nfix)
    hsh = mix(hsh, s.now.u, s.nev)
    return mix(hsh, s.k, 2 * m.nf + m.ncon + m.nls + 3)
