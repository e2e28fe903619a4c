# Outputs, energies and the hash of a state.

cdef double kinetic(const tl_model* m, const tl_state* s) noexcept nogil:
    """1/2 u^T M u."""
    cdef int32_t i, j
    cdef double e = 0.0
    for i in range(m.n):
        for j in range(m.n):
            e += 0.5 * s.now.u[i] * m.M[i * m.n + j] * s.now.u[j]
    return e


cdef inline double row_value(const tl_model* m, int32_t k, const double* x) noexcept nogil:
    cdef int32_t q
    cdef double acc = 0.0
    for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
    return acc


cdef double potential(const tl_model* m, const tl_state* s) noexcept nogil:
    """sum 1/2 c (phi - phi0)^2."""
    cdef int32_t i, k
    cdef double e = 0.0, x
    for i in range(m.nlin):
        k = m.lin_row[i]
        x = row_value(m, k, s.now.z) + m.row_off[k] - m.lin_phi0[i]
        e += 0.5 * m.lin_c[i] * x * x
    return e


cdef int tl_step(const tl_model* m, tl_state* s) noexcept nogil:
    """One step of h with the inputs s.inp (3, nin). Real-time: yes."""
    return m.step_fn(m, s, m.h)


cdef void tl_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """All outputs now, in SI units. Real-time: yes."""
    cdef int32_t i, k, kind, r
    cdef double v
    cdef int32_t p_poly = m.ntq, p_eng = m.ntq + m.npoly, p_pump = p_eng + m.neng, p_turb = p_pump + m.ntc
    for i in range(m.nout):
        kind = m.out_kind[i]
        k = m.out_idx[i]
        v = 0.0
        if kind == 0:
            v = row_value(m, k, s.now.u)
        elif kind == 1:
            v = row_value(m, k, s.now.z) + m.row_off[k]
        elif kind == 2:
            v = row_value(m, k, s.now.a)
        elif kind == 3:
            v = s.now.tau[k]
        elif kind == 4:
            v = <double>s.mode[k]
        elif kind == 5:
            v = s.now.cap_f[k] if s.now.cap_f[k] >= s.now.cap_b[k] else s.now.cap_b[k]
        elif kind == 6:
            v = s.now.port[k]
        elif kind == 7:
            v = s.now.p[k]
        elif kind == 8:
            v = s.inp[k] if s.held else s.inp[2 * m.nin + k]
        elif kind == 9:
            r = m.lin_row[k]
            v = -(m.lin_c[k] * (row_value(m, r, s.now.z) + m.row_off[r] - m.lin_phi0[k]) + m.lin_d[k] * row_value(m, r, s.now.u))
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
            v = kinetic(m, s)
        elif kind == 21:
            v = potential(m, s)
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
    return mix(hsh, s.k, 2 * m.nf + 3)
