"""Monotonic nanosecond clock and absolute sleep.

CLOCK_MONOTONIC is the time base of the whole rig: the grid of the loop, the stamps of received frames and the ages of
peers. It is not stepped by NTP and it is the same in every process of a machine. Wall time (CLOCK_REALTIME) is only
used to date a recording.
"""

from libc.errno cimport EINTR
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec


cdef extern from "<time.h>" nogil:
    int clock_nanosleep(int clock, int flags, const timespec* request, timespec* remain)
    int TIMER_ABSTIME

cdef int64_t wall_ns() noexcept nogil:
    """Now on CLOCK_REALTIME in ns since 1970. real-time: yes."""
    cdef timespec t
    clock_gettime(CLOCK_REALTIME, &t)
    return <int64_t>t.tv_sec * NS_PER_S + t.tv_nsec


cdef int sleep_until_ns(int64_t deadline_ns) noexcept nogil:
    """Sleep until CLOCK_MONOTONIC reaches deadline_ns; 0, or the errno of clock_nanosleep. real-time: yes.

    A deadline in the past returns at once. A signal (EINTR) does not shorten the sleep: the deadline is absolute, so
    the
    call is simply repeated; how a signal stops the rig is the business of the command word, not of the sleep.
    """
    cdef timespec t
    cdef int err
    if deadline_ns <= 0:
        return 0
    t.tv_sec = deadline_ns // NS_PER_S
    t.tv_nsec = deadline_ns - t.tv_sec * NS_PER_S
    while True:
        err = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)
        if err != EINTR:
            return err


cdef void spin_ns(int64_t duration_ns) noexcept nogil:
    """Burn CPU for duration_ns: the fault injection of a tick that takes too long. real-time:
    bounded by its argument."""
    cdef int64_t end = monotonic_ns() + duration_ns
    while monotonic_ns() < end:
        pass


def now_ns() -> int:
    """Monotonic time in ns, the time base of every stamp in the rig."""
    return monotonic_ns()


def now_wall_ns() -> int:
    """Wall time in ns since 1970 (to date a recording)."""
    return wall_ns()


def sleep_until(deadline_ns: int) -> int:
    """Sleep without the GIL until the monotonic deadline; the time of waking in ns."""
    cdef int64_t deadline = deadline_ns
    cdef int err
    cdef int64_t woke
    with nogil:
        err = sleep_until_ns(deadline)
        woke = monotonic_ns()
    if err:
        raise OSError(err, "clock_nanosleep")
    return woke


def busy_wait(duration_ns: int) -> None:
    """Burn CPU without the GIL for duration_ns."""
    cdef int64_t duration = duration_ns
    with nogil:
        spin_ns(duration)
