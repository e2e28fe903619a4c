# Lists of the elements that matter, so that a step with an event does not walk through all of them again and again: who is
# engaged (not free), slides, sticks, and whose capacity is due. A quiet step (quiet.pxi) begins them, list_rest takes them over
# or makes them behind the first trial of a step in which something happens; every decision renews them, until the step ends.
#
# Not where more than speeds, pressures and inputs changes within a step: all elements are asked there.
#
# Needs: stages.pxi (staged), quiet.pxi (find_due, list_due, STILL), decide.pxi (logged_mode), settle.pxi, events.pxi (together),
# other_length.pxi (pattern_now).

cdef inline int32_t may_be_listed(const tl_model* m) noexcept nogil:
    """1 for models in which no more than speeds, pressures and inputs changes within a step."""
    return not staged(m) and TL_NTH(m) + TL_NJO(m) + TL_NBO(m) + TL_NCON(m) + TL_NST(m) == 0


cdef inline void list_rest(const tl_model* m, tl_state* s, int32_t tried, int32_t whole) noexcept nogil:
    """Behind the first trial of a step with an event: who slides, who sticks, and what is due in the trials that follow it
    until the step ends. tried: it was that of a quiet step, whose lists hold; whole: it was over the whole step."""
    cdef int32_t k, movers = 0, simple = s.held and m.act_simple
    s.listed = may_be_listed(m)
    if not s.listed:
        return
    if not (tried and simple):
        for k in range(TL_NACT(m)):
            if not simple or s.now.p[k] != s.cmd[k]:
                s.mover[movers] = k
                movers += 1
        s.n_mover = movers
    elif not s.moving:
        s.n_mover = 0                        # else as move_pressures has found them
    s.to_end = whole and simple
    if s.to_end:
        for k in range(s.n_mover):
            s.ex.p[s.mover[k]] = s.end.p[s.mover[k]]
    if tried and simple:
        return                               # (a command that moves within the step may move a pressure in a part of it only)
    for k in range(TL_NACT(m)):
        s.still[k] = STILL
    for k in range(s.n_mover):
        s.still[s.mover[k]] = 0
    list_modes(m, s)
    find_due(m, s)
    list_due(m, s)


cdef inline void engage_all(const tl_model* m, tl_state* s) noexcept nogil:
    """Any element may be engaged."""
    cdef int32_t i
    s.n_engaged = TL_NF(m)
    for i in range(TL_NF(m)):
        s.engaged[i] = i


cdef inline void list_engaged(const tl_model* m, tl_state* s) noexcept nogil:
    """Of the engaged elements who slides, who sticks, who is not free; those that are carry nothing in any trial."""
    cdef int32_t c, i, sliding = 0, sticking = 0, engaged = 0
    cdef int64_t mode
    cdef tl_vec now = s.now.tau
    cdef tl_vec end = s.end.tau
    cdef tl_vec middle = s.em.tau
    for c in range(s.n_engaged):
        i = s.engaged[c]
        mode = s.mode[i]
        if mode == MODE_FREE:
            now[i] = 0.0
            end[i] = 0.0
            middle[i] = 0.0
            continue
        s.engaged[engaged] = i
        engaged += 1
        if mode == MODE_STUCK:
            s.sticking[sticking] = i
            sticking += 1
        else:
            s.sliding[sliding] = i
            sliding += 1
    s.n_sliding = sliding
    s.n_sticking = sticking
    s.n_engaged = engaged


cdef void list_modes(const tl_model* m, tl_state* s) noexcept nogil:
    """The same of all elements."""
    engage_all(m, s)
    list_engaged(m, s)


cdef void engage(tl_state* s, int32_t i) noexcept nogil:
    """Element i, which was free (and so is not in the list), is engaged as well."""
    cdef int32_t c = s.n_engaged
    while c > 0 and s.engaged[c - 1] > i:
        s.engaged[c] = s.engaged[c - 1]
        c -= 1
    s.engaged[c] = i
    s.n_engaged += 1


cdef inline void begin_decision(const tl_model* m, tl_state* s) noexcept nogil:
    """Modes of the engaged elements before they change."""
    cdef int32_t c, i
    for c in range(s.n_engaged):
        i = s.engaged[c]
        s.before[i] = s.mode[i]
        s.was[i] = logged_mode(s, i)


cdef inline void make_due(tl_state* s, int32_t i) noexcept nogil:
    """The capacity of element i is due in the rest of the step."""
    if not s.due[i]:
        s.due[i] = 1
        s.due_list[s.n_due] = i
        s.n_due += 1


cdef inline void log_decision(const tl_model* m, tl_state* s) noexcept nogil:
    """Modes that a decision has changed into the log; capacities of those whose mode has changed are due as well."""
    cdef int32_t c, i
    for c in range(s.n_engaged):
        i = s.engaged[c]
        if logged_mode(s, i) != s.was[i]:
            log_mode_change(m, s, i)
        if s.mode[i] != s.before[i]:
            make_due(s, i)


cdef inline void end_decision(const tl_model* m, tl_state* s) noexcept nogil:
    """log_decision, and the lists of the rest of the step (list_rest, quiet.pxi) behind it."""
    log_decision(m, s)
    list_engaged(m, s)


cdef inline int32_t only_pressed(const tl_model* m, const tl_state* s, double x) noexcept nogil:
    """1 when nothing happens at the fraction x of the trial but that normal forces of elements that slip appear or vanish.
    All forces go on steadily through that, and who is at rest stays so."""
    cdef int32_t c, i
    if not s.listed or s.ties or s.passing == 0:
        return 0
    for c in range(s.n_asked):
        i = s.asked[c]
        if not s.toggled[i]:
            if together(s.slip_x[i], x):
                return 0
        elif not m.fr[i].both or fabs(s.now.w[TL_FR_ROW(m, i)]) <= TOL_R or s.mode[i] == MODE_STUCK:
            return 0
    return 1


cdef void press(const tl_model* m, tl_state* s) noexcept nogil:
    """These elements slide from here on, or are free."""
    cdef int32_t c, i
    begin_decision(m, s)
    for c in range(s.n_asked):
        i = s.asked[c]
        if s.toggled[i]:
            s.mode[i] = MODE_FREE if not s.pressed[i] else (MODE_FORWARD if s.now.w[TL_FR_ROW(m, i)] > 0.0 else MODE_BACKWARD)
    end_decision(m, s)
    s.pat = pattern_now(m, s)
    forget_history(m, s)
    settle(m, s)
