# One step: trial with the modes held, events located on its collocation polynomial, decisions by the boxed problem.
#
# The step is tried over the full h and truncated on its polynomial: one set of matrices, whatever the length between two events.
# shortened.pxi has what is done instead where a spring is too stiff for that.
#
# Equations: none: section 13.

cdef enum:
    MAX_SPLITS = 12        # events handled one by one in a step; 6 was the worst seen in a full-throttle run


#: of h: what a shorter trial says about a whole one is rounding
cdef double SHORT = 1e-2
#: of the energy that joint shafts give in a trial of three points: half its length has helped when less is left
cdef double HALF_HELPS = 0.25
#: of h: so little left of a step is the rounding of the fractions at which it was divided; nothing moves in it
cdef double ALL_DONE = 1e-12
#: of h: parts of a step that add up to a whole one but for this are a whole one. A caller that takes them as differences of
#: times knows each to 1e-16 of the time: 1e-7 of a step after 1e9 steps (11 days of 1 ms)
cdef double PART_ROUNDING = 1e-6


cdef void lower_order(const tl_model* m, tl_state* s) noexcept nogil:
    """Trials of two points for the rest of the step: their works have the sign they should, resolved or not."""
    cdef int32_t i
    s.four = 0
    s.hist[0] = 0
    for i in range(TL_N(m)):
        s.s2[i] = 0.0
        s.hs2[i] = 0.0
    whole_length(m, s)


cdef struct tl_progress:
    # of a step in which something happens, or may; fractions of h
    double done            # how far it has come
    double end             # where the present part ends: at the next breakpoint, where joints have turned as far as a trial
                           # carries, or with the step
    double last            # where the step ends
    int32_t splits         # events so far
    int32_t jumped         # 1: the step begins where something has jumped
    int32_t own_length     # 1: the rest in trials of its length, not truncated longer ones
    int32_t parts          # trials made shorter so far since a joint turned too far in them
    double given           # energy that joint shafts have given in the last trial made again, of that turned over; else 0


cdef double next_break(const tl_model* m, const tl_state* s, double done, double last) noexcept nogil:
    """Where in the step a pressure next switches, or the argument of a ratio over an input passes a breakpoint; `last` if nowhere before
    it."""
    cdef double x = next_ratio_break(m, s, done, last) if moving(m) else last
    if TL_NACT(m) > 0 and s.next_switch < x - BREAKS_APART:
        x = s.next_switch
    return x


cdef inline void next_part(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """Where the part that begins now ends."""
    cdef double left, reach, parts
    k.end = next_break(m, s, k.done, k.last)
    if TL_NJO(m) == 0 or k.parts >= JOINT_PARTS:
        return
    s.theta = k.done
    left = k.end - k.done
    reach = joint_reach(m, s)
    if reach < left:
        # equal parts, as many as the joints ask for now
        parts = ceil(left / reach)
        k.end = k.done + left / (parts if parts < JOINT_PARTS else JOINT_PARTS)
        k.parts += 1
        s.counters[TL_C_PARTS] += 1


cdef void pass_break(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """Goes on behind a breakpoint: accelerations may have jumped."""
    k.done = k.end
    s.part = 1.0
    s.h = m.h
    s.theta = k.done
    whole_length(m, s)
    if TL_NACT(m) > 0 and s.next_switch <= k.done + BREAKS_APART:
        begin_pressures(m, s, k.done, k.last)
    if moving(m):
        meet_ratios(m, s, k.done)
    if TL_NTH(m) > 0 and k.done > s.T_theta:
        heat_step(m, s, k.done)
    forget_history(m, s)
    if TL_NJO(m) > 0:
        s.hist[0] = 0                        # it is that of a part of another length
    meet_instant(m, s, k.done, 0)
    if TL_NTH(m) > 0:
        heat_rates(m, s, k.done, 0.0)


cdef void end_part(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """From the end of a part, which is not that of the step, to the next part."""
    if k.end >= next_break(m, s, k.done, k.last) - BREAKS_APART:
        pass_break(m, s, k)
    else:
        k.done = k.end
        if TL_NJO(m) > 0 and not s.four:
            restore_law(m, s, k.done)
    next_part(m, s, k)


cdef inline int32_t halve(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """1 when the trial is made again with half the length: a joint turns too far in it."""
    if TL_NJO(m) == 0 or k.parts >= JOINT_PARTS:
        return 0
    k.end = k.done + 0.5 * (k.end - k.done)
    k.parts += 1
    s.counters[TL_C_PARTS] += 1
    if s.hist[0] == HISTORY_HOLDS:
        history_of_part(m, s, s.now.hs1, s.hs2, 0.5)
    return 1


cdef int32_t joints_refuse(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """1 when the trial is made again: a joint turns too far in it, its law was not solved, or, with three points, joint shafts
    give energy: in half the length as long as that helps, then with two points."""
    cdef double given = 0.0
    cdef int32_t beyond = s.unsolved or turned_beyond(m, s), helps
    if s.four and not beyond:
        given = joints_give(m, s)
    if not beyond and given <= JOINT_BALANCE:
        k.given = 0.0
        return 0
    s.counters[TL_C_REFUSED] += not beyond
    helps = beyond or k.given == 0.0 or given < HALF_HELPS * k.given
    k.given = given
    if s.four and (not helps or k.parts >= JOINT_PARTS_FOUR):
        lower_order(m, s)
        next_part(m, s, k)
        return 1
    return halve(m, s, k)


cdef inline int32_t pass_part(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """From the end of a part without an event to the next one; 1: the step is done."""
    cdef double length = k.end - k.done
    if k.end == k.last:
        return 1
    end_part(m, s, k)
    if TL_NJO(m) > 0 and s.hist[0] == HISTORY_HOLDS:
        history_of_part(m, s, s.now.hs1, s.hs2, (k.end - k.done) / length)
    return 0


cdef inline void begin_progress(const tl_model* m, tl_state* s, tl_progress* k, double dt) noexcept nogil:
    k.done = 0.0
    k.last = 1.0 if dt == m.h else dt / m.h
    k.splits = s.event.decided = 0
    k.jumped = s.hist[0] != HISTORY_HOLDS
    k.parts = 0
    k.given = 0.0
    # no ratio is asked for beyond its breakpoints, and the energy of joint shafts closes over whole trials
    k.own_length = moving(m) or TL_NJO(m) > 0
    if TL_NVG(m) > 0 and not moving(m):
        take_ratios(m, s)
    next_part(m, s, k)
    if TL_NJO(m) > 0 and s.hist[0] == HISTORY_HOLDS and k.end < 1.0:
        history_of_part(m, s, s.now.hs1, s.hs2, k.end)


cdef inline void make_trial(const tl_model* m, tl_state* s, const tl_progress* k) noexcept nogil:
    """The next trial, over the rest of the part or a whole step."""
    s.theta = k.done
    if (m.unresolved or k.own_length) and k.end - k.done < 1.0:
        shorten(m, s, k.end - k.done)
    if s.ties and some_tie_slides(m, s):
        end_ties(m, s)
    trial(m, s, k.done)


cdef inline int32_t is_finite(const tl_model* m, const double* u) noexcept nogil:
    """0 with inf or NaN somewhere."""
    cdef int32_t i
    cdef double chk = 0.0
    for i in range(TL_N(m)):
        chk += u[i]
    return not chk - chk != 0.0


cdef inline int32_t needs_length(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """1 when a trial truncated at its event x would make energy: it is made again with that length."""
    return s.n_eased > 0 or TL_NLIN(m) + TL_NCON(m) > 0 and (m.unresolved or TL_NJO(m) > 0 or truncation_makes_energy(m, s, x) or (
        TL_NST(m) > 0 and beside_polynomial(m, s, x)))


cdef inline double take_until(const tl_model* m, tl_state* s, tl_progress* k, double x, double left) noexcept nogil:
    """Makes the state at the event x of the trial the present one, or where there is none that at `left`, its end. The fraction of
    the trial that was taken, REFUSED when it would have given energy."""
    if happens(x) and needs_length(m, s, x):
        k.own_length = 1                     # the rest of the step in trials of its length, too
        return accept_shortened(m, s, k.done, x)
    if happens(x):
        left = x
    return REFUSED if accept(m, s, k.done, left, happens(x)) else left


cdef void end_in_one(const tl_model* m, tl_state* s, const tl_progress* k) noexcept nogil:
    """The rest of the step in one piece. With joint shafts nothing moves until its end: what a step of one piece would make of
    their twist is not bounded, and a driveline that stands still neither gains nor loses energy."""
    s.counters[TL_C_STEEP] += s.unsolved
    if TL_NJO(m) == 0:
        impulse_step(m, s, k.done, k.last - k.done)
        meet_instant(m, s, s.theta, 1)
        return
    s.counters[TL_C_FALLBACKS] += 1
    s.part = 1.0
    s.h = m.h
    s.theta = k.last
    s.att_theta = k.last
    forget_history(m, s)
    meet_instant(m, s, s.theta, 1)


cdef inline int32_t give_up(const tl_model* m, tl_state* s, tl_progress* k) noexcept nogil:
    """After a trial that was refused: half the length beside joints, two points instead of three, or, and then 1, the rest of
    the step in one piece."""
    s.counters[TL_C_REFUSED] += 1
    if s.unsolved and halve(m, s, k):
        return 0
    if s.four and TL_NLS(m) == 0:
        lower_order(m, s)
        return 0
    if halve(m, s, k):
        return 0
    end_in_one(m, s, k)
    return 1


cdef inline int32_t meet_event(const tl_model* m, tl_state* s, tl_progress* k, double x, double y) noexcept nogil:
    """The event at x of the trial, of which y was taken, and what follows from it; 1: the step is done."""
    s.counters[TL_C_EVENTS] += 1
    k.splits += 1
    k.done += y * s.part
    if not s.look.alone:
        switch_over(m, s, x, k.done)
    if k.splits > MAX_SPLITS:
        end_in_one(m, s, k)
        return 1
    s.event.decided = not s.look.alone
    if not s.look.alone:
        decide(m, s, x, 1)
    else:
        if k.own_length and not m.unresolved and y * s.part > SHORT:
            history_of_part(m, s, s.now.hs1, s.hs2, (k.end - k.done) / (y * s.part))
        elif k.own_length or m.unresolved:
            forget_history(m, s)             # it is that of a shorter trial
        history_jumps(s)
    if TL_NTH(m) > 0:
        if k.done > s.T_theta:
            heat_step(m, s, k.done)
        heat_rates(m, s, k.done, 0.0)
    s.part = 1.0
    s.h = m.h
    if k.end - k.done < ALL_DONE:
        if k.end == k.last:
            return 1
        end_part(m, s, k)
    elif TL_NJO(m) > 0:
        next_part(m, s, k)
    return 0


cdef inline void end_progress(const tl_model* m, tl_state* s, const tl_progress* k, double dt) noexcept nogil:
    """What is left to do at the end of the step."""
    if s.part != 1.0 and (not m.unresolved or TL_NJO(m) > 0) and s.hist[0]:
        if s.part > SHORT:
            history_of_part(m, s, s.now.hs1, s.hs2, 1.0 / s.part)
            if s.four and TL_NJO(m) == 0:
                history_jumps(s)                 # a longer trial is not foreseen as well as one of this length
        else:
            forget_history(m, s)
    elif s.part != 1.0 and m.linear_resolved and TL_NJO(m) == 0:
        forget_history(m, s)                 # it is that of a shorter trial
    if s.part != 1.0:
        whole_length(m, s)
    if moving(m):
        meet_ratios(m, s, k.last)
    if (TL_NJO(m) > 0 or (TL_NCON(m) > 0 and m.ncurved > 0) or (s.n_eased > 0 and staged(m))) and not s.four:
        restore_law(m, s, k.last)
    elif (k.jumped or k.done > 0.0 or dt != m.h) and s.four and TL_NJO(m) + TL_NED(m) == 0 and m.linear_resolved and not foreseen(m, s.now.u, s.taken, FORESEEN):
        # the forces that are read are those at the speeds that were found, not at those that were expected
        s.theta = k.last
        now(m, s, k.last)
        settle(m, s)
    if TL_ND(m) + TL_NVG(m) > 0 and not moving(m):
        hold_driven(m, s, k.last)
    if TL_NPS(m) > 0:
        poses_end(m, s, k.last)
    if TL_NTH(m) > 0 and k.last > s.T_theta:
        heat_step(m, s, k.last)
    if k.splits > s.counters[TL_C_SPLITS_MAX]:
        s.counters[TL_C_SPLITS_MAX] = k.splits
    if dt == m.h:
        s.step_no[0] += 1
        s.quiet = k.splits == 0 and may_be_quiet(m)
    else:
        # a part of a step, between events offline
        s.fraction[0] += k.last
        if s.fraction[0] > 1.0 - PART_ROUNDING:
            s.step_no[0] += 1
            s.fraction[0] -= 1.0
            if s.fraction[0] < PART_ROUNDING:
                s.fraction[0] = 0.0


cdef int busy_step(const tl_model* m, tl_state* s, double dt, int32_t tried) noexcept nogil:
    """The step in which something happens, or may; tried: its first trial has been made (quiet.pxi). 0, or 1 when the state is not
    finite any more."""
    cdef double x, y, left
    cdef tl_progress k
    begin_progress(m, s, &k, dt)
    while True:
        if tried:
            complete_trial(m, s)
        else:
            make_trial(m, s, &k)
        tried = 0
        if TL_NJO(m) > 0 and joints_refuse(m, s, &k):
            continue
        if not is_finite(m, s.end.u):
            s.status = 1
            return 1
        left = (k.end - k.done) / s.part
        left = 1.0 if left > 1.0 else left
        ask_all(m, s, s.end)
        x = first_event(m, s, left)
        if happens(x):
            find_toggled(m, s, x)
        elif left < 1.0 and TL_NLIN(m) + TL_NCON(m) > 0 and not k.own_length and truncation_makes_energy(m, s, left):
            k.own_length = 1                 # the rest of the step in a trial of its length, not in a truncated longer one
            history_of_part(m, s, s.end.hs1, s.s2, left)
            continue
        y = x if happens(x) else left
        if y > 0.0:
            y = take_until(m, s, &k, x, left)
        if y == REFUSED:
            if give_up(m, s, &k):
                break
        elif meet_event(m, s, &k, x, y) if happens(x) else pass_part(m, s, &k):
            break
    end_progress(m, s, &k, dt)
    return 0


cdef int advance(const tl_model* m, tl_state* s, double dt) noexcept nogil:
    """Advance by dt <= h with the inputs s.inp (values at 0, h/2 and h of the branch that holds now); dt = 0 finds
    accelerations, modes and torques of the present instant only.

    Returns 0, 1 when the state is not finite any more, 2 when scratch memory has run out. Real-time: yes; work is bounded by MAX_SPLITS.
    """
    cdef int32_t tried = 0, moved = 0, hold = 0
    if s.step_no[0] % RIGID_EVERY == 0:
        turn_back(m, s)
    s.theta = 0.0
    s.T_theta = 0.0
    s.att_theta = 0.0
    s.part = 1.0
    s.h = m.h
    s.four = m.order == 4 and not relaxes_at_once(m)
    if start_of_step(m, s, 1.0 if dt == m.h else dt / m.h):
        s.status = 1
        return 1
    if s.quiet and (TL_NACT(m) == 0 or (s.held and s.next_switch >= 1.0)) and dt == m.h:
        tried = make_quiet_trial(m, s, &moved, &hold)
        if tried and take_quiet_trial(m, s, moved, hold):
            return 0
    s.quiet = 0
    if dt == 0.0:
        return 0
    if busy_step(m, s, dt, tried):
        return s.status
    if s.arena.most > s.arena.size:
        s.status = 2                         # what was taken beyond it was the memory of others: nothing of this step holds
    return s.status
