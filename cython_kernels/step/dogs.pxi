# Dog clutches: teeth that engage where the speeds are equal, or as near to each other as `sync` says, are rigid then, and let go once
# they are not asked for any more and carry no more than `release`. Numbered with the stops; at_end is ENGAGED, or 0.
#
# Equations: none: section 5, the table of guards.

cdef inline int32_t is_dog(const tl_model* m, int32_t j) noexcept nogil:
    """1 when stop j is a dog clutch."""
    return m.st[j].input >= 0


cdef inline int32_t asked_for(const tl_model* m, const tl_state* s, int32_t j) noexcept nogil:
    """1 when the teeth of dog clutch j are asked for where the trial begins."""
    return input_at(m, s, m.st[j].input, s.theta) >= 0.5


cdef inline double teeth_margin(const tl_model* m, const tl_state* s, int32_t j, int32_t which, double w) noexcept nogil:
    """What must stay >= 0 for the teeth of dog clutch j to stay apart at the slip w, which falls (0) or rises (1) to their speed."""
    cdef int32_t rises = row_dot(m, m.fr[m.st[j].fr].row, s.now.u) < 0.0
    if s.at_end[j] == ENGAGED or which != rises or not asked_for(m, s, j):
        return 1.0
    return (-w if rises else w) - m.st[j].sync


cdef inline double teeth_left(const tl_model* m, const tl_state* s, const tl_eval* e, int32_t j) noexcept nogil:
    """What the torque of engaged teeth has left to the one at which they let go, at the instant e."""
    cdef int32_t i = m.st[j].fr
    if asked_for(m, s, j):
        return 1.0
    return (e.tau[i] if s.now.tau[i] > 0.0 else -e.tau[i]) - m.st[j].release


cdef inline double teeth_size(const tl_model* m, const tl_state* s, int32_t j) noexcept nogil:
    """Size of what a margin of dog clutch j compares."""
    cdef int32_t i = m.st[j].fr
    cdef double size = m.st[j].sync + fabs(row_dot(m, m.fr[i].row, s.now.u))
    if s.at_end[j] == ENGAGED:
        size = m.st[j].release + fabs(s.now.tau[i])
    return size if size > 0.0 else 1.0


cdef inline double teeth_part(const tl_model* m, tl_state* s, int32_t j) noexcept nogil:
    """Fraction of the trial at which the torque of engaged teeth falls to the one at which they let go, or NO_EVENT."""
    cdef double l0 = teeth_left(m, s, s.now, j), l1 = teeth_left(m, s, s.end, j)
    if l1 >= 0.0 or asked_for(m, s, j):
        return NO_EVENT
    return values_fall(l0, teeth_left(m, s, s.em, j), l1, s.four, 0.0)


cdef int32_t meet_dogs(const tl_model* m, tl_state* s) noexcept nogil:
    """At an instant behind a jump: teeth that are asked for and turn alike engage, others that carry little let go. 1 when some do."""
    cdef int32_t j, found = 0
    cdef int64_t held
    for j in range(TL_NST(m)):
        if not is_dog(m, j):
            continue
        held = s.at_end[j]
        if held == 0 and asked_for(m, s, j) and fabs(row_dot(m, m.fr[m.st[j].fr].row, s.now.u)) <= larger(m.st[j].sync, TOL_R):
            s.at_end[j] = ENGAGED
        elif held == ENGAGED and not asked_for(m, s, j) and fabs(s.now.tau[m.st[j].fr]) <= m.st[j].release:
            s.at_end[j] = 0
        if s.at_end[j] != held:
            stop_limits(m, s, j)
            found = 1
    return found
