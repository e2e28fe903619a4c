"""Steps of a manoeuvre, one after the other, each begun by a condition on signals: what the driver does, in the tick.

All that changes stands in the signal table, so that hash, recording, checkpoint and replay hold it without more.
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks

# Value of the signal manoeuvre.state.
cdef enum:
    MANOEUVRE_RUNNING = 0
    MANOEUVRE_DONE = 1
    MANOEUVRE_TIMED_OUT = 2     # a step did not begin within its time

# Signals of a manoeuvre, in this order; behind them N_RAMP of each signal that it moves.
cdef enum:
    MAN_STEP = 0                # number of the step that runs, counted from 1; 0: none has begun
    MAN_STATE = 1               # MANOEUVRE_*
    MAN_BEGUN = 2               # tick in which it began (0: arming)
    MAN_HELD = 3                # tick since which the condition of the next step has held; -1: it does not hold
    MAN_REPEATS = 4             # how often the present repetition went back
    N_MAN = 5

# State of one signal that is moved: from `from` at tick `begun` to `to`, `ticks` later.
cdef enum:
    RAMP_FROM = 0
    RAMP_TO = 1
    RAMP_BEGUN = 2
    RAMP_TICKS = 3              # -1: not moved yet, others write it
    N_RAMP = 4

cdef enum:
    OP_LT = 0
    OP_LE = 1
    OP_GT = 2
    OP_GE = 3
    OP_EQ = 4
    OP_NE = 5

# sig[slot] op value; equal within tol
cdef struct term_t:
    int32_t slot
    int32_t op
    double value
    double tol

# A signal goes to `target` within `ticks`.
cdef struct move_t:
    int32_t signal              # index of the moved signals
    double target
    int64_t ticks

cdef struct step_t:
    int32_t first_term
    int32_t n_term
    int32_t any_of              # one term is enough; else all
    int32_t first_move
    int32_t n_move
    int32_t back_to             # index of the step to go on with instead; -1: the next
    int32_t times               # so often
    int64_t for_ticks           # the condition must have held so long
    int64_t at_tick             # not before this tick
    int64_t within_ticks        # the manoeuvre has failed if it has not begun so long after the hold of the one before
    int64_t hold_ticks          # the next one begins no earlier than so long after this one

cdef struct manoeuvre_t:
    int32_t first_slot          # of its signals
    int32_t n_step
    int32_t n_moved
    step_t* step
    term_t* term
    move_t* move
    int32_t* moved              # slots of the signals it moves

cdef class Manoeuvre(Blocks):
    cdef manoeuvre_t m
    cdef readonly int n_sig

cdef void manoeuvre_arm(const manoeuvre_t* m, double* sig) noexcept nogil
cdef void manoeuvre_tick(const manoeuvre_t* m, double* sig, int64_t tick) noexcept nogil
cdef bint terms_met(const term_t* term, int32_t n, bint any_of, const double* sig) noexcept nogil
