"""The clock of the loop: CLOCK_MONOTONIC, or a script that says how late each wake-up comes and how long each phase of
the tick takes. The loop is the same code on both; with a script its time is exact and nothing waits."""

from libc.stdint cimport int64_t, uint32_t

from torqueloop.cython_kernels.clock.account cimport N_PHASES
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns, sleep_until_ns, spin_ns

cdef enum:
    SCRIPT_COLUMNS = 1 + N_PHASES       # delay of the wake-up, then the time of each phase

cdef struct script_t:
    int64_t now_ns
    int64_t wakes               # so far; row wakes - 1 is being played
    int64_t n_rows              # after them every delay and time is 0
    int64_t* row                # (n_rows, SCRIPT_COLUMNS) in ns
    int64_t arm_wake            # the command words come at these wake-ups (-1: never)
    int64_t stop_wake
    int64_t disarm_wake
    int64_t rearm_wake
    uint32_t arm_bit
    uint32_t stop_bit
    uint32_t disarm_bit

# `s` is NULL for the real clock. real-time: yes, all of them.


cdef inline int64_t clock_now(const script_t* s) noexcept nogil:
    return monotonic_ns() if s == NULL else s.now_ns


cdef inline uint32_t clock_sleep(script_t* s, int64_t until_ns) noexcept nogil:
    """Sleep until a time (a past one: not at all); bits of the command word that the script sets at this wake-up."""
    cdef uint32_t bits = 0
    if s == NULL:
        sleep_until_ns(until_ns)
        return 0
    if until_ns > s.now_ns:
        s.now_ns = until_ns
    if s.wakes < s.n_rows:
        s.now_ns += s.row[s.wakes * SCRIPT_COLUMNS]
    if s.wakes == s.disarm_wake:
        bits |= s.disarm_bit
    if s.wakes == s.arm_wake or s.wakes == s.rearm_wake:
        bits |= s.arm_bit
    if s.wakes == s.stop_wake:
        bits |= s.stop_bit
    s.wakes += 1
    return bits


cdef inline int64_t clock_spin(script_t* s, int64_t until_ns) noexcept nogil:
    """Look at the clock until it says this time; the time it then says. Bounded by the caller: at most spin_us."""
    cdef int64_t now = clock_now(s)
    if s == NULL:
        while now < until_ns:
            now = monotonic_ns()
    elif now < until_ns:
        s.now_ns = now = until_ns
    return now


cdef inline void clock_burn(script_t* s, int64_t ns) noexcept nogil:
    """Use up CPU time (fault injection)."""
    if s == NULL:
        spin_ns(ns)
    else:
        s.now_ns += ns


cdef inline void clock_spend(script_t* s, int phase) noexcept nogil:
    """A phase has been worked through: with a script it takes the time written there."""
    if s != NULL and 0 < s.wakes <= s.n_rows:
        s.now_ns += s.row[(s.wakes - 1) * SCRIPT_COLUMNS + 1 + phase]


cdef class ClockScript:
    cdef script_t s
