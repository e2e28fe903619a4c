# Forces of all elements at one instant, at the row speeds and the fraction of the step given. Sizes are TL_N(m), TL_NF(m) ...:
# fields of the model in the generic step, constants in a precompiled one. The arithmetic is the same, so results are equal to the bit.
#
# Equations: (7): the forces g.

#: of that at T_ref: the resistance of an eddy-current brake is no less; a temperature that is predicted may say so
cdef double LEAST_RESISTANCE = 1e-3


cdef inline double eddy_nominal(const tl_model* m, const tl_state* s, int32_t i, double theta) noexcept nogil:
    """Speed of the greatest torque of an eddy-current brake: w_nominal (1 + alpha (T - T_ref))."""
    cdef double T = temperature(m, s, m.ed[i].th, theta) if m.ed[i].th >= 0 else m.ed[i].T
    cdef double resistance_now = 1.0 + m.ed[i].alpha * (T - m.ed[i].T_ref)
    return m.ed[i].wn * (resistance_now if resistance_now > LEAST_RESISTANCE else LEAST_RESISTANCE)


cdef inline double eddy_torque(const tl_model* m, const tl_state* s, int32_t i, double w,
                               double theta) noexcept nogil:
    """Eddy-current brake: -2 tau_nominal x/(1 + x^2), x = w/eddy_nominal."""
    cdef double x = w / eddy_nominal(m, s, i, theta)
    return -2.0 * m.ed[i].tau * x / (1.0 + x * x)


cdef inline double curve_force(const tl_model* m, const tl_state* s, int32_t i, double w, double theta,
                               int32_t* hint) noexcept nogil:
    """gain*curve(w) or gain*map(w, input or temperature); cv_abs: over |w| and with the sign of w."""
    cdef double sgn = 1.0, x, y = 0.0
    if m.cv[i].absolute:
        sgn = 1.0 if w > 0.0 else (-1.0 if w < 0.0 else 0.0)
        if hint[0] < 0 and m.cv[i].tab2 < 0:
            sgn = -1.0 if hint[1] else 1.0       # held with the piece
    x = sgn * w
    if m.cv[i].tab2 >= 0:
        if m.cv[i].arg == ARGUMENT_INPUT:
            y = input_at(m, s, m.cv[i].arg_idx, theta)
        elif m.cv[i].arg == ARGUMENT_TEMPERATURE:
            y = temperature(m, s, m.cv[i].arg_idx, theta)
        y = table2(&m.tab2[m.cv[i].tab2], x, y, hint)
    else:
        y = table1(&m.tab1[m.cv[i].tab1], x, hint)
    return m.cv[i].gain * (sgn * y)


cdef inline int32_t curve_port(const tl_model* m, int32_t i) noexcept nogil:
    """Port of curve i."""
    return TL_NTQ(m) + TL_NPOLY(m) + TL_NENG(m) + 2 * TL_NTC(m) + TL_NED(m) + i


cdef inline int32_t passes_steep(const tl_state* s, const tl_eval* e, int32_t row, double lo, double hi) noexcept nogil:
    """1 when the speed of a row, between now and the instant e, passes lo .. hi, where a torque over it is steep."""
    return lo < hi and (s.now.w[row] < hi or e.w[row] < hi) and (s.now.w[row] > lo or e.w[row] > lo)


cdef inline int32_t steep_port(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t port) noexcept nogil:
    """1 when the torque of a port is steep at the instant e, or at a speed between now and then."""
    cdef int32_t i = port - TL_NTQ(m)
    cdef int32_t[3] hint
    cdef double pump, turbine
    cdef int64_t steep = 0
    if i < TL_NPOLY(m):
        return i >= 0 and fabs(e.w[m.poly[i].row]) > m.poly[i].steep
    i -= TL_NPOLY(m)
    if i < TL_NENG(m):
        return passes_steep(s, e, m.eng[i].row, m.eng[i].steep_lo, m.eng[i].steep_hi)
    i -= TL_NENG(m)
    if i < 2 * TL_NTC(m):
        hint[0] = hint[1] = hint[2] = 0
        i = i % TL_NTC(m)
        converter_torques(m, i, e.w[m.tc[i].row_p], e.w[m.tc[i].row_t], hint, &pump, &turbine, &steep)
        return steep != 0
    i -= 2 * TL_NTC(m)
    if i < TL_NED(m):
        return 1
    i -= TL_NED(m)
    if i < TL_NCV(m):
        return passes_steep(s, e, m.cv[i].row, m.cv[i].steep_lo, m.cv[i].steep_hi)
    i -= TL_NCV(m)
    return i < TL_NWD(m) and passes_steep(s, e, m.wd[i].row, m.wd[i].steep_lo, m.wd[i].steep_hi)


cdef void watch_ports(const tl_model* m, tl_state* s, const tl_eval* e) noexcept nogil:
    """Whether a port that may be steep is so; converters have said so already."""
    cdef int32_t port, first = TL_NTQ(m) + TL_NPOLY(m) + TL_NENG(m)
    for port in range(TL_NPORT(m)):
        if not first <= port < first + 2 * TL_NTC(m):
            s.stiff |= steep_port(m, s, e, port)


cdef inline double drag_torque(const tl_model* m, const tl_state* s, int32_t i, double w,
                               double theta) noexcept nogil:
    """Open wet clutch: -mu d w while the film is whole, falling with x = w_c/|w| beyond; see core wet_drag."""
    cdef double T = temperature(m, s, m.wd[i].th, theta) if m.wd[i].th >= 0 else m.wd[i].T
    cdef double mu = exp(-m.wd[i].beta * (T - m.wd[i].T_ref)), wc = sqrt(mu) * m.wd[i].wc, x
    if m.wd[i].input >= 0:
        mu = mu * input_at(m, s, m.wd[i].input, theta)
    if fabs(w) <= wc:
        return -mu * m.wd[i].d * w
    x = wc / w                    # with the sign of w
    return -mu * m.wd[i].d * wc * x * (1.0 - m.wd[i].b + m.wd[i].b * x * x)


cdef inline double idle_torque(const tl_model* m, const tl_state* s, int32_t i, double w, double xi) noexcept nogil:
    """Torque of idle controller i in its regime."""
    if s.gives[i] != 0:
        return m.eng[i].tau_idle_max if s.gives[i] > 0 else 0.0
    return m.eng[i].kp * (m.eng[i].w_idle - w) + xi


cdef inline double backward_coupling(double mp0, double wp, double wt) noexcept nogil:
    """Torque of a converter whose pump and turbine both turn backward, outside of its curves: a fluid coupling with the
    capacity mp(0) at the slower of the two, less by their speed ratio, T_p = T_t against the slip. It takes energy out only,
    and is 0 where one of them stands, as the curves are there."""
    if wp == wt:
        return 0.0
    if wp > wt:
        return mp0 * wp * wp * (1.0 - wp / wt)
    return -mp0 * wt * wt * (1.0 - wt / wp)


cdef inline double resistance(const tl_model* m, int32_t i, double w) noexcept nogil:
    return m.poly[i].k[0] + w * (m.poly[i].k[1] + w * m.poly[i].k[2] + fabs(w) * m.poly[i].k[3])


cdef inline double engine_torque(const tl_model* m, const tl_state* s, int32_t i, double w, double theta,
                                 int32_t* hint) noexcept nogil:
    """drag(w) + pedal*(wot(w) - drag(w)), or map(w, pedal), without the idle controller."""
    cdef double pedal = input_at(m, s, m.eng[i].pedal, theta), lo
    if pedal < 0.0:
        pedal = 0.0
    if pedal > 1.0:
        pedal = 1.0
    if m.eng[i].map >= 0:
        return table2(&m.tab2[m.eng[i].map], w, pedal, hint)
    lo = table1(&m.tab1[m.eng[i].drag], w, hint)
    return lo + pedal * (table1(&m.tab1[m.eng[i].wot], w, hint + 1) - lo)


cdef inline void converter_torques(const tl_model* m, int32_t i, double wp, double wt, int32_t* hint, double* pump,
                                   double* turbine, int64_t* steep) noexcept nogil:
    """Torques of a converter on its pump and its turbine; steep: 1 where they are, else left alone."""
    cdef double nu, tp, tt
    cdef int32_t held = 0                        # 1: on a piece of the drive, -1: of the overrun
    if (hint[0] | hint[1] | hint[2]) < 0:
        held = 1 if (hint[0] | hint[1]) < 0 else -1
    if wp < 0.0 and wt < 0.0 and held == 0:
        tp = backward_coupling(table1(&m.tab1[m.tc[i].mp], 0.0, hint), wp, wt)
        tt = tp
        if wp < -m.tc[i].steep or wt < -m.tc[i].steep:
            steep[0] = 1
    elif held > 0 or (held == 0 and wt <= wp):
        nu = wt / wp if wp > 0.0 and (wt > 0.0 or held) else 0.0
        tp = table1(&m.tab1[m.tc[i].mp], nu, hint) * wp * fabs(wp)
        tt = table1(&m.tab1[m.tc[i].mu], nu, hint + 1) * tp
        if wp > m.tc[i].steep:
            steep[0] = 1
    else:
        nu = wp / wt if wt > 0.0 and (wp > 0.0 or held) else 0.0
        tt = -table1(&m.tab1[m.tc[i].coast], nu, hint + 2) * wt * fabs(wt)
        tp = m.tc[i].coast_ratio * tt
        if wt > m.tc[i].steep_over:
            steep[0] = 1
    pump[0] = -tp
    turbine[0] = tt


cdef void eval_forces(const tl_model* m, tl_state* s, tl_eval* e, const double* u, double theta,
                      const double* xi) noexcept nogil:
    """Port forces and friction capacities at speeds u and at the fraction theta of the step; e.p must be set."""
    s.counters[TL_C_EVALS] += 1
    s.stiff = 0
    gather(m, u, e.w)
    eval_ports(m, s, e, theta, xi)
    each_capacity(m, s, e.w, e.p, theta, e, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))


cdef inline void eval_ports(const tl_model* m, tl_state* s, tl_eval* e, double theta, const double* xi) noexcept nogil:
    """Port forces at the row speeds e.w and at the fraction theta of the step."""
    cdef int32_t i, j = 0, k
    cdef double w
    cdef tl_vec port = e.port
    cdef int32_t* hint = s.hint
    for i in range(TL_NTQ(m)):
        k = m.tq[i].input
        port[j] = m.tq[i].constant
        if k >= 0:
            port[j] += m.tq[i].gain * input_at(m, s, k, theta)
        j += 1
    for i in range(TL_NPOLY(m)):
        w = e.w[m.poly[i].row]
        port[j] = resistance(m, i, w)
        j += 1
    for i in range(TL_NENG(m)):
        w = e.w[m.eng[i].row]
        port[j] = engine_torque(m, s, i, w, theta, hint) + idle_torque(m, s, i, w, xi[i])
        hint += 2
        j += 1
    for i in range(TL_NTC(m)):
        converter_torques(m, i, e.w[m.tc[i].row_p], e.w[m.tc[i].row_t], hint, &port[j], &port[j + TL_NTC(m)], &s.stiff)
        hint += 3
        j += 1
    j += TL_NTC(m)
    for i in range(TL_NED(m)):
        port[j] = eddy_torque(m, s, i, e.w[m.ed[i].row], theta)
        j += 1
    for i in range(TL_NCV(m)):
        port[j] = curve_force(m, s, i, e.w[m.cv[i].row], theta, hint + TL_NF(m) + 2 * i)
        j += 1
    for i in range(TL_NWD(m)):
        port[j] = drag_torque(m, s, i, e.w[m.wd[i].row], theta)
        j += 1
    if TL_NBO(m) > 0:
        body_ports(m, s, e.w, theta, port + j)
        j += 6 * TL_NBO(m)
    if TL_NJO(m) > 0:
        joint_ports(m, s, e, theta)
    if m.watched:
        watch_ports(m, s, e)


cdef inline void assemble(const tl_model* m, const tl_state* s, tl_eval* e, double* F) noexcept nogil:
    """Row forces of ports and of sliding friction; writes tau of the elements that do not stick."""
    port_rows(m, e.port, F)
    each_slide(m, s, e, F)
