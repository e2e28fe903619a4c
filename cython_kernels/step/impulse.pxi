# The plain impulse step (Moreau): a whole interval in one piece, whatever happens in it.
#
# Taken when a step has more events than are handled one by one, or when a trial would give energy. One boxed problem with a
# semidefinite matrix (definite with the shift of locks.pxd); it gives no energy, however long dt is (section 9). An element whose work is
# positive because the problem was not solved to the end is left without torque (impulse_problem). Forces that depend on time or speed do
# the work f v dt of the start of the interval. Slips beyond zero go on without friction and are met again at its end. First order.
# Models with joint shafts are without it (end_in_one, advance.pxi).
#
# Equations: (46) to (48).

#: rad/s or m/s: a slip brought to rest that the shift of the boxed problem has let creep
cdef double CREEP = 1e-6
#: rad or m: a side of a play beyond it is none
cdef double NO_SIDE = 1e299


cdef void impulse_step(const tl_model* m, tl_state* s, double done, double part) noexcept nogil:
    """Advance by part*h from the fraction `done` of the step; the modes of the instant reached are the caller's to find."""
    cdef int32_t i
    cdef double dt = part * m.h
    cdef int64_t here = mark(s)
    cdef tl_box box = take_box(m, s)
    cdef tl_pattern* p
    s.counters[TL_C_FALLBACKS] += 1
    if TL_NLS(m) > 0:
        jam(m, s)
    for i in range(TL_NF(m)):
        s.decision.before[i] = s.mode[i]
        s.mode[i] = MODE_STUCK if bilateral(m, i) else MODE_FREE
    p = free_pattern(m, s, dt)
    impulse_forces(m, s, p, dt)
    find_braking(m, s, &box)
    find_touching(m, s, &box)
    responses(m, s, &box, p.P)
    slips_without(m, s, &box, dt)
    press_contacts(m, s, &box, dt)
    if TL_NCON(m) > 0 and m.ncurved > 0:
        press_gaps(m, s, &box, dt)
    else:
        impulse_problem(m, s, &box, dt)
    impulse_advance(m, s, &box, p, part)
    come_to_rest(m, s, &box)
    release(s, here)
    if TL_NACT(m) > 0:
        pass_switches(m, s, done + part)
    s.part = 1.0
    s.h = m.h
    s.theta = done + part
    forget_history(m, s)
    for i in range(TL_NF(m)):
        s.mode[i] = s.decision.before[i]


cdef void jam(const tl_model* m, tl_state* s) noexcept nogil:
    """Losses that cannot go on moving: their torque raises the reaction it depends on by more than itself, so no finite
    one balances it (a load too heavy for a self-locking gear). Their capacity has no limit; of others it is that of now."""
    cdef int32_t l, i
    cdef double slope, const_
    for l in range(TL_NLS(m)):
        i = m.ls[l].fr
        if s.mode[i] & 1:
            loss_law(m, s, l, s.now.w[m.fr[i].row], s.theta, s.branch[l], s.mode[i], &slope, &const_)
            if 1.0 + slope * s.pat.X0[l * TL_NLS(m) + l] <= 0.0:
                s.now.cap_f[i] = UNLIMITED
                s.now.cap_b[i] = UNLIMITED


cdef tl_pattern* free_pattern(const tl_model* m, tl_state* s, double dt) noexcept nogil:
    """Matrices of an interval dt with only the bilateral elements held, and without contacts."""
    cdef int32_t i
    for i in range(TL_NCON(m)):
        s.regime[i] = 0
    s.h = dt
    s.pat = pattern_of_length(m, s, 1, dt)
    return s.pat


cdef void impulse_forces(const tl_model* m, tl_state* s, const tl_pattern* p, double dt) noexcept nogil:
    """s.g: force on u without friction and contacts, s.am: mean acceleration that goes with it."""
    cdef int32_t i, n = TL_N(m)
    port_rows(m, s.now.port, s.F)
    if TL_NLIN(m) > 0:
        for i in range(n):
            s.v1[i] = s.now.z[i] + 0.5 * dt * s.now.u[i]
        for i in range(TL_NLIN(m)):
            s.F[TL_LIN_ROW(m, i)] -= lin_force(m, i, s.v1, s.now.u)
    scatter(m, s.F, s.g)
    if TL_ND(m) + TL_NVG(m) > 0:
        drive_stages(m, s, 0, 0.0)
    answer_held(m, s, n, p.S, p.P, s.g, s.am)


cdef void find_braking(const tl_model* m, tl_state* s, tl_box* box) noexcept nogil:
    """All elements that can carry a torque are candidates; those at rest may use their static limit first."""
    cdef int32_t i, j, c
    for j in range(TL_NF(m)):
        i = m.fr_order[j]
        if bilateral(m, i) or (is_stop(m, i) and not is_dog(m, m.fr[i].src_idx)) or not (m.fr[i].src == LOSS or engaged(m, s, i)):
            continue
        c = box.nc
        box.cand[c] = i
        box.side[c] = 0
        box.released[c] = fabs(s.now.w[TL_FR_ROW(m, i)]) > TOL_R
        box.rows[c] = TL_FR_ROW(m, i)
        box.nc += 1


cdef void find_touching(const tl_model* m, tl_state* s, tl_box* box) noexcept nogil:
    """Each side of a contact (or stop, numbered after them) is a candidate: -1 - i for the upper side of i, -1 - all - i
    for the lower one."""
    cdef int32_t i, c, lower, all_ = TL_NCON(m) + TL_NST(m)
    for i in range(all_):
        for lower in range(2):
            if fabs(side_at(m, i, -1.0 if lower else 1.0)) < NO_SIDE:
                c = box.nc
                box.cand[c] = -1 - i - lower * all_
                box.side[c] = -1 if lower else 1
                box.rows[c] = contact_row(m, i)
                box.nc += 1


cdef inline int32_t contact_of(const tl_model* m, int32_t candidate, double* sgn) noexcept nogil:
    """The contact or stop of a candidate < 0; sgn: 1 for its upper side, -1 for the lower one."""
    cdef int32_t i = -1 - candidate, all_ = TL_NCON(m) + TL_NST(m)
    sgn[0] = 1.0 if i < all_ else -1.0
    return i if i < all_ else i - all_


cdef inline double side_at(const tl_model* m, int32_t i, double sgn) noexcept nogil:
    """Angle at which a side of contact or stop i begins."""
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        return m.st[i - TL_NCON(m)].hi if sgn > 0.0 else m.st[i - TL_NCON(m)].lo
    return m.con[i].hi if sgn > 0.0 else m.con[i].lo


cdef inline double depth(const tl_model* m, int32_t i, double sgn, double phi) noexcept nogil:
    """How deep the angle phi is in a side of contact or stop i, > 0 inside."""
    return sgn * (phi - side_at(m, i, sgn))


cdef void slips_without(const tl_model* m, tl_state* s, tl_box* box, double dt) noexcept nogil:
    """box.b: slips at the end without friction, over dt."""
    cdef int32_t c
    for c in range(box.nc):
        box.b[c] = row_dot(m, box.rows[c], s.am) + s.now.w[box.rows[c]] / dt


cdef void press_contacts(const tl_model* m, tl_state* s, tl_box* box, double dt) noexcept nogil:
    """Contacts and stops among the candidates. With x1 = x0 + dt r0 + dt^2/2 a the law is that of a row softer by 2/(k dt^2)."""
    cdef int32_t c, i, nc = box.nc
    cdef double x0, k, inside, sgn, scale = 2.0 / (dt * dt)
    for c in range(nc):
        if box.cand[c] >= 0:
            continue
        i = contact_of(m, box.cand[c], &sgn)
        x0 = depth(m, i, sgn, row_angle(m, s, box.rows[c]))
        box.lo[c] = -UNLIMITED if sgn > 0.0 else 0.0
        box.hi[c] = UNLIMITED if sgn < 0.0 else 0.0
        if TL_NST(m) > 0 and i >= TL_NCON(m):
            # rigid: x1 <= 0
            box.b[c] += s.now.w[box.rows[c]] / dt + (sgn * scale * x0 if x0 < 0.0 else 0.0)
            continue
        inside = x0 if x0 > 0.0 else 0.0
        if x0 > 0.0:
            box.side[c] = 0
        if curved(m, i):
            box.b[c] += s.now.w[box.rows[c]] / dt
            continue                         # the rest: press_gaps
        k = m.con[i].c + (m.con[i].d / dt if x0 > 0.0 else 0.0)
        box.b[c] += s.now.w[box.rows[c]] / dt + sgn * scale * (x0 - inside * (1.0 - m.con[i].c / k))
        box.W[c * nc + c] += scale / k


cdef void limit_braking(const tl_model* m, const tl_state* s, const tl_box* box) noexcept nogil:
    """Limits of friction: against the slip it starts with; both ways from rest; none for what would give heat back."""
    cdef int32_t c, i
    cdef double lf, lb, r
    for c in range(box.nc):
        i = box.cand[c]
        if i < 0:
            continue
        r = s.now.w[box.rows[c]]
        lf = s.now.cap_f[i] if box.released[c] and m.fr[i].fwd != BLOCKED else s.now.lim_f[i]
        lb = s.now.cap_b[i] if box.released[c] and m.fr[i].bwd != BLOCKED else s.now.lim_b[i]
        box.lo[c] = -lf if lf > 0.0 and r >= -TOL_R and not box.guess[c] else 0.0
        box.hi[c] = lb if lb > 0.0 and r <= TOL_R and not box.guess[c] else 0.0


cdef void impulse_problem(const tl_model* m, tl_state* s, tl_box* box, double dt) noexcept nogil:
    """Torques of the candidates. Solved again after an element has slid at its static limit (it has its sliding capacity
    then), or would give heat back (where the boxed problem has not been solved to the end): nc + 1 times at most each."""
    cdef int32_t c, i, again, piv, rounds
    cdef double heat, r0, r1
    for c in range(box.nc):
        box.guess[c] = 0                      # 1: left without torque
    for rounds in range(2 * box.nc + 2):
        limit_braking(m, s, box)
        s.counters[TL_C_RELAXED] += boxed_solve(box.nc, box.W, box.b, box.lo, box.hi, box.tau, box.side, box.work, &piv)
        count_pivots(s, piv)
        find_slips(box)
        again = 0
        for c in range(box.nc):
            i = box.cand[c]
            if i < 0:
                continue
            r0 = s.now.w[box.rows[c]]
            r1 = dt * box.y[c]
            heat = -0.5 * dt * box.tau[c] * (r0 + r1)
            if heat < -TOL_R * dt * fabs(box.tau[c]) and not box.guess[c]:
                box.guess[c] = 1
                again = 1
            if box.side[c] != 0 and not box.released[c] and box.y[c] != 0.0:
                box.released[c] = 1
                again = 1
        if not again:
            break


cdef void impulse_advance(const tl_model* m, tl_state* s, const tl_box* box, const tl_pattern* p,
                          double part) noexcept nogil:
    """The state at the end, and the energy balance: force times mean speed times time."""
    cdef int32_t i, k, c, n = TL_N(m)
    cdef double dt = part * m.h, w1, heat
    cdef double* w = s.em.w                   # (nhot) mean speeds
    for c in range(box.nc):
        add_along(m, box.rows[c], box.tau[c], s.g)
    answer_held(m, s, n, p.S, p.P, s.g, s.am)
    for i in range(n):
        s.um[i] = s.now.u[i] + 0.5 * dt * s.am[i]
    gather(m, s.um, w)
    for i in range(TL_NENG(m)):
        s.xi[i] += dt * m.eng[i].ki * (m.eng[i].w_idle - w[m.eng[i].row])
        s.xi[i] = 0.0 if s.xi[i] < 0.0 else (m.eng[i].tau_idle_max if s.xi[i] > m.eng[i].tau_idle_max else s.xi[i])
    for i in range(TL_NPORT(m)):
        s.e_port[i] += dt * s.now.port[i] * w[TL_PORT_ROW(m, i)]
    for i in range(TL_NLIN(m)):
        w1 = w[TL_LIN_ROW(m, i)]
        s.e_lin[i] += dt * m.lin[i].d * w1 * w1
    for c in range(box.nc):
        i = box.cand[c]
        k = box.rows[c]
        if i < 0:
            balance_side(m, s, i, box.tau[c], dt * w[k], k)
            continue
        heat = -dt * box.tau[c] * w[k]
        # what boxed_solve leaves of a slip at rest goes either way, and is taken out by come_to_rest
        if heat < -(CREEP if TL_NST(m) > 0 and box.side[c] == 0 else TOL_R) * dt * fabs(box.tau[c]):
            count_heat(m, s, i, fabs(s.now.w[k]), fabs(w[k]))
        s.e_fr[i] += heat if heat > 0.0 else 0.0
    if TL_ND(m) + TL_NVG(m) > 0:
        balance_drivers(m, s, p, dt)
    if TL_NBO(m) > 0:
        turn_bodies(m, s, dt, w, w, w, s.theta + part)
    for i in range(n):
        s.now.z[i] += dt * s.um[i]
        s.now.u[i] += dt * s.am[i]
    gather(m, s.now.u, s.now.w)


cdef void balance_side(const tl_model* m, tl_state* s, int32_t candidate, double f, double dx, int32_t k) noexcept nogil:
    """Heat of a side of a contact or stop that has pushed with f while its row moved by dx: what its spring does not keep."""
    cdef double sgn, phi = row_angle(m, s, k), x0, x1
    cdef int32_t i = contact_of(m, candidate, &sgn)
    x0 = depth(m, i, sgn, phi)
    x1 = depth(m, i, sgn, phi + dx)
    x0 = x0 if x0 > 0.0 else 0.0
    x1 = x1 if x1 > 0.0 else 0.0
    if TL_NST(m) > 0 and i >= TL_NCON(m):
        s.e_fr[m.st[i - TL_NCON(m)].fr] += -f * dx if f * dx < 0.0 else 0.0
        return
    if curved(m, i):
        s.e_con[i] += -f * dx - (deflection_energy(m, i, x1) - deflection_energy(m, i, x0))
        return
    s.e_con[i] += -f * dx - 0.5 * m.con[i].c * (x1 * x1 - x0 * x0)


cdef void balance_drivers(const tl_model* m, tl_state* s, const tl_pattern* p, double dt) noexcept nogil:
    """Work of the bilateral elements, from the torques that hold them."""
    cdef int32_t i
    missing_forces(s, TL_N(m), p.S, s.am, s.g)
    for i in range(TL_NF(m)):
        if bilateral(m, i):
            s.e_fr[i] -= dt * share_of_missing(m, s, i, 0) * slip_of(m, s, i, s.um)


cdef void come_to_rest(const tl_model* m, tl_state* s, const tl_box* box) noexcept nogil:
    """Elements held to the end of the interval: the creep of the shift in the boxed problem is taken out by projection. Of a
    stop that was reached also the speed: a plastic impact."""
    cdef int32_t c, i, any_held = 0, hit = -1
    cdef double sgn, lost = kinetic_energy(m, s) if TL_NST(m) > 0 else 0.0
    for c in range(box.nc):
        i = box.cand[c]
        if i >= 0 and box.side[c] == 0 and fabs(s.now.w[box.rows[c]]) <= CREEP:
            s.mode[i] = MODE_STUCK
            any_held = 1
        if TL_NST(m) > 0 and i < 0 and box.side[c] == 0 and contact_of(m, i, &sgn) >= TL_NCON(m):
            hit = m.st[contact_of(m, i, &sgn) - TL_NCON(m)].fr
            s.mode[hit] = MODE_STUCK
            any_held = 1
    if not any_held:
        return
    s.pat = pattern_of(m, s)
    stop_slips(m, s)
    if hit >= 0:
        lost -= kinetic_energy(m, s)
        s.e_fr[hit] += lost if lost > 0.0 else 0.0


cdef struct tl_press:
    double* soft           # (nc) what it adds to W
    double* shift          # (nc) and to b
    double* y              # (nc) depth it is linear about


cdef void press_gap(const tl_model* m, tl_state* s, tl_box* box, int32_t c, double dt, double y,
                    tl_press* p) noexcept nogil:
    """Candidate c with its law linear about the depth y."""
    cdef double sgn, x0, k, q, slope, scale = 2.0 / (dt * dt)
    cdef int32_t i = contact_of(m, box.cand[c], &sgn), nc = box.nc
    box.W[c * nc + c] -= p.soft[c]
    box.b[c] -= p.shift[c]
    y = y if y > 0.0 else 0.0
    x0 = depth(m, i, sgn, row_angle(m, s, box.rows[c]))
    slope = deflection_slope(m, i, y)
    k = slope + (m.con[i].d / dt if x0 > 0.0 else 0.0)
    q = slope * y - deflection_force(m, i, y) + (m.con[i].d / dt * x0 if x0 > 0.0 else 0.0)
    if k * box.W[c * nc + c] < GAP_SOFT * scale:
        k = GAP_SOFT * scale / box.W[c * nc + c]
    p.y[c] = y
    p.soft[c] = scale / k
    p.shift[c] = sgn * scale * (x0 - q / k)
    box.W[c * nc + c] += p.soft[c]
    box.b[c] += p.shift[c]


cdef double pressed_to(const tl_model* m, const tl_state* s, const tl_box* box, int32_t c, double dt,
                       const tl_press* p) noexcept nogil:
    """Depth at the end of side c by its law, with all others as they push now: x1 + dt^2/2 W N(x1) = x1 without it."""
    cdef double sgn, x0, x1, more, step, damping, soft, acc = box.b[c] - p.shift[c]
    cdef int32_t d, it, i = contact_of(m, box.cand[c], &sgn)
    for d in range(box.nc):
        if d != c:
            acc += box.W[c * box.nc + d] * box.tau[d]
    x0 = depth(m, i, sgn, row_angle(m, s, box.rows[c]))
    soft = 0.5 * dt * dt * (box.W[c * box.nc + c] - p.soft[c])
    damping = m.con[i].d / dt if x0 > 0.0 else 0.0
    x1 = x0 + sgn * 0.5 * dt * dt * acc
    more = x1
    for it in range(DEPTH_ROUNDS):
        if x1 <= 0.0:
            return 0.0
        step = (x1 - more + soft * (deflection_force(m, i, x1) + damping * (x1 - x0))) / (
            1.0 + soft * (deflection_slope(m, i, x1) + damping))
        x1 -= step
        if fabs(step) <= DEPTH_TOL * x1:
            break
    return x1


cdef void press_gaps(const tl_model* m, tl_state* s, tl_box* box, double dt) noexcept nogil:
    """impulse_problem with the curved contacts: linear about the depth they come to."""
    cdef int32_t c, it, again, nc = box.nc
    cdef double x1
    cdef int64_t here = mark(s)
    cdef tl_press p
    p.soft = scratch(s, nc)
    p.shift = scratch(s, nc)
    p.y = scratch(s, nc)
    for c in range(nc):
        p.soft[c] = 0.0
        p.shift[c] = 0.0
        box.tau[c] = 0.0
    for c in range(nc):
        if of_curved(m, box, c):
            press_gap(m, s, box, c, dt, pressed_to(m, s, box, c, dt, &p), &p)
    for it in range(PRESS_ROUNDS):
        impulse_problem(m, s, box, dt)
        again = 0
        for c in range(nc):
            if of_curved(m, box, c):
                x1 = pressed_to(m, s, box, c, dt, &p)
                if fabs(x1 - p.y[c]) > PRESS_TOL * larger(x1, p.y[c]) and (x1 > 0.0 or box.tau[c] != 0.0):
                    # of two that press on each other in turn: half the way
                    press_gap(m, s, box, c, dt, x1 if it < PRESS_FREELY else 0.5 * (x1 + p.y[c]), &p)
                    again = 1
        if not again:
            break
    s.counters[TL_C_STEEP] += again
    release(s, here)


cdef inline int32_t of_curved(const tl_model* m, const tl_box* box, int32_t c) noexcept nogil:
    """1 when candidate c is a side of a curved contact."""
    cdef double sgn
    cdef int32_t i = 0
    if box.cand[c] >= 0:
        return 0
    i = contact_of(m, box.cand[c], &sgn)
    return i < TL_NCON(m) and curved(m, i)
