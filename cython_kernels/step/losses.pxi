# Losses: friction along the row w whose torque -loss depends on a reaction r (the torque a gear transmits, a mesh force).
#
#   w > 0:  loss = max(kA r + cA, kB r + cB)
#   w < 0:  loss = min(kA r - cA, kB r - cB)
#   w = 0:  anything between the two that keeps it so
#
# The law that holds is the `branch` (0: A, 1: B); its change, where both agree, is an event.
#
# Equations: (56).

# Decisions know the torques to the shift of the boxed problem (1e-9); events must not ask again about less than that.
cdef double BRANCH_TOL = 1e-8          # of the terms compared, for a change of branch
cdef double ROUNDING = 1e-9            # of a reaction, relative to the terms it is a sum of
cdef double RANGE_TOL = 1e-8           # of the torque of a loss at rest, at the end of its range
cdef double NIL = 1e-11                # N.m or N: a driveline at rest without load has torques of rounding only
cdef double SLIP_ROUNDING = 4e-9      # of the terms of a slip acceleration: its rounding where it is formed with the shift
cdef double AT_THE_CHANGE = 1e-12      # of the length of a trial: branches that end so near to each other end at once


cdef inline void loss_terms(const tl_model* m, const tl_state* s, int32_t l, double w, double theta, double* kA, double* cA,
                            double* kB, double* cB) noexcept nogil:
    """The two laws of loss l at the speed w (or at its input)."""
    cdef const int32_t* t = m.ls[l].tab
    cdef double x = fabs(w) if m.ls[l].input < 0 else input_at(m, s, m.ls[l].input, theta)
    cdef int32_t* hint = s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m) + TL_NF(m) + 2 * TL_NCV(m) + 4 * l
    if hint[0] < 0:
        x = w * s.mode[m.ls[l].fr]           # held on a piece: beyond the end of the slip, too
    kA[0] = table1(&m.tab1[t[0]], x, hint)
    kB[0] = table1(&m.tab1[t[1]], x, hint + 1)
    cA[0] = fabs(table1(&m.tab1[t[2]], x, hint + 2))
    cB[0] = fabs(table1(&m.tab1[t[3]], x, hint + 3))
    if m.ls[l].form == FORM_EFFICIENCY:
        kA[0] = 1.0 - kA[0]
        kB[0] = 1.0 - 1.0 / kB[0]


cdef inline void loss_law(const tl_model* m, const tl_state* s, int32_t l, double w, double theta, int64_t branch,
                          int64_t mode, double* slope, double* const_) noexcept nogil:
    """loss = slope*r + const_ in a branch while sliding (mode 1 or -1)."""
    cdef double kA, cA, kB, cB
    loss_terms(m, s, l, w, theta, &kA, &cA, &kB, &cB)
    slope[0] = kB if branch else kA
    const_[0] = (cB if branch else cA) * mode


cdef inline void loss_range(const tl_model* m, const tl_state* s, int32_t l, double r, double theta, double* least,
                            double* most) noexcept nogil:
    """What the loss can be at rest while the reaction is r, to within the rounding of r: an unloaded gear at rest has the
    range 0 and must not be asked about again because of it."""
    cdef double kA, cA, kB, cB, x, y
    loss_terms(m, s, l, 0.0, theta, &kA, &cA, &kB, &cB)
    x = kA * r + cA
    y = kB * r + cB
    most[0] = x if x > y else y
    x = kA * r - cA
    y = kB * r - cB
    least[0] = x if x < y else y
    x = ROUNDING * (fabs(kA) + fabs(kB)) * s.rea_size[l]
    most[0] += x
    least[0] -= x


cdef inline double branch_margin(const tl_model* m, const tl_state* s, int32_t l, double w, double r, double theta,
                                 double* scale) noexcept nogil:
    """>= 0 while the branch of loss l holds; scale: size of its terms."""
    cdef double kA, cA, kB, cB, d
    loss_terms(m, s, l, w, theta, &kA, &cA, &kB, &cB)
    d = (kA - kB) * r * s.mode[m.ls[l].fr] + (cA - cB)
    scale[0] = fabs(kA - kB) * (fabs(r) + s.rea_size[l]) + fabs(cA) + fabs(cB) + NIL / BRANCH_TOL
    return -d if s.branch[l] else d


cdef void loss_limits(const tl_model* m, tl_state* s, int32_t stages) noexcept nogil:
    """Limits of the losses at rest, from the reactions of each stage."""
    cdef int32_t l, i, st, count = stages if stages > 0 else 1
    cdef double least, most, slack
    cdef tl_eval* e
    for st in range(count):
        e = stage_eval(s, stages, st)
        for l in range(TL_NLS(m)):
            i = m.ls[l].fr
            if s.mode[i] == MODE_STUCK:
                loss_range(m, s, l, e.rea[l], stage_theta(s, stages, st), &least, &most)
                slack = RANGE_TOL * (fabs(least) + fabs(most) + fabs(e.tau[i])) + NIL
                e.lim_f[i] = most + slack
                e.lim_b[i] = slack - least


cdef double find_branch(const tl_model* m, tl_state* s, double end) noexcept nogil:
    """Fraction of the trial at which the first loss changes its branch, NO_EVENT if none does."""
    cdef int32_t l, i, k
    cdef double first = NO_EVENT, x, g0, gm, g1, scale, s0
    for l in range(TL_NLS(m)):
        s.event.branch_x[l] = NO_EVENT
        i = m.ls[l].fr
        if not s.mode[i] & 1:
            continue
        k = m.fr[i].row
        g1 = branch_margin(m, s, l, s.end.w[k], s.end.rea[l], s.theta + s.part, &scale)
        g0 = branch_margin(m, s, l, s.now.w[k], s.now.rea[l], s.theta, &s0)
        if s0 > scale:
            scale = s0
        if g1 >= -BRANCH_TOL * scale:
            continue
        gm = branch_margin(m, s, l, s.em.w[k], s.em.rea[l], s.theta + 0.5 * s.part, &s0) if s.four else 0.0
        x = values_fall(g0, gm, g1, s.four, BRANCH_TOL * scale)
        if x <= end:
            s.event.branch_x[l] = x
            if x < first:
                first = x
    return first


cdef void switch_branches(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Losses whose branch ends at the fraction x of the trial go over to the other one."""
    cdef int32_t l
    for l in range(TL_NLS(m)):
        if s.event.branch_x[l] <= x + AT_THE_CHANGE:
            s.branch[l] = 1 - s.branch[l]
            s.event.branch_x[l] = NO_EVENT
