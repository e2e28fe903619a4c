"""Limits that sent signals are held to, as the tick sees them. Words: hil/rig/devices/faults.py, docs/safe_state.md;
the code: tick_safety.pxi."""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks

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

# Guards of neighbouring signals, in the order of the guards.
cdef struct band_t:
    int32_t slot                # of the first
    int32_t n
    int32_t first               # guards first .. first + n - 1
    const double* lo            # quiet_lo and quiet_hi, then any number up to whole blocks (words.pxd); NULL: too few to look
    const double* hi            # at all of them at once, or one is never quiet

cdef struct safety_t:
    int32_t n_guard
    guard_t* guard
    int32_t n_band
    band_t* band                # all guards, each in one
    int32_t solver_limit        # ticks in a row with a step the solver could not resolve latch the safe state; 0: never
    int32_t unresolved          # such ticks in a row so far (written by the tick)

cdef class Safety(Blocks):
    cdef safety_t s
    cdef readonly int n_sig
    cdef readonly double tick_s
    cdef int make_bands(self) except -1
