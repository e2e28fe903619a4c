"""Steps of a scenario, one after the other, each begun by a condition on signals: what the driver does, in the tick.

All that changes stands in the signal table, so that hash, recording, checkpoint and replay hold it without more.
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks
from torqueloop.cython_kernels.tick.conditions cimport condition_t

# Value of the signal scenario.state.
cdef enum:
    SCENARIO_RUNNING = 0
    SCENARIO_DONE = 1
    SCENARIO_TIMED_OUT = 2     # a step did not begin within its time

# Signals of a scenario, in this order; behind them N_RAMP of each signal that it moves.
cdef enum:
    SCEN_STEP = 0                # number of the step that runs, counted from 1; 0: none has begun
    SCEN_STATE = 1               # SCENARIO_*
    SCEN_BEGUN = 2               # tick in which it began (0: arming)
    SCEN_HELD = 3                # tick since which the condition of the next step has held; -1: it does not hold
    SCEN_REPEATS = 4             # how often the present repetition went back
    N_SCEN = 5

# State of one signal that is moved: from `from` at tick `begun` to `to`, `ticks` later.
cdef enum:
    RAMP_FROM = 0
    RAMP_TO = 1
    RAMP_BEGUN = 2
    RAMP_TICKS = 3              # -1: not moved yet, others write it
    N_RAMP = 4

# A signal goes to `target` within `ticks`.
cdef struct move_t:
    int32_t signal              # index of the moved signals
    double target
    int64_t ticks

cdef struct step_t:
    condition_t when
    int32_t first_move
    int32_t n_move
    int32_t back_to             # index of the step to go on with instead; -1: the next
    int32_t times               # so often
    int64_t for_ticks           # the condition must have held so long
    int64_t at_tick             # not before this tick
    int64_t within_ticks        # the scenario has failed if it has not begun so long after the hold of the one before
    int64_t hold_ticks          # the next one begins no earlier than so long after this one

cdef struct scenario_t:
    int32_t first_slot          # of its signals
    int32_t n_step
    int32_t n_moved
    step_t* step
    move_t* move
    int32_t* moved              # slots of the signals it moves

cdef class Scenario(Blocks):
    cdef scenario_t m
    cdef readonly int n_sig

cdef void scenario_arm(const scenario_t* m, double* sig) noexcept nogil
cdef void scenario_tick(const scenario_t* m, double* sig, int64_t tick) noexcept nogil
