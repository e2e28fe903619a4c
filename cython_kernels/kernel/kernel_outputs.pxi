# Laws of outputs, energies and the hash of a state. How all outputs are read at once: readout.pxi.
# Needs: model/laws.pxd, model/joints.pxd, model/poses.pxd, kernel_state.pxi (vector).

cdef void show_inputs(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """After the part x of a step: what outputs show as the inputs (the last row) is their value now, and what follows is no
    jump."""
    cdef int32_t i
    cdef double i0, im, i1
    for i in range(m.nin):
        i0, im, i1 = s.inp[i], s.inp[m.nin + i], s.inp[2 * m.nin + i]
        s.inp[2 * m.nin + i] = i0 + x * (4.0 * im - 3.0 * i0 - i1 + x * 2.0 * (i0 - 2.0 * im + i1))
        s.in_last[i] = s.inp[2 * m.nin + i]


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
        r = m.con[i].row
        v += m.re_con[k * m.ncon + i] * contact_force(m, s, i, row_angle(m, s, r), row_dot(m, r, s.now.u))
    return v


cdef double sum_now(const tl_model* m, const tl_state* s, int32_t k) noexcept nogil:
    """Sum of the terms from k on: each a product of a reaction, a speed and an input, where it has them."""
    cdef const tl_te* t = &m.te[k]
    cdef double total = 0.0, x
    while True:
        x = t.gain
        if t.reaction >= 0:
            x *= reaction_now(m, s, t.reaction)
        if t.row >= 0:
            x *= row_dot(m, t.row, s.now.u)
        if t.input >= 0:
            x *= s.readout.inp[t.input]
        if t.joint >= 0:
            x *= s.readout.joint[t.joint]
        total += x
        if not t.more:
            return total
        t += 1


cdef void read_joints(const tl_model* m, const tl_state* s) noexcept nogil:
    """What all joint shafts show, once for all of their outputs."""
    cdef int32_t i
    for i in range(m.njo):
        read_joint(m, s, i, s.readout.joint + TL_JOINT_OUTPUTS * i)


cdef void read_joint(const tl_model* m, const tl_state* s, int32_t i, double* y) noexcept nogil:
    """Of joint shaft i: 0 tau, 1 twist, 2, 3 ratio of each joint, 4 heat, 5 work of what bends it, 6, 7 and 8, 9 moments of
    the joints on the outer shafts a and b along the normal of the joint's plane and in it, 10, 11 force of the shaft
    on joint a along the normal of its plane and across it; between carriers that move against each other also 12 to 14 moment
    on carrier a, 15 to 17 force on it, 18 to 23 the same of b, 24, 25 bend angles, 26 distance of the joints."""
    cdef const tl_jo* j = &m.jo[i]
    cdef int32_t k, row
    cdef tl_bend[2] b
    cdef double[2] beta
    cdef double[2] x
    cdef double tau, psi = 0.0, planes = j.planes, length = j.length
    cdef tl_shaft h
    cdef double[2][3] slope
    memset(y, 0, TL_JOINT_OUTPUTS * sizeof(double))
    y[2] = y[3] = 1.0
    y[4] = s.e_jo[3 * i]
    y[5] = s.e_jo[3 * i + 1]
    if j.pose >= 0 and s.ps[TL_POSE_STATE * j.pose + 1] == 0.0:
        return                               # no step yet: the inputs, and so the poses, are not known
    if j.pose >= 0:
        psi = posed_now(m, s, j, &h, beta, &planes, &length)
    for k in range(2):
        row = j.row_a if k == 0 else j.row_b
        if j.pose >= 0:
            posed_bend(j.hooke[k], &h.side[k], turned_angle(m, s, row), &b[k], slope[k])
            x[k] = turned_angle(m, s, row) - atan2(h.side[k].s2, h.side[k].s1)
            continue
        beta[k] = j.bend[k] if j.bend_in[k] < 0 else s.readout.inp[j.bend_in[k]]
        beta[k] = bent(beta[k])
        x[k] = turned_angle(m, s, row) + j.theta[k]
        bend(j.hooke[k], x[k], beta[k], &b[k])
    # both ends say the same: -tau*g_a = port_a - (c*q + d*w)
    tau = (j.c * row_angle(m, s, j.row) + j.d * row_dot(m, j.row, s.now.u) - s.now.port[m.nport - 2 * m.njo + i]) / b[0].g
    y[0] = tau
    y[1] = row_angle(m, s, j.row) + b[0].r - b[1].r + psi - j.D0
    y[2] = b[0].g
    y[3] = 1.0 / b[1].g
    if j.pose >= 0:
        for k in range(2):
            posed_wrench(&m.ps[j.pose], &h, tau, slope[0], slope[1], k, y + 12 + 6 * k, y + 15 + 6 * k)
    for k in range(2):
        y[24 + k] = beta[k]
        beta[k] = bent(beta[k])
    y[26] = length
    read_moments(j, tau, b, beta, x, y + 6)
    if length > 0.0:
        read_across(j, tau, b, beta, x, planes, length, y + 10)


cdef void read_moments(const tl_jo* j, double tau, const tl_bend* b, const double* beta, const double* x,
                       double* y) noexcept nogil:
    """Moments of both joints on the outer shafts, along the normal of the joint's plane and in it."""
    cdef int32_t k
    cdef double M
    for k in range(2):
        M = tau * b[k].g
        if not j.hooke[k]:
            y[2 * k] = 0.0
            y[2 * k + 1] = M * tan(0.5 * beta[k])
            continue
        M = M * tan(beta[k]) * sin(x[k])
        y[2 * k] = M * cos(x[k])
        y[2 * k + 1] = M * sin(x[k])


cdef void read_across(const tl_jo* j, double tau, const tl_bend* b, const double* beta, const double* x, double planes,
                      double length, double* y) noexcept nogil:
    """Force of the shaft on joint a, from the couples of the joints on the shaft between them, across it: along the normal of
    plane a, and across that."""
    cdef double ca, sa, cb, sb
    couple(j.hooke[0], x[0] + b[0].r, beta[0], &ca, &sa)
    couple(j.hooke[1], x[1] + b[1].r, beta[1], &cb, &sb)
    tau = tau / length
    ca = ca + cos(planes) * cb - sin(planes) * sb
    sa = sa + sin(planes) * cb + cos(planes) * sb
    y[0] = -tau * sa
    y[1] = tau * ca


cdef double posed_now(const tl_model* m, const tl_state* s, const tl_jo* j, tl_shaft* h, double* beta, double* planes,
                      double* length) noexcept nogil:
    """The geometry of a joint shaft between moving carriers now: bends, angle between the planes, distance; psi."""
    cdef const tl_ps* o = &m.ps[j.pose]
    cdef double[7] pose
    cdef double[7] rate
    cdef double[3] a
    cdef double[3] b
    cdef double[3] c
    cdef int32_t end, k, at
    for k in range(7):
        rate[k] = 0.0
    for end in range(2):
        for k in range(7):
            at = o.pose_in[7 * end + k]
            if o.body[end] >= 0:
                pose[k] = s.att[7 * o.body[end] + k]
            else:
                pose[k] = s.readout.inp[at] if at >= 0 else (1.0 if k == 0 else 0.0)
        place_side(o, end, pose, rate, &h.side[end])
    place_shaft(o, h)
    for end in range(2):
        beta[end] = atan2(sqrt(h.side[end].s1 * h.side[end].s1 + h.side[end].s2 * h.side[end].s2), h.side[end].k)
    length[0] = h.length
    cross3(h.side[0].n, h.n, a)
    cross3(h.n, h.side[1].n, b)
    cross3(a, b, c)
    planes[0] = atan2(dot3(c, h.n), dot3(a, b))
    return unwrapped(h.psi - o.psi0, s.ps[TL_POSE_STATE * j.pose])


cdef void couple(int32_t hooke, double y, double beta, double* normal, double* across) noexcept nogil:
    """Couple of a joint across a shaft with the torque 1 whose fork stands at y from the normal of the plane."""
    normal[0] = -tan(beta) * sin(y) * cos(y) if hooke else 0.0
    across[0] = tan(beta) * cos(y) * cos(y) if hooke else tan(0.5 * beta)


cdef int tl_step(const tl_model* m, tl_state* s) noexcept nogil:
    """One step of h with the inputs s.inp (3, nin). Real-time: yes."""
    return m.step_fn(m, s, m.h)


cdef double output_law(const tl_model* m, const tl_state* s, const tl_out* o) noexcept nogil:
    """An output that stands nowhere in the state, without its gain. Real-time: yes."""
    cdef int32_t kind = o.kind, k = o.idx, p_pump = m.ntq + m.npoly + m.neng, p_turb = p_pump + m.ntc
    if kind == OUT_COMPLIANCE:
        return spring_force(m, s, k)
    if kind == OUT_PUMP:
        return -s.now.port[p_pump + k]
    if kind == OUT_CONVERTER_LOSS:
        return -(s.e_port[p_pump + k] + s.e_port[p_turb + k])
    if kind == OUT_POTENTIAL:
        return potential(m, s)
    if kind == OUT_REACTION:
        return reaction_now(m, s, k)
    if kind == OUT_CONTACT:
        return contact_force(m, s, k, row_angle(m, s, m.con[k].row), row_dot(m, m.con[k].row, s.now.u))
    if kind == OUT_LOSS_BRANCH:
        return <double>s.branch[k]
    if kind == OUT_CONTACT_REGIME:
        return <double>s.regime[k]
    if kind == OUT_STOPPED:
        return <double>(s.at_end[k] if s.at_end[k] != ENGAGED else 1)
    if kind == OUT_DAMPER_POWER:
        return damper_power(m, s, k)
    if kind == OUT_CONTACT_POWER:
        return contact_loss(m, s, k, row_angle(m, s, m.con[k].row), row_dot(m, m.con[k].row, s.now.u))
    if kind == OUT_PORT_POWER:
        return s.now.port[k] * row_dot(m, m.port_row[k], s.now.u)
    if kind == OUT_REACTION_POWER:
        return reaction_now(m, s, k) * row_dot(m, o.aux, s.now.u)
    if kind == OUT_SUM:
        return sum_now(m, s, k)
    if kind == OUT_JOINT:
        return s.readout.joint[k]
    return NAN  # a kind that stands in the state, or one without a law: refused long before


cdef uint64_t tl_state_hash(const tl_model* m, const tl_state* s) noexcept nogil:
    """Hash of all values, modes and the step number. Real-time: yes."""
    cdef uint64_t hsh = fingerprint(<uint64_t>0xCBF29CE484222325U, s.x, s.nfix)
    hsh = fingerprint(hsh, s.now.u, s.nev)
    return fingerprint(hsh, s.k, 3 * m.nf + m.ncon + m.nls + m.nst + 3)


cdef dict energies_of(KernelState self):
    """KernelState.energies."""
    cdef tl_model* m = self.model.ptr
    work = vector(self.ptr.e_port, m.nport)
    a, b, c, d = m.ntq, m.ntq + m.npoly, m.ntq + m.npoly + m.neng, m.ntq + m.npoly + m.neng + m.ntc
    e, f, g = d + m.ntc, d + m.ntc + m.ned, d + m.ntc + m.ned + m.ncv
    heat = vector(self.ptr.e_fr, m.nf)
    damper = vector(self.ptr.e_lin, m.nlin)
    bending = np.zeros(m.njo)
    for i in range(m.njo):
        # the twist of a joint shaft is what it stores and turns to heat, not the deflection of its mean
        damper[m.jo[<int>i].lin] = self.ptr.e_jo[3 * <int>i]
        bending[i] = self.ptr.e_jo[3 * <int>i + 1]
    drivers = [m.drv[i].fr for i in range(m.nd)]
    driven = -heat[drivers]
    heat[drivers] = 0.0
    return {"torque": work[:a], "poly": work[a:b], "engine": work[b:c], "pump": work[c:d], "turbine": work[d:e],
            "eddy": work[e:f], "curve": work[f:g], "drag": work[g:g + m.nwd], "body": work[g + m.nwd:g + m.nwd + 6 * m.nbo], "joint": bending, "driven": driven,
            "friction": heat, "damper": damper, "contact": vector(self.ptr.e_con, m.ncon),
            "kinetic": kinetic_energy(m, self.ptr), "potential": potential(m, self.ptr)}
