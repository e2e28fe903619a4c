# The guards of a trial: at which fraction the first event of any kind lies, and what follows from each.
#
#   guard                            first root            what follows
#   slip, limit, normal force        find_event            toggle_pressed, then the decision (decide.pxi)
#   regime of a contact              find_contact          switch_contacts
#   way to a stop                    find_contact          reach_ends: an impact
#   speed or torque of teeth         find_contact          reach_ends: an impact, or they let go
#   branch of a loss                 find_branch           switch_branches
#   regime of an idle controller     find_idle             choose_governors, at the start of each trial
#   piece of a ratio over the speed  find_ratio            ratios_now
#   piece of a table over the speed  find_look_up          hold_look_ups, at the start of each trial
#
# Breakpoints that are known before the trial (pressures, ratios over an input) divide the step instead (next_break, advance.pxi).
# A new kind of event is a function that finds it and one for what follows, and a line in each function below.
#
# Equations: none: section 5, the table of guards.

cdef inline double first_event(const tl_model* m, tl_state* s, double left) noexcept nogil:
    """Fraction of the trial, up to `left`, at which the first event of any kind lies, or NO_EVENT."""
    cdef double x = find_event(m, s, left), y
    if TL_NCON(m) + TL_NST(m) > 0:
        x = sooner(find_contact(m, s, left), x, left)
    if TL_NLS(m) > 0:
        x = sooner(find_branch(m, s, left), x, left)
    if TL_NENG(m) > 0:
        x = sooner(find_idle(m, s, left), x, left)
    if moving(m):
        x = sooner(find_ratio(m, s, left), x, left)
    if m.order == 4:
        y = find_look_up(m, s, left)
        # pieces change alone: forces go on as they are, and so does who sticks
        s.look.alone = happens(y) and x > y + TOGETHER and not moving(m)
        x = sooner(y, x, left)
    return x


cdef inline void switch_over(const tl_model* m, tl_state* s, double x, double theta) noexcept nogil:
    """What the event at x of the trial changes but for modes: normal forces, regimes, ends, branches, pieces, capacities. (The
    interpolated capacities served the energy balance; what follows needs those of this slip and this normal force.)"""
    cdef int32_t i
    toggle_pressed(m, s)
    s.theta = theta
    if TL_NCON(m) > 0:
        switch_contacts(m, s, x)
    if TL_NST(m) > 0:
        reach_ends(m, s, x)
    if TL_NLS(m) > 0:
        switch_branches(m, s, x)
    if moving(m):
        ratios_now(m, s, theta)
        take_ratios(m, s)
    for i in range(TL_NJO(m)):
        joint_now(m, s, i, theta)            # by the law: two points have what makes their means right
    each_capacity(m, s, s.now.w, s.now.p, theta, s.now, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))
