# Scratch of a step, by the stage that writes it. What is numbered by the friction elements is (nf), and so on.

cdef struct tl_event:
    # where in the trial something happens (step/events.pxi, contacts.pxi, losses.pxi); fractions of the trial, NO_EVENT: it does not
    int32_t n_asked
    int32_t* asked        # (nf) elements for which the trial has to be searched, in their order
    int32_t decided       # 1: the trial begins where modes have just been decided (advance.pxi)
    double* slip_x        # (nf) fraction at which a slip comes to zero, or a torque reaches its limit
    double* press_x       # (nf) and at which a normal force appears or vanishes
    int32_t* toggled      # (nf) 1: the normal force appears or vanishes at the event; 2: its slip comes to zero (shortened.pxi)
    double slack          # N.m: rounding of a torque in the trial, -1: not known (torque_rounding)
    double* contact_x     # (ncon + nst + nlu) fraction at which the regime of a contact, the way to a stop, or the piece of a table ends
    int64_t* contact_next # (ncon + nst) the regime that follows, or the end
    int32_t* contact_which # (ncon + nst) which of its ends it is
    double* branch_x      # (nls) fraction at which the branch of a loss ends
    double* w             # (nhot) rad/s, m/s: row speeds at the end of the part of a trial that is taken (accept.pxi),
    double* wm            # (nhot) and in its middle (order 4)


cdef struct tl_length:
    # lock patterns of trials of another length than h (step/linear.pxi, shortened.pxi)
    tl_pattern built      # one for that length; the rest is that of the pattern of whole steps (pattern_of_length, locks.pyx)
    double* s2_longer     # (n) curvature of the acceleration of the longer trial while a shorter one is made


cdef struct tl_decision:
    # who sticks from here on (step/decide.pxi, impact.pxi, impulse.pxi)
    double* z             # (n) rad, m: angles and
    double* u             # (n) rad/s, m/s: speeds in the middle of the look-ahead
    int32_t without_excess # 1: forces of springs and dampers are taken without tl_excess
    int64_t* before       # (nf) modes before an impact, an impulse step, a slip that comes to rest
    int64_t* logged       # (nf) modes before a decision as the log has them


cdef struct tl_gears:
    # gears of changing ratio (step/ratios.pxi), and the rows that change with them (set_ratio_rows, locks.pyx)
    double* rate          # (nvg) 1/s: rate of change of the ratio in this step
    double* next          # (nvg) ratio at its end (order 4: now)
    tl_ratio* now         # (nvg) order 4: the piece each ratio follows, and its values at the points of the trial
    const double* B       # m.B, m.W0, m.W, m.SinvBt, or the state's own copies when rows change
    const double* W
    const double* W0
    const double* SinvBt
    double* own_rows      # memory of these copies


cdef struct tl_look:
    # look-ups of tables at a speed (step/look_ups.pxi)
    tl_piece* now         # (nlu) the piece each follows
    int32_t* free         # (nhint) hints of tl_state.hint outside of trials of three points,
    int32_t* held         # (nhint) and within
    int32_t* list         # (nlu) those that act
    int32_t n_acting
    int32_t known         # 1: `now` holds for the present instant
    int32_t alone         # 1: nothing else happens at the event than that pieces change (guards.pxi, shortened.pxi)


cdef struct tl_arena:
    # scratch that is taken and given back (arena.pxd), in doubles
    double* memory
    int64_t used
    int64_t most          # of it so far
    int64_t size


cdef struct tl_log:
    # ring of mode changes (log_mode_change, step/settle.pxi)
    int64_t n             # written so far
    int64_t size
    int64_t* step         # (size) number of the step
    double* t             # (size) s: time
    int32_t* element      # (size)
    int32_t* mode         # (size)


cdef struct tl_build:
    # lock patterns and scratch of building them (locks/)
    tl_pattern* cache     # (ncache)
    int64_t clock         # look-ups so far: the slot used least recently gives way
    double* work          # (build_scratch, locks/lock_build.pxi) scratch of build and build_length
    int32_t* ranges       # (5n) and of their ranges
    uint64_t* key         # (nkey) set of stuck elements that is looked for
    int32_t* stuck        # (nf + 1) these elements


cdef struct tl_lists:
    # who slides and who sticks (list_modes, step/settle.pxi), and what a quiet step needs besides (quiet.pxi)
    int32_t n_sliding
    int32_t* sliding      # (nf) elements that slide
    int32_t n_sticking
    int32_t* sticking     # (nf) elements that stick
    int32_t moving        # 1: some pressure moves, or has just stopped
    int32_t* still        # (nact) steps in a row in which the pressure has not moved, up to STILL
    int32_t n_due
    int32_t* due          # (nf + 1) elements whose capacity may change in this step
    int32_t due_holds     # 1: they are still the same
    const tl_pattern* pattern # pattern that `product` is made of
    int32_t rows          # of `product`
    double* product       # (rows, n; order 4: 2n) by columns: P (P4), and below it the rows of T (T4) of the elements that stick
    double* v             # (rows) what it gives: accelerations of the stages, and below them the torques of these elements
