# One step: trial with the modes held, events located on its collocation polynomial, decisions by the boxed problem.
#
#   M u' = f(u, t) - D u - K q + B^T tau        B_s u = 0 for the elements that stick
#
# Lobatto IIIA collocation with two points (order 2, the trapezoidal rule) or three (order 4): linear part (D, K) implicit,
# nonlinear torques at predicted speeds. Torques at both ends of the step are known, so sticking elements are checked where
# they matter, and the speed of every sliding element is a polynomial on the step, so an event is a root of it. The step is
# always tried over the full h and cut on its polynomial: one set of matrices, whatever the length between two events
# (shortened.pxi: what is done instead where a spring is too stiff for that).
#
# contacts.pxi: springs with play; losses.pxi: torques that depend on reactions; driven.pxi: prescribed motion, variable
# ratios; stages.pxi: the linear problem with these; thermal.pxi: temperatures.

cdef enum:
    MAX_SPLITS = 12        # events handled one by one in a step; 6 was the worst seen in a full-throttle run


#: of h: what a shorter trial says about a whole one is rounding
cdef double SHORT = 1e-2
#: instead of the fraction of a trial: it was not taken
cdef double REFUSED = -1.0


include "contacts.pxi"
include "relaxing.pxi"
include "driven.pxi"
include "ratios.pxi"
include "losses.pxi"
include "stages.pxi"
include "other_length.pxi"
include "trial.pxi"
include "lists.pxi"
include "events.pxi"
include "accept.pxi"
include "thermal.pxi"
include "box.pxi"
include "impulse.pxi"
include "decide.pxi"
include "settle.pxi"
include "gaps.pxi"
include "lone_event.pxi"
include "impact.pxi"
include "likely_length.pxi"
include "shortened.pxi"


cdef void now(const tl_model* m, tl_state* s, double theta) noexcept nogil:
    """Forces of the present instant into the state (after a jump of an input, or a fresh start)."""
    cdef int32_t i, nf = TL_NF(m)
    for i in range(TL_NACT(m)):
        s.end.p[i] = s.now.p[i]
    eval_forces(m, s, s.end, s.now.u, theta, s.xi)
    for i in range(TL_NHOT(m)):
        s.now.w[i] = s.end.w[i]
    for i in range(TL_NPORT(m)):
        s.now.port[i] = s.end.port[i]
    for i in range(TL_NJO(m)):
        joint_jump(m, s, i, theta)
    for i in range(nf):
        s.now.cap_f[i] = s.end.cap_f[i]
        s.now.cap_b[i] = s.end.cap_b[i]
        s.now.lim_f[i] = s.end.lim_f[i]
        s.now.lim_b[i] = s.end.lim_b[i]
        s.now.raw[i] = s.end.raw[i]


cdef void meet_instant(const tl_model* m, tl_state* s, double theta, int64_t fresh) noexcept nogil:
    """Forces, modes, accelerations of the present instant after a jump. fresh: the state itself is new; else only the
    forces have changed, and modes are found anew where an element is touched."""
    cdef int32_t i, touched = 0, nf = TL_NF(m)
    s.quiet = 0
    s.listed = 0
    if fresh:
        relax_speeds(m, s)
    if TL_NCON(m) > 0 and fresh:
        find_regimes(m, s)
    if TL_NST(m) > 0 and fresh:
        find_ends(m, s)
    now(m, s, theta)
    for i in range(nf):
        if (s.now.raw[i] > 0.0) != (s.pressed[i] != 0):
            s.pressed[i] = 1 if s.now.raw[i] > 0.0 else 0
            touched = 1
    if touched:
        each_capacity(m, s, s.now.w, s.now.p, theta, s.now, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))
    if fresh:
        touched = 1
    if not touched:
        list_modes(m, s)
        settle(m, s)
        for i in range(nf):
            if s.mode[i] == MODE_STUCK and (s.now.tau[i] > s.now.lim_b[i] or s.now.tau[i] < -s.now.lim_f[i]):
                touched = 1
    if touched:
        for i in range(nf + 1):
            if not stop_blocked(m, s):
                break
        decide(m, s, 0.0, 0)
    s.fresh[0] = 0


include "inputs.pxi"
include "quiet.pxi"


cdef inline void end_ties(const tl_model* m, tl_state* s) noexcept nogil:
    """An element at its limit that others held at rest, and that slides after all, has its sliding capacity."""
    cdef int32_t c, i, ended = 0
    for c in range(s.n_sliding if s.listed else TL_NF(m)):
        i = s.sliding[c] if s.listed else c
        if s.tied[i] and fabs(s.now.w[TL_FR_ROW(m, i)]) > TOL_R:
            s.tied[i] = 0
            ended = 1
            log_mode_change(s, i)
    if ended:
        s.ties = 0
        for i in range(TL_NF(m)):
            s.ties |= s.tied[i]
        forget_history(m, s)
        if not s.listed:
            list_modes(m, s)
        settle(m, s)


cdef void lower_order(const tl_model* m, tl_state* s) noexcept nogil:
    """Trials of two points for the rest of the step: their works have the sign they should, resolved or not."""
    cdef int32_t i
    s.four = 0
    s.hist[0] = 0
    for i in range(TL_N(m)):
        s.s2[i] = 0.0
        s.hs2[i] = 0.0
    whole_length(m, s)


cdef int busy_step(const tl_model* m, tl_state* s, double dt, int32_t made) noexcept nogil:
    """The step in which something happens, or may. made: TRIED when a quiet step has made its first trial. As advance."""
    cdef int32_t i, n = TL_N(m), splits = 0, own_length = 0, simply, moved, foreseen = 0
    cdef double done = 0.0, end = 1.0 if dt == m.h else dt / m.h, last = end, x, y, chk, left
    if moving(m):
        own_length = 1                       # no ratio is asked for beyond its knees
        end = next_knee(m, s, done, last)
    elif TL_NVG(m) > 0:
        next_ratios(m, s)
    while True:
        s.theta = done
        if (m.stiff_cut or own_length) and end - done < 1.0:
            shorten(m, s, end - done)
            if foreseen:
                for i in range(n):
                    s.now.hs1[i] *= s.part
        foreseen = 0
        if s.ties and made != TRIED:             # (quiet_step has seen to them)
            end_ties(m, s)
        if made == TRIED:
            take_over(m, s)                  # the quiet step has made this trial, and then something happens in it
        else:
            if s.listed:
                gather(m, s.now.a, s.wa)
                s.last = s.to_end and own_length
            trial(m, s, done)
            s.last = 0
        chk = 0.0
        for i in range(n):
            chk += s.end.u[i]
        if chk - chk != 0.0:                  # inf or NaN somewhere
            s.status = 1
            return 1
        left = (end - done) / s.part
        if left > 1.0:
            left = 1.0
        if made == TRIED or s.listed:
            moved = s.moving if made == TRIED else s.n_mover
            ask_listed(m, s, s.end, moved > 0 or not s.held, made == TRIED)
        else:
            ask_all(m, s, s.end)
        x = find_event(m, s, left)
        if TL_NCON(m) + TL_NST(m) > 0:
            y = find_contact(m, s, left)
            x = y if y < x else x
        if TL_NLS(m) > 0:
            y = find_branch(m, s, left)
            x = y if y < x else x
        if moving(m):
            y = find_ratio(m, s, left)
            x = y if y < x else x
        if x > 1.5 and left < 1.0 and TL_NLIN(m) + TL_NCON(m) > 0 and not own_length and cut_makes_energy(m, s, left):
            own_length = 1                   # the rest of the step in a trial of its length, not cut from a longer one
            history_of_part(m, s, s.end.hs1, s.s2, left)
            continue
        y = left if x > 1.5 else x
        if x <= 1.5:
            find_toggled(m, s, x)
            if not s.listed:
                list_rest(m, s, made == TRIED, done == 0.0 and s.part == 1.0 and end == 1.0)
            find_lone(m, s, x)
        made = 0
        simply = 1
        if y > 0.0:
            if x <= 1.5 and TL_NLIN(m) + TL_NCON(m) > 0 and (m.stiff_cut or cut_makes_energy(m, s, x) or (
                    TL_NST(m) > 0 and beside_polynomial(m, s, x))):
                own_length = 1               # the rest of the step in trials of its length, too
                y = accept_shortened(m, s, done, x)
                simply = 0
            elif accept(m, s, done, y, x <= 1.5):
                y = REFUSED
            if y < 0.0:
                s.counters[TL_C_REFUSED] += 1
                if s.four and TL_NLS(m) == 0:
                    lower_order(m, s)
                    continue
                impulse_step(m, s, done, last - done)
                break
        if x > 1.5:
            if not moving(m) or end == last:
                break
            done = end
            pass_knee(m, s, done)
            end = next_knee(m, s, done, last)
            continue
        s.counters[TL_C_EVENTS] += 1
        splits += 1
        done += y * s.part
        toggle_pressed(m, s)
        s.theta = done
        if TL_NCON(m) > 0:
            switch_contacts(m, s, x)
        if TL_NST(m) > 0:
            reach_ends(m, s, x)
        if TL_NLS(m) > 0:
            switch_branches(m, s, x)
        if moving(m):
            new_pieces(m, s, done)
        # the interpolated capacities served the books; what follows needs those of this slip and this normal force
        if s.listed:
            each_listed(m, s, s.now.u, s.now.p, done, s.now, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))
        else:
            each_capacity(m, s, s.now.w, s.now.p, done, s.now, s.hint + 2 * TL_NENG(m) + 3 * TL_NTC(m))
        if splits > MAX_SPLITS:
            impulse_step(m, s, done, last - done)
            break
        s.t[0] += done * m.h
        if simply and only_pressed(m, s, x):
            press(m, s)
        elif y == 0.0 or not plain_event(m, s, y, simply):
            if not simply:
                trend_of_longer(m, s)
            decide(m, s, x, 1)
        foreseen = 1
        s.t[0] -= done * m.h
        if TL_NTH(m) > 0:
            if done > s.T_theta:
                heat_step(m, s, done)
            heat_rates(m, s, done, 0.0)
        s.part = 1.0
        s.h = m.h
        if end - done < 1e-12:
            if end == last:
                break
            end = next_knee(m, s, done, last)
        own_length |= along_one(m)           # costs less than to cut a longer one
    if s.part != 1.0 and not m.stiff_cut and s.hist[0]:
        if s.part > SHORT:
            history_of_part(m, s, s.now.hs1, s.hs2, 1.0 / s.part)
        else:
            forget_history(m, s)
    if s.part != 1.0 or s.pat == &s.other:
        whole_length(m, s)
    end = last
    if moving(m):
        meet_ratios(m, s, end)
    elif TL_ND(m) + TL_NVG(m) > 0:
        hold_driven(m, s, end)
    if TL_NPS(m) > 0:
        poses_end(m, s, end)
    if TL_NTH(m) > 0 and end > s.T_theta:
        heat_step(m, s, end)
    if TL_NCON(m) > 0 and m.ncurved > 0 and not s.four:
        restore_law(m, s, end)
    if splits > s.counters[TL_C_SPLITS_MAX]:
        s.counters[TL_C_SPLITS_MAX] = splits
    s.t[0] += dt
    if dt == m.h:
        s.step_no[0] += 1
        s.quiet = splits == 0 and may_be_quiet(m)
    else:
        # parts of a step (time events offline): the step number follows the time
        s.step_no[0] = <int64_t>(s.t[0] * m.inv_h + 1e-6)
    return 0


cdef int advance(const tl_model* m, tl_state* s, double dt) noexcept nogil:
    """Advance by dt <= h with the inputs s.inp (values at 0, h/2 and h of the branch that holds now); dt = 0 finds
    accelerations, modes and torques of the present instant only.

    Returns 0, or 1 when the state is not finite any more. Real-time: yes; work is bounded by MAX_SPLITS.
    """
    cdef int32_t made = 0
    s.theta = 0.0
    s.T_theta = 0.0
    s.att_theta = 0.0
    s.part = 1.0
    s.h = m.h
    s.four = m.order == 4
    if start_of_step(m, s):
        s.status = 1
        return 1
    if s.quiet and (s.held or TL_NACT(m) == 0) and dt == m.h:
        made = quiet_step(m, s)
        if made == TAKEN:
            return 0
    s.quiet = 0
    s.listed = 0
    if dt == 0.0:
        return 0
    return busy_step(m, s, dt, made)
