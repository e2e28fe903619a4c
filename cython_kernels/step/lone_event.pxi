# The usual event: one element alone comes to rest or gives way, and it is plain what follows: it sticks, or slides, and all others
# go on as they did. Its mode is set, and the accelerations and torques of the instant, which are needed anyway, say whether that
# was right: where all who stick stay within their limits it is the answer of the boxed problem, which has one. Where the answer
# is not plain (limits reached by rounding, others at rest at their limit) the boxed problem is solved: decide.pxi.
#
# Needs: lists.pxi, settle.pxi, events.pxi (together), other_length.pxi (pattern_listed), box.pxi (add_along). Only where trials are
# listed (may_be_listed).

#: of a torque, and of its limit: nearer to the limit it is not plain that it holds
cdef double PLAIN = 1e-6
#: of the slip that an element alone would give to a torque: less is rounding, others hold it
cdef double HELD = 1e-6


cdef enum:
    LEAVES = 2             # of s.tied, until it is known to hold: tied so far
    #: instead of an element
    INSIDE = -1
    UNCLEAR = -2


cdef inline void find_lone(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """The element to which alone something happens at the fraction x of the trial into s.lone (one of them where several come to
    rest; -1: more happens, or a normal force appears or vanishes); at which limit a sticking one gives way into s.lone_side (1: lim_b, -1: lim_f), and by how much the
    trial passes it into s.lone_excess."""
    cdef int32_t c, i, found = -1, several = 0
    for c in range(s.n_asked):
        i = s.asked[c]
        if s.toggled[i]:
            several = 1
        elif together(s.slip_x[i], x):
            several |= found >= 0 and (s.mode[i] == MODE_STUCK or s.mode[found] == MODE_STUCK)
            found = i
    s.lone = -1 if several or not s.listed else found
    if s.lone >= 0:
        s.lone_side = 1 if s.end.tau[found] > s.end.lim_b[found] else -1
        s.lone_excess = fabs(s.end.tau[found]) - (s.end.lim_b[found] if s.lone_side > 0 else s.end.lim_f[found])


cdef inline double respond(const tl_model* m, tl_state* s, int32_t i) noexcept nogil:
    """Accelerations for a torque of 1 at element i, those at rest held, into s.answer: P0 row^T; its own slip acceleration."""
    cdef int32_t k, q, row = TL_FR_ROW(m, i), n = TL_N(m)
    cdef tl_vec found = s.answer
    cdef tl_cvec P
    for k in range(n):
        found[k] = 0.0
    for q in range(m.row_ptr[row], m.row_ptr[row + 1]):
        P = s.pat.P0 + m.row_idx[q] * n
        for k in range(n):
            found[k] += m.row_val[q] * P[k]
    return row_dot(m, row, s.answer)


cdef inline void rest_slip(const tl_model* m, tl_state* s, int32_t i) noexcept nogil:
    """The slip of element i to zero while what sticks holds, where trials are listed: by an impulse along its row, whose loss of
    energy is its heat (rest_slips, shortened.pxi, for one)."""
    cdef int32_t k, row = TL_FR_ROW(m, i)
    cdef double w = row_dot(m, row, s.now.u), W
    s.pat = pattern_listed(m, s)
    W = respond(m, s, i)
    if not W > 0.0:
        return
    for k in range(TL_N(m)):
        s.now.u[k] -= w / W * s.answer[k]
    gather(m, s.now.u, s.now.w)
    s.e_fr[i] += 0.5 * w * w / W


cdef inline int32_t falls_back(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when element i carries less when it slides than at rest."""
    return m.fr[i].peak != 1.0 or m.fr[i].hold > 0.0


cdef inline int32_t goes_with(const tl_model* m, const tl_state* s, int32_t j, int32_t i) noexcept nogil:
    """1 when element j, at its limit and held at rest by others, plainly slides its way once i does. After respond of i."""
    cdef double y = s.mode[i] * s.mode[j] * row_dot(m, TL_FR_ROW(m, j), s.answer)
    return y > HELD * s.W0[j * TL_NF(m) + j] and not falls_back(m, s, j)


cdef void list_slide(tl_state* s, int32_t i, int32_t slides) noexcept nogil:
    """Element i from the list of those that stick to that of those that slide, or back; both in order."""
    cdef int32_t c
    cdef int32_t* out = s.sticking if slides else s.sliding
    cdef int32_t* into = s.sliding if slides else s.sticking
    cdef int32_t n_out = s.n_sticking if slides else s.n_sliding
    cdef int32_t n_into = s.n_sliding if slides else s.n_sticking
    c = 0
    while out[c] != i:
        c += 1
    while c + 1 < n_out:
        out[c] = out[c + 1]
        c += 1
    c = n_into
    while c > 0 and into[c - 1] > i:
        into[c] = into[c - 1]
        c -= 1
    into[c] = i
    s.n_sliding += 1 if slides else -1
    s.n_sticking += -1 if slides else 1


cdef inline int32_t held_by_others(const tl_model* m, tl_state* s, int32_t i) noexcept nogil:
    """1 when those that stick leave element i no slip (s.pat: without it)."""
    return respond(m, s, i) <= HELD * s.W0[i * TL_NF(m) + i]


cdef enum:
    RESTS = 0              # the element sticks
    SLIDES = 1             # it slides, and those tied to it do, too
    TIED = 2               # others hold it at its limit
    SHARED = 3             # others hold it, or would not go with it, and some of these are at their limit: all share the torque


cdef inline int32_t gives_way(const tl_model* m, tl_state* s, int32_t i) noexcept nogil:
    """What becomes of element i, which is at its limit. Sets modes, ties, lists and s.pat; s.tied is LEAVES of those that slide
    with it. (SHARED: nothing of that.)"""
    cdef int32_t c, j, what = SLIDES
    s.mode[i] = -s.lone_side
    list_slide(s, i, 1)
    s.pat = pattern_listed(m, s)
    if held_by_others(m, s, i):
        what = SHARED if s.ties else TIED
    elif s.ties:
        for c in range(s.n_sliding):
            j = s.sliding[c]
            if s.tied[j] and not goes_with(m, s, j, i):
                what = SHARED
    if what == SHARED:
        s.mode[i] = MODE_STUCK
        list_slide(s, i, 0)
    elif what == TIED:
        s.tied[i] = 1
        s.ties = 1
    elif s.ties:
        for c in range(s.n_sliding):
            s.tied[s.sliding[c]] *= LEAVES
        s.ties = 0
    return what


cdef int32_t beyond(const tl_model* m, const tl_state* s) noexcept nogil:
    """The one element of those that stick that is beyond its limit, INSIDE if there is none, UNCLEAR: several, or who knows."""
    cdef int32_t c, i, found = INSIDE
    cdef double t, tol, left
    for c in range(s.n_sticking):
        i = s.sticking[c]
        t = s.now.tau[i]
        tol = PLAIN * (1.0 + fabs(t))
        left = s.now.lim_b[i] - t
        if s.now.lim_f[i] + t < left:
            left = s.now.lim_f[i] + t
        if left < tol:
            found = i if left < -tol and found == INSIDE else UNCLEAR
    return found


cdef inline int32_t sets_off(const tl_model* m, const tl_state* s, int32_t i) noexcept nogil:
    """1 when element i, which has given way, plainly slides its way. One that carries no less then is at rest still, and its
    torque would pass its limit: it does."""
    return not falls_back(m, s, i) or s.mode[i] * row_dot(m, TL_FR_ROW(m, i), s.now.a) > PLAIN * (
        fabs(s.now.tau[i]) * s.W0[i * TL_NF(m) + i])


cdef inline void keep_instant(const tl_model* m, tl_state* s) noexcept nogil:
    """What settle changes, in case it is not plain."""
    memcpy(s.kept_a, s.now.a, TL_N(m) * sizeof(double))
    memcpy(s.kept_tau, s.now.tau, TL_NF(m) * sizeof(double))


cdef inline int32_t take_instant_back(const tl_model* m, tl_state* s) noexcept nogil:
    memcpy(s.now.a, s.kept_a, TL_N(m) * sizeof(double))
    memcpy(s.now.tau, s.kept_tau, TL_NF(m) * sizeof(double))
    return 0


cdef inline void foresee(const tl_model* m, tl_state* s, const double* slope, double length, double left) noexcept nogil:
    """How the accelerations go on after s.lone has given way, into s.now.hs1, over a step: as in the trial, of `length` s, in which
    they changed by `slope`, but for the torque beyond its limit that the element would have had there, `left` s after now. Its
    capacity rises with the slip that it gets. After respond of it."""
    cdef int32_t i, lone = s.lone
    cdef double rate = m.h / length, f = -s.lone_side * s.lone_excess * m.h / left
    if m.fr[lone].dmu > 0.0:
        f /= 1.0 + 0.5 * left * row_dot(m, TL_FR_ROW(m, lone), s.answer) * m.fr[lone].dmu * m.fr[lone].cgeo * s.now.raw[lone]
    for i in range(TL_N(m)):
        s.now.hs1[i] = rate * slope[i] + f * s.answer[i]


cdef inline int32_t alone(const tl_model* m, tl_state* s, int32_t i, int32_t what) noexcept nogil:
    """Element i sticks, slides or is tied as `what` says, and no other begins to or ends: 0 where it does not hold."""
    cdef int32_t c, j, rests = what == RESTS
    cdef int64_t old = s.mode[i] if rests else 0
    if rests:
        s.mode[i] = MODE_STUCK
        list_slide(s, i, 0)
        s.pat = pattern_listed(m, s)
    keep_instant(m, s)
    remove_slips(m, s)
    settle_forces(m, s)
    if beyond(m, s) != INSIDE or (what == SLIDES and not sets_off(m, s, i)):
        list_slide(s, i, rests)
        s.mode[i] = old
        s.tied[i] = 0
        s.ties = 0
        for c in range(s.n_sliding):
            j = s.sliding[c]
            s.tied[j] = s.tied[j] == LEAVES
            s.ties |= s.tied[j]
        return take_instant_back(m, s)
    if rests:
        log_mode_change(m, s, i)
    elif what == SLIDES:
        for c in range(s.n_sliding):
            j = s.sliding[c]
            if j == i or s.tied[j]:
                s.tied[j] = 0
                log_mode_change(m, s, j)
    make_due(s, i)
    return 1


cdef inline int32_t note_change(tl_state* s, int32_t i, int32_t n) noexcept nogil:
    """Element i into s.asked (n so far, in order), with its mode; how many there are then."""
    cdef int32_t c
    for c in range(n):
        if s.asked[c] == i:
            return n
    c = n
    while c > 0 and s.asked[c - 1] > i:
        s.asked[c] = s.asked[c - 1]
        c -= 1
    s.asked[c] = i
    s.before[i] = s.mode[i]
    s.was[i] = logged_mode(s, i)
    return n + 1


cdef int32_t all_hold(const tl_model* m, tl_state* s) noexcept nogil:
    """All elements at rest stick; one that would be beyond its limit then is tied, where the others hold it: with one limit
    reached the split with the least norm is found. 0 where it does not hold."""
    cdef int32_t c, i, over, changed = 0, ties = s.ties
    cdef double t
    for c in range(s.n_sliding):
        i = s.sliding[c]
        if fabs(s.now.w[TL_FR_ROW(m, i)]) <= TOL_R:
            changed = note_change(s, i, changed)
            s.mode[i] = MODE_STUCK
            s.tied[i] = 0
    s.ties = 0
    keep_instant(m, s)
    list_engaged(m, s)
    s.pat = pattern_listed(m, s)
    settle(m, s)
    over = beyond(m, s)
    if over >= 0:
        t = s.now.tau[over]
        changed = note_change(s, over, changed)
        s.mode[over] = -1 if t > 0.0 else 1
        list_slide(s, over, 1)
        s.pat = pattern_listed(m, s)
        if held_by_others(m, s, over):
            # at rest as before: the others take over what it cannot carry
            s.tied[over] = 1
            s.ties = 1
            s.now.tau[over] = s.now.lim_b[over] if t > 0.0 else -s.now.lim_f[over]
            add_along(m, TL_FR_ROW(m, over), s.now.tau[over], s.g)
            place_instant(m, s)
            over = beyond(m, s)
    for c in range(changed):
        i = s.asked[c]
        if over == INSIDE:
            if logged_mode(s, i) != s.was[i]:
                log_mode_change(m, s, i)
            if s.mode[i] != s.before[i]:
                make_due(s, i)
        else:
            s.mode[i] = s.before[i]
            s.tied[i] = s.was[i] != s.before[i]  # as it was logged
    if over == INSIDE:
        return 1
    s.ties = ties
    list_engaged(m, s)
    return take_instant_back(m, s)


cdef inline int32_t plain_event(const tl_model* m, tl_state* s, double x, int32_t cut) noexcept nogil:
    """What happens to s.lone at the fraction x of the trial (which was cut there, or made anew with that length), and the
    accelerations and torques that follow; 0 where it is not plain, and nothing is done."""
    cdef int32_t c, j, i = s.lone, what = RESTS, several = 0
    if i < 0 or s.n_engaged != s.n_sliding + s.n_sticking:
        return 0
    if s.mode[i] != MODE_STUCK and fabs(s.now.w[TL_FR_ROW(m, i)]) > TOL_R:
        return 0
    for c in range(s.n_sliding):
        j = s.sliding[c]
        if fabs(s.now.w[TL_FR_ROW(m, j)]) <= TOL_R:
            several |= j != i
            if s.mode[i] == MODE_STUCK and not s.tied[j]:
                return 0
        elif s.tied[j] or s.mode[j] * s.now.w[TL_FR_ROW(m, j)] < 0.0:
            return 0                         # (tied until it slid in this trial)
    if s.mode[i] == MODE_STUCK:
        what = gives_way(m, s, i)
        several = what == SHARED
    elif cut and fabs(s.now.w[TL_FR_ROW(m, i)]) > REMOVED:
        rest_slip(m, s, i)
    if not (all_hold(m, s) if several else alone(m, s, i, what)):
        return 0
    s.counters[TL_C_DECISIONS] += 1
    memcpy(s.v1, s.end.hs1 if cut else s.now.hs1, TL_N(m) * sizeof(double))
    forget_history(m, s)
    if what == SLIDES and not (s.four or m.stiff_cut) and x < 1.0 - SHORT:
        foresee(m, s, s.v1, s.h if cut else x * s.h, (1.0 - x) * s.h)
    return 1
