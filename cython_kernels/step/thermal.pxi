# Temperatures: lumped heat capacities, conductances, and the heat that the elements have produced since the last step.
#
#   C_i T_i' = heat_i + sum_j G_ij (T_j - T_i)
#
# Equations: none: section 12, temperatures.

cdef inline double source_energy(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """Energy that heat source i has given off so far, J (kind 4 has no counter: see heat_step)."""
    cdef int32_t kind = m.ths[i].kind, k = m.ths[i].idx
    if kind == HEAT_OF_PORT:
        return -s.e_port[k]
    if kind == HEAT_OF_FRICTION:
        return s.e_fr[k]
    if kind == HEAT_OF_DAMPER:
        return s.e_lin[k]
    if kind == HEAT_OF_CONTACT:
        return s.e_con[k]
    return 0.0


cdef inline double conductance(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Conductance i, W/K: constant, times a curve over a temperature (thermostat), times an input."""
    cdef double G = m.thg[i].G
    cdef int32_t hint = 0
    if m.thg[i].tab >= 0:
        G = G * table1(&m.tab1[m.thg[i].tab], s.T[m.thg[i].arg], &hint)
    if m.thg[i].input >= 0:
        G = G * input_at(m, s, m.thg[i].input, theta)
    return G


cdef inline double source_power(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Power of heat source i now, W."""
    cdef int32_t kind = m.ths[i].kind, k = m.ths[i].idx
    if kind == HEAT_OF_PORT:
        return -s.now.port[k] * row_dot(m, TL_PORT_ROW(m, k), s.now.u)
    if kind == HEAT_OF_FRICTION:
        return -s.now.tau[k] * row_dot(m, TL_FR_ROW(m, k), s.now.u)
    if kind == HEAT_OF_DAMPER:
        return damper_power(m, s, k)
    if kind == HEAT_OF_CONTACT:
        return contact_loss(m, s, k, row_angle(m, s, m.con[k].row), row_dot(m, m.con[k].row, s.now.u))
    return input_at(m, s, k, theta)


cdef void heat_rates(const tl_model* m, tl_state* s, double theta, double dt) noexcept nogil:
    """Rates of the temperatures now, and (dt > 0) how they changed over the last dt: what the next step predicts with."""
    cdef int32_t i, a, b, nth = TL_NTH(m)
    cdef double q
    cdef int64_t here = mark(s)
    cdef double* rate = scratch(s, nth)
    for i in range(nth):
        rate[i] = 0.0
    for i in range(m.nths):
        rate[m.ths[i].node] += m.ths[i].gain * source_power(m, s, i, theta)
    for i in range(m.nthg):
        a = m.thg[i].a
        b = m.thg[i].b
        q = conductance(m, s, i, theta) * (s.T[a] - s.T[b])
        rate[a] -= q
        rate[b] += q
    for i in range(nth):
        rate[i] = rate[i] / m.th[i].C if m.th[i].C > 0.0 else 0.0
        s.T_curve[i] = (rate[i] - s.T_rate[i]) / dt if dt > 0.0 else 0.0
        s.T_rate[i] = rate[i]
    release(s, here)


cdef void heat_step(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Temperatures at the fraction theta of the step, to which the energy balance is complete: its end, or an event."""
    cdef int32_t i, j, a, b, nth = TL_NTH(m)
    cdef double e, G, weight = 0.5, mid = 0.5 * (theta + s.T_theta), dt = (theta - s.T_theta) * m.h
    cdef int64_t here = mark(s)
    cdef double* A = scratch(s, nth * nth)
    cdef double* x = scratch(s, nth)
    cdef double* flow = scratch(s, nth)         # heat, W
    cdef double* L = scratch(s, nth)            # sum of conductances
    for i in range(nth):
        flow[i] = 0.0
        L[i] = 0.0
        for j in range(nth):
            A[i * nth + j] = 0.0
    for i in range(m.nths):
        if m.ths[i].kind == HEAT_FROM_INPUT:
            flow[m.ths[i].node] += m.ths[i].gain * input_at(m, s, m.ths[i].idx, mid)
        else:
            e = source_energy(m, s, i)
            flow[m.ths[i].node] += m.ths[i].gain * (e - s.th_e[i]) / dt
            s.th_e[i] = e
    for i in range(m.nthg):
        G = conductance(m, s, i, mid)
        a = m.thg[i].a
        b = m.thg[i].b
        A[a * nth + b] -= G
        A[b * nth + a] -= G
        L[a] += G
        L[b] += G
    for i in range(nth):
        if m.th[i].C > 0.0 and L[i] * dt > m.th[i].C:
            weight = 1.0
    for i in range(nth):
        if m.th[i].C > 0.0:
            e = flow[i]
            for j in range(nth):
                if j != i:
                    e -= (1.0 - weight) * A[i * nth + j] * (s.T[j] - s.T[i])
            x[i] = m.th[i].C / dt * s.T[i] + e
            for j in range(nth):
                A[i * nth + j] *= weight
            A[i * nth + i] = m.th[i].C / dt + weight * L[i]
        else:
            for j in range(nth):
                A[i * nth + j] = 0.0
            A[i * nth + i] = 1.0
            x[i] = input_at(m, s, m.th[i].input, theta) if m.th[i].input >= 0 else m.th[i].T0
    if not lu_solve(A, nth, x, 1):
        for i in range(nth):
            s.T[i] = x[i]
        s.T_theta = theta
        heat_rates(m, s, theta, dt)
    release(s, here)
