# Forces of all elements at one instant. Included by the generic kernel and by every precompiled topology: sizes come from
# TL_N(m), TL_NF(m) ... which are fields of the model in the one and constants in the other; the arithmetic is the same
# line by line, so results are bit-identical.

#: h/2 * slope * compliance above which the torque of a sliding element is found implicitly: explicit evaluation is stable
#: below 1 and still accurate at 0.2; larger values let clutches with steep mu(w) chatter around zero slip
cdef double STIFF = 0.2
cdef double UNLIMITED = 1e301          # stands for an unlimited torque; finite, so that interpolation stays finite


cdef inline double input_at(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Input i at the fraction theta of the step: held, or the quadratic through its start, middle and end."""
    cdef int32_t nin = TL_NIN(m)
    if s.held:
        return s.inp[i]
    return s.in_c[i] + theta * (s.in_c[nin + i] + theta * s.in_c[2 * nin + i])


cdef void advance_actuators(const tl_model* m, const tl_state* s, double theta, double part, int32_t code, double* p_out,
                            double* fill_out) noexcept nogil:
    """Pressures and fill levels `part` steps after the present state; the command is taken in the middle.

    First order:  p' = (p_cmd - p)/tau  solved exactly for a constant command, tau_rise or tau_fall by direction.
    Fill time: the piston fills in t_fill while p_cmd > p_return (pressure stays at or below p_return), empties in
    t_empty; once full it follows like first order. code: 0 whole step, 1 half a step (factors known), 2 any part.
    """
    cdef int32_t i
    cdef double cmd, target, tau, dt = part * m.h, x, rest, p
    for i in range(TL_NACT(m)):
        cmd = input_at(m, s, m.act_in[i], theta + 0.5 * part)
        if cmd < 0.0:
            cmd = 0.0
        if cmd > m.act_p_max[i]:
            cmd = m.act_p_max[i]
        p = s.now.p[i]
        rest = dt
        if m.act_kind[i] == 1:
            x = s.fill[i]
            if cmd > m.act_p_return[i]:
                if x < 1.0:
                    # the part of the interval before the piston is full: pressure creeps up to the return pressure
                    rest = dt - (1.0 - x) * m.act_t_fill[i]
                    if rest < 0.0:
                        rest = 0.0
                    x += dt / m.act_t_fill[i]
                    if x > 1.0:
                        x = 1.0
                    target = m.act_p_return[i]
                    tau = m.act_tau_rise[i] if target > p else m.act_tau_fall[i]
                    p = target + (p - target) * exp(-(dt - rest) / tau)
            else:
                x -= dt / m.act_t_empty[i]
                if x < 0.0:
                    x = 0.0
            fill_out[i] = x
        else:
            fill_out[i] = s.fill[i]
        if rest == dt and code < 2:
            if cmd > p:
                p = cmd + (p - cmd) * m.act_E[4 * i + code]
            else:
                p = cmd + (p - cmd) * m.act_E[4 * i + 2 + code]
        elif rest > 0.0:
            tau = m.act_tau_rise[i] if cmd > p else m.act_tau_fall[i]
            p = cmd + (p - cmd) * exp(-rest / tau)
        p_out[i] = p


cdef void eval_forces(const tl_model* m, tl_state* s, tl_eval* e, const double* u, double theta,
                      const double* xi) noexcept nogil:
    """Port forces and friction capacities at speeds u and at the fraction theta of the step; e.p must be set."""
    cdef int32_t i, j = 0, k
    cdef double w, tau, pedal, lo, wp, wt, nu, tp, tt, c
    cdef tl_vec port = e.port
    cdef int32_t* hint = s.hint
    s.counters[TL_C_EVALS] += 1
    s.stiff = 0
    gather(m, u, e.w)
    for i in range(TL_NTQ(m)):
        k = m.tq_in[i]
        port[j] = m.tq_const[i]
        if k >= 0:
            port[j] += m.tq_gain[i] * input_at(m, s, k, theta)
        j += 1
    for i in range(TL_NPOLY(m)):
        w = e.w[m.poly_row[i]]
        port[j] = m.poly_k[4 * i] + w * (m.poly_k[4 * i + 1] + w * m.poly_k[4 * i + 2] + fabs(w) * m.poly_k[4 * i + 3])
        j += 1
    for i in range(TL_NENG(m)):
        # tau = drag(w) + pedal*(wot(w) - drag(w)), or map(w, pedal); plus the idle controller
        w = e.w[m.eng_row[i]]
        pedal = input_at(m, s, m.eng_pedal_in[i], theta)
        if pedal < 0.0:
            pedal = 0.0
        if pedal > 1.0:
            pedal = 1.0
        if m.eng_map[i] >= 0:
            tau = table2(&m.tab2[m.eng_map[i]], w, pedal, hint)
        else:
            lo = table1(&m.tab1[m.eng_drag[i]], w, hint)
            tau = lo + pedal * (table1(&m.tab1[m.eng_wot[i]], w, hint + 1) - lo)
        hint += 2
        c = m.eng_kp[i] * (m.eng_w_idle[i] - w) + xi[i]
        if c > m.eng_tau_idle_max[i]:
            c = m.eng_tau_idle_max[i]
        if c > 0.0:
            tau += c
        port[j] = tau
        j += 1
    for i in range(TL_NTC(m)):
        wp = e.w[m.tc_row_p[i]]
        wt = e.w[m.tc_row_t[i]]
        if wt <= wp:
            nu = wt / wp if wp > 0.0 and wt > 0.0 else 0.0
            tp = table1(&m.tab1[m.tc_mp[i]], nu, hint) * wp * fabs(wp)
            tt = table1(&m.tab1[m.tc_mu[i]], nu, hint + 1) * tp
        else:
            nu = wp / wt if wt > 0.0 and wp > 0.0 else 0.0
            tt = -table1(&m.tab1[m.tc_coast[i]], nu, hint + 2) * wt * fabs(wt)
            tp = m.tc_coast_ratio[i] * tt
        hint += 3
        port[j] = -tp
        port[j + TL_NTC(m)] = tt
        j += 1
    capacities(m, s, e.w, e.p, theta, e.raw, e.cap_f, e.cap_b, e.lim_f, e.lim_b, e.slope, hint)


cdef inline void capacities(const tl_model* m, tl_state* s, tl_cvec w, tl_cvec p, double theta, tl_vec raw, tl_vec cap_f,
                            tl_vec cap_b, tl_vec lim_f, tl_vec lim_b, tl_vec slope, int32_t* hint) noexcept nogil:
    """Normal force -> sliding capacity cgeo*mu(|w|)*fn and static limit peak*cgeo*mu(0)*fn of every friction element."""
    cdef int32_t i, k
    cdef int64_t mode
    cdef double fn, c, lim, wi, dmu
    for i in range(TL_NF(m)):
        if m.fr_fixed[i]:
            continue
        k = m.fr_src[i]
        if k == 2:
            fn = m.fr_ga[i] * (p[m.fr_src_idx[i]] - m.fr_pret[i])
        elif k == 0:
            fn = m.fr_gain[i]
        else:
            fn = m.fr_gain[i] * input_at(m, s, m.fr_src_idx[i], theta)
        raw[i] = fn
        slope[i] = 0.0
        if fn > 0.0:
            c = m.fr_cgeo[i] * fn
            mode = s.mode[i]
            lim = m.fr_peak[i] * m.fr_mu0[i] * c
            if mode != 0 and m.fr_mu[i] >= 0:
                # beyond the end of the slip (a trial only) mu stays that of standstill
                wi = w[TL_FR_ROW(m, i)]
                wi = wi * mode if mode != 2 else fabs(wi)
                wi = table1_slope(&m.tab1[m.fr_mu[i]], wi, hint + i, &dmu)
                if 0.5 * m.h * dmu * c * m.W[i * (TL_NF(m) + 1)] > STIFF:
                    slope[i] = dmu * c
                    s.stiff = 1
                c = c * wi
            else:
                c = c * m.fr_mu0[i]
            cap_f[i] = c
            cap_b[i] = c
            lim_f[i] = lim
            lim_b[i] = lim
        else:
            cap_f[i] = 0.0
            cap_b[i] = 0.0
            lim_f[i] = m.fr_hold[i]
            lim_b[i] = 0.0
        if not m.fr_both[i]:
            if m.fr_fwd[i] != 1:
                cap_f[i] = 0.0
                lim_f[i] = UNLIMITED if m.fr_fwd[i] == 2 else 0.0
            if m.fr_bwd[i] != 1:
                cap_b[i] = 0.0
                lim_b[i] = UNLIMITED if m.fr_bwd[i] == 2 else 0.0


cdef inline void assemble(const tl_model* m, const tl_state* s, tl_cvec port, tl_cvec cap_f, tl_cvec cap_b, tl_vec tau,
                          tl_vec F) noexcept nogil:
    """Row forces of ports and of sliding friction; writes tau of the elements that do not stick."""
    cdef int32_t i
    cdef int64_t mode
    cdef double t
    for i in range(TL_NHOT(m)):
        F[i] = 0.0
    for i in range(TL_NPORT(m)):
        F[TL_PORT_ROW(m, i)] += port[i]
    for i in range(TL_NF(m)):
        mode = s.mode[i]
        t = 0.0
        if mode == 1:
            t = -cap_f[i]
        elif mode == -1:
            t = cap_b[i]
        tau[i] = t
        F[TL_FR_ROW(m, i)] += t
