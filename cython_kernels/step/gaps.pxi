# Contacts with an exponent, c x^n (Hertz: 3/2): solved for together with the accelerations, while the matrices stay constant.
#
# They have no part in the matrices of the lock patterns. Deflections x and speeds w of their rows at the stages answer the
# forces F along them by what the pattern says, x = x* + H F, and F follows x and w by the law: a small problem, found by
# Newton's method to rounding. The law is monotone, its elastic energy V convex; from the side of the deeper deflection
# Newton's steps go down to the solution one-sidedly.
#
# Three points (order 4): the law itself at the middle and the end. What its work then leaves open against V is checked
# (gap_balance): such a trial is refused, and two points take over, as for springs the step does not resolve.
# Two points (order 2): the end force is the one whose mean with that of the start is the difference quotient of V,
#
#     (F0 + F1)/2 = -(V(x1) - V(x0))/(x1 - x0)
#
# so elastic energy and work close to rounding at every step and stiffness, to the same order (discrete gradient: O. Gonzalez,
# Time integration and discrete Hamiltonian systems, J. Nonlinear Sci. 6, 1996). The acceleration behind such a step is
# found again from the law (restore_law).
# The impulse step takes dV/dx at its end, which for a convex V never gives energy (press_gaps).
#
# Needs: joints.pxi (predicted), joints_solve.pxi (row_responses, answer_forces), contacts.pxi, accept.pxi (work4, tl_balance),
# impulse.pxi, settle.pxi.

cdef enum:
    GAP_ROUNDS = 60        # 2 to 5 are usual; far above what is resolved each takes 1/n off
    PRESS_ROUNDS = 60      # of the impulse step
    PRESS_FREELY = 12
    DEPTH_ROUNDS = 100     # of one side alone

#: of the force: what is left of the law is rounding
cdef double GAP_TOL = 1e-13
#: of an angle: its rounding
cdef double GAP_ROUNDING = 1e-15
#: of the force: with more left the trial is refused
cdef double GAP_UNSOLVED = 1e-9
#: of the deflection: closer points have their difference quotient from inside (Gauss, two points)
cdef double GAP_NEAR = 1e-3
#: of the depth: so near to the one its law is linear about
cdef double PRESS_TOL = 1e-9
#: of the depth of one side alone: it is found
cdef double DEPTH_TOL = 1e-14
#: of the response of a row: stiffness of a side that is not touched in the impulse step
cdef double GAP_SOFT = 1e-12


cdef inline double gap_mean(const tl_model* m, int32_t i, double x0, double x1, double* slope) noexcept nogil:
    """(V(x1) - V(x0))/(x1 - x0) of contact i; slope: its derivative with respect to x1."""
    cdef double dx = x1 - x0, g = 0.5 / sqrt(3.0), a, b, mean
    if fabs(dx) <= GAP_NEAR * larger(fabs(x0), fabs(x1)):
        a = 0.5 * (x0 + x1) - g * dx
        b = 0.5 * (x0 + x1) + g * dx
        slope[0] = 0.5 * ((0.5 - g) * deflection_slope(m, i, a) + (0.5 + g) * deflection_slope(m, i, b))
        return 0.5 * (deflection_force(m, i, a) + deflection_force(m, i, b))
    mean = (deflection_energy(m, i, x1) - deflection_energy(m, i, x0)) / dx
    slope[0] = (deflection_force(m, i, x1) - mean) / dx
    return mean


cdef inline double gap_law(const tl_model* m, const tl_state* s, int32_t i, int32_t stages, double x, double w, double* on_x,
                           double* on_w) noexcept nogil:
    """Force along its row of contact i at a stage with the deflection x and the speed w, and its derivatives."""
    cdef double both = 1.0 if s.regime[i] == CONTACT_BOTH or s.regime[i] == -CONTACT_BOTH else 2.0, x0, f
    on_w[0] = -m.con[i].d if both == 1.0 else 0.0
    if stages == 1:
        x0 = contact_deflection(m, s, i, row_angle(m, s, m.con[i].row))
        f = 2.0 * gap_mean(m, i, x0, x, on_x) - deflection_force(m, i, x0)
        on_x[0] *= -2.0 * both
    else:
        f = deflection_force(m, i, x)
        on_x[0] = -both * deflection_slope(m, i, x)
    return on_w[0] * w - both * f


cdef inline int32_t pressing(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 where contact i is a curved one that pushes."""
    cdef int64_t r = s.regime[i] if s.regime[i] >= 0 else -s.regime[i]
    return curved(m, i) and (r == CONTACT_BOTH or r == CONTACT_LIMITED)


cdef void push_gaps(const tl_model* m, tl_state* s, int32_t stages, const int32_t* rows, int32_t nc, const double* f) noexcept nogil:
    """Forces f along the rows into s.g, and the accelerations that answer them."""
    cdef int32_t st, c, i, k
    for st in range(stages):
        for c in range(nc):
            k = rows[c]
            for i in range(m.row_ptr[k], m.row_ptr[k + 1]):
                s.g[st * TL_N(m) + m.row_idx[i]] += m.row_val[i] * f[st * nc + c]
    answer_forces(m, s, stages)


cdef void solve_gaps(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Forces of the curved contacts that push at the stages of the trial, into s.g and the accelerations; s.unsolved: not
    found."""
    cdef int32_t i, c, x, y, st, it, nc = 0, n = TL_N(m), N
    cdef int64_t here = mark(s)
    cdef int32_t* rows = scratch_ints(s, m.ncurved)
    cdef int32_t* con = scratch_ints(s, m.ncurved)
    for i in range(TL_NCON(m)):
        if pressing(m, s, i):
            rows[nc] = m.con[i].row
            con[nc] = i
            nc += 1
    if nc == 0:
        release(s, here)
        return
    N = stages * nc
    cdef double* Hq = scratch(s, N * N)
    cdef double* Hw = scratch(s, N * N)
    cdef double* A = scratch(s, N * N)
    cdef double* b = scratch(s, N)
    cdef double* f = scratch(s, N)
    cdef double q, w, ahead, force, on_x, on_w, rounding, off = 0.0, large = 0.0
    cdef tl_eval* e
    row_responses(m, s, stages, rows, nc, Hq, Hw)
    for x in range(N):
        f[x] = 0.0
    for it in range(GAP_ROUNDS + 1):
        stage_motion(m, s, stages, s.end.a if stages == 1 else s.v2)
        off = 0.0
        large = 0.0
        for st in range(stages):
            e = stage_eval(s, stages, st)
            for c in range(nc):
                i = con[c]
                x = st * nc + c
                q = row_dot(m, rows[c], s.zs + st * n) + m.row_off[rows[c]]
                w = row_dot(m, rows[c], s.us + st * n)
                if it == 0:
                    # without its force the contact is far too deep: linear about the prediction instead
                    ahead = predicted(m, s, e, rows[c], (stage_theta(s, stages, st) - s.theta) * m.h)
                    force = gap_law(m, s, i, stages, contact_deflection(m, s, i, ahead), w, &on_x, &on_w) + on_x * (q - ahead)
                else:
                    force = gap_law(m, s, i, stages, contact_deflection(m, s, i, q), w, &on_x, &on_w)
                b[x] = force - f[x]
                rounding = GAP_ROUNDING * (fabs(on_x) * (fabs(q) + fabs(m.row_off[rows[c]])) + fabs(on_w * w))
                if fabs(b[x]) > off + rounding:
                    off = fabs(b[x]) - rounding
                large = fabs(force) + fabs(on_w * w) if fabs(force) + fabs(on_w * w) > large else large
                for y in range(N):
                    A[x * N + y] = (1.0 if y == x else 0.0) - on_x * Hq[x * N + y] - on_w * Hw[x * N + y]
        if (it > 0 and off <= GAP_TOL * large) or it == GAP_ROUNDS or lu_solve(A, N, b, 1):
            break
        for x in range(N):
            f[x] += b[x]
        push_gaps(m, s, stages, rows, nc, b)
    if not off <= GAP_UNSOLVED * large:
        s.unsolved = 1
        for x in range(N):
            if not fabs(f[x]) < UNLIMITED:
                # run away: the trial is refused, and made without them
                for i in range(stages * n):
                    s.g[i] = 0.0
                answer_forces(m, s, stages)
                break
    release(s, here)


cdef void gap_balance(const tl_model* m, const tl_state* s, int32_t i, tl_balance* b) noexcept nogil:
    """Adds contact i over a trial of three points: what its elastic energy gives beyond what it loses, of all that is
    turned over, the energy of motion along its row included."""
    cdef int32_t k = m.con[i].row, p, q
    cdef double h = s.h, w0 = row_dot(m, k, s.now.u), wm = row_dot(m, k, s.um), w1 = row_dot(m, k, s.end.u)
    cdef double x0, xm, x1, stored, both, inverse = 0.0
    if not pressing(m, s, i):
        return
    both = 1.0 if s.regime[i] == CONTACT_BOTH or s.regime[i] == -CONTACT_BOTH else 2.0
    if both == 1.0:
        turned_along(m, s, k, 0.0, m.con[i].d, b)
    x0 = contact_deflection(m, s, i, row_angle(m, s, k))
    xm = x0 + h * to_middle(w0, wm, w1)
    x1 = x0 + h * to_end(w0, wm, w1)
    stored = deflection_energy(m, i, x1) - deflection_energy(m, i, x0)
    b.made += both * (stored - h * work4(w0, wm, w1, deflection_force(m, i, x0), deflection_force(m, i, xm), deflection_force(m, i, x1)))
    for p in range(m.row_ptr[k], m.row_ptr[k + 1]):
        for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
            inverse += m.row_val[p] * m.row_val[q] * m.Minv[m.row_idx[p] * TL_N(m) + m.row_idx[q]]
    b.turned += both * fabs(stored) + deflection_energy(m, i, x0)
    if inverse > 0.0:
        b.turned += 0.5 * w0 * w0 / inverse


cdef void restore_law(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """After trials of two points: accelerations and torques of the instant at the fraction `end` by the law. (Those of the
    trial make the means right.)"""
    cdef int32_t i, found = TL_NJO(m) + TL_NED(m) > 0
    for i in range(TL_NCON(m)):
        found |= pressing(m, s, i)
    s.theta = end
    for i in range(TL_NJO(m)):
        joint_now(m, s, i, end)
    for i in range(TL_NED(m)):
        s.now.port[first_eddy(m) + i] = eddy_torque(m, s, i, s.now.w[m.ed[i].row], end)
    if found:
        list_modes(m, s)
        settle(m, s)


# In the impulse step a side is a row with the law N = k x1 - q, linear about a depth that is found by rounds.

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
