"""Limits that sent signals are held to, as the tick sees them. Words: hil/rig/describe/fault_plan.py, docs/safe_state.md;
the code: tick_safety.pxi."""

from libc.stdint cimport int32_t, int64_t

# Range and slew of a sent signal, SI.
cdef struct guard_t:
    double quiet_lo             # between these the signal goes out as it is and nothing is to be noted; quiet_lo >
    double quiet_hi             # quiet_hi: never (a slew needs the last value)
    int32_t slot
    int32_t safe                # 1: leaving the limits latches the safe state as well
    double lo
    double hi
    double tol                  # further outside counts: what the codec rounds back in does not
    double slew                 # largest change in a tick; 0: any
    # written by the tick
    int32_t seen
    double last
    int64_t count               # ticks it was held back in

cdef struct safety_t:
    int32_t n_guard
    guard_t* guard
    int32_t solver_limit        # ticks in a row with a step the solver could not resolve latch the safe state; 0: never
    int32_t unresolved          # such ticks in a row so far (written by the tick)

cdef class Safety:
    cdef safety_t s
    cdef readonly int n_sig
    cdef readonly double tick_s
