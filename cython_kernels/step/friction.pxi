# Friction elements at one instant: normal force, capacity, limits and the torque of an element that slides; and whether a
# trial asks for a search because of one.
#
# Equations: (32), (33).

cdef inline double normal_force(const tl_model* m, const tl_state* s, tl_cvec p, double theta, int32_t i, int32_t source,
                                int32_t index) noexcept nogil:
    """Normal force of friction element i before it is clipped at 0; source, index: as of `capacity`."""
    if source == ACTUATED:
        return m.fr[i].ga * (p[index] - m.fr[i].pret)
    if source == CONSTANT:
        return m.fr[i].gain
    return m.fr[i].gain * input_at(m, s, index, theta)


cdef inline int32_t stays_open(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i) noexcept nogil:
    """1 when element i, which acts both ways, is not pressed, and e says so already: `capacity` would not change it."""
    return not s.pressed[i] and e.cap_f[i] == 0.0 and e.lim_b[i] == 0.0 and e.lim_f[i] == m.fr[i].hold and not s.mode[i] & 1


cdef inline int32_t slips(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when the capacity of element i follows its slip."""
    return s.mode[i] != MODE_STUCK and s.pressed[i] and not m.fr[i].fixed and m.fr[i].mu >= 0


cdef inline double friction_at(const tl_model* m, int32_t i, double fn, double w, int32_t* hint) noexcept nogil:
    """Sliding capacity c_geo mu(w) N of element i with the normal force fn; w: its slip in the sense of its mode, below 0 as at 0."""
    return m.fr[i].cgeo * fn * table1(&m.tab1[m.fr[i].mu], w, hint)


cdef inline double slipping_capacity(const tl_model* m, tl_state* s, double w, double fn, tl_eval* e, int32_t* hint,
                                     int32_t i, int32_t row, int32_t both) noexcept nogil:
    """Sliding capacity of element i, pressed with fn, at the slip w; says whether it is steep there, and acts."""
    cdef int64_t mode = s.mode[i]
    cdef double c = m.fr[i].cgeo * fn
    # beyond the end of the slip (a trial only) mu stays that of standstill
    w = w * mode if mode != MODE_FREE else fabs(w)
    e.steep[i] = 0
    if m.fr[i].dmu * c * m.fr[i].stiff > 1.0 and (w < m.fr[i].w_steep or fabs(s.now.w[row]) < m.fr[i].w_steep):
        if both or (m.fr[i].fwd if mode == MODE_FORWARD else m.fr[i].bwd) == 1:
            e.steep[i] = 1
            s.stiff = 1
    return friction_at(m, i, fn, w, hint + i)


cdef inline void capacity(const tl_model* m, tl_state* s, double w, tl_cvec p, double theta, tl_eval* e, int32_t* hint,
                          int32_t i, int32_t row, int32_t source, int32_t index, int32_t both) noexcept nogil:
    """Normal force -> sliding capacity cgeo*mu(|w|)*fn and static limit peak*cgeo*mu(0)*fn of friction element i.

    row, source, index, both: its row, where the normal force comes from, which input or actuator, whether it acts both ways; constants
    in a precompiled step.
    """
    cdef double c, lim, fn = normal_force(m, s, p, theta, i, source, index)
    e.raw[i] = fn
    if s.pressed[i]:
        # a normal force that vanishes within the trial is followed below 0, so that it is 0 at the event and the polynomials
        # on both sides of the event stay smooth
        lim = m.fr[i].lim * fn
        c = m.fr[i].cap0 * fn if s.mode[i] == MODE_STUCK or m.fr[i].mu < 0 else slipping_capacity(m, s, w, fn, e, hint, i, row, both)
        e.cap_f[i] = c
        e.cap_b[i] = c
        e.lim_f[i] = lim
        e.lim_b[i] = lim
    elif e.cap_f[i] != 0.0 or e.lim_b[i] != 0.0 or e.lim_f[i] != m.fr[i].hold or s.mode[i] & 1:
        e.cap_f[i] = 0.0
        e.cap_b[i] = 0.0
        e.lim_f[i] = m.fr[i].hold
        e.lim_b[i] = 0.0
        e.steep[i] = 0
    if not both:
        if m.fr[i].fwd != CAPPED:
            e.cap_f[i] = 0.0
            e.lim_f[i] = UNLIMITED if m.fr[i].fwd == BLOCKED else 0.0
        if m.fr[i].bwd != CAPPED:
            e.cap_b[i] = 0.0
            e.lim_b[i] = UNLIMITED if m.fr[i].bwd == BLOCKED else 0.0


cdef inline double sliding_torque(const tl_state* s, const tl_eval* e, int32_t i) noexcept nogil:
    """Torque of element i that slides, or is tied: at its static limit, but held at rest by others."""
    if s.ties and s.tied[i]:
        return -e.lim_f[i] if s.mode[i] == MODE_FORWARD else e.lim_b[i]
    return -e.cap_f[i] if s.mode[i] == MODE_FORWARD else e.cap_b[i]


cdef inline void slide(const tl_model* m, const tl_state* s, tl_eval* e, double* F, int32_t i, int32_t row) noexcept nogil:
    """Sliding force of element i onto its row; 0 when it sticks or is free."""
    cdef int64_t mode = s.mode[i]
    cdef double t = 0.0
    if mode & 1:
        t = sliding_torque(s, e, i)
        F[row] += t
    e.tau[i] = t


cdef inline int32_t overloaded(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i) noexcept nogil:
    """1 when the trial takes element i, which sticks, beyond its limit."""
    cdef int32_t bad = (e.tau[i] > e.lim_b[i]) | (e.tau[i] < -e.lim_f[i])
    if m.unresolved and s.four:
        bad |= (s.em.tau[i] > s.em.lim_b[i]) | (s.em.tau[i] < -s.em.lim_f[i])
    return bad


cdef inline int32_t turns_round(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i, int32_t k) noexcept nogil:
    """1 when the slip of element i (row k), which slides, turns round in the trial, or may have in between."""
    cdef double way = <double>s.mode[i], half = way * (s.now.w[k] + 0.5 * s.h * s.wa[k])
    cdef int32_t bad = way * e.w[k] < -TOL_R or (half < 0.0 and way * s.now.w[k] > TOL_R)
    if m.unresolved and s.four:
        bad |= way * s.em.w[k] < -TOL_R
    return bad


cdef inline int32_t disturbed(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i, int32_t k,
                              int32_t source) noexcept nogil:
    """1 when the trial asks for a search because of element i (row k): normal force, static limit, slip."""
    cdef int32_t bad = 0
    if source != CONSTANT:
        bad = (e.raw[i] > 0.0) != (s.pressed[i] != 0)
    if s.mode[i] == MODE_STUCK:
        bad |= overloaded(m, s, e, i)
    elif s.mode[i] != MODE_FREE:
        bad |= turns_round(m, s, e, i, k)
    return bad


cdef inline void ask(tl_state* s, int32_t i, int32_t disturbed) noexcept nogil:
    s.event.asked[s.event.n_asked] = i
    s.event.n_asked += disturbed


cdef inline int32_t presses_otherwise(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t i) noexcept nogil:
    """1 when the normal force of element i appears or vanishes in the trial."""
    return m.fr[i].src != CONSTANT and (e.raw[i] > 0.0) != (s.pressed[i] != 0)
