"""Constant model and mutable state of one driveline, as plain C structs.

`tl_model` is read-only after construction and may be shared by any number of states. `tl_state` owns everything a step
writes: the state proper (`x`, `k`: copied, restored and hashed as a whole) and scratch memory that is derived from it, grouped by
the stage that writes it (scratch.pxi).
All quantities in SI units; arrays are documented with their shape.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef struct tl_model
cdef struct tl_state

#: advance the state by dt <= h; 0 or a status
ctypedef int (*tl_step_fn)(const tl_model* m, tl_state* s, double dt) noexcept nogil
#: all outputs now
ctypedef void (*tl_read_fn)(const tl_model* m, tl_state* s, double* out) noexcept nogil


cdef struct tl_table1:
    int32_t n             # number of points
    int32_t linear        # 1: linear extrapolation, 0: hold the end values
    const double* x       # (n) strictly increasing, and behind them a number that is read, but changes nothing
    const double* y       # (n)
    const double* dy      # (n) slopes, the last is 0


cdef struct tl_table2:
    int32_t nx
    int32_t ny
    const double* x       # (nx) strictly increasing
    const double* y       # (ny) strictly increasing
    const double* z       # (nx, ny) row-major; clipped at the edges


include "records.pxi"


cdef struct tl_curve:
    # a pressure over the step, or what one is compared with: q(x) + rest exp(-rate (x - begin)), x the fraction of the step
    double[3] q           # coefficients of the parabola, Pa
    double rest           # Pa
    double rate           # step over time constant
    double begin          # where in the step the law begins
    double level          # fill level of the piston there, 0..1
    double filling        # how it changes over a step
    int32_t falling       # 1: tau_fall holds


cdef struct tl_piece:
    # the piece of a table that a trial follows, in the argument x: sgn times the speed of `row`, over that of `over` if there is one
    int32_t row
    int32_t over
    double sgn
    double lo             # its ends
    double hi
    double inner_lo       # between these it holds whatever the acceleration
    double inner_hi
    double below          # a trial that ends below this or above that has left it: an event
    double above
    double most           # beyond it the torque is steep: the normal force of friction, the speed of `over`
    int32_t piece         # which piece it is, from 0 on
    int32_t held          # 0: trials follow the whole table
    int32_t steep         # 1: they do because the torque is steep, and go on so as long as it is


cdef struct tl_ratio:
    double x              # on this piece the ratio is y + slope*(argument - x)
    double y
    double slope
    double lo             # where it ends
    double hi
    double sgn            # side of standstill, for a ratio over the speed
    double[2] i           # ratio at the stages of the trial
    double[2] rate        # what it changes with time there, 1/s
    double[2] share       # and with the acceleration of side a, times the speed of side b


cdef extern from *:
    """
    #ifndef TL_EVAL_H
    #define TL_EVAL_H
    #include <stddef.h>
    /* Vectors of an instant, one behind the other in one block. A precompiled step (TL_SIZED) knows their sizes: its
       tl_eval is the block itself. Everything else knows them when it runs: its tl_eval holds pointers into the block. A
       state has pointers for both, each finds its own under the same name. */
    #ifdef TL_SIZED
    #define TL_VECTOR(name, size) double name[size]
    #define TL_VIEWS_BEFORE 4
    #define TL_VIEWS_BEHIND 0
    #else
    #define TL_VECTOR(name, size) double* name
    #define TL_VIEWS_BEFORE 0
    #define TL_VIEWS_BEHIND 4
    #endif
    typedef struct {
        TL_VECTOR(u, TL_N(m));
        TL_VECTOR(z, TL_N(m));
        TL_VECTOR(a, TL_N(m));
        TL_VECTOR(hs1, TL_N(m));
        TL_VECTOR(w, TL_NHOT(m));
        TL_VECTOR(port, TL_NPORT(m));
        TL_VECTOR(tau, TL_NF(m));
        TL_VECTOR(cap_f, TL_NF(m));
        TL_VECTOR(cap_b, TL_NF(m));
        TL_VECTOR(lim_f, TL_NF(m));
        TL_VECTOR(lim_b, TL_NF(m));
        TL_VECTOR(raw, TL_NF(m));
        TL_VECTOR(steep, TL_NF(m));
        TL_VECTOR(p, TL_NACT(m));
        TL_VECTOR(rea, TL_NLS(m));
    } tl_eval;
    /* port, tau, cap_f, cap_b, lim_f, lim_b, raw: nport + 6 nf numbers, one behind the other */
    #ifdef TL_SIZED
    #define tl_forces_of(e) ((double*)((char*)(e) + offsetof(tl_eval, port)))
    #else
    #define tl_forces_of(e) ((e)->port)
    #endif
    #define tl_other_views(s) ((void**)(TL_VIEWS_BEFORE ? (s)->others_before : (s)->others_behind))
    #endif
    """
    enum:
        TL_VIEWS_BEFORE
        TL_VIEWS_BEHIND
    # instants as they are not seen here
    void** other_views "tl_other_views"(tl_state* s) noexcept nogil

    # one instant: motion (written by the trial), forces and capacities (written by eval_forces)
    ctypedef struct tl_eval:
        double* u             # (n) independent speeds
        double* z             # (n) their integrals
        double* a             # (n) acceleration
        double* hs1           # (n) change of the acceleration over the step that ends here (predictor)
        double* w             # (nhot) row speeds; while the trial runs those the forces are taken at
        double* port          # (nport) force of each port along its row
        double* tau           # (nf) friction force along its row (stuck: from the solve)
        double* cap_f         # (nf) sliding capacity against w > 0
        double* cap_b         # (nf) sliding capacity against w < 0
        double* lim_f         # (nf) static limit against forward motion: tau >= -lim_f
        double* lim_b         # (nf) tau <= lim_b
        double* raw           # (nf) normal force before clipping at 0
        double* steep         # (nf) 1: sliding where mu(w) is steep, the torque is found implicitly
        double* p             # (nact) pressure
        double* rea           # (nls) reaction each loss depends on


cdef extern from *:
    double* forces_of "tl_forces_of"(tl_eval* e) noexcept nogil


cdef struct tl_pattern:
    # matrices for one set of stuck elements (see locks.pyx)
    int32_t valid
    int32_t ns            # how many stick
    int64_t used          # when it was last looked up
    uint64_t* key         # (nkey)
    double* P             # (n, n) acceleration from force with the stuck rows held, step matrix S
    double* T             # P and below it the stuck torques from force, rows of elements not stuck 0, filled up to whole
                          # lanes: (n, n + nf + fill) by columns (`lanes`). For more than TL_FORMED speeds (ns, n) the rows
                          # of Tn that are not zero
    double* Pr            # P and T without what springs, dampers and contacts see: they hold for every length; P, T
    double* Tr            # themselves without compliances
    double* Z             # (n_seen, n) basis of what these see, M-orthogonal to the rest
    int32_t n_seen
    double* seen          # (3, n_seen, n_seen + nf) M, D, K on these rows, and what the stuck elements carry of that (project)
    double* P0            # P and T with M (acceleration of an instant); equal to P, T without compliances
    double* T0
    double* P4            # (2n, 2n) order-4 step
    double* T4            # (2n, 2nf) its stuck torques: column j at j*2nf, middle and end; NULL where it is not formed
    int32_t* range        # ranges that are not zero, for more than TL_FORMED speeds: (n, 2) rows of P,
                          # (n, 2) rows of P0, (nf, 2) rows of T, (nf) elements these belong to
    int32_t narrow        # 1: most of P lies outside them
    int32_t narrow0       # the same for P0
    int32_t locked        # 1: some speed is 0 whatever acts, its row of P0 is
    double* Tn            # (n, nf) least-norm split of a constraint force over the stuck elements
    const double* S       # matrices of the step with the contacts in their present regimes (m.S, m.A4 without contacts)
    const double* A4
    double* X             # (stages*nls)^2 response of the reactions of the losses to their torques, stage by stage
    double* X0            # (nls, nls) the same at an instant
    int32_t n_fast        # modes of springs and dampers that decay within a step (fast_modes.pxi)
    double* fast          # (n_fast, TL_FAST_SIZE) complex numbers: decay mu, 1/s; speeds v (n); left vector for speeds (n) and
                          # accelerations (n); torques of what sticks (nf). NULL: none


# Plan and scratch of tl_outputs, see readout.pxi.

cdef struct tl_row_first:
    int32_t idx           # first term of a row: val * x[idx]
    int32_t row
    double val


cdef struct tl_row_term:
    int32_t row           # a further term of a row, by its place in w, phi, a
    int32_t idx
    double val


cdef struct tl_read_fr:
    int32_t fr            # friction element
    int32_t row           # place of its row in w, phi, a
    int32_t bilateral     # 1: always held, it shows its mode as it is


cdef struct tl_square:
    int32_t i             # a term of the kinetic energy: val * u[i] * u[j]
    int32_t j
    double val


cdef struct tl_readout:
    int32_t n_row
    int32_t n_term
    int32_t n_fr
    int32_t n_single
    int32_t n_scaled
    tl_row_first* first   # (n_row)
    tl_row_term* term     # (n_term)
    tl_read_fr* fr        # (n_fr)
    int32_t* single_out   # (n_single) outputs with a law of their own
    int32_t* scaled       # (n_scaled) outputs with a gain that is not 1
    const double** source[2]  # (nout) where each output comes from, by parity
    double* w             # (n_row) speed, angle, acceleration of a row
    double* phi
    double* a
    double* power         # (n_fr) power, larger capacity, shown mode of a friction element
    double* cap
    double* mode
    double* inp           # (nin) inputs at the end of the step
    double* joint         # (njo, TL_JOINT_OUTPUTS) what joint shafts show
    double* single        # (n_single)
    int32_t n_square
    tl_square* square     # (n_square)
    double* kinetic       # NULL: not shown


cdef struct tl_excess:
    # what the motion of the method has too much of modes that decay within a step (step/fast_modes.pxi): one block
    double* u             # (n) speeds
    double* z             # (n) angles
    double* a             # (n) accelerations
    double* tau           # (nf) torques of the elements at rest
    double* tau_m         # (nf) and in the middle of the trial


include "scratch.pxi"


cdef struct tl_state:
    # ---- state proper: one block of doubles, one of integers (laid out: kernel_state.pxi; written by the files in brackets) ----
    int64_t nx            # doubles of the block x
    int64_t nk            # integers of the block k
    int64_t nfix          # doubles before the two instants
    int64_t nev           # doubles of one instant
    double* x             # (nx) the block of doubles, each in the unit of what it is; what follows up to `fraction` points into it
    int64_t* k            # (nk) the block of integers
    void* others_before[TL_VIEWS_BEFORE] # instants as everybody else sees them, in a precompiled step (tl_other_views, model.pxd)
    tl_eval* now          # the present instant (accept.pxi, settle.pxi)
    tl_eval* end          # the end of the trial; the two change places with every whole step (trial.pxi)
    tl_eval* em           # the middle of the trial (order 4: trial.pxi), or where it is truncated (accept.pxi)
    tl_eval* ex           # ends of the longer trial while a shorter one is made (shortened.pxi)
    void* others_behind[TL_VIEWS_BEHIND] # instants as a precompiled step sees them, everywhere else (state_memory.pxi)
    double* hs2           # (n) rad/s^2: curvature of the acceleration over the last step, order 4 (accept.pxi)
    double* fill          # (nact) fill level 0..1 of fill-time actuators (pressures.pxi)
    double* xi            # (neng) N.m: integral of the idle controller (governors.pxi)
    double* in_last       # (nin) inputs at the end of the last step, each in its unit (inputs.pxi)
    double* e_port        # (nport) J: work done by each port on the driveline (accept.pxi)
    double* e_fr          # (nf) J: friction heat (accept.pxi)
    double* e_lin         # (nlin) J: damper heat (accept.pxi)
    double* e_con         # (ncon) J: contact heat (contacts.pxi)
    double* T             # (nth) K: temperatures (thermal.pxi)
    double* T_rate        # (nth) K/s: their rates of change at the start of the step (thermal.pxi)
    double* T_curve       # (nth) K/s^2: and the rates of these (thermal.pxi)
    double* th_e          # (nths) J: energy of each heat source when it was last taken into its node (thermal.pxi)
    double* ratio         # (nvg) ratios of the variable gears, a number (ratios.pxi)
    double* att           # (nbo, 7) bodies: quaternion from their axes to the world's; m: place of the mass centre (bodies.pxi)
    double* ps            # (nps, 16) shafts between carriers that move against each other, units in model/poses.pxd (poses.pxi)
    double* e_jo          # (njo, 3) J: joint shafts' heat, work of what bends them, elastic energy when last looked at (joints.pxi)
    double* turned        # (nrm) rad or m: what has been taken off z along each rigid motion (turn_back, laws.pxd)
    double* excess_z      # (n) rad or m, models with unresolved: what the angles (fast_modes.pxi)
    double* excess_u      # (n) rad/s or m/s: and speeds have too much of modes that decay within a step (fast_modes.pxi)
    double* fraction      # (1) fraction of the step behind step_no that is done: the time is (step_no + fraction)*h (advance.pxi)
    int64_t* mode         # (nf) MODE_* (decide.pxi)
    int64_t* pressed      # (nf) 1: normal force acts (instant.pxi, events.pxi)
    int64_t* tied         # (nf) 1: at its static limit, but held at rest by others: it carries the limit, not less (decide.pxi, settle.pxi)
    int64_t* regime       # (ncon) 0 open, else CONTACT_* times the side: 1 upper, -1 lower (contacts.pxi)
    int64_t* at_end       # (nst) end a stop is at: -1 lower, 0 none, 1 upper (contacts.pxi); ENGAGED: teeth that hold (dogs.pxi)
    int64_t* branch       # (nls) 0: law A holds, 1: law B (losses.pxi, decide_losses.pxi)
    int64_t* step_no      # (1) steps that are done (advance.pxi, quiet.pxi)
    int64_t* fresh        # (1) 1: accelerations and modes must be found anew: start, restored by hand (instant.pxi)
    int64_t* hist         # (1) 1: hs1, hs2 hold; HISTORY_JUMPED: so they did until forces or their slopes jumped (points.pxi, accept.pxi)
    int64_t* parity       # (1) which of ev is `now` (accept.pxi)
    int64_t* counters     # (TL_COUNTERS) see TL_C_* (advance.pxi, accept.pxi, decide.pxi)
    # ---- inputs of the step (inp, held: the caller, kernel.pyx; the others: inputs.pxi, pressures.pxi) ----
    double* inp           # (3, nin) values at start, middle and end, each in its unit; only the first nin when held
    int32_t held          # 1: inputs are constant over the step
    double* in_c          # (3, nin) coefficients of their parabolas over the fraction of the step
    tl_curve* press       # (nact) pressures of the step (pressures.pxi)
    double next_switch    # fraction of the step up to which they hold
    # ---- what is derived from model and state when they are made (kernel_state.pxi, state_memory.pxi, readout.pxi) ----
    double* row_off       # (nrow) rad or m: m.row_off and what `turned` turns each row by: shown angles are row.z plus this
    tl_eval* ev           # (4) the two instants, whose memory belongs to the state proper, em, ex
    tl_readout readout    # how the outputs are read
    int32_t* hint         # places in tables where the last look-up was (speed only), or which hold it: of `look`
    # ---- the trial: where it lies and how long it is (advance.pxi, linear.pxi) ----
    double theta          # fraction of the step at which the present instant lies, 0..1
    double part           # length of the trial, a fraction of h
    double h              # s: length of the trial
    int32_t four          # 1: the trial has three points (order 4)
    int32_t ties          # 1: some element is tied
    tl_pattern* pat       # pattern of the present set of stuck elements, for that length
    double T_theta        # fraction of the step to which the temperatures have been advanced (thermal.pxi),
    double att_theta      # fraction of the step to which the attitudes have been (bodies.pxi)
    # ---- the trial: its motion (trial.pxi, stages.pxi); the end is in `end` ----
    double* um            # (n) rad/s or m/s: speeds in the middle of the trial (order 4), of the part of it that is taken, of an impulse step
    double* am            # (n) rad/s^2 or m/s^2: accelerations there; those of a look-ahead (decide.pxi)
    double* s2            # (n) rad/s^2 or m/s^2: curvature of the acceleration over the trial
    double* taken         # (n) rad/s or m/s: speeds that the forces of the trial were taken at, before these were corrected
    double* wa            # (nhot) rad/s^2 or m/s^2: row accelerations now
    double* us            # (2n) rad/s or m/s: speeds, stage by stage; scratch of instants, which have no stages
    double* zs            # (2n) rad or m: angles, stage by stage
    double* xim           # (neng) N.m: integrals of the idle controllers in the middle of the trial (governors.pxi)
    double* xi1           # (neng) N.m: and at its end (governors.pxi)
    int32_t* xi_held      # (neng) 1: at a limit from here on (governors.pxi)
    int32_t* gives        # (neng) torque of the idle controller: -1 none, 1 the largest, 0 between (governors.pxi)
    tl_excess excess      # that of the end of the trial, or of the present instant (fast_modes.pxi)
    double* kept          # (3n + nf) rad, rad/s, rad/s^2, N.m: motion and torques while they are read without it (kernel/readout.pxi)
    # ---- the trial: its forces (trial.pxi, stages.pxi, settle.pxi) ----
    double* F             # (nhot) N.m, N: forces along the rows
    double* g             # (2n) N.m: forces on u, stage by stage
    double* ad            # (2n) rad/s^2 or m/s^2: accelerations that driven flanges prescribe (driven.pxi)
    double* rho           # (2n) N.m or N.m.s: constraint forces or impulses on u, stage by stage; before them what they are found from
    double* both          # (n + nf + fill) rad/s^2: accelerations, and below them, N.m, the torques of the elements at rest (linear.pxi)
    double* held_tau      # (2nf) N.m: torques of all elements at rest, at the stages of a trial of three points (held4, trial.pxi)
    double* f_lin         # (nlin) N.m or N: forces of springs and dampers at one stage (reactions_of, stages.pxi)
    double* f_con         # (ncon) N.m or N: and of contacts
    double* rea_size      # (nls) N.m or N: sum of the absolute terms of each reaction, what its rounding is measured by
    double* v1            # (2n + nf) rad/s, N.m or what its user says: scratch (linear.pxi, driven.pxi, impulse.pxi)
    double* v2            # (2n + nf) rad/s^2 or m/s^2: accelerations of the stages (stages.pxi); scratch (driven.pxi)
    int32_t unsolved      # 1: the trial has not found the forces of laws along rows (rows.pxi)
    int64_t stiff         # 1: some element of the last evaluation is steep (forces.pxi, friction.pxi)
    int32_t n_eased       # steep ports, which have no polynomial through their torques (rows.pxi)
    int32_t* eased        # (nport) they (rows.pxi)
    double* eased_by      # (nport) N.m or N: and by how much they act with more than that at the end (rows.pxi)
    # ---- quiet steps (quiet.pxi) ----
    int32_t quiet         # 0: the next step is not, 1: it may be, 2, 3: and `lists` hold (LISTED, FOLLOWING)
    # ---- scratch of other stages (scratch.pxi: its structs say who writes them) ----
    tl_event event        # where in the trial something happens (events.pxi)
    tl_length length      # trials of another length than h (shortened.pxi)
    tl_decision decision  # who sticks from here on (decide.pxi)
    tl_gears gears        # gears of changing ratio (ratios.pxi)
    tl_look look          # look-ups of tables at a speed (look_ups.pxi)
    tl_lists lists        # who slides and who sticks (settle.pxi, quiet.pxi)
    tl_build build        # lock patterns (lock_build.pxi)
    tl_arena arena        # scratch that is taken and given back (advance.pxi, arena.pxd)
    tl_log log            # mode changes (settle.pxi)
    int32_t status        # 0 ok, 1 not finite, 2 scratch memory has run out (advance.pxi)
    int32_t busy          # 1: a thread of Python steps it (kernel.pyx)


cdef inline int64_t TL_FAST_SIZE(int64_t n, int64_t nf) noexcept nogil:
    """Doubles of a mode that decays within a step (tl_pattern.fast)."""
    return 2 * (1 + 3 * n + nf)


cdef inline int64_t TL_EXCESS(int64_t n, int64_t nf) noexcept nogil:
    """Doubles of tl_excess, one behind the other."""
    return 3 * n + 2 * nf


cdef enum:
    TL_FORMED = 12        # up to so many speeds a lock pattern holds T; beyond, tau = Tn (S a - g) costs less
    TL_LANES = 4          # rows of matrices that are multiplied often come in multiples of it, zeros below (sizes.pxi)


cdef inline int32_t lanes(int32_t rows) noexcept nogil:
    """Rows filled up to whole lanes."""
    return (rows + TL_LANES - 1) // TL_LANES * TL_LANES


cdef enum:
    # of tl_state.mode: sliding either way is odd
    MODE_BACKWARD = -1
    MODE_STUCK = 0
    MODE_FORWARD = 1
    MODE_FREE = 2         # carries nothing
    # of tl_state.hist
    HISTORY_HOLDS = 1
    HISTORY_JUMPED = 2
    # of tl_state.regime, times the side it touches (contacts.pxi)
    CONTACT_OPEN = 0
    CONTACT_BOTH = 1      # spring and damper
    CONTACT_LIMITED = 2   # the damper has no more than the spring
    CONTACT_PULLED = 3    # in the flank, but it would pull
    # of tl_state.at_end, for a dog clutch (dogs.pxi)
    ENGAGED = 2           # its teeth hold


cdef enum:
    TL_C_EVENTS = 0       # located events
    TL_C_SPLITS_MAX = 1   # most events in one step
    TL_C_FALLBACKS = 2    # steps finished by the plain impulse step
    TL_C_DECISIONS = 3    # boxed problems solved
    TL_C_PIVOTS = 4       # active-set changes
    TL_C_PIVOTS_MAX = 5   # most in one problem
    TL_C_RELAXED = 6      # boxed problems ended by the dissipating fallback
    TL_C_EVALS = 7        # force evaluations
    TL_C_STEEP = 8        # steps finished in one piece because torques of steep friction, gaps or joint shafts were not found to 1e-9
    TL_C_REFUSED = 9      # trials not taken because an element without a source would have given energy
    TL_C_HEAT = 10        # times friction gave heat back all the same: its curve is negative there, or TL_C_BEYOND
    TL_C_BEYOND = 11      # of them, where the curve is not: the slip ended within a trial that was taken beyond standstill
    TL_C_PARTS = 12       # trials made shorter than what was left of their step, since a joint turned too far in it
    TL_COUNTERS = 13
